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

from mlx_vulkan.selftest import values
from mlx_vulkan.selftest.row import Fixed
from mlx_vulkan.selftest.values import (  # noqa: F401, the rows import them from here
    COMPLEX,
    FLOATS,
    SIGNED,
    UNSIGNED,
    arrays,
    bits,
    dtype_name,
    nonzero,
    normal,
    outputs,
    positive,
    rounded,
    spread,
    to_mx,
    to_numpy,
    uniform,
    unit,
    wide,
)

BOOL = ("bool",)
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

# An oracle: compare with MLX's own CPU stream.
CPU = "cpu"


@dataclasses.dataclass(frozen=True)
class Raw(Fixed):
    """An input that keeps its own dtype."""

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


def special(rng, shape, dtype):
    """With tiny values, too (half's subnormals must survive; float32's need not)."""
    tiny = 1e-7 if dtype == "float16" else 2e-38
    return values.special(rng, shape, dtype, (tiny, -tiny))


# Layouts: the same values, differently placed in memory. Each takes (mx,
# values, dtype) and returns an MLX array equal to values, or None where the
# layout makes no sense for the shape.


def _swapped(mx, x, dtype):
    """Only the last two axes transposed: a batch of transposed matrices."""
    if x.ndim < 3:
        return None
    store = np.ascontiguousarray(np.swapaxes(x, -1, -2))
    return mx.swapaxes(to_mx(mx, store, dtype), -1, -2)


# In the order that "mixed" takes.
LAYOUTS = {
    "contiguous": to_mx,
    "transposed": values.LAYOUTS["transposed"],
    "swapped": _swapped,
    "stepped": spread(0, 2, 0, 1),
    "rows_padded": spread(0, 1, 3, 2),
    "negative": values.LAYOUTS["negative"],
    "offset": values.LAYOUTS["offset"],
    "broadcast": values.LAYOUTS["broadcast"],
}


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
        if isinstance(x, Fixed):
            layouts = getattr(x, "layouts", False)
            bound.append(Bound(x.value, x.value.dtype.name, layouts))
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
    """Of float32; Vulkan leaves it to the driver (shaderDenormPreserveFloat32)."""
    x = mx.array(np.float32(np.finfo(np.float32).tiny / 4))
    return (x + x).item() != 0


def as_temporary(mx, a):
    """A fresh copy that nothing else refers to once it is used."""
    flat = mx.reshape(a, (-1,))
    half = a.size // 2
    return mx.reshape(mx.concatenate([flat[:half], flat[half:]]), a.shape)


def expected(mx, case, bound):
    """The oracle's outputs as NumPy, not yet rounded to the output dtype."""
    if case.oracle == CPU:
        with mx.stream(mx.cpu):
            args = [to_mx(mx, b.values, b.dtype) for b in bound]
            return [to_numpy(mx, a) for a in outputs(case.fn(mx, *args))]
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
