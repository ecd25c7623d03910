"""Which cases run, and in which modes of the library."""

import dataclasses
import fnmatch
import importlib

from . import FULL, QUICK, USUAL, hooks, measure, model
from .cover import cases_of
from .row import Case

TABLES = ("elementwise", "reduce", "index", "matmul", "quant", "attention")

# Families with several dispatches a call, which shuffle can put out of order.
CHAINS = (
    *("reduce", "scan", "sort", "masked_scatter", "scatter", "norm_vjp", "matmul"),
    *("attention", "attention_vjp", "conv", "conv_vjp", "fft", "hadamard", "model"),
    *("gather_qmm", "slice_update", "softmax"),
)
# Families in which data goes between host and device in unusual ways: small
# arrays, offsets, donation, updates in place, a cache.
TRANSFERS = (
    *("copy", "cast", "slice_update", "gather", "scatter", "masked_scatter"),
    *("random", "sort", "matmul", "gather_qmm", "softmax", "model"),
)
# On a discrete GPU unified memory is its own, over the bus: the CPU's side of
# these would take minutes there.
NEAR = tuple(f for f in TRANSFERS if f not in ("matmul", "gather_qmm", "model"))


@dataclasses.dataclass(frozen=True)
class Mode:
    """A setting of the library for a whole process. `repeats`: runs of a case in
    one eval, which must agree to the last bit. shares: one case in so many runs,
    by depth."""

    name: str
    about: str
    settings: dict
    repeats: int
    families: tuple | None
    shares: dict
    quick: bool = True

    def id_of(self, case: Case) -> str:
        return f"{case.id}@{self.name}" if self.name else case.id


EVERY = {USUAL: 1, QUICK: 1, FULL: 1}
MODES = [
    Mode("", "as installed", {}, 2, None, EVERY),
    Mode("shuffle", "independent dispatches in a random order, three runs at once",
         {"MLX_VK_DEBUG": "shuffle"}, 3, CHAINS, {USUAL: 2, QUICK: 3, FULL: 1}),
    Mode("unified", "one mapped allocation for an array", {"MLX_VK_MEMORY": "unified"},
         1, NEAR, {USUAL: 3, FULL: 2}, quick=False),
    Mode("discrete", "device memory with host mirrors", {"MLX_VK_MEMORY": "discrete"},
         1, TRANSFERS, {USUAL: 3, FULL: 2}, quick=False),
]  # fmt: skip


def families(depth: str, big: bool) -> dict[str, list[Case]]:
    """Every family's cases, in the order in which they run."""
    found = {}
    for table in TABLES:
        rows = importlib.import_module(f".rows_{table}", __package__).FAMILIES
        for family, list_of_rows in rows.items():
            found[family] = list(cases_of(family, list_of_rows, depth, big))
    found["model"] = model.CASES
    found["measure"] = measure.CASES
    return found


def find(case_id: str, known: dict[str, Case]) -> Case:
    return known[case_id.partition("@")[0]]


def all_cases() -> dict[str, Case]:
    """Every case by its id, those of all depths and devices and the hooks."""
    lists = [hooks.CASES]
    for depth in (FULL, USUAL, QUICK):
        for big in (True, False):
            lists += families(depth, big).values()
    return {case.id: case for cases in lists for case in cases}


def select(depth: str, software: bool) -> list[tuple[Mode, list[Case]]]:
    """Each mode with its cases. Some thousand."""
    found = families(depth, not software and depth != QUICK)
    plan = []
    for mode in MODES:
        if depth == QUICK and not mode.quick:
            continue
        share = mode.shares[depth]
        chosen = []
        for family, cases in found.items():
            if family == "measure" and mode.name:
                continue
            if mode.families is None or family in mode.families:
                chosen += cases[::share]
        plan.append((mode, chosen))
    return plan


def matches(pattern: str, case_id: str) -> bool:
    """A family, an id, or a pattern of ids as a shell has them."""
    return case_id.partition("/")[0] == pattern or fnmatch.fnmatchcase(case_id, pattern)


def matching(patterns: list[str], depth: str, software: bool):
    """The plan, cut down to what matches one of the patterns. For a pattern that
    matches nothing of this plan, cases of other depths and devices and the hooks
    are looked through."""
    planned = {mode.name: cases for mode, cases in select(depth, software)}
    everything = list(all_cases().values())

    def cut(cases, mode, patterns):
        ids = ((case, mode.id_of(case)) for case in cases)
        return [case for case, id in ids if any(matches(p, id) for p in patterns)]

    lost = [
        pattern
        for pattern in patterns
        if not any(cut(planned.get(m.name, ()), m, [pattern]) for m in MODES)
    ]
    found = []
    for mode in MODES:
        cases = cut(planned.get(mode.name, ()), mode, patterns)
        cases += cut(everything, mode, lost)
        if cases:
            found.append((mode, cases))
    return found
