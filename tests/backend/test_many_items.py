"""Arrays so large that an invocation takes several accesses at once: the same bits
as of parts that are not, and NumPy's results."""

import mlx.core as mx
import numpy as np
import pytest

MANY = 1 << 23  # MANY_ITEMS of src/kernels/elementwise.h
SIZE = MANY + 5 * 4096 + 257


def values(dtype, seed=0):
    x = mx.random.normal((SIZE,), key=mx.random.key(seed))
    return x > 0 if dtype == mx.bool_ else (x * 50).astype(dtype)


def same(f, *arrays):
    """f of whole arrays and of their parts, which are too few for the form."""
    whole = f(*arrays)
    for part in slice(0, MANY // 2), slice(MANY // 2, SIZE):
        for got, want in zip(whole, f(*(x[part] if x.ndim else x for x in arrays))):
            assert mx.array_equal(got[part], want, equal_nan=got.dtype == mx.float32)


@pytest.mark.parametrize("dtype", [mx.bfloat16, mx.int8, mx.int64])
def test_binary(dtype):
    a, b = values(dtype), values(dtype, 1)
    same(lambda a, b: (a + b, a < b), a, b)
    same(lambda a, b: (b - a,), a, mx.array(3, dtype=dtype))


def test_unary_and_ternary():
    a, b, c = values(mx.float32), values(mx.float32, 1), values(mx.bool_, 2)
    same(lambda a, b, c: (mx.where(c, a, b), *mx.divmod(a, b)), a, b, c)
    same(lambda a: (mx.exp(mx.abs(a)),), a)  # the second into the first's memory


@pytest.mark.parametrize("dtype", [mx.float16, mx.float32])
def test_fused(dtype):
    @mx.compile
    def fused(a, b, c):
        keep = a > b
        return mx.where(keep, mx.sigmoid(a) * b, c), keep

    same(fused, values(dtype), values(dtype, 1), mx.array(2, dtype=dtype))


@pytest.mark.parametrize("shape", [(16, 1 << 20), (8193, 2052)])
@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16])
def test_columns(shape, dtype):
    x = mx.random.normal(shape, key=mx.random.key(3)).astype(dtype)
    want = np.array(x.astype(mx.float32), np.float64)
    got = np.array(mx.sum(x, 0).astype(mx.float32))
    bound = np.abs(want).sum(0) * (2**-18 if dtype == mx.float32 else 2**-8)
    assert (np.abs(got - want.sum(0)) <= bound).all()
    np.testing.assert_array_equal(np.array(x.max(0).astype(mx.float32)), want.max(0))
    x[7, 11] = float("nan")
    got = np.array(x.min(0).astype(mx.float32))
    assert np.isnan(got[11]) and np.isnan(got).sum() == 1


@pytest.mark.parametrize("rows, columns", [(4099, 2052), (70001, 124)])
def test_gather(rows, columns):
    table = mx.random.normal((999, columns), key=mx.random.key(4))
    index = mx.random.randint(-999, 999, (rows,), key=mx.random.key(5))
    want = np.array(table)[np.array(index)]
    np.testing.assert_array_equal(np.array(table[index]), want)
