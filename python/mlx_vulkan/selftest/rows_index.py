"""Gathers, scatters, masks, slice updates, sorts."""

import numpy as np

from .oracles import np_argsort, np_masked, np_sort, update
from .row import Fixed, Row
from .values import ALL, COMPLEX, FLOATS, INTS, arrays, normal, special, whole

REALS = FLOATS + INTS
# 64-bit atomics and complex ones are not MLX's on a GPU either.
NARROW = (*FLOATS, "int8", "int16", "int32", "uint8", "uint16", "uint32", "bool")
OPERATIONS = ("set", "add", "multiply", "maximum", "minimum")


SPOT = (slice(1, 7, 2), slice(None), slice(5, 1, -3))
slice_update = [
    Row(
        op,
        arrays((9, 8, 7), (3, 8, 2), gen=whole),
        update(op, SPOT),
        REALS + (() if op in ("maximum", "minimum") else COMPLEX),
    )
    for op in OPERATIONS
]
slice_update += [
    Row(
        "cache",
        arrays((2, 4, 300, 64), (2, 4, 1, 64)),
        update("set", (slice(None), slice(None), slice(257, 258))),
    ),
    Row(
        "dynamic",
        lambda rng, dtype: [
            normal(rng, (9, 12), dtype),
            normal(rng, (3, 4), dtype),
            Fixed(np.array([2, 5], np.int32)),
        ],
        lambda mx, x, u, i: [
            mx.slice_update(x, u, i, axes=(0, 1)),
            mx.slice(x, i, axes=(0, 1), slice_size=(3, 4)),
        ],
        ALL,
    ),
]


def indexed(shape, *specs, gen=normal):
    """An array and index arrays: (shape, size of the axis, dtype)."""

    def make(rng, dtype):
        found = [gen(rng, shape, dtype)]
        for s, n, d in specs:
            low = 0 if d.startswith("u") else -n
            found.append(Fixed(rng.integers(low, n, s).astype(d)))
        return found

    return make


gather = [
    Row(
        "embedding",
        indexed((50, 64), ((3, 7), 50, "uint32")),
        lambda mx, x, i: x[i],
        ALL,
    ),
    Row(
        "odd_width",
        indexed((50, 13), ((40,), 50, "int64")),
        lambda mx, x, i: x[i],
        ALL,
    ),
    Row("vocabulary", indexed((50257, 8), ((512,), 50257, "int32")),
        lambda mx, x, i: x[i]),
    Row(
        "two",
        indexed((6, 5, 37), ((4, 1), 6, "int32"), ((1, 3), 37, "int8")),
        lambda mx, x, i, j: [x[i, :, j], x[i, 1:4, j]],
        ALL,
    ),
    *[
        Row(
            f"take_{axis}",
            indexed((6, 5, 37), ((2, 4), (6, 5, 37)[axis], "int32")),
            lambda mx, x, i, axis=axis: mx.take(x, i, axis=axis),
            ALL,
        )
        for axis in (0, 1, 2)
    ],
    *[
        Row(
            f"along_axis_{axis}",
            indexed((6, 5, 37), ((6, 5, 37), (6, 5, 37)[axis], "int32")),
            lambda mx, x, i, axis=axis: mx.take_along_axis(x, i, axis=axis),
            ALL,
        )
        for axis in (0, 1, 2)
    ],
]  # fmt: skip


def scattered(rows, repeat=False, gen=whole):
    def make(rng, dtype):
        if repeat:
            i = rng.integers(-23, 23, rows)
        else:
            i = rng.permutation(max(rows * 2, 23))[:rows]
        size = 23 if repeat else max(rows * 2, 23)
        shapes = ((size, 6, 16), (rows, 6, 16))
        return [*(gen(rng, s, dtype) for s in shapes), Fixed(i.astype(np.int32))]

    return make


def np_scatter(op):
    ufunc = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum}[op]

    def want(x, u, i):
        x = x.copy()
        for k, v in zip(i, u):
            x[k] = ufunc(x[k], v)
        return x

    return want


def by_index(i):
    return i


