"""Times the rows of mlx_vulkan.cases that have benchmark inputs.

    python benchmarks/ops.py [--filter softmax] [--dtype float32] [--json FILE]

One row per case and dtype, as `mlx-vulkan bench` has them: microseconds per call
in a stream of calls, GB/s over the bytes of inputs and outputs, and TFLOP/s where
a case says how many operations it does. --cpu times MLX's CPU.
"""

import argparse
import sys

import mlx.core as mx
from rich.progress import track

from mlx_vulkan import cases as table
from mlx_vulkan.bench import report
from mlx_vulkan.bench.measure import samples


def measure(case, dtype: str, seconds: float) -> report.Row:
    bound = table.bind(case, dtype, inputs=case.bench)
    inputs, _ = table.place(mx, bound, "contiguous")

    def call():
        return table.outputs(case.fn(mx, *inputs))

    moved = sum(a.nbytes for a in [*inputs, *call()])
    flops = case.flops(*[a.shape for a in inputs]) if case.flops else 0
    return report.Row(
        f"{case.name} {dtype}",
        "us",
        [s * 1e6 for s in samples(call, seconds)],
        "cases",
        moved,
        flops,
        facts={"shapes": [list(a.shape) for a in inputs]},
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cpu", action="store_true", help="MLX's own CPU instead")
    parser.add_argument("--filter", default="", help="a part of a name, or a tag")
    parser.add_argument("--dtype", action="append", help="only these")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each row")
    report.add_arguments(parser)
    args = parser.parse_args()

    if not args.cpu and not mx.is_available(mx.gpu):
        sys.exit("mx.gpu is not available. MLX_VK_DEVICE=cpu picks software.")
    mx.set_default_device(mx.cpu if args.cpu else mx.gpu)
    chosen = [
        (case, dtype)
        for case in table.load_cases()
        if case.bench and any(args.filter in t for t in (case.name, *case.tags))
        for dtype in case.dtypes
        if not args.dtype or dtype in args.dtype
    ]
    if not chosen:
        sys.exit(f"No case with benchmark inputs has {args.filter!r} in its name.")
    console = report.console()
    hidden = not console.is_terminal
    rows = [
        measure(case, dtype, args.seconds)
        for case, dtype in track(
            chosen, "timing", console=console, transient=True, disable=hidden
        )
    ]
    return report.finish(args, rows, {}, rows[:2], report.about(args.cpu))


if __name__ == "__main__":
    sys.exit(main())
