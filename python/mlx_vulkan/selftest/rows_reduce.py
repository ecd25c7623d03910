"""Reductions, scans, and what works on rows: softmax, norms, rope, losses."""

import numpy as np

from .oracles import np_cross_entropy, np_cross_entropy_vjp, np_logsumexp, np_softmax
from .row import FEW, Bound, Fixed, Row
from .values import ALL, FLOATS, INTS, arrays, normal, special, uniform, whole, wide

REALS = FLOATS + INTS
AXES = {"row": 2, "middle": 1, "column": 0, "outer": (0, 2), "all": None}


def along(name, axis, **more):
    return lambda mx, x: getattr(mx, name)(x, axis=axis, **more)


def total(terms):
    """Sums of variance one; float16 and bfloat16 are rounded between passes."""
    return Bound(ulps=4, steps=2, terms=terms, size=max(terms, 1) ** 0.5)


near_one = uniform(0.97, 1.03)


def few_twos(rng, shape, dtype):
    if dtype in FLOATS:
        return near_one(rng, shape, dtype)
    return np.where(rng.random(shape) < 0.02, 2, 1)


SHAPE = (4, 9, 37)
reduce = []
for place, axis in AXES.items():
    n = int(np.prod([SHAPE[a] for a in np.atleast_1d(axis)])) if axis is not None else 0
    n = n or int(np.prod(SHAPE))
    factors = Bound(ulps=2 * n, steps=2)
    for name, gen, dtypes, bound in [
        ("sum", normal, ALL, total(n)),
        ("prod", few_twos, (*FLOATS, "int32", "uint8", "int64"), factors),
        ("max", wide, REALS, None),
        ("min", wide, REALS, None),
        ("all", normal, (*FLOATS, "bool", "int8"), None),
        ("any", normal, (*FLOATS, "bool", "int8"), None),
        ("mean", normal, FLOATS, total(1)),
        ("logsumexp", normal, FLOATS, Bound(ulps=32, steps=4, size=4)),
    ]:
        row = Row(
            f"{name}_{place}", arrays(SHAPE, gen=gen), along(name, axis), dtypes, bound
        )
        reduce.append(row)
# Around and beyond one workgroup, along rows and columns, in several passes.
for shape in [(3, 4099), (1025, 5), (300, 129), (2, 70001), (9001, 3)]:
    tag = "x".join(map(str, shape))
    for axis in (0, 1, None):
        reduce.append(
            Row(
                f"sum_{tag}_{'all' if axis is None else axis}",
                arrays(shape, gen=whole),
                along("sum", axis),
                # Whole numbers: a float32 sum is exact in any order.
                ("float32", "int32", "uint8"),
            )
        )
        reduce.append(
            Row(
                f"max_{tag}_{'all' if axis is None else axis}",
                arrays(shape),
                along("max", axis),
                (*FLOATS, "int64"),
            )
        )
reduce += [
    Row(
        "max_special",
        arrays((9, 130), gen=special),
        lambda mx, x: [f(x, axis=a) for f in (mx.max, mx.min) for a in (0, 1, None)],
        # MLX's CPU loses a NaN here and there, NumPy does not.
        want=lambda x: [f(x, axis=a) for f in (np.max, np.min) for a in (0, 1, None)],
    ),
    Row(
        "sum_millions",
        arrays((1 << 21,), gen=whole),
        along("sum", None),
        ("float32", "int32", "uint8"),
        big=True,
    ),
]

arg_reduce = [
    Row(
        f"{name}_{place}",
        arrays(SHAPE, gen=whole),
        along(name, axis),
        REALS,
        want=lambda x, name=name, axis=axis: getattr(np, name)(x, axis=axis).astype(
            np.uint32
        ),
    )
    for name in ("argmax", "argmin")
    for place, axis in (("row", 2), ("middle", 1), ("column", 0), ("all", None))
]
arg_reduce += [
    Row(
        f"argmax_{shape[0]}x{shape[1]}_{axis}",
        arrays(shape),
        along("argmax", axis),
        ("float32", "bfloat16", "uint8"),
        want=lambda x, axis=axis: np.argmax(x, axis=axis).astype(np.uint32),
    )
    for shape in ((3, 50021), (5003, 3))
    for axis in (0, 1)
]

WAYS = [(r, i) for r in (False, True) for i in (True, False)]


def scans(name, axis):
    def fn(mx, x):
        return [
            getattr(mx, name)(x, axis=axis, reverse=r, inclusive=i) for r, i in WAYS
        ]

    return fn


