"""How long a process takes to its first token, and with what.

    python benchmarks/start.py [MODEL] [--runs N] [--json FILE]

MODEL is a folder; without it, the demo's SmolLM2; `random` is a small Qwen3 of
random weights made in memory, for machines without files. Each run is a process
of its own. Cold: no kernel is known to us nor, where a variable can move its
cache, to the driver (NVIDIA, Mesa). Warm: the run before has filled both.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEMO = ROOT / ".demo" / "SmolLM2-135M-Instruct"
DRIVER_CACHES = ("MESA_SHADER_CACHE_DIR", "__GL_SHADER_DISK_CACHE_PATH")
PROMPT = list(range(1, 33))


def random_model():
    import mlx.core as mx
    import mlx.nn as nn
    from mlx.utils import tree_map
    from mlx_lm.models import qwen3

    from mlx_vulkan.bench.shapes import SHAPES

    mx.random.seed(0)
    model = qwen3.Model(qwen3.ModelArgs.from_dict(SHAPES["qwen3-0.6b"]))
    half = tree_map(lambda p: p.astype(mx.bfloat16), model.parameters())
    model.update(half)
    nn.quantize(model, group_size=64, bits=4)
    mx.eval(model.parameters())
    return model.eval()


def child(source: str, born: float) -> None:
    """Prints the seconds of each part of a start, in order, as JSON."""
    parts, last = {}, born

    def part(name: str) -> None:
        nonlocal last
        now = time.time()
        parts[name], last = now - last, now

    part("python")
    import mlx.core as mx

    part("import mlx.core")
    mx.set_default_device(mx.gpu)
    mx.eval(mx.zeros(1))
    part("device")
    from mlx_lm.generate import generate_step
    from mlx_lm.utils import load

    part("import mlx_lm")
    model = random_model() if source == "random" else load(source)[0]
    part("load")
    from mlx_vulkan import native

    before = native.counters()
    last = time.time()
    steps = generate_step(mx.array(PROMPT), model, max_tokens=3)
    next(steps)
    part("first token")
    total = last - born
    after = native.counters()
    for _ in steps:
        pass
    part("second token")
    ours = {name: after[name] - before[name] for name in ("compilations", "pipelines")}
    for name in ("compile_seconds", "pipeline_seconds", "compile_wait_seconds"):
        parts[f"({name.replace('_', ' ')})"] = after[name]
    print(json.dumps({"total": total, "parts": parts, **ours}))


def start(source: str, caches: pathlib.Path) -> dict:
    environment = dict(os.environ, MLX_VK_CACHE=str(caches / "ours"))
    for name in DRIVER_CACHES:
        folder = caches / name.strip("_").lower()
        folder.mkdir(parents=True, exist_ok=True)
        environment[name] = str(folder)
    command = [sys.executable, __file__, source, "--child", repr(time.time())]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"The child failed:\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def show(title: str, results: list[dict]) -> None:
    totals = [r["total"] for r in results]
    median = statistics.median(totals)
    print(
        f"{title}: first token after {median:.2f} s "
        f"(min {min(totals):.2f}, max {max(totals):.2f}), "
        f"{results[-1]['compilations']} kernels compiled"
    )
    for name in results[0]["parts"]:
        middle = statistics.median(r["parts"][name] for r in results)
        print(f"  {name:<24} {1e3 * middle:9.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default=str(DEMO))
    parser.add_argument("--runs", type=int, default=3, help="of each kind")
    parser.add_argument("--json", help="write the results there")
    parser.add_argument("--child", type=float, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return child(args.model, args.child)
    results = {"cold": [], "warm": []}
    for _ in range(args.runs):
        with tempfile.TemporaryDirectory() as folder:
            caches = pathlib.Path(folder)
            results["cold"].append(start(args.model, caches))
            results["warm"].append(start(args.model, caches))
    for kind, all_runs in results.items():
        show(kind, all_runs)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
