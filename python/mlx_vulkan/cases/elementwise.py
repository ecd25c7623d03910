"""Unary, binary and ternary operations, arange, random bits."""

import math
import statistics

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
    SIGNED,
    Case,
    Raw,
    arrays,
    nonzero,
    normal,
    positive,
    special,
    uniform,
    unit,
    wide,
)

CASES = []
SHAPE = (3, 5, 37)
BIG = arrays((1024, 16384))

erf = np.vectorize(math.erf, otypes=[np.float64])


@np.vectorize
def erfinv(x):
    if not abs(x) <= 1:
        return math.nan
    if abs(x) == 1:
        return math.copysign(math.inf, x)
    if abs(x) < 1e-3:
        return math.sqrt(math.pi) / 2 * (x + math.pi / 12 * x**3)
    y = statistics.NormalDist().inv_cdf((x + 1) / 2) / math.sqrt(2)
    return y - (math.erf(y) - x) * math.sqrt(math.pi) / 2 * math.exp(y * y)


def csign(x):
    """MLX's sign: x / |x| for complex numbers."""
    if x.dtype.kind != "c":
        return np.sign(x)
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# Name, oracle, generator, dtypes, (rtol, atol) for float32. Small results of
# trigonometric functions have an absolute error only.
TRANSCENDENTAL = (4e-6, 1e-6)
EXACT = (0, 0)
FC = FLOATS + COMPLEX
UNARY = [
    ("abs", np.abs, normal, NUMBERS, TRANSCENDENTAL),
    ("arccos", np.arccos, unit, FC, TRANSCENDENTAL),
    ("arccosh", np.arccosh, uniform(1.01, 9), FLOATS, TRANSCENDENTAL),
    ("arcsin", np.arcsin, unit, FC, TRANSCENDENTAL),
    ("arcsinh", np.arcsinh, normal, FLOATS, TRANSCENDENTAL),
    ("arctan", np.arctan, normal, FC, TRANSCENDENTAL),
    ("arctanh", np.arctanh, unit, FLOATS, TRANSCENDENTAL),
    ("bitwise_invert", np.invert, wide, BOOL + INTS, EXACT),
    ("ceil", np.ceil, normal, FLOATS, EXACT),
    ("conjugate", np.conj, normal, COMPLEX, EXACT),
    ("cos", np.cos, normal, FC, TRANSCENDENTAL),
    ("cosh", np.cosh, normal, FC, TRANSCENDENTAL),
    ("erf", erf, normal, FLOATS, TRANSCENDENTAL),
    ("erfinv", erfinv, unit, FLOATS, (1e-5, 1e-5)),
    ("exp", np.exp, normal, FC, TRANSCENDENTAL),
    ("expm1", np.expm1, normal, FLOATS, TRANSCENDENTAL),
    ("floor", np.floor, normal, FLOATS, EXACT),
    ("imag", np.imag, normal, COMPLEX, EXACT),
    ("log", np.log, positive, FC, TRANSCENDENTAL),
    ("log2", np.log2, positive, FLOATS, TRANSCENDENTAL),
    ("log10", np.log10, positive, FLOATS, TRANSCENDENTAL),
    ("log1p", np.log1p, positive, FLOATS, TRANSCENDENTAL),
    ("logical_not", np.logical_not, normal, ALL, EXACT),
    ("negative", np.negative, wide, NUMBERS, EXACT),
    ("real", np.real, normal, COMPLEX, EXACT),
    ("round", np.round, uniform(-9, 9), FLOATS, EXACT),
    ("rsqrt", lambda x: 1 / np.sqrt(x), positive, FLOATS, TRANSCENDENTAL),
    ("sigmoid", sigmoid, normal, FLOATS, TRANSCENDENTAL),
    ("sign", csign, normal, NUMBERS, TRANSCENDENTAL),
    ("sin", np.sin, normal, FC, TRANSCENDENTAL),
    ("sinh", np.sinh, normal, FC, TRANSCENDENTAL),
    ("sqrt", np.sqrt, positive, FC, TRANSCENDENTAL),
    ("square", np.square, normal, NUMBERS, TRANSCENDENTAL),
    ("tan", np.tan, normal, FC, (8e-6, 2e-6)),
    ("tanh", np.tanh, normal, FC, TRANSCENDENTAL),
]


def tolerances(rtol, atol):
    """Tolerances of float32 for the wider types; the narrow ones keep the default."""
    wider = ("float32", "complex64")
    return dict(rtol=dict.fromkeys(wider, rtol), atol=dict.fromkeys(wider, atol))


