"""The operations that random programs are made of: each draws its operands and
arguments and says what its result must be. The bounds are those of float32
arithmetic (see property_rules.py); n items summed in any order lose n u of the
sum of their magnitudes."""

from __future__ import annotations

import numpy as np

from mlx_vulkan.cases import BOOL, COMPLEX, FLOATS, INTS, REALS
from mlx_vulkan.cases.elementwise import csign
from mlx_vulkan.cases.scan import np_scan
from property_program import NotApplicable, op
from property_rules import (
    FLOOR,
    MAX,
    TINY,
    UNIT,
    U,
    close,
    constant,
    exact,
    exactly,
    overflows,
    rounded,
    units,
)
from test_math import UNARY

FC = FLOATS + COMPLEX
NUMBERS = REALS + COMPLEX
ALL = BOOL + NUMBERS


# Views and copies: exact, and the layouts of everything else.


@op("view")
def transpose(b, v=None):
    v = v or b.pick(low=2)
    if v.ndim < 2:
        raise NotApplicable
    axes = b.permutation(v.ndim)
    return b.emit("transpose", exact, f"mx.transpose({{0}}, {axes})", v)


@op("view")
def slice_(b, v=None):
    """Offsets, steps, reversed axes."""
    v = v or b.pick(low=1)
    if v.ndim < 1:
        raise NotApplicable
    spots = []
    for n in v.shape:
        kind = b.choice([":", "::-1", "1:", "::2", "-2::-2", "part"])
        if kind == "part":
            start = b.number(0, max(n - 1, 0))
            kind = f"{start}:{b.number(start, n)}"
        spots.append(kind)
    return b.emit("slice_", exact, f"{{0}}[{', '.join(spots)}]", v)


@op("view")
def broadcast_to(b, v=None):
    v = v or b.pick(high=4)
    shape = [b.choice([3, 2, 7]) if n == 1 and b.coin() else n for n in v.shape]
    if v.ndim < 5 and b.coin():
        shape = [b.choice([2, 3, 5])] + shape
    return b.emit("broadcast_to", exact, f"mx.broadcast_to({{0}}, {tuple(shape)})", v)


@op("view")
def expand_dims(b, v=None):
    v = v or b.pick(high=5)
    if v.ndim > 5:
        raise NotApplicable
    axis = b.number(-v.ndim - 1, v.ndim)
    return b.emit("expand_dims", exact, f"mx.expand_dims({{0}}, {axis})", v)


@op("view")
def squeeze(b, v=None):
    v = v or b.pick(low=1)
    ones = [i for i, n in enumerate(v.shape) if n == 1]
    if not ones:
        raise NotApplicable
    return b.emit("squeeze", exact, f"mx.squeeze({{0}}, {b.choice(ones)})", v)


