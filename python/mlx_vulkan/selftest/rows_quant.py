"""Quantized products in every format, and quantization both ways."""

import dataclasses

import numpy as np

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
    grid_of,
    weights,
)
from .row import ONE, Bound, Fixed, Row
from .values import FLOATS, normal

LAYOUTS = ("contiguous", "sliced", "offset", "negative", "donated")


# Other groups than the usual one differ in a shift only.
OTHERS = [f for f in AFFINE if f.group != 64]


def bound(k):
    """k products of x with weights of up to 3, a deviation of 2 at most. Codes and
    biases are summed apart, each as large as that, and a matrix unit takes the
    weights rounded to the storage dtype."""
    return Bound(ulps=4, steps=2, terms=4 * k, size=2 * k**0.5)


def product(name, f, m, n, k, transpose=True, batch=(), **more):
    def make(rng, dtype):
        w = (*batch, n, k) if transpose else (*batch, k, n)
        return [normal(rng, (*batch, m, k), dtype), *weights(rng, f, w)]

    def fn(mx, x, *w):
        return mx.quantized_matmul(x, *w, transpose=transpose, **f.arguments)

    def want(x, *w):
        w = dequantized(f, *w)
        return x @ (np.swapaxes(w, -1, -2) if transpose else w)

    name = f"{f}_{name}{'' if transpose else '_plain'}"
    more = {"layouts": ONE, **more}
    return Row(name, make, fn, bound=bound(k), want=want, **more)


quantized_matmul = []
for i, f in enumerate(FORMATS):
    dtypes = (FLOATS[i % 3],)
    ours = [
        product("vector", f, 1, 35, 512, dtypes=dtypes),
        product("prompt", f, 70, 131, 256, dtypes=dtypes),
        product("vector", f, 1, 256, 65, False, dtypes=dtypes),
        product("prompt", f, 33, 256, 65, False, dtypes=dtypes),
    ]
    if f in OTHERS:
        ours = [dataclasses.replace(r, rare=j != i % 4) for j, r in enumerate(ours)]
    quantized_matmul += ours
for f in (USUAL, Format("affine", 3, 32), MXFP4, NVFP4):
    quantized_matmul += [
        product(f"rows_{m}", f, m, 130, 256, layouts=LAYOUTS, slow=True)
        for m in (1, 2, 5, 9, 33)
    ]
    quantized_matmul.append(
        product("batch", f, 5, 40, 128, batch=(3,), layouts=LAYOUTS)
    )
    quantized_matmul.append(product("long", f, 1, 33, 8192))
    quantized_matmul.append(product("model", f, 1, 4096, 4096, big=True))
    quantized_matmul.append(product("model_prompt", f, 300, 1030, 1024, big=True))


