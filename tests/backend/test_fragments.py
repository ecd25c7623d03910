"""Products whose fragments lanes load themselves, on the device's matrix units where
the driver's layout is known, else with matrices that software devices emulate:
quantized ones of a few dozen rows (quant/qmm_fragments.comp), alone and joined with
what follows them, of a few sorted rows per expert, of more rows (quant/qmm_tall.comp),
dense ones (gemm/gemm_fragments.comp) and convolutions
(conv/conv_fragments.comp)."""

import os
from pathlib import Path

import pytest
from processes import EMULATION, output_of

# Beside float64: the result's own rounding, and float32 sums of exact codes, whose
# offset of up to 64 cancels (2^-16 of the sum of |x| |w| covers both). From 65 rows on,
# or 33 of eight bits, weights are rounded, too.
CHECK = """
import sys
import mlx.core as mx
import numpy as np
from mlx_vulkan import native
bits, group, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
dtype = getattr(mx, name)
half = 2.0 ** {"bfloat16": -8, "float16": -11}[name]
rng = np.random.default_rng(3)


def wide(a):
    return np.array(a.astype(mx.float32)).astype(np.float64)


def weights_of(w, scales, biases):
    codes = np.unpackbits(
        np.ascontiguousarray(np.array(w)).view(np.uint8), axis=-1, bitorder="little")
    codes = codes.reshape(*w.shape[:-1], -1, bits) @ (1 << np.arange(bits))
    spread = [np.repeat(wide(a), group, -1) for a in (scales, biases)]
    return codes * spread[0] + spread[1]


def compare(y, x, full, rounded, label):
    want = np.matmul(wide(x), np.swapaxes(full, -1, -2))
    size = np.matmul(np.abs(wide(x)), np.swapaxes(np.abs(full), -1, -2))
    bound = half * 1.01 * (np.abs(want) + rounded * size) + 2.0**-16 * size + 1e-30
    worst = np.max(np.abs(wide(y) - want) / bound)
    if not worst <= 1:
        sys.exit(f"{label}: {worst}")


def check(x, w, scales, biases, label):
    y = mx.quantized_matmul(
        x, w, scales, biases, transpose=True, group_size=group, bits=bits)
    rounded = x.shape[-2] > (64 if bits == 4 else 32)
    compare(y, x, weights_of(w, scales, biases), rounded, label)


def matrix(*shape):
    words = (*shape[:-1], shape[-1] * bits // 32)
    w = mx.array(rng.integers(0, 2**32, words, np.uint32))
    groups = (*shape[:-1], shape[-1] // group)
    return w, *(mx.array(rng.standard_normal(groups)).astype(dtype) for _ in range(2))


def rows(*shape):
    return mx.array(rng.standard_normal(shape)).astype(dtype)


for m, n, k in ((2, 1, 128), (16, 65, 640), (33, 40, 256), (64, 24, 384)):
    check(rows(m, k), *matrix(n, k), f"{m} rows, {n} x {k}")
check(rows(9, 264)[:, 8:], *matrix(20, 256), "padded rows")
check(rows(3, 6, 128), *matrix(3, 20, 128), "a stack")
for m, n, k in ((65, 200, 128), (97, 68, 384), (130, 17, 256)):
    check(rows(m, k), *matrix(n, k), f"{m} rows, {n} x {k}")
check(rows(70, 264)[:, 8:], *matrix(72, 256), "70 padded rows")
if bits == 4 and sys.argv[4] == "large":
    for m, n, k in ((300, 130, 384), (513, 1024, 1024), (700, 4096, 4096),
                    (1030, 3072, 3072), (257, 1024, 8192), (2047, 2560, 2560)):
        check(rows(m, k), *matrix(n, k), f"{m} rows, {n} x {k}")

# Weights are rounded without a bias: truncated ones are 0.7 ulp too small in the mean.
# That of 720 columns has 0.02 ulp of the results' own rounding, and 0.05 ulp of ties
# away from zero.
w, scales, biases = matrix(720, 256)
w = w, mx.abs(scales), mx.abs(biases)
y = wide(mx.quantized_matmul(
    mx.ones((70, 256), dtype), *w, transpose=True, group_size=group, bits=bits))
bias = y.mean() / weights_of(*w).sum(-1).mean() - 1
if abs(bias) > half / 8:
    sys.exit(f"the mean of products of positive weights is off by {bias}")

# Experts of sorted rows, few and more; out of range, rows are 0.
w = matrix(5, 40, 256)
full = np.concatenate([weights_of(*w), np.zeros((1, 40, 256))])
for counts in ((2, 17, 0, 6, 3), (0, 3, 133, 40, 0)):
    right = np.repeat(np.arange(5), counts).tolist() + [5, 2**31]
    x = rows(len(right), 1, 256)
    y = mx.gather_qmm(
        x, *w, rhs_indices=mx.array(np.array(right, np.uint32)), transpose=True,
        sorted_indices=True, group_size=group, bits=bits)
    which = full[np.minimum(right, 5)]
    compare(y, x, which, len(right) > 90, f"sorted rows: {counts}")

# Where a scale or bias is not finite, nothing else changes.
x, (w, scales, biases) = rows(70, 128), matrix(40, 128)
good = wide(mx.quantized_matmul(
    x, w, scales, biases, transpose=True, group_size=group, bits=bits))
scales[7, 0], biases[33, 1 if group < 128 else 0] = float("nan"), float("inf")
y = wide(mx.quantized_matmul(
    x, w, scales, biases, transpose=True, group_size=group, bits=bits))
if np.isfinite(y[:, [7, 33]]).any():
    sys.exit("a scale of NaN or a bias of Inf is lost")
rest = np.arange(40)[~np.isin(np.arange(40), [7, 33])]
if not np.array_equal(y[:, rest], good[:, rest]):
    sys.exit("a scale that is not finite changes other columns")

if bits == 8:
    sys.exit()  # no products are joined

# Joined by rewrites: the same bits as one after the other.
swiglu = mx.compile(lambda gate, up: gate * mx.sigmoid(gate) * up, shapeless=True)


def layer(x, h, weights, done):
    def product(x, w):
        return done(mx.quantized_matmul(
            x, *w, transpose=True, group_size=group, bits=bits))
    gate, up, o, *more = weights
    gate, up = product(x, gate), product(x, up)
    o = product(h, o)
    gated, total = done(swiglu(gate, up)), done(h + o)
    turned = done(mx.abs(total))
    return gate, up, o, gated, total, *(product(turned, w) for w in more)


def now(y):
    mx.eval(y)
    return y


def fired():
    counters = native.counters()
    return [counters["rewrites_" + rule] for rule in ("gate", "residual", "siblings")]


many = sys.argv[4] != "few"  # and three products of the same rows
shapes = [(40, 128), (40, 128), (128, 128)] + [(n, 128) for n in (128, 24, 40)] * many
for m in (19, 2):
    x, h = rows(m, 128), rows(m, 128)
    weights = [matrix(*shape) for shape in shapes]
    mx.eval(x, h, weights)
    apart = layer(x, h, weights, now)
    before = fired()
    together = layer(x, h, weights, lambda y: y)
    mx.eval(together)
    for i, (a, b) in enumerate(zip(apart, together)):
        if not mx.array_equal(a.view(mx.uint16), b.view(mx.uint16)):
            sys.exit(f"{m} rows: output {i} differs where products are joined")
    print([b - a for a, b in zip(before, fired())])
"""