@op("view")
def reshape(b, v=None):
    v = v or b.pick()
    shape = [n for n in v.shape if b.coin() or n == 0] if b.coin() else list(v.shape)
    left = v.size // max(int(np.prod(shape, dtype=np.int64)), 1)
    shape.insert(b.number(0, len(shape)), left)
    for n in (2, 3, 5):
        if shape[0] and shape[0] % n == 0 and b.coin():
            shape[:1] = [n, shape[0] // n]
    return b.emit("reshape", exact, f"mx.reshape({{0}}, {tuple(shape)})", v)


@op("view")
def moveaxis(b, v=None):
    v = v or b.pick(low=2)
    if v.ndim < 2:
        raise NotApplicable
    source = f"mx.moveaxis({{0}}, {b.axis(v)}, {b.axis(v)})"
    return b.emit("moveaxis", exact, source, v)


@op("view")
def contiguous(b):
    flag = b.choice([False, True])
    return b.emit(
        "contiguous", exact, f"mx.contiguous({{0}}, allow_col_major={flag})", b.pick()
    )


@op("view")
def view_bits(b):
    """Another integer type over the same bytes."""
    v = b.pick(INTS, low=1)
    to = b.choice(INTS)
    return b.emit("view_bits", exact, f"mx.view({{0}}, mx.{to})", v)


@op("view")
def astype(b):
    v = b.pick()
    to = b.choice(ALL).replace("bool", "bool_")
    source = "{0}"
    if v.dtype in FC and to in INTS:
        # Outside the type's range, and of NaN, a cast is undefined.
        if v.dtype in COMPLEX:
            v = b.emit("real", exact, "mx.real({0})", v)
        low = 0 if to.startswith("u") else -100
        source = f"mx.where(({{0}} >= {low}) & ({{0}} < 100), {{0}}, 0)"
    return b.emit("astype", exact, f"{source}.astype(mx.{to})", v)


# Elementwise.

POINTWISE = {name: (oracle, limit) for name, oracle, limit in UNARY}
# Growing functions see small arguments, or all that follows is infinite.
TAME = {"exp": 4, "expm1": 4, "sinh": 4, "cosh": 4}


@op("elementwise", *POINTWISE)
def pointwise(b, name):
    v = b.pick(FLOATS)
    function, limit = POINTWISE[name]

    def oracle(x):  # some go through the items of one axis
        return function(x.reshape(-1)).reshape(x.shape)

    if name in TAME and not b.coin(4):
        v = b.emit("minimum", exact, f"mx.minimum({{0}}, {TAME[name]})", v)
    if name.startswith("erf") and v.size > 3000:  # a slow oracle
        raise NotApplicable
    if v.size == 0 and name.startswith("erf"):
        raise NotApplicable
    bound = units(limit) if limit else None
    if name == "sigmoid":
        # 1 - y cancels for large arguments: units of 1 as well.
        def bound(want, x):
            return 7 * U * want + 2 * U

    return b.emit(name, close(oracle, bound), f"mx.{name}({{0}})", v)


EXACT_UNARY = {
    "abs": REALS,
    "bitwise_invert": BOOL + INTS,
    "ceil": FLOATS,
    "conjugate": COMPLEX,
    "floor": FLOATS,
    "imag": COMPLEX,
    "isfinite": FLOATS,
    "isnan": FLOATS,
    "logical_not": ALL,
    "negative": NUMBERS,
    "real": COMPLEX,
    "round": FLOATS,
    "sign": REALS,
    "square": INTS,
    "stop_gradient": ALL,
}


@op("elementwise", *EXACT_UNARY)
def exact_unary(b, name):
    return b.emit(name, exact, f"mx.{name}({{0}})", b.pick(EXACT_UNARY[name]))


@op("elementwise")
def square_of_floats(b):
    return b.emit(
        "square_of_floats", close(np.square, rounded), "mx.square({0})", b.pick(FLOATS)
    )


EXACT_BINARY = {
    **dict.fromkeys(("add", "multiply"), BOOL + INTS),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), BOOL + INTS),
    **dict.fromkeys(("equal", "not_equal", "logical_and", "logical_or"), ALL),
    **dict.fromkeys(("greater", "greater_equal", "less", "less_equal"), REALS),
    **dict.fromkeys(("maximum", "minimum"), REALS),
    "subtract": INTS,
}


@op("elementwise", *(f"{name}_exact" for name in EXACT_BINARY))
def exact_binary(b, name):
    function = name.removesuffix("_exact")
    v = b.pick(EXACT_BINARY[function])
    return b.emit(name, exact, f"mx.{function}({{0}}, {{1}})", v, b.beside(v))


@op("elementwise", "left_shift", "right_shift")
def shift(b, name):
    v = b.pick(INTS)
    return b.emit(name, exact, f"mx.{name}({{0}}, {{1}} & 7)", v, b.beside(v))


@op("elementwise", "floor_divide", "remainder_of_integers", "power_of_integers")
def integer_division(b, name):
    v = b.pick(INTS)
    w = b.beside(v)
    if name == "power_of_integers":
        return b.emit(name, exact, "mx.power({0}, {1} & 3)", v, w)
    function = "floor_divide" if name == "floor_divide" else "remainder"
    # Division by zero, and of the least number by -1, is undefined.
    source = f"mx.{function}({{0}}, mx.maximum({{1}}, 1))"
    return b.emit(name, exact, source, v, w)


