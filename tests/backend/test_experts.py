"""Layers of experts whose records are joined (runtime/rewrite_moe.cpp): the same
bits as when each operation is a batch of its own."""

import mlx.core as mx
import numpy as np
import pytest

from mlx_vulkan import native

FLOATS = (mx.float32, mx.float16, mx.bfloat16)
swiglu = mx.compile(lambda gate, up: gate * mx.sigmoid(gate) * up)


def at_once(x):
    return x


def one_by_one(x):
    mx.eval(x)
    return x


def bits(arrays):
    mx.eval(arrays)
    return [
        np.array(a.view(mx.uint32 if a.itemsize == 4 else mx.uint16)) for a in arrays
    ]


def fired():
    names = ("router", "experts", "combine")
    counters = native.counters()
    return np.array([counters[f"rewrites_{n}"] for n in names])


def check(program, *rules):
    """The program's results, joined and not; the rules that joined records."""
    expected = bits(program(one_by_one))
    before = fired()
    found = bits(program(at_once))
    mx.synchronize()
    joined = fired() - before
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        np.testing.assert_array_equal(a, b, err_msg=f"result {i}")
    assert tuple(joined) == rules


def route(x, k, look, norm=True, last=True):
    gates = look(mx.softmax(x, axis=-1, precise=True))
    order = look(mx.argpartition(gates, kth=-k, axis=-1))
    index = order[..., -k:] if last else order[..., 1 : k + 1]
    scores = look(mx.take_along_axis(gates, index, axis=-1))
    total = look(mx.sum(scores, axis=-1, keepdims=True))
    weights = look(scores / total) if norm else scores
    return gates, order, index, scores, total, weights


