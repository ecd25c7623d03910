#!/usr/bin/env python3
"""Draw N comments of src/ and msl/ at random, for readers who judge them: SEED [N]

A comment is a block of `//` lines, or one after code. Seed and tree fix the draw.
"""

import random
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Strings and characters first, so that a `//` in them begins no comment.
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])*\'|(//.*)')


def comments(path: Path) -> list[tuple[str, str]]:
    found, open_block = [], False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = next((m for m in TOKEN.finditer(line) if m[1]), None)
        whole = match is not None and not line[: match.start(1)].strip()
        if match and whole and open_block:
            found[-1] = (found[-1][0], f"{found[-1][1]}\n    {match[1]}")
        elif match and not line.startswith("} //"):
            found.append((f"{path.relative_to(ROOT)}:{number}", line.strip()))
        open_block = whole
    return found


def main() -> None:
    suffixes = {".cpp", ".h", ".comp", ".glsl"}
    files = sorted(
        p
        for part in ("src", "msl")
        for p in (ROOT / part).rglob("*")
        if p.suffix in suffixes
    )
    every = [c for path in files for c in comments(path)]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    for place, text in random.Random(sys.argv[1]).sample(every, count):
        print(f"{place}\n    {text}")


if __name__ == "__main__":
    main()
