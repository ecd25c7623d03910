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

from .values import FLOATS, INTS, LAYOUTS, to_mx

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
