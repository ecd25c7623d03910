"""More operations of random programs: indices, products, norms, attention,
convolutions, transforms, quantization."""

from __future__ import annotations

import numpy as np

from mlx_vulkan.cases import BOOL, COMPLEX, FLOATS, INTS, REALS
from mlx_vulkan.cases.attention import attention
from mlx_vulkan.cases.conv import convolve
from mlx_vulkan.cases.formats import unpack
from mlx_vulkan.cases.norm import np_layer, np_rms
from mlx_vulkan.cases.oracles import butterflies, np_softmax
from property_program import NotApplicable, op
from property_rules import (
    FLOOR,
    MAX,
    TINY,
    UNIT,
    U,
    close,
    exact,
    exactly,
    outputs_of,
    overflows,
    report,
)

FC = FLOATS + COMPLEX
ALL = BOOL + REALS + COMPLEX

# Indices.


def indices(b, n, shape, dtypes=INTS):
    """Indices below n: an int value of the program modulo n, or a leaf's."""
    if n == 0:
        raise NotApplicable
    v = None
    if b.coin(3):
        found = [v for v in b.values if v.dtype in dtypes and v.shape == shape]
        v = b.choice(found) if found else None
    v = v or b.viewed(b.leaf(shape, b.choice(dtypes), "wide"), _shaped(shape))
    return b.emit("remainder_of_integers", exact, f"mx.remainder({{0}}, {n})", v)


def _shaped(shape):
    return lambda v: v.shape == shape


def small_shape(b):
    return tuple(b.choice([3, 1, 2, 7]) for _ in range(b.number(0, 2)))


@op("index")
def take(b):
    v = b.pick(low=1, nonempty=True)
    axis = None if b.coin(4) else b.axis(v)
    n = v.size if axis is None else v.shape[axis]
    if n > 100:  # int8 indices: 2,049 is taken as its low bits
        i = indices(b, n, small_shape(b), ("int32", "uint32", "int64"))
    else:
        i = indices(b, n, small_shape(b))
    return b.emit("take", exact, f"mx.take({{0}}, {{1}}, axis={axis})", v, i)


@op("index")
def gather_two(b):
    v = b.pick(low=2, high=4, nonempty=True)
    wide = ("int32", "uint32")
    shape = small_shape(b)
    i = indices(b, v.shape[0], shape, wide)
    j = indices(b, v.shape[-1], b.choice([shape, ()]), wide)
    spots = ["{1}"] + [b.choice([":", "::-1", "1:"]) for _ in v.shape[1:-1]] + ["{2}"]
    return b.emit("gather_two", exact, f"{{0}}[{', '.join(spots)}]", v, i, j)


@op("index")
def take_along_axis(b):
    v = b.pick(low=1, nonempty=True)
    axis = b.number(0, v.ndim - 1)
    shape = (*v.shape[:axis], b.choice([3, 1, 8]), *v.shape[axis + 1 :])
    i = indices(b, v.shape[axis], shape, ("int32", "uint32"))
    source = f"mx.take_along_axis({{0}}, {{1}}, {axis})"
    return b.emit("take_along_axis", exact, source, v, i)


@op("index")
def put_along_axis(b):
    """At places that are all different."""
    v = b.pick(low=1, nonempty=True)
    axis = b.number(0, v.ndim - 1)
    i = b.emit("argsort", exact, f"mx.argsort({{0}}, axis={axis})", v)
    n = b.number(1, v.shape[axis])
    i = b.emit("slice_", exact, f"{{0}}[{':, ' * axis}:{n}]", i)
    u = b.viewed(b.leaf(i.shape, v.dtype), _shaped(i.shape))
    source = f"mx.put_along_axis({{0}}, {{1}}, {{2}}, {axis})"
    return b.emit("put_along_axis", exact, source, v, i, u)


