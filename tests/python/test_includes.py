"""tools/check_includes.py finds what it is there for."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_includes.py"


@pytest.mark.parametrize(
    "file, line, wrong",
    [
        ("runtime/a.cpp", '#include "pipeline/key.h"', ""),
        ("ops/gemm/a.cpp", '#include "ops/layout.h"', ""),
        ("jit/a.cpp", '#  include "mlx/array.h"', ""),
        ("runtime/a.cpp", '#include "backend/fallback.h"', "may include vk, policy,"),
        ("ops/gemm/a.h", '#include "jit/emit.h"', "src/ops may include"),
        ("io/a.cpp", '#include "jit/emit.h"', "src/io may include"),
        ("vk/a.h", "#include <mlx/array.h>", "free of MLX"),
        ("vk/a.h", '#include "vk.h"', "named by its path"),
        ("glue/a.h", "", "no place in the ladder"),
        ("backend/a.cpp", '#include "versions/a.h"', "src/backend may include"),
        ("versions/a.cpp", '#include "ops/layout.h"', ""),
        ("ops/a.h", '#include "msl/translate.h"', ""),
        ("ops/a.h", '#include "msl/ast.h"', "src/ includes msl/translate.h"),
        ("../msl/a.h", '#include "msl/ast.h"', ""),
        ("../msl/a.h", '#include "vk/vk.h"', "msl/ includes itself"),
    ],
)
def test_includes(tmp_path, file, line, wrong):
    path = tmp_path / "src" / file
    path.parent.mkdir(parents=True)
    path.write_text(f"// A comment.\n{line}\n")
    command = [sys.executable, str(TOOL), "--root", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == bool(wrong)
    assert wrong in done.stderr
    if wrong and line:
        name = f"src/{file}".replace("src/../", "")
        assert done.stderr.startswith(f"{name}:2: ")
