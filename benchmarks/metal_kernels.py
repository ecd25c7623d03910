"""Models with Metal kernels of their own, with and without MLX_VK_METAL_KERNELS.

    python benchmarks/metal_kernels.py [--tokens 2048] [--decode 32] [--json FILE]

Random bf16 weights in the shapes of Qwen3-Next (8 of its layers, 64 experts),
Mamba2 2.7B (16 layers) and BitNet 2B (10 layers). Each in a process of its own:
tokens/s of a prompt and of decoding, medians of three; BitNet has no form
without kernels.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

SHAPES = {
    "qwen3_next": dict(
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
    "mamba2": dict(
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
    "bitnet": dict(
        hidden_size=2560,
        num_hidden_layers=10,
        intermediate_size=6912,
        num_attention_heads=20,
        num_key_value_heads=5,
        rms_norm_eps=1e-5,
        vocab_size=128256,
        rope_theta=500000.0,
    ),
}


def measure(family: str, tokens: int, steps: int) -> dict:
    import importlib

    import mlx.core as mx
    from mlx.utils import tree_map
    from mlx_lm.models.cache import make_prompt_cache

    mx.random.seed(0)
    module = importlib.import_module(f"mlx_lm.models.{family}")
    model = module.Model(module.ModelArgs(model_type=family, **SHAPES[family]))

    def narrow(x):
        return x.astype(mx.bfloat16) if x.dtype == mx.float32 else x

    model.update(tree_map(narrow, model.parameters()))
    model.eval()  # in training mode mlx-lm uses none of its kernels
    mx.eval(model.parameters())
    prompt = mx.random.randint(0, SHAPES[family]["vocab_size"], (1, tokens))
    prefill, decode = [], []
    for _ in range(4):
        cache = make_prompt_cache(model)
        start = time.perf_counter()
        y = mx.argmax(model(prompt, cache=cache)[:, -1:], axis=-1)
        mx.eval(y)
        middle = time.perf_counter()
        for _ in range(steps):
            y = mx.argmax(model(y, cache=cache), axis=-1)
            mx.async_eval(y)
        mx.eval(y)
        prefill.append(tokens / (middle - start))
        decode.append(steps / (time.perf_counter() - middle))
    # The first compiles kernels.
    return {
        "model": family,
        "kernels": mx.metal.is_available(),
        "prefill": round(statistics.median(prefill[1:]), 1),
        "decode": round(statistics.median(decode[1:]), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--decode", type=int, default=32)
    parser.add_argument("--models", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--one", choices=SHAPES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, args.tokens, args.decode)))
        return
    rows = []
    for family in args.models:
        for kernels in ("0", "1"):
            if family == "bitnet" and kernels == "0":
                continue
            command = [sys.executable, __file__, "--one", family]
            command += ["--tokens", str(args.tokens), "--decode", str(args.decode)]
            env = {**os.environ, "MLX_VK_METAL_KERNELS": kernels}
            run = subprocess.run(command, env=env, capture_output=True, text=True)
            if run.returncode:
                sys.exit(f"{family}, kernels {kernels}:\n{run.stderr[-2000:]}")
            rows.append(json.loads(run.stdout.splitlines()[-1]))
            print(rows[-1], flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