SCATTERED = {
    "scatter_add": tuple(t for t in INTS if t[-2:] != "64") + BOOL,
    "scatter_maximum": tuple(t for t in REALS if t[-2:] != "64"),
    "scatter_minimum": tuple(t for t in REALS if t[-2:] != "64"),
    "scatter_multiply": ("int32", "uint32", "int16", "uint8"),
}


@op("index", *SCATTERED)
def scatter(b, name):
    """Repeated places, where the order does not matter."""
    v = b.pick(SCATTERED[name], low=1, high=4, nonempty=True)
    i = indices(b, v.shape[0], small_shape(b), ("int32", "uint32"))
    shape = (*i.shape, *v.shape[1:])
    u = b.viewed(b.leaf(shape, v.dtype), _shaped(shape))
    function = name.removeprefix("scatter_")
    if v.dtype in FLOATS:
        # Which of 0 and -0 is the larger is left to the order: no -0.
        v = b.emit("scalars", exact, "{0} + 0", v)
        u = b.emit("scalars", exact, "{0} + 0", u)

    def extreme(x, i, u):  # NaN stays NaN
        out = x.copy()
        getattr(np, function).at(out, i.astype(np.int64), u)
        return out

    rule = exactly(extreme) if v.dtype in FLOATS else exact
    return b.emit(name, rule, f"{{0}}.at[{{1}}].{function}({{2}})", v, i, u)


@op("index")
def scatter_add_floats(b):
    """Repeated places in any order: the bits vary from run to run. Each of the
    n sums at a place rounds to the dtype."""
    v = b.pick(FLOATS, low=1, high=4, nonempty=True)
    i = indices(b, v.shape[0], small_shape(b), ("int32", "uint32"))
    shape = (*i.shape, *v.shape[1:])
    u = b.viewed(b.leaf(shape, v.dtype, "normal"), _shaped(shape))
    n = i.size
    unit = UNIT[v.dtype]

    def oracle(x, i, u):
        out = x.copy()
        np.add.at(out, i.astype(np.int64), u)
        return out

    def bound(want, x, i, u):
        total = oracle(np.abs(x), i, np.abs(u))
        top = 65504.0 if v.dtype == "float16" else MAX
        return np.where(total < top, n * unit * total, np.inf)

    rule = close(oracle, bound)
    source = "{0}.at[{1}].add({2})"
    return b.emit("scatter_add_floats", rule, source, v, i, u, repeatable=False)


@op("index")
def scatter_set(b):
    """At rows that are all different."""
    v = b.pick(low=1, high=4, nonempty=True)
    order = b.leaf((v.shape[0],), "int32", "wide")
    i = b.emit("argsort", exact, "mx.argsort({0})", order)
    n = b.number(1, v.shape[0])
    i = b.emit("slice_", exact, f"{{0}}[{b.choice([f':{n}', f'{n - 1}::-1'])}]", i)
    shape = (n, *v.shape[1:])
    u = b.viewed(b.leaf(shape, v.dtype), _shaped(shape))
    return b.emit(
        "scatter_set", exact, "{out} = mx.array({0})\n{out}[{1}] = {2}", v, i, u
    )


@op("index")
def slice_update(b):
    v = b.pick(low=1, nonempty=True)
    spots = [b.choice([":", "1:", "::-1", "::2", ":1"]) for _ in v.shape]
    spot = ", ".join(spots)
    part = b.emit("slice_", exact, f"{{0}}[{spot}]", v)
    u = part if b.coin(3) else b.leaf(part.shape, v.dtype)
    u = b.viewed(u, _shaped(part.shape))
    source = f"{{out}} = mx.array({{0}})\n{{out}}[{spot}] = {{1}}"
    forms = ["set"] + ["add"] * (v.dtype in INTS) + ["maximum"] * (v.dtype in REALS)
    form = b.choice(forms)
    if form != "set":
        source = f"{{0}}.at[{spot}].{form}({{1}})"
    return b.emit("slice_update", exact, source, v, u)


