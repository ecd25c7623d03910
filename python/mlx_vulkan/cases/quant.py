"""Quantized products, and quantization both ways, in every format."""

import numpy as np

from . import CPU, FLOATS, Case, Raw, formats, normal
from .formats import (
    AFFINE,
    E4M3,
    FORMATS,
    MXFP4,
    MXFP8,
    NVFP4,
    USUAL,
    Format,
    dequantized,
    exact,
)

FEW = ("contiguous", "rows_padded", "offset", "negative")
ONE = ("contiguous",)
ROWS = (*range(1, 10), 33, 100)


ODD = Format("affine", 3, 32)


def weights(rng, f, shape, layouts=False):
    """Codes, scales and biases; the codes take part in the layouts, or not."""
    words, *rest = formats.weights(rng, f, shape)
    return [Raw(words.value, layouts), *rest]


def bounds(k):
    """For a sum of k products x * w with |x| of 1 and |w| of at most 3.

    In float32 each of the k additions rounds partial sums of some 2 sqrt(k),
    where codes and biases are summed apart, by half a unit at most: sqrt(k) u
    times that is 2 k u in the mean; times 6 for the tail. A matrix unit takes
    the weights in the dtype itself: each moves by up to 2^-p, as large as 3, and
    sqrt(k) of those add up, again times 6. The result is rounded once.
    """
    single = 12 * k * 2.0**-24
    tail = 6 * 3 * np.sqrt(k / 3)
    return dict(
        rtol={"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7},
        atol={
            "float32": single,
            "float16": single + tail * 2.0**-11,
            "bfloat16": single + tail * 2.0**-8,
        },
    )


CASES = []


FAMILIES = {"qmm": "quantized_matmul", "gather": "gather_qmm"}


def add(name, inputs, fn, oracle, dtypes=("float32",), layouts=ONE, **more):
    word = name.partition("_")[0]
    more.setdefault("donate", False)
    more.setdefault("tags", (FAMILIES.get(word, word),))
    CASES.append(Case(name, inputs, fn, oracle, dtypes, layouts=layouts, **more))


def product(name, f, x, w, rows=None, transpose=True, strided=False, **more):
    """x (..., m, k) times w, or its transpose; with `rows`, a case for each m in it."""

    def inputs(rng, dtype):
        return [normal(rng, x, dtype), *weights(rng, f, w, strided)]

    def fn(mx, x, *w):
        def of(x):
            return mx.quantized_matmul(x, *w, transpose=transpose, **f.arguments)

        return tuple(of(x[..., :m, :]) for m in rows) if rows else of(x)

    def oracle(x, *w):
        w = dequantized(f, *w)
        y = x @ (np.swapaxes(w, -1, -2) if transpose else w)
        return tuple(y[..., :m, :] for m in rows) if rows else y

    k = x[-1]
    add(f"qmm_{name}_{f}", inputs, fn, oracle, **{**bounds(k), **more})


# Every format: matrix-vector and tiles, both ways. 35 outputs divide nothing;
# a transposed product needs whole groups there.
for i, f in enumerate(FORMATS):
    dtype = (FLOATS[i % 3],)
    product("t", f, (33, 384), (35, 384), rows=(1, 33), dtypes=dtype)
    product("n", f, (33, 37), (37, 256), (1, 33), False, dtypes=dtype)

# Sizes of a model: matrix-vector, and enough rows to dequantize the weights first.
for f in (USUAL, ODD, MXFP4, NVFP4):
    product("model", f, (1, 4096), (4096, 4096), dtypes=FLOATS, big=True)
    product("model_prompt", f, (1024, 1024), (1030, 1024), dtypes=FLOATS, big=True)

# A layer of a large model, for one row and for several.
for m, f in ((1, USUAL), (16, USUAL), (512, USUAL), (1, Format("affine", 8, 64))):
    product(
        f"bench_{m}",
        f,
        (1, 64),
        (3, 64),
        dtypes=("bfloat16",),
        bench=lambda rng, dtype, m=m, f=f: [
            normal(rng, (m, 8192), dtype),
            *formats.weights(rng, f, (8192, 8192)),
        ],
        flops=lambda x, *w: 2 * x[0] * x[1] * w[0][0],
    )

# Every number of rows, in the formats whose code differs most.
for f in (USUAL, ODD, NVFP4):
    dtypes = FLOATS if f is USUAL else ("float16",)
    product("rows_t", f, (100, 256), (130, 256), ROWS, dtypes=dtypes)
    product("rows_n", f, (100, 65), (65, 128), ROWS, False, dtypes=dtypes)
    product("aligned_n", f, (100, 72), (72, 128), ROWS, False, dtypes=dtypes)

# Rows for which matrix units have a kernel of their own, with odd numbers of
# groups, and of units of 64 items, along k.
for f, k in (
    (USUAL, 320),
    (ODD, 96),
    (Format("affine", 4, 128), 384),
    (Format("affine", 8, 32), 160),
    (MXFP8, 96),
    (NVFP4, 160),
    (NVFP4, 48),
):
    for n in (1, 70):
        rows = (2, 9, 16, 17, 32, 33, 64)
        product(f"few_rows_{n}x{k}", f, (64, k), (n, k), rows, dtypes=FLOATS[1:])

# One to four rows. Eight subgroups of matrix units share the groups of k: three or two
# each; five, three or none.
for group, k in ((64, 1472), (32, 1056)):
    f = Format("affine", 4, group)
    product(f"shared_{k}", f, (4, k), (70, k), (1, 3, 4), dtypes=FLOATS[1:])

# Two rows and more of so many outputs that another kernel takes them.
product("wide", USUAL, (8, 1024), (8200, 1024), (2, 3, 8), dtypes=FLOATS[1:], big=True)

# One output, fewer than a tile, none; a long sum.
for n in (1, 3, 0):
    product(f"{n}_outputs", USUAL, (9, 128), (n, 128), rows=(1, 9))
product("no_rows", USUAL, (0, 128), (5, 128))
product("long", USUAL, (9, 8192), (5, 8192), rows=(1, 9), dtypes=("float16",))

# Layouts of x, and of the weights' three arrays, each of its own.
for f in (USUAL, ODD, MXFP8):
    product("strided", f, (9, 256), (8, 256), (1, 9), strided=True, layouts=None)
product("strided_n", USUAL, (9, 64), (64, 128), (1, 9), False, True, layouts=None)

# Batches: one weight for all, one for each, broadcast.
for x, w in [
    ((3, 5, 128), (9, 128)),
    ((2, 3, 9, 128), (9, 128)),
    ((3, 5, 128), (3, 9, 128)),
    ((2, 3, 9, 128), (2, 3, 9, 128)),
]:
    name = f"batch_{len(x)}_{len(w)}"
    for transpose in (True, False):
        shape = w if transpose else (*w[:-2], 128, 64)
        for f in (USUAL, NVFP4):
            way = "t" if transpose else "n"
            product(
                f"{name}{way}",
                f,
                x,
                shape,
                (1, x[-2]),
                transpose,
                layouts=(*FEW, "swapped") if f is USUAL else ONE,
            )


def gathered(name, f, tokens, experts, how, transpose=True, scaled=False, **more):
    """tokens x (1 or m rows), each through the experts that `how` chooses. MLX
    takes rows as sorted only where no left indices are given."""
    m = more.pop("m", 1)
    k, n = (128, 35) if transpose else (128, 128)
    sort = how == "sorted"

    def inputs(rng, dtype):
        # The last expert gets no token, the first many.
        rhs = rng.integers(0, max(experts - 1, 1), (tokens, 2)).astype(np.uint32)
        rhs[: tokens // 3] = 0
        lhs = np.broadcast_to(np.arange(tokens, dtype=np.uint32)[:, None], (tokens, 2))
        x = normal(rng, (tokens, m, k), dtype)
        if sort:
            order = np.argsort(rhs.reshape(-1), kind="stable")
            x, rhs = x[lhs.reshape(-1)[order]], rhs.reshape(-1)[order]
        shape = (experts, n, k) if transpose else (experts, k, n)
        w = weights(rng, f, shape)
        if scaled:
            w.append(Raw(rng.uniform(2000, 3000, experts).astype(np.float32)))
        return [x, *([] if sort else [Raw(lhs.copy())]), Raw(rhs), *w]

    def fn(mx, x, *operands):
        lhs, rhs, *w = [None] * sort + [*operands]
        more = dict(global_scale=w[-1]) if scaled else {}
        return mx.gather_qmm(
            x,
            *(w[:-1] if scaled else w),
            lhs_indices=lhs,
            rhs_indices=rhs,
            transpose=transpose,
            sorted_indices=sort,
            **f.arguments,
            **more,
        )

    def oracle(x, *operands):
        lhs, rhs, *w = [...] * sort + [*operands]
        if scaled:
            w[2] = w[2].astype(np.float64)
        w = dequantized(f, *w)
        return x[lhs] @ (np.swapaxes(w, -1, -2) if transpose else w)[rhs]

    name = f"gather_qmm_{name}_{how}{'' if transpose else '_n'}_{f}"
    add(name, inputs, fn, oracle, **{**bounds(k), **more})


for f in (USUAL, ODD, MXFP4, MXFP8, NVFP4):
    gathered("decode", f, 2, 5, "mixed", dtypes=("bfloat16",))
    gathered("prompt", f, 40, 5, "sorted", dtypes=("bfloat16",))
for how in ("mixed", "sorted"):
    gathered("some", USUAL, 40, 5, how, layouts=(*FEW, "swapped"))
    gathered("some", USUAL, 40, 5, how, transpose=False)
    gathered("one_expert", USUAL, 20, 1, how)
    gathered("rows", USUAL, 5, 3, how, m=9)
    gathered("rows", USUAL, 5, 3, how, transpose=False, m=3)
    gathered("global", NVFP4, 40, 5, how, scaled=True)
gathered("few", USUAL, 3, 70, "sorted", dtypes=("float16",))


# Products of a quantized x. Its values are such that quantization is exact:
# fp4 codes that reach 6 in each group of 16, or fp8 codes of few binades.


def exact_arguments(f, scaled):
    # A global scale of 2688 * 2^e leaves every scale of 2^i exact, too.
    return dict(
        global_scale_x=np.float32(2688 / 4) if scaled else None,
        global_scale_w=np.float32(2688 / 2) if scaled else None,
    )


def as_mx(mx, arguments):
    return {k: None if v is None else mx.array(v) for k, v in arguments.items()}


def qq(f, m, quantized, scaled, dtypes=("float32",), batch=()):
    scales = exact_arguments(f, scaled)

    def inputs(rng, dtype):
        x = exact(rng, f, (*batch, m, 128))
        if not quantized:
            return [x, exact(rng, f, (35, 128))]
        return [x, *weights(rng, f, (35, 128))]

    def fn(mx, x, *w):
        return mx.qqmm(x, *w, **f.arguments, **as_mx(mx, scales))

    def oracle(x, *w):
        if not quantized:
            return x @ w[0].T
        scale = scales["global_scale_w"]
        more = () if scale is None else (np.array([scale], np.float64),)
        w = dequantized(f, *w[:2], *more)
        return x @ w.T

    name = "qqmm_" + "_".join(
        [str(f), f"{m}rows", "codes" if quantized else "floats"]
        + ["global"] * scaled
        + ["batch"] * bool(batch)
    )
    # x and w reach 12 here, not 1 and 3.
    wide = bounds(128)
    wide["atol"] = {k: 48 * v for k, v in wide["atol"].items()}
    add(name, inputs, fn, oracle, dtypes, **wide)


for f in (NVFP4, MXFP8):
    for m in (1, 33):
        for quantized in (True, False):
            qq(f, m, quantized, False, ("bfloat16",))
    qq(f, 5, True, False, ("float16",), batch=(3,))
for m in (1, 33):
    for quantized in (True, False):
        qq(NVFP4, m, quantized, True)


def gathered_qq(f, how, scaled=False):
    tokens, experts = 20, 4
    sort = how == "sorted"

    def inputs(rng, dtype):
        rhs = rng.integers(0, experts - 1, tokens).astype(np.uint32)
        rhs = np.sort(rhs) if sort else rhs
        lhs = Raw(np.arange(tokens, dtype=np.uint32))
        w = weights(rng, f, (experts, 35, 128))
        x = exact(rng, f, (tokens, 1, 128), 0.25 if scaled else 1.0)
        if scaled:
            scale = 2688 * 2.0 ** np.arange(-1, experts - 1)
            w.append(Raw(scale.astype(np.float32)))
        return [x, lhs, Raw(rhs), *w]

    def fn(mx, x, lhs, rhs, w, s, scale=None):
        more = {}
        if scale is not None:
            more = dict(global_scale_x=mx.array([672.0]), global_scale_w=scale)
        lhs = None if sort else lhs  # its rows are in order
        return mx.gather_qqmm(
            x, w, s, lhs, rhs, sorted_indices=sort, **f.arguments, **more
        )

    def oracle(x, lhs, rhs, *w):
        if scaled:
            w = (w[0], w[1], w[2].astype(np.float64))
        return x[lhs] @ np.swapaxes(dequantized(f, *w), -1, -2)[rhs]

    wide = bounds(128)
    wide["atol"] = {k: 48 * v for k, v in wide["atol"].items()}
    name = f"gather_qqmm_{f}_{how}{'_global' if scaled else ''}"
    add(name, inputs, fn, oracle, ("float32",), **wide)


for how in ("mixed", "sorted"):
    gathered_qq(NVFP4, how)
    gathered_qq(MXFP8, how)
    gathered_qq(NVFP4, how, scaled=True)


# Quantization. On a grid that the format can hold it loses nothing; else the
# result is the CPU's bit for bit, or at most a step off.


def grid(f):
    def inputs(rng, dtype):
        shape = (3, 5, 2 * f.group)
        if f.mode != "affine":
            return [exact(rng, f, shape)]
        if f.bits == 1:
            x = rng.choice([-0.5, 1.5], shape)
            x[..., :: f.group], x[..., 1 :: f.group] = -0.5, 1.5
            return [x]
        # The lower edge is the larger one, so that it and zero are codes.
        half = 2 ** (f.bits - 1)
        x = rng.integers(-half, half, shape).astype(np.float64)
        x[..., :: f.group], x[..., 1 :: f.group] = -half, half - 1
        return [x / 8]

    def fn(mx, x):
        return mx.dequantize(
            *mx.quantize(x, **f.arguments), dtype=x.dtype, **f.arguments
        )

    return inputs, fn


for i, f in enumerate(FORMATS):
    if f.group != 32 or f.bits in (4, 8):
        inputs, fn = grid(f)
        add(
            f"quantize_grid_{f}",
            inputs,
            fn,
            lambda x: x,
            (FLOATS[i % 3],),
            (*FEW, "transposed") if f in (USUAL, NVFP4) else ONE,
            exact=True,
        )


def round_trip(f, scale=None):
    """Random values: off by at most half the widest step of the format."""

    def inputs(rng, dtype):
        return [rng.uniform(-1, 1, (7, 4 * f.group))]

    def fn(mx, x):
        # The global scale of a tensor is its largest value.
        more = {} if scale is None else dict(global_scale=mx.array(scale))
        q = mx.quantize(x, **f.arguments, **more)
        return mx.dequantize(*q, dtype=x.dtype, **f.arguments, **more)

    return inputs, fn


for i, f in enumerate(FORMATS):
    if f.group != 64 and f.bits > 1:
        inputs, fn = round_trip(f)
        step = formats.grid_of(f)
        near = dict(
            rtol=2.0**-7, atol=dict.fromkeys(FLOATS, step * (1 + 2.0**-7) + 2.0**-8)
        )
        add(f"quantize_near_{f}", inputs, fn, lambda x: x, (FLOATS[i % 3],), **near)
inputs, fn = round_trip(NVFP4, 1.0)
near = dict(rtol=2.0**-7, atol=17 / 16 / 6 + 2.0**-8)
add("quantize_near_global_nvfp4", inputs, fn, lambda x: x, FLOATS, **near)


def codes(f, dtype):
    """Codes, scales and biases are those of MLX's CPU."""

    def inputs(rng, dtype):
        return [normal(rng, (6, 2 * f.group), dtype)]

    add(
        f"quantize_codes_{f}",
        inputs,
        lambda mx, x: mx.quantize(x, **f.arguments),
        CPU,
        (dtype,),
        exact=True,
    )


for f in AFFINE:
    if f.group == 64:
        codes(f, "float32")


def dequantize(f, dtypes, scaled=False, shape=(3, 5, 128), name="", change=None):
    def inputs(rng, dtype):
        w = weights(rng, f, shape, layouts=True)
        if scaled:
            w.append(Raw(np.array([2000], np.float32)))
        return change(w) if change else w

    def fn(mx, codes, scales, *rest):
        more = dict(global_scale=rest[0][0]) if scaled else {}
        more = more if scaled or not rest else dict(biases=rest[0])
        if f.mode != "affine":
            more["dtype"] = mx.float32
        return mx.dequantize(codes, scales, **f.arguments, **more)

    def oracle(codes, scales, *rest):
        return dequantized(f, codes, scales, *(r.astype(np.float64) for r in rest))

    add(
        f"dequantize{name}_{f}{'_global' if scaled else ''}",
        inputs,
        fn,
        oracle,
        dtypes,
        (*FEW, "swapped") if f in (USUAL, MXFP4) else ONE,
    )


for i, f in enumerate(FORMATS):
    if f.group != 128:
        dequantize(f, (FLOATS[i % 3],) if f.mode == "affine" else ("float32",))
dequantize(NVFP4, ("float32",), scaled=True)
# More than three workgroups, the last not full.
for f in (USUAL, ODD, MXFP8):
    dequantize(f, FLOATS if f is USUAL else ("float32",), False, (3, 7, 640), "_large")


def not_finite(w):
    """Scales and biases that make NaN and infinities, or nearly."""
    special = np.array([np.nan, np.inf, -np.inf, 2e37, -2e37, 1], np.float32)
    for i, part in enumerate(w[1:]):
        part[...] = np.resize(np.roll(special, i), part.shape)
    return w


dequantize(USUAL, ("float32", "bfloat16"), name="_not_finite", change=not_finite)

# Numbers that fp8 represents, converted both ways.
add(
    "fp8_round_trip",
    lambda rng, dtype: [E4M3[rng.integers(0, 126, (5, 37))]],
    lambda mx, x: mx.from_fp8(mx.to_fp8(x), x.dtype),
    lambda x: x,
    FLOATS,
    layouts=None,
    exact=True,
)
