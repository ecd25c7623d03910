"""Matrix products: tiled, thin, batched, gathered, with and without a sum."""

import numpy as np

from cases import COMPLEX, FLOATS, Case, Raw, arrays, normal

# A sum of k products of unit variance; its error grows with sqrt(k).
CLOSE = dict(
    rtol={"float32": 2e-5, "float16": 4e-3, "bfloat16": 2e-2, "complex64": 4e-5},
    atol={"float32": 5e-5, "float16": 2e-2, "bfloat16": 1.5e-1, "complex64": 1e-4},
)
LONG = dict(CLOSE, atol={**CLOSE["atol"], "float32": 1e-3})
FEW = ("contiguous", "swapped", "rows_padded", "offset")


def matmul(mx, a, b):
    return a @ b


def flops(a, b):
    return 2 * int(np.prod(a)) * b[-1]


CASES = []

# Tile edges, thin shapes, and nothing to sum over. All layouts where the
# strides matter most: a row vector, a column, and a product of tiles.
SHAPES = {
    (1, 1, 1): FEW,
    (1, 33, 64): None,
    (40, 2, 16): None,
    (33, 34, 35): None,
    (3, 130, 129): FEW,
    (8, 65, 40): FEW,
    (31, 31, 17): FEW,
    (64, 64, 64): FEW,
    (65, 63, 65): FEW,
    (5, 4, 0): ("contiguous",),
    (1, 1, 3000): ("contiguous", "offset"),
    (17, 16, 4100): ("contiguous",),
}
for (m, n, k), layouts in SHAPES.items():
    dtypes = FLOATS + COMPLEX if layouts is None else ("float32", "float16")
    CASES.append(
        Case(
            f"matmul_{m}x{n}x{k}",
            arrays((m, k), (k, n)),
            matmul,
            np.matmul,
            dtypes,
            layouts=layouts,
            tags=("matmul",),
            **(LONG if k > 1000 else CLOSE),
        )
    )

BATCHES = [((3,), (3,)), ((2, 1), (1, 3)), ((3,), ()), ((2, 3, 2), (3, 1))]
for ba, bb in BATCHES:
    for m, n, k in [(1, 9, 20), (5, 6, 7)]:
        CASES.append(
            Case(
                f"matmul_batched_{ba}_{bb}_{m}",
                arrays((*ba, m, k), (*bb, k, n)),
                matmul,
                np.matmul,
                ("float32",),
                layouts=FEW + ("broadcast",),
                tags=("matmul",),
                **CLOSE,
            )
        )

for m, n, k in [(1, 33, 64), (33, 34, 35), (5, 6, 0)]:
    for c in [(m, n), (n,), (m, 1)]:
        CASES.append(
            Case(
                f"addmm_{m}x{n}x{k}_{c}",
                arrays((m, k), (k, n), c),
                lambda mx, a, b, c: mx.addmm(c, a, b, 0.5, 2.0),
                lambda a, b, c: 0.5 * (a @ b) + 2.0 * c,
                ("float32", "bfloat16"),
                layouts=FEW,
                tags=("addmm",),
                **CLOSE,
            )
        )


def gathered(rng, dtype):
    lhs = rng.integers(0, 4, (5, 2)).astype(np.uint32)
    rhs = rng.integers(0, 3, (5, 2)).astype(np.uint32)
    a = normal(rng, (4, 6, 17), dtype)
    b = normal(rng, (3, 17, 9), dtype)
    return [a, b, Raw(lhs), Raw(rhs)]


def gathered_rows(rng, dtype):
    rhs = np.sort(rng.integers(0, 3, (20,))).astype(np.uint32)
    return [normal(rng, (20, 1, 32), dtype), normal(rng, (3, 32, 40), dtype), Raw(rhs)]


CASES += [
    Case(
        "gather_mm",
        gathered,
        lambda mx, a, b, lhs, rhs: mx.gather_mm(a, b, lhs, rhs),
        lambda a, b, lhs, rhs: a[lhs] @ b[rhs],
        layouts=FEW,
        tags=("gather_mm",),
        **CLOSE,
    ),
    Case(
        "gather_mm_sorted",
        gathered_rows,
        lambda mx, a, b, rhs: mx.gather_mm(a, b, None, rhs, sorted_indices=True),
        lambda a, b, rhs: a @ b[rhs],
        layouts=FEW,
        tags=("gather_mm",),
        **CLOSE,
    ),
    # Sums beyond the largest half on the way, but not at the end.
    Case(
        "matmul_half_range",
        arrays(
            (4, 2000),
            (2000, 40),
            gen=[
                lambda rng, s, d: (
                    np.where(np.arange(s[1]) % 2, -40.0, 40.0) * np.ones(s)
                ),
                lambda rng, s, d: np.full(s, 60.0),
            ],
        ),
        matmul,
        np.matmul,
        ("float16",),
        layouts=("contiguous",),
        exact=True,
        tags=("matmul",),
    ),
]

for name, a, b in [
    ("square", (1024, 1024), (1024, 1024)),
    ("row", (1, 4096), (4096, 4096)),
    ("few_rows", (8, 4096), (4096, 4096)),
]:
    CASES.append(
        Case(
            f"matmul_bench_{name}",
            arrays((2, 3), (3, 2)),
            matmul,
            np.matmul,
            FLOATS,
            layouts=("contiguous",),
            bench=arrays(a, b),
            flops=flops,
            tags=("matmul",),
            **CLOSE,
        )
    )