def add_bound(want, x, y):
    return rounded(want)


def complex_product(want, x, y):
    # Two products and a sum in each part: 2 u of |x||y|, over both parts.
    size = np.abs(x) * np.abs(y)
    return overflows(size, 4 * U * size + 4 * TINY)


def complex_quotient(want, x, y):
    # A product with the conjugate, |y|^2 and a division, 3 roundings each;
    # |y|^2 must be in range, and not so small that its terms are flushed.
    square = np.abs(y) ** 2
    safe = (square < MAX) & (square > TINY * 2**24) & (np.abs(x * y) < MAX)
    safe &= np.abs(x * y) > TINY * 2**24
    return np.where(safe, 12 * U * np.abs(want), np.inf)


def log_add_exp(want, x, y):
    # log1p(exp(-d)), d of error u |d|, where d exp(-d) < 1: a few u of 1; then
    # the sum with the larger one.
    return 4 * U * (np.maximum(np.abs(x), np.abs(y)) + 1)


def remainder_bound(want, x, y):
    # fmod is exact, y is then added once. Quotients of 2^100 take the kernel
    # through several steps, which need y's bits to be normal numbers.
    return np.where(np.abs(y) > 2.0**-90, U * np.abs(y), np.inf)


BINARY = {
    "add": (np.add, add_bound, FC),
    "subtract": (np.subtract, add_bound, FC),
    "multiply": (np.multiply, add_bound, FLOATS),
    "multiply_complex": (np.multiply, complex_product, COMPLEX),
    "divide": (np.divide, units(1), FLOATS),
    "divide_complex": (np.divide, complex_quotient, COMPLEX),
    "logaddexp": (np.logaddexp, log_add_exp, FLOATS),
    "arctan2": (np.arctan2, units(4), FLOATS),
    "remainder": (np.remainder, remainder_bound, FLOATS),
}


@op("elementwise", *BINARY)
def binary(b, name):
    oracle, bound, dtypes = BINARY[name]
    v = b.pick(dtypes)
    function = name.removesuffix("_complex")
    source = f"mx.{function}({{0}}, {{1}})"
    return b.emit(name, close(oracle, bound), source, v, b.beside(v))


@op("elementwise")
def power(b):
    """2 units, as test_math.py asks."""
    v = b.pick(FLOATS)
    base = b.emit("abs", exact, "mx.abs({0})", v)
    y = b.emit("clip", exact, "mx.clip({0}, -3, 3)", b.beside(v))
    rule = close(np.power, units(2))
    return b.emit("power", rule, "mx.power({0}, {1})", base, y)


def tame_complex(b):
    """A complex value of size at most 1: z / (1 + |z|)."""
    z = b.pick(COMPLEX)
    size = b.emit("abs_complex", close(np.abs, hypot_bound), "mx.abs({0})", z)
    rule = close(lambda r: (r + 1).astype(np.complex128), rounded)
    size = b.emit("add", rule, "({0} + 1).astype(mx.complex64)", size)
    rule = close(np.divide, complex_quotient)
    return b.emit("divide_complex", rule, "{0} / {1}", z, size)


def hypot_bound(want, z):
    return np.where(
        (want < 2.0**60) & (want > 2.0**-50), 4 * U * want, np.where(z == 0, 0, np.inf)
    )


# What test_math.py asks of them, 4e-6 of the size, where that is not about a
# zero of the function.
@op("elementwise", "exp_complex", "cos_complex", "cosh_complex", "abs_complex")
def complex_unary(b, name):
    z = tame_complex(b)
    function = name.removesuffix("_complex")
    rule = close(getattr(np, function), lambda want, z: 4e-6 * np.abs(want))
    return b.emit(name, rule, f"mx.{function}({{0}})", z)


@op("elementwise")
def sign_complex(b):
    rule = close(csign, lambda want, z: np.where(np.abs(z) > 1e-15, 8 * U, np.inf))
    return b.emit("sign_complex", rule, "mx.sign({0})", tame_complex(b))


