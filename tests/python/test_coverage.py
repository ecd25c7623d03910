"""The list of `mlx-vulkan coverage` has every primitive of MLX."""

import json
import os
import re
from importlib import metadata
from pathlib import Path

from mlx_vulkan import coverage

ROOT = Path(__file__).resolve().parents[2]

# No probe, since no array of theirs is computed alone.
NOT_PROBED = {
    "BroadcastAxes": "what mx.vmap makes of Broadcast",
    "Custom": "the base of mx.fast's primitives",
    "CustomKernel": "the second part of docs/dev/coverage.md",
    "CustomTransforms": "passes its inputs on",
    "Copy": "passes its input on",
    "Load": "reads a file, on a CPU stream",
    "StopGradient": "passes its input on",
    "GatedDeltaUpdateVJP": "its forward pass has a row",
    "UnaryPrimitive": "a base",
}


def test_every_primitive_is_probed():
    build = Path(os.environ.get("MLXVK_BUILD", ROOT / "build"))
    source = Path((build / "mlx_source_dir.txt").read_text().strip())
    names = set()
    for header in ("primitives.h", "fast_primitives.h"):
        text = (source / "mlx" / header).read_text()
        pattern = (
            r"^class (?:MLX_API )?(\w+) : public (?:UnaryPrimitive|Primitive|Custom)"
        )
        names |= set(re.findall(pattern, text, re.M))
    assert len(names) > 100
    probed = {p for row in coverage.probes().values() for p in row}
    assert names - probed == set(NOT_PROBED) & names
    assert probed <= names
    every = {p for family in coverage.FAMILIES.values() for p in family()}
    newest = json.loads((ROOT / "third_party" / "mlx.json").read_text())["newest"]
    if metadata.version("mlx") == newest:
        assert every == probed
        assert set(NOT_PROBED) <= names


def test_a_cpu_that_ends_its_process_has_an_answer(monkeypatch):
    cpu = coverage.Cpu()
    assert cpu.attempt("Two arrays", "Add", "float32") is None
    assert "[floor] " in cpu.attempt("One array", "Floor", "complex64")
    monkeypatch.setattr(coverage, "attempt_on_cpu", end_process)
    assert cpu.attempt("Two arrays", "Add", "float32") == "MLX ends the process"
    monkeypatch.undo()
    assert cpu.attempt("Two arrays", "Add", "float32") is None


def end_process(*probe):
    os.abort()


def test_page_is_of_these_primitives():
    page = (ROOT / "docs" / "dev" / "coverage.md").read_text()
    for family in coverage.FAMILIES.values():
        for primitive in family():
            assert f"\n| {primitive} |" in page, (
                f"{primitive} is not in docs/dev/coverage.md: run tools/gen_coverage.py"
            )


def test_progress_is_shown(capsys):
    todo = [("A", "Abs", None), ("A", "Add", None), ("B", "Sort", None)]
    assert list(coverage.tracked(todo)) == todo
    said = capsys.readouterr()
    assert said.err == "trying: A\ntrying: B\n" and said.out == ""
