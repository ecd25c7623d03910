"""Elementwise operations, fused graphs, copies, casts, generators."""

import numpy as np

from .row import ONE, Bound, Fixed, Row
from .values import (
    ALL,
    COMPLEX,
    FLOATS,
    INTS,
    arrays,
    nonzero,
    normal,
    positive,
    special,
    uniform,
    unit,
    wide,
)

SHAPE = (6, 5, 37)
FC = FLOATS + COMPLEX
REALS = FLOATS + INTS
FLAT = ("contiguous", "stepped")

# Units of float32 that composed functions may lose, next to results of order 1.
FUNCTION = Bound(ulps=32, size=0.25)
ROUNDED = Bound(ulps=2, size=0.25)


def call(name, **options):
    return lambda mx, *args: getattr(mx, name)(*args, **options)


UNARY = [
    ("abs", normal, (*FLOATS, *INTS)),
    ("arccos", unit, FC),
    ("arccosh", uniform(1.1, 9), FLOATS),
    ("arcsin", unit, FC),
    ("arcsinh", normal, FLOATS),
    ("arctan", normal, FC),
    ("arctanh", unit, FLOATS),
    ("ceil", normal, FLOATS),
    ("cos", normal, FC),
    ("cosh", normal, FC),
    ("erf", normal, FLOATS),
    ("erfinv", unit, FLOATS),
    ("exp", normal, FC),
    ("expm1", normal, FLOATS),
    ("floor", normal, FLOATS),
    ("log", positive, FC),
    ("log10", positive, FLOATS),
    ("log1p", positive, FLOATS),
    ("log2", positive, FLOATS),
    ("logical_not", normal, ALL),
    ("negative", wide, (*FLOATS, *INTS, *COMPLEX)),
    ("round", uniform(-9, 9), FLOATS),
    ("rsqrt", positive, FLOATS),
    ("sigmoid", normal, FLOATS),
    ("sign", normal, REALS),
    ("sin", normal, FC),
    ("sinh", normal, FC),
    ("sqrt", positive, FC),
    ("square", normal, REALS + COMPLEX),
    ("tan", unit, FC),
    ("tanh", normal, FC),
    ("bitwise_invert", wide, INTS),
    ("conjugate", normal, COMPLEX),
    ("imag", normal, COMPLEX),
    ("real", normal, COMPLEX),
]
EXACT = ("abs", "ceil", "floor", "logical_not", "negative", "round", "sign")


def bound_of(name):
    # erfinv is steep at the ends: x near 1 magnifies the rounding of 1 - x^2.
    if name == "erfinv":
        return Bound(ulps=90, size=1)
    return None if name in EXACT else FUNCTION


unary = [
    Row(name, arrays(SHAPE, gen=gen), call(name), dtypes, bound_of(name))
    for name, gen, dtypes in UNARY
]
unary += [
    # Complex magnitudes are rounded on the way, as are their quotients.
    Row("abs_complex", arrays(SHAPE), call("abs"), COMPLEX, FUNCTION, layouts=FLAT),
    *[
        Row(f"{name}_special", arrays((6, 31), gen=special), call(name), FLOATS, bound)
        for name, bound in [
            ("exp", FUNCTION),
            ("log", FUNCTION),
            ("sqrt", FUNCTION),
            ("tanh", FUNCTION),
            ("isnan", None),
            ("isinf", None),
            ("negative", None),
        ]
    ],
    Row("exp_long", arrays((70001,)), call("exp"), FLOATS, FUNCTION),
    Row(
        "exp_million", arrays((1 << 20,)), call("exp"), bound=FUNCTION, big=True,
        layouts=FLAT,
    ),
]  # fmt: skip

