"""tools/check_overrides.py finds what replaces a function of MLX unseen."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("src/overrides", "cmake", "docs/dev/upstream.md", "README.md")


def check(root: Path) -> str:
    command = [sys.executable, str(ROOT / "tools/check_overrides.py")]
    done = subprocess.run(
        [*command, "--root", str(root)], capture_output=True, text=True
    )
    assert done.returncode == bool(done.stderr)
    return done.stderr


@pytest.fixture
def tree(tmp_path):
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / part, tmp_path / part)
    (tmp_path / "CMakeLists.txt").write_text("project(x)\n")
    return tmp_path


def test_the_tree_is_in_order(tree):
    assert check(tree) == ""


RENAME = "mlxvk_override(new.cpp MLX random FUNCTIONS bits)\n"
LEFT_OUT = (
    'set_property(SOURCE "${MLX_SOURCE_DIR}/mlx/random.cpp"\n'
    "             PROPERTY COMPILE_DEFINITIONS a=b)\n"
)


@pytest.mark.parametrize(
    "file, old, new, wrong",
    [
        ("cmake/overrides.cmake", "", RENAME, "src/overrides/new.cpp is not there"),
        ("cmake/overrides.cmake", "", RENAME, "replaces ['bits'], docs"),
        ("cmake/overrides.cmake", "eval async_eval", "eval", "says ['async_eval',"),
        ("cmake/mlx.cmake", "", LEFT_OUT, "cmake/mlx.cmake:"),
        ("src/overrides/new.cpp", "", "// Replaces bits().", "new.cpp is not in"),
        ("src/overrides/ring.cpp", "// Replaces ", "// ", "first line has to be"),
        ("src/overrides/ring.cpp", "init()", "it", "does not name init"),
        ("docs/dev/upstream.md", "## Distributed groups", "## D", "has no section"),
        ("src/overrides/ring.cpp", "upstream.md,", "up.md,", "has to cite"),
        ("README.md", "24 of MLX's", "15 of MLX's", "`24 of MLX's functions`"),
        ("src/ops/a.cpp", "", "int f_of_mlx();", "src/ops/a.cpp:1: "),
        ("src/ops/a.h", "", "\n\nnamespace std {", "src/ops/a.h:3: "),
        ("src/jit/a.cpp", "", '#include "mlx/fast.cpp"', "src/jit/a.cpp:1: "),
    ],
)
def test_what_is_found(tree, file, old, new, wrong):
    path = tree / file
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text() if path.exists() else ""
    assert old in text
    path.write_text(text.replace(old, new) if old else text + new)
    assert wrong in check(tree)
