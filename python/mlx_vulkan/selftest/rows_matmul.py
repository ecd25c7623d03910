"""Matrix products: plain, with a sum, gathered, segmented, masked."""

import numpy as np

from .row import ONE, Bound, Fixed, Row
from .values import COMPLEX, FLOATS, arrays, normal

MATRIX = ("contiguous", "transposed", "sliced", "offset", "negative", "donated")


def product(k, scale=1.0):
    """k products of variance one (times scale), operands in the storage dtype."""
    return Bound(ulps=4, terms=scale * k, size=scale * max(k, 1) ** 0.5)


def dot(mx, a, b):
    return a @ b


# Thin shapes (gemv), tile edges, several tiles, and sums long enough to be split
# over workgroups.
SHAPES = [
    (1, 33, 64), (40, 1, 65), (1, 1025, 515), (8, 65, 40), (33, 34, 35),
    (65, 63, 65), (130, 129, 131), (17, 16, 9000), (1, 3, 9000), (5, 4, 0),
]  # fmt: skip
matmul = [
    Row(
        f"{m}x{n}x{k}",
        arrays((m, k), (k, n)),
        dot,
        FLOATS + COMPLEX if k < 100 else FLOATS,
        product(k),
        layouts=MATRIX,
        want=np.matmul,
    )
    for m, n, k in SHAPES
]
matmul += [
    Row(
        f"transposed_{m}x{n}x{k}",
        arrays((m, k), (n, k)),
        lambda mx, a, b: a @ b.T,
        bound=product(k),
        want=lambda a, b: a @ b.T,
        layouts=MATRIX,
    )
    for m, n, k in [(1, 515, 1025), (9, 70, 64), (130, 129, 131)]
]
matmul += [
    Row(
        f"batched_{name}_{m}",
        arrays((*ba, m, k), (*bb, k, n)),
        dot,
        bound=product(k),
        want=np.matmul,
    )
    for name, ba, bb in [("both", (3,), (3,)), ("left", (3,), ()),
                         ("mixed", (2, 3, 2), (3, 1))]
    for m, n, k in [(1, 9, 20), (35, 40, 70)]
]  # fmt: skip
matmul += [
    Row(
        f"big_{m}x{n}x{k}",
        arrays((m, k), (k, n)),
        dot,
        bound=product(k),
        want=np.matmul,
        layouts=ONE,
        big=True,
    )
    for m, n, k in [(1025, 1030, 517), (1, 4097, 4096), (128, 128, 20000)]
]

addmm = [
    Row(
        f"{m}x{n}x{k}_{'x'.join(map(str, c))}",
        arrays((m, k), (k, n), c),
        lambda mx, a, b, c: mx.addmm(c, a, b, 0.5, 2.0),
        bound=product(k, 2.0),
        want=lambda a, b, c: 0.5 * (a @ b) + 2.0 * c,
        layouts=MATRIX,
    )
    for m, n, k in [(1, 33, 64), (67, 70, 65)]
    for c in [(m, n), (n,), (m, 1)]
]


def gathered(rng, dtype):
    lhs, rhs = (rng.integers(0, n, (5, 2)).astype(np.uint32) for n in (4, 3))
    shapes = ((4, 6, 17), (3, 17, 9))
    return [*(normal(rng, s, dtype) for s in shapes), Fixed(lhs), Fixed(rhs)]


def gathered_rows(rng, dtype):
    rhs = np.sort(rng.integers(0, 3, 70)).astype(np.uint32)
    shapes = ((70, 1, 65), (3, 65, 40))
    return [*(normal(rng, s, dtype) for s in shapes), Fixed(rhs)]


gather_mm = [
    Row(
        "any",
        gathered,
        lambda mx, a, b, i, j: mx.gather_mm(a, b, i, j),
        bound=product(17),
        want=lambda a, b, i, j: a[i] @ b[j],
    ),
    Row(
        "sorted",
        gathered_rows,
        lambda mx, a, b, j: mx.gather_mm(a, b, None, j, sorted_indices=True),
        bound=product(65),
        want=lambda a, b, j: a @ b[j],
    ),
]


def segments(parts):
    return lambda rng, dtype: [
        normal(rng, (33, 100), dtype),
        normal(rng, (100, 70), dtype),
        Fixed(np.array(parts, np.uint32)),
    ]


segmented_mm = [
    Row(
        name,
        segments(parts),
        lambda mx, a, b, s: mx.segmented_mm(a, b, s),
        bound=product(100),
        want=lambda a, b, s: np.stack([a[:, i:j] @ b[i:j] for i, j in s]),
    )
    for name, parts in [
        ("parts", [[0, 17], [17, 64], [64, 100]]),
        ("overlap", [[0, 100], [99, 100], [30, 30], [7, 90]]),
    ]
]


def blocks(m, n, k, block, kind):
    def make(rng, dtype):
        found = [normal(rng, (m, k), dtype), normal(rng, (k, n), dtype)]
        for rows, columns in ((m, n), (m, k), (k, n)):
            x = rng.integers(0, 3, (-(-rows // block), -(-columns // block)))
            found.append(Fixed(x > 0) if kind == "bool" else x.astype(float))
        return found

    def want(a, b, *masks):
        def spread(mask, like):
            mask = np.repeat(np.repeat(mask, block, 0), block, 1)
            return mask[: like.shape[0], : like.shape[1]]

        y = (a * spread(masks[1], a)) @ (b * spread(masks[2], b))
        return y * spread(masks[0], y)

    return dict(
        make=make,
        fn=lambda mx, a, b, *masks: mx.block_masked_mm(a, b, block, *masks),
        want=want,
        # Factors of up to 2 on each side and on the result.
        bound=product(k, 8.0),
    )


block_masked_mm = [
    Row(f"{m}x{n}x{k}_{kind}", layouts=MATRIX, **blocks(m, n, k, block, kind))
    for block, m, n, k in [(32, 40, 35, 70), (64, 65, 130, 129), (32, 1, 33, 64)]
    for kind in ("bool", "factors")
]


FAMILIES = {
    "matmul": matmul,
    "addmm": addmm,
    "gather_mm": gather_mm,
    "segmented_mm": segmented_mm,
    "block_masked_mm": block_masked_mm,
}
