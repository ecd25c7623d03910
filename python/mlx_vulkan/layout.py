"""Text of at most 100 columns for people, with hanging indents."""

import re
import sys
import textwrap

WIDTH = 100


def wrapped(text: str, first: str, rest: str) -> str:
    """Wraps text between words only, so that a path can be copied."""
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def field(label: str, value: str, indent: int = 2) -> None:
    """Prints `label     value`, the value in a column of its own."""
    head = f"{'':{indent}}{label:<10} "
    print(wrapped(value, head, " " * len(head)) if value else head.rstrip())


def paragraph(mark: str, text: str) -> None:
    """Prints text behind a mark. Each line starts a new one; its continuations hang
    behind its first column if two spaces end that."""
    indent = " " * len(mark)
    for i, line in enumerate(text.split("\n")):
        column = re.match(r"\S.*?  +", line)
        hang = indent + " " * (len(column[0]) if column else 0)
        print(wrapped(line, indent if i else mark, hang))


def heading(text: str) -> None:
    bold = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    print(f"\n{bold[0]}{text}{bold[1]}")
