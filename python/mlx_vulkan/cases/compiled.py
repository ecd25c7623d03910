"""Graphs that mx.compile fuses into one kernel."""

import numpy as np

from . import FLOATS, INTS, Case, arrays
from .elementwise import SHAPE, erf, sigmoid

CASES = []
SHAPES = {
    "same": [SHAPE] * 3,
    "broadcast": [SHAPE, (SHAPE[-1],), ()],
    "long": [(70001,)] * 3,
}
# Five roundings to the dtype, as in separate steps, of terms up to 8: half a unit each
# to nearest (a whole one is granted). 32 units of float32 for the functions.
UNIT = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
ERROR = {dtype: 5 * unit + 32 * UNIT["float32"] for dtype, unit in UNIT.items()}
ROUNDED = dict(rtol=ERROR, atol={dtype: 8 * error for dtype, error in ERROR.items()})


def swiglu(mx, a, b, c):
    return mx.sigmoid(a) * a * b + c


def gelu(mx, a, b, c):
    return a * 0.5 * (1 + mx.erf(a / 2**0.5)) + mx.tanh(b) * mx.exp(-mx.abs(c))


def choices(mx, a, b, c):
    m = mx.maximum(a, b)
    return mx.where((m > c) | mx.isnan(a), m, -c), m > c


def wraps(mx, a, b, c):
    return (a + b) * c - mx.square(a), mx.minimum(mx.abs(b), mx.abs(c))


def np_swiglu(a, b, c):
    return sigmoid(a) * a * b + c


def np_gelu(a, b, c):
    return a * 0.5 * (1 + erf(a / 2**0.5)) + np.tanh(b) * np.exp(-np.abs(c))


def np_choices(a, b, c):
    m = np.maximum(a, b)
    return np.where((m > c) | np.isnan(a), m, -c), m > c


def np_wraps(a, b, c):
    return (a + b) * c - np.square(a), np.minimum(np.abs(b), np.abs(c))


def fused(f):
    return lambda mx, *args: mx.compile(lambda *given: f(mx, *given))(*args)


for shape, shapes in SHAPES.items():
    for f, oracle, dtypes, how in (
        (swiglu, np_swiglu, FLOATS, ROUNDED),
        (gelu, np_gelu, FLOATS, ROUNDED),
        (choices, np_choices, FLOATS, dict(exact=True)),
        (wraps, np_wraps, INTS, dict(exact=True)),
    ):
        CASES.append(
            Case(
                f"compiled_{f.__name__}_{shape}",
                arrays(*shapes),
                fused(f),
                oracle,
                dtypes,
                tags=("compiled",),
                **how,
            )
        )
