"""Records the batches that tests/null/batches_test.cpp reads: a decode step and a
prompt of models with the layers of Qwen3-0.6B, Qwen3-8B, Qwen3-30B-A3B and
SmolLM2-135M, two of them, with narrow rows and random weights.

    MLX_VK_DEVICE=cpu python tests/null/batches/record.py
"""

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parents[1] / "model"))

PROMPT = 12
MODELS = {
    "qwen3_0.6b": ("qwen3", {"num_attention_heads": 16, "num_key_value_heads": 8}),
    "qwen3_8b": ("qwen3", {"num_attention_heads": 32, "num_key_value_heads": 8}),
    "qwen3_30b_a3b": (
        "qwen3_moe",
        {
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "num_experts": 128,
            "num_experts_per_tok": 8,
        },
    ),
    "smollm2": (
        "llama",
        {"num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 64},
    ),
}


def run(name: str) -> None:
    """Marks on stderr where each part of the work begins."""
    import mlx.core as mx
    from mlx_lm.models.cache import make_prompt_cache

    import tiny

    family, shape = MODELS[name]
    shape = {"head_dim": 128} | shape
    model = tiny.make_model(family, num_hidden_layers=2, **shape)
    with mx.stream(mx.cpu):
        tiny.quantize(model, groups=(64,)).set_dtype(mx.bfloat16)
        mx.eval(model.parameters())
    mx.set_default_device(mx.gpu)
    cache = make_prompt_cache(model)
    tokens = mx.arange(1, PROMPT + 1)
    for part in ("prompt", "warm", "warm", "decode", "end"):
        mx.synchronize()
        sys.stderr.write(f"== {part}\n")
        sys.stderr.flush()
        tokens = mx.argmax(model(tokens[None], cache=cache)[:, -1], axis=-1)
        mx.eval(tokens)


def main() -> None:
    for name in MODELS:
        done = subprocess.run(
            [sys.executable, __file__, name],
            env=os.environ | {"MLX_VK_DEBUG": "select"},
            check=True,
            stderr=subprocess.PIPE,
            text=True,
        )
        parts = dict(p.split("\n", 1) for p in done.stderr.split("== ")[1:])
        for part in ("prompt", "decode"):
            (FOLDER / f"{name}_{part}.txt").write_text(parts[part])


if __name__ == "__main__":
    run(sys.argv[1]) if len(sys.argv) > 1 else main()
