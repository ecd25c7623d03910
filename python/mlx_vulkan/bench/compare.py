"""Compare two results: files of --json, or commands that are run in turn.

A command contains {json} where its output file goes. The two commands alternate, so
that both run under the same conditions. B is called better or worse if the 99 %
confidence interval of the ratio of the two sides does not contain 1.
"""

import shlex
import subprocess
import tempfile
from pathlib import Path

from .. import arguments
from ..arguments import Failed, note
from . import report
from .intervals import ratio_interval

EXAMPLES = """
mlx-vulkan bench compare before.json after.json
mlx-vulkan bench compare \\
    'MLX_VK_DISABLE=fuse mlx-vulkan bench model --shape tiny --json {json}' \\
    'mlx-vulkan bench model --shape tiny --json {json}'
"""
EXIT = "Exit status: 1 if the two have no result in common."


def add_arguments(parser) -> None:
    source = "a file that --json wrote, or a command that contains {json}"
    parser.add_argument("a", metavar="A", help=source)
    parser.add_argument("b", metavar="B", help="the same")
    parser.add_argument(
        "--rounds",
        type=arguments.at_least(1),
        default=5,
        metavar="N",
        help="number of times to run each command (default: %(default)s)",
    )
    parser.add_argument(
        "--filter",
        default="",
        metavar="TEXT",
        help="compare only results whose names contain this text (default: all)",
    )


def run_command(command: str, path: str) -> None:
    """Runs a command. Throws ValueError with its output if it writes no file."""
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
    """Head and rows of each side; a row has the medians of a command's rounds."""
    found = [[] for _ in sides]
    with tempfile.TemporaryDirectory() as folder:
        for i in range(rounds):
            for k, side in enumerate(sides):
                if "{json}" in side:
                    path = f"{folder}/{k}-{i}.json"
                    run_command(side, path)
                    found[k].append(path)
                    note(f"round {i + 1} of {rounds}: {side}")
        for side, files in zip(sides, found):
            if not files:
                yield report.load(side)
            else:
                head, rows, _ = report.join(files)
                yield head, rows


def differences(a: dict, b: dict) -> list[str]:
    """The facts in which the two sides differ."""
    names = ("device", "driver", "mlx", "allocator", "settings")
    return [
        f"A and B differ in {name}: {a.get(name)} and {b.get(name)}"
        for name in names
        if a.get(name) != b.get(name)
    ]


def run(args) -> int:
    try:
        sides = collect([args.a, args.b], args.rounds)
        (head_a, rows_a), (head_b, rows_b) = sides
    except (OSError, ValueError) as error:
        raise Failed(
            f"A side is not a result of `mlx-vulkan bench --json`: {error}"
        ) from error
    rows_a, rows_b = (
        {(row.name, row.unit): row for row in side if args.filter in row.name}
        for side in (rows_a, rows_b)
    )
    both = [key for key in rows_a if key in rows_b]
    if not both:
        raise Failed(
            "A and B have no result in common: " + reason(args, rows_a, rows_b)
        )
    show([(rows_a[key], rows_b[key]) for key in both])
    for side, mine, other in (("A", rows_a, rows_b), ("B", rows_b, rows_a)):
        alone = [name for name, unit in mine if (name, unit) not in other]
        if alone:
            print(f"in {side} alone: {', '.join(alone)}")
    for sentence in differences(head_a, head_b):
        print(sentence)
    for name, head in (("A", head_a), ("B", head_b)):
        print(f"{name}: {report.line(head, [])[:-2]}, {head['date']}")
    if not all("{json}" in side for side in (args.a, args.b)):
        print(
            "The samples of a file are from one run. Runs differ more than samples do: "
            "for a reliable result give two commands, which are run several times."
        )
    return 0


def reason(args, rows_a: dict, rows_b: dict) -> str:
    if args.filter and not (rows_a and rows_b):
        return f"no name contains {args.filter!r} on both sides."
    first = [next(iter(rows), ("nothing", ""))[0] for rows in (rows_a, rows_b)]
    return f"A has {first[0]!r}, B has {first[1]!r}."


def show(pairs: list[tuple[report.Row, report.Row]]) -> None:
    from rich.table import Table

    table = Table(title="ratio above 1: B is better")
    table.add_column("what")
    for column in ("unit", "A", "B", "ratio", "99 % interval", "B is"):
        left = column in ("unit", "B is")
        table.add_column(column, justify="left" if left else "right", no_wrap=True)
    for a, b in pairs:
        (left, right), unit = report.scaled([a.median, b.median], a.unit)
        between = interval(a, b)
        words = f"{between[0]:.3f} to {between[1]:.3f}" if between else ""
        table.add_row(
            a.name, unit, left, right, f"{ratio(a, b):.2f}", words, judge(a, b)
        )
    report.console().print(table)


def ratio(a: report.Row, b: report.Row) -> float:
    worse, better = (a, b) if report.UNITS[a.unit] else (b, a)
    if worse.median == better.median:
        return 1.0  # counts may both be 0
    return worse.median / better.median if better.median else float("inf")


def interval(a: report.Row, b: report.Row) -> tuple[float, float] | None:
    """The confidence interval of the ratio."""
    worse, better = (a, b) if report.UNITS[a.unit] else (b, a)
    return ratio_interval(better.values, worse.values)


def judge(a: report.Row, b: report.Row) -> str:
    """The verdict of the samples on B."""
    between = interval(a, b)
    if between is None:
        return "equal" if a.values == b.values else "? (one sample)"
    if between[0] > 1:
        return "better"
    return "worse" if between[1] < 1 else "within noise"
