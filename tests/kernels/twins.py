"""Kernels of mlx-lm beside operations of MLX that mean the same.

A twin is a function of a float type that returns the kernel's outputs, those of the
operations, and how many roundings of float32 the longest chain of one output
item has. The operations are the package's own where it has them, else
written here.
"""

import math

import mlx.core as mx
import mlx.nn as nn
import numpy as np

TWINS = {}


def twin(*kernels, types=("float32", "float16", "bfloat16")):
    def register(function):
        TWINS[function.__name__] = (function, kernels, types)
        return function

    return register


def normal(*shape, dtype=mx.float32, scale=1.0):
    return (mx.random.normal(shape) * scale).astype(dtype)


def delta_inputs(dtype, vector=False, B=2, T=5, Hk=2, Hv=4, Dk=128, Dv=16):
    q, k = (normal(B, T, Hk, Dk) for _ in "qk")
    q, k = (x / mx.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    gates = (B, T, Hv, Dk) if vector else (B, T, Hv)
    return (
        *(q.astype(dtype), k.astype(dtype), normal(B, T, Hv, Dv, dtype=dtype)),
        mx.random.uniform(0.5, 1.0, gates),
        mx.random.uniform(0.0, 1.0, (B, T, Hv)).astype(dtype),
        normal(B, Hv, Dv, Dk, scale=0.1),
    )


def delta_twin(dtype, kernel, vector=False, masked=False):
    from mlx_lm.models import gated_delta

    inputs = delta_inputs(dtype, vector)
    mask = mx.array([[True, False, True, True, False]] * 2) if masked else None
    # The operations would round float16 in between.
    wide = [x.astype(mx.float32) for x in inputs]
    kernel = getattr(gated_delta, kernel)
    y, state = kernel(*inputs, mask)
    want_y, want_state = gated_delta.gated_delta_ops(*wide, mask)
    if mask is not None:  # kernels leave zeros where it is false
        kept = mask[..., None, None]
        y, want_y = (mx.where(kept, x, mx.zeros_like(x)) for x in (y, want_y))
    # A step is two sums of 128 products and an update of each item.
    return [y, state], [want_y, want_state], 5 * (2 * 128 + 4)


@twin("gated_delta_step_packed_btree")
def gated_delta(dtype):
    return delta_twin(dtype, "gated_delta_kernel")


@twin("gated_delta_step")
def gated_delta_unpacked(dtype):
    return delta_twin(dtype, "gated_delta_kernel_unpacked")


@twin("gated_delta_step_xtree")
def gated_delta_tree(dtype):
    return delta_twin(dtype, "gated_delta_kernel_xtree")


@twin("gated_delta_step_mask")
def gated_delta_masked(dtype):
    return delta_twin(dtype, "gated_delta_kernel", masked=True)


@twin("gated_delta_step_vec")
def gated_delta_vector(dtype):
    return delta_twin(dtype, "gated_delta_kernel", vector=True)


@twin("gated_delta_step_vec_mask")
def gated_delta_vector_masked(dtype):
    return delta_twin(dtype, "gated_delta_kernel", vector=True, masked=True)


@twin("ssm_kernel")
def ssm(dtype):
    from mlx_lm.models import ssm as module

    n, h, d, groups, states = 2, 4, 16, 2, 64
    inputs = (
        normal(n, 1, h, d, dtype=dtype),
        mx.log(mx.random.uniform(1.0, 4.0, (h,))),
        *(normal(n, 1, groups, states, dtype=dtype) for _ in "BC"),
        mx.random.normal((h,)),
        normal(n, 1, h, dtype=dtype),
        mx.random.normal((h,)),
        normal(n, h, d, states),
    )
    got = module.ssm_update_kernel(*inputs, (0.001, 100.0))
    # One rounding of dt, which both have in the narrow type, comes first.
    x, A_log, B, C, D, dt, bias, state = inputs
    dt = module.compute_dt(dt, bias, (0.001, 100.0)).astype(mx.float32)
    decay = mx.exp(-mx.exp(A_log) * dt)[:, 0, :, None, None]
    x, B, C = (v.astype(mx.float32)[:, 0] for v in (x, B, C))
    B, C = (mx.repeat(v, h // groups, axis=1)[:, :, None] for v in (B, C))
    added = (x * dt[:, 0, :, None])[..., None] * B
    new = state * decay + added
    y = (new * C).sum(-1) + x * D[:, None]
    # exp of up to some 20 has the error of its argument times 20.
    return got, [y[:, None], new], states + 64


@twin("wkv7_kernel", types=("float32",))
def rwkv7(dtype):
    from mlx_lm.models import rwkv7 as module

    B, T, H, D = 2, 5, 2, 64
    r, k, v = (normal(B, T, H, D, dtype=dtype) for _ in "rkv")
    w = mx.random.uniform(0.5, 1.0, (B, T, H, D)).astype(dtype)
    a, b = (normal(B, T, H, D, dtype=dtype, scale=0.1) for _ in "ab")
    state = normal(B, H, D, D, dtype=dtype)
    got = module.wkv7_kernel(r, w, k, v, a, b, state)
    ys = []
    for t in range(T):
        step = (x[:, t] for x in (r, w, k, v, a, b))
        y, state = module._wkv7_step_ops(*step, state)
        ys.append(y[..., 0])
    return got, [mx.stack(ys, axis=1), state], T * (2 * D + 6)


@twin("attnres_mix")
def attention_residual(dtype):
    from mlx_lm.models import kimi_k3 as module

    blocks = module.ResidualBlocks(1e-5)
    for _ in range(3):
        blocks.append(normal(2, 3, 256, dtype=dtype))
    partial, w = normal(2, 3, 256, dtype=dtype), normal(256, scale=0.1)
    got = module._attn_res_mix(blocks, partial, w, 1e-5)
    want = module._attn_res_mix(blocks, partial, w, 1e-5, use_kernel=False)
    # Logits of sums of 256, through exp, and a sum of 4.
    return [got], [want], 4 * 256


@twin("deepseek_v41_sinkhorn", types=("float32",))
def sinkhorn(dtype):
    from mlx_lm.models import deepseek_v41 as module

    comb, eps = mx.random.uniform(0.1, 1.0, (37, 4, 4)), mx.array([1e-6])
    got = module._sinkhorn(comb, iters=5, eps=eps)
    kernel, module._sinkhorn_kernel = module._sinkhorn_kernel, None
    try:
        want = module._sinkhorn(comb, iters=5, eps=eps)
    finally:
        module._sinkhorn_kernel = kernel
    return [got], [want], 9 * 6


def loss_twin(dtype, name):
    from mlx_lm.tuner import losses

    # One block of 4,096 and a rest.
    p, q = (normal(3, 4999, dtype=dtype) for _ in "pq")
    weights = mx.random.uniform(0.5, 1.0, (3,)).astype(dtype)
    loss = getattr(losses, name)

    def both(p, q):
        value = loss(q, p)
        gradient = mx.grad(lambda x: (loss(x, p) * weights.astype(x.dtype)).sum())(q)
        mx.eval(value, gradient)
        return [value, gradient]

    got = both(p, q)
    available, losses.can_run_metal = losses.can_run_metal, lambda: False
    try:
        want = both(p.astype(mx.float32), q.astype(mx.float32))
    finally:
        losses.can_run_metal = available
    # Sums of 4,999, each thread's of 8, then 10 halvings; the operations' alike.
    return got, want, 64


@twin("kl_forward", "kl_backward", types=("float32", "float16"))
def kl_loss(dtype):
    return loss_twin(dtype, "kl_div_loss")


@twin("js_forward", "js_backward", types=("float32", "float16"))
def js_loss(dtype):
    return loss_twin(dtype, "js_div_loss")


@twin("bitlinear_matmul")
def bitlinear(dtype):
    from mlx_lm.models.bitlinear_layers import BitLinear

    layer = BitLinear(256, 64, bias=False, invert_weight_scales=True)
    codes = np.random.default_rng(1).integers(0, 3, (64, 256))
    packed = sum(codes[i * 16 : (i + 1) * 16] << (2 * i) for i in range(4))
    layer.weight = mx.array(packed.astype(np.uint8))
    layer.weight_scale = mx.array([1.5]).astype(dtype)
    x = normal(2, 3, 256, dtype=dtype)
    scale = 1 / layer.weight_scale.astype(mx.float32)
    weights = mx.array((codes - 1).astype(np.float32))
    return [layer(x)], [x.astype(mx.float32) @ weights.T * scale], 256


def rms(x, eps):
    x = x.astype(mx.float32)
    return x * mx.rsqrt((x * x).mean(-1, keepdims=True) + eps)


@twin("rms_norm_sigmoid_gate")
def norm_gate(dtype):
    from mlx_lm.kernels import rms_norm_sigmoid_gate

    # What attention gives is transposed.
    x = normal(2, 3, 4, 80, dtype=dtype).swapaxes(1, 2)
    gate = normal(2, 3, 4 * 80, dtype=dtype)
    got = rms_norm_sigmoid_gate(x, gate, eps=1e-5)
    want = rms(x, 1e-5).swapaxes(1, 2).reshape(2, 3, -1)
    return [got], [want * mx.sigmoid(gate.astype(mx.float32))], 80


@twin("qk_norm", types=("float32", "float16"))
def query_key_norm(dtype):
    from mlx_lm.kernels import qk_norm

    heads, kv, dim = 4, 2, 80
    x = normal(2, 3, 2 * (heads + kv) * dim, dtype=dtype)
    sizes = {"n_heads": heads, "n_kv_heads": kv, "head_dim": dim}
    got = qk_norm(x, **sizes, eps=1e-5, query_scale=0.125)
    y = rms(x[..., : (heads + kv) * dim].reshape(2, 3, heads + kv, dim), 1e-5)
    return got, [y[:, :, :heads] * 0.125, y[:, :, heads:]], dim


@twin("qk_norm_rope", types=("float32",))
def query_key_norm_rope(dtype):
    from mlx_lm.kernels import qk_norm_rope

    heads, kv, dim = 4, 2, 64
    x = normal(2, 3, 2 * (heads + kv) * dim, dtype=dtype)
    sizes = {"n_heads": heads, "n_kv_heads": kv, "head_dim": dim}
    got = qk_norm_rope(x, **sizes, eps=1e-5, query_scale=0.125, rope_base=1e4, offset=7)
    y = rms(x[..., : (heads + kv) * dim].reshape(2, 3, heads + kv, dim), 1e-5)
    y = mx.fast.rope(
        y.swapaxes(1, 2), dim, traditional=True, base=1e4, scale=1.0, offset=7
    ).swapaxes(1, 2)
    # Angles of up to 9 rounded by a unit each, and fast::sin's 2^-20.
    return got, [y[:, :, :heads] * 0.125, y[:, :, heads:]], dim + 64


@twin("norm_add_norm", "norm_add", "norm_add_norm_pre_norm", types=("float32",))
def norm_add(dtype):
    from mlx_lm.kernels import norm_add_norm, pre_norm

    D = 1000
    branch, stream = normal(3, D, dtype=dtype), normal(3, D)
    alpha, beta = (mx.random.uniform(0.5, 1.5, (D,)) for _ in "ab")
    post, norm = mx.random.uniform(0.5, 1.5, (D,)).astype(dtype), nn.RMSNorm(D)
    norm.weight = mx.random.uniform(0.5, 1.5, (D,))
    arguments = {"alpha": alpha, "beta": beta, "post_eps": 1e-5}
    new, normed = norm_add_norm(
        branch, stream, **arguments, post_weight=post, next_norm=norm
    )
    plain, _ = norm_add_norm(
        branch, stream, **arguments, post_weight=None, next_norm=None
    )
    again = pre_norm(new, norm, dtype=dtype)
    want = alpha * stream + beta * rms(branch * post, 1e-5)
    want_normed = rms(want, norm.eps) * norm.weight
    want_plain = alpha * stream + beta * rms(branch, 1e-5)
    wants = [want, want_normed, want_plain, want_normed]
    return [new, normed, plain, again], wants, 2 * D


@twin("post_expert_norm_combine", types=("float32",))
def expert_combine(dtype):
    from mlx_lm.kernels import post_expert_norm_combine

    experts, weights = normal(3, 4, 1000, dtype=dtype), mx.random.uniform(shape=(3, 4))
    w = mx.random.uniform(0.5, 1.5, (1000,)).astype(dtype)
    got = post_expert_norm_combine(experts, weights, norm_weight=w, eps=1e-5)
    want = (rms(experts * w, 1e-5) * weights[..., None]).sum(1)
    return [got], [want], 1000


@twin("expert_routing", types=("float32",))
def routing(dtype):
    from mlx_lm.kernels import expert_routing

    logits, bias = normal(5, 60), normal(60)
    indices, weights = expert_routing(
        logits, bias, top_k=4, multiplier=1.5, score_eps=1e-9, route_scale=2.0
    )
    scores = mx.sigmoid(logits * 1.5)
    order = mx.argsort(-(scores + bias), axis=-1)[..., :4]
    chosen = mx.take_along_axis(scores, order, axis=-1)
    chosen = chosen / (chosen.sum(-1, keepdims=True) + 1e-9) * 2.0
    return [indices, weights], [order, chosen], 16


def bound(want: np.ndarray, dtype, roundings: int) -> float:
    """Of |kernel - operations|, both of which are off from the exact value.

    By Higham's 2.4 a chain of n roundings of float32 is off by n u of the sum of
    magnitudes, and by sqrt(n) u on average for roundings of random sign: what
    follows allows 8 sqrt(n) u, in units of the largest output, for each of the
    two. An output in a narrow type is rounded once more in each.
    """
    unit = {mx.float16: 2.0**-11, mx.bfloat16: 2.0**-8}.get(dtype, 0.0)
    scale = float(np.abs(want).max())
    return scale * (2 * 8 * math.sqrt(roundings) * 2.0**-24 + 2 * unit)
