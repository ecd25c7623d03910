"""Join the results of several runs, and plot them as rooflines.

Shows the median, minimum and maximum of the runs' medians. All runs must be from
the same device and driver.
"""

from ..arguments import Failed
from . import report

EXAMPLES = """
mlx-vulkan bench roofline 1.json 2.json 3.json --plot ops.png
mlx-vulkan bench roofline ops.json --markdown
"""


def add_arguments(parser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE.json",
        help="files that `mlx-vulkan bench --json` wrote",
    )
    parser.add_argument(
        "--markdown", action="store_true", help="print the table as Markdown"
    )
    report.add_arguments(parser)


def markdown(rows: list[report.Row], limits: dict) -> str:
    lines = ["| | median (minimum, maximum) | of limit | FLOP/s |", "|---|---|---|---|"]
    for row in rows:
        figures = [row.median, min(row.values), max(row.values)]
        (middle, least, most), unit = report.scaled(figures, row.unit)
        share = rate = ""
        if row.bytes and row.unit == "us":
            part, bound = row.roof(limits)
            share = f"{report.percent(part)} ({bound})" if part else ""
            rate = report.quantity(row.rates()[1], "TFLOP/s") if row.flops else ""
        value = f"{middle} {unit} ({least}, {most})"
        lines.append(f"| {row.name} | {value} | {share} | {rate} |")
    return "\n".join(lines)


def run(args) -> int:
    try:
        head, rows, limits = report.join(args.files)
    except (OSError, ValueError) as error:
        raise Failed(
            f"A file is not a result of `mlx-vulkan bench --json`: {error}"
        ) from error
    if args.markdown:
        print(markdown(rows, limits))
    return report.finish(args, rows, limits, rows[:2], head)
