"""Compile what plans choose on each vendor's chips with its own driver.

    run_drivers.py                     every chip, for docs/dev/driver-compile-matrix.md
    run_drivers.py navi31 dg2          some
    run_drivers.py --system-radv navi21    by the RADV that is installed

For each chip the variants that plans choose from what its driver reports must
compile, fit the device's limits, and no kernel of a decode step may spill
registers. tests/drivers/expected.toml lists what does so nevertheless, and why;
an entry that no longer applies fails too, and so does a chip that
tests/variants/devices.cpp describes wrongly. Needs no GPU (driver_lab.py).
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import tomllib
from driver_lab import CHIPS, ROOT, Chip, LabError, command_for, setup

EXPECTED = ROOT / "tests" / "drivers" / "expected.toml"
DOCUMENT = ROOT / "docs" / "dev" / "driver-compile-matrix.md"
# The amdgpu shim crashes after some 800 pipelines.
PIPELINES = 300

# What a decode step runs once a token: a spill there costs on each. No model is of
# float64.
DECODE = re.compile(
    r"(?!.*=f64)"
    r"(quant/(q[mv]v|qmv_fused)|attention/(decode|merge)|gemm/gemv(_axpy)?|norm|rope"
    r"|copy|copy_flat|unary|binary|ternary|softmax){|gated_delta{.*LANES=32"
)

# The statistics of each driver: those that say that registers were spilled, and
# those that the list of a run shows.
SPILLS = {
    "RADV": ("Spilled SGPRs", "Spilled VGPRs", "Scratch size"),
    "ANV": ("Spills",),
    "Honeykrisp": ("Spills",),
    "Turnip": ("STP Count",),
    "NVK": ("Spills to memory",),
}
SHOWN = {
    "RADV": ("SGPRs", "VGPRs", "Subgroups per SIMD", "LDS size"),
    "ANV": ("subgroup", "Max live registers", "Workgroup Memory Size"),
    "Honeykrisp": ("GPRs", "Threads"),
    "Turnip": ("subgroup", "Registers used", "Max Waves Per Core"),
    "NVK": ("Number of GPRs", "Max warps/SM"),
}


@dataclass
class Variant:
    name: str
    failed: str = ""
    executables: list[dict] = field(default_factory=list)

    def spills(self, driver: str) -> int:
        """Of the executable that spills most; a driver must report them."""
        return max(
            sum(e[key] for key in SPILLS[driver] if key in e) for e in self.executables
        )

    def reports(self, driver: str) -> bool:
        return bool(self.executables) and all(
            any(key in e for key in SPILLS[driver]) for e in self.executables
        )


@dataclass
class Report:
    """One chip's run."""

    chip: str
    driver: str
    device: dict
    variants: list[Variant]
    failures: list[str] = field(default_factory=list)
    explained: dict[str, int] = field(default_factory=dict)  # by reason
    seconds: float = 0

    @property
    def decode(self) -> list[Variant]:
        return [v for v in self.variants if DECODE.match(v.name)]

    def spilling(self, variants: list[Variant]) -> list[Variant]:
        return [v for v in variants if not v.failed and v.spills(self.driver)]


def run_program(
    chip: Chip, words: list[str], build: Path
) -> subprocess.CompletedProcess:
    program = [str(build / "driver_compile"), *words]
    if chip.shim:
        command, env = command_for(chip, program)
    else:
        command, env = program, {**os.environ, **chip.env}
    # SPIR-V is the same for most chips.
    env["MLX_VK_CACHE"] = str(build / "drivers" / "spirv")
    return subprocess.run(command, env=env, capture_output=True, text=True)


def objects(text: str) -> list[dict]:
    """The shims write messages of their own to stdout."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def compile_all(chip: Chip, names: list[str], build: Path) -> list[Variant]:
    """Every variant, by processes of PIPELINES each. One at which the driver
    crashes fails, and the rest go on in another process."""
    done: dict[str, Variant] = {}
    while left := [i for i, name in enumerate(names) if name not in done]:
        words = ["compile", *map(str, left[:PIPELINES])]
        result = run_program(chip, words, build)
        got = [Variant(**line) for line in objects(result.stdout)]
        crash = re.search(r"^The driver crashed.* at (.+{.*})$", result.stderr, re.M)
        if crash and crash[1] not in done:
            got.append(Variant(crash[1], failed=crash[0]))
        elif result.returncode and not got:
            why = (result.stderr.strip() or f"exit code {result.returncode}")[-300:]
            got = [Variant(names[i], failed=why) for i in left]
        done |= {v.name: v for v in got}
    return [done[name] for name in names]


def expected_for(chip: str, driver: str) -> list[dict]:
    """Entries for a chip, and for the driver's version where they name one."""
    entries = tomllib.loads(EXPECTED.read_text("utf-8")).get("expected", [])
    return [e for e in entries if chip in e["chips"] and e.get("driver", "") in driver]


