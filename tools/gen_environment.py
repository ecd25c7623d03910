"""Write the tables of settings from the library's own.

python tools/gen_environment.py           # writes them
python tools/gen_environment.py --check   # fails if one is out of date

A table stands between `<!-- settings: NAME ... -->` and `<!-- end -->` in
docs/configuration.md and docs/dev/all-settings.md; `others` stands for the names that
docs/configuration.md does not list.
"""

import argparse
import re
import sys
from pathlib import Path

from mlx_vulkan import native

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = (DOCS / "configuration.md", DOCS / "dev" / "all-settings.md")
MARKED = re.compile(r"(<!-- settings: ([^>]*) -->\n).*?(<!-- end -->)", re.DOTALL)


def others(names) -> list[str]:
    listed = MARKED.search(PAGES[0].read_text("utf-8"))[2].split()
    return [name for name in names if name not in listed]


def table(names: str) -> str:
    entries = {entry["name"]: entry for entry in native.report()["config"]}
    rows = ["| name | default | meaning |\n|---|---|---|\n"]
    for name in others(entries) if names == "others" else names.split():
        entry = entries[name]
        default = f"`{entry['default']}`" if entry["default"] else ""
        meaning = entry["description"].replace("|", "\\|")
        rows.append(f"| `{name}` | {default} | {meaning} |\n")
    return "".join(rows)


def rewritten(page: Path) -> str:
    text, count = MARKED.subn(
        lambda m: m[1] + table(m[2]) + m[3], page.read_text("utf-8")
    )
    if not count:
        raise SystemExit(f"{page} has no `<!-- settings: ... -->`")
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if not native.is_vulkan():
        print(*native.problems(), sep="\n", file=sys.stderr)
        return 1
    failed = False
    for page in PAGES:
        text = rewritten(page)
        if text == page.read_text("utf-8"):
            continue
        if args.check:
            failed = True
            print(f"{page.name} is out of date: run tools/gen_environment.py")
        else:
            page.write_text(text, "utf-8")
    return failed


if __name__ == "__main__":
    sys.exit(main())
