"""Fail when the documents say what the tree does not.

- A fenced block after the line `<!-- from PATH -->` must stand in that file word for
  word; a line of `...` in it stands for lines left out.
- Relative links must lead to a file, and `#anchors` to a heading. Pages of the site
  (docs/ without docs/lab) link to no file outside of docs/, and docs/index.md, if it
  is there, lists every one of them.
- Pages that other files of the tree name must be there.
- Files that are named must be in the tree: in `code`, also by patterns and without the
  first folders of their paths; elsewhere, if they begin with a folder of the tree.
- Nothing outside of docs/lab cites a note of docs/lab, and docs/lab/README.md lists
  every note.
- docs/ without docs/lab has at most WORDS words, a page of docs/dev at most LINES
  lines; pages that tools write have no limit of lines.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORDS, LINES = 23_750, 250
SAMPLE = re.compile(r"^<!-- from (\S+) -->\n```\w*\n(.*?)^```$", re.DOTALL | re.M)
FENCED = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.M)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?\s*\)")
CODE = re.compile(r"`([^`\n]+)`")
SUFFIXES = "md|py|sh|cpp|h|hpp|c|comp|glsl|toml|json|jsonl|cmake|yml|txt|png|svg"
NAME = re.compile(rf"[\w.*{{,}}/<>-]+\.(?:{SUFFIXES}|\*|\{{[\w,]+\}})")
PLAIN = re.compile(
    rf"(?<![\w/.])(?:docs|src|msl|tests|tools)/[\w./-]+\.(?:{SUFFIXES})\b"
)
FOLDERS = ("src", "msl", "tests", "tools", "docs", "benchmarks", "python", "cmake")
FOLDERS += ("examples", "third_party", ".github")
# Files that are made, or belong to a user or to another project.
MADE = re.compile(
    r"^(build|dist|\.venv|data|adapters|~|/)|mlx-vulkan-selftest|mlx/|\w+\.jsonl"
)
TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
WRITTEN = re.compile(r"written by tools/|Written by `make|<!-- settings: others -->")


def pages(root: Path) -> list[Path]:
    there = [root / name for name in TOP if (root / name).exists()]
    return there + sorted((root / "docs").rglob("*.md"))


def is_lab(page: Path, root: Path) -> bool:
    return page.is_relative_to(root / "docs" / "lab")


def line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def blanked(text: str) -> str:
    """Without fenced blocks, every line where it was."""
    return FENCED.sub(lambda m: "\n" * m[0].count("\n"), text)


def samples(text: str, root: Path) -> Iterator[tuple[int, str]]:
    for match in SAMPLE.finditer(text):
        number = line(text, match.start())
        path = root / match[1]
        if not path.is_file():
            yield number, f"there is no file {match[1]}."
            continue
        source, at = path.read_text("utf-8"), 0
        for part in re.split(r"^\.\.\.\n", match[2], flags=re.M):
            at = source.find(part, at)
            if at < 0:
                yield number, f"this sample is not in {match[1]}."
                break
            at += len(part)


@cache
def anchors(page: Path) -> set[str]:
    found = set()
    for heading in re.findall(r"^#+ (.+)$", blanked(page.read_text("utf-8")), re.M):
        words = re.sub(r"[^\w\- ]", "", heading.lower())
        found.add(words.strip().replace(" ", "-"))
    return found


def links(text: str, page: Path, root: Path) -> Iterator[tuple[int, str]]:
    plain, docs = blanked(text), root / "docs"
    on_site = page.is_relative_to(docs) and not is_lab(page, root)
    for match in LINK.finditer(plain):
        target, _, anchor = match[1].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        path = (page.parent / target).resolve() if target else page
        number = line(plain, match.start(1))
        if not path.exists():
            yield number, f"the link {match[1]} leads nowhere."
        elif on_site and not path.is_relative_to(docs):
            yield number, f"the site has no {match[1]}; name the file without a link."
        elif anchor and anchor not in anchors(path):
            yield number, f"{path.name} has no heading #{anchor}."


def alternatives(name: str) -> list[str]:
    """a.{h,cpp} is two names; <x> stands for anything."""
    name = re.sub(r"<[^>]*>", "*", name)
    match = re.search(r"\{([^}]*)\}", name)
    if not match:
        return [name]
    parts = match[1].split(",")
    return [name[: match.start()] + part + name[match.end() :] for part in parts]


@cache
def tree(root: Path) -> list[str]:
    """Paths of all files, each with a slash before it."""
    files = [f for folder in FOLDERS for f in (root / folder).rglob("*")]
    return ["/" + str(f.relative_to(root)) for f in [*files, *root.glob("*.*")]]


def exists(name: str, root: Path) -> bool:
    pattern = re.escape("/" + name.lstrip("/")).replace(r"\*", "[^/]*")
    ends = re.compile(pattern + "$")
    return any(ends.search(path) for path in tree(root))


def names(text: str, page: Path, root: Path) -> Iterator[tuple[int, str]]:
    plain = blanked(text)
    for code in CODE.finditer(plain):
        for word in re.split(r"[\s=()\"']+|,(?![^{]*\})", code[1]):
            if not NAME.fullmatch(word) or MADE.search(word) or "://" in word:
                continue
            if "/" not in word and word != code[1]:
                continue  # what a command writes, say
            if not all(exists(name, root) for name in alternatives(word)):
                yield line(plain, code.start()), f"there is no file {word}."
    for match in PLAIN.finditer(CODE.sub(lambda m: " " * len(m[0]), plain)):
        if not (root / match[0]).exists() and not (page.parent / match[0]).exists():
            yield line(plain, match.start()), f"there is no file {match[0]}."
    for match in re.finditer(r"(?:docs/)?lab/[\w-]+\.md", plain):
        if is_lab(page, root):
            break
        number = line(plain, match.start())
        yield number, f"{match[0]} is a laboratory note; say what it shows."


def unlisted(root: Path) -> Iterator[str]:
    index = root / "docs" / "lab" / "README.md"
    if index.exists():
        text = index.read_text("utf-8")
        for note in sorted(index.parent.glob("*.md")):
            if note != index and f"({note.name})" not in text:
                yield f"docs/lab/README.md does not list {note.name}."


def not_on_site(root: Path) -> Iterator[str]:
    index = root / "docs" / "index.md"
    if index.exists():
        listed = index.read_text("utf-8").split()
        for page in sorted(index.parent.rglob("*.md")):
            name = str(page.relative_to(index.parent).with_suffix(""))
            if page != index and not is_lab(page, root) and name not in listed:
                yield f"docs/index.md does not list {name}."


def citations(root: Path) -> Iterator[str]:
    """Pages that sources, tools and templates name."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".md", ".png", ".svg") or not path.is_file():
                continue
            for number, text in enumerate(
                path.read_text("utf-8", "ignore").split("\n")
            ):
                for name in re.findall(r"\bdocs/[\w./-]+\.md\b", text):
                    if not (root / name).exists() and path.name != "test_docs.py":
                        where = f"{path.relative_to(root)}:{number + 1}"
                        yield f"{where}: there is no file {name}."


