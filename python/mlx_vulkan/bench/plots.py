"""Pictures of a benchmark's results; one unit an axis."""

from . import report
from .report import F32, HALF, MEMORY, Row

TITLES = {
    "us": "time per call (less is better)",
    "ms": "time (less is better)",
    "s": "time (less is better)",
    "tokens/s": "tokens per second (more is better)",
    "GB": "peak memory (less is better)",
    "count": "per decode step (less is better)",
}


def plot(path: str, head: dict, rows: list[Row], limits: dict) -> None:
    """A roofline for each family of rows with bytes and operations; without such
    rows, bars for each unit."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    both = [row for row in rows if row.flops and row.bytes and row.unit == "us"]
    figure = rooflines(pyplot, both, limits) if both else bars(pyplot, rows)
    version = f"mlx-vulkan {head['version']} {head['commit']}".strip()
    figure.suptitle(f"{head['device']}, {head['driver']}\n{version}", fontsize=9)
    if both and limits:
        figure.supxlabel(report.describe(head, limits), fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def bars(pyplot, rows: list[Row]):
    units = list(dict.fromkeys(row.unit for row in rows))
    groups = [[row for row in rows if row.unit == unit] for unit in units]
    heights = [1 + len(group) for group in groups]
    figure, axes = pyplot.subplots(
        len(units),
        1,
        figsize=(8, 1 + 0.35 * sum(heights)),
        squeeze=False,
        height_ratios=heights,
    )
    for ax, unit, group in zip(axes.flat, units, groups):
        scale = report.scaled([max(row.median for row in group)], unit)[1]
        one = report.SCALES.get(unit, {}).get(scale, 1)
        values = [row.median / one for row in group]
        spreads = [report.deviation(row) / one for row in group]
        drawn = ax.barh([row.name for row in group], values, xerr=spreads, height=0.7)
        labels = [report.number(value) for value in values]
        ax.bar_label(drawn, labels, padding=4, fontsize=7)
        ax.invert_yaxis()
        ax.margins(x=0.15)
        ax.set_xlabel("count" if unit == "count" else scale, fontsize=8)
        ax.set_title(TITLES[unit], fontsize=9, loc="left")
        ax.tick_params(labelsize=7)
        ax.spines[["top", "right"]].set_visible(False)
    return figure


def rooflines(pyplot, rows: list[Row], limits: dict):
    families = list(dict.fromkeys(row.group for row in rows))
    wide = min(len(families), 3)
    high = -(-len(families) // 3)
    figure, axes = pyplot.subplots(
        high, wide, figsize=(5 * wide, 1 + 3.6 * high), squeeze=False
    )
    for ax, family in zip(axes.flat, families):
        roofline(ax, [row for row in rows if row.group == family], limits)
        ax.set_title(family, fontsize=9, loc="left")
    for ax in axes.flat[len(families) :]:
        ax.set_axis_off()
    return figure


def roofline(axes, rows: list[Row], limits: dict) -> None:
    """FLOP/s over FLOP per byte; the whiskers are the extremes."""
    unit = report.scaled([max(row.rates()[1] for row in rows)], "TFLOP/s")[1]
    one = report.RATES[unit]
    for row in rows:
        rate = row.rates()[1] / one
        ends = [row.flops / us / 1e6 / one for us in (max(row.values), min(row.values))]
        whiskers = [[max(0, rate - ends[0])], [max(0, ends[1] - rate)]]
        x = row.flops / row.bytes
        axes.errorbar(x, rate, yerr=whiskers, fmt="o", ms=4, label=row.name)
    low = min(row.flops / row.bytes for row in rows) / 2
    high = max(row.flops / row.bytes for row in rows) * 2
    x = [low * (high / low) ** (i / 60) for i in range(61)]
    kinds = {row.peak for row in rows}
    for name, style in ((HALF, "--"), (F32, ":")):
        if name in kinds and limits.get(name) and limits.get(MEMORY):
            roof = [min(limits[MEMORY] * i / 1e3, limits[name]) / one for i in x]
            axes.plot(x, roof, f"k{style}", lw=0.8, label=f"limit ({name.split()[0]})")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("FLOP per byte", fontsize=8)
    axes.set_ylabel(unit, fontsize=8)
    axes.tick_params(which="both", labelsize=7)
    axes.grid(True, which="major", lw=0.3)
    axes.legend(fontsize=6)
