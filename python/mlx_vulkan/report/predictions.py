"""The cost model's (tools/cost) expectations of a chip's kernels.

predictions.json is written by `tools/run_costs.py --write`: for each chip its limits
and, for phases of a prompt or a token, the fraction of them that each kernel reaches.
"""

import functools
import json
import os
import re
from pathlib import Path

SHAPE = "qwen3-0.6b"
FILE = Path(__file__).with_name("predictions.json")
# Parts of the model's cases, by the phase that they are compared with.
PARTS = {
    "decode": ("decode", "decode after 1024"),
    "prompt 128": ("prompt of 128",),
    "prompt 512": ("prompt of 512",),
}

# Names of devices as Mesa gives them, and the chip of tools/cost/chips.py that stands
# for its family. The first that matches holds.
FAMILIES = (
    (r"RADV (POLARIS1\d|VEGAM)", "polaris10"),
    (r"RADV VEGA", "vega10"),
    (r"RADV (VANGOGH|REMBRANDT|RAPHAEL_MENDOCINO)", "vangogh"),
    (r"RADV NAVI2\d", "navi21"),
    (r"RADV NAVI3[12]", "navi31"),
    (r"RADV NAVI33", "navi33"),
    (r"RADV (PHOENIX|HAWK_POINT)", "phoenix"),
    (r"RADV (STRIX1|GFX1150|KRACKAN1|GFX1152)", "strix1"),
    (r"RADV (STRIX_HALO|GFX1151)", "gfx1151"),
    (r"RADV (NAVI44|GFX1200)", "gfx1200"),
    (r"RADV (NAVI48|GFX1201)", "gfx1201"),
    (r"\bTGL\b|\bADL\b|\bRPL\b", "tgl"),
    (r"\bDG2\b|Arc.* A\d{3}", "dg2"),
    (r"\bLNL\b", "lnl"),
    (r"Arc.* B570", "b570"),
    (r"\bBMG\b|Arc.* B580", "bmg"),
    (r"\bPTL\b", "ptl"),
    (r"Apple M1\b", "m1"),
    (r"Apple M2 Max", "m2max"),
    (r"Adreno.* 740", "a740"),
)

# Suffixes that make the name of a product that of another product.
OTHERS = "XT|XTX|GRE|Pro|Max|Ultra"


@functools.cache
def known() -> dict:
    return json.loads(FILE.read_text("utf-8"))


def find(device: str) -> dict | None:
    """The predictions for a device's chip. `product`: whether it is the very product
    whose limits these are."""
    for pattern, name in FAMILIES:
        if re.search(pattern, device):
            bf16 = f"{name}_bf16"
            name = bf16 if bf16 in known() and shows_bf16() else name
            chip = known()[name]
            bare = re.sub(r"\((R|TM)\)", "", device, flags=re.IGNORECASE)
            words = rf"\b{re.escape(chip['name'])}\b(?! ({OTHERS})\b)"
            same = re.search(words, " ".join(bare.split()))
            return chip | {"chip": name, "product": bool(same)}
    return None


def shows_bf16() -> bool:
    return "bfloat16" in os.environ.get("RADV_EXPERIMENTAL", "")


def compare(phase: dict, chip: dict) -> None:
    """Adds what was predicted to the kernels of a phase."""
    name = "decode" if phase["name"].startswith("decode") else phase["name"]
    expected = chip["phases"].get(name, {})
    phase["predicted_for"] = chip["name"]
    for row in phase["kernels"]:
        if row["kernel"] in expected:
            row["predicted"] = expected[row["kernel"]]
        elif row["rule"]:
            family = row["kernel"].partition("/")[0]
            row["not_predicted"] = [k for k in expected if k.startswith(family)]
