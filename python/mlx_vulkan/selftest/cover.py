"""Chooses the dtypes and layouts in which the cases of a family run."""

from collections import Counter
from collections.abc import Iterator

from .. import cases
from ..cases import FLOATS
from . import FULL, USUAL
from .check import DONATED, Check

# Cases of a family that the usual run takes, evenly drawn.
DRAWN = 42

# Families that have other kernels for 16-bit types, with matrix units.
MATRIX = ("matmul", "addmm", "gather_mm", "segmented_mm", "block_masked_mm", "conv")
MATRIX += ("quantized_matmul", "gather_qmm", "qqmm", "sdpa")

Pair = tuple[str, str]  # of dtype and layout


def layouts_of(case: cases.Case) -> list[str]:
    own = [name for name in cases.LAYOUTS if name in (case.layouts or cases.LAYOUTS)]
    return [*own, DONATED] if case.donate else own


def all_pairs(case: cases.Case, index: int) -> list[Pair]:
    """Every dtype contiguous, and every other layout in one dtype, in turn."""
    others = [name for name in layouts_of(case) if name != "contiguous"]
    turns = [
        (case.dtypes[(index + i) % len(case.dtypes)], o) for i, o in enumerate(others)
    ]
    return [(dtype, "contiguous") for dtype in case.dtypes] + turns


def base_pairs(case: cases.Case, index: int, second: bool) -> list[Pair]:
    """The pairs of a single case: contiguous, in float32 if it can, the most exact
    dtype, and in another one, which takes turns."""
    first = "float32" if "float32" in case.dtypes else case.dtypes[0]
    others = [dtype for dtype in case.dtypes if dtype != first]
    pairs = [(first, "contiguous")]
    if others and second:
        pairs.append((others[index // 3 % len(others)], "contiguous"))
    return pairs


def needed(family: list[cases.Case], depth: str) -> list[Pair]:
    """The pairs that a family must meet: floats in every layout, and every other dtype
    contiguous and in one other layout, in turn (not if quick)."""
    layouts = {}
    for case in family:
        for dtype in case.dtypes:
            layouts.setdefault(dtype, {}).update(dict.fromkeys(layouts_of(case)))
    pairs = []
    for turn, (dtype, found) in enumerate(layouts.items()):
        names = list(found)
        if len(names) > 2 and dtype not in FLOATS:
            names = ["contiguous", names[1 + turn % (len(names) - 1)]]
        if dtype in FLOATS or depth == USUAL:
            pairs += [(dtype, name) for name in names]
    return pairs


def add_missing(chosen: list[dict], family: list[cases.Case], depth: str) -> None:
    """Gives pairs that no case has yet to the cases that compile least for them: first
    to those that run in the dtype anyway."""
    met = {pair for pairs in chosen for pair in pairs}
    load = Counter()
    for dtype, layout in needed(family, depth):
        if (dtype, layout) in met:
            continue

        def cost(i, dtype=dtype):
            new = all(dtype != own for own, _ in chosen[i])
            return family[i].big, load[i] + 3 * new, i

        able = [
            i
            for i, case in enumerate(family)
            if dtype in case.dtypes and layout in layouts_of(case)
        ]
        best = min(able, key=cost)
        chosen[best][dtype, layout] = None
        load[best] += 1


def checks_of(name: str, family: list[cases.Case], depth: str) -> Iterator[Check]:
    """The checks of a family, in the order of its cases."""
    if depth != FULL:
        family = family[:: -(-len(family) // DRAWN)]
    chosen = []
    for i, case in enumerate(family):
        if depth == FULL:
            pairs = all_pairs(case, i)
        else:
            second = depth == USUAL and (i % 3 == 0 or name in MATRIX)
            pairs = base_pairs(case, i, second)
        chosen.append(dict.fromkeys(pairs))
    if depth != FULL:
        add_missing(chosen, family, depth)
    for case, pairs in zip(family, chosen):
        for dtype, layout in pairs:
            yield Check(name, case.name, case, dtype, layout)
