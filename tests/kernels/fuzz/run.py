"""Random kernels through mx.fast.metal_kernel and through g++, compared.

    python tests/kernels/fuzz/run.py [--first SEED] [--count N] [--jobs N]
                                     [--save FILE | --against FILE] [--cpp-only]
                                     [--show SEED] [--reduce SEED]

Every body runs with 64 threads, one threadgroup, on the same random inputs; the
outputs must have the same bits. The text for g++ is the same, with
metal_on_cpu.h before it. For a machine without g++ another one saves what it
gives.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

BEGAN = time.monotonic()
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from expressions import ITEMS, LIMIT, SLOTS, THREADS  # noqa: E402
from statements import program  # noqa: E402

NUMPY = {
    "bool": np.bool_,
    "char": np.int8,
    "uchar": np.uint8,
    "short": np.int16,
    "ushort": np.uint16,
    "int": np.int32,
    "uint": np.uint32,
    "long": np.int64,
    "ulong": np.uint64,
    "half": np.float16,
    "bfloat": np.uint16,  # its bits
    "float": np.float32,
}
MLX = {
    "bool": "bool_",
    "char": "int8",
    "uchar": "uint8",
    "short": "int16",
    "ushort": "uint16",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "ulong": "uint64",
    "half": "float16",
    "bfloat": "bfloat16",
    "float": "float32",
}
BUILTINS = {
    "uint3 thread_position_in_grid": "uint3(tid, 0, 0)",
    "uint3 thread_position_in_threadgroup": "uint3(tid, 0, 0)",
    "uint thread_index_in_simdgroup": "tid % 32",
    "uint simdgroup_index_in_threadgroup": "tid / 32",
    "uint3 threads_per_threadgroup": f"uint3({THREADS}, 1, 1)",
}


def inputs_of(kernel):
    rng = np.random.default_rng(kernel.seed)
    for kind in kernel.inputs:
        if kind in LIMIT:
            values = rng.integers(-4 * LIMIT[kind], 4 * LIMIT[kind] + 1, ITEMS) / 4
            values = values.astype(np.float32)
            if kind == "bfloat":
                yield (values.view(np.uint32) >> 16).astype(np.uint16)
            else:
                yield values.astype(NUMPY[kind])
        elif kind == "bool":
            yield rng.integers(0, 2, ITEMS).astype(np.bool_)
        else:
            info = np.iinfo(NUMPY[kind])
            values = rng.integers(info.min, info.max, ITEMS, NUMPY[kind], True)
            small = rng.integers(0, 100, ITEMS).astype(NUMPY[kind])
            yield np.where(rng.random(ITEMS) < 0.5, small, values)


def cpp_text(kernels):
    parts = ['#include "metal_on_cpu.h"\n']
    for k, kernel in enumerate(kernels):
        parameters = [f"const {t}* in{i}" for i, t in enumerate(kernel.inputs)]
        parameters += [f"{t}* out{i}" for i, t in enumerate(kernel.outputs)]
        parameters += BUILTINS
        # What threads share is one for all fibers.
        own = re.compile(r"^  threadgroup (\w+ \w+\[)", re.MULTILINE)
        body = own.sub(r"  static \1", kernel.body)
        # g++ tries (T(uint(x[0]), uint(x[1]))) as a type and sees x declared twice.
        body = re.sub(rf"\b({'|'.join(NUMPY)})\((?=\w+\[)", r"(\1)(", body)
        parts.append(f"namespace kernel{k} {{\n{kernel.header}\n")
        parts.append(f"static void run({', '.join(parameters)}) {{\n{body}}}\n")
        parts.append("void all(FILE* from, FILE* to) {\n")
        names = []
        for i, t in enumerate(kernel.inputs):
            parts.append(f"  auto in{i} = read_items<{t}>(from, {ITEMS});\n")
            names.append(f"in{i}.get()")
        for i, t in enumerate(kernel.outputs):
            parts.append(f"  static {t} out{i}[{THREADS * SLOTS}];\n")
            names.append(f"out{i}")
        names += BUILTINS.values()
        parts.append(f"  metal::run_threadgroup({THREADS}, [&](uint tid) {{\n")
        parts.append(f"    run({', '.join(names)});\n  }});\n")
        for i in range(len(kernel.outputs)):
            parts.append(f"  write_items(to, out{i}, {THREADS * SLOTS});\n")
        parts.append("}\n}\n#undef TWICE\n")
    parts.append("int main(int, char** names) {\n")
    parts.append('  FILE *from = fopen(names[1], "rb"), *to = fopen(names[2], "wb");\n')
    parts += [f"  kernel{k}::all(from, to);\n" for k in range(len(kernels))]
    parts.append("  fclose(to);\n}\n")
    return "".join(parts)


def run_until(command, deadline):
    """Its exit code and what it says of errors. Past the deadline, of
    time.monotonic(), which processes share, it and its children end and
    TimeoutExpired is raised."""
    left = None if deadline is None else max(deadline - time.monotonic(), 0)
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, process_group=0
    ) as process:
        try:
            _, errors = process.communicate(timeout=left)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, errors


def on_cpu(kernels, flags=("-O0",), deadline=None):
    """The outputs of each kernel, as g++ has them. Raises TimeoutExpired."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "kernels.cpp").write_text(cpp_text(kernels))
        command = ["g++", "-std=c++20", "-w", "-fwrapv", "-ffp-contract=off", *flags]
        command += ["-I", str(HERE), "-o", folder / "kernels", folder / "kernels.cpp"]
        code, errors = run_until(command, deadline)
        if code:
            raise RuntimeError(f"g++ refuses:\n{errors[:4000]}")
        with open(folder / "in", "wb") as file:
            for kernel in kernels:
                for items in inputs_of(kernel):
                    file.write(items.tobytes())
        command = [folder / "kernels", folder / "in", folder / "out"]
        code, errors = run_until(command, deadline)
        if code:
            raise RuntimeError(f"the kernels end with {code}: {errors}")
        data = (folder / "out").read_bytes()
    results, at = [], 0
    for kernel in kernels:
        outputs = []
        for kind in kernel.outputs:
            items = np.frombuffer(data, NUMPY[kind], THREADS * SLOTS, at)
            at += items.nbytes
            outputs.append(items.reshape(THREADS, SLOTS))
        results.append(outputs)
    return results