def sizes(root: Path, limit: int) -> Iterator[str]:
    total = 0
    for page in sorted((root / "docs").rglob("*.md")):
        if is_lab(page, root):
            continue
        text = page.read_text("utf-8")
        # What tables are drawn with are no words.
        total += sum(bool(re.search(r"\w", word)) for word in text.split())
        lines = text.count("\n")
        made = WRITTEN.search(text)
        if page.parent.name == "dev" and lines > LINES and not made:
            yield f"{page.relative_to(root)} has {lines} lines, of at most {LINES}."
    if total > limit:
        yield f"docs/ has {total:,} words outside of docs/lab, of at most {limit:,}."


def check(page: Path, root: Path) -> list[str]:
    text = page.read_text("utf-8")
    found = [*samples(text, root), *links(text, page, root)]
    found += names(text, page, root)
    where = page.relative_to(root)
    return [f"{where}:{number}: {failure}" for number, failure in sorted(found)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="holds docs/")
    parser.add_argument("--words", type=int, default=WORDS)
    args = parser.parse_args()
    root = args.root.resolve()
    failures = [failure for page in pages(root) for failure in check(page, root)]
    failures += [*citations(root), *unlisted(root), *not_on_site(root)]
    failures += sizes(root, args.words)
    for failure in failures:
        print(failure, file=sys.stderr)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