@op("index")
def dynamic_slice(b):
    v = b.pick(low=1, nonempty=True)
    axis = b.number(0, v.ndim - 1)
    size = list(v.shape)
    size[axis] = b.number(1, v.shape[axis])
    i = indices(b, v.shape[axis] - size[axis] + 1, (1,), ("int32",))
    shape = tuple(size)
    if b.coin():
        source = f"mx.slice({{0}}, {{1}}, axes=({axis},), slice_size={shape})"
        return b.emit("dynamic_slice", exact, source, v, i)
    u = b.viewed(b.leaf(shape, v.dtype), _shaped(shape))
    source = f"mx.slice_update({{0}}, {{1}}, {{2}}, axes=({axis},))"
    return b.emit("dynamic_slice", exact, source, v, u, i)


@op("index")
def masked_set(b):
    v = b.pick(low=1, nonempty=True)
    m = b.viewed(b.leaf(v.shape, "bool"), _shaped(v.shape))
    u = b.leaf((), v.dtype)
    source = "{out} = mx.array({0})\n{out}[{1}] = {2}"
    return b.emit("masked_set", exact, source, v, m, u)


# Products.


def product_bound(want, x, y, n):
    total = np.abs(x) @ np.abs(y)
    return overflows(total, (n + 2) * U * total)


@op("matmul")
def matmul(b):
    v = b.pick(FC, low=1, high=4)
    k = v.shape[-1]
    if k > 4100:
        raise NotApplicable
    batch = v.shape[:-2] if b.coin() else ()
    shape = (*batch, k, b.choice([5, 1, 3, 16, 33, 64]))
    shape = shape[-2:-1] if b.coin(6) else shape
    w = b.viewed(b.leaf(shape, v.dtype, "normal"), _shaped(shape))
    factor = 4 if v.dtype in COMPLEX else 1  # products of 2 roundings, sums of 2n
    rule = close(
        np.matmul, lambda want, x, y: factor * product_bound(want, x, y, k), finite=True
    )
    return b.emit("matmul", rule, "{0} @ {1}", v, w)


@op("matmul")
def self_product(b):
    """Both operands are views of one array."""
    v = b.pick(FLOATS, low=2, high=4)
    if v.shape[-2] > 300:
        raise NotApplicable
    t = b.emit("swapaxes", exact, "mx.swapaxes({0}, -1, -2)", v)
    k = v.shape[-1]
    rule = close(
        np.matmul, lambda want, x, y: product_bound(want, x, y, k), finite=True
    )
    return b.emit("self_product", rule, "{0} @ {1}", v, t)


@op("matmul")
def addmm(b):
    v = b.pick(FLOATS, low=2, high=3)
    k, n = v.shape[-1], b.choice([5, 1, 16, 33])
    if k > 4100:
        raise NotApplicable
    w = b.viewed(b.leaf((k, n), v.dtype, "normal"), _shaped((k, n)))
    c = b.leaf(b.choice([(n,), (v.shape[-2], n), (1, n)]), v.dtype, "normal")
    alpha, beta = b.choice([1.0, 0.5, -2.0]), b.choice([1.0, 0.0, 0.5])

    def bound(want, c, x, y):
        total = abs(alpha) * (np.abs(x) @ np.abs(y)) + abs(beta) * np.abs(c)
        return overflows(total, (k + 4) * U * total)

    rule = close(lambda c, x, y: alpha * (x @ y) + beta * c, bound, finite=True)
    source = f"mx.addmm({{0}}, {{1}}, {{2}}, alpha={alpha}, beta={beta})"
    return b.emit("addmm", rule, source, c, v, w)


