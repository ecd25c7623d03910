"""Attention over a quantized cache, as MLX-LM writes it: one kernel takes what
were three (ops/attention/quantized.h). Against float64, and against itself with
every operation in a batch of its own."""

import os
from dataclasses import dataclass, replace

import mlx.core as mx
import numpy as np
import pytest

from mlx_vulkan import native

FULL = os.environ.get("MLX_VK_TEST_FULL") == "1"


@dataclass(frozen=True)
class Case:
    dtype: mx.Dtype = mx.float16
    bits: int = 8
    group: int = 64
    heads: int = 4
    kv_heads: int = 2
    keys: int = 77
    dim: int = 64
    value_dim: int = 0
    queries: int = 1
    batch: int = 1
    mask: str = ""
    slack: bool = True  # the cache has more rows than keys
    scaled: bool = True  # q is multiplied first

    @property
    def scale(self):
        return self.dim**-0.5

    @property
    def records(self):
        """That are joined to the product with the values."""
        return 2 + bool(self.mask) + self.scaled

    def __str__(self):
        return "-".join(
            str(v).rsplit(".", 1)[-1] for v in vars(self).values() if v not in ("", 0)
        )


def quantized(x, case):
    mx.eval(parts := mx.quantize(x, group_size=case.group, bits=case.bits))
    return parts


def inputs(case):
    rng = np.random.default_rng(case.keys + case.dim)

    def normal(*shape):
        x = rng.standard_normal(shape, np.float32)
        return mx.array(x).astype(case.dtype)

    rows = (case.keys + 255) // 256 * 256 if case.slack else case.keys
    cache = [
        tuple(
            part[..., : case.keys, :]
            for part in quantized(normal(case.batch, case.kv_heads, rows, d), case)
        )
        for d in (case.dim, case.value_dim or case.dim)
    ]
    q = normal(case.batch, case.heads, case.queries, case.dim)
    q = q if case.scaled else q * case.scale
    mx.eval(q)
    return q, *cache, mask_of(case, rng)


def mask_of(case, rng):
    b, rows, keys = case.batch, case.queries, case.keys
    if case.mask == "causal":
        return mx.arange(keys - rows, keys)[:, None] >= mx.arange(keys)[None]
    if case.mask == "bool":
        m = rng.random((b, 1, rows, keys)) < 0.6
        m[0, :, 0] = False  # a row that sees nothing is the values' mean
        return mx.array(m)
    if case.mask == "padding":  # one row for all queries
        return mx.array(np.arange(keys) >= np.arange(b)[:, None, None, None] * 5)
    if case.mask == "additive":
        return mx.array(rng.standard_normal((b, 1, rows, keys))).astype(case.dtype)
    return None


def attention(case, q, k, v, mask, look=lambda x: x, hidden=None):
    """As quantized_scaled_dot_product_attention of mlx_lm.models.base."""
    how = {"group_size": case.group, "bits": case.bits}
    repeats = case.heads // case.kv_heads
    if case.scaled:
        q = look(q * case.scale)
    if repeats > 1:
        q = q.reshape(case.batch, case.kv_heads, repeats, case.queries, case.dim)
        k, v = ([mx.expand_dims(x, -3) for x in parts] for parts in (k, v))
    scores = look(mx.quantized_matmul(q, *k, transpose=True, **how))
    if mask is not None:
        if repeats > 1 and mask.ndim > 3:
            mask = mx.expand_dims(mask, -3)
        if mask.dtype == mx.bool_:
            least = mx.finfo(scores.dtype).min if hidden is None else hidden
            scores = mx.where(mask, scores, least)
        else:
            scores = scores + mask
        scores = look(scores)
    weights = look(mx.softmax(scores, axis=-1, precise=True))
    y = look(mx.quantized_matmul(weights, *v, transpose=False, **how))
    return y.reshape(case.batch, case.heads, case.queries, -1)


def exact(x):
    return np.array(x.astype(mx.float32), np.float64)


