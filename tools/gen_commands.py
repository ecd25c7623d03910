"""Write docs/command-line.md from `--help` of the mlx-vulkan command.

python tools/gen_commands.py           # writes it
python tools/gen_commands.py --check   # fails if a word of --help is not on the page

The check ignores layout, which differs between versions of Python.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "command-line.md"
COMMANDS = (
    "",
    "doctor",
    "selftest",
    "report",
    "run",
    "bench",
    "bench ops",
    "bench model",
    "bench compare",
    "bench roofline",
    "tune",
    "profile",
    "cache",
    "cache warm",
    "coverage",
)
HEAD = """# Command line

<!-- written by tools/gen_commands.py -->

`pip install mlx-vulkan` installs the command `mlx-vulkan`. MLX does not need it: it
uses the GPU by itself.
"""


def help_of(command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mlx_vulkan", *command.split(), "--help"],
        env={**os.environ, "COLUMNS": "88"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.rstrip() + "\n"


def page() -> str:
    parts = [HEAD]
    for command in COMMANDS:
        name = f"mlx-vulkan {command}".strip()
        parts.append(f"\n## `{name}`\n\n```text\n{help_of(command)}```\n")
    return "".join(parts)


def words(text: str) -> set[str]:
    # A name that is broken at its hyphen is joined again.
    text = re.sub(r"-\n\s+(?=\w)", "-", text)
    return set(re.findall(r"[\w-]+", text))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        PAGE.write_text(page(), "utf-8")
        return 0
    old = PAGE.read_text("utf-8") if PAGE.exists() else ""
    for command in COMMANDS:
        name = f"mlx-vulkan {command}".strip()
        section = old.partition(f"## `{name}`\n")[2].partition("\n## ")[0]
        there = words(section.partition("```text\n")[2])
        wanted = words(help_of(command))
        if there != wanted:
            different = ", ".join(sorted(there ^ wanted)[:8])
            print(f"{PAGE.name} is out of date ({name}: {different})")
            print("Run tools/gen_commands.py")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
