"""Every row of the case table, on every dtype, layout and donation."""

import os

import mlx.core as mx
import pytest

from mlx_vulkan import cases as table
from mlx_vulkan import native

FULL = os.environ.get("MLX_VK_TEST_FULL") == "1"

CASES = table.load_cases(table.is_software(mx), table.has_float64(mx))
FEW = ("contiguous", "mixed")  # of float64's rows
PAIRS = [
    (case, dtype)
    for case in CASES
    for dtype in case.dtypes
    if FULL or dtype != "float64" or "sizes" not in case.tags
]


@pytest.mark.parametrize("case, dtype", PAIRS, ids=[f"{c.name}-{d}" for c, d in PAIRS])
def test_case(case, dtype):
    bound = table.bind(case, dtype)
    before = native.counters()["fallbacks"]
    few = dtype == "float64" and not FULL
    for layout in case.layouts or (*table.LAYOUTS, "mixed"):
        if few and layout not in FEW:
            continue
        placed = table.place(mx, bound, layout)
        if placed is None:
            continue
        inputs, values = placed
        want = table.expected(mx, case, values)
        with table.describe(f"{case.name}, {dtype}, {layout}"):
            got = table.outputs(case.fn(mx, *inputs))
            mx.eval(got)
            table.check(mx, case, got, want, values, inputs)
    assert dtype != "float64" or native.counters()["fallbacks"] == before


DONATED = [(c, d) for c, d in PAIRS if c.donate and c.repeatable]
DONATED = [(c, d) for c, d in DONATED if FULL or d != "float64"]


@pytest.mark.parametrize(
    "case, dtype", DONATED, ids=[f"{c.name}-{d}" for c, d in DONATED]
)
def test_donation_changes_no_bit(case, dtype):
    inputs, _ = table.place(mx, table.bind(case, dtype), "contiguous")
    kept = table.outputs(case.fn(mx, *inputs))
    mx.eval(kept)
    donated = table.outputs(case.fn(mx, *[table.as_temporary(mx, a) for a in inputs]))
    mx.eval(donated)
    for i, (k, d) in enumerate(zip(kept, donated)):
        assert table.bits(mx, k) == table.bits(mx, d), f"output {i}"