@op("matmul")
def gather_mm(b):
    v = b.pick(FLOATS, low=2, high=3, nonempty=True)
    k = v.shape[-1]
    if k > 4100 or v.ndim == 3 and v.shape[0] > 100:
        raise NotApplicable
    shape = (4, k, b.choice([5, 1, 16]))
    w = b.viewed(b.leaf(shape, v.dtype, "normal"), _shaped(shape))
    i = indices(b, 4, v.shape[:-2] or (3,), ("uint32",))

    def oracle(x, w, i):
        return x @ w[i.astype(np.int64)]

    def bound(want, x, w, i):
        return product_bound(want, x, w[i.astype(np.int64)], k)

    rule = close(oracle, bound, finite=True)
    source = "mx.gather_mm({0}, {1}, rhs_indices={2})"
    if v.ndim == 3:
        source = f"mx.gather_mm({{0}}, {{1}}, mx.arange({v.shape[0]}), {{2}})"
    return b.emit("gather_mm", rule, source, v, w, i)


# Norms.


def softmax_bound(want, x):
    # exp((x - top)(1 + u)): |x - top| u and 2 units, for each term; their sum:
    # n u; reciprocal and product.
    n = x.shape[-1]
    away = x - np.max(x, -1, keepdims=True)
    away = np.where(np.isfinite(away), np.abs(away), 0)
    mean = np.sum(np.where(want > 0, want * away, 0), -1, keepdims=True)
    return (away + mean + n + 12) * U * np.abs(want)


@op("norm")
def softmax(b):
    v = b.pick(FLOATS, low=1, nonempty=True)
    precise = b.choice([False, True])
    rule = close(np_softmax, softmax_bound)
    source = f"mx.softmax({{0}}, axis=-1, precise={precise})"
    return b.emit("softmax", rule, source, v)


@op("norm")
def rms_norm(b):
    v = b.pick(FLOATS, low=1, nonempty=True)
    n, unit = v.shape[-1], UNIT[v.dtype]

    # A sum of n squares, a root and products; the normal value rounds to the
    # dtype before the weight.
    def bound(want, x, w=0.0):
        total = np.sum(x * x, -1, keepdims=True)
        size = ((n + 8) * U + unit) * np.abs(want) + FLOOR[v.dtype] * np.abs(w)
        return overflows(total, size)

    rule = close(np_rms, bound, finite=True)
    if b.coin(3):
        return b.emit("rms_norm", rule, "mx.fast.rms_norm({0}, None, 1e-5)", v)
    w = b.viewed(b.leaf((n,), v.dtype, "normal"), _shaped((n,)))
    return b.emit("rms_norm", rule, "mx.fast.rms_norm({0}, {1}, 1e-5)", v, w)


@op("norm")
def layer_norm(b):
    v = b.pick(FLOATS, low=1, nonempty=True)
    n, unit = v.shape[-1], UNIT[v.dtype]
    w = b.viewed(b.leaf((n,), v.dtype, "normal"), _shaped((n,)))
    c = b.viewed(b.leaf((n,), v.dtype, "normal"), _shaped((n,)))

    def bound(want, x, w, c):
        # The mean loses n u of the mean magnitude, and so does each x - mean;
        # that moves the variance by the mean of 2 d dx, and the root by half.
        d = np.abs(x - np.mean(x, -1, keepdims=True))
        dx = n * U * np.mean(np.abs(x), -1, keepdims=True) + U * d
        variance = np.mean(d * d, -1, keepdims=True) + 1e-5
        moved = np.mean(2 * d * dx + dx * dx, -1, keepdims=True) / variance + n * U
        y = dx / np.sqrt(variance) + d / np.sqrt(variance) * (moved / 2 + 8 * U)
        size = np.abs(w) * d / np.sqrt(variance)
        # Rounded to the dtype before the weight, and before the shift.
        bound = 1.1 * np.abs(w) * y + 2 * unit * size + U * (size + np.abs(c))
        bound = bound + FLOOR[v.dtype] * (np.abs(w) + 1)
        squares = np.sum(x * x, -1, keepdims=True)
        return overflows(squares, np.where(moved < 0.1, bound, np.inf))

    rule = close(np_layer, bound, finite=True)
    source = "mx.fast.layer_norm({0}, {1}, {2}, 1e-5)"
    return b.emit("layer_norm", rule, source, v, w, c)


