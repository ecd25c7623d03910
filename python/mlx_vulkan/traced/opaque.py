"""Keys, values and masks of a traced step: arrays whose length changes.

A model can hand them to attention, or compute with them by the few functions below.
Their length, and whatever else Python could decide by, raises.
"""

import mlx.core as mx

from .calls import late


class Refused(Exception):
    """The step cannot be traced."""


class Opaque:
    """An array, or several, whose axis `open`, counted from the end, has any length."""

    __slots__ = ("arrays", "open")

    def __init__(self, *arrays, open: int = -2):
        self.arrays = arrays
        self.open = open

    @property
    def __class__(self):
        raise Refused("the model asks what keys, values or a mask are")

    def __bool__(self):
        raise Refused("the model asks whether there are keys, values or a mask")

    @property
    def dtype(self):
        return only(self).dtype

    def swapaxes(self, first: int, second: int):
        n = only(self).ndim
        pair = first - n if first >= 0 else first, second - n if second >= 0 else second
        open = sum(pair) - self.open if self.open in pair else self.open
        return _made("swapaxes", open, [self], *pair)

    def __matmul__(self, other):
        return matmul(self, other)

    def __add__(self, other):
        return _each("add", self, other)

    def __mul__(self, other):
        return _each("multiply", self, other)

    def __truediv__(self, other):
        return _each("divide", self, other)

    __radd__, __rmul__ = __add__, __mul__


def is_opaque(value) -> bool:
    return type(value) is Opaque


def only(value) -> mx.array:
    if not is_opaque(value):
        return value
    if len(value.arrays) != 1:
        raise Refused("the model computes with quantized keys or values")
    return value.arrays[0]


def _made(what: str, open: int | None, operands, *how):
    result = late(what, [only(o) for o in operands], open is not None, *how)
    return result if open is None else Opaque(result, open=open)


def _each(what: str, *operands):
    """A function of each element."""
    opens = {o.open for o in operands if is_opaque(o)}
    if len(opens) > 1:
        raise Refused(f"{what} of arrays whose lengths change differently")
    (open,) = opens
    arrays = []
    for o in operands:
        if type(o) in (int, float):  # as mlx.core reads numbers
            o = mx.array(o, only(operands[0]).dtype)
        if not is_opaque(o) and o.ndim >= -open and o.shape[open] != 1:
            raise Refused(f"{what} of arrays whose lengths differ")
        arrays.append(o)
    return _made(what, open, arrays)


def matmul(left, right):
    lines, rows = is_opaque(left) and left.open, is_opaque(right) and right.open
    if lines == -1 and rows == -2:
        return _made("matmul", None, [left, right])
    if lines == -2 and rows is False:
        return _made("matmul", -2, [left, right])
    if lines is False and rows == -1:
        return _made("matmul", -1, [left, right])
    raise Refused("a product of arrays whose lengths change differently")


def expand_dims(a, axis: int):
    n = only(a).ndim
    axis = axis - n - 1 if axis >= 0 else axis
    return _made("expand_dims", a.open - (axis > a.open), [a], axis)


def tanh(a):
    return _each("tanh", a)


def where(condition, x, y):
    if not all(is_opaque(o) or type(o) is mx.array for o in (condition, x, y)):
        raise Refused("where() with a number")
    return _each("where", condition, x, y)


def softmax(a, axis: int, precise: bool = False):
    return _made("softmax", a.open, [a], axis, precise)


# Functions of mlx.core, which get these when a model is traced.
FUNCTIONS = (expand_dims, tanh, where, softmax, matmul)


def choosing(function, untraced):
    """The function above if an argument is opaque, else MLX's."""

    def either(*args, **kwargs):
        if any(map(is_opaque, args)) or any(map(is_opaque, kwargs.values())):
            return function(*args, **kwargs)
        return untraced(*args, **kwargs)

    return either
