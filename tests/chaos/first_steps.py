"""Repeat a model's first decode steps in new processes: none may hang.

    python tests/chaos/first_steps.py [--processes 100] [--shape qwen3-4b] [--layers 8]
        [--rows 48] [--prompt 256]

The caches have as many places as the prompt has tokens, so that the first step makes
new ones for each layer while the device runs. That hung an H200
(docs/lab/2026-11-26-hang.md). A hang shows after 4 s; a slow device needs fewer rows.
Prints `N passed, N failed, 0 skipped` processes.
"""

import argparse
import multiprocessing
import os
import sys

TIMEOUT = "4,error"  # of a batch
ENDED = 120  # seconds a process may take


def steps(shape: str, layers: int, rows: int, prompt: int) -> None:
    import mlx.core as mx
    from mlx_lm.models.cache import make_prompt_cache

    from mlx_vulkan.bench import shapes

    model, _ = shapes.make(shape, 4, None, "bfloat16", num_hidden_layers=layers)
    cache = make_prompt_cache(model)

    def next_of(tokens):
        return mx.argmax(model(tokens, cache=cache)[:, -1, :], -1)

    with mx.stream(mx.new_stream(mx.gpu)):
        tokens = next_of(mx.random.randint(0, 1000, (rows, prompt)))
        mx.eval(tokens)
        for _ in range(2):
            for _ in range(8):
                tokens = next_of(tokens[:, None])
            mx.eval(tokens)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--processes", type=int, default=100)
    parser.add_argument("--shape", default="qwen3-4b")
    for name, default in (("layers", 8), ("rows", 48), ("prompt", 256)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    os.environ["MLX_VK_TIMEOUT"] = TIMEOUT
    # The server imports mlx-lm once, in up to 14 s, and forks each process.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mlx_lm.models.qwen3", "mlx_lm.utils"])
    failed = 0
    for i in range(args.processes):
        process = context.Process(
            target=steps, args=(args.shape, args.layers, args.rows, args.prompt)
        )
        process.start()
        process.join(ENDED)
        if process.exitcode is None:
            process.kill()
            print(f"process {i}: no end after {ENDED} s", flush=True)
        elif process.exitcode:
            print(f"process {i}: exit code {process.exitcode}", flush=True)
        failed += process.exitcode != 0
        if i % 10 == 9:
            print(f"{i + 1} processes have ended", flush=True)
    print(f"{args.processes - failed} passed, {failed} failed, 0 skipped")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