scatter = [
    Row(op, scattered(9), update(op, by_index), NARROW, want="same")
    for op in OPERATIONS
]
scatter += [
    Row("set_many", scattered(3001), update("set", by_index), want="same"),
    # Whole numbers, so that the order of the sums does not matter.
    *[
        Row(f"{op}_repeated", scattered(60, repeat=True), update(op, by_index),
            ("float32", "float16", "int32", "int8"), want=np_scatter(op))
        for op in ("add", "maximum", "minimum")
    ],
    Row(
        "maximum_special",
        scattered(60, repeat=True, gen=special),
        update("maximum", by_index),
        want=np_scatter("maximum"),
        # Which zero wins, +0 or -0, depends on the order.
        repeatable=False,
    ),
    Row(
        "put_along_axis",
        lambda rng, dtype: [
            normal(rng, (6, 15, 37), dtype),
            normal(rng, (6, 3, 37), dtype),
            Fixed(np.argsort(rng.random((6, 15, 37)), axis=1)[:, :3].astype(np.int32)),
        ],
        lambda mx, x, u, i: mx.put_along_axis(x, i, u, axis=1),
        ALL,
    ),
    Row(
        "add_along_axis",
        indexed((6, 15, 37), ((6, 15, 37), 15, "int32"), gen=whole),
        lambda mx, x, i: mx.zeros_like(x).at[mx.arange(6)[:, None, None], i,
            mx.arange(37)].add(x),
        ("float32", "int32"),
    ),
]  # fmt: skip


def masks(shape, dims, density):
    def make(rng, dtype):
        mask = rng.random(shape[:dims]) < density
        updates = normal(rng, (int(mask.sum()), *shape[dims:]), dtype)
        return [normal(rng, shape, dtype), updates, Fixed(mask)]

    return make


masked_scatter = [
    Row(
        f"{'x'.join(map(str, shape))}_{dims}",
        masks(shape, dims, density),
        update("set", by_index),
        ALL,
        want=np_masked,
        layouts=("contiguous", "transposed", "negative", "offset", "stepped"),
    )
    for shape, dims, density in [
        ((70001,), 1, 0.4),
        ((30, 70), 2, 0.4),
        ((30, 70), 1, 0.4),
        ((40, 3), 1, 0.0),
    ]
]


# One tile is 1,024 positions or 2,048 keys; what is longer is merged.
sort = []
for n in (1, 33, 700, 1025, 2049, 4097, 20011):
    sort += [
        Row(
            f"sort_{n}",
            arrays((3, n)),
            lambda mx, x: mx.sort(x, axis=1),
            ALL if n in (700, 4097) else ("float32", "int32", "bfloat16"),
            want=lambda x: np_sort(x, 1),
        ),
        Row(
            f"argsort_{n}",
            arrays((3, n), gen=whole),
            lambda mx, x: mx.argsort(x, axis=1),
            ALL if n in (700, 4097) else ("float32", "int32", "float16"),
            want=lambda x: np_argsort(x, 1),
        ),
    ]
for axis in (0, 1, None):
    tag = "flat" if axis is None else axis
    sort.append(
        Row(
            f"special_{tag}",
            arrays((40, 7, 5), gen=special),
            lambda mx, x, a=axis: [mx.sort(x, axis=a), mx.argsort(x, axis=a)],
            want=lambda x, a=axis: [np_sort(x, a), np_argsort(x, a)],
        )
    )


sort += [
    Row(
        "special_9001",
        arrays((2, 9001), gen=special),
        lambda mx, x: [mx.sort(x, axis=1), mx.argsort(x, axis=1)],
        want=lambda x: [np_sort(x, 1), np_argsort(x, 1)],
    ),
    Row(
        "sort_half_million",
        arrays((524287,)),
        lambda mx, x: [mx.sort(x), mx.argsort(x)],
        want=lambda x: [np_sort(x, 0), np_argsort(x, 0)],
        big=True,
    ),
    Row(
        "topk_vocabulary",
        arrays((2, 50021)),
        lambda mx, x: mx.sort(mx.topk(x, 50, axis=-1), axis=-1),
        want=lambda x: np.sort(x, -1)[:, -50:],
    ),
    Row(
        "argpartition_experts",
        arrays((9, 60)),
        lambda mx, x: mx.sort(
            mx.take_along_axis(x, mx.argpartition(x, -8, axis=-1)[:, -8:], -1), -1
        ),
        want=lambda x: np.sort(x, -1)[:, -8:],
    ),
    Row(
        "partition_3001",
        arrays((2, 3001)),
        lambda mx, x: mx.sort(mx.partition(x, 100, axis=-1)[:, :100], -1),
        want=lambda x: np.sort(x, -1)[:, :100],
    ),
]
searchsorted = [
    Row(
        side,
        lambda rng, dtype: [
            np.sort(whole(rng, (101,), dtype)),
            whole(rng, (7, 50), dtype),
        ],
        lambda mx, a, v, side=side: mx.searchsorted(a, v, side),
        REALS,
        want=lambda a, v, side=side: np.searchsorted(a, v, side).astype(np.uint32),
    )
    for side in ("left", "right")
]

FAMILIES = {
    "slice_update": slice_update,
    "gather": gather,
    "scatter": scatter,
    "masked_scatter": masked_scatter,
    "sort": sort,
    "searchsorted": searchsorted,
}