# 1024 is what one workgroup scans; 50,000 takes several and their carries.
scan = []
for shape, axis in [((3, 35, 41), 1), ((3, 1025), 1), ((2, 50001), 1), ((3000, 5), 0)]:
    n, tag = shape[axis], "x".join(map(str, shape))
    scan += [
        Row(
            f"cumsum_{tag}",
            arrays(shape, gen=whole),
            scans("cumsum", axis),
            ("float32", "int32", "uint8", "int64"),
            want="same",
        ),
        Row(
            f"cummax_{tag}",
            arrays(shape),
            scans("cummax", axis),
            (*FLOATS, "int32"),
            want="same",
        ),
        # Errors of n factors or terms of one sign add up.
        Row(
            f"cumprod_{tag}",
            arrays(shape, gen=uniform(1 - 1 / n, 1 + 1 / n)),
            scans("cumprod", axis),
            ("float32",),
            Bound(ulps=2 * n, size=1),
            layouts=FEW,
        ),
        Row(
            f"logcumsumexp_{tag}",
            arrays(shape),
            scans("logcumsumexp", axis),
            ("float32",),
            Bound(ulps=64, size=12),
            layouts=FEW,
        ),
    ]


def with_nan(rng, shape, dtype):
    x = normal(rng, shape, dtype)
    x[..., shape[-1] // 2] = np.nan
    return x


scan.append(
    Row(
        "nan",
        arrays((3, 5000), gen=with_nan),
        lambda mx, x: [mx.cummax(x, axis=1), mx.cummin(x, axis=1)],
        want=lambda x: [
            np.maximum.accumulate(x, axis=1),
            np.minimum.accumulate(x, axis=1),
        ],
    )
)


def low_rows(rng, shape, dtype):
    """Padding at the lowest float, at -inf, rows of nothing else, one NaN."""
    x = normal(rng, shape, dtype)
    low = {"float32": -3.4e38, "float16": -65504.0, "bfloat16": -3.3e38}[dtype]
    x[0], x[1], x[2, : shape[1] // 2], x[3, 1:] = low, -np.inf, low, -np.inf
    x[4, -1] = np.nan
    return x


# Rows in one team, in one workgroup, and read twice.
LENGTHS = (1, 7, 64, 129, 1000, 1025, 4097, 12345)
PROBABILITY = Bound(ulps=32, size=0.01)
softmax = [
    Row(
        f"rows_{n}",
        arrays((3, 5, n)),
        lambda mx, x: [mx.softmax(x, axis=-1), mx.softmax(x, axis=-1, precise=True)],
        bound=PROBABILITY,
    )
    for n in LENGTHS
]
softmax += [
    Row(
        f"low_{n}",
        arrays((5, n), gen=low_rows),
        lambda mx, x: mx.softmax(x, axis=-1),
        bound=PROBABILITY,
        want=np_softmax,
    )
    for n in (33, 1024, 9001)
]
softmax += [
    # Another axis than the last is transposed or composed, and rounded on the way.
    Row(
        "column",
        arrays((3, 40, 5)),
        along("softmax", 1),
        bound=Bound(ulps=32, steps=6, size=0.01),
    ),
    Row("big", arrays((64, 50257)), along("softmax", -1), bound=PROBABILITY, big=True),
]
LOGARITHM = Bound(ulps=32, size=12)
logsumexp = [
    Row(f"rows_{n}", arrays((3, 5, n)), along("logsumexp", -1), bound=LOGARITHM)
    for n in LENGTHS
]
logsumexp += [
    Row(
        f"low_{n}",
        arrays((5, n), gen=low_rows),
        along("logsumexp", -1),
        bound=LOGARITHM,
        want=np_logsumexp,
    )
    for n in (33, 20001)
]


def rms(mx, x, w):
    return mx.fast.rms_norm(x, w, 1e-5)


def layer(mx, x, w, b):
    return mx.fast.layer_norm(x, w, b, 1e-5)


# The mean of n squares and of n items: errors of a sum, divided by n. Results and
# weights reach 5.
def normed(n):
    return Bound(ulps=32, steps=3, terms=5 * n**0.5, size=5)


norm = []
norm_vjp = []
for shape in [(5, 8), (3, 7, 33), (2, 576), (600, 64), (3, 1025), (2, 7000)]:
    n, tag = shape[-1], "x".join(map(str, shape))
    norm += [
        Row(f"rms_{tag}", arrays(shape, (n,)), rms, bound=normed(n)),
        Row(f"layer_{tag}", arrays(shape, (n,), (n,)), layer, bound=normed(n)),
    ]
    # Gradients of the weights sum over all rows.
    rows = int(np.prod(shape[:-1]))
    sums = Bound(
        ulps=64, steps=4, terms=rows + int(n**0.5), size=3 * max(rows, 3) ** 0.5
    )
    norm_vjp += [
        Row(
            f"rms_{tag}",
            arrays(shape, (n,), shape),
            lambda mx, x, w, g: mx.vjp(lambda x, w: rms(mx, x, w), [x, w], [g])[1],
            bound=sums,
            layouts=FEW,
        ),
        Row(
            f"layer_{tag}",
            arrays(shape, (n,), (n,), shape),
            lambda mx, x, w, b, g: mx.vjp(
                lambda x, w, b: layer(mx, x, w, b), [x, w, b], [g]
            )[1],
            bound=sums,
            layouts=FEW,
        ),
    ]
norm += [
    Row(
        "rms_heads",
        arrays((2, 9, 4, 128)),
        lambda mx, x: mx.fast.rms_norm(x.swapaxes(1, 2), None, 1e-5),
        bound=normed(128),
    ),
    Row(
        "layer_plain",
        arrays((3, 4, 96)),
        lambda mx, x: mx.fast.layer_norm(x, None, None, 1e-3),
        bound=normed(96),
    ),
]


def turned(dims, traditional=False, base=1e4):
    def fn(mx, x, offset, *freqs):
        return mx.fast.rope(
            x,
            dims,
            traditional=traditional,
            base=None if freqs else base,
            scale=1.0,
            offset=offset,
            freqs=freqs[0] if freqs else None,
        )

    return fn


def rope_inputs(shape, offset, freqs=None):
    def make(rng, dtype):
        more = [] if freqs is None else [Fixed(freqs)]
        return [normal(rng, shape, dtype), Fixed(np.asarray(offset, np.int32)), *more]

    return make


# The angle, up to `position`, and the frequency in it are rounded to float32.
def rotation(position):
    return Bound(ulps=32 + 2 * position, size=4)


FREQS = (10.0 ** np.linspace(0, 3, 16)).astype(np.float32)
rope = [
    Row(
        f"{name}{'_traditional' if traditional else ''}",
        rope_inputs(shape, offset, freqs),
        turned(dims, traditional),
        bound=rotation(int(np.max(offset)) + shape[-2]),
        # float64 angles on MLX's CPU come from float32 frequencies, too.
        want="single",
    )
    for traditional in (False, True)
    for name, shape, dims, offset, freqs in [
        ("heads", (2, 3, 5, 32), 32, 7, None),
        ("partial", (2, 3, 5, 40), 24, 11, None),
        ("frequencies", (2, 3, 5, 48), 32, 9, FREQS),
        ("decode", (1, 9, 1, 64), 64, 700, None),
        ("batch", (3, 4, 1, 64), 64, [5, 0, 99], None),
        ("prompt", (1, 8, 300, 64), 64, 0, None),
    ]
]


def loss_inputs(n, gradient):
    def make(rng, dtype):
        target = Fixed(rng.integers(0, n, (3, 4)).astype(np.int32))
        g = [Fixed(rng.normal(size=(3, 4)).astype(np.float32))] if gradient else []
        return [normal(rng, (3, 4, n), dtype), target, *g]

    return make


cross_entropy = []
for n in (5, 64, 1000, 5003):
    cross_entropy += [
        Row(
            f"loss_{n}",
            loss_inputs(n, False),
            lambda mx, x, t: mx.fast.cross_entropy(x, t),
            bound=LOGARITHM,
            want=np_cross_entropy,
            layouts=FEW,
        ),
        Row(
            f"gradient_{n}",
            loss_inputs(n, True),
            lambda mx, x, t, g: mx.vjp(lambda x: mx.fast.cross_entropy(x, t), [x], [g])[
                1
            ],
            bound=Bound(ulps=32, steps=2, size=0.1),
            want=np_cross_entropy_vjp,
            layouts=FEW,
        ),
    ]

FAMILIES = {
    "reduce": reduce,
    "arg_reduce": arg_reduce,
    "scan": scan,
    "softmax": softmax,
    "logsumexp": logsumexp,
    "norm": norm,
    "norm_vjp": norm_vjp,
    "rope": rope,
    "cross_entropy": cross_entropy,
}