def judge(report: Report) -> None:
    entries = expected_for(report.chip, report.device["driver"])
    used = [0] * len(entries)
    report.failures += [
        f"the row of tests/variants/devices.cpp differs: {what}"
        for what in report.device["differs"]
    ]
    for feature in report.device["missing"]:
        report.failures.append(f"the device lacks {feature}")

    def explained(variant: Variant, what: str) -> bool:
        for i, entry in enumerate(entries):
            parts = entry["variant"].split()
            # Beginning of the name, then whole parts of it.
            matches = variant.name.startswith(parts[0] + "{") and set(parts[1:]) <= set(
                re.split(r"[{} ]", variant.name)
            )
            if entry["what"] == what and matches:
                used[i] += 1
                reason = entry["reason"]
                report.explained[reason] = report.explained.get(reason, 0) + 1
                return True
        return False

    for v in report.variants:
        if v.failed:
            if not explained(v, "fail"):
                report.failures.append(f"{v.name}: {v.failed}")
        elif not v.reports(report.driver):
            report.failures.append(f"{v.name}: the driver reports no spills")
        elif DECODE.match(v.name) and v.spills(report.driver):
            if not explained(v, "spill"):
                report.failures.append(
                    f"{v.name}: a decode kernel spills ({v.spills(report.driver)})"
                )
    for entry, count in zip(entries, used):
        if not count:
            report.failures.append(
                f"{EXPECTED.name}: {entry['variant']} ({entry['what']}) no longer "
                "applies; remove the chip from it"
            )


def write_list(report: Report, build: Path) -> Path:
    """A line a variant."""
    path = build / "drivers" / f"{report.chip}.txt"
    with open(path, "w", encoding="utf-8") as file:
        for v in report.variants:
            texts = [
                ", ".join(
                    f"{key} {e[key]}"
                    for key in SHOWN[report.driver] + SPILLS[report.driver]
                    if key in e
                )
                for e in v.executables
            ]
            print(f"{v.name}: {v.failed or '; '.join(texts)}", file=file)
    return path


def stored(name: str, build: Path) -> Report | None:
    """A chip's last run, if it was by the driver_compile that is built."""
    path = build / "drivers" / f"{name}.json"
    program = build / "driver_compile"
    if not path.exists() or path.stat().st_mtime < program.stat().st_mtime:
        return None
    found = json.loads(path.read_text("utf-8"))
    found["variants"] = [Variant(**v) for v in found["variants"]]
    return Report(**found)


def run_chip(name: str, chip: Chip, build: Path) -> Report:
    started = time.time()
    result = run_program(chip, ["snapshot"], build)
    found = objects(result.stdout)
    if result.returncode or not found:
        raise LabError(
            f"{name}: {chip.driver} offers no device: "
            + (result.stderr.strip()[-500:] or f"exit code {result.returncode}")
        )
    device = found[0]
    if not chip.shim:  # null devices lack what the real chips' rows say
        device["differs"] = []
    variants = compile_all(chip, device["variants"], build)
    report = Report(name, chip.driver, device, variants)
    report.seconds = time.time() - started
    path = build / "drivers" / f"{name}.json"
    path.write_text(json.dumps(asdict(report)), "utf-8")
    return report


def say(report: Report, path: Path) -> None:
    decode = report.decode
    print(
        f"{report.chip}: {report.device['name'].strip()}, {report.device['driver']}: "
        f"{len(report.variants)} variants, {len(decode)} of them decode; spilling "
        f"{len(report.spilling(report.variants))}, "
        f"{len(report.spilling(decode))} of them decode; "
        f"{len(report.failures)} failures; {report.seconds:.0f} s; {path}"
    )
    for failure in report.failures:
        print(f"  FAILED {failure}")
    for reason, count in report.explained.items():
        print(f"  expected, {count} variants: {reason}")
    sys.stdout.flush()


def subgroups(report: Report) -> str:
    low, high = report.device["min_subgroup"], report.device["max_subgroup"]
    return str(low) if low == high else f"{low}–{high}"