# Attention.


@op("attention")
def sdpa(b):
    dtype = b.choice(FLOATS)
    heads, kv = b.choice([(2, 1), (1, 1), (4, 2)])
    n, dim = b.choice([1, 2, 9, 33]), b.choice([64, 32, 80, 128])
    keys = n + b.choice([0, 1, 30])

    def operand(h, length):
        shape = (1, h, length, dim)
        if b.coin():
            return b.viewed(b.leaf(shape, dtype, "normal"), _shaped(shape))
        flat = b.leaf((1, length, h, dim), dtype, "normal")
        return b.emit("swapaxes", exact, "mx.swapaxes({0}, 1, 2)", flat)

    q, k = operand(heads, n), operand(kv, keys)
    v = k if b.coin(6) else operand(kv, keys)
    args = [q, k, v]
    mask = b.choice(["None", '"causal"', "{3}"])
    if mask == "{3}":
        shape = b.choice([(n, keys), (1, heads, n, keys)])
        args.append(b.viewed(b.leaf(shape, b.choice(["bool", dtype])), _shaped(shape)))
    scale = dim**-0.5
    unit = UNIT[dtype] if dtype != "float32" else 0.0

    def oracle(q, k, v, m=None):
        if m is not None and args[3].dtype == "bool":
            m = m.astype(bool)  # close() hands numbers over
        return attention(q, k, v, "causal" if mask == '"causal"' else m)

    def bound(want, q, k, v, m=None):
        # A score: dim + 3 roundings of |q||k| (of the dtype where a matrix unit
        # takes a scaled q); exp of a difference of scores; n terms; weights
        # that a matrix unit takes in the dtype.
        groups = q.shape[1] // k.shape[1]
        k, v = np.repeat(np.abs(k), groups, 1), np.repeat(np.abs(v), groups, 1)
        size = np.max(np.abs(q) @ np.swapaxes(k, -1, -2), -1, keepdims=True) * scale
        if m is not None and m.dtype.kind == "f":
            size = size + np.max(np.abs(m))
        score = (dim + 3) * U * size + unit * size
        relative = 2 * score + 4 * U * size + (2 * keys + 20) * U + 2 * unit
        # Weights that sum to 1 take at most the largest value.
        return relative * 1.1 * np.max(v, -2, keepdims=True)

    source = f"mx.fast.scaled_dot_product_attention({{0}}, {{1}}, {{2}}, scale={scale}"
    rule = close(oracle, bound, finite=True)
    return b.emit("sdpa", rule, f"{source}, mask={mask})", *args)


@op("attention")
def rope(b):
    v = b.pick(FLOATS, low=3, high=4, nonempty=True)
    half = v.shape[-1] // 2
    if half == 0 or v.shape[-2] > 300:
        raise NotApplicable
    offset, traditional = b.choice([0, 3]), b.choice([False, True])

    def oracle(x, size=False):
        angle = (offset + np.arange(x.shape[-2]))[:, None] * 10_000.0 ** (
            -np.arange(half) / half
        )
        c, s = np.cos(angle), np.sin(angle)
        if traditional:
            p, q = x[..., 0 : 2 * half : 2], x[..., 1 : 2 * half : 2]
        else:
            p, q = x[..., :half], x[..., half : 2 * half]
        if size:
            y = np.abs(p) + np.abs(q)
            y = (angle + 1) * y
            parts = (y, y)
        else:
            parts = (p * c - q * s, p * s + q * c)
        join = np.stack(parts, -1) if traditional else np.concatenate(parts, -1)
        out = np.zeros_like(x) if size else x.copy()
        out[..., : 2 * half] = join.reshape(*x.shape[:-1], 2 * half)
        return out

    def bound(want, x):
        # The frequency exp2(-d log2(base)): its exponent is at most 14, so 14 u
        # and 2 units; times the position: that much of an angle. Sine and
        # cosine: 2 units each.
        return 24 * U * oracle(x, size=True)

    source = f"mx.fast.rope({{0}}, {2 * half}, traditional={traditional}, "
    source += f"base=10000.0, scale=1.0, offset={offset})"
    rule = close(oracle, bound, finite=True)
    return b.emit("rope", rule, source, v)


