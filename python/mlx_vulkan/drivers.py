"""Versions of drivers that are known to be broken, and what to do about it.

`known_drivers.json` is a list of objects. `drivers` holds names of VkDriverId
without the prefix; `devices`, a regular expression that the device's name has to
match, is optional; so are `since` (included) and `before` (excluded), versions as
the driver says them. `breaks`, `repair` and `source` (a public report) are for
the reader. With `grade: note` it is something to know of, else a warning.
"""

import functools
import json
import re
from pathlib import Path

from .layout import field

FILE = Path(__file__).with_name("known_drivers.json")
MESA = re.compile(r"\bMesa (\d+(?:\.\d+)*)")
OTHER = re.compile(r"(?<![\w.])(\d+(?:\.\d+)+)(?![\w.])")


@functools.cache
def known() -> list[dict]:
    return json.loads(FILE.read_text(encoding="utf-8"))


def version(text: str) -> tuple[int, ...]:
    """The version in a driver's own words, as numbers; empty if there is none.

    "radv Mesa 26.1.6-1" is (26, 1, 6), "NVIDIA 580.159.04" (580, 159, 4).
    """
    found = MESA.search(text) or OTHER.search(text)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def affects(entry: dict, device: dict) -> bool:
    """Whether `entry` applies to a device as mlx_vulkan.native reports it.

    A version that cannot be read is in no range.
    """
    if device.get("driver_id") not in entry["drivers"]:
        return False
    if not re.search(entry.get("devices", ""), device.get("name", "")):
        return False
    if "since" not in entry and "before" not in entry:
        return True
    mine = version(device.get("driver", ""))
    since, before = (version(entry.get(key, "")) for key in ("since", "before"))
    return bool(mine) and since <= mine and (not before or mine < before)


def warnings(device: dict) -> list[dict]:
    """The entries that a device is affected by."""
    return [entry for entry in known() if affects(entry, device)]


def show(device: dict) -> None:
    for entry in warnings(device):
        word = "note" if entry.get("grade") == "note" else "KNOWN BUG"
        field(word, f"{entry['breaks']}; {entry['repair']} ({entry['source']})", 7)
