"""In which dtypes and layouts each row of a family runs."""

from collections import Counter
from collections.abc import Iterator

from . import FULL, USUAL
from .row import Case, Row
from .values import FLOATS, LAYOUTS

# Families that have other kernels for 16-bit types, with matrix units.
MATRIX = ("matmul", "addmm", "gather_mm", "segmented_mm", "block_masked_mm", "conv")
MATRIX += ("quantized_matmul", "gather_qmm", "qqmm", "attention")

Pair = tuple[str, str]  # of dtype and layout


def layouts_of(row: Row) -> list[str]:
    return [name for name in LAYOUTS if name in (row.layouts or LAYOUTS)]


def all_pairs(row: Row, index: int) -> list[Pair]:
    """Every dtype contiguous, and every other layout in one dtype, in turn."""
    others = [name for name in layouts_of(row) if name != "contiguous"]
    turns = [
        (row.dtypes[(index + i) % len(row.dtypes)], o) for i, o in enumerate(others)
    ]
    return [(dtype, "contiguous") for dtype in row.dtypes] + turns


def base_pairs(row: Row, index: int, second: bool) -> list[Pair]:
    """What a row runs in by itself: contiguous, in its first dtype, which is the
    most exact one, and in another, which takes turns."""
    first, *others = row.dtypes
    if row.slow:
        return [(row.dtypes[index % len(row.dtypes)], "contiguous")]
    pairs = [(first, "contiguous")]
    if others and second:
        pairs.append((others[index // 3 % len(others)], "contiguous"))
    return pairs


def needed(rows: list[Row], depth: str) -> list[Pair]:
    """What a family must meet: floats in every layout, and every other dtype
    contiguous and in one other layout, in turn (not if quick)."""
    layouts = {}
    for row in rows:
        for dtype in row.dtypes:
            layouts.setdefault(dtype, {}).update(dict.fromkeys(layouts_of(row)))
    pairs = []
    for turn, (dtype, found) in enumerate(layouts.items()):
        names = list(found)
        if len(names) > 2 and dtype not in FLOATS:
            names = ["contiguous", names[1 + turn % (len(names) - 1)]]
        if dtype in FLOATS or depth == USUAL:
            pairs += [(dtype, name) for name in names]
    return pairs


def add_missing(chosen: list[dict], rows: list[Row], depth: str) -> None:
    """What the rows by themselves do not meet is given to those that compile least
    for it: first such as run in the dtype anyway."""
    met = {pair for pairs in chosen for pair in pairs}
    load = Counter()
    for dtype, layout in needed(rows, depth):
        if (dtype, layout) in met:
            continue

        def cost(i, dtype=dtype):
            new = all(dtype != own for own, _ in chosen[i])
            return rows[i].big, load[i] + 3 * new + 3 * rows[i].slow, i

        able = [
            i
            for i, row in enumerate(rows)
            if dtype in row.dtypes and layout in layouts_of(row)
        ]
        best = min(able, key=cost)
        chosen[best][dtype, layout] = None
        load[best] += 1


def cases_of(family: str, rows: list[Row], depth: str, big: bool) -> Iterator[Case]:
    """The cases of a family, in the order of its rows."""
    rows = [r for r in rows if (big or not r.big) and (depth == FULL or not r.rare)]
    chosen = []
    for i, row in enumerate(rows):
        if depth == FULL:
            pairs = all_pairs(row, i)
        else:
            second = depth == USUAL and (i % 3 == 0 or family in MATRIX)
            pairs = base_pairs(row, i, second)
        chosen.append(dict.fromkeys(pairs))
    if depth != FULL:
        add_missing(chosen, rows, depth)
    for row, pairs in zip(rows, chosen):
        for dtype, layout in pairs:
            yield Case(family, row.name, row, dtype, layout)