def path_taken(report: Report) -> str:
    used = report.device["used"]
    by_half = ", bf16 by f16" if report.device["halves"] else ""
    return f"matrices{by_half}" if used else "scalar"


def missing(report: Report) -> str:
    d = report.device
    lacks = [
        text
        for has, text in (
            (d["float16"], "float16 arithmetic"),
            (d["bfloat16"], "bfloat16"),
            (d["used"] or not d["matrices"], "use of matrices"),
        )
        if not has
    ]
    return ", ".join(lacks) or "nothing"


def narrow(report: Report) -> str:
    """How many variants run in subgroups of 8."""
    if report.device["min_subgroup"] > 8:
        return "–"
    return str(
        sum(any(e["subgroup"] == 8 for e in v.executables) for v in report.variants)
    )


def table(rows: list[list[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


HEAD = """# The compile matrix

Written by `make test-drivers`; do not edit. For each chip the kernels that
plans choose are compiled with the chip's own driver, without its hardware
(`tools/driver_lab.py`). **The project has not run on any of these chips.** A compiler
cannot show whether timing, memory and the driver's kernel side work.

"""
COLUMNS = """
- *decode*: variants that run for every token.
- *spill*: variants whose registers spill; of decode kernels, of others.
- *SIMD8*: variants that Intel's compiler can only compile for 8 lanes.
- *registers*, *values*, *lanes* and, except on AMD and NVIDIA, *cores* come from
  `src/policy`: 32-bit registers per lane, values that a decode kernel keeps
  in them, the subgroup size that plans expect, compute units.
"""


def document(reports: list[Report]) -> str:
    compiled = [
        [
            "chip",
            "driver",
            "variants",
            "decode",
            "spill",
            "SIMD8",
            "products",
        ]
    ]
    devices = [
        ["chip", "subgroups", "shared KiB", "cores", "registers", "values", "lanes"]
        + ["matrices offered", "missing"]
    ]
    for r in reports:
        decode, d = r.decode, r.device
        spilling = len(r.spilling(decode))
        others = len(r.spilling(r.variants)) - spilling
        compiled.append(
            [r.chip, r.driver, str(len(r.variants)), str(len(decode))]
            + [f"{spilling}, {others}", narrow(r), path_taken(r)]
        )
        devices.append(
            [r.chip, subgroups(r), f"{d['shared_memory'] // 1024}"]
            + [str(d["core_count"]), str(d["registers"]), str(d["held_values"])]
            + [str(d["lanes"]), ", ".join(d["matrices"]) or "none", missing(r)]
        )
    version = re.search(r"Mesa \d+\.\d+\.\d+", reports[0].device["driver"])
    text = HEAD + f"## What {version[0] if version else 'Mesa'} makes of it\n\n"
    text += table(compiled) + COLUMNS + "\n" + table(devices)
    reasons = {
        reason: [r.chip for r in reports if reason in r.explained]
        for r in reports
        for reason in r.explained
    }
    text += "\n## Expected failures\n\nFrom `tests/drivers/expected.toml`.\n\n"
    for reason, chips in reasons.items():
        text += f"- {', '.join(chips)}: {reason}\n"
    return text if reasons else text + "None.\n"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument(
        "--system-radv",
        metavar="FAMILY",
        help="the installed RADV's null device of this family",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="take the results of chips that ran since driver_compile was built",
    )
    parser.add_argument("chips", nargs="*", choices=[*CHIPS, []], metavar="chip")
    args = parser.parse_args()
    build = args.build.resolve()
    (build / "drivers").mkdir(parents=True, exist_ok=True)
    if args.system_radv:
        env = {"RADV_FORCE_FAMILY": args.system_radv}
        chips = {f"system-{args.system_radv}": Chip("RADV", "", "", env)}
    else:
        chips = {name: CHIPS[name] for name in args.chips or CHIPS}
    reports = []
    try:
        if not args.system_radv:
            setup()
        for name, chip in chips.items():
            report = stored(name, build) if args.keep else None
            reports.append(report or run_chip(name, chip, build))
            judge(reports[-1])
            say(reports[-1], write_list(reports[-1], build))
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    failed = sum(len(r.failures) for r in reports)
    skipped = sum(sum(r.explained.values()) for r in reports)
    passed = max(sum(len(r.variants) for r in reports) - failed - skipped, 0)
    if not failed and len(reports) == len(CHIPS):
        DOCUMENT.write_text(document(reports), "utf-8")
        print(f"Wrote {DOCUMENT.relative_to(ROOT)}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped ({skipped} expected)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
