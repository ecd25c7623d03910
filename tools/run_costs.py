"""What kernels execute on AMD chips without their hardware.

    run_costs.py                  every chip; compare with docs/dev/driver-costs.md
    run_costs.py navi31           some
    run_costs.py --write          every chip; write the page

The emulator (tests/rdna) executes the cases of tests/rdna/cost_cases.py and counts
instructions, cache lines and conflicts. The counts of all dispatches and the code of
the shaders, with the counts of each instruction, go to build/costs/<chip>. Some 30
seconds per chip.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from driver_lab import ROOT, LabError, setup

DOCUMENT = ROOT / "docs" / "dev" / "driver-costs.md"
CASES = ROOT / "tests" / "rdna" / "cost_cases.py"
MARK = "OP=ArcTanh"  # of the kernel that begins a case
LEAST = 1000  # thousands of instructions of waves: kernels of fewer are left out

HEAD = """# Costs of kernels

Written by `tools/run_costs.py --write`; do not edit. RADV's code, executed and counted
by the emulator. Cases (`tests/rdna/cost_cases.py`): a token through a layer of Qwen3,
16 of its 128 experts; products of 4 bits and bf16, or as named; attention with heads of
128; sorted experts with 32 rows each. Kernels of fewer than a million instructions are
left out.

**vector, matrix, shared, lines**: thousands of cycles in which these units of all
compute units are busy, by counts alone: two SIMDs of 32 lanes, a matrix instruction in
{wmma} cycles, 128 bytes of shared memory and a cache line of 128 bytes a cycle. A SIMD
executes vector or matrix instructions. No time follows: latencies, misses and clocks
are unknown.

**waves**: of a SIMD, by registers and shared memory. **rounds**: workgroups by those
that fit into the chip. **idle**: cycles of shared memory that conflicts add (32 banks;
16 lanes at a time of 8 bytes: an assumption). **x least**: lines by those that the
bytes would fill side by side.