small = uniform(0, 5)
BINARY = [
    ("add", normal, normal, ALL, ROUNDED),
    ("subtract", normal, normal, REALS + COMPLEX, ROUNDED),
    ("multiply", normal, normal, ALL, ROUNDED),
    ("divide", normal, nonzero, FC, ROUNDED),
    ("floor_divide", normal, nonzero, INTS, None),
    ("remainder", normal, nonzero, REALS, Bound(ulps=8, size=4)),
    ("maximum", normal, normal, REALS, None),
    ("minimum", normal, normal, REALS, None),
    # exp(b log a) with |b log a| up to 5 magnifies the error of the product.
    ("power", uniform(0.4, 3), normal, FLOATS, Bound(ulps=160, size=0.1)),
    ("logaddexp", normal, normal, FLOATS, FUNCTION),
    ("arctan2", normal, normal, FLOATS, FUNCTION),
    ("equal", small, small, ALL, None),
    ("less", small, small, REALS, None),
    ("greater_equal", small, small, REALS, None),
    ("logical_and", normal, normal, ALL, None),
    ("bitwise_and", wide, wide, INTS, None),
    ("bitwise_xor", wide, wide, INTS, None),
    ("left_shift", wide, small, INTS, None),
    ("right_shift", wide, small, INTS, None),
]
OPERANDS = {"scalar": (SHAPE, ()), "row": (SHAPE, (37,)), "outer": ((5, 1), (1, 33))}
binary = [
    Row(name, arrays(SHAPE, SHAPE, gen=[a, b]), call(name), dtypes, bound)
    for name, a, b, dtypes, bound in BINARY
]
binary += [
    Row(f"add_{name}", arrays(a, b), call("add"), ALL, ROUNDED)
    for name, (a, b) in OPERANDS.items()
]
binary += [
    Row("add_long", arrays((70001,), (70001,)), call("add"), bound=ROUNDED),
    Row(
        "add_dimensions",
        arrays((2, 1, 3, 1, 2, 2, 1, 3), (1, 2, 1, 2, 2, 1, 3, 1)),
        call("add"),
        ("float32", "int8"),
        ROUNDED,
    ),
    Row(
        "divmod", arrays((4, 33), (4, 33), gen=[normal, nonzero]), call("divmod"), INTS
    ),
    Row(
        "maximum_special",
        arrays((6, 31), (6, 31), gen=special),
        lambda mx, a, b: [mx.maximum(a, b), mx.minimum(a, b), a == b, a < b],
    ),
]

ternary = [
    Row(
        "where",
        lambda rng, dtype: [
            Fixed(rng.integers(0, 2, SHAPE).astype(bool)),
            wide(rng, SHAPE, dtype),
            wide(rng, SHAPE, dtype),
        ],
        call("where"),
        ALL,
    ),
    Row(
        "where_row",
        lambda rng, dtype: [
            Fixed(rng.integers(0, 2, (1, 37)).astype(bool)),
            wide(rng, SHAPE, dtype),
            wide(rng, (), dtype),
        ],
        call("where"),
        ALL,
    ),
]


def fused(f):
    """f as one kernel; on the CPU, where fusion is off, step by step."""

    def fn(mx, *args):
        return mx.compile(lambda *args: f(mx, *args))(*args)

    return fn


def swiglu(mx, a, b, c):
    return mx.sigmoid(a) * a * b + c


def gelu(mx, a, b, c):
    return a * 0.5 * (1 + mx.erf(a / 2**0.5)) + mx.tanh(b) * mx.exp(-mx.abs(c))


def choices(mx, a, b, c):
    m = mx.maximum(a, b)
    return mx.where((m > c) | mx.isnan(a), m, -c), m > c


def wraps(mx, a, b, c):
    return (a + b) * c - mx.square(a), mx.minimum(mx.abs(b), mx.abs(c))


SHAPES = {
    "same": [SHAPE] * 3,
    "broadcast": [SHAPE, (37,), ()],
    "long": [(70001,)] * 3,
}
# Five roundings to the dtype, as the steps apart have them; terms up to 8.
compiled = [
    Row(f"{f.__name__}_{name}", arrays(*shapes), fused(f), dtypes, bound)
    for name, shapes in SHAPES.items()
    for f, dtypes, bound in [
        (swiglu, FLOATS, Bound(ulps=32, steps=5, size=8)),
        (gelu, FLOATS, Bound(ulps=32, steps=5, size=8)),
        (choices, FLOATS, None),
        (wraps, INTS, None),
    ]
]

