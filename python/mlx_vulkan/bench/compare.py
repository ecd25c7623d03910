"""Two results side by side: A.json and B.json, as --json writes them."""

from . import report


def add_arguments(parser) -> None:
    parser.add_argument("a")
    parser.add_argument("b")


def run(args) -> int:
    from rich.table import Table

    try:
        (head_a, rows_a), (head_b, rows_b) = map(report.load, (args.a, args.b))
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"This is no result of `mlx-vulkan bench --json`: {error}")
        return 1
    table = Table(title="above 1: B is better")
    for column in ("what", "unit", "A", "B", "ratio", "clear"):
        table.add_column(column, justify="left" if column == "what" else "right")
    others = {(row.name, row.unit): row for row in rows_b}
    for a in rows_a:
        b = others.pop((a.name, a.unit), None)
        if b is None:
            table.add_row(a.name, a.unit, report.number(a.median), "", "", "")
            continue
        less = report.UNITS[a.unit]
        ratio = a.median / b.median if less else b.median / a.median
        # Whether the two ranges have nothing in common.
        apart = max(a.values) < min(b.values) or max(b.values) < min(a.values)
        medians = (report.number(a.median), report.number(b.median))
        table.add_row(
            a.name, a.unit, *medians, f"{ratio:.2f}", "yes" if apart else "no"
        )
    for (name, unit), b in others.items():
        table.add_row(name, unit, "", report.number(b.median), "", "")
    report.console().print(table)
    for name, head in (("A", head_a), ("B", head_b)):
        print(f"{name}: {report.line(head, [])[:-2]}, {head['date']}")
    return 0