def logits(rows, n, dtype, kind="normal"):
    mx.random.seed(n + rows)
    x = np.array(mx.random.normal((rows, n)) * 3)
    if kind == "ties":  # few values, as bfloat16 has among hundreds
        x = np.round(x)
    elif kind == "nan":  # of a whole row: a softmax knows no other
        x[0, n // 2] = np.nan
    elif kind == "infinite":
        x[:, : n // 2] = -np.inf
        x[-1, :] = -np.inf
    x = mx.array(x).astype(dtype)
    mx.eval(x)
    return x


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ("normal", "ties", "nan", "infinite"))
def test_router(dtype, kind):
    def routed(rows, n, k, **how):
        x = logits(rows, n, dtype, kind)
        return lambda look: route(x, k, look, **how)

    for shape in ((1, 128, 8), (3, 64, 6), (2, 9, 4), (1, 512, 10)):
        check(routed(*shape), 4, 0, 0)
    check(routed(2, 128, 8, norm=False), 3, 0, 0)
    check(routed(2, 128, 8, last=False), 4, 0, 0)
    # What nobody asks for may be overwritten.
    whole = routed(3, 64, 6)
    check(lambda look: whole(look)[2::3], 4, 0, 0)


def test_router_of_too_many():
    x = logits(1, 513, mx.bfloat16)
    check(lambda look: route(x, 8, look), 0, 0, 0)


class Experts:
    def __init__(self, dtype, experts, hidden, inner, group, bits, mode="affine"):
        mx.random.seed(experts)
        self.how = dict(group_size=group, bits=bits, mode=mode)

        def weights(n, k):
            w = mx.random.normal((experts, n, k)) * k**-0.5
            return mx.quantize(w.astype(dtype), **self.how)

        self.gate, self.up = weights(inner, hidden), weights(inner, hidden)
        self.down = weights(hidden, inner)
        mx.eval(self.gate, self.up, self.down)

    def product(self, x, w, index):
        return mx.gather_qmm(x, *w, rhs_indices=index, transpose=True, **self.how)

    def __call__(self, x, index, weights, look, residual=None):
        rows = mx.expand_dims(x, (-2, -3))
        up = look(self.product(rows, self.up, index))
        gate = look(self.product(rows, self.gate, index))
        gated = look(swiglu(gate, up))
        down = look(self.product(gated, self.down, index)).squeeze(-2)
        weighted = look(down * weights[..., None])
        y = look(weighted.sum(axis=-2))
        made = [up, gate, gated, down, weighted, y]
        if residual is not None:
            made.append(look(residual + y))
        return made


@pytest.mark.parametrize(
    "dtype, experts, k, hidden, inner, group, width, mode",
    [
        (mx.bfloat16, 16, 8, 256, 96, 32, 4, "affine"),
        (mx.float16, 8, 2, 128, 192, 64, 8, "affine"),
        (mx.float32, 8, 3, 64, 128, 64, 2, "affine"),
        (mx.bfloat16, 6, 4, 96, 64, 32, 4, "mxfp4"),
        (mx.bfloat16, 4, 2, 1024, 512, 128, 4, "affine"),
    ],
)
def test_experts(dtype, experts, k, hidden, inner, group, width, mode):
    layer = Experts(dtype, experts, hidden, inner, group, width, mode)
    # A gate of f32 is no rule: its steps may be contracted in other ways.
    pair = 0 if dtype == mx.float32 else 2

    def layered(rows, *results):
        mx.random.seed(rows)
        x, residual = (mx.random.normal((rows, hidden)).astype(dtype) for _ in "xr")
        index = mx.random.randint(0, experts, (rows, k)).astype(mx.uint32)
        weights = mx.softmax(mx.random.normal((rows, k)), axis=-1).astype(dtype)
        mx.eval(x, residual, index, weights)

        def program(look):
            made = layer(x, index, weights, look, residual)
            return [made[i] for i in results] if results else made

        return program

    for rows in (1, 3):
        check(layered(rows), 0, pair, 3)
        check(layered(rows, -1), 0, pair, 3)
        check(layered(rows, -2), 0, pair, 2)


def test_layer():
    layer = Experts(mx.bfloat16, 16, 128, 64, 64, 4)
    x = logits(1, 128, mx.bfloat16)
    gates = logits(1, 16, mx.bfloat16)

    def program(look):
        *_, index, _, _, weights = route(gates, 8, look)
        return layer(x, index, weights, look, x)[-1:]

    check(program, 4, 2, 3)


@pytest.mark.parametrize("rows", (1, 2))
def test_experts_outside(rows):
    """The products of an expert that there is not are 0, joined or not."""
    layer = Experts(mx.bfloat16, 8, 128, 64, 64, 4)
    x = logits(rows, 128, mx.bfloat16)
    index = np.array([[3, 8, 2**31, 0], [2**32 - 1, 1, 7, 9]], np.uint32)[:rows]
    weights = mx.full(index.shape, 0.25, dtype=mx.bfloat16)
    chosen = mx.array(index)
    mx.eval(weights, chosen)

    def program(look):
        return layer(x, chosen, weights, look, x)

    check(program, 0, 2, 3)
    outside = index >= 8
    *products, weighted, _, _ = program(at_once)
    for y in (*products, weighted):
        y = np.array(y.astype(mx.float32)).reshape(rows, 4, -1)
        assert not y[outside].any()
        assert y[~outside].any(axis=-1).all()


def test_experts_not_joined():
    """Indices of the left operand, and outputs added up along other axes."""
    layer = Experts(mx.bfloat16, 8, 128, 64, 64, 4)
    mx.random.seed(0)
    x = mx.random.normal((3, 1, 64)).astype(mx.bfloat16)
    left = mx.array([[2, 0], [1, 1]], mx.uint32)
    right = mx.array([[5, 7], [0, 3]], mx.uint32)
    weights = mx.random.normal((2, 2)).astype(mx.bfloat16)
    mx.eval(x, weights)

    def program(axis):
        def run(look):
            y = look(
                mx.gather_qmm(
                    x, *layer.down, lhs_indices=left, rhs_indices=right, **layer.how
                )
            )
            scaled = look(y.squeeze(-2) * weights[..., None])
            return [y, scaled, look(scaled.sum(axis=axis))]

        return run

    check(program(-2), 0, 0, 2)
    check(program(0), 0, 0, 0)
    check(program(-1), 0, 0, 0)


def runs(*lengths):
    return np.repeat(np.arange(len(lengths)), lengths)


@pytest.mark.parametrize(
    "right",
    [
        runs(33, 0, 1, 64, 65, 0, 31, 200),
        runs(0, 0, 300, 0, 0, 0, 0, 0),
        runs(*[37] * 8),
        # Not as promised, which costs time alone.
        np.tile(np.arange(8), 20),
        runs(20, 20, 20, 20, 20, 20, 20, 20)[::-1],
    ],
    ids=["lengths", "one", "even", "mixed", "falling"],
)
def test_sorted_rows(right):
    """Tiles begin where runs of equal indices do (gemm/sorted_tiles.comp)."""
    mx.random.seed(0)
    rows = len(right)
    w = mx.quantize(mx.random.normal((8, 40, 64)).astype(mx.bfloat16), 64, 4)
    x = mx.random.normal((rows, 1, 64)).astype(mx.bfloat16)
    left = mx.random.permutation(rows).astype(mx.uint32)
    right = mx.array(right.astype(np.uint32))
    how = dict(lhs_indices=left, rhs_indices=right, group_size=64, bits=4)
    y = mx.gather_qmm(x, *w, sorted_indices=True, **how)
    whole = mx.dequantize(*w, 64, 4).astype(mx.float32).swapaxes(-1, -2)
    expected = np.array(x.astype(mx.float32)[left] @ whole[right])
    # Weights rounded to bfloat16, and the result: 2^-8 each of |x| |w| at most.
    bound = np.abs(np.array(x.astype(mx.float32)[left])) @ np.abs(whole[right])
    assert (np.abs(np.array(y.astype(mx.float32)) - expected) <= bound / 128).all()