@op("elementwise")
def where(b):
    v = b.pick()
    w = b.beside(v)
    if b.coin():
        x = b.pick(REALS, also=lambda x: x.shape == v.shape)
        m = b.emit("greater_exact", exact, "{0} > 0", x)
    else:
        m = b.viewed(b.leaf(v.shape, "bool"), lambda x: x.shape == v.shape)
    return b.emit("where", exact, "mx.where({0}, {1}, {2})", m, v, w)


@op("elementwise")
def scalars(b):
    """Python scalars, exact in every dtype."""
    v = b.pick(REALS)
    k = b.choice([2, 3, 5])
    if v.dtype in INTS:
        return b.emit("scalars", exact, f"{{0}} * {k} + 1", v)
    rule = close(lambda x: k * x, lambda want, x: U * np.abs(want))
    return b.emit("scalars", rule, f"{{0}} * {k}", v)


# Reductions.


def drawn_axes(b, v):
    """An axis, several, or all of them; as source, and as a tuple."""
    if v.ndim == 0 or b.coin(4):
        return None, tuple(range(v.ndim))
    axes = tuple(i for i in range(v.ndim) if b.coin()) or (b.number(0, v.ndim - 1),)
    return (axes[0] - v.ndim if len(axes) == 1 else axes), axes


def count(v, axes):
    return int(np.prod([v.shape[a] for a in axes], dtype=np.int64))


REDUCED = {
    "all": ALL,
    "any": ALL,
    "max": REALS + BOOL,
    "min": REALS + BOOL,
    "sum_exact": BOOL + INTS,
    "prod_exact": BOOL + INTS,
}


@op("reduce", *REDUCED)
def exact_reduction(b, name):
    function = name.removesuffix("_exact")
    v = b.pick(REDUCED[name])
    source, axes = drawn_axes(b, v)
    if function in ("max", "min") and count(v, axes) == 0:
        raise NotApplicable
    keep = b.choice([False, True])
    text = f"mx.{function}({{0}}, axis={source}, keepdims={keep})"
    rule = exact
    if v.size == 0:  # MLX's CPU reads beyond an array without items
        rule = constant(function in ("all", "prod"))
    return b.emit(name, rule, text, v)


@op("reduce", "sum", "prod", "mean", "logsumexp")
def reduction(b, name):
    v = b.pick(FLOATS if name == "logsumexp" else FC)
    source, axes = drawn_axes(b, v)
    n, keep = count(v, axes), b.choice([False, True])
    how = dict(axis=axes, keepdims=keep)
    if name == "mean" and not 0 < n <= 1024 or name == "logsumexp" and n == 0:
        raise NotApplicable  # 1 / n is a subnormal of float16 for more

    def sum_bound(want, x):
        total = np.sum(np.abs(x), **how)
        return overflows(total, n * U * total)

    def mean_bound(want, x):
        # The sum and 1 / n round to the dtype before they are multiplied.
        unit = UNIT[v.dtype]
        total = np.sum(np.abs(x), **how)
        top = 65504.0 if v.dtype == "float16" else MAX
        bound = (n * U + unit) * total / n + 3 * unit * np.abs(want)
        return np.where(total < top, bound, np.inf)

    def prod_bound(want, x):
        # Any group of factors may be multiplied first.
        size = np.abs(x)
        safe = np.prod(np.maximum(size, 1), **how) < MAX
        safe &= np.prod(np.where(size < 1, size, 1), **how) > TINY * 2**24
        return np.where(safe, 4 * n * U * np.abs(want), np.inf)

    def log_bound(want, x):
        # exp(x - top): u |x - top|, 2 units; n terms; 2 units of the log, and
        # a rounding after top is added.
        top = np.max(x, **how)
        away = np.max(np.where(np.isfinite(x), np.abs(x), 0), **how)
        bound = (2 * away + n + 8) * U + 4 * U * away
        if axes != (v.ndim - 1,):
            # MLX's frontend takes other axes apart: differences, exponentials,
            # their sum, its log and the result each round to the dtype.
            bound = bound + UNIT[v.dtype] * (4 * away + 4 + np.abs(want))
            bound = bound + n * FLOOR[v.dtype]
        return np.where(np.isfinite(top), bound, 0)

    def log_sum_exp(x):
        top = np.max(x, axis=axes, keepdims=True)
        safe = np.where(np.isfinite(top), top, 0)
        y = np.log(np.sum(np.exp(x - safe), **how))
        return y + np.reshape(safe, np.shape(y))

    oracles = {
        "sum": (lambda x: np.sum(x, **how), sum_bound),
        "prod": (lambda x: np.prod(x, **how), prod_bound),
        "mean": (lambda x: np.mean(x, **how), mean_bound),
        "logsumexp": (log_sum_exp, log_bound),
    }
    text = f"mx.{name}({{0}}, axis={source}, keepdims={keep})"
    return b.emit(name, close(*oracles[name]), text, v)


