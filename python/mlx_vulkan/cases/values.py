"""Values of every dtype, and their layouts in memory, for the rows of the table."""

import dataclasses

import numpy as np

FLOATS = ("float32", "float16", "bfloat16")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
SIGNED = ("int8", "int16", "int32", "int64")
INTS = SIGNED + UNSIGNED
COMPLEX = ("complex64",)


@dataclasses.dataclass(frozen=True)
class Raw:
    """An input that keeps its own dtype: indices, masks, codes, keys."""

    value: np.ndarray
    layouts: bool = False


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
    if dtype == "bool":
        return np.ones(shape, bool)
    if dtype in INTS:
        return np.where(x == 0, np.ones_like(x), x)
    return np.where(np.abs(x) < 0.1, 0.5, x)


def wide(rng, shape, dtype):
    """The whole range of an integer; floats over 20 binades."""
    if dtype in INTS:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    if dtype == "bool":
        return normal(rng, shape, dtype)
    exponent = rng.uniform(-10, 10, shape)
    x = rng.choice([-1.0, 1.0], shape) * 2.0**exponent
    return x + 1j * rng.normal(size=shape) if dtype in COMPLEX else x


def special(rng, shape, dtype):
    """Floats, half of them NaN, infinities, zeros of both signs and tiny values (half's
    subnormals must survive; float32's need not)."""
    x = np.array(normal(rng, shape, dtype))
    if dtype not in FLOATS or x.size == 0:
        return x
    flat = x.reshape(-1)
    tiny = 1e-7 if dtype == "float16" else 2e-38
    seeds = [np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, 1.0, -1.0]
    where = rng.permutation(flat.size)[: max(1, flat.size // 2)]
    flat[where] = rng.choice(seeds, where.size)
    return flat.reshape(shape)


def arrays(*shapes, gen=normal):
    """Inputs of these shapes; gen is one generator, or one for each."""
    gens = gen if isinstance(gen, (list, tuple)) else [gen] * len(shapes)

    def make(rng, dtype):
        return [g(rng, shape, dtype) for g, shape in zip(gens, shapes)]

    return make


# Conversions.


def rounded(x, dtype: str) -> np.ndarray:
    """The values as the dtype holds them, floats as float64, complex likewise."""
    x = np.asarray(x)
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype != "bfloat16":
            return widened(x.astype(dtype))
        # Through float32: a double rounding needs a tie at bit 24.
        bits = x.astype(np.float32).reshape(-1).view(np.uint32).astype(np.uint64)
        kept = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        kept = np.where(np.isnan(x.reshape(-1)), 0x7FC00000, kept)
        return kept.astype(np.uint32).view(np.float32).reshape(x.shape).astype(float)


def widened(x: np.ndarray) -> np.ndarray:
    wide = {"f": np.float64, "c": np.complex128}.get(x.dtype.kind)
    return x if wide is None else x.astype(wide)


def to_mx(mx, x: np.ndarray, dtype: str):
    """An evaluated MLX array. bfloat16 is converted on the CPU, exactly."""
    if dtype == "bfloat16":
        with mx.stream(mx.cpu):
            a = mx.array(rounded(x, dtype).astype(np.float32)).astype(mx.bfloat16)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            kept = mx.float64 if dtype == "float64" else None
            a = mx.array(np.asarray(x).astype(dtype), kept)
    mx.eval(a)
    return a


def to_numpy(mx, a) -> np.ndarray:
    """An MLX array as NumPy; floats as float64, complex likewise."""
    if a.dtype == mx.bfloat16:
        with mx.stream(mx.cpu):
            a = a.astype(mx.float32)
    return widened(np.array(a))


def bits(mx, a) -> bytes:
    with mx.stream(mx.cpu):
        a = mx.contiguous(a)
        return np.array(a.view(mx.uint16) if a.dtype == mx.bfloat16 else a).tobytes()


def dtype_name(a) -> str:
    return str(a.dtype).rsplit(".", 1)[-1]


def outputs(result) -> list:
    return list(result) if isinstance(result, (list, tuple)) else [result]


# Layouts: the same values, differently placed in memory. Each takes (mx, values,
# dtype) and returns an MLX array equal to values, or None where the layout makes no
# sense for the shape.

FILLER = 77  # the value between items


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


def spread(first: int, step: int, more: int, ndim: int):
    """A layout of items `step` apart from a row's item `first` on, in rows with `more`
    items beyond those."""

    def layout(mx, x, dtype):
        if x.ndim < ndim:
            return None
        n = x.shape[-1] * step
        store = np.full((*x.shape[:-1], n + more), FILLER, x.dtype)
        spot = (..., slice(first, max(first + n - step + 1, 0), step))
        store[spot] = x
        return to_mx(mx, store, dtype)[spot]

    return layout


def _offset(mx, x, dtype):
    """Contiguous, at an address that is aligned to the item only."""
    store = np.concatenate([np.full(1, FILLER, x.dtype), x.reshape(-1)])
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


# In the order that "mixed" takes.
LAYOUTS = {
    "contiguous": to_mx,
    "transposed": _transposed,
    "swapped": _swapped,
    "stepped": spread(0, 2, 0, 1),
    "rows_padded": spread(0, 1, 3, 2),
    "negative": _negative,
    "offset": _offset,
    "broadcast": _broadcast,
}
