"""Random models of mlx-lm's families, small enough for a software device."""

import importlib

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_map_with_path

COMMON = dict(
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    rms_norm_eps=1e-5,
    vocab_size=200,
    rope_theta=10000.0,
)
HEAD = dict(head_dim=32)
LENGTH = dict(max_position_embeddings=512)
EXPERTS = dict(num_experts=8, num_experts_per_tok=2, moe_intermediate_size=64)

# What a family needs beside COMMON. Windows are shorter than the prompt of the
# tests, so that they are filled and turned over.
FAMILIES = {
    "llama": {
        **LENGTH,
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    },
    "qwen2": LENGTH,
    "qwen3": {**HEAD, **LENGTH, "tie_word_embeddings": True},
    "olmo2": {},
    "granite": {
        **LENGTH,
        "logits_scaling": 8.0,
        "attention_multiplier": 0.1,
        "embedding_multiplier": 12.0,
        "residual_multiplier": 0.3,
        "attention_bias": True,
        "mlp_bias": True,
    },
    "nemotron": {**HEAD, "hidden_act": "relu2", "norm_eps": 1e-5},
    "phi3": {
        "rope_scaling": {
            "type": "longrope",
            "long_factor": [1.0 + i for i in range(8)],
            "short_factor": [1.0 + i / 8 for i in range(8)],
        },
        "max_position_embeddings": 512,
        "original_max_position_embeddings": 256,
    },
    "gemma2": HEAD,
    "gemma3_text": {
        **HEAD,
        "num_hidden_layers": 3,
        "sliding_window": 16,
        "sliding_window_pattern": 3,
        "query_pre_attn_scalar": 32,
    },
    "cohere2": {
        "head_dim": 16,
        "num_hidden_layers": 3,
        "sliding_window": 16,
        "sliding_window_pattern": 3,
    },
    "mixtral": {"num_local_experts": 8, "num_experts_per_tok": 2},
    "qwen3_moe": {
        **HEAD,
        **LENGTH,
        **EXPERTS,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "tie_word_embeddings": False,
        "norm_topk_prob": True,
    },
    "deepseek_v3": {
        "moe_intermediate_size": 64,
        "num_key_value_heads": 4,
        "n_shared_experts": 1,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "n_group": 2,
        "topk_group": 1,
        "routed_scaling_factor": 2.5,
        "first_k_dense_replace": 1,
        "kv_lora_rank": 64,
        "q_lora_rank": 64,
        "qk_rope_head_dim": 32,
        "qk_nope_head_dim": 32,
        "v_head_dim": 32,
        "rope_scaling": {
            "type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 64,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
        },
    },
    "gpt_oss": {
        **HEAD,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "sliding_window": 16,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "mamba2": {
        "num_heads": 4,
        "head_dim": 32,
        "intermediate_size": 128,
        "state_size": 32,
        "layer_norm_epsilon": 1e-5,
        "conv_kernel": 4,
        "n_groups": 2,
        "use_bias": False,
        "use_conv_bias": True,
        "tie_word_embeddings": True,
        "time_step_limit": (0.001, 100.0),
        "time_step_rank": "auto",
    },
    "qwen3_next": {
        **HEAD,
        **LENGTH,
        **EXPERTS,
        "linear_num_value_heads": 4,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 32,
        "linear_value_head_dim": 32,
        "linear_conv_kernel_dim": 4,
        "decoder_sparse_step": 1,
        "shared_expert_intermediate_size": 64,
        "mlp_only_layers": [],
        "partial_rotary_factor": 0.5,
        "norm_topk_prob": True,
        "full_attention_interval": 2,
    },
}


def make_model(family: str, seed: int = 0, **more) -> nn.Module:
    """A float32 model with random weights, made on the CPU.

    Vectors (norms, biases, sinks, rates) are moved from their initial values,
    where a forgotten one would show no difference; matrices get what would
    leave the size of a row's product unchanged.
    """
    with mx.stream(mx.cpu):
        mx.random.seed(seed)
        module = importlib.import_module(f"mlx_lm.models.{family}")
        known = module.ModelArgs.__dataclass_fields__
        config = {k: v for k, v in COMMON.items() if k in known}
        config |= {"model_type": family, **FAMILIES.get(family, {}), **more}
        model = module.Model(module.ModelArgs(**config))

        def randomize(path, value):
            if path.endswith("inv_freq") or not mx.issubdtype(value.dtype, mx.floating):
                return value
            noise = mx.random.normal(value.shape)
            if value.ndim < 2:
                return value + 0.1 * noise
            return noise * value.shape[-1] ** -0.5

        model.update(tree_map_with_path(randomize, model.parameters()))
        model.eval()
        mx.eval(model.parameters())
    return model


def quantize(model: nn.Module, groups=(32, 64), **experts) -> nn.Module:
    """4 bits in `groups` in turn; with `experts`, the experts so."""
    count = 0

    def how(path, module):
        nonlocal count
        if not hasattr(module, "to_quantized") or module.weight.shape[-1] % 64:
            return False
        if experts and "experts" in path:
            return experts
        count += 1
        return {"group_size": groups[(count - 1) % len(groups)], "bits": 4}

    with mx.stream(mx.cpu):
        nn.quantize(model, class_predicate=how)
        mx.eval(model.parameters())
    return model