@op("reduce", "argmax", "argmin")
def arg_reduction(b, name):
    v = b.pick(REALS, nonempty=True)
    axis = None if v.ndim == 0 or b.coin(4) else b.axis(v)
    keep = b.choice([False, True])
    text = f"mx.{name}({{0}}, axis={axis}, keepdims={keep})"
    return b.emit(name, exact, text, v)


# Scans.


@op("scan", "cummax", "cummin", "cumsum_exact", "cumprod_exact")
def exact_scan(b, name):
    function = name.removesuffix("_exact")
    v = b.pick(REALS if function in ("cummax", "cummin") else INTS, low=1)
    text, *how = scan_arguments(b, v)
    rule = exact
    if v.dtype in FLOATS and v.size:  # NaN stays NaN
        rule = exactly(lambda x: np_scan(function, x, *how))
    return b.emit(name, rule, f"mx.{function}({{0}}, {text})", v)


def scan_arguments(b, v):
    axis, reverse, inclusive = b.axis(v), b.coin(), not b.coin()
    text = f"axis={axis}, reverse={reverse}, inclusive={inclusive}"
    return text, axis % v.ndim, reverse, inclusive


@op("scan", "cumsum", "cumprod", "logcumsumexp")
def scan(b, name):
    v = b.pick(FLOATS if name == "logcumsumexp" else FC, low=1)
    text, axis, reverse, inclusive = scan_arguments(b, v)
    n = v.shape[axis]

    def oracle(x):
        if x.size == 0:
            return x
        return np_scan(name, x, axis, reverse, inclusive)

    def bound(want, x):
        if x.size == 0:
            return 0.0
        size = np.abs(x)
        if name == "cumsum":
            part = np_scan(name, size, axis, reverse, True)
            return overflows(size.sum(axis, keepdims=True), n * U * part)
        if name == "cumprod":
            safe = np.prod(np.maximum(size, 1), axis, keepdims=True) < MAX
            low = np.prod(np.where(size < 1, size, 1), axis, keepdims=True)
            safe &= low > TINY * 2**24
            return np.where(safe, 4 * n * U * np.abs(want), np.inf)
        # Each step: 4 u (|x| + 1), and passes on the error of the one before.
        size = np.where(np.isfinite(size), size, 0)
        top = np.max(size, axis, keepdims=True) + np.log(n)
        return n * 4 * U * (top + 1)

    return b.emit(name, close(oracle, bound), f"mx.{name}({{0}}, {text})", v)


# Sorts.


@op("sort", "sort", "argsort")
def sort(b, name):
    v = b.pick(ALL, low=1)
    return b.emit(name, exact, f"mx.{name}({{0}}, axis={b.axis(v)})", v)


@op("sort")
def partition(b):
    """Which order the halves have is free: both are sorted after."""
    v = b.pick(REALS, low=1, nonempty=True)
    axis = b.number(0, v.ndim - 1)
    n = v.shape[axis]
    k = b.number(0, n - 1)
    at = ":, " * axis
    part = f"mx.partition({{0}}, {k}, axis={axis})"
    source = f"mx.sort({part}[{at}{b.choice([f':{k + 1}', f'{k}:'])}], axis={axis})"
    return b.emit("partition", exact, source, v)


