"""Shapes of models to make with random weights: public models, and tiny ones of the
families of mlx-lm, which tests/model compares with the CPU."""

import importlib

QWEN3 = dict(
    model_type="qwen3",
    head_dim=128,
    num_key_value_heads=8,
    vocab_size=151936,
    rms_norm_eps=1e-6,
    rope_theta=1e6,
    max_position_embeddings=40960,
    tie_word_embeddings=True,
)
QWEN3_MOE = QWEN3 | dict(
    model_type="qwen3_moe",
    hidden_size=2048,
    intermediate_size=6144,
    num_attention_heads=32,
    num_key_value_heads=4,
    num_experts=128,
    num_experts_per_tok=8,
    moe_intermediate_size=768,
    norm_topk_prob=True,
    decoder_sparse_step=1,
    mlp_only_layers=[],
    tie_word_embeddings=False,
)


def dense(hidden: int, layers: int, inner: int, heads: int, **more) -> dict:
    shape = dict(hidden_size=hidden, num_hidden_layers=layers)
    return (
        QWEN3 | shape | dict(intermediate_size=inner, num_attention_heads=heads, **more)
    )


def gemma3(hidden, layers, inner, heads, kv_heads, head_dim, scalar) -> dict:
    return dict(
        model_type="gemma3_text",
        hidden_size=hidden,
        num_hidden_layers=layers,
        intermediate_size=inner,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        query_pre_attn_scalar=scalar,
        vocab_size=262208,
        rms_norm_eps=1e-6,
        sliding_window=1024,
        sliding_window_pattern=6,
        max_position_embeddings=131072,
    )


SHAPES = {
    "qwen3-0.6b": dense(1024, 28, 3072, 16),
    "qwen3-1.7b": dense(2048, 28, 6144, 16),
    "qwen3-4b": dense(2560, 36, 9728, 32),
    "qwen3-8b": dense(4096, 36, 12288, 32, tie_word_embeddings=False),
    "qwen3-14b": dense(5120, 40, 17408, 40, tie_word_embeddings=False),
    "qwen3-32b": dense(5120, 64, 25600, 64, tie_word_embeddings=False),
    "qwen3-30b-a3b": QWEN3_MOE | dict(num_hidden_layers=48),
    # Four of its layers, to measure the cost of a layer.
    "qwen3-30b-a3b-4l": QWEN3_MOE | dict(num_hidden_layers=4),
    "llama3-8b": dict(
        model_type="llama",
        hidden_size=4096,
        num_hidden_layers=32,
        intermediate_size=14336,
        num_attention_heads=32,
        num_key_value_heads=8,
        vocab_size=128256,
        rms_norm_eps=1e-5,
        rope_theta=5e5,
        tie_word_embeddings=False,
        max_position_embeddings=8192,
    ),
    "gemma3-4b": gemma3(2560, 34, 10240, 8, 4, 256, 256),
    "gemma3-12b": gemma3(3840, 48, 15360, 16, 8, 256, 256),
    "gemma3-27b": gemma3(5376, 62, 21504, 32, 16, 128, 168),
    # Layers of models with Metal kernels of their own (benchmarks/metal_kernels.py).
    "qwen3-next-8l": dict(
        model_type="qwen3_next",
        hidden_size=2048,
        num_hidden_layers=8,
        intermediate_size=5120,
        num_attention_heads=16,
        num_key_value_heads=2,
        head_dim=256,
        linear_num_value_heads=32,
        linear_num_key_heads=16,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        linear_conv_kernel_dim=4,
        num_experts=64,
        num_experts_per_tok=8,
        decoder_sparse_step=1,
        shared_expert_intermediate_size=512,
        mlp_only_layers=[],
        moe_intermediate_size=512,
        rms_norm_eps=1e-6,
        vocab_size=32768,
        rope_theta=1e7,
        partial_rotary_factor=0.25,
        max_position_embeddings=8192,
        norm_topk_prob=True,
    ),
    "qwen3.5-4b-8l": dict(
        model_type="qwen3_5",
        vocab_size=32768,
        text_config=dict(
            hidden_size=2560,
            num_hidden_layers=8,
            intermediate_size=9216,
            num_attention_heads=16,
            num_key_value_heads=4,
            head_dim=256,
            linear_num_value_heads=32,
            linear_num_key_heads=16,
            linear_key_head_dim=128,
            linear_value_head_dim=128,
            linear_conv_kernel_dim=4,
            rms_norm_eps=1e-6,
            vocab_size=32768,
            tie_word_embeddings=True,
        ),
    ),
    "mamba2-2.7b-16l": dict(
        model_type="mamba2",
        num_heads=80,
        head_dim=64,
        hidden_size=2560,
        intermediate_size=5120,
        state_size=128,
        num_hidden_layers=16,
        layer_norm_epsilon=1e-5,
        conv_kernel=4,
        n_groups=1,
        use_bias=False,
        use_conv_bias=True,
        tie_word_embeddings=True,
        time_step_limit=(0.0, float("inf")),
        time_step_rank="auto",
        vocab_size=50288,
    ),
    "bitnet-2b-10l": dict(
        model_type="bitnet",
        hidden_size=2560,
        num_hidden_layers=10,
        intermediate_size=6912,
        num_attention_heads=20,
        num_key_value_heads=5,
        rms_norm_eps=1e-5,
        vocab_size=128256,
        rope_theta=500000.0,
    ),
    "tiny": dense(128, 2, 256, 4)
    | dict(num_key_value_heads=2, head_dim=32, vocab_size=512),
}

