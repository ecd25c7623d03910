"""A model on a smaller card: prompt and decode speed, memory, and a digest.

    MLX_VK_TEST=heap=8192 python benchmarks/card.py .models/qwen3-30b-a3b [--skew 1.6]

MLX_VK_TEST=heap=MiB makes the card smaller; MLX_VK_DISABLE=experts reads stacks of
experts in place. The digest is of the tokens and the last logits, which are the same
on a card of any size. --skew multiplies the scales of a tenth of each router's rows,
so that some experts are chosen more often. Prints a line of JSON.
"""

import argparse
import hashlib
import json
import os
import resource
import time

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx_lm import load
from mlx_lm.generate import generate_step


def skew(model: nn.Module, factor: float) -> None:
    for layer in model.model.layers:
        gate = layer.mlp.gate
        experts = mx.arange(gate.scales.shape[0])
        often = experts < experts.size // 10
        scale = mx.where(often, factor, 1.0)[:, None].astype(gate.scales.dtype)
        gate.scales, gate.biases = gate.scales * scale, gate.biases * scale
    mx.eval(model.parameters())


def measure(model: nn.Module, length: int, answer: int) -> dict:
    prompt = np.random.default_rng(1).integers(0, model.args.vocab_size, length)
    begun, first, digest = time.perf_counter(), 0.0, hashlib.sha256()
    for token, logprobs in generate_step(mx.array(prompt), model, max_tokens=answer):
        first, last = first or time.perf_counter(), logprobs
        digest.update(int(token).to_bytes(4, "little"))
    ended = time.perf_counter()
    digest.update(np.array(last.astype(mx.float32)).tobytes())
    return {
        "prompt": length,
        "prompt tokens/s": round(length / (first - begun), 1),
        "decode tokens/s": round((answer - 1) / (ended - first), 1),
        "digest": digest.hexdigest()[:12],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("-p", "--prompts", type=int, nargs="+", default=[512])
    parser.add_argument("-g", "--tokens", type=int, default=128)
    parser.add_argument("--skew", type=float)
    args = parser.parse_args()
    begun = time.perf_counter()
    model, _ = load(args.model)
    found = {"load s": round(time.perf_counter() - begun, 1)}
    found["settings"] = {k: v for k, v in os.environ.items() if k.startswith("MLX_VK_")}
    if args.skew:
        skew(model, args.skew)
    for length in args.prompts:
        measure(model, length, args.tokens)  # kernels are compiled, slots filled
    found["runs"] = [measure(model, n, args.tokens) for n in args.prompts]
    found["peak GB"] = round(mx.get_peak_memory() / 1e9, 2)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB
    found["host GB"] = round(most * 1024 / 1e9, 2)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
