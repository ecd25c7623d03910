"""Prompt and decode speed of a model folder, as mlx_lm.generate would see it.

    python benchmarks/decode.py [MODEL] [--json FILE]

MODEL is a folder or a hub name; without it, the demo's SmolLM2. The prompt is
made of seeded random tokens; a warm-up run comes first, so that no kernel
compiles in the timed ones. Figures are medians over the runs. --device cpu
times MLX's CPU.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

import mlx.core as mx
from rich.console import Console
from rich.table import Table

from mlx_vulkan import native

ROOT = pathlib.Path(__file__).resolve().parent.parent
COUNTERS = ("dispatches", "barriers", "batches", "copies", "host_waits", "fallbacks")


def run(model, prompt, tokens):
    """Seconds to the first token, and from there to the last."""
    from mlx_lm.generate import generate_step, generation_stream

    start = time.perf_counter()
    steps = generate_step(prompt, model, max_tokens=tokens)
    next(steps)
    first = time.perf_counter()
    for _ in steps:
        pass
    mx.synchronize(generation_stream)
    return first - start, time.perf_counter() - first


def counts_per_step(model, prompt, steps=8):
    """What one decode step adds to each counter, and what fell back."""
    from mlx_lm.generate import generate_step, generation_stream

    readings = []
    for index, _ in enumerate(generate_step(prompt, model, max_tokens=steps + 4)):
        # Two steps in, as generate_step works one token ahead.
        if index in (2, 2 + steps):
            mx.synchronize(generation_stream)
            readings.append(native.counters())
    before, after = readings
    if not after:
        return {}, []
    per_step = {
        name: round((after[name] - before[name]) / steps, 2)
        for name in COUNTERS
        if name in after
    }
    return per_step, [f["signature"] for f in after["fallback_signatures"]]


def measure(folder, prompt_tokens, tokens, runs):
    # mlx_lm makes its stream on the device that is the default at its import.
    from mlx_lm import load

    model, tokenizer = load(folder)
    limit = getattr(getattr(model, "args", None), "vocab_size", tokenizer.vocab_size)
    mx.random.seed(0)
    prompt = mx.random.randint(0, limit, (prompt_tokens,))
    run(model, prompt, min(tokens, 4))  # compiles the kernels
    times = [run(model, prompt, tokens) for _ in range(runs)]
    per_step, fallbacks = counts_per_step(model, prompt)
    speeds = {
        "prompt": [prompt_tokens / first for first, _ in times],
        "decode": [(tokens - 1) / rest for _, rest in times],
    }
    results = [
        {"name": name, "tokens/s": statistics.median(values), "runs": values}
        for name, values in speeds.items()
    ]
    results += [
        {"name": f"{name} per step", "count": n} for name, n in per_step.items()
    ]
    results.append({"name": "peak memory", "MB": mx.get_peak_memory() / 1e6})
    return results, fallbacks


def show(report):
    console = Console()
    table = Table(title=f"{report['device']}, {report['model']}")
    table.add_column("what")
    table.add_column("median", justify="right")
    table.add_column("runs", justify="right")
    for row in report["results"]:
        unit = next(u for u in ("tokens/s", "count", "MB") if u in row)
        runs = "  ".join(f"{value:,.1f}" for value in row.get("runs", ()))
        label = row["name"] if unit == "count" else f"{row['name']}, {unit}"
        table.add_row(label, f"{row[unit]:,.1f}", runs)
    console.print(table)
    if report["fallbacks"]:
        console.print("ran in parts:", ", ".join(report["fallbacks"]))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", help="folder or hub name")
    parser.add_argument("--device", default="gpu", choices=["gpu", "cpu"])
    parser.add_argument("--prompt-tokens", type=int, default=128)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", help="write the results here")
    args = parser.parse_args()

    name = "CPU"
    if args.device == "gpu":
        if not mx.is_available(mx.gpu):
            sys.exit("mx.gpu is not available. MLX_VK_DEVICE=cpu picks software.")
        name = mx.device_info(mx.gpu)["device_name"]
    mx.set_default_device(getattr(mx, args.device))
    folder = args.model
    if not folder:
        sys.path.insert(0, str(ROOT / "tools"))
        import demo

        folder = str(demo.demo_model())
    results, fallbacks = measure(folder, args.prompt_tokens, args.tokens, args.runs)
    report = {
        "device": name,
        "mlx": mx.__version__,
        "model": pathlib.Path(folder).name,
        "prompt_tokens": args.prompt_tokens,
        "tokens": args.tokens,
        "results": results,
        "fallbacks": fallbacks,
    }
    show(report)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
