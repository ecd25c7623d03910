"""Sorts of short rows, several to a workgroup, to the bit of NumPy's stable order."""

import mlx.core as mx
import numpy as np
import pytest

FLOATS = ("float32", "float16", "bfloat16")
INTEGERS = tuple(f"{s}int{b}" for s in ("", "u") for b in (8, 16, 32, 64))
LENGTHS = (1, 2, 3, 8, 12, 13, 16, 17, 32, 33, 64, 65, 128, 129, 256, 257, 1024, 1025)
WORDS = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32, 8: mx.uint64}


def keys(dtype, shape, seed=0):
    """Ties, ends of integers, zeros and NaN of both signs, infinities."""
    rng = np.random.default_rng(seed)
    if dtype == "bool_":
        return mx.array(rng.random(shape) < 0.5)
    if dtype == "complex64":
        x = rng.integers(-1, 2, shape) + 1j * rng.integers(-1, 2, shape)
        x[rng.random(shape) < 0.1] = complex(np.nan, 1)
        x[rng.random(shape) < 0.1] = complex(-0.0, np.inf)
        return mx.array(x.astype(np.complex64))
    if dtype in FLOATS:
        x = np.round(rng.normal(size=shape) * 8).astype(np.float32) / 4
        for value in (0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-37):
            x[rng.random(shape) < 0.06] = value
        return mx.array(x).astype(getattr(mx, dtype))
    ends = np.iinfo(dtype)
    x = rng.integers(ends.min, ends.max, shape, dtype, endpoint=True)
    for value in (ends.min, ends.max, 0, 1):
        x[rng.random(shape) < 0.15] = value
    return mx.array(x)


def bits(x):
    """An array's words, a row of them an item."""
    x = mx.contiguous(x)
    if x.dtype == mx.complex64:
        return np.array(x.view(mx.float32).view(mx.uint32)).reshape(*x.shape, 2)
    return np.array(x.view(WORDS[x.itemsize]))[..., None]


def stable_order(x, axis):
    if x.dtype == mx.complex64:
        x = np.array(x)
        x = np.where(np.isnan(x), complex(np.nan, np.nan), x)
    else:
        x = np.array(x.astype(mx.float32) if x.dtype == mx.bfloat16 else x)
    return np.argsort(x, axis=axis, kind="stable")


def check(x, axis):
    order = stable_order(x, axis)
    np.testing.assert_array_equal(np.array(mx.argsort(x, axis=axis)), order)
    want = np.take_along_axis(bits(x), order[..., None], axis)
    np.testing.assert_array_equal(bits(mx.sort(x, axis=axis)), want)


def views(dtype, n):
    """Views with rows of n items along an axis."""
    x = keys(dtype, (37, n))
    yield x, 1
    yield mx.contiguous(x.T).T, 1
    yield mx.contiguous(x.T), 0
    yield x[::-2, ::-1], 1
    x = keys(dtype, (2, 3, n, 2, 6))
    yield x[:, ::-1, :, :, 1::2], 2
    yield x[:, ::2, ::-1].transpose(4, 1, 2, 0, 3), 2
    yield mx.broadcast_to(x[:, :1, :, :, :1], (2, 3, n, 2, 5)), 2


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + ("bool_", "complex64"))
def test_order(dtype):
    for n in LENGTHS:
        for x, axis in views(dtype, n):
            check(x, axis)


# More workgroups than an axis of a grid has, the last of them not full.
@pytest.mark.parametrize(
    "dtype, shape, axis",
    [
        ("uint8", (65536 * 128 + 1, 2), 1),
        ("float16", (2, 12, 65536 * 11), 1),
        ("uint8", (65536 * 16 + 3, 13), 1),
        ("int8", (129, 65536 + 1), 0),
    ],
)
def test_many_rows(dtype, shape, axis):
    check(keys(dtype, shape), axis)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 3)])
def test_no_items(shape):
    for axis in range(len(shape)):
        for result in mx.sort(mx.zeros(shape), axis), mx.argsort(mx.zeros(shape), axis):
            mx.eval(result)
            assert result.shape == shape
