"""The results of a benchmark: as a table, as JSON, as pictures, as one line."""

import datetime
import json
import math
import os
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .. import __version__, arguments, native
from ..arguments import Failed
from ..layout import WIDTH

# Units, and whether less is better.
UNITS = {
    "us": True,
    "ms": True,
    "s": True,
    "count": True,
    "GB": True,
    "tokens/s": False,
}
# Units to show a value in, and how many of the first one each is.
TIMES = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}
RATES = {"kFLOP/s": 1e-9, "MFLOP/s": 1e-6, "GFLOP/s": 1e-3, "TFLOP/s": 1}
SIZES = {"kB": 1e-6, "MB": 1e-3, "GB": 1}
BANDWIDTHS = {"MB/s": 1e-3, "GB/s": 1, "TB/s": 1e3}
SCALES = {"us": TIMES, "GB": SIZES, "TFLOP/s": RATES, "GB/s": BANDWIDTHS}

# Names of a device's limits in JSON.
MEMORY, HALF, F32 = "memory GB/s", "16-bit TFLOP/s", "f32 TFLOP/s"
MEASURED = "measured"
OLD_LIMITS = {"copy GB/s": MEMORY, "matmul bf16 TFLOP/s": HALF}


@dataclass
class Row:
    """One figure, measured several times."""

    name: str
    unit: str  # a key of UNITS
    values: list[float]
    group: str = ""
    bytes: float = 0.0  # the least that each call reads and writes
    flops: float = 0.0
    note: str = ""
    facts: dict = field(default_factory=dict)
    peak: str = F32  # the limit of its arithmetic

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def best(self) -> float:
        return min(self.values) if UNITS[self.unit] else max(self.values)

    def rates(self) -> tuple[float, float]:
        """GB/s and TFLOP/s of the median call, for rows in microseconds."""
        seconds = self.median * 1e-6
        return self.bytes / seconds / 1e9, self.flops / seconds / 1e12

    def roof(self, limits: dict) -> tuple[float, str]:
        """The fraction of the device's limit that the median call reaches, and the name
        of that limit; 0 if unknown."""
        bandwidth, rate = self.rates()
        memory, peak = limits.get(MEMORY, 0), limits.get(self.peak, 0)
        shares = {
            "memory": bandwidth / memory if memory else 0,
            "compute": rate / peak if peak else 0,
        }
        bound = max(shares, key=shares.get)
        return shares[bound], bound


