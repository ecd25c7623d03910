"""Which planned kernel variants no test executes.

    run_tests.py --full --names FOLDER     runs tiers; notes the kernels of each step
    check_plans.py FOLDER ...              compares them with what plans choose

`driver_compile table` names the variants of all devices of tests/variants. They
are combinations of a few values of each define: each value of each kernel must be
executed in some variant, on some driver. tests/variants/unexecuted.toml lists those
that the emulated AMD chips' case tables and families do not execute, and what does.
"""

import argparse
import fnmatch
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tests" / "variants" / "unexecuted.toml"
# A line of MLX_VK_DEBUG=select: what | accesses | words | place kernel | why
KERNEL = re.compile(r"^\d+ [a-z][^|]*\|[^|]*\|[^|]*\| \d+ (\S+\{[^}]*\}) \|")

Values = dict[str, set[str]]


def kernel_of(line: str) -> str | None:
    found = KERNEL.match(line)
    return found[1] if found else None


def split(name: str) -> tuple[str, list[str]]:
    kernel, _, defines = name.partition("{")
    return kernel, defines.rstrip("}").split()


def values_of(names: set[str]) -> Values:
    found: Values = defaultdict(set)
    for name in names:
        kernel, defines = split(name)
        found[kernel].update(defines)
    return found


def form(name: str) -> tuple:
    """The kernel and its defines without values: a line that processes have written
    into each other has none that is planned."""
    kernel, defines = split(name)
    return (kernel, *(d.partition("=")[0] for d in defines))


def listed(values: Values) -> tuple[dict[tuple[str, str], str], list[str]]:
    """Reasons by kernel and value, and entries that match none; "*" stands for any
    part of a name or value."""
    found: dict[tuple[str, str], str] = {}
    stale = []
    for entry in tomllib.loads(LIST.read_text("utf-8"))["unexecuted"]:
        for kernel, patterns in entry["kernels"].items():
            for pattern in patterns.split():
                same = {
                    (name, value): entry["reason"]
                    for name in fnmatch.filter(values, kernel)
                    for value in fnmatch.filter(values[name], pattern)
                }
                found |= same
                stale += [] if same else [f"{LIST.name}: no {kernel} has {pattern}"]
    return found, stale


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("folders", nargs="+", type=Path, metavar="folder")
    args = parser.parse_args()
    program = str(args.build.resolve() / "driver_compile")
    table = subprocess.run([program, "table"], capture_output=True, check=True).stdout
    planned = {name for names in json.loads(table).values() for name in names}
    forms = {form(name) for name in planned}
    run = {
        name
        for folder in args.folders
        for file in folder.iterdir()
        for name in file.read_text("utf-8").splitlines()
        if form(name) in forms
    }
    values, executed = values_of(planned), values_of(run)
    reasons, problems = listed(values)
    missing = {(k, v) for k in values for v in values[k] - executed[k]}
    problems += [
        f"{k}: nothing executes {v}, and {LIST.name} gives no reason"
        for k, v in missing - reasons.keys()
    ]
    print(*sorted(problems), sep="\n", end="\n" if problems else "")
    total = sum(len(v) for v in values.values())
    print(
        f"{len(planned)} variants are planned, {len(planned & run)} of them executed; "
        f"of their {total} values {total - len(missing)}, {len(missing)} not"
    )
    print(f"{total - len(problems)} passed, {len(problems)} failed, 0 skipped")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
