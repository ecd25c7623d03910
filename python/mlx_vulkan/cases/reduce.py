"""Reductions, argmin and argmax, over every set of axes."""

import itertools

import numpy as np

from . import (
    ALL,
    COMPLEX,
    FLOATS,
    INTS,
    REALS,
    Case,
    arrays,
    normal,
    special,
    uniform,
    wide,
)

CASES = []
SHAPE = (3, 4, 5, 17)
AXES = [axes for r in range(1, 5) for axes in itertools.combinations(range(4), r)] + [
    None
]


def label(axes):
    return "all" if axes is None else "".join(map(str, axes))


def np_sum(x, axis, keepdims=False):
    # MLX keeps the type of int32 and int64 and widens the narrow ones.
    return np.sum(x, axis=axis, keepdims=keepdims, dtype=sum_type(x))


def np_prod(x, axis, keepdims=False):
    return np.prod(x, axis=axis, keepdims=keepdims, dtype=sum_type(x))


def sum_type(x):
    if x.dtype.kind == "b" or x.dtype.name in ("int8", "int16"):
        return np.int32
    return np.uint32 if x.dtype.name in ("uint8", "uint16") else x.dtype


# The error of a sum grows with the terms: half a unit for each, relative to
# the sum of magnitudes, which stays below the absolute tolerance here.
SUM = dict(
    rtol={"float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2, "complex64": 1e-5},
    atol={"float32": 1e-5, "float16": 3e-2, "bfloat16": 0.25, "complex64": 1e-5},
)
EXACT = dict(exact=True)
near_one = uniform(0.8, 1.2)


def products(rng, shape, dtype):
    """Values whose product stays in range."""
    if dtype in COMPLEX:
        # On the unit circle: the product of many 1 + 1i overflows.
        return np.exp(1j * rng.uniform(-np.pi, np.pi, shape))
    if dtype in FLOATS:
        return near_one(rng, shape, dtype)
    if dtype == "bool":
        return rng.random(shape) < 0.95
    return np.where(rng.random(shape) < 0.1, 2, 1).astype(dtype)


def rarely(rng, shape, dtype):
    """Mostly true, or mostly false in the second half."""
    x = np.zeros(shape)
    x.reshape(-1)[::7] = 1
    return (1 - x).astype(bool if dtype == "bool" else np.float64)


OPS = [
    ("sum", np_sum, normal, ALL, SUM),
    ("prod", np_prod, products, ALL, SUM),
    ("max", np.max, wide, ALL, EXACT),
    ("min", np.min, wide, ALL, EXACT),
    ("all", np.all, rarely, ALL, EXACT),
    ("any", np.any, rarely, ALL, EXACT),
    ("mean", np.mean, normal, FLOATS, SUM),
    ("var", np.var, normal, ("float32",), dict(rtol=2e-5, atol=2e-5)),
    ("logsumexp", None, normal, FLOATS, SUM),
]


def np_logsumexp(x, axis, keepdims=False):
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0)
    total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else np.squeeze(total, axis)


for name, oracle, gen, dtypes, how in OPS:
    oracle = oracle or np_logsumexp
    for axes in AXES:
        few = dtypes if axes in ((3,), (0,), None) else dtypes[-3:]
        CASES.append(
            Case(
                f"{name}_axes_{label(axes)}",
                arrays(SHAPE, gen=gen),
                lambda mx, x, name=name, axes=axes: getattr(mx, name)(x, axis=axes),
                lambda x, f=oracle, axes=axes: f(x, axis=axes),
                few,
                layouts=None
                if axes in ((3,), (0,), None)
                else ("contiguous", "transposed", "negative", "broadcast"),
                tags=("reduce",),
                **how,
            )
        )

# Row and column lengths around every tile; keepdims on the way.
SHAPES = [(1, 1), (7, 1), (1, 7), (33, 129), (5, 1025), (1025, 5), (3, 4099), (300, 65)]
for shape in SHAPES:
    for axis in (0, 1):
        for name, oracle in (("sum", np_sum), ("max", np.max), ("min", np.min)):
            tag = "x".join(map(str, shape))
            CASES.append(
                Case(
                    f"{name}_{tag}_axis_{axis}",
                    arrays(shape),
                    lambda mx, x, name=name, axis=axis: getattr(mx, name)(
                        x, axis=axis, keepdims=True
                    ),
                    lambda x, f=oracle, axis=axis: f(x, axis=axis, keepdims=True),
                    ("float32", "bfloat16", "int32", "uint8"),
                    layouts=("contiguous", "transposed", "rows_padded", "negative"),
                    tags=("reduce", "sizes"),
                    rtol={"float32": 1e-5, "bfloat16": 1.6e-2},
                    atol={"float32": 2e-4, "bfloat16": 1},
                )
            )
    for axis in (0, 1, None):
        for name in ("argmax", "argmin"):
            tag = "x".join(map(str, shape))
            CASES.append(
                Case(
                    f"{name}_{tag}_axis_{'all' if axis is None else axis}",
                    arrays(shape, gen=wide),
                    lambda mx, x, name=name, axis=axis: getattr(mx, name)(x, axis=axis),
                    lambda x, name=name, axis=axis: getattr(np, name)(
                        x, axis=axis
                    ).astype(np.uint32),
                    ("float32", "float16", "int64", "uint8"),
                    exact=True,
                    layouts=("contiguous", "transposed", "negative"),
                    tags=("reduce", "argreduce"),
                )
            )


