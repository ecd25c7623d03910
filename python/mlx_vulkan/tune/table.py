"""What a device was tuned to: a table beside the kernel cache."""

import json
import math
import statistics
from pathlib import Path

from .. import native
from ..arguments import Failed
from ..layout import field, wrapped
from . import library


def check_table(table) -> dict:
    """A table from a file. Throws Failed."""
    texts = ("problem", "variant", "kernel")
    try:
        for choice in table["choices"]:
            good = all(isinstance(choice[name], str) for name in texts)
            good &= isinstance(choice.get("gain", 1.0), float)
            if not good:
                raise ValueError
        mean_gain(table)
    except (KeyError, TypeError, ValueError) as error:
        raise Failed("This is no table of `mlx-vulkan tune --export`.", 2) from error
    return table


def store(table: dict) -> None:
    if not library.store(table):
        cache = native.report()["cache"]
        why = cache["why_not"] or cache["why_not_stored"] or "the cache is off"
        raise Failed(f"The table cannot be written to {cache['path']!r}: {why}.")


def mean_gain(table: dict) -> float:
    """Of the cells that changed: the geometric mean."""
    cells = [c for c in table.get("cells", ()) if not c.get("given_up")]
    logs = [math.log(cell["gain"]) for cell in cells]
    return math.exp(statistics.fmean(logs)) if logs else 1.0


def is_own(table: dict | None) -> bool:
    """Whether it is a user's table: a reset one has no choices."""
    return bool(table) and "choices" in table


def summary(status: dict) -> str:
    """Whether, when and with what gain a device was tuned, in a sentence."""
    table, rows = status["table"], status["rows"]
    if is_own(table):
        count, gain = len(table["choices"]), mean_gain(table)
        many = f"{count} kernels, steps {gain:.2f} times as fast"
        when, model = table.get("when", "?"), table.get("model", "?")
        text = f"on {when} with {model}: {many if count else 'nothing'}"
    elif rows:
        text = f"by default, on another GPU of this chip: {len(rows)} kernels"
    else:
        return "no: `mlx-vulkan tune MODEL` may make models faster"
    off = "; switched off by MLX_VK_DISABLE=tuned"
    return text + (off if status["disabled"] else "")


def choices_of(status: dict) -> list[dict]:
    """Those in force: the user's, or those of the chip's rows."""
    table = status["table"]
    return table["choices"] if is_own(table) else status["rows"]


def show(status: dict) -> int:
    field("device", status["device"])
    field("tuned", summary(status))
    for choice in choices_of(status):
        print()
        print(wrapped(choice["problem"], "  ", "      "))
        how = f"{choice['kernel']} ({choice['variant']})"
        gain = f", steps {choice['gain']:.3f} times as fast" if "gain" in choice else ""
        print(wrapped(how + gain, "    ", "      "))
    return 0


def reset() -> int:
    store({})
    print("Plans choose by default again.")
    return 0


def export(path: str) -> int:
    mine = library.status()
    table = mine["table"]
    if not table or not table.get("choices"):
        raise Failed("This GPU was not tuned: there is nothing to export.")
    table |= {"class": mine["class"]}
    table.pop("uuid", None)  # nobody's business
    for cell in table.get("cells", ()):  # readers of a row need the gain alone
        for name in ("before", "after", "interval"):
            cell.pop(name, None)
    Path(path).write_text(json.dumps(table, indent=1) + "\n")
    print(f"{len(table['choices'])} choices for {table['device']}: {path}")
    return 0


def take(path: str) -> int:
    try:
        table = check_table(json.loads(Path(path).read_text()))
    except (OSError, ValueError) as error:
        raise Failed(f"{path} cannot be read: {error}", 2) from error
    mine = library.status()
    for name in ("device", "driver"):
        if table.get(name) != mine[name]:
            raise Failed(
                f"{path} is of another {name}: {table.get(name)}, and not "
                f"{mine[name]}. Run `mlx-vulkan tune` here instead."
            )
    store(table)
    print(f"{len(table['choices'])} choices are in force from now on.")
    return 0
