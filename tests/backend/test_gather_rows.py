"""mx.gather_qmm without left indices: few of them are kept, not made in the graph."""

import io

import mlx.core as mx
import numpy as np
import pytest

RNG = np.random.default_rng(7)
WEIGHTS = mx.array(RNG.normal(size=(6, 32, 64)).astype(np.float32))
QUANTIZED = mx.quantize(WEIGHTS, 64, 4)


def product(x, right, **options):
    return mx.gather_qmm(
        x, *QUANTIZED, rhs_indices=right, group_size=64, bits=4, **options
    )


# The batch of x, the shape of the right indices: an axis of either that the other
# lacks, or has once; more indices than are kept.
SHAPES = [
    ((1, 1, 1), (1, 1, 8)),
    ((1, 1, 8), (1, 1, 8)),
    ((2, 3), (2, 3)),
    ((3, 1), (2, 1, 4)),
    ((2, 1, 2, 1), (3, 1, 4)),
    ((), (5,)),
    ((4,), (1,)),
    ((1,), (0,)),
    ((300, 1), (300, 2)),
]


@pytest.mark.parametrize("batch, right", SHAPES)
def test_default_left_indices(batch, right):
    weights = np.array(mx.dequantize(*QUANTIZED, 64, 4)).astype(np.float64)
    both = np.broadcast_shapes(batch, right)
    rows = np.broadcast_to(np.arange(np.prod(batch, dtype=int)).reshape(batch), both)
    for _ in range(2):  # made, then kept
        x = RNG.normal(size=(*batch, 1, 64)).astype(np.float32)
        indices = RNG.integers(0, 6, size=right)
        out = np.array(product(mx.array(x), mx.array(indices, dtype=mx.uint32)))
        chosen = np.broadcast_to(indices, both)
        each = weights[chosen]
        expected = np.einsum("...mk,...nk->...mn", x.reshape(-1, 1, 64)[rows], each)
        assert out.shape == expected.shape
        # 64 products and their sum, of weights that are scale * code + bias, which
        # may be summed apart.
        size = abs(each) + 2 * abs(np.array(QUANTIZED[2]))[chosen]
        most = np.einsum("...mk,...nk->...mn", abs(x.reshape(-1, 1, 64)[rows]), size)
        assert (abs(out - expected) <= 70 * 2.0**-24 * most).all()


def test_graph_of_a_decode_step():
    dot = io.StringIO()
    x, right = mx.ones((1, 1, 1, 1, 64)), mx.array([[[0, 1, 5]]], dtype=mx.uint32)
    mx.eval(x, right, QUANTIZED)
    mx.export_to_dot(dot, product(x, right))
    assert dot.getvalue().count("shape=rectangle") == 1


def test_gradients_and_compiled_and_exported(tmp_path):
    right = mx.array([1, 2])
    x = mx.array(RNG.normal(size=(2, 1, 64)).astype(np.float32))
    left = mx.array([0, 1], dtype=mx.uint32)

    def loss(f):
        return mx.grad(lambda x: f(x).square().sum())(x)

    def given(x):
        return product(x, right, lhs_indices=left)

    def default(x):
        return product(x, right)

    assert mx.array_equal(loss(default), loss(given)).item()
    assert mx.array_equal(mx.compile(default)(x), given(x)).item()
    path = str(tmp_path / "gather.mlxfn")
    mx.export_function(path, default, x)
    assert mx.array_equal(mx.import_function(path)(x)[0], given(x)).item()


def test_shapes_that_do_not_broadcast():
    with pytest.raises(ValueError, match="cannot be broadcast"):
        product(mx.ones((3, 1, 64)), mx.zeros((4,), dtype=mx.uint32))
