"""A row's result has the same bits alone, in a batch, and as a slice of one.

What does not hold is in docs/limitations.md.
"""

import mlx.core as mx
import numpy as np
import pytest

COUNTS = (1, 3, 8, 256)
# Beside lanes and chunks of rows: their ends, and what fours do not divide.
WIDTHS = (16, 24, 64, 128, 132, 200, 256, 300, 384, 512, 516, 1000, 1024, 4096)
# From 129 to 511 items, sums that are not read by fours depend on the rows.
ODD = (7, 33, 127, 513, 1025)


def weighted(norm):
    def apply(x):
        w = mx.linspace(0.5, 1.5, x.shape[-1]).astype(x.dtype)
        return norm(x, w)

    return apply


ROWS = {
    "sum": lambda x: x.sum(-1),
    "mean": lambda x: x.mean(-1),
    "prod": lambda x: (1 + x * 2**-8).prod(-1),
    "max": lambda x: x.max(-1),
    "var": lambda x: x.var(-1),
    "softmax": lambda x: mx.softmax(x, axis=-1),
    "precise softmax": lambda x: mx.softmax(x, axis=-1, precise=True),
    "logsumexp": lambda x: mx.logsumexp(x, axis=-1),
    "rms_norm": weighted(lambda x, w: mx.fast.rms_norm(x, w, 1e-5)),
    "layer_norm": weighted(lambda x, w: mx.fast.layer_norm(x, w, w - 1, 1e-5)),
    "argmax": lambda x: mx.argmax(x, axis=-1),
}


def bits(y):
    y = y.view({2: mx.uint16, 4: mx.uint32}[y.itemsize])
    return np.array(y)


def check(f, x):
    """`x`: the most rows."""
    n = x.shape[-1]
    whole = bits(f(x))
    for count in COUNTS:
        some = np.stack([bits(f(x[i : i + count])) for i in (0, len(x) - count)])
        assert np.array_equal(some[0], whole[:count]), count
        assert np.array_equal(some[1], whole[len(x) - count :]), count
    alone = mx.array(np.array(x[5].astype(mx.float32))).astype(x.dtype)
    assert np.array_equal(bits(f(alone)), whole[5])
    blocks = x.reshape(16, -1, n)[3:7, 2:5]  # rows at two distances
    assert np.array_equal(
        bits(f(blocks)), whole.reshape(16, -1, *whole.shape[1:])[3:7, 2:5]
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ROWS)
def test_rows(gpu, name, dtype):
    mx.random.seed(7)
    for n in WIDTHS + ODD:
        x = mx.random.normal((max(COUNTS), n)).astype(getattr(mx, dtype))
        check(ROWS[name], x)


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_long_rows(gpu, name):
    """In parts, of which there are as many whatever the rows."""
    x = mx.random.normal((64, 40000))
    whole = bits(ROWS[name](x))
    for count in (1, 3, 17):
        assert np.array_equal(bits(ROWS[name](x[:count])), whole[:count])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("k, n", [(64, 48), (512, 256), (1000, 64), (4096, 16)])
def test_products_of_one_to_eight_rows(gpu, k, n, dtype):
    dtype = getattr(mx, dtype)
    w = mx.random.normal((n, k)).astype(dtype)
    x = mx.random.normal((8, k)).astype(dtype)
    whole = bits(x @ w.T)
    for count in range(1, 8):
        assert np.array_equal(bits(x[:count] @ w.T), whole[:count]), count
