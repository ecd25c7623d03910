"""Matrix products: tiled, thin, batched, gathered, with and without a sum."""

import numpy as np

from . import COMPLEX, FLOATS, Case, Raw, arrays, normal

# A sum of k products of unit variance; its error grows with sqrt(k).
CLOSE = dict(
    rtol={"float32": 2e-5, "float16": 4e-3, "bfloat16": 2e-2, "complex64": 4e-5},
    atol={"float32": 5e-5, "float16": 2e-2, "bfloat16": 1.5e-1, "complex64": 1e-4},
)
FEW = ("contiguous", "swapped", "rows_padded", "offset")


def matmul(mx, a, b):
    return a @ b


def close(k):
    """CLOSE, but for long sums of float32. Partial sums of i products are about
    sqrt(i), and each addition rounds by up to 2^-24 of that: the errors of k
    additions in a row have a deviation of 0.2 k 2^-23; 1.5 k is seven times that."""
    single = max(CLOSE["atol"]["float32"], 1.5 * k * 2.0**-23)
    return dict(CLOSE, atol={**CLOSE["atol"], "float32": single})


def by(shape):
    return "x".join(map(str, shape)) or "one"


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
    # More iterations than llvmpipe grants one invocation, unless split.
    (17, 9, 70000): ("contiguous",),
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
            **close(k),
        )
    )

for m, n, k in ((1025, 1030, 517), (1, 4097, 4096), (128, 128, 20000)):
    CASES.append(
        Case(
            f"matmul_big_{m}x{n}x{k}",
            arrays((m, k), (k, n)),
            matmul,
            np.matmul,
            layouts=("contiguous",),
            tags=("matmul",),
            big=True,
            **close(k),
        )
    )

# Rows by a linear layer's weights, with and without a bias.
for m in (1, 9, 16, 17, 33, 64):
    for n, k in ((70, 520), (9, 1096)):
        common = dict(dtypes=("float16", "bfloat16"), tags=("matmul",), **close(k))
        CASES.append(
            Case(
                f"linear_{m}x{n}x{k}",
                arrays((m, k), (n, k)),
                lambda mx, x, w: x @ w.T,
                lambda x, w: x @ w.T,
                layouts=("contiguous", "offset", "rows_padded"),
                **common,
            )
        )
        CASES.append(
            Case(
                f"linear_bias_{m}x{n}x{k}",
                arrays((m, k), (n, k), (n,)),
                lambda mx, x, w, b: mx.addmm(b, x, w.T),
                lambda x, w, b: x @ w.T + b,
                layouts=("contiguous",),
                **common,
            )
        )

BATCHES = [((3,), (3,)), ((2, 1), (1, 3)), ((3,), ()), ((2, 3, 2), (3, 1))]
for ba, bb in BATCHES:
    for m, n, k in [(1, 9, 20), (5, 6, 7)]:
        CASES.append(
            Case(
                f"matmul_batched_{by(ba)}_{by(bb)}_{m}",
                arrays((*ba, m, k), (*bb, k, n)),
                matmul,
                np.matmul,
                ("float32",),
                layouts=FEW + ("broadcast",),
                tags=("matmul",),
                **CLOSE,
            )
        )

# Batches of them.
for m in (1, 33):
    CASES.append(
        Case(
            f"addmm_batched_{m}",
            arrays((3, 2, m, 64), (2, 40, 64), (3, 2, m, 40)),
            lambda mx, a, b, c: mx.addmm(c, a, b.swapaxes(1, 2), 0.5, 2.0),
            lambda a, b, c: 0.5 * (a @ b.swapaxes(1, 2)) + 2.0 * c,
            layouts=FEW,
            tags=("addmm",),
            **close(64),
        )
    )

