"""Chooses the checks that run, and the modes of the library."""

import dataclasses
import fnmatch
from functools import cache

from .. import cases
from . import FULL, QUICK, USUAL, hooks, measure, model
from .check import Check
from .cover import checks_of

# Families with several dispatches per call, which shuffle can put out of order.
CHAINS = (
    *("reduce", "scan", "sort", "masked_scatter", "scatter", "norm_vjp", "matmul"),
    *("sdpa", "sdpa_vjp", "conv", "conv_vjp", "fft", "hadamard", "linalg", "model"),
    *("gather_qmm", "slice_update", "softmax"),
)
# Families in which data goes between host and device in unusual ways: small
# arrays, offsets, donation, updates in place, a cache.
TRANSFERS = (
    *("copy", "cast", "slice_update", "gather", "scatter", "masked_scatter"),
    *("random", "sort", "matmul", "gather_qmm", "softmax", "model"),
)
# On a discrete GPU, unified memory is device memory behind the bus, where the CPU's
# side of other families would take minutes.
NEAR = tuple(f for f in TRANSFERS if f not in ("matmul", "gather_qmm", "model"))


@dataclasses.dataclass(frozen=True)
class Mode:
    """A setting of the library for a whole process. `repeats`: runs of a case in one
    eval, which must agree to the last bit. shares: one case in so many runs, by
    depth."""

    name: str
    about: str
    settings: dict
    repeats: int
    families: tuple | None
    shares: dict
    quick: bool = True

    def id_of(self, check: Check) -> str:
        return f"{check.id}@{self.name}" if self.name else check.id


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


@cache
def families(depth: str, software: bool) -> dict[str, list[Check]]:
    """Every family's checks, in the order in which they run."""
    table = {}
    for case in cases.load_cases(software):
        table.setdefault(case.family, []).append(case)
    found = {name: list(checks_of(name, of, depth)) for name, of in table.items()}
    found["model"] = model.CHECKS
    found["measure"] = measure.CHECKS
    return found


def find(check_id: str, known: dict[str, Check]) -> Check:
    return known[check_id.partition("@")[0]]


def all_checks() -> dict[str, Check]:
    """Every check by its id, those of all depths and devices and the hooks."""
    lists = [hooks.CHECKS]
    for depth in (FULL, USUAL, QUICK):
        for software in (True, False):
            lists += families(depth, software).values()
    return {check.id: check for checks in lists for check in checks}


def select(depth: str, software: bool) -> list[tuple[Mode, list[Check]]]:
    """Each mode with its checks, some thousand in all."""
    found = families(depth, software or depth == QUICK)
    plan = []
    for mode in MODES:
        if depth == QUICK and not mode.quick:
            continue
        share = mode.shares[depth]
        chosen = []
        for family, checks in found.items():
            if family == "measure" and mode.name:
                continue
            if mode.families is None or family in mode.families:
                chosen += checks[::share]
        plan.append((mode, chosen))
    return plan


def matches(pattern: str, check_id: str) -> bool:
    """Whether a check matches: by family, id, or a shell pattern of ids."""
    return check_id.partition("/")[0] == pattern or fnmatch.fnmatchcase(
        check_id, pattern
    )


def matching(patterns: list[str], depth: str, software: bool):
    """The plan, cut down to what matches one of the patterns. For a pattern that
    matches nothing of this plan, checks of other depths and devices and the hooks
    are looked through."""
    planned = {mode.name: checks for mode, checks in select(depth, software)}
    everything = list(all_checks().values())

    def cut(checks, mode, patterns):
        ids = ((check, mode.id_of(check)) for check in checks)
        return [check for check, id in ids if any(matches(p, id) for p in patterns)]

    lost = [
        pattern
        for pattern in patterns
        if not any(cut(planned.get(m.name, ()), m, [pattern]) for m in MODES)
    ]
    found = []
    for mode in MODES:
        checks = cut(planned.get(mode.name, ()), mode, patterns)
        checks += cut(everything, mode, lost)
        if checks:
            found.append((mode, checks))
    return found
