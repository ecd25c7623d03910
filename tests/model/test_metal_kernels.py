"""Models with kernels of their own, translated: the GPU's logits, by kernels,
against the CPU's, by the operations that mlx-lm has beside them.

No variable is set: mx.metal.is_available() is true for the models that ask.
"""

import importlib
import sys

import mlx.core as mx
import numpy as np
import pytest
from test_families import check

import tiny
from mlx_vulkan.bench import shapes

# Modules of mlx_lm.models that make kernels as they are imported.
SHARED = ("gated_delta", "ssm", "bitlinear_layers")
WIDE = dict(linear_key_head_dim=128, linear_value_head_dim=64)
QWEN3_5 = {
    name: value
    for name, value in shapes.tiny("qwen3_next").items()
    if name != "model_type"
} | dict(num_experts=0, num_experts_per_tok=0, rope_parameters=None)
RWKV7 = dict(
    norm_eps=1e-5,
    head_dim=32,
    a_low_rank_dim=16,
    v_low_rank_dim=16,
    gate_low_rank_dim=16,
    decay_low_rank_dim=16,
)
KIMI = dict(
    head_dim=32,
    linear_attn_config=dict(
        kda_layers=[1], num_heads=4, head_dim=32, short_conv_kernel_size=4
    ),
    model_max_length=512,
    num_experts=0,
    moe_intermediate_size=64,
    kv_lora_rank=64,
    qk_nope_head_dim=32,
    qk_rope_head_dim=32,
    v_head_dim=32,
)
GRANITE = dict(
    max_position_embeddings=512,
    attention_bias=False,
    embedding_multiplier=12.0,
    attention_multiplier=0.1,
    logits_scaling=8.0,
    residual_multiplier=0.3,
    layer_types=["mamba", "attention"],
    mamba_n_heads=4,
    mamba_d_head=32,
    mamba_proj_bias=False,
    mamba_d_state=32,
    mamba_d_conv=4,
    mamba_n_groups=2,
    mamba_conv_bias=True,
)
CASES = {
    "qwen3_next": ("qwen3_next", {}, {"gated_delta_step"}),
    "qwen3_next, 128 wide": ("qwen3_next", WIDE, {"gated_delta_step_packed_btree"}),
    "mamba2": ("mamba2", {"state_size": 64}, {"ssm_kernel"}),
    "bitnet": ("bitnet", {}, {"bitlinear_matmul"}),
    "qwen3_5": ("qwen3_5", {"text_config": QWEN3_5}, {"gated_delta_step"}),
    "rwkv7": ("rwkv7", RWKV7, {"wkv7_kernel"}),
    "kimi_linear": ("kimi_linear", KIMI, {"gated_delta_step_vec"}),
    "granitemoehybrid": ("granitemoehybrid", GRANITE, {"ssm_kernel"}),
}


@pytest.fixture
def called(monkeypatch, request):
    """Names of the kernels that ran."""
    made, names = mx.fast.metal_kernel, set()

    def noting(*args, **kwargs):
        kernel = made(*args, **kwargs)

        def call(**arguments):
            names.add(kwargs["name"])
            return kernel(**arguments)

        return call

    monkeypatch.setattr(mx.fast, "metal_kernel", noting)
    family = CASES[request.node.callspec.params["case"]][0]
    modules = [f"mlx_lm.models.{name}" for name in (*SHARED, family)]
    kept = {name: sys.modules.pop(name) for name in modules if name in sys.modules}
    yield names
    for name in modules:
        sys.modules.pop(name, None)
    sys.modules.update(kept)


def by_operations(self, x, packed):
    """BitLinear's product: 2-bit codes less one, times the scale."""
    codes = mx.concatenate([(packed >> i) & 3 for i in (0, 2, 4, 6)])
    weight = codes.astype(x.dtype) - 1
    scale = 1 / self.weight_scale if self.invert_weight_scales else self.weight_scale
    return (x @ weight.T) * scale


def bitnet(model):
    """Random codes; the CPU has no kernel to run."""
    layers = importlib.import_module("mlx_lm.models.bitlinear_layers")
    kernel = layers.BitLinear.execute_matmul_kernel

    def either(self, x, packed):
        on_gpu = mx.default_device() == mx.gpu
        return (kernel if on_gpu else by_operations)(self, x, packed)

    layers.BitLinear.execute_matmul_kernel = either
    generator = np.random.default_rng(5)
    for _, module in model.named_modules():
        if isinstance(module, layers.BitLinear):
            codes = generator.integers(0, 3, (4, *module.weight.shape), np.uint8)
            packed = codes[0] | codes[1] << 2 | codes[2] << 4 | codes[3] << 6
            module.weight = mx.array(packed)
            module.weight_scale = mx.array([(2 / 3 * module.in_features) ** -0.5])


@pytest.mark.parametrize("case", CASES)
def test_float32(case, called):
    family, more, kernels = CASES[case]
    model = tiny.make_model(family, **more)
    if family == "bitnet":
        bitnet(model)
    check(model, batch=2)
    assert called == kernels
