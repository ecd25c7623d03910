"""Run one case on the GPU and compare it with the CPU."""

import numpy as np

from .row import EPS, Case, Input, inputs_of, on_cpu, place
from .values import bits, dtype_name, outputs, rounded, to_mx, to_numpy


class WrongValues(Exception):
    """The result of a case is not what it should be."""


def expected(mx, case: Case, inputs: list[Input]) -> list[np.ndarray]:
    want = case.row.want
    if callable(want):
        with np.errstate(all="ignore"):
            values = [rounded(item.values, item.dtype) for item in inputs]
            return [np.asarray(x) for x in outputs(want(*values))]
    wider = {"wide": "float64", "single": "float32", "same": None}[want]
    with on_cpu(mx):
        placed = []
        for item in inputs:
            widen = wider and item.free and item.dtype in ("float16", "bfloat16")
            widen = widen or (wider == "float64" and item.dtype == "float32")
            if not widen:
                placed.append(to_mx(mx, item.values, item.dtype))
                continue
            x = rounded(item.values, item.dtype)
            placed.append(mx.array(x, dtype=getattr(mx, wider)))
        found = outputs(case.row.fn(mx, *placed))
        mx.eval(found)
        return [to_numpy(mx, a) for a in found]


def compare(got: np.ndarray, want: np.ndarray, dtype: str, bound, label: str) -> None:
    """Raises WrongValues that names the largest error, where and how much."""
    if got.shape != want.shape:
        raise WrongValues(f"{label} has the shape {got.shape}, not {want.shape}")
    if got.dtype.kind != want.dtype.kind:
        raise WrongValues(f"{label} is {got.dtype}, where the CPU has {want.dtype}")
    exact = bound is None or dtype not in EPS
    relative, absolute = (0.0, 0.0) if exact else bound.of(dtype)
    with np.errstate(all="ignore"):
        same = (got == want) | ((got != got) & (want != want))
        if exact:
            bad = ~same
            error = allowed = None
        else:
            error = np.where(same, 0.0, np.abs(got - want))
            allowed = absolute + relative * np.abs(want)
            finite = np.isfinite(want) & np.isfinite(got)
            bad = ~same & ~(finite & (error <= allowed))
    if not bad.any():
        return
    first = np.unravel_index(np.argmax(bad), bad.shape)
    where = [int(i) for i in first]
    text = (
        f"{label}: {int(bad.sum())} of {bad.size} values are wrong; the first at "
        f"{where} is {got[first]!s}, not {want[first]!s}"
    )
    if exact:
        raise WrongValues(text + " (must be equal)")
    worst = float(np.max(np.where(np.isfinite(error), error, 0)))
    raise WrongValues(
        f"{text}; largest error {worst:.3g}, allowed here {float(allowed[first]):.3g} "
        f"({relative:.2g} of the value + {absolute:.2g})"
    )


def run(mx, case: Case, seed: int, repeats: int) -> dict:
    """Runs a case `repeats` times in one eval, so that the repeats overlap on the
    device; returns facts for the report. Raises WrongValues or what MLX throws."""
    if case.work:
        return case.work(seed) or {}
    inputs = inputs_of(case, seed)
    want = expected(mx, case, inputs)
    placed = [place(mx, item, case.layout) for item in inputs]
    if case.layout == "donated":
        # Temporaries of its own for each repeat.
        again = [[place(mx, i, case.layout) for i in inputs] for _ in range(repeats)]
        placed = []
    else:
        again = [placed] * repeats
    results = []
    while again:
        results.append(outputs(case.row.fn(mx, *again.pop())))
    mx.eval(results)
    for i, (got, right) in enumerate(zip(results[0], want, strict=True)):
        dtype = dtype_name(got)
        label = f"output {i} ({dtype} {tuple(got.shape)})"
        compare(to_numpy(mx, got), right, dtype, case.row.bound, label)
    if case.row.repeatable:
        same_bits(mx, results)
    for item, a in zip(inputs, placed):
        held = rounded(item.values, item.dtype)
        if not np.array_equal(to_numpy(mx, a), held, equal_nan=held.dtype.kind in "fc"):
            raise WrongValues("an input was overwritten")
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


def describe(case: Case, seed: int) -> dict:
    """Shapes, dtypes and layout of a case, for the report."""
    if case.row is None:
        return {}
    items = inputs_of(case, seed)
    return {
        "inputs": [f"{item.dtype}{list(item.values.shape)}" for item in items],
        "dtype": case.dtype,
        "layout": case.layout,
    }
