"""Tables and the plot of the cost tier."""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from .chips import HARDWARE
from .tier import Chip, Row, short_kernel

# Dispatches that wait for one another, of a decoded token (with rewrites).
LEVELS = {"0.6B": 6.8 * 28, "8B": 6.8 * 36, "30B-A3B": 8 * 48}


def chosen(chip: Chip, *tests: str) -> list[Row]:
    """Rows whose "model part name" matches all of them."""
    return [
        r
        for r in chip.rows
        if all(re.search(t, f"{r.model} {r.part} {r.name}") for t in tests)
    ]


def bandwidth(rows: Iterable[Row], chip: Chip) -> float:
    rows = list(rows)
    us = sum(r.us * r.times for r in rows)
    moved = sum(r.bytes * r.times for r in rows)
    return moved / us / 1e3 / HARDWARE[chip.name].gb_s


def rate(rows: Iterable[Row], chip: Chip) -> float:
    rows = list(rows)
    us = sum(r.us * r.times for r in rows)
    flops = sum(r.flops * r.times for r in rows)
    return flops / us / 1e6 / HARDWARE[chip.name].tflops


PRODUCTS = r"(q|k, v|o|gate, up|down)(, dequantize)?$"
Fraction = Callable[[Iterable[Row], Chip], float]
# A row of the table: what it is, of what it is a fraction, and its dispatches.
CLASSES: list[tuple[str, Fraction, tuple[str, ...]]] = [
    ("matvec, 8B", bandwidth, ("^8B decode [^a]",)),
    ("experts of a token, 30B-A3B", bandwidth, ("^30B.*decode experts",)),
    ("attention of a token, 8,192 keys", bandwidth, ("^8B decode after 8192",)),
    ("prompt of 16 rows, 8B", rate, ("^8B prompt of 16 ", PRODUCTS)),
    ("of 128", rate, ("^8B prompt of 128 ", PRODUCTS)),
    ("of 512", rate, ("^8B prompt of 512 ", PRODUCTS)),
    ("of 2,048", rate, ("^8B prompt of 2048 ", PRODUCTS)),
    ("sorted experts, prompt of 512", rate, ("^30B.*prompt of 512 experts",)),
    ("attention of a prompt of 2,048", rate, ("^8B prompt of 2048 attention",)),
]


def step_us(chip: Chip, model: str, part: str) -> float:
    """Kernels of a token or of a prompt, and a decoded token's levels. Norms, rope,
    sampling and the router are left out."""
    rows = [r for r in chip.rows if r.model == model and r.part == part]
    us = sum(r.us * r.times for r in rows)
    if part.startswith("decode after"):
        us += step_us(chip, model, "decode")
        us += LEVELS[model] * HARDWARE[chip.name].level_us
    return us


def tokens_a_second(chip: Chip, model: str, part: str) -> float:
    tokens = int(part.split()[-1]) if part.startswith("prompt") else 1
    return 1e6 * tokens / step_us(chip, model, part)


SPEEDS = [
    ("8B", "decode after 1024"),
    ("8B", "prompt of 512"),
    ("30B-A3B", "decode after 1024"),
    ("30B-A3B", "prompt of 512"),
]


def published(chip: Chip, root: Path) -> str:
    """Estimated tokens a second, and in brackets those of mlx-lm in the newest file
    of benchmarks/results."""
    newest = max((root / "benchmarks" / "results").glob("*.json"))
    texts = []
    for row in json.loads(newest.read_text("utf-8"))["rows"]:
        model = row["model"].removeprefix("Qwen3-")
        part = "decode after 1024" if row["what"] == "decode" else "prompt of 512"
        if (model, part) not in SPEEDS or row["tokens"] != 512:
            continue
        value = row["values"][0]
        took = "–".join(map(str, value)) if isinstance(value, list) else str(value)
        speed = tokens_a_second(chip, model, part)
        texts.append(f"{model} {row['what']} {speed:.0f} ({took})")
    return ", ".join(texts)


def table(rows: list[list[str]]) -> str:
    head, *body = rows
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


HEADS = (
    "chip",
    "matvec 8B / experts / attention of a token, %",
    "8B's prompt of 16 / 128 / 512 / 2,048, %",
    "sorted experts / attention of a prompt, %",
    "8B's tokens/s: decode / prompt",
    "30B-A3B's",
)


