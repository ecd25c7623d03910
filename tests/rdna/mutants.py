"""Faults planted in the project's kernels: who finds them?

    python tests/rdna/mutants.py [--chip gfx1201] [NAME ...]

Each is an edit of a kernel or a dropped barrier between dispatches. An operation that
uses the kernel runs in the emulator and on the driver lab's lavapipe (8 lanes); a
check of the emulator reports it, the values are wrong, or neither. Prints a Markdown
table. Not a test: docs/lab/2026-11-29-executed-again.md has the result.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LAB = ROOT / "tools" / "driver_lab.py"
KERNELS = ROOT / "src" / "kernels"


@dataclass
class Mutant:
    kind: str
    operation: str  # of operations.py
    file: str = ""
    old: str = ""
    new: str = ""
    number: int = 0  # which of several `old`
    barrier: int = -1  # between dispatches, from 1

    def __str__(self) -> str:
        if not self.file:
            return f"{self.operation}: without barrier {self.barrier} of a batch"
        if self.kind == "barrier":
            return f"{self.file}: without barrier() {self.number}"
        return f"{self.file}: `{self.old.strip()}` is `{self.new.strip()}`"

    def apply(self, kernels: Path) -> None:
        path = kernels / self.file
        text = path.read_text("utf-8")
        places = [m.start() for m in re.finditer(re.escape(self.old), text)]
        at = places[self.number]
        path.write_text(text[:at] + self.new + text[at + len(self.old) :], "utf-8")


def barriers(operation: str, file: str, *numbers: int) -> list[Mutant]:
    return [
        Mutant("barrier", operation, file, "barrier();", " ;", number)
        for number in numbers
    ]


def edit(kind: str, operation: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(kind, operation, file, old, new)


MUTANTS = [
    *barriers("prefill", "attention/prefill.comp", 0, 1, 2, 3),
    *barriers("prefill_matrices", "attention/prefill_coopmat.comp", 0, 1, 2, 3),
    *barriers("scan", "scan.comp", 0, 1),
    *barriers("norm", "common/lanes.glsl", 0, 1),
    *barriers("axpy", "gemm/gemv_axpy.comp", 0),
    *barriers("matmul", "gemm/gemm.comp", 0, 1),
    *barriers("matmul_matrices", "gemm/rows_tile.glsl", 0, 1),
    *barriers("fft", "fft/fft_radix.comp", 0, 1),
    *barriers("columns", "reduce_col.comp", 0),
    *barriers("quantized", "gemm/rows_tile.glsl", 0, 1),
    *barriers("quantized_few", "gemm/skinny_tile.glsl", 0, 1, 2),
    *barriers("hadamard", "hadamard.comp", 0),
    edit("bounds", "scan", "scan.comp", "sums[WG_SIZE / 4]", "sums[1]"),
    edit("bounds", "norm", "common/lanes.glsl", "SCRATCH[WG_SIZE / 4]", "SCRATCH[1]"),
    edit("bounds", "columns", "reduce_col.comp", "tile[WG_SIZE]", "tile[1]"),
    edit("bounds", "hadamard", "hadamard.comp", "tile[TILE]", "tile[TILE / 4]"),
    edit("bounds", "matmul", "gemm/tile.glsl", "[BK * ROW_B]", "[BK * ROW_B / 4]"),
    edit("bounds", "norm", "norm.comp", "if (i < n) {", "if (i < n + 67108864) {"),
    edit("bounds", "axpy", "gemm/gemv_axpy.comp", "[SPREAD * GROUP_ROWS]", "[SPREAD]"),
    edit(
        "lanes", "norm", "common/lanes.glsl", "mask = width >> 1", "mask = width >> 2"
    ),
    edit(
        "lanes",
        "norm",
        "common/lanes.glsl",
        "parts = MEMBERS / gl_SubgroupSize",
        "parts = MEMBERS / 32",
    ),
    edit(
        "lanes",
        "quantized_row",
        "quant/qmv.comp",
        "subgroupAdd(acc[r][m])",
        "(acc[r][m] + subgroupShuffleXor(acc[r][m], 1))",
    ),
    edit(
        "lanes",
        "scatter",
        "masked_scatter.comp",
        "subgroupExclusiveAdd(x)",
        "subgroupInclusiveAdd(x)",
    ),
    edit(
        "lanes",
        "prefill_matrices",
        "attention/prefill_coopmat.comp",
        "m = max(m, subgroupShuffleXor(m, 1));",
        "",
    ),
    *(Mutant("dispatches", "chain", barrier=n) for n in (1, 2, 3)),
    *(Mutant("dispatches", "long_sort", barrier=n) for n in (1, 2)),
]


def run(chip: str, mutant: Mutant | None, operation: str) -> str:
    """What happens: a kind of fault, "wrong" or "-"."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "MLX_VK_CACHE": "off", "LP_NATIVE_VECTOR_WIDTH": "256"}
        if mutant and mutant.file:
            kernels = Path(folder) / "kernels"
            shutil.copytree(KERNELS, kernels)
            mutant.apply(kernels)
            env["MLX_VK_KERNEL_PATH"] = str(kernels)
        elif mutant:
            env["MLX_VK_TEST"] = f"drop_barrier={mutant.barrier}"
        command = [sys.executable, LAB, "run", "--execute", chip, sys.executable]
        try:
            done = subprocess.run(
                [*command, HERE / "operations.py", operation],
                env=env,
                capture_output=True,
                text=True,
                timeout=300,
            )
        except subprocess.TimeoutExpired:
            return "hangs"
    for sign, name in (
        ("a race between", "race of dispatches"),
        ("a race in", "race"),
        ("of shared memory, which", "outside"),
        ("a GEM object", "outside"),
        ("waits at a barrier", "barrier"),
        ("rdna: ", "other fault"),
    ):
        if re.search(f"rdna: .*{sign}" if name != "other fault" else sign, done.stderr):
            return name
    if "right" in done.stdout:
        return "-"
    return "wrong" if "wrong" in done.stdout else f"error: {done.stderr[-200:]}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chip", default="gfx1201")
    parser.add_argument("operations", nargs="*")
    args = parser.parse_args()
    chosen = [
        m for m in MUTANTS if not args.operations or m.operation in args.operations
    ]
    for operation in sorted({m.operation for m in chosen}):
        for chip in (args.chip, "lavapipe"):
            if (got := run(chip, None, operation)) != "-":
                sys.exit(f"{operation} without a fault, {chip}: {got}")
    print(f"| kind | fault | {args.chip} | lavapipe |\n|---|---|---|---|", flush=True)
    totals = Counter()
    for mutant in chosen:
        emulated = run(args.chip, mutant, mutant.operation)
        software = run("lavapipe", mutant, mutant.operation)
        print(f"| {mutant.kind} | {mutant} | {emulated} | {software} |", flush=True)
        finders = ("emulator",) * (emulated != "-") + ("lavapipe",) * (software != "-")
        totals[" and ".join(finders) or "neither"] += 1
    print("\nFound by", ", ".join(f"{k}: {v}" for k, v in totals.items()))


if __name__ == "__main__":
    main()
