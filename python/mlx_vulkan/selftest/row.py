"""What a row of the self-test is: inputs, a call, what to expect, how exactly.

A row becomes cases, one for each dtype and layout in which it is run. The id of
a case, `family/name-dtype-layout`, with the seed, says everything of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import zlib
from collections.abc import Callable

import numpy as np

FLOATS = ("float32", "float16", "bfloat16")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
SIGNED = ("int8", "int16", "int32", "int64")
INTS = SIGNED + UNSIGNED
COMPLEX = ("complex64",)
ALL = (*FLOATS, "bool", *INTS, *COMPLEX)

SHORT = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex64": "c64"}
SHORT |= {name: name[0] + name.lstrip("uint") for name in INTS}

# The distance of 1 from the next number.
EPS = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
EPS["complex64"] = EPS["float32"]


@dataclasses.dataclass(frozen=True)
class Bound:
    """How far a float may be off: |got - want| <= absolute + relative * |want|.

    Kernels compute in float32, whatever the storage dtype, and round at the end.

    ulps   the function's own error, in units of float32. Vulkan allows a few
           for exp and log; composed functions (tan, arcsinh) have some tens.
    steps  roundings to the storage dtype, of the result and of what is stored
           or fed to a matrix unit on the way. Each is half an EPS to nearest; a
           whole one is granted.
    terms  products summed, times their deviation where it is not one. Partial
           sums of i products of variance one are about sqrt(i) and each
           addition rounds by up to EPS/2, so the errors of n additions in a row
           have a deviation of 0.2 n EPS; 1.5 n is seven times that. A tree of
           additions does better.
    size   magnitude of what was rounded or cancelled before the result: ulps and
           steps count for it, too. 0: relative errors only.
    grid   half the distance of the values that a quantized format can hold.
    """

    ulps: float = 8
    steps: float = 1
    terms: float = 0
    size: float = 0
    grid: float = 0

    def of(self, dtype: str) -> tuple[float, float]:
        """Relative and absolute tolerance of an output of this dtype."""
        single, own = EPS["float32"], EPS[dtype]
        relative = self.ulps * single + self.steps * own
        absolute = self.size * relative + 1.5 * self.terms * single
        return relative, absolute + self.grid


@dataclasses.dataclass(frozen=True)
class Fixed:
    """An input that keeps its own dtype: indices, masks, codes, keys."""

    value: np.ndarray


@dataclasses.dataclass(frozen=True)
class Row:
    """make(rng, dtype) gives NumPy arrays, or Fixed; fn(mx, *arrays) is run.

    want   "wide": fn on MLX's CPU, floats widened to float64; "single": widened
           to float32, for what the CPU has in no other type; "same": the CPU in
           the same dtype; or a function of the NumPy inputs (floats as float64).
    bound  None: equal to the last bit, NaN equal to NaN.
    repeatable  False where atomics add in any order.
    big    left out on software devices and by --quick.
    slow   drivers compile its kernels for long: one dtype only, but for --full.
    rare   only with --full.
    """

    name: str
    make: Callable
    fn: Callable
    dtypes: tuple = FLOATS
    bound: Bound | None = None
    want: str | Callable = "wide"
    layouts: tuple | None = None
    repeatable: bool = True
    big: bool = False
    slow: bool = False
    rare: bool = False


@dataclasses.dataclass(frozen=True)
class Case:
    """One row in one dtype and layout. `work(seed)`, where there is one, is
    called instead and returns facts for the report or raises."""

    family: str
    name: str
    row: Row | None = None
    dtype: str = ""
    layout: str = ""
    work: Callable | None = None

    @property
    def id(self) -> str:
        short = SHORT.get(self.dtype, self.dtype)
        words = [self.name, short, self.layout]
        return f"{self.family}/" + "-".join(word for word in words if word)

    def rng(self, seed: int) -> np.random.Generator:
        return np.random.default_rng([seed, zlib.crc32(self.id.encode())])


# Values that a dtype can hold.


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
    def values(rng, shape, dtype):
        if dtype in INTS:
            return rng.integers(int(low), int(high) + 1, shape).astype(dtype)
        x = rng.uniform(low, high, shape)
        return x + 1j * rng.uniform(low, high, shape) if dtype in COMPLEX else x

    return values


positive = uniform(0.1, 10)
unit = uniform(-0.99, 0.99)


def nonzero(rng, shape, dtype):
    x = normal(rng, shape, dtype)
    small = np.abs(x) < 0.1 if dtype not in INTS else x == 0
    return np.where(small, np.ones_like(x), x)


def wide(rng, shape, dtype):
    """The whole range of an integer; floats over 20 binades."""
    if dtype in INTS:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    x = normal(rng, shape, dtype)
    return x if dtype == "bool" else x * 2.0 ** rng.uniform(-10, 10, shape)


def special(rng, shape, dtype):
    """Half of it NaN, infinities and zeros of both signs; nothing subnormal,
    which a device may flush."""
    x = normal(rng, shape, dtype)
    seeds = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0], shape)
    return np.where(rng.random(shape) < 0.5, seeds, x)


def whole(rng, shape, dtype):
    """Small whole numbers: sums are exact in every dtype, and there are ties."""
    return rng.integers(0, 2 if dtype == "bool" else 9, shape).astype(float)


def arrays(*shapes, gen=normal):
    """Inputs of these shapes; gen is one generator, or one for each."""
    gens = gen if isinstance(gen, (list, tuple)) else [gen] * len(shapes)

    def make(rng, dtype):
        return [g(rng, shape, dtype) for g, shape in zip(gens, shapes)]

    return make


# Layouts: the same values, otherwise placed in memory. None: does not apply.


def rounded(x: np.ndarray, dtype: str) -> np.ndarray:
    """The values as the dtype holds them, floats as float64."""
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype != "bfloat16":
            x = np.asarray(x).astype(dtype)
            return x.astype(np.float64) if x.dtype.kind == "f" else x
        bits = np.asarray(x, np.float32).reshape(-1).view(np.uint32).astype(np.uint64)
        kept = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        kept = np.where(np.isnan(np.asarray(x).reshape(-1)), 0x7FC00000, kept)
        return kept.astype(np.uint32).view(np.float32).reshape(x.shape).astype(float)


def to_mx(mx, x: np.ndarray, dtype: str):
    """An evaluated MLX array. bfloat16 is converted on the CPU, exactly."""
    if dtype == "bfloat16":
        with mx.stream(mx.cpu):
            a = mx.array(rounded(x, dtype).astype(np.float32)).astype(mx.bfloat16)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            a = mx.array(np.asarray(x).astype(dtype))
    mx.eval(a)
    return a


def _transposed(mx, x, dtype):
    if x.ndim < 2:
        return None
    return mx.transpose(to_mx(mx, np.ascontiguousarray(x.T), dtype))


def _stepped(mx, x, dtype):
    """Every second item of rows that are further apart than they are long."""
    if x.ndim < 1:
        return None
    store = np.full((*x.shape[:-1], 2 * x.shape[-1] + 3), 77, x.dtype)
    store[..., 1 : 2 * x.shape[-1] : 2] = x
    return to_mx(mx, store, dtype)[..., 1 : 2 * x.shape[-1] : 2]


def _sliced(mx, x, dtype):
    """Dense rows, apart from each other, at an offset."""
    if x.ndim < 2:
        return None
    store = np.full((*x.shape[:-1], x.shape[-1] + 3), 77, x.dtype)
    store[..., 2:-1] = x
    return to_mx(mx, store, dtype)[..., 2:-1]


def _offset(mx, x, dtype):
    """Contiguous, at an address that is aligned to the item only."""
    store = np.concatenate([np.full(1, 77, x.dtype), x.reshape(-1)])
    return mx.reshape(to_mx(mx, store, dtype)[1:], x.shape)


def _negative(mx, x, dtype):
    if x.ndim < 1:
        return None
    flip = (slice(None, None, -1),) * min(x.ndim, 2)
    return to_mx(mx, np.ascontiguousarray(x[flip]), dtype)[flip]


def _broadcast(mx, x, dtype):
    if x.ndim < 1 or x.shape[0] == 0:
        return None
    return mx.broadcast_to(to_mx(mx, x[:1], dtype), x.shape)


def _donated(mx, x, dtype):
    """A temporary that nothing else refers to, so that it may be overwritten."""
    flat, half = x.reshape(-1), x.size // 2
    parts = [to_mx(mx, part, dtype) for part in (flat[:half], flat[half:])]
    return mx.reshape(mx.concatenate(parts), x.shape)


LAYOUTS = {
    "contiguous": to_mx,
    "transposed": _transposed,
    "stepped": _stepped,
    "sliced": _sliced,
    "offset": _offset,
    "negative": _negative,
    "broadcast": _broadcast,
    "donated": _donated,
}
FEW = ("contiguous", "sliced", "offset", "donated")
ONE = ("contiguous",)


@dataclasses.dataclass
class Input:
    """An input of a case: its values, its dtype and whether its values may be
    made constant along the first axis."""

    values: np.ndarray
    dtype: str
    free: bool


def inputs_of(case: Case, seed: int) -> list[Input]:
    found = []
    for x in case.row.make(case.rng(seed), case.dtype):
        if isinstance(x, Fixed):
            found.append(Input(x.value, x.value.dtype.name, False))
            continue
        x = np.asarray(x)
        if case.layout == "broadcast" and x.ndim and x.shape[0]:
            x = np.broadcast_to(x[:1], x.shape)
        found.append(Input(x, case.dtype, True))
    return found


def place(mx, item: Input, layout: str):
    """The MLX array of an input. Where the layout does not apply, contiguous."""
    if layout == "broadcast" and not item.free:
        layout = "contiguous"
    a = LAYOUTS[layout](mx, item.values, item.dtype)
    return to_mx(mx, item.values, item.dtype) if a is None else a


@contextlib.contextmanager
def on_cpu(mx):
    """MLX's CPU, without fusion (which needs a C++ compiler there)."""
    mx.disable_compile()
    try:
        with mx.stream(mx.cpu):
            yield
    finally:
        mx.enable_compile()
