"""tools/check_docs.py finds samples that are not in the tree."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_docs.py"


@pytest.mark.parametrize(
    "file, sample, wrong",
    [
        ("src/a.cpp", "int a;\nint b;\n", ""),
        ("src/a.cpp", "int a;\n...\nint c;\n", ""),
        ("src/a.cpp", "int c;\n...\nint a;\n", "not in src/a.cpp"),
        ("src/a.cpp", "int a; \n", "not in src/a.cpp"),
        ("src/b.cpp", "int a;\n", "no file src/b.cpp"),
    ],
)
def test_samples(tmp_path, file, sample, wrong):
    for folder in ("src", "docs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "src" / "a.cpp").write_text("int a;\nint b;\nint c;\n")
    block = f"<!-- from {file} -->\n```cpp\n{sample}```\n"
    text = f"A page.\n\n{block}\n```cpp\nfree\n```\n"
    (tmp_path / "docs" / "page.md").write_text(text)
    command = [sys.executable, str(TOOL), "--root", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == bool(wrong)
    assert wrong in done.stderr
    if wrong:
        assert done.stderr.startswith("docs/page.md:3: ")
