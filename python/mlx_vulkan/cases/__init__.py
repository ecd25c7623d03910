"""The table of operations. Its rows are checked by tests/backend/test_cases.py, each
in every dtype and memory layout, and by `mlx-vulkan selftest` in some of them.
`mlx-vulkan bench` times those that have inputs for it.

A family's rows are the list CASES of a module of this package, which is found by
itself. A row:

    from . import Case, FLOATS, Raw, arrays

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
        gen=...) makes such a function; generators are in values.py.
fn      f(mx, *arrays) -> array or tuple of arrays, on the default stream.
oracle  f(*numpy) -> NumPy array or tuple. Floats arrive as float64 (complex as
        complex128) already rounded to the dtype under test, everything else in
        its own dtype. CPU instead of a function: MLX's CPU stream in the same
        dtype, for what NumPy cannot say.
rtol, atol  numbers, or a dict by dtype name; default TOLERANCE. They apply to
        the dtype of the output. exact=True: equal values, NaN equals NaN.
layouts names of LAYOUTS to go through, all by default.
donate  True: inputs that the operation may overwrite must give bitwise the
        same result as ones that it may not.
repeatable  False where atomics add in any order: other bits in each run.
flops   f(*input shapes) -> operations, for the benchmark's FLOP/s.
tags    words for selection by pytest -k. The first one, and "vjp"
        if it is there, is the family in the self-test's report; default: the
        module's name.
big     True: takes long on a software device, and is left out there.

Tests take float32 rows of the modules IN_FLOAT64 in float64, too.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import pkgutil
from collections.abc import Callable

import numpy as np

from .values import (  # noqa: F401, the rows import them from here
    COMPLEX,
    FLOATS,
    LAYOUTS,
    SIGNED,
    UNSIGNED,
    Raw,
    arrays,
    bits,
    dtype_name,
    nonzero,
    normal,
    outputs,
    positive,
    rounded,
    special,
    spread,
    to_mx,
    to_numpy,
    uniform,
    unit,
    wide,
)

BOOL = ("bool",)
SHORT = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex64": "c64"}
SHORT["float64"] = "f64"
SHORT |= {name: name[0] + name.lstrip("uint") for name in SIGNED + UNSIGNED}
INTS = UNSIGNED + SIGNED
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
# The same number of units for float64, and as many for NumPy's reference.
TO_FLOAT64 = 2.0**-28

# Modules whose float32 rows devices with float64 compute in that, too, but for names
# that begin so: these have no such kernel.
IN_FLOAT64 = ("compiled", "copy", "elementwise", "index", "matmul", "reduce", "scan")
NOT_IN_FLOAT64 = ("block_masked_mm", "logsumexp", "random", "segmented_mm")
NOT_IN_FLOAT64 += tuple(f"scatter_{op}" for op in ("add", "max", "min", "multiply"))

# An oracle: compare with MLX's own CPU stream.
CPU = "cpu"


class WrongValues(AssertionError):
    """The result of a case differs from its oracle."""


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
    repeatable: bool = True
    bench: Callable | None = None
    flops: Callable | None = None
    tags: tuple = ()
    big: bool = False

    @property
    def family(self) -> str:
        return self.tags[0] + ("_vjp" if "vjp" in self.tags else "")

    def tolerance(self, dtype):
        if self.exact or dtype not in (*TOLERANCE, "float64"):
            return 0.0, 0.0

        def pick(given, place):
            values = {name: both[place] for name, both in TOLERANCE.items()}
            if given is not None:
                own = isinstance(given, dict)
                values |= given if own else dict.fromkeys(TOLERANCE, given)
            return values.get(dtype, values["float32"] * TO_FLOAT64)

        return pick(self.rtol, 0), pick(self.atol, 1)


@dataclasses.dataclass
class Bound:
    """An input of one run: its values and its dtype."""

    values: np.ndarray
    dtype: str
    layouts: bool

    def oracle_value(self):
        return rounded(self.values, self.dtype)


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
            a, x = to_mx(mx, b.values, b.dtype), b.values
        elif name != "contiguous":
            changed = True
        placed.append(a)
        values.append(Bound(x, b.dtype, b.layouts))
    return (placed, values) if changed else None


def keeps_subnormals(mx):
    """Whether float32 subnormals survive: a driver's shaderDenormPreserveFloat32."""
    x = mx.array(np.float32(np.finfo(np.float32).tiny / 4))
    return (x + x).item() != 0


def as_temporary(mx, a):
    """A fresh copy that nothing else refers to once it is used."""
    flat = mx.reshape(a, (-1,))
    half = a.size // 2
    return mx.reshape(mx.concatenate([flat[:half], flat[half:]]), a.shape)


