"""Keys, values and masks of a traced step: arrays whose length changes.

A model can hand them to attention, or compute with them by the few functions below.
Their length, and whatever else Python could decide by, raises.
"""

import mlx.core as mx

from .calls import late


class Refused(Exception):
    """The step cannot be traced."""


class Shape:
    """Of an Opaque: the length that changes raises."""

    __slots__ = ("shape", "open")

    def __init__(self, shape: tuple, open: int):
        self.shape = shape
        self.open = open

    def __getitem__(self, axis):
        n = len(self.shape)
        if type(axis) is not int or axis % n == self.open + n:
            raise Refused("the model asks how many keys or values there are")
        return self.shape[axis]


class Opaque:
    """An array whose axis `open`, counted from the end, has any length."""

    __slots__ = ("array", "open")
    __class__ = mx.array  # as isinstance() would say without a trace

    def __init__(self, array: mx.array, open: int = -2):
        self.array = array
        self.open = open

    def __getattr__(self, name):
        raise Refused(f"the model asks keys, values or a mask for {name}")

    def __bool__(self):
        raise Refused("the model asks whether there are keys, values or a mask")

    @property
    def dtype(self):
        return self.array.dtype

    @property
    def shape(self):
        return Shape(self.array.shape, self.open)

    @property
    def ndim(self):
        return self.array.ndim

    def swapaxes(self, first: int, second: int):
        n = self.ndim
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


def plain(value) -> mx.array:
    return value.array if is_opaque(value) else value


def _made(operation: str, open: int | None, operands, *how):
    result = late(operation, [plain(o) for o in operands], open is not None, *how)
    return result if open is None else Opaque(result, open)


def _each(operation: str, *operands):
    """A function of each element."""
    opens = {o.open for o in operands if is_opaque(o)}
    if len(opens) > 1:
        raise Refused(f"{operation} of arrays whose lengths change differently")
    (open,) = opens
    # mlx.core gives a number the type of the other operand.
    numbers = [type(o) in (int, float) for o in operands]
    (*_, like) = (o for o, number in zip(operands, numbers) if not number)
    arrays = []
    for o, number in zip(operands, numbers):
        if number:
            o = mx.array(o, like.dtype)
        if not is_opaque(o) and o.ndim >= -open and o.shape[open] != 1:
            raise Refused(f"{operation} of arrays whose lengths differ")
        arrays.append(o)
    return _made(operation, open, arrays)


def _open(value) -> int | None:
    return value.open if is_opaque(value) else None


# The open axis of a product, by those of its factors.
PRODUCTS = {(-1, -2): None, (-2, None): -2, (None, -1): -1}


def _product(operation: str, factors: tuple, operands, *how):
    if factors not in PRODUCTS:
        raise Refused(f"{operation} of arrays whose lengths change differently")
    return _made(operation, PRODUCTS[factors], operands, *how)


def matmul(left, right):
    return _product("matmul", (_open(left), _open(right)), [left, right])


def quantized_matmul(x, w, scales, biases, transpose, group_size, bits):
    rows = -3 - w.open if transpose else w.open
    how = transpose, group_size, bits
    return _product("quantized_matmul", (_open(x), rows), [x, w, scales, biases], *how)


def expand_dims(a, axis: int):
    axis = axis - a.ndim - 1 if axis >= 0 else axis
    return _made("expand_dims", a.open - (axis > a.open), [a], axis)


def tanh(a):
    return _each("tanh", a)


def where(condition, x, y):
    return _each("where", condition, x, y)


def softmax(a, axis: int, precise: bool = False):
    return _made("softmax", a.open, [a], axis, precise)


# Functions of mlx.core, which get these when a model is traced.
FUNCTIONS = (expand_dims, matmul, quantized_matmul, softmax, tanh, where)


def choosing(function, untraced):
    """The function above if an argument is opaque, else MLX's."""

    def either(*args, **kwargs):
        if any(map(is_opaque, args)) or any(map(is_opaque, kwargs.values())):
            return function(*args, **kwargs)
        return untraced(*args, **kwargs)

    return either
