"""Kernels of mlx-vlm beside the operations of the same package (see twins.py)."""

import contextlib
import importlib
import sys
import types
from pathlib import Path

import mlx.core as mx
from extract import Finder
from twins import delta_inputs, normal

TWINS = {}
AVAILABLE = importlib.util.find_spec("mlx_vlm") is not None


def twin(*kernels, types=("float32", "float16", "bfloat16")):
    def register(function):
        TWINS[function.__name__] = (function, kernels, types)
        return function

    return register


def module(name):
    """mlx_vlm.NAME without what the package imports and this machine lacks."""
    if "mlx_vlm" not in sys.modules:
        spec = importlib.util.find_spec("mlx_vlm")
        bare = types.ModuleType("mlx_vlm")
        bare.__path__ = [str(Path(spec.origin).parent)]
        sys.modules["mlx_vlm"] = bare
        sys.meta_path.append(Finder)
    return importlib.import_module(f"mlx_vlm.{name}")


@contextlib.contextmanager
def instead(where, name, value):
    kept = getattr(where, name)
    setattr(where, name, value)
    try:
        yield
    finally:
        setattr(where, name, kept)


def no_metal():
    return instead(mx.metal, "is_available", lambda: False)


def wide(*arrays):
    return [x.astype(mx.float32) for x in arrays]


@twin("inkling_banded_mask", types=("float32", "float16"))
def banded_mask(dtype):
    language = module("models.inkling.language")
    rel, proj = normal(2, 5, 3, 16, dtype=dtype), normal(16, 8, dtype=dtype)
    got = language.banded_additive_mask(rel, proj, 4, 9, 6, 8)
    with no_metal():
        want = language.banded_additive_mask(*wide(rel, proj), 4, 9, 6, 8)
    # -1e30 is -Inf as float16; what it masks is compared as a mask.
    hidden = want < -1e29
    got, want = (mx.where(hidden, x < -60000, x) for x in (got, want))
    return [got.astype(dtype)], [want], 16


@twin("hc_sinkhorn_split", types=("float32",))
def sinkhorn_split(dtype):
    hyper = module("models.deepseek_v4.hyper_connection")
    inputs = (normal(2, 3, 24), mx.array([0.5, 1.0, 1.5]), normal(24), 4, 5, 1e-6)
    got = hyper.hc_split_sinkhorn(*inputs)
    want = hyper._hc_split_sinkhorn_ops(*inputs)
    return got, want, 5 * 2 * 6 + 16


@twin("deepseek_v41_fp8_roundtrip")
def fp8_roundtrip(dtype):
    fakequant = module("models.deepseek_v41.fakequant")
    x = normal(3, 4, 64, dtype=dtype)
    got = fakequant.fake_quant_fp8_ue8m0(x)
    with instead(fakequant, "_fp8_roundtrip_kernel", None):
        want = fakequant.fake_quant_fp8_ue8m0(x)
    return [got], [want], 1


