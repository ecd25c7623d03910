"""Products of one row by integer dot products (quant/x_digits.glsl), the default on
NVIDIA's GPUs alone: beside float64, and joined with what precedes and follows them."""

import pytest
from processes import output_of

# Beside float64: the result's own rounding, items of x off by 2^-22 of the largest of
# their 32 or by 2^-127, and float32 sums of K / 32 chunks (2^-24 each).
CHECK = """
import sys
import mlx.core as mx
import numpy as np
from mlx_vulkan import native
group, name = int(sys.argv[1]), sys.argv[2]
dtype = getattr(mx, name)
half, least = {"bfloat16": (2.0**-8, 2.0**-133), "float16": (2.0**-11, 2.0**-24)}[name]
rng = np.random.default_rng(5)


def wide(a):
    return np.array(a.astype(mx.float32)).astype(np.float64)


def matrix(n, k):
    w = mx.array(rng.integers(0, 2**32, (n, k // 8), np.uint32))
    sides = rng.standard_normal((2, n, k // group)) / k
    return w, *(mx.array(side).astype(dtype) for side in sides)


def product(x, w):
    return mx.quantized_matmul(x, *w, transpose=True, group_size=group, bits=4)


def check(x, w, label):
    x = mx.array(x).astype(dtype)
    n, k = w[0].shape[0], x.shape[-1]
    codes = np.array(w[0])[:, :, None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15
    scales, biases = (np.repeat(wide(a), group, -1) for a in w[1:])
    parts = codes.reshape(n, k) * scales, biases
    y, items = wide(product(x, w)), wide(x)
    want = items @ (parts[0] + parts[1]).T
    if not np.isfinite(items).all():
        if np.isfinite(y).any():
            sys.exit(f"{label}: NaN or Inf of x is lost")
        return
    largest = np.repeat(np.abs(items).reshape(1, -1, 32).max(-1), 32, -1)
    sizes = (np.abs(parts[0]) + np.abs(parts[1])).T
    bound = half * 1.01 * np.abs(want) + 2.0**-22 * largest @ sizes + least
    bound += k / 32 * 2.0**-24 * np.abs(items) @ sizes + 2.0**-127 * sizes.sum(0)
    worst = np.max(np.abs(y - want) / bound)
    if not worst <= 1:
        sys.exit(f"{label}: {worst}")


for n, k in ((40, 512), (1, 128), (9, 2048), (70, 896)):
    x, w = rng.standard_normal((1, k)), matrix(n, k)
    check(x, w, f"{n} x {k}")
    check(x * 2.0 ** rng.integers(-14, 8, (1, k)), w, f"{n} x {k}, of many sizes")
    check(x * 2.0**-14, w, f"{n} x {k}, small")
    check(x * least * 8, w, f"{n} x {k}, subnormal")
    check(x * 0, w, f"{n} x {k}, zeros")
    for odd in np.nan, np.inf, -np.inf:
        x[0, k // 3] = odd
        check(x, w, f"{n} x {k}, {odd}")

# Joined by rewrites: the same bits as one after the other.
swiglu = mx.compile(lambda gate, up: gate * mx.sigmoid(gate) * up, shapeless=True)


def layer(x, weight, weights, done):
    normed = done(mx.fast.rms_norm(x, weight, 1e-6))
    gate, up = (done(product(normed, w)) for w in weights[:2])
    gated = done(swiglu(gate, up))
    down = done(product(gated, weights[2]))
    return normed, gate, up, gated, down, done(x + down)


def now(y):
    mx.eval(y)
    return y


def fired():
    counters = native.counters()
    rules = ("norm", "siblings", "gate", "residual")
    return [counters["rewrites_" + rule] for rule in rules]


x, weight = (mx.array(rng.standard_normal(n)).astype(dtype) for n in ((1, 256), 256))
weights = [matrix(384, 256), matrix(384, 256), matrix(256, 384)]
mx.eval(x, weight, weights)
apart = layer(x, weight, weights, now)
before = fired()
together = layer(x, weight, weights, lambda y: y)
mx.eval(together)
for i, (a, b) in enumerate(zip(apart, together)):
    if not mx.array_equal(a.view(mx.uint16), b.view(mx.uint16)):
        sys.exit(f"output {i} differs where products are joined")
print([b - a for a, b in zip(before, fired())])
"""


@pytest.mark.parametrize("group, dtype", [(32, "bfloat16"), (64, "float16")])
def test_rows_by_integer_dot_products(gpu, group, dtype):
    done = output_of(
        *("-c", CHECK, group, dtype),
        MLX_VK_TEST="plans=quant.dot_row_k=1",
        MLX_VK_DEBUG="select",
    )
    assert "quant/qmv{" in done.stderr
    assert "INT_DOT=0" not in done.stderr
    assert done.stdout.splitlines() == ["[1, 1, 1, 1]"]
