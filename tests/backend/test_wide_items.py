"""Items of 8 bytes: scatters of 64-bit integers and complex numbers, and complex
functions at the ends of the range."""

import mlx.core as mx
import numpy as np
import pytest

from mlx_vulkan import native

WIDE = [np.int64, np.uint64, np.complex64]
WAYS = ["set", "add", "multiply", "maximum", "minimum"]


def items(rng, dtype, shape):
    if dtype == np.complex64:
        return (rng.integers(-3, 4, shape) + 1j * rng.integers(-3, 4, shape)).astype(
            dtype
        )
    low = 0 if dtype == np.uint64 else -(2**40)
    return rng.integers(low, 2**40, shape).astype(dtype)


def expected(x, index, updates, way):
    x = x.copy()
    for i, u in zip(index, updates):
        if way == "set":
            x[i] = u
        elif way == "add":
            x[i] += u
        elif way == "multiply":
            x[i] *= u
        else:  # NumPy orders complex numbers as MLX does
            x[i] = getattr(np, way)(x[i], u)
    return x


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", WIDE)
def test_scatter(gpu, dtype, way):
    rng = np.random.default_rng(5)
    x = items(rng, dtype, (9, 11))
    # An index occurs several times where order does not matter.
    index = rng.permutation(9)[:6] if way == "set" else rng.integers(0, 9, 40)
    updates = items(rng, dtype, (len(index), 11))
    if way == "multiply":
        updates[np.abs(updates) > 2] = 1
    at = mx.array(x).at[mx.array(index)]
    before = native.counters()["fallbacks"]
    if way == "set":
        got = mx.array(x)
        got[mx.array(index)] = mx.array(updates)
    else:
        got = getattr(at, way)(mx.array(updates))
    assert np.array_equal(np.array(got), expected(x, index, updates, way))
    on_cpu = native.counters()["fallbacks"] - before
    assert on_cpu == (way not in ("set", "add"))


def test_carries(gpu):
    """Sums of halves of 64 bits carry."""
    x = mx.array(np.array([2**32 - 1, -1, 2**62], np.int64))
    index = mx.zeros((1000,), mx.int32)
    got = x.at[index].add(mx.array(np.full(1000, 2**31 + 7, np.int64)))
    assert got.tolist() == [2**32 - 1 + 1000 * (2**31 + 7), -1, 2**62]


def test_what_scatters(gpu):
    assert mx.array_equal(
        mx.diag(mx.array([2**40, -1])), mx.array([[2**40, 0], [0, -1]])
    )
    x = mx.array(np.arange(6, dtype=np.int64))
    gradient = mx.grad(lambda v: (v[mx.array([1, 1])] * 2).real.sum())
    assert gradient(mx.zeros((3,), mx.complex64)).tolist() == [0, 4, 0]
    x[mx.array([5, 0])] = 7
    assert x.tolist() == [7, 1, 2, 3, 4, 7]


BIG, SMALL = 3e38, 1e-37
POINTS = [
    complex(a, b)
    for a in (BIG, -BIG, 1e38, 1e20, 1.5, SMALL)
    for b in (BIG, -1e38, 1e20, 0.5, -SMALL)
]
FUNCTIONS = {
    "abs": np.abs,
    "sqrt": np.sqrt,
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sign": lambda z: z / np.abs(z),
    "reciprocal": lambda z: 1 / z,
    "arctanh": np.arctanh,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ends_of_the_range(gpu, name):
    z = np.array(POINTS, np.complex64)
    want = FUNCTIONS[name](z.astype(np.complex128))
    got = np.array(getattr(mx, name)(mx.array(z))).astype(np.complex128)
    # Results that fit into normal numbers.
    size = np.abs(want)
    fits = (size < 3.4e38) & (size > 1.2e-38)
    assert fits.sum() > 8
    error = np.abs(got - want)[fits] / size[fits]
    assert error.max() < 1e-6, list(zip(z[fits], got[fits], want[fits]))


def test_quotients_at_the_ends(gpu):
    z = np.array(POINTS, np.complex64)
    x, y = (v.ravel() for v in np.meshgrid(z, z))
    want = x.astype(np.complex128) / y.astype(np.complex128)
    got = np.array(mx.array(x) / mx.array(y)).astype(np.complex128)
    fits = (np.abs(want) < 3e38) & (np.abs(want) > 1e-37)
    error = np.abs(got - want)[fits] / np.abs(want)[fits]
    assert error.max() < 1e-6
