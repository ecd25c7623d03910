"""What a benchmark has found: as a table, as JSON, as pictures, as one line."""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .. import __version__, arguments, native

# Units, and whether less is better.
UNITS = {
    "us": True,
    "ms": True,
    "s": True,
    "count": True,
    "GB": True,
    "tokens/s": False,
}


@dataclass
class Row:
    """One figure, measured several times."""

    name: str
    unit: str  # of UNITS
    values: list[float]
    group: str = ""
    bytes: float = 0.0  # read and written once by each call, at the least
    flops: float = 0.0
    note: str = ""
    facts: dict = field(default_factory=dict)

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def best(self) -> float:
        return min(self.values) if UNITS[self.unit] else max(self.values)

    def rates(self) -> tuple[float, float]:
        """GB/s and TFLOP/s of the median call, of a row in microseconds."""
        seconds = self.median * 1e-6
        return self.bytes / seconds / 1e9, self.flops / seconds / 1e12


def commit() -> str:
    """Of the source tree that this package lies in, if it does."""
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
    """Device, driver and versions, for a report's head; `cpu`: of MLX's own CPU."""
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
        "commit": os.environ.get("MLX_VK_COMMIT") or commit(),
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
    """Throws OSError, or ValueError for a file that is none of save()'s."""
    try:
        head = json.loads(Path(path).read_text())
        rows = [Row(**row) for row in head.pop("results")]
        for row in rows:
            number(row.best)
        for value in head.get("limits", {}).values():
            number(value)
        head["date"], line(head, [])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: {type(error).__name__}: {error}") from error
    return head, rows


def join(files: list[str]) -> tuple[dict, list[Row], dict]:
    """Several runs as one: of each row the medians, of limits the best. Throws
    ValueError for runs of different devices or drivers."""
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
        for name, value in head.pop("limits", {}).items():
            limits[name] = max(value, limits.get(name, 0))
    return heads[0], list(rows.values()), limits


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def spread(row: Row) -> str:
    return f"{number(min(row.values))} to {number(max(row.values))}"


def line(head: dict, rows: list[Row]) -> str:
    """To paste into an issue."""
    figures = "; ".join(f"{r.name} {number(r.median)} {r.unit}" for r in rows)
    commit = f" ({head['commit']})" if head["commit"] else ""
    return (
        f"{head['device']}, {head['driver']}, mlx-vulkan {head['version']}{commit}: "
        f"{figures}"
    )


def console():
    from rich.console import Console

    # As wide as its rows where it is read by a program.
    return Console() if sys.stdout.isatty() else Console(width=120)


def show(head: dict, rows: list[Row], limits: dict) -> None:
    from rich.table import Table

    table = Table(title=f"{head['device']}, {head['driver']}")
    timed = any(row.bytes for row in rows)
    table.add_column("what")
    columns = ["median", "unit", "least to most"]
    columns += ["GB/s", "of copy", "TFLOP/s"] if timed else []
    for column in columns:
        table.add_column(column, justify="right" if column != "unit" else "left")
    copy = limits.get("copy GB/s", 0)
    for row in rows:
        cells = [row.name, number(row.median), row.unit, spread(row)]
        if timed and row.unit == "us":
            bandwidth, rate = row.rates()
            share = f"{bandwidth / copy:.0%}" if copy and row.bytes else ""
            cells += [number(bandwidth) if row.bytes else "", share]
            cells += [number(rate) if row.flops else ""]
        table.add_row(*cells)
    console().print(table)
    for row in rows:
        if row.note:
            print(f"  {row.name}: {row.note}")
    for name, value in limits.items():
        print(f"  {name:<22} {number(value)}")


def plot(path: str, head: dict, rows: list[Row], limits: dict) -> None:
    """Of rows with bytes and operations a roofline for each family, else a bar for
    each row."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    both = [row for row in rows if row.flops and row.bytes and row.unit == "us"]
    families = list(dict.fromkeys(row.group for row in both))
    wide = min(len(families), 3) or 1
    high = -(-len(families) // 3) or 1
    size = (5 * wide, 3.6 * high) if both else (8, 1 + 0.3 * max(len(rows), 4))
    figure, axes = pyplot.subplots(high, wide, figsize=size, squeeze=False)
    for ax, family in zip(axes.flat, families):
        roofline(ax, [row for row in both if row.group == family], limits)
        ax.set_title(family, fontsize=9)
    for ax in axes.flat[len(families) or 1 :]:
        ax.set_axis_off()
    if not both:
        bars(axes[0, 0], rows)
    figure.suptitle(line(head, [])[:-2], fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=80)
    pyplot.close(figure)


def bars(axes, rows: list[Row]) -> None:
    low = [row.median - min(row.values) for row in rows]
    high = [max(row.values) - row.median for row in rows]
    names = [f"{row.name} ({row.unit})" for row in rows]
    axes.barh(names, [row.median for row in rows], xerr=[low, high])
    axes.invert_yaxis()


def roofline(axes, rows: list[Row], limits: dict) -> None:
    """Operations a second over operations a byte; the whiskers are the extremes."""
    for row in rows:
        rate = row.rates()[1]
        ends = [row.flops / us / 1e6 for us in (max(row.values), min(row.values))]
        whiskers = [[rate - ends[0]], [ends[1] - rate]]
        x = row.flops / row.bytes
        axes.errorbar(x, rate, yerr=whiskers, fmt="o", ms=4, label=row.name)
    # The roof: what memory, and what matrix products, reach.
    peaks = [value for name, value in limits.items() if name.endswith("TFLOP/s")]
    if "copy GB/s" in limits and peaks:
        low = min(row.flops / row.bytes for row in rows) / 2
        high = max(row.flops / row.bytes for row in rows) * 2
        x = [low * (high / low) ** (i / 60) for i in range(61)]
        roof = [min(limits["copy GB/s"] * i / 1e3, max(peaks)) for i in x]
        axes.plot(x, roof, "k--", lw=0.8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations a byte", fontsize=8)
    axes.set_ylabel("10^12 operations/s", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.legend(fontsize=6)


def add_arguments(parser) -> None:
    # None are set by default, so that those before a subcommand count as well.
    for name, metavar, kind, text in (
        ("--json", "FILE", arguments.output, "write all values there"),
        ("--plot", "FILE.png", arguments.picture, "draw them (needs matplotlib)"),
    ):
        parser.add_argument(
            name, metavar=metavar, type=kind, default=argparse.SUPPRESS, help=text
        )


def finish(args, rows: list[Row], limits: dict, short: list[Row], head=None) -> int:
    """Shows the rows and writes what the arguments ask for; the exit status. `head`
    is what about() said where they were measured, if not now."""
    head = head or about()
    if not getattr(args, "markdown", False):
        show(head, rows, limits)
        print()
    print(line(head, short))
    for name, write in (("json", save), ("plot", plot)):
        if path := getattr(args, name, None):
            try:
                write(path, head, rows, limits)
            except OSError as error:
                print(f"{path} cannot be written: {error.strerror}.")
                return 1
    return 0