def commit() -> str:
    """The commit of the source tree that contains this package; "" without a tree."""
    here = Path(__file__).resolve().parent
    try:
        done = subprocess.run(
            ["git", "-C", str(here), "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def about(cpu: bool = False) -> dict:
    """Device, driver and versions, for a report's head; `cpu`: those of MLX's CPU."""
    facts = native.report()
    devices = facts.get("devices", [])
    device = next((d for d in devices if d.get("selected")), {})
    if cpu:
        device = {"name": "CPU"}
    return {
        "device": device.get("name", "none"),
        "driver": device.get("driver", ""),
        "version": __version__,
        "mlx": native.installed("mlx"),
        "commit": commit(),
        "allocator": "mimalloc" if native.allocator_is_loaded() else "system",
        "settings": {
            entry["name"]: entry["value"]
            for entry in facts.get("config", [])
            if entry.get("set")
        },
        "python": sys.version.split()[0],
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat()[:19],
    }


def save(path: str, head: dict, rows: list[Row], limits: dict) -> None:
    report = {**head, "limits": limits, "results": [asdict(row) for row in rows]}
    Path(path).write_text(json.dumps(report, indent=1) + "\n")


def load(path: str) -> tuple[dict, list[Row]]:
    """Reads a file of save(). Throws OSError, or ValueError for other files."""
    try:
        head = json.loads(Path(path).read_text())
        rows = [Row(**row) for row in head.pop("results")]
        for row in rows:
            number(row.best)
        limits = head.get("limits", {})
        head["limits"] = {OLD_LIMITS.get(name, name): limits[name] for name in limits}
        for value in limits.values():
            number(value)
        head["date"], line(head, [])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: {type(error).__name__}: {error}") from error
    return head, rows


def join(files: list[str]) -> tuple[dict, list[Row], dict]:
    """Joins several runs: medians of each row, the highest limits. Throws ValueError
    for runs of different devices or drivers."""
    heads, tables = zip(*map(load, files))
    for name in ("device", "driver"):
        if len({head[name] for head in heads}) > 1:
            raise ValueError(f"these are of different {name}s")
    rows = {}
    for row in (row for table in tables for row in table):
        mine = rows.setdefault((row.name, row.unit), row)
        if mine is row:
            row.values = [row.median]
        else:
            mine.values.append(statistics.median(row.values))
    limits = {}
    for head in heads:
        for name, value in head.pop("limits").items():
            limits[name] = max(value, limits.get(name, 0))
    return heads[0], list(rows.values()), limits


def number(value: float) -> str:
    """Three significant digits, never an exponent."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def scaled(values: list[float], unit: str) -> tuple[list[str], str]:
    """The values in the largest unit in which the largest of them is 1 or more."""
    scale = SCALES.get(unit)
    if not scale or not any(values):
        return [number(v) for v in values], unit
    largest = max(abs(v) for v in values)
    fitting = [name for name, one in scale.items() if largest >= one]
    unit = fitting[-1] if fitting else next(iter(scale))
    return [number(v / scale[unit]) for v in values], unit


def quantity(value: float, unit: str) -> str:
    (text,), unit = scaled([value], unit)
    return f"{text} {unit}"


def deviation(row: Row) -> float:
    return statistics.stdev(row.values) if len(row.values) > 1 else 0.0


def with_deviation(row: Row) -> tuple[str, str]:
    """ "median ± standard deviation", and the unit."""
    (median, spread), unit = scaled([row.median, deviation(row)], row.unit)
    return (f"{median} ± {spread}" if len(row.values) > 1 else median), unit


def percent(share: float) -> str:
    return "> 100 %" if share > 1.005 else f"{share * 100:.0f} %" if share else ""


def line(head: dict, rows: list[Row]) -> str:
    """The results in a line, to paste into an issue."""
    figures = "; ".join(f"{r.name} {quantity(r.median, r.unit)}" for r in rows)
    commit = f" ({head['commit']})" if head["commit"] else ""
    return (
        f"{head['device']}, {head['driver']}, mlx-vulkan {head['version']}{commit}: "
        f"{figures}"
    )


def console():
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=WIDTH)


def describe(head: dict, limits: dict) -> str:
    """The limits and their source."""
    words = []
    for name, value in limits.items():
        label, _, unit = name.rpartition(" ")
        words.append(f"{label} {quantity(value, unit)}")
    return f"limits: {', '.join(words)} ({head.get('limits_source', MEASURED)})"


def show(head: dict, rows: list[Row], limits: dict) -> None:
    from rich.table import Table

    table = Table(title=f"{head['device']}, {head['driver']}")
    timed = any(row.bytes for row in rows)
    table.add_column("what")
    columns = ["median ± sd", "unit"]
    columns += ["GB/s", "FLOP/s", "limit", "of limit"] if timed else []
    for column in columns:
        left = column in ("unit", "limit")
        table.add_column(column, justify="left" if left else "right", no_wrap=True)
    above = False
    for row in rows:
        cells = [row.name, *with_deviation(row)]
        if timed and row.unit == "us":
            bandwidth, rate = row.rates()
            share, bound = row.roof(limits)
            above |= share > 1.005
            cells += [number(bandwidth) if row.bytes else ""]
            cells += [quantity(rate, "TFLOP/s") if row.flops else ""]
            cells += [bound if share else "", percent(share)]
        table.add_row(*cells)
    console().print(table)
    for row in rows:
        if row.note:
            print(f"  {row.name}: {row.note}")
    if limits:
        print(f"  {describe(head, limits)}")
    if above:
        print("  > 100 %: the arrays fit in a cache, which is faster than the memory")


def add_arguments(parser) -> None:
    for name, metavar, kind, text in (
        ("--json", "FILE", arguments.output, "write all values to this file"),
        ("--plot", "FILE.png", arguments.picture, "write a plot (needs matplotlib)"),
    ):
        parser.add_argument(name, metavar=metavar, type=kind, help=text)


def finish(args, rows: list[Row], limits: dict, short: list[Row], head=None) -> int:
    """Shows the rows and writes the files that the arguments name; returns the exit
    status. `head`: about() from the measurement, if that was not now."""
    from . import plots

    head = head or about()
    if not getattr(args, "markdown", False):
        show(head, rows, limits)
        print()
    print(line(head, short))
    for name, write in (("json", save), ("plot", plots.plot)):
        if path := getattr(args, name, None):
            try:
                write(path, head, rows, limits)
            except OSError as error:
                raise Failed(f"{path} cannot be written: {error.strerror}.") from error
            print(f"{name}: {os.path.abspath(path)}")
    return 0
