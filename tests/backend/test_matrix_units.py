"""Kernels with cooperative matrices in each shape that devices list
(vk/matrix_units.h), against float64: where the device has the shape on its own
units, on software devices with matrices made of floats."""

import os
import re
import subprocess
import sys

import pytest
from processes import EMULATION

# A result is rounded to its type, half a unit of it. Float32 sums of up to 256
# exact products err by 2^-16 of the sum of their sizes; weights of a quantized
# product that are rounded to the type, by half a unit of it more, and so do the
# weights of attention.
CHECK = """
import sys
import mlx.core as mx
import numpy as np
dtype, few = getattr(mx, sys.argv[1]), sys.argv[2] == "few"
half = 1.01 * 2.0 ** {"bfloat16": -8, "float16": -11}[sys.argv[1]]
sums = 2.0**-16
rng = np.random.default_rng(5)


def wide(a):
    return np.array(a.astype(mx.float32)).astype(np.float64)


def rows(*shape):
    return mx.array(rng.standard_normal(shape)).astype(dtype)


def close(label, y, want, size, error=sums):
    bound = np.maximum(half * np.abs(want) + error * size, 1e-300)
    worst = np.max(np.abs(wide(y) - want) / bound)
    if not worst <= 1:
        sys.exit(f"{label}: {worst}")


def product(label, a, b, c=None):
    x, w = wide(a), wide(b)
    want, size = x @ w, np.abs(x) @ np.abs(w)
    y = a @ b
    if c is not None:
        y = mx.addmm(c, a, b, 0.5, 2.0)
        want, size = 0.5 * want + 2 * wide(c), 0.5 * size + 2 * np.abs(wide(c))
    close(label, y, want, size)


def dense():
    product("linear", rows(40, 72), rows(88, 72).T)
    product("both transposed, ends", rows(105, 70).T, rows(33, 105).T)
    product("whole tiles", rows(128, 96), rows(128, 96).T)
    product("rows", rows(64, 256), rows(256, 64))
    if few:
        return
    product("one column over", rows(65, 65), rows(65, 66))
    product("odd start", rows(50, 90)[3:, 5:], rows(90, 40)[5:, 7:])
    product("flat", rows(17, 128), rows(200, 128).T)
    product("large", rows(260, 128), rows(300, 128).T)
    product("batch", rows(3, 20, 48), rows(3, 24, 48).swapaxes(-1, -2))
    product("added", rows(40, 64), rows(48, 64).T, rows(40, 48))
    a, b = rows(24, 32), rows(40, 32).T
    a[5, 7], a[9, 0], a[11, 3] = float("inf"), float("nan"), float("-inf")
    with np.errstate(invalid="ignore"):
        want = wide(a) @ wide(b)
    y = wide(a @ b)
    if not np.array_equal(np.isnan(y), np.isnan(want)) or not np.array_equal(
        y[np.isinf(want)], want[np.isinf(want)]
    ):
        sys.exit("NaN and Inf")


def matrix(bits, group, *shape):
    w = rows(*shape)
    parts = mx.quantize(w, group_size=group, bits=bits)
    return parts, wide(mx.dequantize(*(
        p if p.dtype == mx.uint32 else p.astype(mx.float32) for p in parts
    ), group_size=group, bits=bits))


def quantized():
    cases = [(4, 64, True, 40, 72, 128), (8, 32, False, 37, 64, 96)]
    if not few:
        cases += [(3, 32, True, 17, 33, 96), (4, 64, True, 100, 264, 256)]
    for bits, group, transpose, m, n, k in cases:
        x = rows(m, k)
        parts, full = matrix(bits, group, *((n, k) if transpose else (k, n)))
        full = full.T if transpose else full
        y = mx.quantized_matmul(
            x, *parts, transpose=transpose, group_size=group, bits=bits)
        size = np.abs(wide(x)) @ np.abs(full)
        close(f"quantized {bits} {n} x {k}", y, wide(x) @ full, size, sums + half)
    x = rows(40, 64)
    x[:, 61:] = float("nan")  # beyond the rows of w, in the last load of a row
    parts, full = matrix(4, 64, 61, 64)
    y = mx.quantized_matmul(x[:, :61], *parts, transpose=False, group_size=64, bits=4)
    x = wide(x[:, :61])
    close("rows of a wider x", y, x @ full, np.abs(x) @ np.abs(full), sums + half)


# Rows in the order of their experts.
def sorted_rows():
    experts, k, n = 4, 128, 72
    ids = mx.array(np.sort(rng.integers(0, experts, 70)).astype(np.uint32))
    x = rows(70, 1, k)
    for bits in (0, 4):
        if bits:
            parts, full = matrix(4, 64, experts, n, k)
            y = mx.gather_qmm(
                x, *parts, rhs_indices=ids, transpose=True, group_size=64, bits=4,
                sorted_indices=True)
        else:
            w = rows(experts, n, k)
            full = wide(w)
            y = mx.gather_mm(
                x, w.swapaxes(-1, -2), rhs_indices=ids, sorted_indices=True)
        full = np.swapaxes(full, -1, -2)[np.array(ids)]
        size = np.abs(wide(x)) @ np.abs(full)
        if bits:  # codes stand as 16 + code, of up to 31, and 16 are taken off
            scale = np.max(np.abs(wide(parts[1])))
            size = size + 47 * scale * np.abs(wide(x)).sum(-1, keepdims=True)
        close(f"sorted rows, {bits} bits", y, wide(x) @ full, size)


def convolution():
    for channels, outputs in ((16, 40), (9, 49)):
        x, w = rows(2, 25, 27, channels), rows(outputs, 3, 3, channels)
        y = mx.conv2d(x, w, stride=2, padding=1)
        padded = np.pad(wide(x), ((0, 0), (1, 1), (1, 1), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
        windows = windows[:, ::2, ::2]
        dims = "nhwcij,oijc->nhwo"
        close(
            f"convolution {channels}", y, np.einsum(dims, windows, wide(w)),
            np.einsum(dims, np.abs(windows), np.abs(wide(w))))


def attention():
    # Of the second, scores of the first key are mostly the largest.
    shapes = [(2, 1, 70, 70, 32, True, 0), (2, 1, 70, 100, 32, True, 1)]
    shapes += [(2, 1, 70, 70, 16, True, 0)]
    if not few:
        shapes += [(4, 2, 33, 130, 64, False, 0), (2, 2, 100, 90, 128, False, 0)]
        shapes += [(2, 2, 90, 100, 96, True, 0), (2, 1, 200, 300, 128, True, 1)]
    for heads, kv, queries, keys, dim, causal, first in shapes:
        q = rows(1, heads, queries, dim)
        k, v = rows(1, kv, keys, dim), rows(1, kv, keys, dim)
        if first:
            q = mx.abs(q)
            k[:, :, 0] += 1
        mask = None if causal else mx.array(rng.random((queries, keys)) < 0.8)
        y = mx.fast.scaled_dot_product_attention(
            q, k, v, scale=dim**-0.5, mask="causal" if causal else mask)
        k, v = (np.repeat(wide(a), heads // kv, 1) for a in (k, v))
        s = wide(q) @ np.swapaxes(k, -1, -2) * dim**-0.5
        later = np.triu(np.ones((queries, keys)), keys - queries + 1) > 0
        hidden = (later if causal
                  else ~np.array(mask))
        s = np.where(hidden, -np.inf, s)
        p = np.exp(s - s.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        # A weight, and their sum, err by as much as scores do.
        worst = sums * np.max(np.abs(wide(q)) @ np.abs(np.swapaxes(k, -1, -2)))
        error = half + 2 * worst * dim**-0.5
        close(f"attention {dim}", y, p @ v, p @ np.abs(v), error)


mx.eval(mx.zeros(1))
for check in (dense, quantized, sorted_rows, convolution, attention):
    check()
    print(check.__name__, "ok")
"""