for name, oracle in (("max", np.max), ("min", np.min), ("sum", np.sum)):
    CASES.append(
        Case(
            name + "_special",
            arrays((9, 130), gen=special),
            lambda mx, x, name=name: [
                getattr(mx, name)(x, axis=a) for a in (0, 1, None)
            ],
            lambda x, f=oracle: [f(x, axis=a) for a in (0, 1, None)],
            FLOATS,
            layouts=("contiguous", "transposed"),
            tags=("reduce", "special"),
            **SUM,
        )
    )
# Columns of stacks of few rows and of more, by fours.
for n in (8, 17, 32, 33):
    for kind, gen in (("", normal), ("_special", special)):
        CASES.append(
            Case(
                f"columns_of_{n}{kind}",
                arrays((3, n, 64), gen=gen),
                lambda mx, x: [f(x, axis=-2) for f in (mx.sum, mx.max, mx.min)],
                lambda x: [f(x, axis=-2) for f in (np.sum, np.max, np.min)],
                FLOATS,
                bench=arrays((16, n, 2048), gen=gen),
                tags=("reduce", "sizes"),
                **SUM,
            )
        )
CASES += [
    # Reductions over nothing give the identity.
    Case(
        "empty",
        arrays((0, 5)),
        lambda mx, x: [mx.sum(x, 0), mx.prod(x, 0), mx.all(x, 0), mx.any(x)],
        lambda x: [np_sum(x, 0), np_prod(x, 0), np.all(x, 0), np.any(x)],
        ALL,
        exact=True,
        layouts=("contiguous",),
        tags=("reduce", "sizes"),
    ),
    Case(
        "sum_wraps",
        arrays((64, 65), gen=wide),
        lambda mx, x: [mx.sum(x), mx.sum(x, 0), mx.sum(x, 1)],
        lambda x: [np_sum(x, a) for a in (None, 0, 1)],
        INTS,
        exact=True,
        tags=("reduce",),
    ),
    Case(
        "sum_millions",
        arrays((1 << 21,), gen=uniform(0, 3)),
        lambda mx, x: mx.sum(x),
        lambda x: np.sum(x, dtype=sum_type(x)),
        ("float32", "int32", "uint8"),
        rtol=1e-5,
        layouts=("contiguous",),
        tags=("reduce", "sizes"),
    ),
    Case(
        "any_negative_zero",
        lambda rng, dtype: [np.full((3, 40), -0.0)],
        lambda mx, x: [mx.any(x), mx.any(x, 1), mx.all(x, 0)],
        lambda x: [np.any(x), np.any(x, 1), np.all(x, 0)],
        FLOATS,
        layouts=("contiguous",),
        tags=("reduce",),
    ),
    Case(
        "arg_first_of_ties",
        lambda rng, dtype: [np.tile(np.array([1, 3, 3, 0, 0, 3, 1, 0]), (5, 40))],
        lambda mx, x: [mx.argmax(x, 1), mx.argmin(x, 1), mx.argmax(x), mx.argmin(x, 0)],
        lambda x: [
            f(x, axis=a).astype(np.uint32)
            for f, a in (
                (np.argmax, 1),
                (np.argmin, 1),
                (np.argmax, None),
                (np.argmin, 0),
            )
        ],
        REALS,
        exact=True,
        tags=("reduce", "argreduce"),
    ),
    Case(
        "sum_big",
        arrays((1 << 21,), gen=uniform(0, 9)),
        lambda mx, x: mx.sum(x),
        lambda x: np.sum(x.astype(np.int32)),
        ("int32",),
        exact=True,
        tags=("reduce",),
        big=True,
    ),
    Case(
        "sum_rows_bench",
        arrays((64, 512)),
        lambda mx, x: mx.sum(x, axis=-1),
        lambda x: np.sum(x, axis=-1),
        ("float32",),
        bench=arrays((4096, 4096)),
        tags=("reduce",),
        **SUM,
    ),
    Case(
        "sum_columns_bench",
        arrays((512, 64)),
        lambda mx, x: mx.sum(x, axis=0),
        lambda x: np.sum(x, axis=0),
        ("float32",),
        bench=arrays((4096, 4096)),
        tags=("reduce",),
        rtol=1e-4,
        atol=1e-4,
    ),
]