def oracle(case, q, k, v, mask):
    def items(parts):
        codes, scales, biases = parts
        per = 32 // case.bits
        n = np.array(codes)[..., None] >> (np.arange(per) * case.bits).astype(np.uint32)
        n = (n & (2**case.bits - 1)).reshape(*codes.shape[:-1], -1).astype(np.float64)
        wide = [exact(x).repeat(case.group, -1) for x in (scales, biases)]
        return (n * wide[0] + wide[1]).repeat(case.heads // case.kv_heads, 1)

    if case.scaled:
        q = q * case.scale
    values = items(v)
    s = exact(q) @ items(k).swapaxes(-1, -2)
    if mask is not None:
        m = np.array(mask) if mask.dtype == mx.bool_ else exact(mask)
        s = np.where(m, s, -1e300) if mask.dtype == mx.bool_ else s + m
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ values, values


def fired():
    return native.counters()["rewrites_attention"]


def joined(case, *operands, **more):
    before = fired()
    y = attention(case, *operands, **more)
    mx.eval(y)
    return y, fired() - before


def bound(case, want, values):
    """One rounding of the result; sums of codes in float32, which lose the codes'
    unit (decode_codes.glsl): of keys for a score, whose error counts twice in a
    weight, and of values. Terms of either sign add up like the root of their
    number, of which a lane has 16 for a score and a key each for a value."""
    last = {mx.float32: 2.0**-24, mx.float16: 2.0**-11, mx.bfloat16: 2.0**-8}
    unit = 2.0 ** (case.bits if case.dtype == mx.float32 else 8)
    terms = 2 * np.sqrt(16) + np.sqrt(case.keys) / 8
    return (
        last[case.dtype] * np.abs(want) + unit * 2.0**-24 * terms * np.abs(values).max()
    )


def check(case):
    operands = inputs(case)
    y, records = joined(case, *operands)
    assert records == case.records
    assert y.dtype == case.dtype
    want, values = oracle(case, *operands)
    error = np.abs(exact(y) - want)
    assert (error <= bound(case, want, values)).all(), error.max()


CASES = [
    Case(),
    Case(mx.bfloat16, dim=128, heads=8, keys=300),
    Case(mx.float32, scaled=False),
    Case(mx.bfloat16, 4, dim=128, heads=8, keys=257, kv_heads=1),
    Case(mx.float32, 4, 32, dim=96, heads=3, kv_heads=3, keys=1),
    Case(mx.float16, 4, 32, keys=9001, slack=False),  # split
    Case(mx.float16, 4, 32, queries=3, mask="causal"),
    Case(mx.float16, 4, 32, batch=2, mask="padding"),
    Case(mx.float16, 8, 64, batch=2, queries=2, mask="bool"),
    Case(mx.float32, 8, 64, batch=2, queries=2, mask="additive", heads=2),
]
MORE = [
    Case(dtype, bits, group, 2 * gqa, 2, keys, dim, queries=queries, batch=batch)
    for dtype in (mx.float32, mx.float16, mx.bfloat16)
    for bits in (4, 8)
    for group, dim, gqa, keys, queries, batch in (
        (32, 64, 1, 5, 1, 1),
        (32, 96, 3, 130, 1, 2),
        (64, 128, 8, 4099, 1, 1),
        (64, 64, 5, 600, 8, 1),
        (128, 256, 2, 1000, 4, 2),
        (128, 512, 1, 33, 1, 1),
    )
] + [
    replace(Case(dtype, bits), mask=mask, queries=queries, batch=batch, heads=heads)
    for dtype in (mx.float16, mx.bfloat16)
    for bits in (4, 8)
    for mask in ("causal", "bool", "padding", "additive")
    for queries, batch, heads in ((1, 2, 2), (5, 3, 6))
]


@pytest.mark.parametrize("which", CASES + (MORE if FULL else []), ids=str)
def test_against_float64(gpu, which):
    check(which)


def test_other_head_dimensions_of_values(gpu):
    check(Case(mx.float16, 4, 32, dim=96, value_dim=64))


@pytest.mark.parametrize("dtype", (mx.float16, mx.bfloat16))
def test_rounds_less_than_one_by_one(gpu, dtype):
    """Scores and weights are not rounded to the type."""
    case = Case(dtype, 8, dim=64, keys=300)
    q, k, v, mask = inputs(case)
    q = q * 4  # larger scores, whose rounding shows
    want, _ = oracle(case, q, k, v, mask)

    def one_by_one(x):
        mx.eval(x)
        return x

    before = fired()
    apart = attention(case, q, k, v, mask, one_by_one)
    assert fired() == before
    together, _ = joined(case, q, k, v, mask)
    errors = [np.sqrt(np.square(exact(y) - want).mean()) for y in (together, apart)]
    assert errors[0] < 0.75 * errors[1] and errors[1] < 0.03 * want.std()


def holding(case, operands, which):
    """The result, and an intermediate that is held meanwhile."""
    held = []

    def look(x):
        held.append(x)
        return x

    y = attention(case, *operands, look=look)
    return y, held[which]


def test_what_others_want_is_written(gpu):
    """Scores or weights that somebody holds, or reads, stay what they are."""
    case = Case(keys=50)
    q, k, v, mask = operands = inputs(case)
    want, _ = joined(case, *operands)
    before = fired()
    for which in (1, 2):
        y, held = holding(case, operands, which)
        mx.eval(y, held)
        assert fired() == before
        assert np.abs(exact(y) - exact(want)).max() < 0.01
    assert np.abs(exact(mx.sum(held, axis=-1)) - 1).max() < 0.01
    # Read by another operation before the product with the values is encoded.
    y, weights = holding(case, operands, 2)
    total = mx.sum(weights, axis=-1)
    del weights
    mx.eval(total, y)
    assert fired() == before
    assert np.abs(exact(total) - 1).max() < 0.01
    # Under a transformation.
    grad = mx.grad(lambda q: attention(case, q, k, v, mask).sum())(q)
    assert np.isfinite(exact(grad)).all() and fired() == before
    # The scaled q alone: the rest is joined.
    y, scaled = holding(case, operands, 0)
    mx.eval(y, scaled)
    assert fired() == before + case.records - 1
    assert mx.array_equal(scaled.reshape(q.shape), q * case.scale)
    assert mx.array_equal(y, want)
    # A q that the scale replaces in place.
    y, records = joined(case, q + 0, k, v, mask)
    assert records == case.records
    assert mx.array_equal(y, want)


def test_infinities_and_nan(gpu):
    case = Case(keys=40, queries=2, mask="bool")
    q, k, v, mask = inputs(case)
    # A row that sees nothing but -Inf has no weights, and its result is NaN.
    y, records = joined(case, q, k, v, mask, hidden=-mx.inf)
    assert records == case.records
    y = exact(y)
    assert np.isnan(y[0, :, 0]).all() and np.isfinite(y[0, :, 1]).all()
    # Another value than the least one counts as the score that it is.
    least, _ = joined(case, q, k, v, mask)
    zero, records = joined(case, q, k, v, mask, hidden=0.0)
    assert records == case.records
    assert np.abs(exact(zero)[0, :, 1] - exact(least)[0, :, 1]).max() > 0.01
    # NaN in q reaches the rows of its head alone.
    case = replace(case, mask="")
    bad = mx.array(
        np.where(np.arange(case.heads)[:, None, None] == 1, np.nan, exact(q))
    )
    y, records = joined(case, bad.astype(case.dtype), k, v, None)
    assert records == case.records
    wrong = np.isnan(exact(y)).all((0, 2, 3))
    assert wrong.tolist() == [h == 1 for h in range(case.heads)]


def test_a_cache_that_is_written_between(gpu):
    """Keys that change after the scores, and before the product with the values,
    are read as they were."""
    case = Case(keys=64, slack=False)
    q, k, v, mask = inputs(case)
    want, _ = joined(case, q, k, v, mask)
    for _ in range(3):  # donated at once, or copied
        codes = k[0] + 0
        scales, biases = k[1] + 0, k[2] + 0
        mx.eval(codes, scales, biases)
        y = attention(case, q, (codes, scales, biases), v, mask)
        codes[..., 3:5, :] = 0
        mx.eval(codes, y)
        assert (
            np.array_equal(exact(y), exact(want))
            or np.abs(exact(y) - exact(want)).max() < 2.0**-8
        )
