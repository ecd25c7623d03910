"""Attention's backward pass: dq, dk and dv, fused where nothing else may want
a gradient (no mask array, no sinks), decomposed elsewhere."""

import numpy as np

from . import FLOATS, Case, Raw, arrays, normal
from .attention import HIDDEN
from .oracles import qkv

TOLERANCE = dict(
    rtol={"float32": 1e-4, "float16": 5e-3, "bfloat16": 3e-2},
    atol={"float32": 5e-5, "float16": 1e-2, "bfloat16": 8e-2},
)
FEW = ("contiguous", "swapped", "offset")


def gradients(q, k, v, cotan, mask=None, sinks=None):
    scale = q.shape[-1] ** -0.5
    kv_heads, groups = k.shape[1], q.shape[1] // k.shape[1]
    many_k, many_v = np.repeat(k, groups, 1), np.repeat(v, groups, 1)
    s = q @ np.swapaxes(many_k, -1, -2) * scale
    seen = np.ones(s.shape, bool)
    if isinstance(mask, str):
        rows = np.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2]
        seen = np.broadcast_to(rows >= np.arange(k.shape[2]), s.shape)
    elif mask is not None and mask.dtype == bool:
        seen = np.broadcast_to(mask, s.shape)
    elif mask is not None:
        s = s + mask
    s = np.where(seen, s, HIDDEN)
    column = np.full((*s.shape[:3], 1), -np.inf)
    if sinks is not None:
        column = np.broadcast_to(sinks[:, None, None], column.shape)
    s = np.concatenate([column, s], -1)
    p = np.exp(s - s.max(-1, keepdims=True))
    p = (p / p.sum(-1, keepdims=True))[..., 1:]
    dp = cotan @ np.swapaxes(many_v, -1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * scale
    ds = np.where(seen, ds, 0)

    def of_group(x):
        return x.reshape(x.shape[0], kv_heads, groups, *x.shape[2:]).sum(2)

    dk = of_group(np.swapaxes(ds, -1, -2) @ q)
    dv = of_group(np.swapaxes(p, -1, -2) @ cotan)
    return ds @ many_k, dk, dv


def backward(mx, q, k, v, cotan, mask=None, sinks=None, force=False):
    def attend(q, k, v):
        return mx.fast.scaled_dot_product_attention(
            q,
            k,
            v,
            scale=q.shape[-1] ** -0.5,
            mask=mask,
            sinks=sinks,
            force_fused=force,
        )

    return tuple(mx.vjp(attend, [q, k, v], [cotan])[1])


def forced(mx, *args):
    return backward(mx, *args, force=True)


def shapes_of(b, heads, kv_heads, queries, keys, dim, value_dim=None):
    shapes = qkv(b, heads, kv_heads, queries, keys, dim, value_dim)
    return (*shapes, (b, heads, queries, value_dim or dim))


CASES = []


def case(name, inputs, fn, oracle, dtypes=("float32",), layouts=("contiguous",)):
    CASES.append(
        Case(
            f"sdpa_vjp_{name}",
            inputs,
            fn,
            oracle,
            dtypes,
            layouts=layouts,
            donate="transposed" in name,
            tags=("sdpa", "vjp"),
            **TOLERANCE,
        )
    )


# Few and many queries, more keys than queries and the other way around, tile
# edges, groups of heads, head dimensions that differ.
for shape in [
    (2, 4, 2, 5, 9, 32),
    (1, 6, 2, 33, 70, 24, 40),
    (2, 2, 2, 40, 33, 32),
    (1, 4, 1, 65, 129, 32),
    (1, 3, 3, 1, 1, 1, 3),
]:
    name = "x".join(map(str, shape))
    case(name, arrays(*shapes_of(*shape)), backward, gradients, layouts=FEW)
    case(
        f"causal_{name}",
        arrays(*shapes_of(*shape)),
        lambda mx, *a: backward(mx, *a, "causal"),
        lambda *a: gradients(*a, "causal"),
        FLOATS if shape[3] == 33 else ("float32",),
    )

# Head dimensions that matrix units take, in halves: whole and broken tiles of them.
for mask, shape, dtypes in [
    ("causal", (1, 4, 2, 70, 101, 128), ("float16", "bfloat16")),
    (None, (1, 2, 2, 129, 65, 64), ("float16",)),
    ("causal", (2, 2, 1, 49, 33, 80), ("bfloat16",)),
]:
    case(
        f"halves_{shape[-1]}",
        arrays(*shapes_of(*shape)),
        lambda mx, *a, mask=mask: backward(mx, *a, mask),
        lambda *a, mask=mask: gradients(*a, mask),
        dtypes,
    )

# As models have them: (batch, length, heads, dim), seen transposed.
for groups in (1, 2):
    b, heads, queries, keys, dim = 2, 4, 19, 35, 32
    case(
        f"transposed_{groups}",
        arrays(
            (b, queries, heads, dim),
            (b, keys, heads // groups, dim),
            (b, keys, heads // groups, dim),
            (b, queries, heads, dim),
        ),
        lambda mx, *a: backward(mx, *(x.swapaxes(1, 2) for x in a), "causal"),
        lambda *a: gradients(*(x.swapaxes(1, 2) for x in a), "causal"),
        FLOATS,
    )

# A cotangent without strides, as sum() has it.
case(
    "ones",
    arrays(*shapes_of(1, 4, 2, 17, 21, 32)[:3]),
    lambda mx, q, k, v: backward(mx, q, k, v, mx.ones((1, 1, 1, 1)) + 0 * q),
    lambda q, k, v: gradients(q, k, v, np.ones(q.shape)),
)

# Masks and sinks, decomposed by default and fused on demand.
SHAPES = shapes_of(2, 4, 2, 13, 37, 32)


def masked(rng, dtype):
    m = rng.random((2, 4, 13, 37)) < 0.5
    m[0, 1, 3] = False
    return [*(normal(rng, s, dtype) for s in SHAPES), Raw(m)]


def shared_mask(rng, dtype):
    m = rng.random((13, 37)) < 0.5
    return [*(normal(rng, s, dtype) for s in SHAPES), Raw(m)]


for name, inputs in {
    "bool": masked,
    "shared": shared_mask,
    "added": arrays(*SHAPES, (2, 1, 13, 37)),
}.items():
    case(name, inputs, backward, gradients)
    halves = ("bfloat16",) if name == "bool" else ()
    case(f"fused_{name}", inputs, forced, gradients, ("float32", *halves))
case(
    "sinks",
    arrays(*SHAPES, (4,)),
    lambda mx, q, k, v, c, s: backward(mx, q, k, v, c, "causal", s),
    lambda q, k, v, c, s: gradients(q, k, v, c, "causal", s),
)
case(
    "fused_sinks",
    arrays(*SHAPES, (4,)),
    lambda mx, q, k, v, c, s: forced(mx, q, k, v, c, "causal", s),
    lambda q, k, v, c, s: gradients(q, k, v, c, "causal", s),
)