# Each compiles an emulated kernel, for seconds.
FORMATS = [(4, 64, "bfloat16"), (8, 64, "bfloat16")]
FULL = os.environ.get("MLX_VK_TEST_FULL") == "1"
if FULL:
    FORMATS += [(4, 128, "float16")]


@pytest.mark.parametrize("bits, group, dtype", FORMATS)
def test_fragments(gpu, request, bits, group, dtype):
    software = "llvmpipe" in request.config.mlxvk_name
    many = "large" if not software else "many" if FULL else "few"
    done = output_of(
        *("-c", CHECK, bits, group, dtype, many),
        MLX_VK_TEST=f"skinny_rows=2,{EMULATION}",
        MLX_VK_DEBUG="paths",
    )
    if software:
        for kernel in ("qmm_tall", "qmm_fragments")[: 2 if bits == 4 else 1]:
            assert kernel in done.stderr
            assert f" sorted: {kernel}" in done.stderr
        fired = f"[1, 1, {3 if many == 'many' else 1}]"
        assert done.stdout.splitlines() == ([fired] * 2 if bits == 4 else [])


# Tiles have 32 x 64 items where they are emulated, 64 x 128 and more elsewhere. An
# item's error: its own rounding, and float32 sums of exact products.
DENSE = """
import sys
import mlx.core as mx
import numpy as np
name, tile = sys.argv[1], int(sys.argv[2])
dtype = getattr(mx, name)
half = 2.0 ** {"bfloat16": -8, "float16": -11}[name]
rng = np.random.default_rng(7)


def wide(a):
    return np.array(a.astype(mx.float32)).astype(np.float64)


def some(*shape):
    return mx.array(rng.standard_normal(shape).astype(np.float32)).astype(dtype)


def turned(a):
    return mx.swapaxes(a, -1, -2)


def columns(a):  # stored column by column
    return turned(mx.contiguous(turned(a)))


def check(x, w, label, c=None):
    wt = turned(w)
    for i, a in enumerate((x, columns(x))):
        for j, b in enumerate((wt, mx.contiguous(wt))):
            check_layout(a, b, f"{label}, layouts {i} {j}", c)


def check_layout(x, w, label, c):
    y = x @ w if c is None else mx.addmm(c, x, w, 0.5, 2.0)
    a, b = wide(x), wide(w)
    with np.errstate(invalid="ignore"):
        want, size = a @ b, np.abs(a) @ np.abs(b)
    if c is not None:
        want, size = 0.5 * want + 2 * wide(c), 0.5 * size + 2 * np.abs(wide(c))
    y = wide(y)
    known = np.isfinite(want)
    if not np.array_equal(y[~known], want[~known], equal_nan=True):
        sys.exit(f"{label}: NaN or Inf where they are not")
    bound = half * 1.01 * np.abs(want[known]) + 2.0**-20 * size[known]
    worst = np.max(np.abs(y[known] - want[known]) / bound)
    if not worst <= 1:
        sys.exit(f"{label}: {worst}")


check(some(tile, 32), some(2 * tile, 32), "one tile, one step")
check(some(2 * tile + 9, 160), some(4 * tile + 8, 160), "tiles that overlap")
check(some(tile + 1, 96)[:, 32:], some(2 * tile, 64), "padded rows")
check(some(3, tile, 64), some(3, 2 * tile, 64), "a batch")
odd = some(tile + 8, 64)
odd[-1, 5], odd[tile - 1, 0], odd[1, 63] = float("nan"), float("inf"), float("-inf")
check(odd, some(2 * tile + 8, 64), "NaN and Inf")
check(some(tile, 64), some(2 * tile, 64), "a bias", c=some(2 * tile))
rows, outputs = 2 * tile + 9, 2 * tile + 8
check(some(rows, 64), some(outputs, 64), "a sum", c=some(rows, outputs))
if tile > 32:
    check(some(512, 4096), some(4096, 4096), "parts of k")
    check(some(512, 4096), some(1024, 4096), "parts and a sum", c=some(512, 1024))
    check(some(200, 768), some(776, 768), "few tiles")
    check(some(1100, 1056), some(2056, 1056), "many tiles")
    check(some(1030, 1024), some(3080, 1024), "many columns")
"""


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"] if FULL else ["bfloat16"])
def test_dense_fragments(gpu, request, dtype):
    software = "llvmpipe" in request.config.mlxvk_name
    done = output_of(
        *("-c", DENSE, dtype, 32 if software else 1024),
        MLX_VK_TEST=f"skinny_rows=2,{EMULATION}",
        MLX_VK_PROFILE="1",
    )
    if software:
        used = [line for line in done.stderr.splitlines() if "gemm_fragments" in line]
        for layout in ("A_T=0 Y_T=0", "A_T=1 Y_T=0", "A_T=1 Y_T=1"):
            assert any(layout in line for line in used)