# Each shape compiles some eight emulated kernels, for seconds.
FULL = os.environ.get("MLX_VK_TEST_FULL") == "1"
SHAPES = [("8x8x16", "float16"), ("8x16x16", "bfloat16")]
if FULL:
    SHAPES += [("16x8x16", "float16"), ("16x8x8", "float16"), ("8x8x8", "bfloat16")]
    SHAPES += [("8x8x16", "bfloat16"), ("16x16x16", "bfloat16")]
KERNELS = (
    "gemm/rows_coopmat{[^}]* VA=[^}]* BATCH=0 ",
    "gemm/rows_coopmat{[^}]* BATCH=3 ",  # rows sorted by matrix
    "gemm/rows_coopmat{[^}]* BITS=",
    "conv/conv_coopmat{",
    "attention/prefill_coopmat{",
)
NARROW = "attention/prefill_narrow{"  # subgroups of 16


@pytest.mark.parametrize("shape, dtype", SHAPES)
def test_matrix_units(gpu, request, shape, dtype):
    software = "llvmpipe" in request.config.mlxvk_name
    done = subprocess.run(
        [sys.executable, "-c", CHECK, dtype, "many" if FULL or not software else "few"],
        env={
            **os.environ,
            "MLX_VK_TEST": f"matrices={shape},{EMULATION}",
            "MLX_VK_PROFILE": "1",
        },
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout
    if software:
        report = done.stderr + done.stdout
        sides = shape.split("x")
        # Attention takes subgroups of 16 or more, here as many lanes as N.
        expected = KERNELS if sides[1] == "16" else KERNELS[:-1]
        expected += (NARROW,) if sides[:2] == ["8", "16"] else ()
        assert [k for k in expected if not re.search(k, report)] == []
        assert f"MM={sides[0]} MN={sides[1]} MK={sides[2]}" in report


# bf16 on matrices of f16 (gemm/half_items.glsl): as exact as matrices of bf16,
# whatever the range of the items.
HALVES = (
    CHECK[: CHECK.index("def product")]
    + """
def product(label, x, w):
    x, w = x.astype(dtype), w.astype(dtype)
    size = np.abs(wide(x)) @ np.abs(wide(w)).T
    close(label, x @ w.T, wide(x) @ wide(w).T, size, max(256, x.shape[1]) * 2.0**-24)


def normal(*shape):
    return mx.array(rng.standard_normal(shape).astype(np.float32))


def power(n):
    return mx.array(np.exp2(np.asarray(n, np.float32)))


m, n, k = 40, 72, 100
product("like a layer's", normal(m, k), normal(n, k) * 0.02)
if not few:
    product("large", normal(300, 512), normal(260, 512))
    product("parts of k", normal(64, 8192), normal(64, 8192) / 64)
far = power(np.linspace(-60, 60, m))[:, None]
product("rows far apart", normal(m, k) * far, normal(n, k))
product("columns far apart", normal(n, k), normal(m, k) * far)
rising = power(np.arange(k) // 4)
product("rising along k", normal(m, k) * rising, normal(n, k))
product("rising by leaps", normal(m, k) * rising**4, normal(n, k) / rising**3)
product("falling along k", normal(m, k) / rising, normal(n, k) * rising)
x, w = normal(m, k), normal(n, k)
x[3], w[5] = 0, 0
product("zeros", x, w)
x[:, :64] = 0
product("zeros first", x, w * 1e-9)
x[:, 70:] *= 2.0**30
x[:, 80:] *= 2.0**30
w[:, 70:] = 0
product("nothing of what rises", x, w)
x, w = normal(m, k), normal(n, k)
x[:, 64:] *= 2.0**60
w[:, 64:] = 0
product("nothing of the last tiles", x, w)
x, w = normal(m, k), normal(n, k)
x[:, 40], w[:, 40] = 2.0**100, 0
product("what counts is small", x, w)
x, w = normal(m, k), normal(n, k)
x[5, 7], x[9, 0], x[11, 3] = float("inf"), float("nan"), float("-inf")
x, w = x.astype(dtype), w.astype(dtype)
with np.errstate(invalid="ignore"):
    want = wide(x) @ wide(w).T
if not np.array_equal(wide(x @ w.T)[[5, 9, 11]], want[[5, 9, 11]], equal_nan=True):
    sys.exit("NaN and Inf")
parts = mx.quantize(normal(n, 128).astype(dtype), group_size=64, bits=4)
full = wide(mx.dequantize(*parts, group_size=64, bits=4))
x = rows(m, 128)
y = mx.quantized_matmul(x, *parts, transpose=True, group_size=64, bits=4)
close("quantized", y, wide(x) @ full.T, np.abs(wide(x)) @ np.abs(full).T)
print("halves ok")
"""
)


def check_halves(request, script, shape, kernel, hooks=EMULATION):
    """Runs the script without bfloat16 matrices; emulated ones run `kernel`."""
    software = "llvmpipe" in request.config.mlxvk_name
    env = {**os.environ, "MLX_VK_DISABLE": "bfloat16", "MLX_VK_PROFILE": "1"}
    env["MLX_VK_TEST"] = hooks + (f",matrices={shape}" if software else "")
    few = "few" if software and not FULL else "many"
    done = subprocess.run(
        [sys.executable, "-c", script, "bfloat16", few],
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout
    if software:
        assert kernel in done.stderr + done.stdout


def test_halves(gpu, request):
    hooks = f"dequantize_rows=4,{EMULATION}"
    check_halves(request, HALVES, "8x8x16", "HALVES=1", hooks)


# Quantized products of bf16 rows on matrices of f16 (quant/half_rows.h). Codes stand
# as 2^bits + code: an item counts with that, and 2^bits more is taken off.
HALF_ROWS = (
    CHECK[: CHECK.index("def product")]
    + """
def normal(*shape):
    return rng.standard_normal(shape)


def power(n):
    return np.exp2(np.asarray(n, np.float64))


def brain(a):
    return mx.array(np.asarray(a, np.float32)).astype(dtype)


def product(label, x, w, bits=4, group=64, ids=None):
    x, parts = brain(x), mx.quantize(brain(w), group_size=group, bits=bits)
    floats = [p if p.dtype == mx.uint32 else p.astype(mx.float32) for p in parts]
    full = wide(mx.dequantize(*floats, group_size=group, bits=bits))
    codes = 3 * 2**bits * np.repeat(np.abs(wide(parts[1])), group, -1)
    size = np.swapaxes(np.abs(full) + codes, -1, -2)
    full = np.swapaxes(full, -1, -2)
    if ids is None:
        y = mx.quantized_matmul(x, *parts, group_size=group, bits=bits)
    else:
        y = mx.gather_qmm(
            x, *parts, rhs_indices=mx.array(ids), group_size=group, bits=bits,
            sorted_indices=True)
        full, size = full[ids], size[ids]
    with np.errstate(invalid="ignore"):
        want, size = wide(x) @ full, np.abs(wide(x)) @ size
    whole = np.isfinite(wide(x)).all(-1)
    if np.isfinite(wide(y)[~whole]).any():
        sys.exit(f"{label}: of NaN and Inf")
    rows = mx.array(wide(y)[whole])
    close(label, rows, want[whole], size[whole], max(256, x.shape[-1]) * 2.0**-24)


m, n, k = 40, 72, 256
product("like a layer's", normal(m, k), normal(n, k) * 0.02)
far = power(np.linspace(-60, 60, m))[:, None]
product("rows far apart", normal(m, k) * far, normal(n, k))
groups = [np.repeat(power(p), 64) for p in ([-100, 90, -40, 20], [60, -90, 20, 0])]
product("groups far apart", normal(m, k) * groups[0], normal(n, k) * groups[1])
falling = power(-np.arange(k) % 64)
product("far apart in a group", normal(m, k) * falling, normal(n, k))
tiny = mx.array(np.float32(2.0**-128))
if (tiny + tiny).item():  # else the device flushes them
    product("subnormal", normal(m, k) * 2.0**-126, normal(n, k) * 2.0**30)
product("beyond half's range", normal(m, k) * 2.0**110, normal(n, k) * 2.0**-20)
x = normal(m, k)
x[5, 7], x[9, 0], x[11, 3] = np.inf, np.nan, -np.inf
product("NaN and Inf", x, normal(n, k))
x, ids = normal(70, 1, 128), np.sort(rng.integers(0, 4, 70)).astype(np.uint32)
far = power(np.linspace(-50, 50, 70))[:, None, None]
product("sorted", x * far, normal(4, 72, 128), ids=ids)
if not few:
    product("eight bits", normal(m, k) * falling, normal(n, k), bits=8)
    product("three bits", normal(17, 96), normal(33, 96), bits=3, group=32)
    product("five bits", normal(100, 256), normal(264, 256), bits=5, group=128)
"""
)

# Attention of bf16 on matrices of f16 (attention/halves.glsl). Scores err by 2^-16 of
# the products' sizes or by 2^-16, weights also by half a unit of their type.
HALF_HEADS = (
    CHECK[: CHECK.index("def product")]
    + """
def attention(label, q, k, v, causal=True):
    q, k, v = (mx.array(np.asarray(a, np.float32)).astype(dtype) for a in (q, k, v))
    scale = q.shape[-1] ** -0.5
    y = mx.fast.scaled_dot_product_attention(
        q, k, v, scale=scale, mask="causal" if causal else None)
    heads = q.shape[1] // k.shape[1]
    q, k, v = wide(q), np.repeat(wide(k), heads, 1), np.repeat(wide(v), heads, 1)
    k = np.swapaxes(k, -1, -2)
    s = q @ k * scale
    if causal:
        s = np.where(np.triu(np.ones(s.shape[-2:]), 1) > 0, -np.inf, s)
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    worst = sums * np.max(np.abs(q) @ np.abs(k)) * scale
    close(label, y, p @ v, p @ np.abs(v), half + 2 * (worst + sums))


normal = rng.standard_normal
q, k, v = normal((1, 2, 70, 32)), normal((1, 1, 70, 32)), normal((1, 1, 70, 32))
far = np.exp2(np.linspace(-40, 40, 70))[:, None]
attention("usual", q, k, v)
attention("large values", q, k, v * 2.0**100)
attention("small values", q, k, v * 2.0**-100)
attention("values far apart", q, k, v * far)
attention("keys far apart", q, k * far, v)
attention("small keys", q * 2.0**60, k * 2.0**-60, v)
attention("steep", q * 40, k * 40, v)
attention("steeper", q * 2.0**14, k * 2.0**12, v)
x = np.concatenate([v, v * far], 0)
attention("one head of two", np.repeat(q, 2, 0), np.repeat(k, 2, 0), x)
if not few:
    attention("wider", normal((1, 4, 33, 64)), *normal((2, 1, 2, 300, 64)), False)
"""
)


@pytest.mark.parametrize(
    "script, shape, kernel",
    [
        (HALF_ROWS, "8x8x16", "quant/half_rows"),
        (HALF_HEADS, "8x16x16", "attention/ranges"),
    ],
    ids=["rows", "heads"],
)
def test_half_operands(gpu, request, script, shape, kernel):
    check_halves(request, script, shape, kernel + "{")
