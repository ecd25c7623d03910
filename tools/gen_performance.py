"""Write the performance table and chart from the newest file of benchmarks/results,
which benchmarks/peers/run.py writes.

python tools/gen_performance.py           # README.md, docs/performance.md, the chart
python tools/gen_performance.py --check   # fails if one of them is out of date

A table stands between `<!-- performance: WHAT -->` and `<!-- end -->`, where WHAT is
`all`, `before` (the newest file but one, from another machine), or `short`: a line per
model, as the chart without decoding after 4,096 tokens.
"""

import argparse
import hashlib
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/performance.md")
CHART = Path("docs/performance.svg")
MARKED = re.compile(r"(<!-- performance: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
COLORS = ("#c2410c", "#475569", "#94a3b8")


def results(root: Path) -> list[Path]:
    """The newest file last."""
    files = (root / "benchmarks" / "results").glob("*.json")
    return sorted(files, key=lambda p: p.stem)


def read(root: Path) -> list[dict]:
    return [json.loads(path.read_text("utf-8")) for path in results(root)]


def text_of(value: float | list | None) -> str:
    """Of nothing, one value, the least and the most, or least, median and most."""
    if value is None:
        return "–"
    if not isinstance(value, list):
        return f"{value:,}"
    ends = f"{value[0]:,}–{value[-1]:,}"
    return ends if len(value) == 2 else f"{value[1]:,} ({ends})"


def middle(value: float | list | None) -> str:
    """The median of three values; else all of them."""
    whole = isinstance(value, list) and len(value) == 3
    return text_of(value[1] if whole else value)


def label(row: dict) -> str:
    place = "of" if row["what"] == "prompt" else "after"
    return f"{row['what']} {place} {row['tokens']:,}"


def short(facts: dict) -> list[dict]:
    return [r for r in facts["rows"] if r["tokens"] == 512 or r["what"] == "prompt"]


def short_table(facts: dict) -> list[str]:
    kinds = list(dict.fromkeys(label(row) for row in short(facts)))
    names = " / ".join(engine["name"] for engine in facts["engines"])
    lines = [f"| {facts['unit']}: {names} | {' | '.join(kinds)} |"]
    lines.append("|---" * (len(kinds) + 1) + "|")
    for model in dict.fromkeys(row["model"] for row in facts["rows"]):
        of_model = {label(r): r["values"] for r in short(facts) if r["model"] == model}
        cells = [" / ".join(map(middle, of_model[kind])) for kind in kinds]
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return lines


def full_table(facts: dict) -> list[str]:
    names = [engine["name"] for engine in facts["engines"]]
    lines = [f"| {facts['unit']} | | {' | '.join(names)} |", "|---|---|---:|---:|---:|"]
    last = ""
    for row in facts["rows"]:
        model = row["model"] if row["model"] != last else ""
        last = row["model"]
        cells = [text_of(v) for v in row["values"]]
        lines.append(f"| {model} | {label(row)} | {' | '.join(cells)} |")
    return lines


def table(files: list[dict], part: str) -> str:
    facts = files[-2 if part == "before" else -1]
    lines = short_table(facts) if part == "short" else full_table(facts)
    said = f"{facts['device']}, driver {facts['driver']}. Weights: {facts['weights']}."
    said += f" {versions(facts)}."
    if part == "before":  # weights and other engines are those of the newest file
        said = f"mlx-vulkan {facts['engines'][0]['version']}."
    return "\n".join([*lines, "", said]) + "\n"


def versions(facts: dict) -> str:
    return "; ".join(
        f"{e['name']} {e['version']} ({e['measured']})" for e in facts["engines"]
    )


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def draw(facts: dict, stamp: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "mlx-vulkan", "font.size": 9})
    models = list(dict.fromkeys(row["model"] for row in facts["rows"]))
    rows = short(facts)
    kinds = list(dict.fromkeys(label(row) for row in rows))
    names = [engine["name"] for engine in facts["engines"]]
    size = (3.3 * len(models), 1.5 * len(kinds) + 0.5)
    figure, axes = plt.subplots(len(kinds), len(models), figsize=size)
    for row in rows:
        column = models.index(row["model"])
        axis = axes[kinds.index(label(row))][column]
        ends = [
            (v[0], v[-1]) if isinstance(v, list) else (v or 0, v or 0)
            for v in row["values"]
        ]
        at = range(len(names))
        axis.barh(at, [low for low, _ in ends], color=COLORS)
        spread = [high - low for low, high in ends]
        lows = [low for low, _ in ends]
        axis.barh(at, spread, left=lows, color=COLORS, alpha=0.45)
        for i, value in enumerate(row["values"]):
            axis.annotate(
                text_of(value),
                (ends[i][1], i),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
            )
        axis.set_xlim(0, 1.45 * max(high for _, high in ends))
        axis.set_yticks(at, names if column == 0 else [""] * len(names))
        axis.invert_yaxis()
        axis.set_title(f"{row['model']}, {label(row)}", fontsize=9, loc="left")
        axis.tick_params(length=0)
        axis.set_xticks([])
        for side in ("top", "right", "bottom"):
            axis.spines[side].set_visible(False)
    title = f"{facts['unit']} on {facts['device']}; higher is better, pale: range"
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    figure.supxlabel(f"Driver {facts['driver']}. {versions(facts)}.", fontsize=7)
    figure.tight_layout()
    # The white background keeps the chart readable on dark pages.
    metadata = {"Date": None, "Creator": None, "Description": f"sha256 {stamp}"}
    figure.savefig(path, facecolor="white", metadata=metadata)
    text = path.read_text("utf-8")
    path.write_text(re.sub(r"[ \t]+$", "", text, flags=re.M), "utf-8")


def stale(root: Path) -> list[str]:
    files, newest = read(root), results(root)[-1]
    pages = [page for page in PAGES if rewritten(root / page, files) is not None]
    chart = root / CHART
    if not chart.exists() or f"sha256 {digest(newest)}" not in chart.read_text("utf-8"):
        pages.append(str(CHART))
    return pages


def rewritten(path: Path, files: list[dict]) -> str | None:
    """The page's new text, or nothing if it is as it should be."""
    old = path.read_text("utf-8")
    if not MARKED.search(old):
        raise SystemExit(f"{path} has no `<!-- performance: ... -->`")
    new = MARKED.sub(lambda m: m[1] + table(files, m[2]) + m[3], old)
    return new if new != old else None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=Path, default=ROOT)
    args = parser.parse_args()
    if args.check:
        pages = stale(args.root)
        if pages:
            print(f"{', '.join(pages)}: out of date; run tools/gen_performance.py")
        return bool(pages)
    files, newest = read(args.root), results(args.root)[-1]
    for page in PAGES:
        text = rewritten(args.root / page, files)
        if text is not None:
            (args.root / page).write_text(text, "utf-8")
    draw(files[-1], digest(newest), args.root / CHART)
    print(f"Wrote {', '.join(PAGES)} and {CHART} from {newest.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