@contextlib.contextmanager
def on_cpu(mx):
    """MLX's CPU, without fusion (which needs a C++ compiler there)."""
    mx.disable_compile()
    try:
        with mx.stream(mx.cpu):
            yield
    finally:
        mx.enable_compile()


def expected(mx, case, bound):
    """The oracle's outputs as NumPy, not yet rounded to the output dtype."""
    if case.oracle == CPU:
        with on_cpu(mx):
            args = [to_mx(mx, b.values, b.dtype) for b in bound]
            return [to_numpy(mx, a) for a in outputs(case.fn(mx, *args))]
    with np.errstate(all="ignore"):
        return outputs(case.oracle(*[b.oracle_value() for b in bound]))


def check(mx, case, results, want, bound=(), placed=()):
    """Raises WrongValues if `results`, MLX arrays, are not the oracle's `want`, or
    if the arrays `placed` do not hold the values of `bound` any more."""
    if len(results) != len(want):
        raise WrongValues(f"there are {len(results)} outputs, not {len(want)}")
    for i, (a, right) in enumerate(zip(results, want)):
        dtype = dtype_name(a)
        label = f"output {i} ({dtype} {tuple(a.shape)})"
        compare(to_numpy(mx, a), rounded(right, dtype), *case.tolerance(dtype), label)
    for item, a in zip(bound, placed):
        held = rounded(item.values, item.dtype)
        if not np.array_equal(to_numpy(mx, a), held, equal_nan=held.dtype.kind in "fc"):
            raise WrongValues("an input was overwritten")


def compare(got, want, rtol: float, atol: float, label: str) -> None:
    """Raises WrongValues that names the largest error, where and how much."""
    if got.shape != want.shape:
        raise WrongValues(f"{label} has the shape {got.shape}, not {want.shape}")
    if got.dtype.kind != want.dtype.kind:
        raise WrongValues(f"{label} is {got.dtype}, where {want.dtype} is right")
    exact = rtol == 0 and atol == 0
    with np.errstate(all="ignore"):
        bad = ~((got == want) | ((got != got) & (want != want)))
        if not exact:
            error = np.where(bad, np.abs(got - want), 0.0)
            allowed = atol + rtol * np.abs(want)
            bad &= ~(np.isfinite(want) & np.isfinite(got) & (error <= allowed))
    if not bad.any():
        return
    first = np.unravel_index(np.argmax(bad), bad.shape)
    text = (
        f"{label}: {int(bad.sum())} of {bad.size} values are wrong; the first at "
        f"{[int(i) for i in first]} is {got[first]!s}, not {want[first]!s}"
    )
    if exact:
        raise WrongValues(text + " (must be equal)")
    worst = float(np.max(np.where(np.isfinite(error), error, 0)))
    raise WrongValues(
        f"{text}; largest error {worst:.3g}, allowed here {float(allowed[first]):.3g} "
        f"({rtol:.2g} of the value + {atol:.2g})"
    )


def is_software(mx) -> bool:
    """Whether mx.gpu is a software device; without a GPU, MLX's CPU counts as one."""
    if not mx.is_available(mx.gpu):
        return True
    return str(mx.device_info(mx.gpu).get("architecture", "")).endswith("cpu")


def has_float64(mx) -> bool:
    """Whether the default device computes with float64."""
    try:
        return mx.abs(mx.array(-1.0, mx.float64)).item() == 1
    except ValueError:
        return False


def load_cases(software: bool = False, float64: bool = False) -> list[Case]:
    """Every row, in the order of the modules' names; no big ones for a software
    device, and float64 only if it is asked for."""
    cases, names = [], set()
    for module in sorted(found.name for found in pkgutil.iter_modules(__path__)):
        rows = importlib.import_module(f".{module}", __package__)
        for case in getattr(rows, "CASES", ()):
            if case.name in names:
                raise ValueError(f"{module}: two cases are named {case.name}")
            names.add(case.name)
            dtypes = tuple(d for d in case.dtypes if float64 or d != "float64")
            if float64 and "float32" in dtypes and module in IN_FLOAT64:
                if not case.name.startswith(NOT_IN_FLOAT64):
                    dtypes += ("float64",)
            if dtypes and not (software and case.big):
                tags = tuple(dict.fromkeys((*case.tags, module)))
                cases.append(dataclasses.replace(case, tags=tags, dtypes=dtypes))
    return cases


@contextlib.contextmanager
def describe(text):
    """Adds `text`, the work in progress, to exceptions."""
    try:
        yield
    except Exception as e:
        e.add_note(text)
        raise