def on_gpu(kernel):
    """The same through mx.fast.metal_kernel; not yet evaluated."""
    import mlx.core as mx

    inputs = []
    for kind, items in zip(kernel.inputs, inputs_of(kernel)):
        items = mx.array(items)
        inputs.append(items.view(mx.bfloat16) if kind == "bfloat" else items)
    made = mx.fast.metal_kernel(
        name=f"fuzz_{kernel.seed}",
        input_names=[f"in{i}" for i in range(len(inputs))],
        output_names=[f"out{i}" for i in range(len(kernel.outputs))],
        source=kernel.body,
        header=kernel.header,
    )
    return made(
        inputs=inputs,
        grid=(THREADS, 1, 1),
        threadgroup=(THREADS, 1, 1),
        output_shapes=[(THREADS, SLOTS)] * len(kernel.outputs),
        output_dtypes=[getattr(mx, MLX[t]) for t in kernel.outputs],
        stream=mx.gpu,
    )


def to_numpy(kind, array):
    import mlx.core as mx

    return np.array(array.view(mx.uint16) if kind == "bfloat" else array)


def difference(kernel, expected, got):
    """A sentence, or None. Zeros of either sign are equal."""
    for i, (kind, want) in enumerate(zip(kernel.outputs, expected)):
        have = to_numpy(kind, got[i])
        if kind == "bfloat":
            have, want = (x.astype(np.uint32) << 16 for x in (have, want))
            have, want = have.view(np.float32), want.view(np.float32)
        wrong = ~((have == want) | ((have != have) & (want != want)))
        if wrong.any():
            at = tuple(int(x) for x in np.argwhere(wrong)[0])
            return (
                f"out{i} ({kind}), thread {at[0]}, slot {at[1]}: {have[at]}, by g++ "
                f"{want[at]}; {int(wrong.sum())} items differ"
            )
    return None


def saved(kernels, folder, deadline=None):
    """What save() wrote of these."""
    results = []
    for kernel in kernels:
        with np.load(folder / f"{kernel.seed}.npz") as file:
            results.append([file[f"arr_{i}"] for i in range(len(kernel.outputs))])
    return results


def save(kernels, folder, deadline=None):
    for kernel, outputs in zip(kernels, on_cpu(kernels, deadline=deadline)):
        np.savez_compressed(folder / f"{kernel.seed}.npz", *outputs)
        yield kernel, None


