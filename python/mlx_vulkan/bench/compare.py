"""Two results side by side: A.json and B.json, as --json writes them, or commands.

A command has {json} where the name of a file goes, as in
'MLX_VK_DISABLE=coopmat mlx-vulkan bench ops --json {json}'. Commands run in turn,
round by round, so that both meet the same machine.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from .. import arguments
from . import report


def add_arguments(parser) -> None:
    parser.add_argument("a", help="a JSON file, or a command with {json}")
    parser.add_argument("b")
    rounds = arguments.at_least(1)
    parser.add_argument("--rounds", type=rounds, default=3, help="of commands")
    parser.add_argument(
        "--filter", default=argparse.SUPPRESS, help="a part of a row's name"
    )


def run_command(command: str, path: str) -> None:
    """Throws ValueError, with what the command wrote, if it leaves no file."""
    done = subprocess.run(
        command.replace("{json}", shlex.quote(path)),
        shell=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode != 0 or not Path(path).exists():
        raise ValueError(f"{command}\nended with {done.returncode}:\n{done.stdout}")


def collect(sides: list[str], rounds: int) -> list[tuple[dict, list[report.Row]]]:
    """Head and rows of each side. Of a command's rounds each row has the medians."""
    found = [[] for _ in sides]
    with tempfile.TemporaryDirectory() as folder:
        for i in range(rounds):
            for k, side in enumerate(sides):
                if "{json}" in side:
                    path = f"{folder}/{k}-{i}.json"
                    run_command(side, path)
                    found[k].append(path)
                    print(f"round {i + 1} of {rounds}: {side}", file=sys.stderr)
        for side, files in zip(sides, found):
            if not files:
                yield report.load(side)
            else:
                head, rows, _ = report.join(files)
                yield head, rows


def differences(a: dict, b: dict) -> list[str]:
    """What makes figures of two heads no comparison of programs."""
    names = ("device", "driver", "mlx", "allocator")
    return [
        f"{name} differs: {a.get(name)} and {b.get(name)}"
        for name in names
        if a.get(name) != b.get(name)
    ]


def run(args) -> int:
    from rich.table import Table

    try:
        sides = collect([args.a, args.b], args.rounds)
        (head_a, rows_a), (head_b, rows_b) = sides
    except (OSError, ValueError) as error:
        print(f"This is no result of a benchmark's --json: {error}")
        return 1
    table = Table(title="above 1: B is better")
    for column in ("what", "unit", "A", "B", "ratio", "clear"):
        table.add_column(column, justify="left" if column == "what" else "right")
    rows_a, rows_b = ([r for r in s if args.filter in r.name] for s in (rows_a, rows_b))
    others = {(row.name, row.unit): row for row in rows_b}
    for a in rows_a:
        b = others.pop((a.name, a.unit), None)
        if b is None:
            table.add_row(a.name, a.unit, report.number(a.median), "", "", "")
            continue
        medians = (report.number(a.median), report.number(b.median))
        clear = "yes" if apart(a, b) else "no"
        table.add_row(a.name, a.unit, *medians, f"{ratio(a, b):.2f}", clear)
    for (name, unit), b in others.items():
        table.add_row(name, unit, "", report.number(b.median), "", "")
    report.console().print(table)
    for sentence in differences(head_a, head_b):
        print(sentence)
    for name, head in (("A", head_a), ("B", head_b)):
        print(f"{name}: {report.line(head, [])[:-2]}, {head['date']}")
    return 0


def ratio(a: report.Row, b: report.Row) -> float:
    worse, better = (a, b) if report.UNITS[a.unit] else (b, a)
    if worse.median == better.median:
        return 1.0  # counts may both be 0
    return worse.median / better.median if better.median else float("inf")


def apart(a: report.Row, b: report.Row) -> bool:
    """Whether the two ranges have nothing in common."""
    return max(a.values) < min(b.values) or max(b.values) < min(a.values)