def mlx(name):
    def fn(mx, *args):
        return getattr(mx, name)(*args)

    return fn


for name, oracle, gen, dtypes, tolerance in UNARY:
    how = dict(exact=True) if tolerance == EXACT else tolerances(*tolerance)
    CASES.append(
        Case(
            name,
            arrays(SHAPE, gen=gen),
            mlx(name),
            oracle,
            dtypes,
            bench=BIG if name in ("exp", "abs", "tanh") else None,
            tags=("unary",),
            **how,
        )
    )
    if "float32" in dtypes and name not in ("erf", "erfinv", "sign"):
        CASES.append(
            Case(
                name + "_special",
                arrays((6, 31), gen=special),
                mlx(name),
                oracle,
                FLOATS,
                tags=("unary", "special"),
                layouts=("contiguous", "stepped"),
                **how,
            )
        )

CASES.append(
    Case(
        "exp_big",
        arrays((1 << 20,)),
        mlx("exp"),
        np.exp,
        tags=("unary",),
        big=True,
        **tolerances(*TRANSCENDENTAL),
    )
)

# Far arguments, where range reduction and overflow show.
FAR = [
    ("sin", np.sin, uniform(-1e4, 1e4), (1e-4, 1e-5)),
    ("cos", np.cos, uniform(-1e4, 1e4), (1e-4, 1e-5)),
    ("exp", np.exp, uniform(-80, 88), (1e-5, 1e-38)),
    ("tanh", np.tanh, uniform(-100, 100), TRANSCENDENTAL),
    ("sigmoid", sigmoid, uniform(-120, 120), (1e-5, 1e-37)),
    ("expm1", np.expm1, uniform(-1e-4, 1e-4), (1e-5, 0)),
    ("log1p", np.log1p, uniform(-1e-4, 1e-4), (1e-5, 0)),
    ("sinh", np.sinh, uniform(-1e-3, 1e-3), (1e-5, 0)),
    ("erf", erf, uniform(-5, 5), TRANSCENDENTAL),
]
for name, oracle, gen, (rtol, atol) in FAR:
    CASES.append(
        Case(
            name + "_far",
            arrays((513,), gen=gen),
            mlx(name),
            oracle,
            ("float32",),
            rtol=rtol,
            atol=atol,
            layouts=("contiguous",),
            tags=("unary",),
        )
    )

for name in ("exp", "sin", "sqrt"):
    CASES.append(
        Case(
            name + "_of_integers",
            arrays((4, 9), gen=uniform(0, 9)),
            mlx(name),
            lambda x, f=getattr(np, name): f(x.astype(np.float64)),
            INTS,
            rtol=1e-5,
            layouts=("contiguous", "stepped"),
            tags=("unary",),
        )
    )


# Binary. MLX's integer division by zero is undefined: nonzero divisors.
def floor_divide(a, b):
    if a.dtype.kind in "iu":
        return np.floor_divide(a, b)
    return np.trunc(a / b) if a.dtype.kind == "c" else np.floor(a / b)


def power(a, b):
    return np.power(a, b)


