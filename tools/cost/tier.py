"""Runs driver_cost with a chip's compiler and estimates each dispatch."""

import json
import re
import subprocess
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from driver_lab import CHIPS, LabError, command_for

from . import model
from .chips import BF16, HARDWARE, SHARED_KIB, THREADS
from .isa import INSTRUCTIONS, PARSERS, Program

# Estimated by another chip's compiler: name -> chip, arguments of driver_cost.
PROXIES = {
    "h200": ("nvk", ["plans=NVIDIA H200", "type=f16", "group=128"]),
    "m2max": ("m1", ["plans=Apple M2 Max (G14C B1)"]),
    **{name: (chip, []) for name, chip in BF16.items()},
}
REGISTERS = ("VGPRs", "Max live registers", "GPRs", "Registers used", "Number of GPRs")
SCRATCH = ("Scratch size", "Spills", "STP Count", "Spills to memory")


@dataclass
class Row:
    """One dispatch of a model's step."""

    model: str
    part: str
    name: str
    kernel: str
    times: int
    groups: int
    workgroup: int
    subgroup: int
    bytes: float
    flops: float
    registers: int = 0
    shared: int = 0
    scratch: int = 0
    rounds: int = 0
    filled: float = 0
    resident: float = 0
    us: float = 0
    bandwidth: float = 0
    rate: float = 0
    bound: str = ""
    share: float = 0  # of a step that is products
    counts: dict[str, float] = field(default_factory=dict)  # a step's instructions
    why: str = ""


@dataclass
class Chip:
    name: str
    driver: str
    cores: int  # that plans count on
    rows: list[Row]
    seconds: float = 0


def first(statistics: dict, names: tuple[str, ...]) -> int:
    return next((int(statistics[n]) for n in names if n in statistics), 0)


def occupancy(chip: str, driver: str, statistics: dict, work: model.Work) -> float:
    """Subgroups of a SIMD that registers and shared memory leave room for."""
    core = HARDWARE[chip].core
    if driver == "RADV":
        return statistics["Subgroups per SIMD"]  # both
    if driver == "NVK":
        resident = statistics["Max warps/SM"] / core.simds
    elif driver == "Honeykrisp":
        resident = statistics["Threads"] / work.subgroup / core.simds
    elif driver == "Turnip":
        resident = statistics["Max Waves Per Core"] / core.simds
    else:
        resident = THREADS.get(chip, 8)
    groups = SHARED_KIB.get(driver, 64) * 1024 // max(statistics["shared"], 1)
    return min(resident, max(groups, 1) * work.subgroups / core.simds)


def row_of(case: dict, statistics: dict, program: Program, chip: str) -> Row:
    driver = CHIPS[PROXIES.get(chip, (chip,))[0]].driver
    work = model.Work(
        *(case["groups"], statistics["workgroup"], statistics["subgroup"]),
        *(case["bytes"], case["flops"], case["steps"], case["passes"]),
        *(case["slices"], case["lane_macs"]),
    )
    code = model.code_of(program, work)
    fits = occupancy(chip, driver, statistics, work)
    found = model.estimate(work, code, HARDWARE[chip], fits)
    counts = code.step if code.step else code.once
    return Row(
        *(case["model"], case["part"], case["name"], case["kernel"]),
        *(case["times"], work.groups, work.workgroup, work.subgroup),
        *(work.bytes, work.flops),
        registers=first(statistics, REGISTERS),
        shared=statistics["shared"],
        scratch=first(statistics, SCRATCH),
        rounds=found.rounds,
        filled=found.filled,
        resident=found.resident,
        us=found.us,
        bandwidth=found.bandwidth,
        rate=found.rate,
        bound=found.bound,
        share=found.matrix_share,
        counts={k: round(counts[k], 1) for k in INSTRUCTIONS if counts[k]},
        why=case["why"],
    )


def read(text: str, chip: str) -> Chip:
    """What driver_cost wrote: texts that a driver prints stand before the line of
    their kernel."""
    driver = CHIPS[PROXIES.get(chip, (chip,))[0]].driver
    name, parse = PARSERS[driver]
    result = Chip(chip, "", 0, [])
    programs: dict[str, tuple[dict, Program]] = {}
    printed: list[str] = []
    failed: Counter = Counter()
    for line in text.splitlines():
        if not line.startswith('{"'):
            printed.append(line)
            continue
        found = json.loads(line)
        if "device" in found:
            result.driver, result.cores = found["driver"], found["cores"]
        elif "failed" in found:
            failed[f"{found['compiled']}: {found['failed']}"] += 1
        elif "compiled" in found:
            # Where there are several, the last is that of the widest subgroups.
            statistics = found["executables"][-1]
            texts = {"printed": "\n".join(printed)} | statistics.pop("texts")
            lanes = [statistics["subgroup"]] if driver == "ANV" else []
            programs[found["compiled"]] = (statistics, parse(texts[name], *lanes))
            printed = []
        elif found["kernel"] in programs:
            result.rows.append(row_of(found, *programs[found["kernel"]], chip))
    if failed:
        raise LabError(f"{chip}: not compiled:\n  " + "\n  ".join(failed))
    return result


def run(chip: str, build: Path, *options: str) -> Chip:
    compiler, more = PROXIES.get(chip, (chip, []))
    program = [str(build / "driver_cost"), *more, *options]
    command, env = command_for(CHIPS[compiler], program)
    env |= {"MLX_VK_CACHE": str(build / "drivers" / "spirv")}
    env |= {"AGX_MESA_DEBUG": "shaders"}
    env |= {"RADV_EXPERIMENTAL": "bfloat16"} if chip in BF16 else {}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if done.returncode:
        why = done.stderr.strip()[-500:] or f"exit code {done.returncode}"
        raise LabError(f"{chip}: driver_cost failed: {why}")
    return read(done.stdout, chip)


def store(chip: Chip, build: Path) -> None:
    path = build / "drivers" / f"{chip.name}-costs.json"
    path.write_text(json.dumps(asdict(chip)), "utf-8")


def short_kernel(name: str) -> str:
    """File and tile of a kernel, without its types and formats."""
    file, _, rest = name.partition("{")
    tile = re.findall(
        r"\b(BM|BN|BK|WM|WN|WK|TM|TN|FM|FN|FX|ROWS|OUTS|CHUNK|TURNS|BLOCK|KU|TPK|"
        r"BQ|NORM|HALVES|PARTS)=(\d+)",
        rest,
    )
    return f"{file} " + " ".join(f"{n}{v}" for n, v in tile if v != "0")
