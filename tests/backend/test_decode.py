"""Decode attention whose keys several workgroups share: the last one of a row
joins the parts, or a dispatch of its own does, with the same bits."""

import sys

import mlx.core as mx
import numpy as np
from processes import output_of

KEYS = 9001  # more than an invocation may walk on llvmpipe


def inputs(dtype, heads=4, kv_heads=2, queries=1, dim=64):
    rng = np.random.default_rng(5)

    def normal(*shape):
        return mx.array(rng.standard_normal(shape, np.float32)).astype(dtype)

    return (
        normal(1, heads, queries, dim),
        normal(1, kv_heads, KEYS, dim),
        normal(1, kv_heads, KEYS, dim),
    )


def attention(q, k, v, **more):
    return mx.fast.scaled_dot_product_attention(q, k, v, scale=0.125, **more)


def results():
    for dtype in (mx.float32, mx.float16, mx.bfloat16):
        yield attention(*inputs(dtype))
    q, k, v = inputs(mx.float16, queries=3)
    sinks = mx.array([0.5, 9.0, -3.0, 0.0], mx.float16)
    yield attention(q, k, v, mask="causal", sinks=sinks)
    yield attention(q, k, v, mask=mx.arange(KEYS) % 3 == 0)


def test_parts_are_joined_with_the_same_bits(gpu, tmp_path):
    path = tmp_path / "merged.npz"
    output_of(__file__, path, MLX_VK_DISABLE="joins")
    merged = np.load(path)
    for i, y in enumerate(results()):
        assert np.array_equal(np.array(y.astype(mx.float32)), merged[f"arr_{i}"])


def test_attentions_side_by_side_count_apart(gpu):
    """Independent ones, in one batch and on several streams, share no counter,
    and each leaves its own as it was."""
    operands = inputs(mx.float16)
    first = attention(*operands)
    streams = [mx.new_stream(mx.gpu) for _ in range(2)]
    for _ in range(3):
        many = [attention(*operands) for _ in range(7)]
        many += [attention(*operands, stream=s) for s in streams for _ in range(2)]
        mx.eval(many)
        assert all(mx.array_equal(y, first).item() for y in many)


if __name__ == "__main__":
    np.savez(sys.argv[1], *(np.array(y.astype(mx.float32)) for y in results()))