Other chips: [what their compilers report](driver-compile-matrix.md).
"""
COLUMNS = (
    "kernel",
    "waves",
    "rounds",
    "vector",
    "matrix",
    "shared",
    "idle",
    "lines",
    "x least",
)


@dataclass(frozen=True)
class Unit:
    """Compute units of a chip. Sources: AMD's ISA documents and product pages; "WMMA on
    RDNA3" and "Matrix Cores of RDNA4" of AMD GPUOpen."""

    name: str
    units: int
    registers: int  # of a SIMD's lane
    wmma: int  # cycles of 16 x 16 x 16

    def waves(self, d: dict) -> int:
        """The waves that a SIMD holds when a dispatch fills the chip."""
        step = self.registers // 64  # in which registers of a wave32 are allocated
        taken = d["registers"] * d["lanes"] // 32
        fit = min(16, self.registers // (-(-taken // step) * step))
        group = -(-d["threads"] // d["lanes"])
        groups = max(1, fit * 2 // group)
        if d["shared bytes"]:
            groups = min(groups, 65536 // d["shared bytes"])
        return groups * group / 2

    def rounds(self, d: dict) -> float:
        group = -(-d["threads"] // d["lanes"])
        return d["groups"] * group / (self.waves(d) * 2 * self.units)


CHIPS = {
    "navi31": Unit("RX 7900 XTX", 96, 1536, 32),
    "gfx1151": Unit("Radeon 8060S", 40, 1536, 32),
    "gfx1201": Unit("RX 9070 XT", 64, 1536, 16),
}


def count(d: dict, *kinds: str, of: str = "count") -> int:
    return sum(d[kind][of] for kind in kinds if kind in d)


def row_of(event: dict, d: dict, chip: Unit) -> dict:
    memory = ("load", "store")
    size = d["lanes"] / 32
    vector = size * (count(d, "vector", "product") + 4 * count(d, "math")) / 2
    conflicts = count(d, "shared", of="conflicts")
    shared = max(count(d, "shared"), count(d, "shared", of="bytes") / 128)
    lines, packed = (count(d, *memory, of=of) for of in ("lines", "least"))
    matrices = count(d, "matrix")
    return {
        "kernel": short(event["name"]),
        "waves": f"{chip.waves(d):.0f}",
        "rounds": f"{chip.rounds(d):.1f}",
        "instructions": thousands(
            sum(v["count"] for v in d.values() if isinstance(v, dict))
        ),
        "vector": thousands(vector),
        "matrix": thousands(matrices * chip.wmma / 2),
        "shared": thousands(shared + conflicts),
        "idle": thousands(conflicts),
        "lines": thousands(lines),
        "x least": f"{lines / max(packed, 1):.1f}",
    }


def thousands(value: float) -> str:
    return f"{value / 1000:,.0f}"


def short(kernel: str) -> str:
    """The kernel's file and its tile."""
    file, _, rest = kernel.partition("{")
    shown = ("ROWS", "OUTS", "BM", "BN", "WN", "WG")
    fields = dict(f.split("=", 1) for f in rest.rstrip("}").split() if "=" in f)
    return ",".join([file[:24], *(f"{n}{fields[n]}" for n in shown if n in fields)])


def execute(name: str, folder: Path) -> list[tuple[str, list]]:
    """Runs the cases; for each its kernels' events of the profile, with counts."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    trace, cases = folder / "trace.json", folder / "cases.json"
    env = {**os.environ, "RDNA_COUNTS": str(folder), "MLX_VK_PROFILE": str(trace)}
    env["MLX_VK_KERNEL_PATH"] = str(ROOT / "src" / "kernels")
    lab = [sys.executable, str(ROOT / "tools" / "driver_lab.py"), "run", "--execute"]
    command = [*lab, name, sys.executable, str(CASES), str(cases)]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"{name}: {done.stderr.strip()[-2000:]}")
    (file,) = folder.glob("dispatches-*")
    counted = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    counted = whole([d for d in counted if not d["internal"]])
    events = [
        event
        for event in json.loads(trace.read_text("utf-8"))["traceEvents"]
        if event.get("ph") == "X" and event["tid"] == 2 and event["name"] != "copy"
    ]
    events.sort(key=lambda event: event["ts"])
    check(name, events, counted)
    found: list[tuple[str, list]] = [("", [])]
    names = iter(json.loads(cases.read_text("utf-8")))
    for event, d in zip(events, counted):
        if MARK in event["name"]:
            found.append((next(names), []))
        else:
            found[-1][1].append((event, d))
    return found[1:]


def whole(counted: list[dict]) -> list[dict]:
    """Kernels that the backend dispatches in parts, as one."""
    found: list[dict] = []
    for d in counted:
        if not d.pop("continues"):
            found.append(d)
            continue
        first = found[-1]
        first["groups"] += d["groups"]
        for kind in (k for k, v in d.items() if isinstance(v, dict)):
            for name in d[kind]:
                first[kind][name] += d[kind][name]
    return found


def check(name: str, events: list[dict], counted: list[dict]) -> None:
    """The profile's kernels and the emulator's dispatches are the same: there are as
    many, and code that is the same has one name."""
    kernels: dict[str, str] = {}
    same = all(
        kernels.setdefault(d["hash"], event["name"]) == event["name"]
        for event, d in zip(events, counted)
    )
    if len(events) != len(counted) or not same:
        raise LabError(
            f"{name}: {len(events)} kernels of the profile are not the "
            f"{len(counted)} dispatches that the emulator counted"
        )


def section(name: str, cases: list[tuple[str, list]]) -> str:
    chip = CHIPS[name]
    lines = ["|".join(("|case", *COLUMNS, ""))]
    lines.append("|---|---|" + "---:|" * (len(COLUMNS) - 1))
    for case, kernels in cases:
        rows = [row_of(event, d, chip) for event, d in kernels]
        rows = [r for r in rows if int(r["instructions"].replace(",", "")) >= LEAST]
        for row in unique(rows):
            lines.append("|".join(("", case, *(row[c] for c in COLUMNS), "")))
            case = ""
    return f"## {name}: {chip.name}, {chip.units} units\n\n" + "\n".join(lines) + "\n"


def unique(rows: list[dict]) -> list[dict]:
    """Kernels that run several times, once."""
    return [row for i, row in enumerate(rows) if row not in rows[:i]]


def sections(text: str) -> dict[str, str]:
    """By chip."""
    parts = text.split("\n## ")
    return {part.partition(":")[0]: "## " + part.strip() + "\n" for part in parts[1:]}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("chips", nargs="*", choices=[*CHIPS, []], metavar="chip")
    args = parser.parse_args()
    made = {}
    try:
        setup()
        for name in args.chips or CHIPS:
            cases = execute(name, args.build.resolve() / "costs" / name)
            made[name] = section(name, cases)
            print(f"{name}: {sum(len(k) for _, k in cases)} dispatches", flush=True)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    if args.write and not args.chips:
        head = HEAD.format(wmma="32 (RDNA4: 16)")
        DOCUMENT.write_text(head + "\n" + "\n".join(made.values()), "utf-8")
        print(f"Wrote {DOCUMENT.relative_to(ROOT)}")
        return 0
    known = sections(DOCUMENT.read_text("utf-8"))
    changed = 0
    for name, text in made.items():
        before, after = known[name].splitlines(), text.splitlines()
        lines = [f"- {line}" for line in before if line not in after]
        lines += [f"+ {line}" for line in after if line not in before]
        changed += len(lines)
        print(
            *(f"{name} {line}" for line in lines), sep="\n", end="\n" if lines else ""
        )
    if changed:
        print("If that is meant, run tools/run_costs.py --write and commit the page.")
    print(f"{len(made)} passed, {changed} failed, 0 skipped")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