small = uniform(0, 5)
ARITHMETIC = tolerances(1e-6, 1e-6)
EXACTLY = dict(exact=True)
BINARY = [
    ("add", np.add, normal, normal, ALL, ARITHMETIC),
    ("subtract", np.subtract, normal, normal, NUMBERS, ARITHMETIC),
    ("multiply", np.multiply, normal, normal, ALL, ARITHMETIC),
    ("divide", np.divide, normal, nonzero, FC, tolerances(2e-6, 2e-6)),
    ("floor_divide", floor_divide, normal, nonzero, INTS, EXACTLY),
    ("remainder", np.remainder, normal, nonzero, REALS, tolerances(1e-6, 4e-6)),
    ("maximum", np.maximum, normal, normal, REALS, EXACTLY),
    ("minimum", np.minimum, normal, normal, REALS, EXACTLY),
    ("power", power, positive, normal, FLOATS, tolerances(2e-5, 1e-6)),
    ("logaddexp", np.logaddexp, normal, normal, FLOATS, tolerances(4e-6, 2e-6)),
    ("arctan2", np.arctan2, normal, normal, FLOATS, tolerances(4e-6, 1e-6)),
    ("equal", np.equal, small, small, ALL, EXACTLY),
    ("not_equal", np.not_equal, small, small, ALL, EXACTLY),
    ("greater", np.greater, small, small, REALS, EXACTLY),
    ("greater_equal", np.greater_equal, small, small, REALS, EXACTLY),
    ("less", np.less, small, small, REALS, EXACTLY),
    ("less_equal", np.less_equal, small, small, REALS, EXACTLY),
    ("logical_and", np.logical_and, normal, normal, ALL, EXACTLY),
    ("logical_or", np.logical_or, normal, normal, ALL, EXACTLY),
    ("bitwise_and", np.bitwise_and, wide, wide, BOOL + INTS, EXACTLY),
    ("bitwise_or", np.bitwise_or, wide, wide, BOOL + INTS, EXACTLY),
    ("bitwise_xor", np.bitwise_xor, wide, wide, BOOL + INTS, EXACTLY),
    ("left_shift", np.left_shift, wide, small, INTS, EXACTLY),
    ("right_shift", np.right_shift, wide, small, INTS, EXACTLY),
]
# Operand shapes, each met in the row of every operation.
OPERANDS = {
    "same": (SHAPE, SHAPE),
    "scalar": (SHAPE, ()),
    "row": (SHAPE, (37,)),
    "outer": ((5, 1), (1, 33)),
}
for name, oracle, gen_a, gen_b, dtypes, how in BINARY:
    for shape, (a, b) in OPERANDS.items():
        CASES.append(
            Case(
                f"{name}_{shape}",
                arrays(a, b, gen=[gen_a, gen_b]),
                mlx(name),
                oracle,
                dtypes,
                bench=arrays((1024, 16384), (1024, 16384))
                if (name, shape) == ("add", "same")
                else None,
                layouts=None if shape == "same" else ("contiguous", "transposed"),
                tags=("binary",),
                **how,
            )
        )

for name in ("add", "multiply", "divide", "maximum", "minimum", "equal", "less"):
    CASES.append(
        Case(
            name + "_special",
            arrays((6, 31), (6, 31), gen=special),
            mlx(name),
            getattr(np, name),
            FLOATS,
            layouts=("contiguous", "stepped"),
            tags=("binary", "special"),
        )
    )
CASES += [
    Case(
        "add_wraps",
        arrays((4, 33), (4, 33), gen=wide),
        mlx("add"),
        np.add,
        INTS,
        exact=True,
        tags=("binary",),
    ),
    Case(
        "multiply_wraps",
        arrays((4, 33), (4, 33), gen=wide),
        mlx("multiply"),
        np.multiply,
        INTS,
        exact=True,
        tags=("binary",),
    ),
    Case(
        "power_integers",
        arrays((4, 9), (4, 9), gen=[uniform(0, 4), uniform(0, 3)]),
        mlx("power"),
        np.power,
        INTS,
        exact=True,
        tags=("binary",),
    ),
    Case(
        "power_negative_base",
        arrays((64,), gen=uniform(-3, 3)),
        lambda mx, x: mx.power(x, mx.array(3.0, x.dtype)),
        lambda x: x**3,
        FLOATS,
        rtol=tolerances(1e-5, 0)["rtol"],
        tags=("binary",),
    ),
    Case(
        "divmod",
        arrays((4, 33), (4, 33), gen=[normal, nonzero]),
        mlx("divmod"),
        lambda a, b: list(np.divmod(a, b)),
        INTS,
        exact=True,
        tags=("binary",),
    ),
    Case(
        "divmod_floats",
        arrays((4, 33), (4, 33), gen=[normal, positive]),
        mlx("divmod"),
        lambda a, b: list(np.divmod(a, b)),
        ("float32",),
        atol=5e-6,
        tags=("binary",),
    ),
    Case(
        "array_equal_nan",
        arrays((5, 31), gen=special),
        lambda mx, x: mx.array_equal(x, x, equal_nan=True),
        lambda x: np.array(True),
        FLOATS,
        tags=("binary",),
    ),
    Case(
        "where",
        arrays((4, 33), (4, 33), (4, 33), gen=[uniform(0, 1), wide, wide]),
        lambda mx, c, a, b: mx.where(c.astype(mx.bool_), a, b),
        lambda c, a, b: np.where(c.astype(bool), a, b),
        ALL,
        exact=True,
        bench=arrays((1024, 16384), (1024, 16384), (1024, 16384)),
        tags=("ternary",),
    ),
    Case(
        "where_mask_row",
        lambda rng, dtype: [
            Raw(rng.integers(0, 2, (1, 33)).astype(bool), layouts=True),
            wide(rng, (4, 33), dtype),
            wide(rng, (), dtype),
        ],
        lambda mx, c, a, b: mx.where(c, a, b),
        lambda c, a, b: np.where(c, a, b),
        ALL,
        exact=True,
        tags=("ternary",),
    ),
]

