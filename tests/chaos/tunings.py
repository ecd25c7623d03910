"""Tune a small model under a load that comes and goes: none may leave it slower.

    python tests/chaos/tunings.py [--tunings 20] [--seconds 25] [--seed N] [--model M]

Processes that only compute start and stop at random while `mlx-vulkan tune` runs. When
they have ended, another process times the model's steps with and without the choices,
in turn. A step that is slower by more than 2 %, beyond noise, is a failure. Prints a
line a step, and `N passed, N failed, 0 skipped` tunings.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

ALLOWED = 1.02  # times as long
# Pairs of times: until their median is known to a quarter of that, or these are over.
PAIRS, MOST_PAIRS = 50, 1000
# The device's plans, and those of another threshold, of which some can be improved.
PLANS = ({}, {"MLX_VK_TEST": "plans=quant.compiled_weights=1"})
SPIN = "import sys, time\nend = time.time() + float(sys.argv[1])\n"
SPIN += "while time.time() < end: pass"


@contextmanager
def load(seed: int):
    """Up to twice as many busy processes as cores, for 0.1 to 3 s each."""
    stop, busy = threading.Event(), []

    def run():
        generator = random.Random(seed)
        while not stop.wait(generator.uniform(0.05, 0.5)):
            busy[:] = [spin for spin in busy if spin.poll() is None]
            if len(busy) < 2 * (os.cpu_count() or 2) and generator.random() < 0.6:
                seconds = str(generator.uniform(0.1, 3))
                busy.append(subprocess.Popen([sys.executable, "-c", SPIN, seconds]))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        for spin in busy:
            spin.wait()


def command(*words, **env) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *map(str, words)],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
    )


def median_interval(values: list[float]) -> tuple[float, float]:
    """Where the median lies with a probability of 99 %, by its rank: outliers, which
    other processes make, count little."""
    values, half = sorted(values), 2.576 * len(values) ** 0.5 / 2
    return values[int(len(values) / 2 - half)], values[int(len(values) / 2 + half)]


def compare(shape: str | None, model: str | None) -> list[dict]:
    """Steps with and without the device's table, from a process of its own."""
    import mlx.core as mx

    from mlx_vulkan.tune import SMALL, cells, library, worker

    job = {"shape": shape, "model": model, "bits": 4, "context": cells.SHORT}
    job |= {"cells": SMALL, "skip": [], "done": [], "choices": [], "deadline": 0}
    job["good"] = {}
    loaded = cells.load(job)
    mx.eval(mx.zeros(1) + 1)
    choices = library.status()["table"]["choices"]
    tuner = worker.Tuner(job, lambda **event: None)
    found = []
    for make in worker.cells_of(job, *loaded):
        cell = make()
        tuner.compare(cell, [], choices, rounds=3, when="")  # kernels are compiled
        ratios, low, high = [], 1, 2
        while len(ratios) < MOST_PAIRS and high / low > 1 + (ALLOWED - 1) / 2:
            before, after = tuner.compare(cell, [], choices, rounds=PAIRS, when="")
            ratios += [b / a for a, b in zip(before, after)]
            low, high = median_interval(ratios)
        ratio = statistics.median(ratios)
        step = {"step": cell.name, "ratio": ratio, "interval": (low, high)}
        found.append(step | {"pairs": len(ratios)})
    return found


def tuning(args, number: int) -> bool:
    """Whether no step is slower."""
    model = ("--shape", args.shape) if args.shape else (args.model,)
    plans = PLANS[number % len(PLANS)]
    # A table of an earlier tuning would be compared, too.
    command("-m", "mlx_vulkan", "tune", "--reset")
    with load(args.seed + number):
        tuned = ("tune", *model, "--minutes", args.seconds / 60)
        done = command("-m", "mlx_vulkan", *tuned, **plans)
    if done.returncode:
        print(f"{number}: the tuning failed: {done.stderr}")
        return False
    if "No step was reached" in done.stdout:
        print(f"{number}: no step was reached in {args.seconds} s")
        return False
    again = ("--compare", "--model", args.model or "", "--shape", args.shape or "")
    done = command(__file__, *again, **plans)
    if done.returncode:
        print(f"{number}: the comparison failed: {done.stderr}")
        return False
    good = True
    taken, steps = json.loads(done.stdout)
    for step in steps:
        low, high = step["interval"]
        slower = low > ALLOWED
        good &= not slower
        print(
            f"{number}: {taken} kernels, {step['step']}: {step['ratio']:.3f} times as "
            f"long ({low:.3f} to {high:.3f}, {step['pairs']} pairs)"
            f"{', SLOWER' if slower else ''}",
            flush=True,
        )
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tunings", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model")
    parser.add_argument("--shape", default="tiny")
    parser.add_argument("--compare", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.shape = None if args.model else args.shape
    if args.compare:
        from mlx_vulkan.tune import library

        steps = compare(args.shape, args.model)
        print(json.dumps([len(library.status()["table"]["choices"]), steps]))
        return 0
    with tempfile.TemporaryDirectory() as cache:
        os.environ["MLX_VK_CACHE"] = str(Path(cache) / "cache")
        good = [tuning(args, i) for i in range(args.tunings)]
    print(f"{sum(good)} passed, {len(good) - sum(good)} failed, 0 skipped")
    return not all(good)


if __name__ == "__main__":
    sys.exit(main())