@op("sort")
def topk(b):
    v = b.pick(REALS, low=1, nonempty=True)
    axis = b.axis(v)
    k = b.number(1, v.shape[axis])
    source = f"mx.sort(mx.topk({{0}}, {k}, axis={axis}), axis={axis})"
    return b.emit("topk", exact, source, v)


@op("sort")
def argpartition(b):
    v = b.pick(REALS, low=1, nonempty=True)
    axis = b.number(0, v.ndim - 1)
    k = b.number(0, v.shape[axis] - 1)
    at = ":, " * axis
    order = f"mx.argpartition({{0}}, {k}, axis={axis})[{at}:{k + 1}]"
    source = f"mx.sort(mx.take_along_axis({{0}}, {order}, {axis}), axis={axis})"
    return b.emit("argpartition", exact, source, v)


@op("sort")
def searchsorted(b):
    v = b.pick(INTS + ("float32",), low=1, high=1)
    ordered = b.emit("sort", exact, "mx.sort({0})", v)
    side = b.choice(["left", "right"])
    source = f'mx.searchsorted({{0}}, {{1}}, side="{side}")'
    return b.emit("searchsorted", exact, source, ordered, b.beside(v))


# Joins.


@op("join")
def concatenate(b):
    v = b.pick(low=1)
    axis = b.number(0, v.ndim - 1)
    parts = [v]
    for _ in range(b.number(1, 3)):
        shape = (*v.shape[:axis], b.choice([2, 0, 1, 5]), *v.shape[axis + 1 :])
        w = v if b.coin(4) else b.leaf(shape, v.dtype)
        parts.append(b.viewed(w, lambda x, shape=w.shape: x.shape == shape))
    names = ", ".join(f"{{{i}}}" for i in range(len(parts)))
    return b.emit("concatenate", exact, f"mx.concatenate([{names}], {axis})", *parts)


@op("join")
def stack(b):
    v = b.pick(high=4)
    w = b.pick((v.dtype,), also=lambda x: x.shape == v.shape)
    axis = b.number(-v.ndim - 1, v.ndim)
    return b.emit("stack", exact, f"mx.stack([{{0}}, {{1}}, {{0}}], {axis})", v, w)


@op("join")
def split(b):
    v = b.pick(low=1, nonempty=True)
    axis = b.axis(v)
    at = b.number(0, v.shape[axis])
    outs = b.emit("split", exact, f"mx.split({{0}}, [{at}], {axis})", v, outs=2)
    return b.choice(outs)


@op("join")
def pad(b):
    v = b.pick(low=1)
    width = [(b.number(0, 2), b.number(0, 2)) for _ in v.shape]
    value = "" if v.dtype in BOOL else f", constant_values={b.choice([0, 3])}"
    return b.emit("pad", exact, f"mx.pad({{0}}, {width}{value})", v)


@op("join", "tile", "repeat", "roll")
def rearranged(b, name):
    v = b.pick(low=1, nonempty=True)
    axis, n = b.axis(v), b.number(1, 3)
    if name == "tile":
        counts = [b.choice([1, 2, 3]) for _ in v.shape]
        return b.emit(name, exact, f"mx.tile({{0}}, {counts})", v)
    return b.emit(name, exact, f"mx.{name}({{0}}, {n}, axis={axis})", v)


@op("join")
def tri(b):
    v = b.pick(REALS, low=2)
    function = b.choice(["tril", "triu"])
    return b.emit("tri", exact, f"mx.{function}({{0}}, {b.number(-2, 2)})", v)


# Generators.


@op("join")
def arange(b):
    dtype = b.choice(REALS)
    start, n = b.number(0, 20), b.choice([5, 0, 1, 33, 100])
    return b.emit("arange", exact, f"mx.arange({start}, {start + n}, dtype=mx.{dtype})")


@op("join")
def random_bits(b):
    shape, seed = b.shape(0, 3), b.number(0, 9)
    key = f"key=mx.random.key({seed})"
    source = f"mx.random.randint(0, 100, shape={shape}, {key})"
    return b.emit("random_bits", exact, source)
