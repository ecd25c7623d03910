"""Whether a row's result has the same bits alone and beside others, by operation and
number of rows; and what operations of rows take with another libmlx.so beside this one.

    python benchmarks/row_bits.py [--beside LIBMLX.SO] [--rounds 5] [--small]

Times are the least of the rounds, which the libraries take in turn, of one operation
among many in an eval.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WIDTHS = (128, 256, 384, 512, 1000, 4096, 32768)
ROWS = (1, 2, 8, 32, 63, 64, 128, 255, 256, 1024, 4096)
PRODUCTS = ((1024, 4096), (2048, 2048), (4096, 4096))  # k, n
FEW = (1, 2, 3, 4, 5, 6, 7, 8, 9, 16)


def operations():
    import mlx.core as mx

    return {
        "sum": lambda x: x.sum(-1),
        "max": lambda x: x.max(-1),
        "softmax": lambda x: mx.softmax(x, axis=-1),
        "logsumexp": lambda x: mx.logsumexp(x, axis=-1),
        "rms_norm": lambda x: mx.fast.rms_norm(x, None, 1e-5),
        "layer_norm": lambda x: mx.fast.layer_norm(x, None, None, 1e-5),
        "argmax": lambda x: mx.argmax(x, axis=-1),
    }


def serve() -> None:
    """Answers lines of JSON: the time of an operation, or whether bits are alike."""
    import mlx.core as mx

    mx.set_default_device(mx.gpu)
    known = operations()
    print(json.dumps(mx.device_info()["device_name"]), flush=True)
    for line in sys.stdin:
        name, rows, n, count = json.loads(line)
        x = mx.random.normal((rows, n)).astype(mx.bfloat16)
        mx.eval(x)
        best = float("inf")
        for _ in range(4):  # the first compiles
            mx.synchronize()
            start = time.perf_counter()
            mx.eval([known[name](x) for _ in range(count)])
            best = min(best, (time.perf_counter() - start) / count)
        mx.clear_cache()
        print(json.dumps(best * 1e6), flush=True)


def child(library: str | None, folder: str) -> subprocess.Popen:
    env = dict(os.environ)
    if library:  # another home of the hook, which loads what lies beside it
        import _mlx_vulkan

        home = Path(folder)
        (home / "mlx_vulkan" / "lib").mkdir(parents=True)
        (home / "mlx_vulkan" / "lib" / "libmlx.so").symlink_to(Path(library).resolve())
        (home / "_mlx_vulkan.py").write_text(Path(_mlx_vulkan.__file__).read_text())
        more = os.environ.get("PYTHONPATH")
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, more]))
    command = [sys.executable, __file__, "--serve"]
    process = subprocess.Popen(
        command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdout.readline()
    return process


def ask(process: subprocess.Popen, *words) -> float:
    print(json.dumps(words), file=process.stdin, flush=True)
    return json.loads(process.stdout.readline())


def beside(library: str, rounds: int, widths, rows) -> None:
    print("us, other and this library, and this by other (! beyond 1.03)")
    with tempfile.TemporaryDirectory() as folder:
        both = child(library, folder), child(None, folder)
        for name in operations():
            for n in widths:
                line = []
                for r in rows:
                    if r * n > 1 << 26:
                        continue
                    count = max(8, min(200, (1 << 28) // (r * n)))
                    found = [
                        [ask(p, name, r, n, count) for p in both] for _ in range(rounds)
                    ]
                    old, new = (min(times) for times in zip(*found))
                    mark = "!" if new > 1.03 * old else ""
                    line.append(f"{r}: {old:.2f} {new:.2f} {new / old:.3f}{mark}")
                print(f"{name} {n}:", "; ".join(line), flush=True)
        for process in both:
            process.stdin.close()
            process.wait()


def alike(f, x) -> str:
    """Of x's rows, how the first and last are in batches of these counts."""
    import mlx.core as mx

    whole = f(x).view(mx.uint8).reshape(len(x), -1)
    first, last = f(x[:1]).view(mx.uint8), f(x[-1:]).view(mx.uint8)
    same = (whole[0] == first.reshape(-1)).all() & (whole[-1] == last.reshape(-1)).all()
    return "same" if same.item() else "OTHER"


def bits(widths, rows) -> None:
    import mlx.core as mx

    mx.random.seed(3)
    print("a row alone and the first and last of so many, float32")
    for name, f in operations().items():
        for n in widths:
            x = mx.random.normal((max(r for r in rows if r * n <= 1 << 26), n))
            found = {r: alike(f, x[:r]) for r in rows if r <= len(x)}
            other = [r for r in found if found[r] == "OTHER"]
            print(f"{name} {n}:", f"other at {other}" if other else "same", flush=True)
    print("products of so many rows beside one, and beside eight")
    for k, n in PRODUCTS:
        for dtype in (mx.float32, mx.bfloat16):
            w = mx.random.normal((n, k)).astype(dtype)
            x = mx.random.normal((max(FEW), k)).astype(dtype)
            packed = mx.quantize(w, 64, 4)

            def dense(x, w=w):
                return x @ w.T

            def quantized(x, packed=packed):
                return mx.quantized_matmul(x, *packed, True, 64, 4)

            for kind, f in (("dense", dense), ("4 bits", quantized)):
                one, eight = f(x[:1]), f(x[:8])
                same = [m for m in FEW if mx.array_equal(f(x[:m])[:1], one)]
                like8 = [m for m in FEW if mx.array_equal(f(x[:m])[:1], eight[:1])]
                print(f"{kind} {dtype} k {k} n {n}: as one {same}, as eight {like8}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--beside", metavar="LIBMLX.SO")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true", help="few sizes")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve()
        return
    widths, rows = (WIDTHS[1:4:2], ROWS[::4]) if args.small else (WIDTHS, ROWS)
    if args.beside:
        beside(args.beside, args.rounds, widths, rows)
    bits(widths, rows)


if __name__ == "__main__":
    main()
