"""Quantized products whose x is rounded to bytes (MLX_VK_INT8_ACTIVATIONS), beside
float64: run as a program, by test_int8_activations.py and by hand on a GPU.

    int8_products.py formats|rows|layouts|special
"""

import os
import sys

import mlx.core as mx
import numpy as np

from mlx_vulkan.cases.formats import (
    AFFINE,
    MXFP4,
    USUAL,
    Format,
    dequantized,
    weights,
)

BLOCK = 32
# Half a unit in the last place, relative.
DTYPES = {mx.float32: 2.0**-24, mx.float16: 2.0**-11, mx.bfloat16: 2.0**-8}
SCALE_LEAST = np.float32(2.0**-126)


def wide(a):
    return np.array(a.astype(mx.float32)).astype(np.float64)


def rounded(x):
    """What rows of x (float64, from 32 bits or fewer) stand for as bytes, and
    the scale of each item: quant/qmm_dot.h, in float32 as the kernel has it."""
    blocks = x.astype(np.float32).reshape(*x.shape[:-1], -1, BLOCK)
    top = np.max(np.abs(blocks), axis=-1, keepdims=True)
    counts = top >= 127 * SCALE_LEAST
    most = np.where(counts, top, np.float32(127))
    scale = most / np.float32(127)
    inverse = np.float32(127) / most
    codes = np.rint(blocks * inverse) * counts
    scale = np.where(counts, scale, np.float32(0)).astype(np.float64)
    assert np.all(np.abs(codes) <= 127)
    spread = np.broadcast_to(scale, blocks.shape).reshape(x.shape)
    return (codes.astype(np.float64) * scale).reshape(x.shape), spread


def matrix(rng, f, n, k, dtype):
    """Words, scales and biases as mx arrays, and the weights in float64."""
    words, *sides = weights(rng, f, (n, k))
    words = mx.array(words.value)
    if f.mode == "affine":
        sides = [mx.array(s.astype(np.float32)).astype(dtype) for s in sides]
        full = dequantized(f, np.array(words), *(wide(s) for s in sides))
    else:
        sides = [mx.array(s.value) for s in sides]
        full = dequantized(f, np.array(words), *(np.array(s) for s in sides))
    return [words, *sides], full


def byte_sizes(f, w, full):
    """At least |scale * byte| + |what the sum of x is times|, of each weight."""
    if f.mode != "affine":
        # A byte stands for up to 6 units, and up to 6 more are added to it.
        return np.repeat(2.0 ** (np.array(w[1]).astype(np.float64) - 127), 32, -1) * 18
    scale, bias = (np.repeat(np.abs(wide(a)), f.group, -1) for a in w[1:])
    return 2 * (scale * 2**f.bits + bias)


def product(x, w, f):
    return mx.quantized_matmul(x, *w, transpose=True, **f.arguments)


