"""Fail when something takes the place of one of MLX's functions unseen.

The calls of mlxvk_override() in cmake/overrides.cmake, the files of src/overrides and
the table of docs/dev/upstream.md must name the same functions:

- A file of src/overrides is in a call, or is the header of one that is. Its first
  line, `// Replaces ...`, names the functions, and its head cites a section of
  docs/dev/upstream.md that is there.
- README.md and docs/dev/upstream.md say how many there are.
- Nothing else in cmake/ and src/ renames MLX's functions, includes its .cpp files or
  adds to namespace std.
"""

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEYWORDS = ("MLX", "FUNCTIONS", "HEADER", "LEFT_OUT")
CALL = re.compile(r"^mlxvk_override\(([^)]*)\)", re.MULTILINE)
COUNT = re.compile(r"(\d+) of\s+MLX's\s+functions")
CITED = re.compile(r'docs/dev/upstream\.md, "([^"]+)"')
# How a function of MLX can be replaced elsewhere than in src/overrides.
ELSEWHERE = {
    ".cmake": r"^[^#\n]*(?:_of_mlx|-include\b|COMPILE_DEFINITIONS)",
    ".txt": r"^[^#\n]*(?:_of_mlx|-include\b|COMPILE_DEFINITIONS)",
    ".h": r'^\s*#\s*include\s*["<]mlx/[^">]*\.cpp|_of_mlx\b|^\s*namespace std\b',
}
ELSEWHERE[".cpp"] = ELSEWHERE[".h"]

# src/versions has the parameters of those that differ between versions of MLX.
MAY_REPLACE = {
    ("src", "overrides"),
    ("src", "versions"),
    ("cmake", "overrides.cmake"),
}

# (our file, MLX's file): names of functions
Table = dict[tuple[str, str], set[str]]


def calls(text: str) -> tuple[Table, set[str]]:
    """What overrides.cmake replaces, and the files of src/overrides it names."""
    table: Table = {}
    files = set()
    for match in CALL.finditer(text):
        ours, *words = match[1].split()
        found, keyword = defaultdict(list), ""
        for word in words:
            if word in KEYWORDS:
                keyword = word
            else:
                found[keyword].append(word)
        files |= {ours, *found["HEADER"]}
        functions = {word.partition("=")[0] for word in found["FUNCTIONS"]}
        for file in found["MLX"]:
            table[ours, file] = functions
    return table, files


def documented(text: str) -> Table:
    table: Table = {}
    for line in re.findall(r"^\| `.*$", text, re.MULTILINE):
        ours, files, functions = (
            re.findall(r"`([^`]+)`", cell) for cell in line.split("|")[1:4]
        )
        for file in files:
            table[ours[0], file] = set(functions)
    return table


def head(text: str) -> list[str]:
    lines = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        lines.append(line[2:].strip())
    return lines


def check_file(path: Path, functions: set[str], headings: set[str]) -> list[str]:
    lines = head(path.read_text("utf-8")) or [""]
    failures = []
    if not lines[0].startswith("Replaces "):
        failures.append("the first line has to be `// Replaces ...: why`.")
    for name in sorted(functions):
        if not re.search(rf"\b{name}\b", " ".join(lines)):
            failures.append(f"the head does not name {name}.")
    cited = CITED.findall(" ".join(lines))
    if not cited:
        failures.append('the head has to cite docs/dev/upstream.md, "...".')
    for section in cited:
        if section not in headings:
            failures.append(f'docs/dev/upstream.md has no section "{section}".')
    return failures


def check_elsewhere(root: Path) -> list[str]:
    files = [root / "CMakeLists.txt"]
    files += [p for d in ("cmake", "src") for p in sorted((root / d).rglob("*"))]
    failures = []
    for path in files:
        relative = path.relative_to(root)
        if relative.parts[:2] in MAY_REPLACE:
            continue
        pattern = ELSEWHERE.get(path.suffix)
        if not pattern or not path.is_file():
            continue
        text = path.read_text("utf-8")
        for match in re.finditer(pattern, text, re.MULTILINE):
            line = text.count("\n", 0, match.end()) + 1
            failures.append(
                f"{relative}:{line}: what replaces a function of MLX belongs in "
                "src/overrides and cmake/overrides.cmake."
            )
    return failures


def check(root: Path) -> list[str]:
    cmake, named = calls((root / "cmake/overrides.cmake").read_text("utf-8"))
    page = (root / "docs/dev/upstream.md").read_text("utf-8")
    headings = set(re.findall(r"^## (.+)$", page, re.MULTILINE))
    folder = root / "src/overrides"
    failures = []
    for path in sorted(folder.iterdir()):
        if path.name not in named | {Path(n).with_suffix(".h").name for n in named}:
            failures.append(f"src/overrides/{path.name} is not in overrides.cmake.")
    of_file = defaultdict(set)
    for (name, _), functions in cmake.items():
        of_file[name] |= functions
    for name, functions in sorted(of_file.items()):
        if not (folder / name).is_file():
            failures.append(f"src/overrides/{name} is not there.")
            continue
        for failure in check_file(folder / name, functions, headings):
            failures.append(f"src/overrides/{name}: {failure}")
    table = documented(page)
    for row in sorted(cmake.keys() | table.keys()):
        built, told = cmake.get(row, set()), table.get(row, set())
        if built != told:
            failures.append(
                f"{row[0]} and MLX's {row[1]}: overrides.cmake replaces "
                f"{sorted(built)}, docs/dev/upstream.md says {sorted(told)}."
            )
    count = sum(map(len, of_file.values()))
    for name in ("README.md", "docs/dev/upstream.md"):
        told = COUNT.findall((root / name).read_text("utf-8"))
        if told != [str(count)]:
            failures.append(f"{name} has to say `{count} of MLX's functions` once.")
    return failures + check_elsewhere(root)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="holds src/")
    failures = check(parser.parse_args().root)
    for failure in failures:
        print(failure, file=sys.stderr)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
