"""Writes what `mlx-vulkan report` compares an owner's kernels with."""

import json
import sys
from collections import defaultdict
from pathlib import Path

from .chips import BF16, HARDWARE
from .tier import Chip, Row

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from mlx_vulkan.report.kernels import short  # noqa: E402
from mlx_vulkan.report.predictions import FILE, PARTS  # noqa: E402

# The H200's are another driver's code.
LEFT_OUT = {"h200"}


def fractions(rows: list[Row]) -> dict[str, float]:
    """By kernel, of the limit that it is closer to."""
    us: dict[str, float] = defaultdict(float)
    memory, rate = us.copy(), us.copy()
    for row in rows:
        name = short(row.kernel)
        us[name] += row.times * row.us
        memory[name] += row.times * row.us * row.bandwidth
        rate[name] += row.times * row.us * row.rate
    return {k: round(max(memory[k], rate[k]) / us[k], 2) for k in us}


def of_chip(chip: Chip) -> dict:
    hardware = HARDWARE[BF16.get(chip.name, chip.name)]
    rows = [row for row in chip.rows if row.model == "0.6B"]
    return {
        "name": hardware.name,
        "gb_s": hardware.gb_s,
        "tflops": round(hardware.tflops, 1),
        "phases": {
            phase: fractions([row for row in rows if row.part in parts])
            for phase, parts in PARTS.items()
        },
    }


def text(chips: list[Chip]) -> str:
    kept = {c.name: of_chip(c) for c in chips if c.name not in LEFT_OUT}
    return json.dumps(kept, indent=1) + "\n"


def write(chips: list[Chip]) -> Path:
    FILE.write_text(text(chips), "utf-8")
    return FILE
