"""Models with Metal kernels of their own: with none, and as they are by default.

    python benchmarks/metal_kernels.py [--tokens 2048] [--decode 32] [--json FILE]

Random bf16 weights in the shapes of Qwen3-Next (8 of its layers, 64 experts),
Qwen3.5 4B (8 layers), Mamba2 2.7B (16 layers) and BitNet 2B (10 layers). Each in a
process of its own, with MLX_VK_METAL_KERNELS=0 and with nothing set: tokens/s of a
prompt and of decoding, medians of three, and how many custom kernels each eval has;
BitNet has no form without kernels.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

MODELS = {
    "qwen3_next": "qwen3-next-8l",
    "qwen3_5": "qwen3.5-4b-8l",
    "mamba2": "mamba2-2.7b-16l",
    "bitnet": "bitnet-2b-10l",
}


def measure(family: str, tokens: int, steps: int) -> dict:
    import mlx.core as mx
    from mlx_lm.models.cache import make_prompt_cache

    from mlx_vulkan.bench import shapes

    mx.set_default_device(mx.gpu)
    made, calls = mx.fast.metal_kernel, 0

    def counted(*args, **more):
        kernel = made(*args, **more)

        def call(**arguments):
            nonlocal calls
            calls += 1
            return kernel(**arguments)

        return call

    mx.fast.metal_kernel = counted  # before the model's modules are imported
    model, config = shapes.make(MODELS[family], 0, 0, "bfloat16")
    prompt = mx.random.randint(0, config["vocab_size"], (1, tokens))
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
        "kernels": calls // (4 * (1 + steps)),
        "prefill": round(statistics.median(prefill[1:]), 1),
        "decode": round(statistics.median(decode[1:]), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--decode", type=int, default=32)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--one", choices=MODELS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, args.tokens, args.decode)))
        return
    rows = []
    for family in args.models:
        for kernels in ("0", ""):
            if family == "bitnet" and kernels:
                continue
            command = [sys.executable, __file__, "--one", family]
            command += ["--tokens", str(args.tokens), "--decode", str(args.decode)]
            env = {**os.environ, "MLX_VK_METAL_KERNELS": kernels}
            run = subprocess.run(command, env=env, capture_output=True, text=True)
            if run.returncode:
                how = f"MLX_VK_METAL_KERNELS={kernels}"
                sys.exit(f"{family}, {how}:\n{run.stderr[-2000:]}")
            rows.append(json.loads(run.stdout.splitlines()[-1]))
            print(rows[-1], flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
