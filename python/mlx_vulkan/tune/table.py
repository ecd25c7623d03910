"""What a device was tuned to: a table beside the kernel cache."""

import json
import math
import statistics
from pathlib import Path

from .. import native
from ..arguments import Failed
from ..layout import field, wrapped
from . import library

HASH = 16  # digits


def check_table(table) -> dict:
    """A table from a file. Throws Failed."""
    keys = {"class", "view", "plan", "sizes", "text", "kernel"}
    good = isinstance(table, dict) and isinstance(table.get("choices"), list)
    good = good and all(
        isinstance(c, dict)
        and keys <= c.keys()
        and isinstance(c["class"], str)
        and len(c["class"]) == len(c["plan"]) == HASH
        for c in table["choices"]
    )
    if not good:
        raise Failed("This is no table of `mlx-vulkan tune --export`.", 2)
    return table


def store(table: dict) -> None:
    if not library.store(table):
        cache = native.report()["cache"]
        why = cache["why_not"] or cache["why_not_stored"] or "the cache is off"
        raise Failed(f"The table cannot be written to {cache['path']!r}: {why}.")


def gains(table: dict) -> list[tuple[str, float]]:
    return [(cell["name"], cell["gain"]) for cell in table.get("cells", ())]


def mean_gain(table: dict) -> float:
    """Of the cells that changed: the geometric mean."""
    logs = [math.log(gain) for _, gain in gains(table) if gain > 0]
    return math.exp(statistics.fmean(logs)) if logs else 1.0


def summary(table: dict | None, disabled: bool) -> str:
    """Whether, when and with what gain a device was tuned, in a sentence."""
    if not table or not table.get("choices"):
        return "no: `mlx-vulkan tune MODEL` may make models faster"
    text = (
        f"on {table.get('when', '?')} with {table.get('model', '?')}: "
        f"{len(table['choices'])} kernels, steps {mean_gain(table):.2f} times as fast"
    )
    return text + ("; switched off by MLX_VK_DISABLE=tuned" if disabled else "")


def show(status: dict) -> int:
    field("device", status["device"])
    field("tuned", summary(status["table"], status["disabled"]))
    for choice in (status.get("table") or {}).get("choices", ()):
        print()
        print(wrapped(choice["text"], "  ", "      "))
        how = f"{choice['kernel']} ({choice['view']})"
        gain = f", steps {choice['gain']:.3f} times as fast" if "gain" in choice else ""
        print(wrapped(how + gain, "    ", "      "))
    return 0


def reset() -> int:
    store({"choices": []})
    print("Plans choose by default again.")
    return 0


def export(path: str) -> int:
    table = library.status()["table"]
    if not table or not table.get("choices"):
        raise Failed("This GPU was not tuned: there is nothing to export.")
    Path(path).write_text(json.dumps(table, indent=1) + "\n")
    print(f"{len(table['choices'])} choices for {table['device']}: {path}")
    return 0


def take(path: str) -> int:
    try:
        table = check_table(json.loads(Path(path).read_text()))
    except (OSError, ValueError) as error:
        raise Failed(f"{path} cannot be read: {error}", 2) from error
    mine = library.status()
    for name in ("device", "driver", "plans"):
        if table.get(name) != mine[name]:
            raise Failed(
                f"{path} is of another {name}: {table.get(name)}, and not "
                f"{mine[name]}. Run `mlx-vulkan tune` here instead."
            )
    store(table)
    print(f"{len(table['choices'])} choices are in force from now on.")
    return 0