copy = [
    Row("contiguous", arrays(SHAPE), call("contiguous"), ALL),
    Row(
        "transpose",
        arrays((5, 34, 67)),
        lambda mx, x: mx.contiguous(mx.transpose(x, (2, 0, 1))),
        ALL,
    ),
    Row(
        "transpose_tiles",
        arrays((300, 517)),
        lambda mx, x: mx.contiguous(x.T),
        (*FLOATS, "uint8", "int64", "complex64"),
    ),
    Row("reshape", arrays((6, 5, 33)), lambda mx, x: x.swapaxes(0, 1).reshape(-1), ALL),
    Row(
        "concatenate",
        arrays((3, 5, 7), (3, 9, 7)),
        lambda mx, a, b: mx.concatenate([a, b, a], axis=1),
        ALL,
    ),
    Row(
        "pad",
        arrays((3, 7)),
        lambda mx, x: mx.pad(x, [(1, 2), (3, 0)], constant_values=1),
        ALL,
    ),
    Row("tile", arrays((3, 7)), lambda mx, x: mx.tile(x, (2, 1, 3)), ALL),
    Row("flip", arrays(SHAPE), lambda mx, x: mx.contiguous(x[::-1, :, ::-2]), ALL),
    Row(
        "broadcast",
        arrays((5, 1, 7)),
        lambda mx, x: mx.contiguous(mx.broadcast_to(x, (4, 5, 9, 7))),
        ALL,
    ),
    Row(
        "million",
        arrays((1031, 1033)),
        lambda mx, x: mx.contiguous(x.T),
        big=True,
    ),
]


def casts(*names):
    return lambda mx, x: [x.astype(getattr(mx, name)) for name in names]


cast = [
    Row(
        f"to_{kind}",
        arrays(SHAPE, gen=uniform(0, 100)),
        casts(*names),
        (*FLOATS, *INTS, "bool"),
    )
    for kind, names in [
        ("float", ("float32", "float16", "bfloat16")),
        ("int", ("int32", "uint8", "int64", "bool_")),
    ]
]
cast += [
    Row(
        "floats",
        arrays(SHAPE, gen=wide),
        lambda mx, x: [x.astype(t) for t in (mx.float32, mx.bfloat16, mx.complex64)],
        want="same",
    ),
    Row(
        "special",
        arrays((6, 31), gen=special),
        lambda mx, x: [x.astype(t) for t in (mx.float32, mx.float16, mx.bfloat16)],
        want="same",
    ),
    Row(
        "view",
        arrays((6, 32), gen=wide),
        lambda mx, x: x.view(mx.uint16),
        ("float32", "float16", "int64", "uint16"),
        want="same",
    ),
]

KEY = np.array([7, 11], np.uint32)
random = [
    Row(
        f"{name}_{n}",
        lambda rng, dtype: [Fixed(rng.integers(0, 2**32, 2, np.uint32))],
        lambda mx, key, f=f, n=n: f(mx, key, n),
        ("uint32",),
        bound,
        "same",
        ("contiguous", "stepped", "offset"),
    )
    for n in (1, 7, 1025, 70001)
    for name, f, bound in [
        ("split", lambda mx, key, n: mx.random.split(key, n), None),
        (
            "integers",
            lambda mx, key, n: mx.random.randint(0, 1000, shape=(n,), key=key),
            None,
        ),
        (
            "uniform",
            lambda mx, key, n: [
                mx.random.uniform(shape=(3, n), key=key, dtype=t)
                for t in (mx.float32, mx.float16, mx.bfloat16)
            ],
            None,
        ),
        # erfinv of the tails.
        (
            "normal",
            lambda mx, key, n: mx.random.normal(shape=(n,), key=key),
            Bound(ulps=90, size=1),
        ),
    ]
]

arange = [
    Row(
        f"{start}_{stop}_{step}",
        lambda rng, dtype: [np.zeros(1)],
        lambda mx, like, r=(start, stop, step): mx.arange(*r, dtype=like.dtype),
        (*FLOATS, "int8", "int32", "int64"),
        layouts=ONE,
        want="same",
    )
    for start, stop, step in ((0, 100, 1), (5, -40, -3))
]

FAMILIES = {
    "unary": unary,
    "binary": binary,
    "ternary": ternary,
    "compiled": compiled,
    "copy": copy,
    "cast": cast,
    "random": random,
    "arange": arange,
}