# Tiles have 32 x 64 items where they are emulated, 64 x 128 elsewhere; sums of 128
# products (768 elsewhere) and more are made in parts where tiles are few.
CONVOLUTIONS = """
import sys
import mlx.core as mx
import numpy as np
from mlx_vulkan.cases.conv import convolve
name, software, full = sys.argv[1], sys.argv[2] == "1", sys.argv[3] == "1"
dtype = getattr(mx, name)
half = 2.0 ** {"bfloat16": -8, "float16": -11}[name]
rng = np.random.default_rng(11)


def wide(a):
    return np.array(a.astype(mx.float32)).astype(np.float64)


def some(*shape):
    return mx.array(rng.standard_normal(shape).astype(np.float32)).astype(dtype)


def close(label, y, want, size):
    known = np.isfinite(want)
    if not np.array_equal(wide(y)[~known], want[~known], equal_nan=True):
        sys.exit(f"{label}: NaN or Inf where they are not")
    bound = half * 1.01 * np.abs(want[known]) + 2.0**-20 * size[known] + 1e-30
    worst = np.max(np.abs(wide(y)[known] - want[known]) / bound)
    if not worst <= 1:
        sys.exit(f"{label}: {worst}")


def check(label, x, w, stride=1, lo=0, hi=None, w_dilation=1, x_dilation=1, flip=False):
    hi = lo if hi is None else hi
    axes = x.ndim - 2
    lists = [list(v) if isinstance(v, tuple) else [v] * axes
             for v in (stride, lo, hi, w_dilation, x_dilation)]
    stride, lo, hi, w_dilation, x_dilation = lists
    y = mx.conv_general(
        x, w, stride=stride, padding=(lo, hi), kernel_dilation=w_dilation,
        input_dilation=x_dilation, groups=x.shape[-1] // w.shape[-1], flip=flip)
    with np.errstate(invalid="ignore"):
        want = convolve(wide(x), wide(w), *lists, flip)
    size = convolve(np.abs(wide(x)), np.abs(wide(w)), *lists, flip)
    close(label, y, want, size)


big = 1 if software else 2
check("a line, unsplit", some(2, 171, 32), some(64 * big, 3, 32), lo=1)
check("groups", some(3, 171, 64), some(144 * big, 3, 32), stride=2, lo=2)
check("in parts", some(1, 8, 7 * big, 128 * big), some(144 * big, 3, 3, 64 * big), lo=1)
check("a plane", some(2, 13, 11, 64), some(72 * big, 3, 3, 64), lo=1)
odd = some(1, 12, 17, 32)
odd[0, 3, 4, 5], odd[0, 11, 16, 31] = float("nan"), float("inf")
check("all of it", odd, some(136 * big, 3, 2, 32), stride=(1, 2), lo=(3, 1), hi=(1, 4),
      w_dilation=(2, 1), flip=True)
x, w = some(1, 17, 16, 160), some(96 * big, 3, 3, 160)
check("padded channels", x[..., 32:], w[..., :128], lo=1)


def loss(x, w):
    return mx.sum(mx.conv2d(x, w, stride=2, padding=1) * cotangent)


x, w = some(2, 16, 14, 64 * big), some(64, 3, 3, 64 * big)
cotangent = some(*mx.conv2d(x, w, stride=2, padding=1).shape)
dx = mx.grad(loss)(x, w)
turned = np.swapaxes(wide(w), 0, -1)
args = [1, 1], [1, 1], [2, 2], [1, 1], [2, 2], True
want = convolve(wide(cotangent), turned, *args)
size = convolve(np.abs(wide(cotangent)), np.abs(turned), *args)
close("a gradient", dx, want, size)
if full:
    check("a volume", some(1, 6, 7, 9, 32), some(64 * big, 2, 3, 2, 32), lo=1)
"""


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"] if FULL else ["bfloat16"])
def test_convolution_fragments(gpu, request, dtype):
    software = "llvmpipe" in request.config.mlxvk_name
    done = output_of(
        *("-c", CONVOLUTIONS, dtype, int(software), int(FULL)),
        folder=Path(__file__).parent,
        MLX_VK_TEST=f"skinny_rows=2,{EMULATION}",
        MLX_VK_PROFILE="1",
    )
    if software:
        assert "conv_fragments" in done.stderr
        assert "splitk_sum" in done.stderr
