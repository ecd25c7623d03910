"""Every row of the case table, on every dtype, layout and donation."""

import mlx.core as mx
import numpy as np
import pytest

import cases as table

CASES = table.load_cases()
PAIRS = [(case, dtype) for case in CASES for dtype in case.dtypes]


def compare(case, result, want, note):
    got = table.outputs(result)
    mx.eval(got)
    assert len(got) == len(want), note
    for i, (g, w) in enumerate(zip(got, want)):
        dtype = table.dtype_name(g)
        g = table.to_numpy(mx, g)
        w = np.asarray(w)
        where = f"{note}, output {i} {dtype}{g.shape}"
        assert g.shape == w.shape, f"{where}: want the shape {w.shape}"
        rtol, atol = case.tolerance(dtype)
        w = table.rounded(w, dtype)
        if rtol == 0 and atol == 0:
            np.testing.assert_array_equal(g, w, where)
        else:
            np.testing.assert_allclose(g, w, rtol, atol, err_msg=where)


@pytest.mark.parametrize("case, dtype", PAIRS, ids=[f"{c.name}-{d}" for c, d in PAIRS])
def test_case(case, dtype):
    bound = table.bind(case, dtype)
    for layout in case.layouts or (*table.LAYOUTS, "mixed"):
        placed = table.place(mx, bound, layout)
        if placed is None:
            continue
        inputs, values = placed
        note = f"{case.name}, {dtype}, {layout}"
        want = table.expected(mx, case, values)
        with table.describe(note):
            compare(case, case.fn(mx, *inputs), want, note)
            for a, v in zip(inputs, values):
                got, held = table.to_numpy(mx, a), table.rounded(v.values, v.dtype)
                np.testing.assert_array_equal(got, held, f"{note}: input changed")


DONATED = [(c, d) for c, d in PAIRS if c.donate]


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
