"""Decode attention whose keys several workgroups share: the last one of a row
joins the parts."""

import mlx.core as mx
import numpy as np

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


def check(q, k, v, **more):
    """Rounding of q and of y, and of sums of KEYS weighted values in float32."""
    y = attention(q, k, v, **more)
    with mx.stream(mx.cpu):
        wide = [x.astype(mx.float32) for x in (q, k, v)]
        if "sinks" in more:
            more["sinks"] = more["sinks"].astype(mx.float32)
        want = attention(*wide, **more)
        unit = 0 if y.dtype == mx.float32 else float(mx.finfo(y.dtype).eps)
        bound = unit * mx.abs(want) + KEYS * 2.0**-24 * mx.abs(wide[2]).max()
        assert (mx.abs(y.astype(mx.float32) - want) <= bound).all().item()


def test_parts_are_joined(gpu):
    for dtype in (mx.float32, mx.float16, mx.bfloat16):
        check(*inputs(dtype))
    q, k, v = inputs(mx.float16, queries=3)
    sinks = mx.array([0.5, 9.0, -3.0, 0.0], mx.float16)
    check(q, k, v, mask="causal", sinks=sinks)
    check(q, k, v, mask=mx.arange(KEYS) % 3 == 0)


def test_a_dispatch_may_need_more_counters(gpu):
    """Of 272 groups of rows, between two of a few."""
    few = inputs(mx.float32)
    check(*few)
    check(*inputs(mx.float32, heads=136, kv_heads=1, queries=8, dim=32))
    check(*few)


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
