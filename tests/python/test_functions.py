"""tools/check_functions.py finds what it is there for."""

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_functions.py"


def body(lines):
    return "\n".join(["    if (x) {", "    }"] + ["    work();"] * (lines - 2))


HEADS = {
    "free.cpp": ("int free(int a) {", "}"),
    "wrapped.cpp": ("template <typename T>\nA::A(\n    int a)\n    : b{a} {", "}"),
    "member.h": ("class A {\n  int member() const {", "  }\n};"),
    "lambda.cpp": ("auto f = [](int a) {", "};"),
    "kernel.comp": ("#define LONG(x)  \\\n  x {\nITEM(int)\nvoid main() {", "}"),
}


@pytest.mark.parametrize("file", HEADS)
def test_functions(tmp_path, file):
    head, end = HEADS[file]
    limit = 100 if file.endswith(".comp") else 80
    # Not counted: what stands before the function's first line, or after it.
    before = {"member.h": 1, "kernel.comp": 3}.get(file, 0)
    own = len(head.splitlines()) - before + 1
    folder = tmp_path / "src"
    folder.mkdir()
    for more in (0, 1):
        text = f"// A comment.\n{head}\n{body(limit - own + more)}\n{end}\n"
        (folder / file).write_text(text)
        command = [sys.executable, str(TOOL), "--root", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == more, done.stderr
        if more:
            line = f"src/{file}:{2 + before}: "
            assert done.stderr.startswith(line)
            assert f"has {limit + 1} lines; the limit is {limit}." in done.stderr


def test_other_blocks_are_none(tmp_path):
    (tmp_path / "src").mkdir()
    text = "struct A {\n" + "  int a(1);\n" * 200 + "};\n"
    text += "const int b[] = {\n" + "    f(1),\n" * 200 + "};\n"
    (tmp_path / "src" / "a.cpp").write_text(text)
    command = [sys.executable, str(TOOL), "--root", str(tmp_path)]
    assert subprocess.run(command).returncode == 0