def beside(x64, w, full, f, dtype):
    """The product of rounded x in float64, and how far from it y may be."""
    bytes_of_x, _ = rounded(x64)
    want = bytes_of_x @ full.T
    # Products of a block are exact. Then each block adds two terms, each of
    # three factors rounded twice, in float32; the result is rounded once.
    steps = 2 * (x64.shape[-1] // BLOCK) + 3
    size = np.abs(bytes_of_x) @ byte_sizes(f, w, full).T
    arithmetic = steps * 2.0**-24 * size + 2.0**-126
    subnormal = 2.0**-25 if dtype == mx.float16 else 0
    half = DTYPES[dtype]
    return want, arithmetic + half * 1.01 * (np.abs(want) + arithmetic) + subnormal


def check(x, f, n, dtype, rng, label):
    w, full = matrix(rng, f, n, x.shape[-1], dtype)
    y = wide(product(x, w, f))
    x64 = wide(x)
    want, tight = beside(x64, w, full, f, dtype)
    worst = np.max(np.abs(y - want) / tight, initial=0)
    if not worst <= 1:
        sys.exit(f"{label}: {worst} of the bound beside the same bytes")
    # Beside x itself: an item moves by half of its block's scale at most.
    plain = x64 @ full.T
    loose = 0.5001 * (rounded(x64)[1] @ np.abs(full).T) + tight
    worst = np.max(np.abs(y - plain) / loose, initial=0)
    if not worst <= 1:
        sys.exit(f"{label}: {worst} of the bound beside x itself")
    return np.max(np.abs(want - plain), initial=0)


def normal(rng, dtype, *shape):
    return mx.array(rng.standard_normal(shape).astype(np.float32)).astype(dtype)


def formats(rng, some=None):
    # Each compiles a kernel: of affine ones a third, unless all are asked for.
    full = os.environ.get("MLX_VK_TEST_FULL") == "1"
    few = [f for f in AFFINE if full or f.group == (32, 64, 128)[f.bits % 3]]
    for i, f in enumerate(some or [*few, MXFP4]):
        dtype = [*DTYPES][i % 3]
        k = f.group * (3, 5, 1)[i % 3]
        moved = check(normal(rng, dtype, 33, k), f, 70, dtype, rng, f"{f} {k}")
        # Nothing moved: x was not rounded.
        assert moved > 1e-3, (f, moved)


def bytes_of_8_bits(rng):
    """Whose bytes depend on whether they are signed."""
    formats(rng, [Format("affine", 8, 64), MXFP4])


def rows(rng):
    for i, m in enumerate((9, 10, 31, 32, 33, 63, 64, 65, 100, 129, 300)):
        dtype = [*DTYPES][i % 3]
        f = (USUAL, Format("affine", 8, 32))[i % 2]
        k = f.group * (1, 3, 7)[i % 3]
        for n in (1, 65):
            check(normal(rng, dtype, m, k), f, n, dtype, rng, f"{m} rows, {n}x{k}")
    # Fewer are not rounded, and no rows or outputs are none.
    for m in (1, 8):
        x = normal(rng, mx.float32, m, 128)
        w, full = matrix(rng, USUAL, 40, 128, mx.float32)
        y = wide(product(x, w, USUAL))
        if not np.allclose(y, wide(x) @ full.T, rtol=1e-4, atol=1e-4):
            sys.exit(f"{m} rows were rounded")
    w, _ = matrix(rng, USUAL, 40, 128, mx.float32)
    assert product(mx.zeros((0, 128)), w, USUAL).shape == (0, 40)


def layouts(rng):
    f, k = USUAL, 192
    for dtype in DTYPES:
        cases = {
            "padded rows": normal(rng, dtype, 20, k + 8)[:, 8:],
            "rows that are not aligned": normal(rng, dtype, 20, k + 1)[:, 1:],
            "columns": normal(rng, dtype, k, 20).T,
            "reversed": normal(rng, dtype, 20, k)[::-1],
            "one row": mx.broadcast_to(normal(rng, dtype, 1, k), (20, k)),
            "every other row": normal(rng, dtype, 40, k)[::2],
            "a stack of rows": normal(rng, dtype, 3, 7, k),
        }
        for name, x in cases.items():
            check(x, f, 33, dtype, rng, f"{name} {dtype}")
    # Products of other rows use the memory of packed ones by turns.
    many = [normal(rng, mx.float32, 9 + i, k) for i in range(7)]
    w, full = matrix(rng, f, 33, k, mx.float32)
    for x, y in zip(many, [product(x, w, f) for x in many], strict=True):
        want, tight = beside(wide(x), w, full, f, mx.float32)
        if not np.all(np.abs(wide(y) - want) <= tight):
            sys.exit("products of several x")


def special(rng):
    f, m, k, n = USUAL, 20, 192, 35
    for dtype in DTYPES:
        w, full = matrix(rng, f, n, k, dtype)
        least, huge = 2.0**-126, 2e4 if dtype == mx.float16 else 1e36
        for value in (
            np.nan,
            np.inf,
            -np.inf,
            0,
            -0.0,
            least / 8,
            least,
            128 * least,
            huge,
        ):
            x = np.array(rng.standard_normal((m, k)), np.float32)
            x[3, 70] = x[19, 0] = value
            x[7, 32:64] = value
            x = mx.array(x).astype(dtype)
            x64 = wide(x)
            bad = ~np.isfinite(x64).all(-1)
            assert bad.any() == (not np.isfinite(value))
            y = wide(product(x, w, f))
            if not np.isnan(y[bad]).all():
                sys.exit(f"{value} {dtype}: rows that have it are not NaN")
            want, tight = beside(np.where(bad[:, None], 0, x64), w, full, f, dtype)
            # 32 huge ones beyond the type's range are infinite.
            most = 65504 if dtype == mx.float16 else 3.3e38
            fits = ~bad & (np.abs(want).max(-1) < most)
            assert fits.sum() >= m - 3
            if not np.all(np.abs(y - want)[fits] <= tight[fits]):
                sys.exit(f"{value} {dtype}: other rows")
    # All zeros, and -0.
    for zero in (0.0, -0.0):
        y = product(mx.full((m, k), zero, mx.float32), w, f)
        assert not wide(y).any()
    # NaN among scales or biases stays with its output.
    for at in (1, 2):
        w, _ = matrix(rng, f, n, k, mx.float32)
        side = np.array(w[at])
        side[5, 1] = np.nan
        w[at] = mx.array(side)
        y = wide(product(normal(rng, mx.float32, m, k), w, f))
        assert np.isnan(y[:, 5]).all() and np.isfinite(np.delete(y, 5, 1)).all()


if __name__ == "__main__":
    for part in sys.argv[1:]:
        globals()[part](np.random.default_rng(3))