def fractions(chips: list[Chip]) -> str:
    """A line a chip: CLASSES, then SPEEDS."""
    rows = [list(HEADS)]
    for chip in chips:
        percents = [
            f"{100 * fraction(chosen(chip, *tests), chip):.0f}"
            for _, fraction, tests in CLASSES
        ]
        speeds = [f"{tokens_a_second(chip, *what):.0f}" for what in SPEEDS]
        groups = (percents[:3], percents[3:7], percents[7:], speeds[:2], speeds[2:])
        rows.append([chip.name, *map("/".join, groups)])
    return table(rows)


def counts_text(row: Row) -> str:
    c = row.counts
    alu = sum(c.get(n, 0) for n in ("fma", "float", "int", "slow", "math"))
    memory = c.get("load", 0) + c.get("store", 0)
    parts = (alu, c.get("matrix", 0), c.get("shared", 0), memory)
    return "/".join(f"{n:.0f}" for n in parts)


COLUMNS = ("part", "name", "kernel", "groups", "rounds", "fill", "lanes", "regs")
COLUMNS += ("waves", "lds", "scratch", "alu/matrix/lds/mem", "bound", "bw", "rate")


def cells(row: Row) -> list[str]:
    return [
        f"{row.model} {row.part}",
        row.name,
        short_kernel(row.kernel),
        f"{row.groups}x{row.workgroup}",
        str(row.rounds),
        f"{100 * row.filled:.0f}%",
        str(row.subgroup),
        str(row.registers),
        f"{row.resident:.1f}",
        str(row.shared),
        str(row.scratch),
        counts_text(row),
        row.bound,
        f"{100 * row.bandwidth:.0f}%",
        f"{100 * row.rate:.0f}%",
    ]


def listing(rows: list[Row]) -> list[str]:
    """Lines of columns, the first with their names."""
    lines = [list(COLUMNS), *map(cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return [
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths)).rstrip()
        for line in lines
    ]


# What tests/drivers/costs.txt keeps: a row for each kernel of these.
KEPT = r"^8B (decode|prompt of (16|128|512)) (gate|down|attention)|"
KEPT += r"^8B decode after 8192|^30B.*(decode|prompt of 512) experts"


def kept(chips: list[Chip]) -> str:
    """The committed rows, which change with plans, kernels and the model."""
    lines = []
    for chip in chips:
        rows = chosen(chip, KEPT)
        lines += [f"# {chip.name}: {HARDWARE[chip.name]}", *listing(rows), ""]
    return "\n".join(lines)


def sections(text: str) -> dict[str, list[str]]:
    """A chip's lines of tests/drivers/costs.txt, without the columns' widths."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if head := re.match(r"# (\w+):", line):
            name = head[1]
            found[name] = []
        elif line and name:
            found[name].append(re.sub(r"  +", "  ", line))
    return found


def differences(expected: str, actual: str) -> list[str]:
    """What changed of the chips that `actual` has."""
    old, new = sections(expected), sections(actual)
    changed = []
    for chip, lines in new.items():
        before = old.get(chip, [])
        changed += [f"{chip} - {line}" for line in before if line not in lines]
        changed += [f"{chip} + {line}" for line in lines if line not in before]
    return changed


COLORS = {"bandwidth": "#475569", "rate": "#c2410c"}


def plot(chips: list[Chip], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "costs"  # the same file every time
    matplotlib.rcParams["svg.fonttype"] = "none"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(CLASSES), sharey=True, figsize=(14, 0.3 * len(chips) + 1.2)
    )
    names = [HARDWARE[c.name].name for c in chips]
    for axis, (what, fraction, tests) in zip(axes, CLASSES):
        kind = fraction.__name__
        values = [100 * fraction(chosen(c, *tests), c) for c in chips]
        axis.barh(names, values, color=COLORS[kind])
        short = re.sub(
            r",? (8B|30B.*|8,192 keys|prompt of 512|of a prompt)", r"\n\1", what
        )
        axis.set_title(short, fontsize=7)
        axis.set_xlim(0, 100)
        axis.tick_params(labelsize=7)
        for place, value in enumerate(values):
            inside = value > 70
            axis.text(
                value + (-3 if inside else 3),
                place,
                f"{value:.0f}",
                color="white" if inside else "black",
                ha="right" if inside else "left",
                va="center",
                size=7,
            )
    axes[0].invert_yaxis()
    figure.suptitle(
        "Estimated % of bandwidth (grey) and of the products' limit", size=9
    )
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
