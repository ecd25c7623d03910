"""The list of `mlx-vulkan coverage` has every primitive of MLX."""

import os
import re
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
    probed = {p for family in coverage.FAMILIES.values() for p in family()}
    assert names - probed == set(NOT_PROBED) & names
    assert probed <= names


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
