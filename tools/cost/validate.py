"""Compares estimates with times, on an H100 or H200.

    python tools/cost/validate.py            times on this machine's GPU
    python tools/cost/validate.py --stored   earlier times of an H200

`--json tests/drivers/times_h200.json` replaces the stored ones.

NVIDIA's driver shows no code, so the estimates are of the code that NVK's compiler
makes of the same kernels, without its copies; `tools/run_costs.py --write` writes them
to tests/drivers/costs_h200.json. Without a GPU the stored times are compared: they were
taken with bf16, partly before today's kernels, and by several methods.
"""

import argparse
import json
import math
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PREDICTED = ROOT / "tests" / "drivers" / "costs_h200.json"
STORED = ROOT / "tests" / "drivers" / "times_h200.json"


def predict(build: Path) -> dict[str, float]:
    """Microseconds of each case of driver_cost's cases=validation."""
    from . import tier

    chip = tier.run("h200", build, "cases=validation")
    us: dict[str, float] = {}
    for row in chip.rows:
        name = f"{row.part} {row.name.removesuffix(', dequantize')}"
        us[name] = round(us.get(name, 0) + row.us, 2)
    PREDICTED.write_text(json.dumps(us, indent=1) + "\n", "utf-8")
    return us


def ranks(values: list[float]) -> list[float]:
    """1 for the smallest; equal values share the mean of their ranks."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for i in order[start:end]:
            result[i] = (start + end + 1) / 2
        start = end
    return result


def rank_correlation(a: list[float], b: list[float]) -> float:
    """Spearman's."""
    if len(a) < 2:
        return math.nan
    return statistics.correlation(ranks(a), ranks(b))


def compare(predicted: dict[str, float], measured: dict[str, float]) -> dict:
    names = [name for name in measured if name in predicted]
    estimates = [predicted[name] for name in names]
    times = [measured[name] for name in names]
    factors = [t / e for t, e in zip(times, estimates)]
    return {
        "names": names,
        "correlation": rank_correlation(estimates, times),
        "median": statistics.median(factors),
        "spread": math.exp(statistics.pstdev(map(math.log, factors))),
    }


def stored() -> dict[str, float]:
    return json.loads(STORED.read_text("utf-8"))["us"]


def summary(predicted: dict[str, float]) -> str:
    found = compare(predicted, stored())
    return (
        f"Rank correlation with {len(found['names'])} earlier times of an H200: "
        f"{found['correlation']:.2f}. Kernels took {found['median']:.1f} times the "
        f"estimate in the median, with a factor of {found['spread']:.1f} about it "
        "(`python tools/cost/validate.py` measures anew)."
    )


def timed(call, count: int) -> float:
    """Microseconds of a call: `count` that do not depend on one another, the least of
    several rounds."""
    import time

    import mlx.core as mx

    best = math.inf
    for _ in range(7):
        start = time.perf_counter()
        mx.eval([call(i) for i in range(count)])
        best = min(best, time.perf_counter() - start)
    return best / count * 1e6


def quantized(m: int, n: int, k: int):
    import mlx.core as mx

    # More weights than the caches hold.
    copies = max(2, min(16, (256 << 20) // (n * k // 2)))
    weights = [
        mx.quantize(mx.random.normal((n, k)).astype(mx.float16), 128, 4)
        for _ in range(copies)
    ]
    x = mx.random.normal((m, k)).astype(mx.float16)
    mx.eval(weights, x)
    return lambda i: mx.quantized_matmul(
        x, *weights[i % copies], transpose=True, group_size=128, bits=4
    )


def dense(m: int, n: int, k: int):
    import mlx.core as mx

    weights = [mx.random.normal((n, k)).astype(mx.float16) for _ in range(4)]
    x = mx.random.normal((m, k)).astype(mx.float16)
    mx.eval(weights, x)
    return lambda i: x @ weights[i % 4].T


def attention(heads: int, kv_heads: int, queries: int, keys: int):
    import mlx.core as mx

    def items(count: int, rows: int):
        return mx.random.normal((1, count, rows, 128)).astype(mx.float16)

    q = items(heads, queries)
    caches = [(items(kv_heads, keys), items(kv_heads, keys)) for _ in range(4)]
    mx.eval(q, caches)
    mask = "causal" if queries > 1 else None
    return lambda i: mx.fast.scaled_dot_product_attention(
        q, *caches[i % 4], scale=128**-0.5, mask=mask
    )


CASES = {"quantized": quantized, "dense": dense, "attention": attention}


def measure(predicted: dict[str, float]) -> dict[str, float]:
    us = {}
    for name, estimate in predicted.items():
        kind, *sizes = name.split()
        call = CASES[kind](*map(int, sizes))
        count = int(min(max(20_000 / estimate, 10), 200))
        timed(call, count)
        us[name] = timed(call, count)
    return us


def write(path: Path, us: dict[str, float]) -> None:
    import mlx.core as mx

    device = mx.device_info(mx.gpu)
    facts = {
        "device": f"{device['device_name']}, {device['driver']}",
        "method": "f16, 4-bit, groups of 128; tools/cost/validate.py",
        "us": {name: round(value, 1) for name, value in us.items()},
    }
    path.write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stored", action="store_true")
    parser.add_argument("--json", type=Path, help="write the times there")
    parser.add_argument("--only", default="", help="cases whose name contains it")
    args = parser.parse_args()
    predicted = json.loads(PREDICTED.read_text("utf-8"))
    predicted = {name: us for name, us in predicted.items() if args.only in name}
    measured = stored() if args.stored else measure(predicted)
    if args.json:
        write(args.json, measured)
    found = compare(predicted, measured)
    for name in found["names"]:
        us, estimate = measured[name], predicted[name]
        print(f"{name:34} {estimate:9.1f} {us:9.1f} us  x{us / estimate:.2f}")
    print(
        f"{len(found['names'])} kernels: rank correlation {found['correlation']:.3f}, "
        f"measured / estimated {found['median']:.2f} in the median, "
        f"times or by {found['spread']:.2f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