def gathered(name, f, tokens, experts, ordered, transpose=True):
    k, n = (128, 70) if transpose else (70, 128)

    def make(rng, dtype):
        # One expert gets many tokens, the last gets none.
        rhs = rng.integers(0, experts - 1, (tokens, 2)).astype(np.uint32)
        rhs[: tokens // 3] = 0
        lhs = np.repeat(np.arange(tokens, dtype=np.uint32), 2).reshape(tokens, 2)
        if ordered:
            order = np.argsort(rhs.reshape(-1), kind="stable")
            lhs, rhs = lhs.reshape(-1)[order], rhs.reshape(-1)[order]
        w = (experts, n, k) if transpose else (experts, k, n)
        x = normal(rng, (tokens, 1, k), dtype)
        return [x, Fixed(lhs), Fixed(rhs), *weights(rng, f, w)]

    def fn(mx, x, lhs, rhs, *w):
        return mx.gather_qmm(
            x,
            *w,
            lhs_indices=lhs,
            rhs_indices=rhs,
            transpose=transpose,
            sorted_indices=ordered,
            **f.arguments,
        )

    def want(x, lhs, rhs, *w):
        w = dequantized(f, *w)
        return x[lhs] @ (np.swapaxes(w, -1, -2) if transpose else w)[rhs]

    name = f"{f}_{name}{'' if transpose else '_plain'}{'_sorted' if ordered else ''}"
    layouts = LAYOUTS if f == USUAL else ONE
    return Row(name, make, fn, bound=bound(k), want=want, layouts=layouts)


gather_qmm = [
    gathered(name, f, tokens, 5, ordered)
    for f in (USUAL, Format("affine", 3, 32), MXFP4, MXFP8, NVFP4)
    for name, tokens, ordered in [("decode", 2, False), ("prompt", 70, True)]
]
gather_qmm += [
    gathered("some", USUAL, 40, 5, ordered, transpose)
    for ordered in (False, True)
    for transpose in (False, True)
]


def dequantize_row(f):
    def fn(mx, words, scales, *biases):
        more = dict(biases=biases[0]) if biases else {"dtype": mx.float32}
        return mx.dequantize(words, scales, **f.arguments, **more)

    return Row(
        str(f),
        lambda rng, dtype: weights(rng, f, (3, 5, 256)),
        fn,
        FLOATS if f.mode == "affine" else ("float32",),
        Bound(ulps=8, steps=2, size=3),
        lambda *w: dequantized(f, *w),
        LAYOUTS if f in (USUAL, MXFP4) else ONE,
        rare=f in OTHERS[::2],
    )


dequantize = [dequantize_row(f) for f in FORMATS]


def round_trip(f):
    def fn(mx, x):
        parts = mx.quantize(x, **f.arguments)
        return mx.dequantize(*parts, dtype=x.dtype, **f.arguments)

    return Row(
        f"{f}_round_trip",
        lambda rng, dtype: [rng.uniform(-1, 1, (7, 4 * f.group))],
        fn,
        # The scale, the bias and the result are rounded.
        bound=Bound(steps=3, size=1, grid=grid_of(f)),
        want=lambda x: x,
        layouts=LAYOUTS if f in (USUAL, NVFP4) else ONE,
        rare=f in OTHERS[1::2],
    )


def codes_row(f):
    return Row(
        f"{f}_codes",
        lambda rng, dtype: [normal(rng, (6, 2 * f.group), dtype)],
        lambda mx, x: mx.quantize(x, **f.arguments),
        ("float32",),
        want="same",
        layouts=ONE,
    )


quantize = [round_trip(f) for f in FORMATS if f.bits > 1]
quantize += [codes_row(f) for f in AFFINE if f.group == 64]


def both_quantized(f, m):
    """x is quantized on the way, too."""
    # x has a deviation of up to 5, not 1.
    usual = bound(128)
    wider = dataclasses.replace(usual, terms=5 * usual.terms, size=5 * usual.size)
    return Row(
        f"{f}_{m}",
        lambda rng, dtype: [exact(rng, f, (m, 128)), *weights(rng, f, (35, 128))],
        lambda mx, x, *w: mx.qqmm(x, *w, **f.arguments),
        bound=wider,
        want=lambda x, *w: x @ dequantized(f, *w).T,
        layouts=LAYOUTS,
    )


qqmm = [both_quantized(f, m) for f in (NVFP4, MXFP8) for m in (1, 33)]

fp8 = [
    Row(
        "round_trip",
        lambda rng, dtype: [E4M3[rng.integers(0, 126, (5, 37))]],
        lambda mx, x: mx.from_fp8(mx.to_fp8(x), x.dtype),
        want=lambda x: x,
    ),
    Row(
        "rounds",
        # Three bits of mantissa: off by 1/16 of the value, which is 2^19 units.
        lambda rng, dtype: [rng.uniform(0.02, 400, (5, 300))],
        lambda mx, x: mx.from_fp8(mx.to_fp8(x), x.dtype),
        bound=Bound(ulps=2.0**19, size=0),
        want=lambda x: x,
    ),
]

FAMILIES = {
    "qqmm": qqmm,
    "fp8": fp8,
    "quantized_matmul": quantized_matmul,
    "gather_qmm": gather_qmm,
    "dequantize": dequantize,
    "quantize": quantize,
}
