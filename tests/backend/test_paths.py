"""MLX_VK_DEBUG=paths: which kernel ran for which shape."""

import mlx.core as mx
import numpy as np
import pytest
from processes import output_of

from mlx_vulkan import native

QMM = """
import mlx.core as mx
w = mx.quantize(mx.random.normal((64, 128)), group_size=64, bits=4)
for m in (1, 1, 40):
    x = mx.random.normal((m, 128))
    mx.eval(mx.quantized_matmul(x, *w, group_size=64, bits=4))
"""
SDPA = """
import mlx.core as mx
k = mx.random.normal((1, 2, 50, 64))
for n in (1, 20):
    q = mx.random.normal((1, 4, n, 64))
    mx.eval(mx.fast.scaled_dot_product_attention(q, k, k, scale=0.1))
"""


def rows(code, debug):
    done = output_of("-c", code, MLX_VK_DEBUG=debug)
    return [" ".join(line.split()) for line in done.stderr.splitlines()]


def test_quantized_products_say_their_path(gpu):
    found = rows(QMM, "paths")
    assert "[mlx-vulkan] quantized products" in found
    shape = "f32 m={} n=64 k=128 batch=1 bits=4 group=64 affine w^T"
    assert f"2 x {shape.format(1)}: qmv rows=1" in found
    (tiled,) = [r for r in found if shape.format(40) in r]
    assert tiled.endswith("(no cooperative matrices for x's type)")


def test_attention_says_its_path(gpu):
    found = rows(SDPA, "paths")
    assert "[mlx-vulkan] attention" in found
    head = "1 x f32 batch=1 heads=4/2 queries={} keys=50 dim=64/64: "
    (one,) = [r for r in found if head.format(1) in r]
    assert "decode, splits=1" in one
    (many,) = [r for r in found if head.format(20) in r]
    assert many.endswith(
        "prefill (no cooperative matrices for this type in subgroups of 16 or 32)"
    )


SUMS = """
import mlx.core as mx
x = mx.arange(3000.0).reshape(3, 1000)
want = [499500.0, 1499500.0, 2499500.0]
assert mx.array_equal(x.sum(1), mx.array(want))
assert mx.array_equal(x.cumsum(1)[:, -1], mx.array(want))
assert mx.array_equal(mx.softmax(x, 1).argmax(1), mx.array([999] * 3))
"""


def test_a_driver_that_lets_nobody_choose_subgroups_is_tried_first(gpu):
    done = output_of("-c", SUMS, MLX_VK_TEST="fixed_subgroups", MLX_VK_PROFILE="1")
    assert "probe_lanes{" in done.stdout + done.stderr
    done = output_of("-c", SUMS, MLX_VK_TEST="", MLX_VK_PROFILE="1")
    assert "probe_lanes{" not in done.stdout + done.stderr


def test_nothing_is_printed_unasked(gpu):
    assert not any("quantized products" in r for r in rows(QMM, None))


@pytest.mark.parametrize("additive", [False, True])
def test_batched_decode_reads_the_cache_in_place(gpu, additive):
    """A batch of left-padded sequences, one query each, over a cache with room
    to grow: one dispatch, so that neither cache nor mask is copied."""
    rng = np.random.default_rng(4)
    batch, heads, kv_heads, keys, room, dim = 5, 4, 2, 37, 64, 32

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    q = normal(batch, heads, 1, dim)
    k, v = normal(2, batch, kv_heads, room, dim)
    padding = np.arange(batch) * 7
    shown = (np.arange(keys) >= padding[:, None])[:, None, None]
    mask = np.where(shown, 0, -np.inf).astype(np.float32) if additive else shown
    inputs = [mx.array(a) for a in (q, k, v, mask)]
    mx.eval(mx.abs(inputs[0]))  # starts the device, which probes it
    before = native.counters()["dispatches"]
    y = mx.fast.scaled_dot_product_attention(
        inputs[0],
        inputs[1][:, :, :keys],
        inputs[2][:, :, :keys],
        scale=0.2,
        mask=inputs[3],
    )
    mx.eval(y)
    assert native.counters()["dispatches"] - before == 1

    k, v = (np.repeat(a[:, :, :keys], 2, 1).astype(np.float64) for a in (k, v))
    scores = np.where(shown, q.astype(np.float64) @ k.swapaxes(2, 3) * 0.2, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ v
    # A score is off by 33 roundings of its products' sizes, a weight by a factor of
    # twice the worst of its row and the roundings of exp and of sums over the keys.
    sizes = abs(q.astype(np.float64)) @ abs(k).swapaxes(2, 3) * 0.2
    off = 2 * 33 * 2.0**-24 * sizes.max(-1, keepdims=True)
    bound = (off + (2 * keys + 8) * 2.0**-24) * (
        weights / weights.sum(-1, keepdims=True) @ abs(v)
    )
    assert (abs(np.array(y) - want) <= bound).all()