# Sizes: nothing, one item, odd tails, more than one workgroup of each kind.
for n in (0, 1, 3, 63, 257, 4099, 70001):
    CASES += [
        Case(
            f"exp_size_{n}",
            arrays((n,)),
            mlx("exp"),
            np.exp,
            FLOATS,
            **tolerances(*TRANSCENDENTAL),
            tags=("unary", "sizes"),
        ),
        Case(
            f"add_size_{n}",
            arrays((n,), (n,), gen=wide),
            mlx("add"),
            np.add,
            ("int8", "uint64"),
            exact=True,
            tags=("binary", "sizes"),
        ),
    ]
CASES.append(
    Case(
        "add_ten_dimensions",
        arrays((2, 1, 3, 1, 2, 2, 1, 3, 2, 2), (1, 2, 1, 2, 2, 1, 3, 1, 2, 2)),
        mlx("add"),
        np.add,
        ("float32", "int8"),
        tags=("binary",),
    )
)

# Generators. arange is exact in the integers, also past 2^24.
for start, stop, step in ((0, 100, 1), (5, -40, -3), (0, 0, 1)):
    CASES.append(
        Case(
            f"arange_{start}_{stop}_{step}",
            lambda rng, dtype: [Raw(np.zeros(1, np.float32)), np.zeros(1)],
            lambda mx, _, like, r=(start, stop, step): mx.arange(*r, dtype=like.dtype),
            lambda _, like, r=(start, stop, step): np.arange(*r, dtype=like.dtype),
            SIGNED + FLOATS,
            exact=True,
            layouts=("contiguous",),
            tags=("arange",),
        )
    )
CASES += [
    Case(
        "arange_past_float",
        lambda rng, dtype: [],
        lambda mx: mx.arange(2**24, 2**24 + 9, dtype=mx.int64),
        lambda: np.arange(2**24, 2**24 + 9, dtype=np.int64),
        ("int64",),
        exact=True,
        donate=False,
        layouts=("contiguous",),
        tags=("arange",),
    ),
    Case(
        "linspace",
        lambda rng, dtype: [],
        lambda mx: mx.linspace(0, 1, 101),
        lambda: np.linspace(0, 1, 101),
        ("float32",),
        donate=False,
        layouts=("contiguous",),
        tags=("arange",),
    ),
]


# Random bits agree with the CPU's to the bit, odd sizes and tails too. Python
# sees them as keys, and in uniform() with the width of the dtype.
KEY = Raw(np.array([7, 11], np.uint32), layouts=True)
KEY_LAYOUTS = ("contiguous", "stepped", "negative", "offset")
for n in (1, 2, 7, 8, 33, 1025):
    CASES += [
        Case(
            f"random_split_{n}",
            lambda rng, dtype: [KEY],
            lambda mx, key, n=n: mx.random.split(key, n),
            CPU,
            ("uint32",),
            exact=True,
            layouts=KEY_LAYOUTS,
            tags=("random",),
        ),
        Case(
            f"random_uniform_{n}",
            lambda rng, dtype: [KEY, np.zeros(1)],
            lambda mx, key, like, n=n: mx.random.uniform(
                shape=(3, n), key=key, dtype=like.dtype
            ),
            CPU,
            FLOATS,
            exact=True,
            layouts=KEY_LAYOUTS,
            tags=("random",),
        ),
        Case(
            f"random_keys_{n}",
            lambda rng, dtype: [KEY],
            lambda mx, key, n=n: mx.vmap(
                lambda k: mx.random.randint(0, 1000, shape=(n,), key=k)
            )(mx.random.split(key, 5)),
            CPU,
            ("uint32",),
            exact=True,
            layouts=KEY_LAYOUTS,
            tags=("random",),
        ),
    ]
for name in ("normal", "gumbel", "laplace"):
    CASES.append(
        Case(
            f"random_{name}",
            lambda rng, dtype: [Raw(np.array([1, 2], np.uint32))],
            lambda mx, key, name=name: getattr(mx.random, name)(shape=(33, 9), key=key),
            CPU,
            ("float32",),
            rtol=1e-5,
            atol=1e-5,
            layouts=("contiguous",),
            tags=("random",),
        )
    )
