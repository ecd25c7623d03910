"""Hadamard transforms: powers of two in one tile and in several, times 12, 20
and 28."""

import numpy as np

from . import CPU, Case, arrays
from .oracles import butterflies

CLOSE = dict(
    rtol={"float32": 1e-5, "float16": 4e-3, "bfloat16": 2e-2},
    atol={"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2},
)
FEW = ("contiguous", "rows_padded", "offset")


def transform(mx, x):
    return mx.hadamard_transform(x)


CASES = [
    Case(
        f"hadamard_{rows}x{n}",
        arrays((rows, n)),
        transform,
        butterflies,
        layouts=None if n == 64 else FEW,
        tags=("hadamard",),
        bench=arrays((64, 4096)) if n == 4096 else None,
        **CLOSE,
    )
    for rows, n in [(3, 2), (5, 64), (33, 1024), (2, 4096), (3, 8192), (1, 1 << 20)]
]
# The matrices of 12, 20 and 28 are MLX's own. Its CPU rounds between the steps.
CASES += [
    Case(
        f"hadamard_{rows}x{n}",
        arrays((rows, n)),
        transform,
        CPU,
        dtypes=("float32",),
        layouts=FEW,
        tags=("hadamard",),
        **CLOSE,
    )
    for rows, n in [(3, 12), (2, 20 * 16), (2, 28 * 128), (3, 12 * 512), (1, 28 * 8192)]
]
CASES += [
    Case(
        "hadamard_scale",
        arrays((2, 3, 128)),
        lambda mx, x: mx.hadamard_transform(x, scale=2.0),
        lambda x: butterflies(x) * 2.0 * np.sqrt(128),
        rtol=CLOSE["rtol"],
        atol={"float32": 1e-4, "float16": 1e-1, "bfloat16": 5e-1},
        layouts=FEW,
        tags=("hadamard",),
    ),
]