# Convolutions.


@op("conv")
def conv(b):
    axes = b.choice([1, 2])
    v = b.pick(FLOATS, low=axes + 2, high=axes + 2, nonempty=True)
    channels = v.shape[-1]
    if max(v.shape) > 300 or channels > 40:
        raise NotApplicable
    groups = channels if b.coin(4) else 1
    taps = tuple(b.choice([3, 1, 2]) for _ in range(axes))
    shape = (groups * b.choice([2, 1, 5]), *taps, channels // groups)
    stride = tuple(b.choice([1, 2]) for _ in range(axes))
    padding = tuple(b.choice([1, 0, 2]) for _ in range(axes))
    dilation = tuple(b.choice([1, 1, 2]) for _ in range(axes))
    spans = zip(v.shape[1:-1], padding, taps, dilation)
    if any(n + 2 * p < d * (t - 1) + 1 for n, p, t, d in spans):
        raise NotApplicable
    w = b.viewed(b.leaf(shape, v.dtype, "normal"), _shaped(shape))

    def oracle(x, w):
        ones = (1,) * axes
        return convolve(x, w, stride, padding, padding, dilation, ones, False)

    n = int(np.prod(shape[1:]))

    def bound(want, x, w):
        total = oracle(np.abs(x), np.abs(w))
        return overflows(total, (n + 2) * U * total)

    how = f"stride={stride}, padding={padding}, dilation={dilation}, groups={groups}"
    how = how.replace(",)", ")") if axes == 1 else how
    rule = close(oracle, bound, finite=True)
    return b.emit("conv", rule, f"mx.conv{axes}d({{0}}, {{1}}, {how})", v, w)


# Transforms.


@op("transform", "fft", "ifft", "rfft", "irfft")
def fourier(b, name):
    dtypes = ("float32",) if name == "rfft" else COMPLEX
    v = b.pick(dtypes, low=1, nonempty=True)
    axis = b.axis(v)
    n = v.shape[axis]
    if n > 3000 or name == "irfft" and n < 2:
        raise NotApplicable
    function = getattr(np.fft, name)
    length = 2 * (n - 1) if name == "irfft" else n

    def bound(want, x):
        # log2 stages of a few roundings each lose that much of the norm. A
        # prime length goes through three transforms of up to 4 n.
        stages = 3 * (np.log2(length) + 3)
        norm = np.sqrt(np.sum(np.abs(x) ** 2, axis, keepdims=True))
        if name == "irfft":
            norm = np.sqrt(2) * norm
        share = length if name in ("ifft", "irfft") else 1
        size = norm * np.sqrt(length) / share
        return overflows(norm**2 * length, 4 * stages * U * size)

    rule = close(lambda x: function(x, axis=axis), bound, finite=True)
    return b.emit(name, rule, f"mx.fft.{name}({{0}}, axis={axis})", v)


@op("transform")
def hadamard(b):
    v = b.pick(FLOATS, low=1, nonempty=True)
    n = v.shape[-1]
    if n & (n - 1):
        raise NotApplicable

    def bound(want, x):
        total = np.sum(np.abs(x), -1, keepdims=True)
        return overflows(total, (np.log2(n) + 3) * U * total / np.sqrt(n))

    rule = close(butterflies, bound, finite=True)
    return b.emit("hadamard", rule, "mx.hadamard_transform({0})", v)


# Quantization.


def dequantize(codes, scales, biases, bits, group):
    q = unpack(codes, bits)
    q = q.reshape(*q.shape[:-1], -1, group)
    return q * scales[..., None], biases[..., None] + np.zeros_like(q)


@op("quantized")
def quantized_matmul(b):
    dtype = b.choice(FLOATS)
    bits, group = b.choice([4, 8, 3, 6, 2]), b.choice([64, 32, 128])
    k = group * b.choice([1, 2, 3])
    n = b.choice([16, 8, 33, 5])
    rows = b.choice([1, 2, 7, 33])
    transpose = not b.coin(3)
    shape = (n, k) if transpose else (k, b.choice([1, 2]) * group)
    w = b.viewed(b.leaf(shape, dtype, "normal"), _shaped(shape))
    how = f"group_size={group}, bits={bits}"
    source = f"mx.quantize({{0}}, {how})"
    parts = b.emit("quantize", quantized_rule(bits, group), source, w, outs=3)
    shape = (*b.choice([(), (2,)]), rows, k)
    x = b.viewed(b.leaf(shape, dtype, "normal"), _shaped(shape))

    def halves(c, s, z):
        scaled, shift = dequantize(c.astype(np.uint32), s, z, bits, group)
        both = scaled + shift, np.abs(scaled) + np.abs(shift)
        both = [h.reshape(*h.shape[:-2], -1) for h in both]
        return [np.swapaxes(h, -1, -2) for h in both] if transpose else both

    def oracle(x, *parts):
        return x @ halves(*parts)[0]

    def bound(want, x, *parts):
        # Codes and biases may be summed apart, so magnitudes are too; a matrix
        # unit takes the weights in the dtype.
        weights, sizes = halves(*parts)
        unit = UNIT[dtype] if dtype != "float32" else 0.0
        size = np.abs(x)
        return (k + 8) * U * (size @ sizes) + unit * (size @ np.abs(weights))

    unpacked = f"mx.dequantize({{0}}, {{1}}, {{2}}, {how})"
    b.emit("dequantize", dequantized_rule(bits, group, dtype), unpacked, *parts)
    source = f"mx.quantized_matmul({{0}}, {{1}}, {{2}}, {{3}}, transpose={transpose}, "
    rule = close(oracle, bound, finite=True)
    return b.emit("quantized_matmul", rule, f"{source}{how})", x, *parts)


def dequantized_rule(bits, group, dtype):
    def oracle(c, s, z):
        scaled, shift = dequantize(c.astype(np.uint32), s, z, bits, group)
        return (scaled + shift).reshape(*c.shape[:-1], -1)

    def bound(want, c, s, z):
        # The product may round to the dtype before the sum.
        scaled, _ = dequantize(c.astype(np.uint32), s, z, bits, group)
        return (UNIT[dtype] * np.abs(scaled)).reshape(want.shape)

    return close(oracle, bound)


def quantized_rule(bits, group):
    """Every weight lies within a step and a half of its code. The step is range
    / (2^bits - 1), made larger or smaller by less than half a code at the far
    end, so that the other end may be cut off by up to one step; a code is
    rounded by half a step. Scales and biases round to the dtype."""

    def rule(step, run):
        codes, scales, biases = outputs_of(step, run)
        w = run.value(step.args[0])
        scaled, shift = dequantize(codes, scales, biases, bits, group)
        got = (scaled + shift).reshape(w.shape)
        unit = UNIT[step.outs[1].dtype]
        sizes = np.abs(scaled) + np.abs(shift)
        step_size = np.abs(scales)[..., None] + np.zeros_like(scaled)
        limit = (1.5 * step_size + 2 * unit * sizes).reshape(w.shape) + TINY
        limit = limit + 1e-7  # MLX's least scale
        report(step, run, got, w, np.abs(got - w) <= limit)

    return rule
