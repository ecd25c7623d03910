"""tools/check_docs.py finds what is wrong in documents; made pages are up to date."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "check_docs.py"


def run(root: Path, *more: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(TOOL), "--root", str(root), *more]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def tree(tmp_path):
    for folder in ("src/vk", "docs/dev", "docs/lab"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src" / "a.cpp").write_text("int a;\nint b;\nint c;\n")
    (tmp_path / "src" / "vk" / "b.h").write_text("")
    (tmp_path / "docs" / "lab" / "note.md").write_text("# Note\n")
    (tmp_path / "docs" / "lab" / "README.md").write_text("[note](note.md)\n")
    (tmp_path / "docs" / "dev" / "page.md").write_text("# A page, of `code`\n")
    assert run(tmp_path).returncode == 0
    return tmp_path


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
def test_samples(tree, file, sample, wrong):
    block = f"<!-- from {file} -->\n```cpp\n{sample}```\n"
    text = f"A page.\n\n{block}\n```cpp\nfree\n```\n"
    (tree / "docs" / "page.md").write_text(text)
    done = run(tree)
    assert done.returncode == bool(wrong)
    assert wrong in done.stderr
    if wrong:
        assert done.stderr.startswith("docs/page.md:3: ")


@pytest.mark.parametrize(
    "text, wrong",
    [
        ("[x](dev/page.md) [y](https://example.com/z.md)", ""),
        ("[x](dev/page.md#a-page-of-code)", ""),
        ("[x](dev/page.md#nothing)", "no heading #nothing"),
        ("[x](dev/pages.md)", "leads nowhere"),
        ("[x](../src/a.cpp)", "the site has no ../src/a.cpp"),
        ("[x](\nlab/note.md)", "laboratory note"),
        ("see docs/lab/note.md", "laboratory note"),
        (
            "`src/a.cpp`, `a.cpp`, `vk/b.{h,cpp}`, `src/*/b.*`, `b.h:3`",
            "no file vk/b.{h,cpp}",
        ),
        ("`a.{cpp}`, `vk/b.*`, `MLX_VK=0 python src/a.cpp`", ""),
        ("`vk/a.cpp`", "no file vk/a.cpp"),
        ("written in docs/dev/other.md.", "no file docs/dev/other.md"),
        ("```sh\ncat src/none.cpp [x](none.md)\n```", ""),
    ],
)
def test_links_and_names(tree, text, wrong):
    (tree / "docs" / "page.md").write_text(f"# Title\n\n{text}\n")
    done = run(tree)
    assert (done.returncode, wrong in done.stderr) == (bool(wrong), True), done.stderr
    # One line for one mistake, and the line where it is.
    assert done.stderr.count("\n") == bool(wrong)
    assert done.stderr.startswith("docs/page.md:" if wrong else "")


def test_pages_that_sources_name(tree):
    source = tree / "src" / "a.cpp"
    source.write_text("int a;\n// See docs/dev/page.md, docs/dev/none.md.\n")
    done = run(tree)
    assert done.stderr == "src/a.cpp:2: there is no file docs/dev/none.md.\n"


def test_sizes(tree):
    page = tree / "docs" / "page.md"
    page.write_text("| one | two |\n|---|---|\n" + "word " * 90 + "\n")
    (tree / "docs" / "lab" / "note.md").write_text("word " * 1000)
    assert run(tree, "--words", "100").returncode == 0
    page.write_text(page.read_text() * 2)
    assert "words outside of docs/lab" in run(tree, "--words", "100").stderr
    (tree / "docs" / "dev" / "page.md").write_text("x\n" * 251)
    assert "page.md has 251 lines" in run(tree).stderr


def test_notes_are_listed(tree):
    (tree / "docs" / "lab" / "other.md").write_text("# Other\n")
    assert "does not list other.md" in run(tree).stderr


def test_the_index_lists_every_page(tree):
    (tree / "docs" / "index.md").write_text("dev/page\n")
    assert run(tree).returncode == 0
    (tree / "docs" / "dev" / "other.md").write_text("# Other\n")
    assert run(tree).stderr == "docs/index.md does not list dev/other.\n"


def test_performance_is_made_from_the_results(tmp_path):
    tool = [sys.executable, str(ROOT / "tools" / "gen_performance.py")]
    subprocess.run([*tool, "--check"], check=True)
    for name in ("README.md", "docs/performance.md", "docs/performance.svg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    results = tmp_path / "benchmarks" / "results"
    shutil.copytree(ROOT / "benchmarks" / "results", results)
    newest = max(results.glob("*.json"), key=lambda p: p.stem)
    facts = json.loads(newest.read_text())
    facts["rows"][0]["values"][0] = 12345
    newest.write_text(json.dumps(facts))
    there = [*tool, "--root", str(tmp_path)]
    done = subprocess.run([*there, "--check"], capture_output=True, text=True)
    assert done.returncode == 1
    for name in ("README.md", "docs/performance.md", "docs/performance.svg"):
        assert name in done.stdout
    subprocess.run(there, check=True, capture_output=True)
    assert "12,345" in (tmp_path / "README.md").read_text()
    subprocess.run([*there, "--check"], check=True)


def test_command_line_page_is_up_to_date():
    tool = ROOT / "tools" / "gen_commands.py"
    subprocess.run([sys.executable, str(tool), "--check"], check=True)


def test_troubleshooting_has_the_messages_of_the_library():
    """Causes of "MLX runs on the CPU", but for names, as the sources have them."""
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    rows = page.partition("| cause |")[2].partition("\n\n")[0].splitlines()[2:]
    sources = "".join(p.read_text("utf-8") for p in (ROOT / "src" / "vk").glob("*.cpp"))
    text = re.sub(r'"\s+"', "", sources)  # strings that continue on the next line
    names = r"[A-Z]{2,}\w*|llvmpipe|/dev/\S+|Permission denied"
    parts = [
        part.strip()
        for row in rows
        for cause in row.split("|")[1].split(";")
        for part in re.split(names, cause)
    ]
    assert len(rows) == 5 and [p for p in parts if p not in text] == []
