"""Estimate what a model's kernels take on chips without their hardware.

    run_costs.py                  every chip; compare with tests/drivers/costs.txt
    run_costs.py navi31 m1        some
    run_costs.py --write          every chip; write what is compared, the page, the
                                  plot, and what `mlx-vulkan report` expects

For each dispatch of a decoded token and of prompts of Qwen3's 0.6B, 8B and 30B-A3B:
the plan, its compiled code and an estimate (tools/cost/model.py). All dispatches of a
chip go to build/drivers/<chip>-costs.txt. Needs the drivers of `make test-drivers`.
"""

import argparse
import sys
import time
from pathlib import Path

from cost import predictions, report, tier, validate
from cost.chips import HARDWARE
from driver_lab import CHIPS, ROOT, LabError, setup

EXPECTED = ROOT / "tests" / "drivers" / "costs.txt"
DOCUMENT = ROOT / "docs" / "dev" / "driver-costs.md"
PLOT = DOCUMENT.with_suffix(".svg")

HEAD = """# Costs of kernels

Written by `tools/run_costs.py --write`; do not edit. Qwen3's kernels (4 bits, groups of
64, bf16) by each chip's driver (`_bf16`: with `RADV_EXPERIMENTAL=bfloat16`); a model of
the chip (`tools/cost/model.py`) makes times of the main loop's instructions. Tokens: %
of the memory's bandwidth; prompts: % of the products' limit. The model knows no stalls;
**only the H200 was measured**, whose code is NVK's (f16, groups of 128). M2 Max's is
M1's: the shim knows no other.

Memory limits prompts of 16 rows (to 44 % on navi31, 25 on gfx1151, 19 on gfx1201, 24 on
bmg) and sorted experts on gfx1151, gfx1200 and gfx1201.

![Costs of kernels](driver-costs.svg)

"""


def available() -> list[str]:
    """Chips that the lab has and the model has constants for."""
    return [
        name
        for name in HARDWARE
        if name in CHIPS or tier.PROXIES.get(name, ("",))[0] in CHIPS
    ]


def run_chip(name: str, build: Path) -> tier.Chip:
    started = time.time()
    chip = tier.run(name, build)
    chip.seconds = time.time() - started
    tier.store(chip, build)
    path = build / "drivers" / f"{name}-costs.txt"
    path.write_text("\n".join(report.listing(chip.rows)) + "\n", "utf-8")
    spilling = sorted({r.kernel for r in chip.rows if r.scratch})
    print(
        f"{name}: {HARDWARE[name].name}, {len(chip.rows)} dispatches, "
        f"{len(spilling)} kernels with scratch; {chip.seconds:.0f} s; {path}"
    )
    for kernel in spilling:
        print(f"  scratch: {tier.short_kernel(kernel)}")
    sys.stdout.flush()
    return chip


def write(chips: list[tier.Chip], build: Path) -> None:
    EXPECTED.write_text(report.kept(chips), "utf-8")
    text = HEAD + report.fractions(chips) + "\n"
    text += validate.summary(validate.predict(build))
    (h200,) = (c for c in chips if c.name == "h200")
    text += f"\nIts tokens/s (mlx-lm's): {report.published(h200, ROOT)}.\n"
    DOCUMENT.write_text(text, "utf-8")
    report.plot(chips, PLOT)
    made = (EXPECTED, DOCUMENT, PLOT, validate.PREDICTED, predictions.write(chips))
    for path in made:
        print(f"Wrote {path.relative_to(ROOT)}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("chips", nargs="*", choices=[*HARDWARE, []], metavar="chip")
    args = parser.parse_args()
    build = args.build.resolve()
    (build / "drivers").mkdir(parents=True, exist_ok=True)
    try:
        setup()
        chips = [run_chip(name, build) for name in args.chips or available()]
        if args.write and not args.chips:
            write(chips, build)
            return 0
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    changed = report.differences(EXPECTED.read_text("utf-8"), report.kept(chips))
    for line in changed:
        print(line)
    if changed:
        print(
            "Plans, kernels or the model have changed; if that is meant, run "
            "tools/run_costs.py --write and commit what it writes."
        )
    rows = sum(len(c.rows) for c in chips)
    print(f"{rows} passed, {len(changed)} failed, 0 skipped")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