@twin("mlx_vlm_llguidance_mask")
def guidance_mask(dtype):
    structured = module("structured")
    logits = normal(2, 70, dtype=dtype)
    mask = mx.array([[-5, 0x1234567, 3], [7, -1, 0]], mx.int32)
    got = structured._apply_llguidance_mask(logits, mask)
    tokens = mx.arange(70)
    allowed = (mask[:, tokens // 32] >> (tokens % 32)) & 1
    want = mx.where(allowed.astype(mx.bool_), logits, -mx.inf)
    hidden = mx.isinf(want)
    got, want = (mx.where(hidden, mx.isinf(x) & (x < 0), x) for x in (got, want))
    return [got.astype(dtype)], [want], 1


@twin("turboquant_pack_lowbit", "turboquant_unpack_lowbit", types=("float32",))
def low_bits(dtype):
    turboquant = module("turboquant")
    values = mx.random.randint(0, 8, (5, 50), mx.uint32)

    def both():
        packed = turboquant._pack_lowbit(values, 3)
        return [packed, turboquant._unpack_lowbit(packed, 3, 50)]

    got = both()
    with instead(turboquant, "_pack_lowbit_kernel", lambda: None):
        with instead(turboquant, "_unpack_lowbit_kernel", lambda: None):
            want = both()
    return got, want, 1


def one_bit(dtype, rows, width):
    quantization = module("quantization.one_bit")
    weight = mx.random.randint(0, 2**31 - 1, (96, width // 32), mx.int32)
    weight = weight.view(mx.uint32)
    scales, biases = (normal(96, width // 64, dtype=dtype) for _ in "sb")
    x = normal(rows, width, dtype=dtype)
    got = quantization.one_bit_quantized_matmul(
        x, weight, scales, biases, group_size=64
    )
    shifts = mx.arange(32, dtype=mx.uint32)
    bits = ((weight[..., None] >> shifts) & 1).reshape(96, width).astype(mx.float32)
    scales, biases = (mx.repeat(v, 64, axis=1) for v in wide(scales, biases))
    weights = bits * scales + biases
    if rows >= 16:  # that kernel keeps weights in x's type
        weights = weights.astype(dtype).astype(mx.float32)
    return [got], [x.astype(mx.float32) @ weights.T], 2 * width


@twin("mlx_vlm_affine_1bit_qmv_gs_64_rows_*")
def one_bit_vector(dtype):
    return one_bit(dtype, 2, 256)


@twin("mlx_vlm_affine_1bit_qmm_gs_64")
def one_bit_matrix(dtype):
    return one_bit(dtype, 37, 512)


@twin("exact_speculative_verify_gemv", types=("float16", "bfloat16"))
def verify_gemv(dtype):
    verify = module("models.exact_speculative_verify")
    x, weight = normal(1, 3, 520, dtype=dtype), normal(64, 520, dtype=dtype)
    got = verify.exact_speculative_verify_weight(weight, x)
    x, weight = wide(x, weight)
    return [got], [x @ weight.T], 520


def rotated(dtype, pairing, axes):
    rope = module("models.rope_utils")
    q, k = normal(2, 3, 5, 80, dtype=dtype), normal(2, 1, 5, 80, dtype=dtype)
    shape = (3, 2, 5) if axes == 3 else (2, 5)
    positions = mx.random.randint(0, 20, shape, mx.int32)
    frequencies = 1e4 ** (-mx.arange(0, 64, 2) / 64)
    selector = mx.arange(32) % 3
    kernel = rope._mrope_apply_kernel(64, axes, pairing)
    inputs = (positions, frequencies, selector.astype(mx.int32), pairing)
    got = rope._fast_mrope_apply(kernel, q, k, *inputs)
    want = rope._mrope_apply(*wide(q, k), *inputs)
    # Angles of up to 20, each with half a unit, beside the products.
    return got, want, 400


@twin("mrope_apply_half_split_64_3d")
def multi_rope(dtype):
    return rotated(dtype, module("models.rope_utils")._HALF_SPLIT, 3)


@twin("mrope_apply_even_odd_64_2d")
def multi_rope_pairs(dtype):
    return rotated(dtype, module("models.rope_utils")._EVEN_ODD, 2)


@twin("qwen3_5_gated_delta_with_states", "qwen3_5_gated_delta_with_states_mask")
def delta_with_states(dtype):
    delta = module("models.qwen3_5.gated_delta")
    got, want = [], []
    for mask in (None, mx.array([[True, False, True, True, False]] * 2)):
        inputs = delta_inputs(dtype)
        q, k, v, g, beta, state = inputs
        # The function's own gates: whatever is given here, it gets ours.
        gates = (g, beta)
        with instead(delta, "_compute_g_beta", lambda *_, gates=gates: gates):
            arguments = (q, k, v, None, None, None, None, state, mask)
            got += delta.gated_delta_update_with_states(*arguments, state_steps=3)
        want += delta._gated_delta_with_states_ops(*wide(*inputs), mask, 3)
    return got, want, 5 * (2 * 128 + 4)


@twin("nemotron_h_target_verify_mamba_*", types=("float32",))
def mamba_verify(dtype):
    verifier = module("models.nemotron_h.speculative_verifier")
    n, t, h, d, groups, states = 1, 3, 4, 16, 2, 64
    inputs = (
        normal(n, t, h, d, dtype=dtype),
        mx.log(mx.random.uniform(1.0, 4.0, (h,))),
        *(normal(n, t, groups, states, dtype=dtype) for _ in "BC"),
        mx.random.normal((h,)),
        normal(n, t, h, dtype=dtype),
        mx.random.normal((h,)),
        normal(n, h, d, states),
        (0.001, 100.0),
        None,
    )
    got = verifier._mamba_update_exact(*inputs)
    with no_metal():
        want = verifier._mamba_update_exact(*inputs)
    return got[:2], want[:2], t * states + 64


def verified_linear(dtype, length):
    verifier = module("models.quantized_verifier")
    import mlx.nn as nn

    linear = nn.Linear(512, 64, bias=False)
    linear.weight = normal(64, 512, dtype=dtype, scale=0.05)
    linear = nn.QuantizedLinear.from_linear(linear, group_size=64, bits=4)
    x = normal(1, length, 512, dtype=dtype)
    got = verifier.optimized_affine_linear(linear, x)
    weight = mx.dequantize(
        linear.weight, *wide(linear.scales, linear.biases), group_size=64, bits=4
    )
    return [got], [x.astype(mx.float32) @ weight.T], 2 * 512


@twin("quantized_verify_affine_qmv_b4_*", types=("float16", "bfloat16"))
def verified(dtype):
    return verified_linear(dtype, 3)


@twin("quantized_verify_affine_qmv_token_tiled_*", types=("float16", "bfloat16"))
def verified_tiled(dtype):
    return verified_linear(dtype, 9)


@twin("quantized_verify_affine_qmv_streamed_*", types=("float16", "bfloat16"))
def verified_streamed(dtype):
    return verified_linear(dtype, 7)


@twin("indexed_sparse_attention_*", types=("float16", "bfloat16"))
def sparse_attention(dtype):
    sparse = module("models.sparse_attention")
    q, k, v = normal(1, 4, 3, 64), normal(1, 2, 40, 64), normal(1, 2, 40, 64)
    q, k, v = (x.astype(dtype) for x in (q, k, v))
    order = mx.argsort(mx.random.normal((1, 3, 40)), axis=-1)[..., :8]
    got = sparse.indexed_sparse_attention(q, k, v, order.astype(mx.int32), 0.125)
    chosen = (mx.arange(40) == order[..., None]).any(2)[:, None]
    want = mx.fast.scaled_dot_product_attention(
        *wide(q, k, v), scale=0.125, mask=chosen
    )
    return [got], [want], 64 + 40


def interpolated(dtype, function, **arguments):
    kernels = module("models.kernels")
    x = normal(2, 3, 9, 7, dtype=dtype)
    got = getattr(kernels, function)(x, size=(5, 11), **arguments)
    with instead(kernels, "_HAS_METAL", False):
        want = getattr(kernels, function)(*wide(x), size=(5, 11), **arguments)
    # 16 weights, each a cubic of a coordinate of up to 9.
    return [got], [want], 16 * 64


@twin("nearest_interpolation")
def nearest(dtype):
    return interpolated(dtype, "nearest_interpolate")


@twin("bicubic_interpolation_antialias")
def bicubic(dtype):
    return interpolated(dtype, "bicubic_interpolate", antialias=True)


@twin("grid_sample", types=("float32",))
def grid_sample(dtype):
    kernels = module("models.kernels")
    x, grid = normal(2, 6, 5, 4), mx.random.uniform(-0.95, 0.95, (2, 3, 3, 2))
    got = kernels.grid_sample(x, grid)
    with instead(kernels, "_HAS_METAL", False):
        want = kernels.grid_sample(x, grid)
    return [got], [want], 64


@twin("separable_interpolate", types=("float32",))
def separable(dtype):
    kernels = module("models.kernels")
    x = normal(2, 8, 6, 3)
    iy, ix = mx.random.randint(0, 8, (4, 3)), mx.random.randint(0, 6, (5, 3))
    inputs = (
        x,
        iy,
        mx.random.uniform(shape=(4, 3)),
        ix,
        mx.random.uniform(shape=(5, 3)),
    )
    got = kernels.separable_interpolate(*inputs)
    with instead(kernels, "_HAS_METAL", False):
        want = kernels.separable_interpolate(*inputs)
    return [got], [want], 12
