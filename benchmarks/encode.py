"""What a decode step costs the CPU before the GPU has anything to do.

    python benchmarks/encode.py [MODEL] [--steps 8] [--json FILE]

A real decode step of a model folder (the demo's SmolLM2 without one), each as
one batch: microseconds to build the graph in Python, to walk it and record
(MLX's eval with our eval_gpu), and to level, write the command buffer and
submit (the recorder thread); the same per record; the primitives in the graph
beside the records they became, and the levels, with a barrier before each. The
GPU is idle meanwhile, so the figures hold on any device but for the driver's
part.
"""

import argparse
import io
import os
import pathlib
import statistics
import sys
import time

# One batch a step: nothing runs, on a software device's CPU either, while the
# rest of the step is being encoded. Read when the library loads.
os.environ.setdefault("MLX_MAX_OPS_PER_BUFFER", "1000000")
os.environ.setdefault("MLX_MAX_MB_PER_BUFFER", "1000000")

import mlx.core as mx  # noqa: E402
from mlx_lm import load  # noqa: E402
from mlx_lm.models.cache import make_prompt_cache  # noqa: E402

from mlx_vulkan import native  # noqa: E402
from mlx_vulkan.bench import report  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent


def primitives_of(output) -> int:
    """How many primitives the graph behind an array has."""
    graph = io.StringIO()
    mx.export_to_dot(graph, output)
    return graph.getvalue().count("shape=rectangle")


def steps(model, count, context):
    cache = make_prompt_cache(model)
    logits = model(mx.arange(1, context + 1)[None], cache=cache)
    token = mx.argmax(logits[:, -1:], axis=-1)
    mx.eval(token)
    found, primitives = [], 0
    for step in range(count + 2):
        mx.synchronize()
        before = native.counters()
        start = time.perf_counter()
        token = mx.argmax(model(token, cache=cache)[:, -1:], axis=-1)
        built = time.perf_counter()
        primitives = primitives or primitives_of(token)
        walked = time.perf_counter()
        mx.async_eval(token)
        encoded = time.perf_counter()
        mx.synchronize()
        after = native.counters()
        change = {k: after[k] - before[k] for k in after if k != "fallback_signatures"}
        if step >= 2:  # kernels are compiled by then
            found.append(
                {
                    "graph us": (built - start) * 1e6,
                    "encode us": (encoded - walked) * 1e6,
                    "record us": change["record_seconds"] * 1e6,
                    "primitives": primitives,
                    "records": change["dispatches"] + change["copies"],
                    # A barrier after each level and one for the host.
                    "levels": change["barriers"] - change["batches"],
                    "batches": change["batches"],
                }
            )
    # The best time of each: what else the machine does is not the step's.
    return {
        key: (min if key.endswith(" us") else statistics.median)(f[key] for f in found)
        for key in found[0]
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?", help="folder or hub name")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--context", type=int, default=16)
    report.add_arguments(parser)
    args = parser.parse_args()
    if not mx.is_available(mx.gpu):
        sys.exit("mx.gpu is not available. MLX_VK_DEVICE=cpu picks software.")
    mx.set_default_device(mx.gpu)
    folder = args.model
    if not folder:
        sys.path.insert(0, str(ROOT / "tools"))
        import demo

        folder = str(demo.demo_model())
    model, _ = load(folder)
    step = steps(model, args.steps, args.context)
    records = step["records"]
    rows = []
    for quantity, value in step.items():
        unit = "us" if quantity.endswith(" us") else "count"
        note = f"{value / records:.2f} us per record" if unit == "us" else ""
        rows.append(report.Row(quantity.removesuffix(" us"), unit, [value], note=note))
    return report.finish(args, rows, {}, rows)


if __name__ == "__main__":
    sys.exit(main())
