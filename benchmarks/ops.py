"""Times the rows of tests/backend/cases_*.py that have benchmark inputs.

    python benchmarks/ops.py [--filter softmax] [--dtype float32] [--json FILE]

One line per row and dtype: microseconds per call as the host sees it in a
stream of calls, GB/s over the bytes of inputs and outputs, and GFLOP/s where a
row says how many operations it does. --device cpu times MLX's CPU.
"""

import argparse
import json
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "backend"))

import mlx.core as mx  # noqa: E402

import cases as table  # noqa: E402


def seconds_per_call(fn, budget):
    """Best of three batches of calls that fill the budget together."""

    def batch(calls):
        # A new array for each call: the same one would be evaluated once.
        start = time.perf_counter()
        for _ in range(calls):
            mx.async_eval(fn())
        mx.synchronize()
        return time.perf_counter() - start

    batch(2)  # kernels, pipelines, the allocator's cache
    once = max(batch(1), 1e-6)
    calls = max(1, min(1000, int(budget / 3 / once)))
    return min(batch(calls) for _ in range(3)) / calls


def measure(case, dtype, budget):
    bound = table.bind(case, dtype, inputs=case.bench)
    inputs, _ = table.place(mx, bound, "contiguous")

    def call():
        return table.outputs(case.fn(mx, *inputs))

    out = call()
    mx.eval(out)
    moved = sum(a.nbytes for a in [*inputs, *out])
    seconds = seconds_per_call(call, budget)
    result = {
        "name": case.name,
        "dtype": dtype,
        "shapes": [list(a.shape) for a in inputs],
        "us": seconds * 1e6,
        "GB/s": moved / seconds / 1e9,
    }
    if case.flops:
        result["GFLOP/s"] = case.flops(*[a.shape for a in inputs]) / seconds / 1e9
    return result


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="gpu", choices=["gpu", "cpu"])
    parser.add_argument("--filter", help="a part of a name, or a tag")
    parser.add_argument("--dtype", action="append", help="only these")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each line")
    parser.add_argument("--json", help="write the results here")
    args = parser.parse_args()

    device = getattr(mx, args.device)
    mx.set_default_device(device)
    name = "CPU"
    if args.device == "gpu":
        if not mx.is_available(mx.gpu):
            sys.exit("mx.gpu is not available. MLX_VK_DEVICE=cpu picks software.")
        name = mx.device_info(mx.gpu)["device_name"]
    print(f"{name}, MLX {mx.__version__}")
    print(f"{'row':32} {'dtype':9} {'us':>10} {'GB/s':>9} {'GFLOP/s':>10}")

    results = []
    for case in table.load_cases():
        tags = (case.name, *case.tags)
        if case.bench is None or (
            args.filter and not any(args.filter in t for t in tags)
        ):
            continue
        for dtype in case.dtypes:
            if args.dtype and dtype not in args.dtype:
                continue
            r = measure(case, dtype, args.seconds)
            flops = f"{r['GFLOP/s']:10.1f}" if "GFLOP/s" in r else " " * 10
            print(
                f"{r['name']:32} {dtype:9} {r['us']:10.1f} {r['GB/s']:9.2f} {flops}",
                flush=True,
            )
            results.append(r)
    if args.json:
        report = {"device": name, "mlx": mx.__version__, "results": results}
        pathlib.Path(args.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