def defined(kernels, deadline=None):
    """By UBSan: what is undefined ends the program."""
    on_cpu(kernels, ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover"), deadline)
    return ((kernel, None) for kernel in kernels)


def compared(kernels, oracle=on_cpu, deadline=None):
    """Each kernel with a sentence, if it differs, is refused or fails; those that
    are begun in time."""
    import mlx.core as mx

    for kernel, want in zip(kernels, oracle(kernels, deadline=deadline)):
        if deadline is not None and time.monotonic() > deadline:
            return
        try:
            got = on_gpu(kernel)
            mx.eval(got)
            problem = difference(kernel, want, got)
        except Exception as e:
            problem = f"{type(e).__name__}: {e}"
        yield kernel, problem


def check(kernels):
    """Sentences by the seeds of those that have one."""
    return {kernel.seed: problem for kernel, problem in compared(kernels) if problem}


def reduce(kernel):
    """Without the statements of the body that are not needed to fail alike."""
    (first,) = check([kernel]).values()

    def fails(statements):
        kept, kernel.statements = kernel.statements, statements
        try:
            problem = check([kernel]).get(kernel.seed)
        except RuntimeError:  # what remains is no program
            problem = None
        kernel.statements = kept
        return problem and problem.split(":")[0][:12] == first.split(":")[0][:12]

    size = max(1, len(kernel.statements) // 2)
    while size:
        at = 0
        while at < len(kernel.statements):
            rest = kernel.statements[:at] + kernel.statements[at + size :]
            if fails(rest):
                kernel.statements = rest
            else:
                at += size
        size //= 2
    lines = kernel.end.splitlines()
    for line in list(lines):
        rest = [x for x in lines if x is not line]
        kept, kernel.end = kernel.end, "\n".join(rest)
        if fails(kernel.statements):
            lines = rest
        else:
            kernel.end = kept
    return kernel


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--batch", type=int, default=20, help="bodies a g++ run")
    parser.add_argument("--statements", type=int, default=10)
    parser.add_argument("--no-collectives", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seconds", type=float, help="to begin bodies for")
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="of g++ alone")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="what was saved")
    parser.add_argument("--cpp-only", action="store_true", help="with UBSan")
    parser.add_argument("--show", type=int, metavar="SEED")
    parser.add_argument("--reduce", type=int, metavar="SEED")
    args = parser.parse_args()

    if args.show is not None or args.reduce is not None:
        kernel = made(args.show if args.show is not None else args.reduce, args)
        if args.reduce is not None:
            reduce(kernel)
            print(next(iter(check([kernel]).values())))
        print(f"{kernel.header}\n\n{kernel.body}")
        return 0
    starts = range(args.first, args.first + args.count, args.batch)
    if args.save:
        args.save.mkdir(parents=True, exist_ok=True)
        work = partial(save, folder=args.save)
    elif args.cpp_only:
        work = defined
    elif args.against:
        names = {path.name for path in args.against.iterdir()}
        starts = [
            first
            for first in starts
            if names >= {f"{seed}.npz" for seed in seeds(first, args)}
        ]
        work = partial(compared, oracle=partial(saved, folder=args.against))
    else:
        work = compared
    return report(run(args, starts, work), args)


def seeds(first, args):
    return range(first, min(first + args.batch, args.first + args.count))


def one_batch(args, work, deadline, first):
    """How many kernels were tried in time, and the problems of some."""
    tried, problems = 0, {}
    if deadline is not None and time.monotonic() > deadline:
        return tried, problems
    kernels = [made(seed, args) for seed in seeds(first, args)]
    try:
        for kernel, problem in work(kernels, deadline=deadline):
            tried += 1
            if problem:
                problems[kernel.seed] = problem
    except subprocess.TimeoutExpired:
        pass
    return tried, problems


def made(seed, args):
    return program(seed, args.statements, not args.no_collectives)


def run(args, starts, work):
    """What each batch found, as they end."""
    deadline = None if args.seconds is None else BEGAN + args.seconds
    # Spawned: a device does not outlive a fork.
    with ProcessPoolExecutor(args.jobs, get_context("spawn")) as pool:
        batch = partial(one_batch, args, work, deadline)
        for done in as_completed([pool.submit(batch, first) for first in starts]):
            yield done.result()


def report(results, args):
    bodies, problems = 0, 0
    for count, found in results:
        bodies += count
        print(f"\r{bodies} of {args.count}", end="", file=sys.stderr, flush=True)
        problems += len(found)
        for seed, problem in found.items():
            print(f"seed {seed}: {problem}", flush=True)
    print(f"{bodies} bodies, {problems} with problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