TINY_COMMON = dict(
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

# Values of a family besides TINY_COMMON. Windows are shorter than the prompt of the
# tests, so that they fill up and wrap around.
TINY = {
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


def tiny(family: str) -> dict:
    """The tiny shape of a family, with the common values only if TINY lacks it."""
    return TINY_COMMON | {"model_type": family} | TINY.get(family, {})


SHAPES |= {f"tiny-{family}": tiny(family) for family in TINY}


def quantizable(model) -> dict:
    """The modules that mlx.nn can quantize, by path, and their inputs' sizes."""
    return {
        path: module.weight.shape[-1]
        for path, module in model.named_modules()
        if hasattr(module, "to_quantized")
    }


def lazy(name: str, bits: int, group_size: int | None, dtype: str, **more):
    """Model and config: weights are seeded noise, quantized unless `bits` is 0, in the
    largest groups that fit all sizes if `group_size` is None; modules that fit no group
    are not quantized. `more` replaces values of the shape. Nothing is computed."""
    import mlx.core as mx
    import mlx.nn as nn
    from mlx.utils import tree_map

    mx.random.seed(0)
    config = SHAPES[name] | more
    family = importlib.import_module(f"mlx_lm.models.{config['model_type']}")
    model = family.Model(family.ModelArgs.from_dict(config))

    def narrow(p):  # but not codes
        return (
            p.astype(getattr(mx, dtype)) if mx.issubdtype(p.dtype, mx.floating) else p
        )

    model.update(tree_map(narrow, model.parameters()))
    if bits:
        sizes = quantizable(model)
        if group_size is None:
            group_size, chosen = fitting(sizes)
        else:
            chosen = sizes  # MLX names the one that does not fit
        nn.quantize(
            model,
            group_size=group_size,
            bits=bits,
            class_predicate=lambda path, module: path in chosen,
        )
        config["quantization"] = {"group_size": group_size, "bits": bits}
    model.eval()  # in training mode mlx-lm uses none of its kernels
    return model, config


def make(name: str, bits: int, group_size: int | None, dtype: str, **more):
    """The same with weights that are there."""
    import mlx.core as mx

    model, config = lazy(name, bits, group_size, dtype, **more)
    for layer in model.layers:  # one at a time: all floats may not fit in memory
        mx.eval(layer.parameters())
    mx.eval(model.parameters())
    return model, config


def fitting(sizes: dict) -> tuple[int, set]:
    """The largest group size that fits the most modules, and these modules."""
    fits = {g: {p for p, n in sizes.items() if n % g == 0} for g in (128, 64, 32)}
    best = max(fits, key=lambda g: (len(fits[g]), g))
    return best, fits[best]
