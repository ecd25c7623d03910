"""Cumulative sums, products, extremes and log-sum-exps along any axis."""

import numpy as np

from . import (
    ALL,
    BOOL,
    COMPLEX,
    CPU,
    FLOATS,
    INTS,
    NUMBERS,
    REALS,
    Case,
    arrays,
    normal,
    uniform,
    wide,
)

CASES = []
SUM = dict(
    rtol={"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2, "complex64": 1e-5},
    atol={"float32": 1e-4, "float16": 4e-2, "bfloat16": 0.3, "complex64": 1e-4},
)
WAYS = [(r, i) for r in (False, True) for i in (True, False)]


def neutral(name, dtype):
    if name in ("cumsum", "cumprod"):
        return 0 if name == "cumsum" else 1
    if dtype.kind == "b":
        return name == "cummin"
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return info.max if name == "cummin" else info.min
    if dtype.kind == "c" and name != "logcumsumexp":
        return (
            complex(np.inf, np.inf) if name == "cummin" else complex(-np.inf, -np.inf)
        )
    return np.inf if name == "cummin" else -np.inf


STEP = {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
    "logcumsumexp": np.logaddexp,
}


def np_scan(name, x, axis, reverse, inclusive):
    if name == "cumsum" and x.dtype.kind == "b":
        x = x.astype(np.int32)
    if axis is None:
        x, axis = x.reshape(-1), 0
    flip = (slice(None),) * axis + (slice(None, None, -1 if reverse else 1),)
    x = x[flip]
    if x.dtype.kind == "b" and name == "cumprod":
        y = np.logical_and.accumulate(x, axis=axis)
    elif name == "cumsum":
        y = np.cumsum(x, axis=axis, dtype=x.dtype)
    else:
        y = STEP[name].accumulate(x, axis=axis, dtype=x.dtype)
    if not inclusive:
        first = np.full_like(np.take(y, [0], axis), neutral(name, x.dtype))
        y = np.concatenate([first, np.delete(y, -1, axis)], axis)
    return y[flip]


def products(rng, shape, dtype):
    if dtype == "bool":
        return rng.random(shape) < 0.9
    if dtype in COMPLEX:
        return uniform(0.99, 1.01)(rng, shape, "float32") * np.exp(
            1j * rng.normal(size=shape)
        )
    if dtype in FLOATS:
        return uniform(0.9, 1.1)(rng, shape, dtype)
    return np.where(rng.random(shape) < 0.1, 2, 1).astype(dtype)


OPS = [
    ("cumsum", normal, ALL, SUM),
    ("cumprod", products, NUMBERS, SUM),
    ("cummax", wide, REALS + BOOL, dict(exact=True)),
    ("cummin", wide, REALS + BOOL, dict(exact=True)),
    ("logcumsumexp", normal, FLOATS, SUM),
]


def scans(name, axis, ways):
    def fn(mx, x):
        return [
            getattr(mx, name)(x, axis=axis, reverse=r, inclusive=i) for r, i in ways
        ]

    def oracle(x):
        return [np_scan(name, x, axis, r, i) for r, i in ways]

    return fn, oracle


# Scans in parts carry totals of wider types than these.
NARROW = ("int8", "int16", "uint8", "float16")
BESIDE_FLOAT32 = {"cumsum": ("int32",), "cummax": NARROW, "cummin": NARROW}

for name, gen, dtypes, how in OPS:
    for axis in (0, 1, 2, None):
        CASES.append(
            Case(
                f"{name}_axis_{'all' if axis is None else axis}",
                arrays((3, 35, 41), gen=gen),
                *scans(name, axis, WAYS),
                dtypes if axis in (1, 2) else dtypes[-3:],
                tags=("scan",),
                **how,
            )
        )
    # Around the blocks of teams and workgroups, and in several parts.
    for n in (1, 2, 33, 64, 65, 128, 129, 260, 1023, 1024, 1025, 4099, 50000):
        CASES.append(
            Case(
                f"{name}_{n}",
                arrays((2, n), gen=uniform(-1, 1) if name == "cumsum" else gen)
                if name != "cumprod"
                else arrays((2, n), gen=uniform(0.9999, 1.0001)),
                *scans(name, 1, WAYS),
                ("float32", *BESIDE_FLOAT32.get(name, ())),
                layouts=("contiguous", "transposed", "negative"),
                tags=("scan", "sizes"),
                # Factors 1 + a with small a: the terms a*b fall below half a
                # unit and are lost, the same way every time, so that errors
                # add up to n/2 units instead of averaging out.
                rtol=max(5e-5, n * 2.0**-24) if name == "cumprod" else 5e-5,
                atol=1e-3 if name == "cumsum" else 5e-5,
            )
        )
    CASES.append(
        Case(
            f"{name}_columns",
            arrays((40, 5000), gen=gen),
            *scans(name, 0, WAYS[1:3]),
            ("float32",),
            layouts=("contiguous", "transposed"),
            tags=("scan",),
            **how,
        )
    )


def with_nan(rng, shape, dtype):
    x = np.array(normal(rng, shape, dtype))
    x[..., shape[-1] // 2] = np.nan
    x[0, 3] = np.inf
    x[1, shape[-1] - 2] = -np.inf
    return x


for n in (60, 1025, 50000):
    for name in ("cummax", "cummin", "cumsum", "logcumsumexp"):
        CASES.append(
            Case(
                f"{name}_nan_{n}",
                arrays((3, n), gen=with_nan),
                *scans(name, 1, WAYS),
                ("float32", "bfloat16") if n < 100 else ("float32",),
                layouts=("contiguous", "transposed"),
                tags=("scan", "special"),
                rtol={"float32": 1e-4, "bfloat16": 3e-2},
                atol={"float32": 2e-3, "bfloat16": 0.3},
            )
        )
CASES += [
    Case(
        "cumsum_wraps",
        arrays((3, 2000), gen=wide),
        *scans("cumsum", 1, WAYS),
        INTS,
        exact=True,
        layouts=("contiguous", "transposed"),
        tags=("scan",),
    ),
    Case(
        "cumsum_empty",
        arrays((0, 5)),
        lambda mx, x: [mx.cumsum(x, 0), mx.cumsum(x, 1)],
        lambda x: [np_scan("cumsum", x, 1, False, True)] * 2,
        ALL,
        layouts=("contiguous",),
        tags=("scan", "sizes"),
    ),
    Case(
        "scan_complex",
        arrays((3, 50)),
        lambda mx, x: [mx.cummax(x, 1), mx.cummin(x, 0), mx.logcumsumexp(x, 1)],
        CPU,
        COMPLEX,
        rtol=2e-5,
        atol=2e-5,
        tags=("scan",),
    ),
    Case(
        "cumsum_bench",
        arrays((3, 4096)),
        *scans("cumsum", 1, WAYS[:1]),
        ("float32",),
        layouts=("contiguous",),
        bench=arrays((1, 1 << 24)),
        tags=("scan",),
        **SUM,
    ),
]
