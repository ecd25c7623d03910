"""Two benchmark results side by side: what a speed claim is made of.

    python benchmarks/compare.py old.json new.json
    python benchmarks/compare.py [--rounds 3] \\
        'MLX_VK_DISABLE=coopmat python benchmarks/decode.py M --json {json}' \\
        'python benchmarks/decode.py M --json {json}'

The files are those that ops.py and decode.py write with --json. Commands run in
turn, round by round, so that both meet the same machine; each figure is the
median of its rounds. A ratio above 1 means that the second is better.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from rich.console import Console
from rich.table import Table

# Units of a result row, and whether less of it is better.
UNITS = {
    "us": True,
    "tokens/s": False,
    "GB/s": False,
    "GFLOP/s": False,
    "count": True,
    "MB": True,
}


def figures(report):
    """(row, unit) -> value."""
    return {
        (" ".join(filter(None, (row["name"], row.get("dtype")))), unit): row[unit]
        for row in report["results"]
        for unit in UNITS
        if unit in row
    }


def run(command):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "result.json"
        done = subprocess.run(
            command.replace("{json}", str(path)),
            shell=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode != 0 or not path.exists():
            sys.exit(f"{command}\nended with {done.returncode}:\n{done.stdout}")
        return json.loads(path.read_text())


def collect(sides, rounds):
    """Each side's report, and its figures as medians."""
    commands = ["{json}" in side for side in sides]
    reports = [[] for _ in sides]
    for _ in range(rounds if any(commands) else 1):
        for side, is_command, found in zip(sides, commands, reports):
            if is_command:
                found.append(run(side))
            elif not found:
                found.append(json.loads(pathlib.Path(side).read_text()))
    medians = []
    for found in reports:
        tables = [figures(report) for report in found]
        medians.append(
            {
                key: statistics.median(t[key] for t in tables if key in t)
                for key in tables[0]
            }
        )
    return [found[0] for found in reports], medians


def ratio(unit, old, new):
    better, worse = (old, new) if UNITS[unit] else (new, old)
    if better == worse:
        return 1.0
    return better / worse if worse else float("inf")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", help="a JSON file, or a command with {json}")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=3, help="of commands")
    parser.add_argument("--filter", default="", help="a part of a row's name")
    args = parser.parse_args()

    (first, second), (old, new) = collect([args.old, args.new], args.rounds)
    console = Console()
    for key in ("device", "mlx", "model", "prompt_tokens", "tokens"):
        if first.get(key) != second.get(key):
            console.print(f"{key} differs: {first.get(key)} and {second.get(key)}")
    table = Table(title=f"{second['device']}, MLX {second['mlx']}")
    table.add_column("row")
    for name in ("old", "new", "new is better by"):
        table.add_column(name, justify="right")
    for key in old:
        row, unit = key
        if key in new and args.filter in row:
            label = row if unit == "count" else f"{row}, {unit}"
            better = f"{ratio(unit, old[key], new[key]):.2f} x"
            table.add_row(label, f"{old[key]:,.2f}", f"{new[key]:,.2f}", better)
    console.print(table)
    for missing, where in ((old.keys() - new.keys(), "old"), (new.keys() - old, "new")):
        rows = sorted({row for row, _ in missing if args.filter in row})
        if rows:
            console.print(f"only in {where}: {', '.join(rows)}")


if __name__ == "__main__":
    main()