for m, n, k in [(1, 33, 64), (33, 34, 35), (5, 6, 0)]:
    for c in [(m, n), (n,), (m, 1)]:
        CASES.append(
            Case(
                f"addmm_{m}x{n}x{k}_{by(c)}",
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


# More axes than a kernel takes, most of which collapse.
def gathered_many_axes(rng, dtype):
    lhs = np.array([5, 0, 3], np.uint32)
    rhs = np.array([2, 1, 0], np.uint32)
    a = normal(rng, (2,) + (1,) * 8 + (3, 4, 5), dtype)
    return [a, normal(rng, (3, 5, 2), dtype), Raw(lhs), Raw(rhs)]


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
        "gather_mm_many_axes",
        gathered_many_axes,
        lambda mx, a, b, lhs, rhs: mx.gather_mm(a, b, lhs, rhs),
        lambda a, b, lhs, rhs: a.reshape(6, 4, 5)[lhs] @ b[rhs],
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
    ("square", (4096, 4096), (4096, 4096)),
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


# Blocks of the operands and of the result that are hidden or scaled.


def masked(block, m, n, k, batch=(), kind="bool", masks="abo", gen=normal):
    def make(rng, dtype):
        def tiles(rows, cols):
            shape = (*batch, -(-rows // block), -(-cols // block))
            x = rng.integers(0, 3, shape)
            return Raw(x > 0, True) if kind == "bool" else x.astype(float)

        sizes = {"a": (m, k), "b": (k, n), "o": (m, n)}
        return [
            gen(rng, (*batch, m, k), dtype),
            gen(rng, (*batch, k, n), dtype),
            *[tiles(*sizes[x]) for x in masks],
        ]

    def spread(mask, rows, cols):
        mask = np.repeat(np.repeat(mask, block, -2), block, -1)
        return mask[..., :rows, :cols]

    def fn(mx, a, b, *given):
        by = dict(zip(masks, given))
        return mx.block_masked_mm(a, b, block, by.get("o"), by.get("a"), by.get("b"))

    def oracle(a, b, *given):
        by = dict(zip(masks, given))
        if "a" in by:
            a = a * spread(by["a"], m, k)
        if "b" in by:
            b = b * spread(by["b"], k, n)
        y = a @ b
        return y * spread(by["o"], m, n) if "o" in by else y

    return dict(inputs=make, fn=fn, oracle=oracle)


SIZES = [(32, 40, 35, 70), (64, 65, 130, 129), (32, 1, 33, 64), (64, 70, 1, 3)]
for block, m, n, k in SIZES:
    for kind in ("bool", "factors"):
        CASES.append(
            Case(
                f"block_masked_mm_{m}x{n}x{k}_{kind}",
                **masked(block, m, n, k, kind=kind),
                layouts=FEW,
                tags=("block_masked_mm",),
                **CLOSE,
            )
        )
for masks in ("", "o", "ab", "a", "b"):
    for kind in ("bool", "factors"):
        CASES.append(
            Case(
                f"block_masked_mm_batched_{masks}_{kind}",
                **masked(32, 33, 34, 35, (2, 3), kind, masks),
                dtypes=("float32",),
                layouts=FEW + ("broadcast", "negative"),
                tags=("block_masked_mm",),
                **CLOSE,
            )
        )
CASES.append(
    Case(
        "block_masked_mm_no_k",
        **masked(32, 5, 6, 0, masks="o"),
        dtypes=("float32",),
        layouts=("contiguous",),
        tags=("block_masked_mm",),
    )
)


def segmented(m, n, segments):
    def oracle(a, b, s):
        pieces = [a[:, i:j] @ b[i:j] for i, j in s.reshape(-1, 2)]
        return np.stack(pieces).reshape(*s.shape[:-1], m, n)

    k = 100
    return dict(
        inputs=lambda rng, dtype: [
            normal(rng, (m, k), dtype),
            normal(rng, (k, n), dtype),
            Raw(np.array(segments, np.uint32), True),
        ],
        fn=lambda mx, a, b, s: mx.segmented_mm(a, b, s),
        oracle=oracle,
    )


for name, m, n, segments in [
    ("parts", 33, 70, [[0, 17], [17, 64], [64, 100]]),
    ("overlap", 65, 5, [[0, 100], [99, 100], [30, 30], [7, 90]]),
    ("nested", 1, 9, [[[0, 16], [16, 32]], [[3, 50], [0, 0]]]),
]:
    CASES.append(
        Case(
            f"segmented_mm_{name}",
            **segmented(m, n, segments),
            # Broadcast segments would be other segments.
            layouts=FEW + ("transposed", "negative"),
            tags=("segmented_mm",),
            **CLOSE,
        )
    )
