"""Results of several runs as one: of each figure the least, median and most of the
runs' medians, and a picture, with a roofline for each family of operations."""

from . import report


def add_arguments(parser) -> None:
    parser.add_argument("files", nargs="+", help="as --json writes them")
    parser.add_argument("--markdown", action="store_true", help="the table as such")
    report.add_arguments(parser)


def markdown(rows: list[report.Row], limits: dict) -> str:
    lines = ["| | median (least, most) | of copy | TFLOP/s |", "|---|---|---|---|"]
    copy = limits.get("copy GB/s")
    for row in rows:
        least, most = (report.number(f(row.values)) for f in (min, max))
        unit = "" if row.unit == "us" else " " + row.unit
        share = rate = ""
        if row.bytes and row.unit == "us":
            bandwidth, flops = row.rates()
            share = f"{bandwidth / copy:.0%}" if copy else ""
            rate = report.number(flops) if flops > 1 else ""
        value = f"{report.number(row.median)}{unit} ({least}, {most})"
        lines.append(f"| {row.name} | {value} | {share} | {rate} |")
    return "\n".join(lines)


def run(args) -> int:
    try:
        head, rows, limits = report.join(args.files)
    except (OSError, ValueError) as error:
        print(f"These are no results of `mlx-vulkan bench --json`: {error}")
        return 1
    if args.markdown:
        print(markdown(rows, limits))
    return report.finish(args, rows, limits, rows[:2], head)
