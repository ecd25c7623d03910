"""The gated delta rule: heads, gates, states, steps, strides."""

import numpy as np

from . import Case, Raw, normal
from .oracles import gated_delta, gated_delta_vjp

# Sums of 128 products, carried on from step to step.
CLOSE = dict(
    rtol={"float32": 1e-4, "float16": 4e-3, "bfloat16": 2e-2},
    atol={"float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1},
)
FEW = ("contiguous", "swapped", "rows_padded", "offset", "negative")


def operands(gates, cotangents=False):
    def inputs(B, T, Hk, Hv, Dk, Dv):
        def make(rng, dtype):
            k = rng.normal(size=(B, T, Hk, Dk))
            k /= np.linalg.norm(k, axis=-1, keepdims=True) + 1e-6
            last = [normal(rng, (B, T, Hv, Dv), dtype)]
            last.append(Raw(rng.normal(size=(B, Hv, Dv, Dk)).astype(np.float32), True))
            return [
                normal(rng, (B, T, Hk, Dk), dtype),
                k,
                normal(rng, (B, T, Hv, Dv), dtype),
                rng.uniform(0.3, 1, (B, T, Hv, Dk) if gates else (B, T, Hv)),
                rng.uniform(0, 1, (B, T, Hv)),
                Raw(rng.normal(size=(B, Hv, Dv, Dk)).astype(np.float32), True),
                *(last if cotangents else []),
            ]

        return make

    return inputs


def case(name, B, T, Hk, Hv, Dk, Dv, gates=False, layouts=FEW, bench=None):
    inputs = operands(gates)
    return Case(
        name,
        inputs(B, T, Hk, Hv, Dk, Dv),
        lambda mx, q, k, v, g, b, s: mx.fast.gated_delta_update(
            q, k, v, g, b, initial_state=s
        ),
        gated_delta,
        layouts=layouts,
        bench=bench and inputs(*bench),
        tags=("gated_delta",),
        **CLOSE,
    )


def backward(mx, q, k, v, g, b, s, cotan, last):
    def update(*primals):
        return mx.fast.gated_delta_update(*primals[:5], initial_state=primals[5])

    return tuple(mx.vjp(update, [q, k, v, g, b, s], [cotan, last])[1])


# Each gradient is a sum over rows, or a carried state, of the operands above.
def vjp_case(name, B, T, Hk, Hv, Dk, Dv, gates=False, bench=None):
    inputs = operands(gates, cotangents=True)
    return Case(
        name,
        inputs(B, T, Hk, Hv, Dk, Dv),
        backward,
        gated_delta_vjp,
        layouts=("contiguous", "swapped", "offset", "negative"),
        bench=bench and inputs(*bench),
        tags=("gated_delta", "vjp"),
        rtol={"float32": 1e-4, "float16": 4e-3, "bfloat16": 2e-2},
        atol={"float32": 3e-4, "float16": 5e-2, "bfloat16": 2e-1},
    )


CASES = [
    case(
        "gated_delta_decode",
        *(2, 1, 2, 4, 128, 128),
        layouts=None,
        bench=(1, 1, 16, 32, 128, 128),
    ),
    case(
        "gated_delta_prefill",
        *(2, 19, 1, 2, 128, 33),
        bench=(1, 512, 16, 32, 128, 128),
    ),
    case("gated_delta_gates", 1, 9, 2, 2, 64, 16, gates=True),
    case("gated_delta_wide", 1, 3, 1, 3, 256, 5),
    case("gated_delta_no_steps", 2, 0, 1, 2, 32, 4, layouts=("contiguous",)),
    # Chunks of 8 steps, the last of them of one.
    vjp_case(
        "gated_delta_vjp",
        *(2, 17, 1, 2, 128, 19),
        bench=(1, 512, 16, 32, 128, 128),
    ),
    vjp_case("gated_delta_vjp_gates", 1, 5, 2, 2, 96, 8, gates=True),
    vjp_case("gated_delta_vjp_one", 1, 1, 1, 3, 32, 4),
    vjp_case("gated_delta_vjp_no_steps", 2, 0, 1, 2, 32, 4),
]
