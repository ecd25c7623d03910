"""Shapes of public models, to be made in memory with random weights."""

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


SHAPES = {
    "qwen3-0.6b": dense(1024, 28, 3072, 16),
    "qwen3-1.7b": dense(2048, 28, 6144, 16),
    "qwen3-4b": dense(2560, 36, 9728, 32),
    "qwen3-8b": dense(4096, 36, 12288, 32, tie_word_embeddings=False),
    "qwen3-14b": dense(5120, 40, 17408, 40, tie_word_embeddings=False),
    "qwen3-32b": dense(5120, 64, 25600, 64, tie_word_embeddings=False),
    "qwen3-30b-a3b": QWEN3_MOE | dict(num_hidden_layers=48),
    # Four of its layers: what a layer costs.
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
    ),
    "tiny": dense(128, 2, 256, 4)
    | dict(num_key_value_heads=2, head_dim=32, vocab_size=512),
}


def make(name: str, bits: int, group_size: int, dtype: str):
    """Model and config: weights are seeded noise, quantized unless `bits` is 0."""
    import mlx.core as mx
    import mlx.nn as nn
    from mlx.utils import tree_map

    mx.random.seed(0)
    config = dict(SHAPES[name])
    family = importlib.import_module(f"mlx_lm.models.{config['model_type']}")
    model = family.Model(family.ModelArgs.from_dict(config))
    model.update(tree_map(lambda p: p.astype(getattr(mx, dtype)), model.parameters()))
    if bits:
        nn.quantize(model, group_size=group_size, bits=bits)
        config["quantization"] = {"group_size": group_size, "bits": bits}
    for layer in model.layers:  # one at a time: the floats need not fit together
        mx.eval(layer.parameters())
    mx.eval(model.parameters())
    model.eval()
    return model, config
