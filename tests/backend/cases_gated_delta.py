"""The gated delta rule: heads, gates, states, steps, strides."""

import numpy as np

from cases import Case, Raw, normal
from mlx_vulkan.selftest.oracles import gated_delta

# Sums of 128 products, carried on from step to step.
CLOSE = dict(
    rtol={"float32": 1e-4, "float16": 4e-3, "bfloat16": 2e-2},
    atol={"float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1},
)
FEW = ("contiguous", "swapped", "rows_padded", "offset", "negative")


def case(name, B, T, Hk, Hv, Dk, Dv, gates=False, layouts=FEW, bench=None):
    def inputs(B, T, Hk, Hv, Dk, Dv):
        def make(rng, dtype):
            k = rng.normal(size=(B, T, Hk, Dk))
            k /= np.linalg.norm(k, axis=-1, keepdims=True) + 1e-6
            return [
                normal(rng, (B, T, Hk, Dk), dtype),
                k,
                normal(rng, (B, T, Hv, Dv), dtype),
                rng.uniform(0.3, 1, (B, T, Hv, Dk) if gates else (B, T, Hv)),
                rng.uniform(0, 1, (B, T, Hv)),
                Raw(rng.normal(size=(B, Hv, Dv, Dk)).astype(np.float32), True),
            ]

        return make

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
]
