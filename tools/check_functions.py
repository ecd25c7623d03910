"""Fail when a function is too long: 80 lines on the host, 100 in a kernel.

Functions are found by their columns, which clang-format guarantees and kernels
keep: one starts in column 0, or 2 in a class, and ends where a `}` stands in the
column of its start.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMITS = {".cpp": 80, ".h": 80, ".comp": 100, ".glsl": 100}

# What starts no function: other blocks, and a macro's use without a semicolon.
OTHER = re.compile(
    r"\s*(namespace|class|struct|enum|union|extern|using)\b|[A-Z_0-9]+\(.*\)$"
)


def functions(lines: list[str]):
    """Name, first line and length of each function."""
    i = 0
    while i < len(lines):
        begin = i
        if lines[i].startswith("#"):  # a macro may go on in the next lines
            while lines[i].endswith("\\"):
                i += 1
            i += 1
            continue
        start = re.match(r"( {2})?[A-Za-z~\[]", lines[i])
        if not start or OTHER.match(lines[i]):
            i += 1
            continue
        column = start.group(1) or ""
        while i < len(lines) and not re.search(r"[;{}]$|\\$|^#", lines[i]):
            i += 1
        head = " ".join(lines[begin : i + 1])
        named = re.search(r"(\w+)(?= = \[)|([\w~:]+|operator\S+)\s*\(", head)
        templated = re.match(r"\s*template <.*>\s+(struct|class)\b", head)
        i += 1
        if not head.endswith("{") or not named or templated:
            continue
        while i < len(lines) and not lines[i].startswith(column + "}"):
            i += 1
        i += 1
        yield named.group(1) or named.group(2), begin + 1, i - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT)
    root = parser.parse_args().root
    failures = []
    for path in sorted(p for d in ("src", "msl") for p in (root / d).rglob("*")):
        limit = LIMITS.get(path.suffix)
        if limit is None:
            continue
        relative = path.relative_to(root)
        for name, line, size in functions(path.read_text().splitlines()):
            if size <= limit:
                continue
            failures.append(
                f"{relative}:{line}: {name}() has {size} lines; the limit is {limit}."
            )
    for failure in failures:
        print(failure, file=sys.stderr)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
