"""Fail when a sample in the documents is not what the tree says.

A fenced block after the line `<!-- from PATH -->` must stand in that file word
for word; a line of `...` in it stands for lines left out.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = re.compile(r"^<!-- from (\S+) -->\n```\w*\n(.*?)^```$", re.DOTALL | re.M)


def check(document: Path, root: Path) -> list[str]:
    text = document.read_text("utf-8")
    failures = []
    for match in SAMPLE.finditer(text):
        number = text.count("\n", 0, match.start()) + 1
        where = f"{document.relative_to(root)}:{number}"
        path = root / match[1]
        if not path.is_file():
            failures.append(f"{where}: there is no file {match[1]}.")
            continue
        source, at = path.read_text("utf-8"), 0
        for part in re.split(r"^\.\.\.\n", match[2], flags=re.M):
            at = source.find(part, at)
            if at < 0:
                failures.append(f"{where}: this sample is not in {match[1]}.")
                break
            at += len(part)
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="holds docs/")
    root = parser.parse_args().root
    failures = [f for d in sorted((root / "docs").glob("*.md")) for f in check(d, root)]
    for failure in failures:
        print(failure, file=sys.stderr)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
