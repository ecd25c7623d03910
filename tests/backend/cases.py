"""The table of operations: one row is checked by test_cases.py on every dtype
and memory layout, and timed by benchmarks/ops.py.

A family's rows live in cases_<family>.py beside this file, which exports a
list CASES; the file is found by its name. A row:

    from cases import Case, FLOATS, Raw, arrays

    CASES = [
        Case(
            "softmax_rows",
            arrays((5, 257), gen=normal),     # inputs; shape () and (0,) too
            fn=lambda mx, x: mx.softmax(x, axis=-1),
            oracle=lambda x: np_softmax(x),   # float64 in, float64 out
            dtypes=FLOATS,
            bench=arrays((4096, 4096)),       # left out: not timed
        ),
    ]

inputs  f(rng, dtype) -> list of NumPy arrays. They are cast to the dtype under
        test; Raw(array) keeps its own dtype and layout (indices, masks), and
        a Raw with layouts=True takes part in the layouts. arrays(*shapes,
        gen=...) makes such a function; generators are below.
fn      f(mx, *arrays) -> array or tuple of arrays, on the default stream.
oracle  f(*numpy) -> NumPy array or tuple. Floats arrive as float64 (complex as
        complex128) already rounded to the dtype under test, everything else in
        its own dtype. CPU instead of a function: MLX's CPU stream in the same
        dtype, for what NumPy cannot say.
rtol, atol  numbers, or a dict by dtype name; default TOLERANCE. They apply to
        the dtype of the output. exact=True: equal values, NaN equals NaN.
layouts names of LAYOUTS to go through, all by default.
donate  True: inputs that the operation may overwrite must give bitwise the
        same result as ones that it may not. False where an operation is not
        deterministic.
flops   f(*input shapes) -> operations, for the benchmark's FLOP/s.
tags    words for selection: pytest -k, ops.py --filter.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import pathlib
from collections.abc import Callable

import numpy as np

BOOL = ("bool",)
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
SIGNED = ("int8", "int16", "int32", "int64")
INTS = UNSIGNED + SIGNED
FLOATS = ("float32", "float16", "bfloat16")
COMPLEX = ("complex64",)
REALS = INTS + FLOATS
NUMBERS = REALS + COMPLEX
ALL = BOOL + NUMBERS

# Units in the last place of a result, roughly 8 for float32.
TOLERANCE = {
    "float32": (1e-6, 1e-6),
    "float16": (1e-3, 1e-3),
    "bfloat16": (8e-3, 8e-3),
    "complex64": (2e-6, 2e-6),
}

# An oracle: compare with MLX's own CPU stream.
CPU = "cpu"


@dataclasses.dataclass(frozen=True)
class Raw:
    """An input that keeps its own dtype."""

    value: np.ndarray
    layouts: bool = False


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    inputs: Callable
    fn: Callable
    oracle: Callable | str
    dtypes: tuple = FLOATS
    rtol: float | dict | None = None
    atol: float | dict | None = None
    exact: bool = False
    layouts: tuple | None = None
    donate: bool = True
    bench: Callable | None = None
    flops: Callable | None = None
    tags: tuple = ()

    def tolerance(self, dtype):
        if self.exact or dtype not in TOLERANCE:
            return 0.0, 0.0
        rtol, atol = TOLERANCE[dtype]

        def pick(given, default):
            if isinstance(given, dict):
                return given.get(dtype, default)
            return default if given is None else given

        return pick(self.rtol, rtol), pick(self.atol, atol)


# Generators: f(rng, shape, dtype) -> values that the dtype can hold.


def normal(rng, shape, dtype):
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in UNSIGNED:
        return rng.integers(0, 100, shape).astype(dtype)
    if dtype in SIGNED:
        return rng.integers(-50, 50, shape).astype(dtype)
    if dtype in COMPLEX:
        return rng.normal(size=shape) + 1j * rng.normal(size=shape)
    return rng.normal(size=shape)


def uniform(low, high):
    def gen(rng, shape, dtype):
        if dtype in INTS:
            return rng.integers(int(low), int(high) + 1, shape).astype(dtype)
        if dtype in COMPLEX:
            return rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)
        return rng.uniform(low, high, shape)

    return gen


positive = uniform(0.1, 10)
unit = uniform(-0.99, 0.99)


def nonzero(rng, shape, dtype):
    x = normal(rng, shape, dtype)
    if dtype == "bool":
        return np.ones(shape, bool)
    if dtype in INTS:
        return np.where(x == 0, np.ones_like(x), x)
    return np.where(np.abs(x) < 0.1, 0.5, x)


def wide(rng, shape, dtype):
    """The whole range of an integer type; floats over many binades."""
    if dtype in INTS:
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        return x
    if dtype == "bool":
        return normal(rng, shape, dtype)
    exponent = rng.uniform(-10, 10, shape)
    x = rng.choice([-1.0, 1.0], shape) * 2.0**exponent
    return x + 1j * rng.normal(size=shape) if dtype in COMPLEX else x


def special(rng, shape, dtype):
    """Floats sown with NaN, infinities, zeros of both signs, tiny values (half's
    subnormals must survive; float32's need not)."""
    x = np.array(normal(rng, shape, dtype))
    if dtype not in FLOATS or x.size == 0:
        return x
    tiny = {"float32": 2e-38, "float16": 1e-7, "bfloat16": 2e-38}[dtype]
    flat = x.reshape(-1)
    seeds = [np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, 1.0, -1.0]
    where = rng.permutation(flat.size)[: max(1, flat.size // 2)]
    flat[where] = rng.choice(seeds, where.size)
    return flat.reshape(shape)


def arrays(*shapes, gen=normal):
    """Inputs of these shapes; gen may be one generator or one for each."""
    gens = gen if isinstance(gen, (list, tuple)) else [gen] * len(shapes)

    def make(rng, dtype):
        return [g(rng, s, dtype) for g, s in zip(gens, shapes)]

    return make


# Conversions.


def round_to(x, dtype):
    """Rounds values to a dtype: the floats to float64, others to that dtype."""
    x = np.asarray(x)
    if dtype == "bfloat16":
        return from_bfloat16(to_bfloat16(x)).astype(np.float64)
    if dtype in ("float32", "float16"):
        with np.errstate(over="ignore"):
            return x.astype(dtype).astype(np.float64)
    if dtype == "complex64":
        with np.errstate(over="ignore"):
            return x.astype(np.complex64).astype(np.complex128)
    return x.astype(dtype)


def to_bfloat16(x):
    """The bits of float values as uint16, rounded to nearest even."""
    # Through float32 directly: a double rounding needs a tie at bit 24 and the
    # oracle allows for it.
    with np.errstate(over="ignore"):
        x = np.asarray(x).astype(np.float32)
    bits = np.atleast_1d(x).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    rounded = np.where(np.isnan(np.atleast_1d(x)), 0x7FC0, rounded)
    return rounded.astype(np.uint16).reshape(x.shape)


def from_bfloat16(bits):
    bits = np.asarray(bits)
    wide = np.atleast_1d(bits).astype(np.uint32) << 16
    return wide.view(np.float32).reshape(bits.shape)


def to_mx(mx, x, dtype):
    """A NumPy array as an evaluated MLX array of the named dtype."""
    if dtype == "bfloat16":
        with mx.stream(mx.cpu):
            a = mx.view(mx.array(to_bfloat16(x)), mx.bfloat16)
    else:
        with np.errstate(over="ignore"):
            a = mx.array(np.asarray(x).astype(dtype))
    mx.eval(a)
    return a


def to_np(mx, a):
    """An MLX array as NumPy: floats to float64, complex64 to complex128."""
    if a.dtype == mx.bfloat16:
        with mx.stream(mx.cpu):
            return from_bfloat16(np.array(mx.view(a, mx.uint16))).astype(np.float64)
    x = np.array(a)
    if x.dtype.kind == "f":
        return x.astype(np.float64)
    return x.astype(np.complex128) if x.dtype.kind == "c" else x


def bits_of(mx, a):
    """The bytes of an array, for bitwise comparison."""
    with mx.stream(mx.cpu):
        a = mx.contiguous(a)
        if a.dtype == mx.bfloat16:
            a = mx.view(a, mx.uint16)
    return np.array(a).tobytes()


def dtype_name(a):
    return str(a.dtype).split(".")[-1]


# Layouts: the same values, differently placed in memory. Each takes (mx,
# values, dtype) and returns an MLX array equal to values, or None where the
# layout makes no sense for the shape.

FILLER = 77  # what lies between the elements


def _contiguous(mx, x, dtype):
    return to_mx(mx, x, dtype)


def _transposed(mx, x, dtype):
    if x.ndim < 2:
        return None
    return mx.transpose(to_mx(mx, np.ascontiguousarray(x.T), dtype))


def _swapped(mx, x, dtype):
    """Only the last two axes transposed: a batch of transposed matrices."""
    if x.ndim < 3:
        return None
    store = np.ascontiguousarray(np.swapaxes(x, -1, -2))
    return mx.swapaxes(to_mx(mx, store, dtype), -1, -2)


def _stepped(mx, x, dtype):
    if x.ndim < 1:
        return None
    store = np.full((*x.shape[:-1], 2 * x.shape[-1]), FILLER, x.dtype)
    store[..., ::2] = x
    return to_mx(mx, store, dtype)[..., ::2]


def _rows_padded(mx, x, dtype):
    """Rows contiguous, but further apart than they are long."""
    if x.ndim < 2:
        return None
    store = np.full((*x.shape[:-1], x.shape[-1] + 3), FILLER, x.dtype)
    store[..., : x.shape[-1]] = x
    return to_mx(mx, store, dtype)[..., : x.shape[-1]]


def _negative(mx, x, dtype):
    if x.ndim < 1:
        return None
    flip = tuple(slice(None, None, -1) for _ in range(min(x.ndim, 2)))
    return to_mx(mx, np.ascontiguousarray(x[flip]), dtype)[flip]


def _offset(mx, x, dtype):
    """An address that is aligned to the item only."""
    store = np.concatenate([np.full(1, FILLER, x.dtype), x.reshape(-1)])
    return mx.reshape(to_mx(mx, store, dtype)[1:], x.shape)


def _broadcast(mx, x, dtype):
    """Stride zero along the first axis; values() makes x constant there."""
    if x.ndim < 1 or x.shape[0] == 0:
        return None
    return mx.broadcast_to(to_mx(mx, x[:1], dtype), x.shape)


LAYOUTS = {
    "contiguous": _contiguous,
    "transposed": _transposed,
    "swapped": _swapped,
    "stepped": _stepped,
    "rows_padded": _rows_padded,
    "negative": _negative,
    "offset": _offset,
    "broadcast": _broadcast,
}


@dataclasses.dataclass
class Bound:
    """An input of one run: its values and its dtype."""

    values: np.ndarray
    dtype: str
    layouts: bool

    def oracle_value(self):
        return round_to(self.values, self.dtype)


def bind(case, dtype, seed=0, inputs=None):
    """The inputs of a case at a dtype."""
    rng = np.random.default_rng(seed)
    bound = []
    for x in (inputs or case.inputs)(rng, dtype):
        if isinstance(x, Raw):
            bound.append(Bound(x.value, x.value.dtype.name, x.layouts))
        else:
            bound.append(Bound(np.asarray(x), dtype, True))
    return bound


def place(mx, bound, layout):
    """MLX arrays in a layout, with the values they really hold; None when the
    layout changes nothing for these inputs. "mixed" gives each input another
    layout."""
    order = list(LAYOUTS)
    placed, values, changed = [], [], layout == "contiguous"
    for i, b in enumerate(bound):
        name = layout
        if layout == "mixed":
            name = order[(i + 1) % len(order)]
        x = b.values
        if not b.layouts:
            name = "contiguous"
        if name == "broadcast" and x.ndim and x.shape[0]:
            x = np.broadcast_to(x[:1], x.shape)
        a = LAYOUTS[name](mx, x, b.dtype)
        if a is None:
            a, x = _contiguous(mx, b.values, b.dtype), b.values
        elif name != "contiguous":
            changed = True
        placed.append(a)
        values.append(Bound(x, b.dtype, b.layouts))
    return (placed, values) if changed else None


def keeps_subnormals(mx):
    """Of float32; Vulkan leaves it to the driver (shaderDenormPreserveFloat32)."""
    x = mx.array(np.float32(np.finfo(np.float32).tiny / 4))
    return (x + x).item() != 0


def as_temporary(mx, a):
    """A fresh copy that nothing else refers to once it is used."""
    flat = mx.reshape(a, (-1,))
    half = a.size // 2
    return mx.reshape(mx.concatenate([flat[:half], flat[half:]]), a.shape)


def outputs(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


def expected(mx, case, bound):
    """The oracle's outputs as NumPy, not yet rounded to the output dtype."""
    if case.oracle == CPU:
        with mx.stream(mx.cpu):
            args = [to_mx(mx, b.values, b.dtype) for b in bound]
            return [to_np(mx, a) for a in outputs(case.fn(mx, *args))]
    with np.errstate(all="ignore"):
        return outputs(case.oracle(*[b.oracle_value() for b in bound]))


def load_cases():
    """Every row, in the order of the files' names."""
    cases, names = [], set()
    for path in sorted(pathlib.Path(__file__).parent.glob("cases_*.py")):
        for case in importlib.import_module(path.stem).CASES:
            if case.name in names:
                raise ValueError(f"{path.name}: two cases are named {case.name}")
            names.add(case.name)
            cases.append(dataclasses.replace(case, tags=(*case.tags, path.stem[6:])))
    return cases


@contextlib.contextmanager
def describe(text):
    """Says in an exception what was being done."""
    try:
        yield
    except Exception as e:
        e.add_note(text)
        raise
