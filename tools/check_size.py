"""Fail when a file has more than 800 lines, or the library more than its limit; print
the size of each part."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 800
# Lines of src/ and msl/ without tests. Raised only with a reason in the commit.
LIBRARY = 77_379
SUFFIXES = {".cpp", ".h", ".comp", ".glsl", ".py", ".cmake", ".sh", ".md", ".txt"}


def files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode == 0:
        names = (ROOT / line for line in listed.stdout.splitlines())
    else:  # a source archive without .git
        names = (
            p
            for part in ("src", "msl", "tests", "tools", "python", "benchmarks", "docs")
            for p in (ROOT / part).rglob("*")
        )
    return sorted(p for p in names if p.suffix in SUFFIXES and p.is_file())


def in_library(path: Path) -> bool:
    code = path.suffix in (".cpp", ".h", ".comp", ".glsl")
    tests = path.parts[:2] == ("msl", "tests")
    return code and path.parts[0] in ("src", "msl") and not tests


def main() -> None:
    totals: Counter[str] = Counter()
    failures = []
    library = 0
    for path in files():
        with open(path, encoding="utf-8") as file:
            lines = sum(1 for _ in file)
        relative = path.relative_to(ROOT)
        part = relative.parts[0] if len(relative.parts) > 1 else "."
        if part == "src":
            part = "/".join(relative.parts[:2])
        totals[part] += lines
        library += lines if in_library(relative) else 0
        if lines > LIMIT:
            failures.append(f"{relative} has {lines} lines; the limit is {LIMIT}.")
    if library > LIBRARY:
        failures.append(f"src/ and msl/ have {library} lines; the limit is {LIBRARY}.")
    for part, lines in sorted(totals.items()):
        print(f"{lines:8} {part}")
    print(f"{library:8} of src/ and msl/ without tests")
    print(f"{sum(totals.values()):8} total")
    for failure in failures:
        print(failure, file=sys.stderr)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
