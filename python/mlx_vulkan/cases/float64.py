"""A few operations of each family in float64, for devices that have it; functions at
all arguments are those of tests/backend/test_float64.py."""

import numpy as np

from . import Case, arrays, positive

SHAPE = (3, 5, 37)


def select(x):
    return np.where(x > 5, x, -x)


def argmin(x):
    return x.argmin(-1).astype(np.uint32)


ROWS = [
    ("add", (SHAPE, SHAPE), lambda mx, x, y: x + y, np.add),
    ("divide", (SHAPE, (37,)), lambda mx, x, y: x / y, np.divide),
    ("exp", (SHAPE,), lambda mx, x: mx.exp(-x), lambda x: np.exp(-x)),
    ("log", (SHAPE,), lambda mx, x: mx.log(x), np.log),
    ("power", (SHAPE, SHAPE), lambda mx, x, y: x**y, np.power),
    ("select", (SHAPE,), lambda mx, x: mx.where(x > 5, x, -x), select),
    ("sum", (SHAPE,), lambda mx, x: x.sum(axis=1), lambda x: x.sum(axis=1)),
    ("sum_all", (SHAPE,), lambda mx, x: x.sum(), np.sum),
    ("max", (SHAPE,), lambda mx, x: x.max(axis=-1), lambda x: x.max(axis=-1)),
    ("argmin", (SHAPE,), lambda mx, x: mx.argmin(x, -1), argmin),
    ("cumsum", (SHAPE,), lambda mx, x: mx.cumsum(x, -1), lambda x: x.cumsum(-1)),
    ("sort", (SHAPE,), lambda mx, x: mx.sort(x, -1), lambda x: np.sort(x, -1)),
    ("matmul", ((3, 40, 70), (70, 33)), lambda mx, x, y: x @ y, np.matmul),
]
CASES = [
    Case(f"float64_{name}", arrays(*shapes, gen=positive), fn, oracle, ("float64",))
    for name, shapes, fn, oracle in ROWS
]
