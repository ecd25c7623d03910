"""Times mx.linalg on the GPU beside PyTorch on CUDA and MLX's CPU.

    python benchmarks/linalg.py [qr svd] [--shapes 512,1000x64] [--json FILE]

One row for each function, type, shape and library, in milliseconds: single matrices
of 512, 2,048 and 8,192 rows, and batches of 1,000. Matrices are random and, for
cholesky and eigh, symmetric. A row that should take longer than --each, by the time of
a smaller one, is left out, and so are all after --seconds. MLX's CPU takes a batch one
by one: it gets the first --cpu-items, and the time is that of all by proportion.
"""

import argparse
import functools
import sys
import time

import mlx.core as mx
import numpy as np

from mlx_vulkan.bench import report

try:
    import torch
except ImportError:
    torch = None

SHAPES = "512,2048,8192,1000x16,1000x64,1000x256"
FUNCTIONS = ("cholesky", "lu", "solve", "inv", "qr", "eigh", "svd")
TYPES = ("float32", "float64")


def shape_of(word: str) -> tuple[int, int]:
    """Matrices and their rows: 512, or 1000x64."""
    count, _, n = word.rpartition("x")
    return int(count or 1), int(n)


@functools.cache
def random(count: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    return rng.standard_normal((count, n, n), dtype=np.float32)


def operands(function: str, count: int, n: int) -> list[np.ndarray]:
    a = random(count, n)
    if function in ("cholesky", "eigh"):
        a = a + a.swapaxes(-1, -2)
        if function == "cholesky":
            a += 4 * np.sqrt(n) * np.eye(n, dtype=np.float32)
    return [a, a[..., :4]] if function == "solve" else [a]


def of_mlx(device):
    """Makes calls that compute on a device of MLX and wait."""

    def make(function, arrays, dtype):
        with mx.stream(device):
            x = [mx.array(a).astype(getattr(mx, dtype)) for a in arrays]
            mx.eval(x)
        call = getattr(mx.linalg, "lu_factor" if function == "lu" else function)
        return lambda: mx.eval(call(*x, stream=device))

    return make


def of_torch(function, arrays, dtype):
    x = [torch.tensor(a, device="cuda", dtype=getattr(torch, dtype)) for a in arrays]
    call = getattr(torch.linalg, "lu_factor" if function == "lu" else function)

    def run():
        call(*x)
        torch.cuda.synchronize()

    return run


def seconds_of(call, most: float) -> list[float]:
    """Of several calls after two that prepare, or of the only one if it is long."""
    found = []
    begun = time.perf_counter()
    while len(found) < 10 and (not found or time.perf_counter() < begun + most / 2):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return found[2:] or found[-1:]


def measure(args, libraries: dict):
    """Rows, as they are measured."""
    end = time.monotonic() + args.seconds
    known = {}  # by function, type, library and whether it is a batch: (n, seconds)
    for function in args.functions or FUNCTIONS:
        for count, n in map(shape_of, args.shapes.split(",")):
            arrays = None
            for dtype in args.types.split(","):
                for library, make in libraries.items():
                    key = (function, dtype, library, count)
                    smaller, spent = known.get(key, (n, 0.0))
                    known[key] = (n, spent * (n / smaller) ** 3)
                    if known[key][1] > args.each or time.monotonic() > end:
                        continue
                    arrays = arrays or operands(function, count, n)
                    part = min(count, args.cpu_items) if library == "cpu" else count
                    call = make(function, [a[:part] for a in arrays], dtype)
                    found = seconds_of(call, args.each)
                    known[key] = (n, min(found))
                    found = [s * count / part for s in found]
                    shape = f"{count} x {n}" if count > 1 else str(n)
                    name = f"{function} {dtype} {shape}: {library}"
                    print(f"{name}: {min(found) * 1e3:.3g} ms", file=sys.stderr)
                    note = f"{part} timed" if part < count else ""
                    yield report.Row(name, "ms", [s * 1e3 for s in found], note=note)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("functions", nargs="*", metavar="NAME", help="all without one")
    parser.add_argument("--seconds", type=float, default=600, help="for everything")
    parser.add_argument("--each", type=float, default=3, help="seconds, for each row")
    parser.add_argument("--shapes", default=SHAPES)
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--cpu-items", type=int, default=50, help="of a batch")
    report.add_arguments(parser)
    args = parser.parse_args()
    if unknown := sorted(set(args.functions) - set(FUNCTIONS)):
        sys.exit(f"There is no {', '.join(unknown)}; there are {', '.join(FUNCTIONS)}.")
    if not mx.is_available(mx.gpu):
        sys.exit("mx.gpu is not available. MLX_VK_DEVICE=cpu picks software.")
    libraries = {"vulkan": of_mlx(mx.gpu)}
    if torch and torch.cuda.is_available():
        libraries["torch"] = of_torch
    libraries["cpu"] = of_mlx(mx.cpu)
    rows = list(measure(args, libraries))
    return report.finish(args, rows, {}, rows[:2], report.about(False))


if __name__ == "__main__":
    sys.exit(main())
