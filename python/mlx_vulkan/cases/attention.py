"""Scaled dot product attention: decode, prefill, masks, sinks, head groups."""

import numpy as np

from . import FLOATS, Case, Raw, arrays, normal
from .oracles import qkv

ROWS = dict(
    rtol={"float32": 1e-4, "float16": 3e-3, "bfloat16": 2e-2},
    atol={"float32": 2e-5, "float16": 3e-3, "bfloat16": 2e-2},
)
FEW = ("contiguous", "swapped", "rows_padded", "offset")
HIDDEN = -1e38


def attention(q, k, v, mask=None, sinks=None):
    groups = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, groups, 1), np.repeat(v, groups, 1)
    s = q @ np.swapaxes(k, -1, -2) * q.shape[-1] ** -0.5
    if isinstance(mask, str):
        rows = np.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2]
        s = np.where(rows >= np.arange(k.shape[2]), s, HIDDEN)
    elif mask is not None:
        s = np.where(mask, s, HIDDEN) if mask.dtype == bool else s + mask
    if sinks is not None:
        column = np.broadcast_to(sinks[:, None, None], (*s.shape[:3], 1))
        s = np.concatenate([column, s], -1)
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return p[..., p.shape[-1] - v.shape[2] :] @ v


def flops(q, k, v):
    return 2 * q[0] * q[1] * q[2] * k[2] * (k[3] + v[3])


def fused(mx, q, k, v, mask=None, sinks=None):
    return mx.fast.scaled_dot_product_attention(
        q, k, v, scale=q.shape[-1] ** -0.5, mask=mask, sinks=sinks
    )


CASES = []


def case(
    name, inputs, fn, oracle, dtypes=("float32",), layouts=("contiguous",), **more
):
    CASES.append(
        Case(
            f"sdpa_{name}",
            inputs,
            fn,
            oracle,
            dtypes,
            layouts=layouts,
            tags=("sdpa",),
            **ROWS,
            **more,
        )
    )


for queries, keys in [(1, 37), (5, 33), (33, 70)]:
    shapes = qkv(2, 4, 2, queries, keys, 64)
    case(f"{queries}x{keys}", arrays(*shapes), fused, attention, FLOATS, FEW)
    case(
        f"causal_{queries}x{keys}",
        arrays(*shapes),
        lambda mx, q, k, v: fused(mx, q, k, v, "causal"),
        lambda q, k, v: attention(q, k, v, "causal"),
    )

    def masked(rng, dtype, shapes=shapes):
        m = (*shapes[0][:3], shapes[1][2])
        return [*(normal(rng, s, dtype) for s in shapes), Raw(rng.random(m) < 0.5)]

    def hidden(rng, dtype, shapes=shapes):
        m = np.zeros((shapes[0][2], shapes[1][2]), bool)
        return [*(normal(rng, s, dtype) for s in shapes), Raw(m)]

    def added(rng, dtype, shapes=shapes):
        m = (shapes[0][0], 1, shapes[0][2], shapes[1][2])
        return [normal(rng, s, dtype) for s in (*shapes, m)]

    def sunk(rng, dtype, shapes=shapes):
        return [normal(rng, s, dtype) for s in (*shapes, (shapes[0][1],))]

    case(f"bool_{queries}x{keys}", masked, fused, attention)
    case(f"hidden_{queries}x{keys}", hidden, fused, attention)
    case(f"added_{queries}x{keys}", added, fused, attention)
    case(
        f"sinks_{queries}x{keys}",
        sunk,
        lambda mx, q, k, v, s: fused(mx, q, k, v, "causal", s),
        lambda q, k, v, s: attention(q, k, v, "causal", s),
    )


# Only the last keys are seen: a loop that ends early sees none (llvmpipe
# grants an invocation 65,535 iterations).
def last_keys(queries, keys, dim):
    def make(rng, dtype):
        mask = np.arange(keys)[None] >= keys - 64
        shapes = qkv(1, 2, 1, queries, keys, dim)
        return [*(normal(rng, s, dtype) for s in shapes), Raw(mask)]

    return make


for queries, keys, dim in [
    (1, 60000, 64),
    (8, 20000, 64),
    (9, 90000, 64),
    (9, 30000, 128),
]:
    case(
        f"last_of_{keys}_{queries}_{dim}",
        last_keys(queries, keys, dim),
        fused,
        attention,
    )

# Keys for several workgroups, on llvmpipe too; also with sinks, which the join of their
# parts adds.
SHARED = qkv(1, 4, 2, 1, 9001, 64)
case("shared_keys", arrays(*SHARED), fused, attention, FLOATS)


def sunk_keys(shapes):
    def make(rng, dtype):
        return [normal(rng, s, dtype) for s in (*shapes, (shapes[0][1],))]

    return make


# On GPUs of more than 72 cores a kernel of its own merges the parts of so many heads.
MANY = qkv(9, 16, 8, 1, 2000, 64)
case("many_parts", arrays(*MANY), fused, attention, ("float16",))

for name, shapes in (("shared_keys", SHARED), ("many_parts", MANY)):
    case(
        f"{name}_sinks",
        sunk_keys(shapes),
        lambda mx, q, k, v, s: fused(mx, q, k, v, None, s),
        lambda q, k, v, s: attention(q, k, v, None, s),
        ("float16",),
    )

# Head dimensions, equal or not; tile edges; more queries than keys.
for dim, value_dim in [
    (32, 32),
    (80, 80),
    (128, 128),
    (192, 128),
    (256, 256),
    (256, 512),
    (250, 514),
    (40, 24),
]:
    for queries in (1, 17):
        case(
            f"dims_{dim}_{value_dim}_{queries}",
            arrays(*qkv(1, 4, 1, queries, 40, dim, value_dim)),
            fused,
            attention,
            ("float16",),
        )
for queries, keys, dim in [
    (8, 8, 64),
    (9, 9, 64),
    (10, 5, 64),
    (64, 64, 64),
    (65, 129, 64),
    (65, 129, 128),
]:
    case(
        f"edges_{queries}x{keys}x{dim}",
        arrays(*qkv(1, 2, 1, queries, keys, dim)),
        lambda mx, q, k, v: fused(mx, q, k, v, "causal"),
        lambda q, k, v: attention(q, k, v, "causal"),
    )

# Keys split over workgroups, and tiles of many workgroups.
for mask, shapes in (
    (None, qkv(1, 8, 2, 1, 8192, 128)),
    ("causal", qkv(1, 4, 2, 1025, 1025, 128)),
):
    case(
        f"big_{shapes[0][2]}x{shapes[1][2]}",
        arrays(*shapes),
        lambda mx, q, k, v, mask=mask: fused(mx, q, k, v, mask),
        lambda q, k, v, mask=mask: attention(q, k, v, mask),
        FLOATS,
        big=True,
    )

for name, shapes in {
    "decode_512": qkv(1, 16, 8, 1, 512, 128),
    "decode_4096": qkv(1, 32, 8, 1, 4096, 128),
    "prefill_512": qkv(1, 16, 8, 512, 512, 128),
    "prefill_4096": qkv(1, 16, 8, 4096, 4096, 128),
}.items():
    case(
        f"bench_{name}",
        arrays(*qkv(1, 2, 1, 1, 3, 64)),
        fused,
        attention,
        ("float16", "bfloat16"),
        bench=arrays(*shapes),
        flops=flops,
    )
