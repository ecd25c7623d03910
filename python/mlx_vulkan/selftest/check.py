"""A check of the self-test, and how it runs: a case of the table in one dtype and
layout, compared with its oracle.

The id of a check, `family/name-dtype-layout`, with the seed, says everything of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from .. import cases
from ..cases import SHORT, WrongValues, bits, outputs

# A layout: contiguous temporaries, which may be overwritten.
DONATED = "donated"


@dataclasses.dataclass(frozen=True)
class Check:
    """Runs a case, or `work(seed)`, which returns facts for the report or raises."""

    family: str
    name: str
    case: cases.Case | None = None
    dtype: str = ""
    layout: str = ""
    work: Callable | None = None

    @property
    def id(self) -> str:
        short = SHORT.get(self.dtype, self.dtype)
        words = [self.name, short, self.layout]
        return f"{self.family}/" + "-".join(word for word in words if word)


def placed(mx, check: Check, seed: int) -> tuple[list, list[cases.Bound]]:
    """Inputs and their values; contiguous if the layout does not apply."""
    bound = cases.bind(check.case, check.dtype, seed)
    layout = "contiguous" if check.layout == DONATED else check.layout
    return cases.place(mx, bound, layout) or cases.place(mx, bound, "contiguous")


def run(mx, check: Check, seed: int, repeats: int) -> dict:
    """Runs a check `repeats` times in one eval, so that the repeats overlap on the
    device; returns facts for the report. Raises WrongValues or what MLX throws."""
    if check.work:
        return check.work(seed) or {}
    case = check.case
    inputs, bound = placed(mx, check, seed)
    want = cases.expected(mx, case, bound)
    results = []
    for _ in range(repeats):
        if check.layout == DONATED:
            temporaries = [cases.as_temporary(mx, a) for a in inputs]
            results.append(outputs(case.fn(mx, *temporaries)))
            del temporaries
        else:
            results.append(outputs(case.fn(mx, *inputs)))
    mx.eval(results)
    cases.check(mx, case, results[0], want, bound, inputs)
    if case.repeatable:
        same_bits(mx, results)
    return {}


def same_bits(mx, results: list) -> None:
    first = [bits(mx, a) for a in results[0]]
    for n, other in enumerate(results[1:], 2):
        for i, a in enumerate(other):
            if bits(mx, a) != first[i]:
                raise WrongValues(
                    f"output {i} of run {n} differs from that of run 1, bit for bit: "
                    "a race, or a barrier is missing"
                )


def describe(check: Check, seed: int) -> dict:
    """Shapes, dtypes and layout of a check, for the report."""
    if check.case is None:
        return {}
    items = cases.bind(check.case, check.dtype, seed)
    return {
        "inputs": [f"{item.dtype}{list(item.values.shape)}" for item in items],
        "dtype": check.dtype,
        "layout": check.layout,
    }
