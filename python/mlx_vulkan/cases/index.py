"""Slice updates, gathers, scatters, masks, searchsorted."""

import numpy as np

from . import (
    ALL,
    BOOL,
    COMPLEX,
    FLOATS,
    INTS,
    NUMBERS,
    REALS,
    UNSIGNED,
    Case,
    Raw,
    arrays,
    normal,
    special,
)
from .oracles import np_argsort, np_masked, np_sort, update

CASES = []
SHAPE = (6, 5, 37)


FAMILIES = ("slice_update", "scatter", "masked_scatter", "searchsorted", "sort")


def case(name, inputs, fn, oracle, dtypes=ALL, exact=True, **more):
    family = next((f for f in FAMILIES if name.startswith(f)), "gather")
    more.setdefault("tags", (family,))
    CASES.append(Case(name, inputs, fn, oracle, dtypes, exact=exact, **more))


def small(rng, shape, dtype):
    """Whole numbers from 0 to 99: sums of a few are exact in every dtype."""
    if dtype in COMPLEX:
        return rng.integers(0, 100, shape).astype(complex)
    return rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(float)


# Slice updates.
UPDATES = {
    "set": lambda a, b: b,
    "add": lambda a, b: a | b if a.dtype == bool else a + b,
    "multiply": lambda a, b: a & b if a.dtype == bool else a * b,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
SPOT = (slice(1, 7, 2), slice(None), slice(5, 1, -3))


def np_update(op, spot):
    def oracle(x, u):
        x = x.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            x[spot] = UPDATES[op](x[spot], u)
        return x

    return oracle


for op in UPDATES:
    dtypes = REALS + BOOL if op in ("maximum", "minimum") else ALL
    case(
        f"slice_update_{op}",
        arrays((9, 8, 7), (3, 8, 2), gen=small if op == "multiply" else normal),
        update(op, SPOT),
        np_update(op, SPOT),
        dtypes,
    )
case(
    "slice_update_maximum_nan",
    arrays((40,), (20,), gen=special),
    update("maximum", slice(5, 25)),
    np_update("maximum", slice(5, 25)),
    FLOATS,
)
case(
    "slice_update_kv_append",
    arrays((2, 4, 16, 32), (2, 4, 1, 32)),
    update("set", (slice(None), slice(None), slice(9, 10))),
    np_update("set", (slice(None), slice(None), slice(9, 10))),
    FLOATS,
    bench=arrays((1, 8, 4096, 128), (1, 8, 1, 128)),
)
case(
    "slice_update_dynamic_layouts",
    lambda rng, d: [normal(rng, (9, 12), d), Raw(np.array([2, 5], np.int32), True)],
    lambda mx, x, i: mx.slice(x, i, axes=(0, 1), slice_size=(3, 4)),
    lambda x, i: x[2:5, 5:9],
    layouts=("contiguous", "transposed", "negative", "offset"),
)
case(
    "slice_update_dynamic",
    lambda rng, d: [
        normal(rng, (9, 12), d),
        normal(rng, (3, 4), d),
        Raw(np.array([2, 5], np.int64), True),
    ],
    lambda mx, x, u, i: mx.slice_update(x, u, i, axes=(0, 1)),
    lambda x, u, i: np_update("set", (slice(2, 5), slice(5, 9)))(x, u),
    layouts=("contiguous", "transposed", "negative", "offset"),
)


# Gathers. Negative indices wrap.
def with_indices(shape, *specs, gen=normal):
    """An array and Raw indices: specs are (shape, size of the axis, dtype)."""

    def make(rng, dtype):
        out = [gen(rng, shape, dtype)]
        for s, n, d in specs:
            low = 0 if d in UNSIGNED else -n
            out.append(Raw(rng.integers(low, n, s).astype(d), True))
        return out

    return make


for index_dtype in INTS:
    case(
        f"take_rows_{index_dtype}",
        with_indices((23, 16), ((9,), 23, index_dtype)),
        lambda mx, x, i: x[i],
        lambda x, i: x[i],
        ("float32", "bool"),
    )
case(
    "embedding",
    with_indices((50, 64), ((3, 7), 50, "uint32")),
    lambda mx, x, i: x[i],
    lambda x, i: x[i],
    bench=with_indices((32000, 4096), ((4, 512), 32000, "uint32")),
)
case(
    "embedding_odd_width",
    with_indices((50, 13), ((40,), 50, "int32")),
    lambda mx, x, i: x[i],
    lambda x, i: x[i],
)
for axis in (0, 1, 2, None):
    n = 6 * 5 * 37 if axis is None else SHAPE[axis]
    case(
        f"take_axis_{axis}",
        with_indices(SHAPE, ((2, 4), n, "int32")),
        lambda mx, x, i, a=axis: mx.take(x, i, axis=a),
        lambda x, i, a=axis: np.take(x, i, axis=a),
    )
case(
    "gather_adjacent",
    with_indices(SHAPE, ((4, 1), 6, "uint8"), ((4, 3), 5, "uint8")),
    lambda mx, x, i, j: x[i, j],
    lambda x, i, j: x[i, j],
)
case(
    "gather_two",
    with_indices(SHAPE, ((4, 1), 6, "int32"), ((1, 3), 37, "int32")),
    lambda mx, x, i, j: (x[i, :, j], x[i, 1:4, j]),
    lambda x, i, j: (x[i, :, j], x[i, 1:4, j]),
)
case(
    "gather_sliced",
    with_indices((8, 9, 10), ((3, 2), 4, "int32"), ((3, 2), 5, "int32")),
    lambda mx, x, i, j: x[::-2, 1:, 2:7][i, ::3, j],
    lambda x, i, j: x[::-2, 1:, 2:7][i, ::3, j],
)
FIVE = [((4, 3), n, "int32") for n in (2, 3, 4, 5, 6)]
case(
    "gather_five",
    with_indices((2, 3, 4, 5, 6), *FIVE),
    lambda mx, x, *i: x[i],
    lambda x, *i: x[i],
    ("float32", "int8"),
)
for axis in (0, 1, 2):
    shape = list(SHAPE)
    shape[axis] = 4
    case(
        f"take_along_axis_{axis}",
        with_indices(SHAPE, (tuple(shape), SHAPE[axis], "int32")),
        lambda mx, x, i, a=axis: mx.take_along_axis(x, i, axis=a),
        lambda x, i, a=axis: np.take_along_axis(x, i, axis=a),
    )


# Scatters. Places are distinct if the result depends on the order.
def scatter_inputs(index_dtype="int32", repeat=False, gen=normal):
    def make(rng, dtype):
        i = rng.integers(-23, 23, 9) if repeat else rng.permutation(23)[:9]
        return [
            gen(rng, (23, 6, 16), dtype),
            gen(rng, (9, 6, 16), dtype),
            Raw(i.astype(index_dtype), True),
        ]

    return make


def mx_scatter(op):
    return lambda mx, x, u, i: update(op, i)(mx, x, u)


def np_scatter(op):
    def oracle(x, u, i):
        x = x.copy()
        for k, v in zip(i, u):
            with np.errstate(over="ignore"):
                x[k] = UPDATES[op](x[k], v)
        return x

    return oracle


# Without "broadcast", which would repeat the indices.
DISTINCT = ("contiguous", "transposed", "swapped", "stepped", "negative", "offset")
# Products, maxima and minima of 8-byte items are the CPU's.
NARROW = tuple(t for t in REALS + BOOL if t not in ("int64", "uint64"))
for op in UPDATES:
    case(
        f"scatter_{op}",
        scatter_inputs(gen=small if op == "multiply" else normal),
        mx_scatter(op),
        np_scatter(op),
        NUMBERS + BOOL if op in ("set", "add") else NARROW,
        layouts=DISTINCT,
    )
case(
    "scatter_add_repeated",
    scatter_inputs(repeat=True, gen=small),
    mx_scatter("add"),
    np_scatter("add"),
    NUMBERS + BOOL,
    layouts=DISTINCT,
    donate=False,
    repeatable=False,
)
case(
    "scatter_max_repeated_nan",
    scatter_inputs(repeat=True, gen=special),
    mx_scatter("maximum"),
    np_scatter("maximum"),
    FLOATS,
    donate=False,
    repeatable=False,
)
case(
    "scatter_add_two",
    with_indices((7, 5, 9), ((4, 3), 7, "int32"), ((4, 3), 9, "int32"), gen=small),
    lambda mx, x, i, j: x.at[i, :, j].add(x[:4, :3, :5]),
    lambda x, i, j: np_add_at(x, (i, slice(None), j), x[:4, :3, :5]),
    ("float32", "int8", "float16"),
    donate=False,
)
case(
    "scatter_add_five",
    with_indices((2, 3, 4, 5, 6), *FIVE, gen=small),
    lambda mx, x, *i: x.at[i].add(x[0, 0, :, :3, 0]),
    lambda x, *i: np_add_at(x, i, x[0, 0, :, :3, 0]),
    ("float32", "int8"),
    donate=False,
)


def np_add_at(x, spot, u):
    x = x.copy()
    np.add.at(x, spot, u)
    return x


case(
    "scatter_along_axis",
    lambda rng, d: [
        normal(rng, SHAPE, d),
        normal(rng, (6, 3, 37), d),
        Raw(np.argsort(rng.random(SHAPE), axis=1)[:, :3].astype(np.int32), True),
    ],
    lambda mx, x, u, i: mx.put_along_axis(x, i, u, axis=1),
    lambda x, u, i: np_put(x, i, u, 1),
    layouts=DISTINCT,
)


def np_put(x, i, u, axis):
    x = x.copy()
    np.put_along_axis(x, i, u, axis)
    return x


# Masks.
def mask_inputs(shape, dims, density=0.4):
    def make(rng, dtype):
        mask = rng.random(shape[:dims]) < density
        rows = int(mask.sum())
        return [
            normal(rng, shape, dtype),
            normal(rng, (rows, *shape[dims:]), dtype),
            Raw(mask, True),
        ]

    return make


for shape, dims in (((5000,), 1), ((30, 70), 2), ((30, 70), 1), ((1,), 1)):
    case(
        f"masked_scatter_{'x'.join(map(str, shape))}_{dims}",
        mask_inputs(shape, dims),
        lambda mx, x, u, m: update("set", m)(mx, x, u),
        np_masked,
        layouts=("contiguous", "transposed", "negative", "offset", "stepped"),
    )
case(
    "masked_scatter_none",
    mask_inputs((40, 3), 1, density=0.0),
    lambda mx, x, u, m: update("set", m)(mx, x, 7),
    lambda x, u, m: x,
    ("float32", "bool"),
    layouts=("contiguous",),
)


# SearchSorted.
def sorted_inputs(rng, dtype):
    x = normal(rng, (101,), dtype)
    return [np.sort(x), normal(rng, (7, 5), dtype)]


for side in ("left", "right"):
    case(
        f"searchsorted_{side}",
        sorted_inputs,
        lambda mx, a, v, s=side: mx.searchsorted(a, v, s),
        lambda a, v, s=side: np.searchsorted(a, v, s).astype(np.uint32),
        NUMBERS + BOOL,
        layouts=("contiguous", "transposed", "negative", "offset", "stepped"),
    )


# Sorts: stable, NaN last, complex numbers by real then imaginary part.
def few_values(rng, shape, dtype):
    """Values with many ties."""
    if dtype in COMPLEX:
        return rng.integers(0, 4, shape) + 1j * rng.integers(0, 4, shape)
    if dtype == "bool":
        return normal(rng, shape, dtype)
    return rng.integers(0, 20, shape).astype(float)


SORT_LAYOUTS = ("contiguous", "transposed", "negative", "offset")
for n, dtypes in ((1, FLOATS), (33, ALL), (700, FLOATS), (3001, ALL)):
    case(
        f"sort_{n}",
        arrays((3, n), gen=few_values),
        lambda mx, x: (mx.sort(x, axis=1), mx.argsort(x, axis=1)),
        lambda x: (np_sort(x, 1), np_argsort(x, 1)),
        dtypes,
        layouts=SORT_LAYOUTS,
    )
# Rows short enough to be sorted by counting on any device (kernels/sort_ranks.comp).
case(
    "sort_by_ranks",
    arrays((1, 2300), gen=few_values),
    lambda mx, x: (mx.sort(x, axis=1), mx.argsort(x, axis=1)),
    lambda x: (np_sort(x, 1), np_argsort(x, 1)),
    ALL,
    layouts=("contiguous", "offset"),
)
case(
    "sort_nan_by_ranks",
    arrays((1, 2300), gen=special),
    lambda mx, x: (mx.sort(x, axis=1), mx.argsort(x, axis=1)),
    lambda x: (np_sort(x, 1), np_argsort(x, 1)),
    FLOATS,
    layouts=("contiguous",),
)
for axis in (0, 1, None):
    case(
        f"sort_axis_{axis}",
        arrays((40, 7, 5), gen=special),
        lambda mx, x, a=axis: (mx.sort(x, axis=a), mx.argsort(x, axis=a)),
        lambda x, a=axis: (np_sort(x, a), np_argsort(x, a)),
        FLOATS,
        layouts=SORT_LAYOUTS,
    )
case(
    "sort_big",
    arrays((524287,)),
    lambda mx, x: (mx.sort(x), mx.argsort(x)),
    lambda x: (np_sort(x, 0), np_argsort(x, 0)),
    FLOATS,
    layouts=("contiguous",),
    big=True,
    bench=arrays((1 << 22,)),
)
case(
    "sort_topk_vocabulary",
    arrays((2, 50021)),
    lambda mx, x: mx.sort(mx.topk(x, 50, axis=-1), axis=-1),
    lambda x: np.sort(x, -1)[:, -50:],
    layouts=("contiguous",),
    bench=arrays((1, 152064)),
)
case(
    "sort_argpartition_experts",
    arrays((9, 60)),
    lambda mx, x: mx.sort(
        mx.take_along_axis(x, mx.argpartition(x, -8, axis=-1)[:, -8:], -1), -1
    ),
    lambda x: np.sort(x, -1)[:, -8:],
    layouts=("contiguous",),
    bench=arrays((4096, 128)),
)
