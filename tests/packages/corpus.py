"""The Metal kernels of packages from PyPI through the translator, as the table of
docs/custom-kernels.md has them.

    corpus.py --build BUILD             downloads the packages; compares with the table
    corpus.py --build BUILD --write     writes the table
    corpus.py --build BUILD --only zmlx prints the rows of some, and each refusal

The kernels of a package are what the tests of its archive make (packages.toml), or what
calls.py makes of those in corpus.txt. Nothing runs: kernels return zeros. Each source
is translated and compiled with all arguments that it was called with, for subgroups of
32 and of 8. Ends with `N passed, N failed, N skipped`.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from run import PIP, needs, packages, unpacked

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "custom-kernels.md"
HEAD = "| package | version | kernels | translated | refused |\n"
LIMIT = 900  # seconds of a package's tests
# tests/kernels has all kernels of the one; tests of the other compute for too long.
LEFT_OUT = ("mlx-lm", "mlx-turboquant")


def environment(out: Path, *paths: Path | str) -> dict[str, str]:
    folders = [*paths, HERE, HERE.parent / "kernels"]
    return {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "MLX_VK_METAL_KERNELS": "1",
        "MLXVK_KERNELS": str(out),
        "PYTHONPATH": os.pathsep.join(map(str, folders)),
    }


def of_tests(package: dict, folder: Path, out: Path) -> None:
    source = unpacked(package, folder)
    paths = [source / package.get("home", "."), source, *needs(package, folder)]
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "recorder"]
    command += ["-p", "hub", "-p", "no:cacheprovider", "--rootdir", str(source)]
    for test in package.get("left_out", []):
        command.append(f"--ignore={source / test}")
    # Tests fail, since kernels return zeros.
    subprocess.run(
        [*command, str(source / "tests")],
        cwd=source,
        env=environment(out, *paths),
        stdout=subprocess.DEVNULL,
        timeout=LIMIT,
    )


def installed(folder: Path) -> Path:
    """The folder that has what corpus.txt names."""
    wanted = HERE / "corpus.txt"
    site, note = folder / "corpus", folder / "corpus.txt"
    if not note.exists() or note.read_text() != wanted.read_text():
        print("== Installing", wanted.name, flush=True)
        command = [*PIP, "install", "--no-deps", "--upgrade", "--target", str(site)]
        subprocess.run([*command, "-r", str(wanted)], check=True)
        note.write_text(wanted.read_text())
    return site


def of_calls(name: str, folder: Path, out: Path) -> None:
    command = [sys.executable, str(HERE / "calls.py"), name.replace("-", "_")]
    env = environment(out, installed(folder))
    subprocess.run(command, env=env, check=True, timeout=LIMIT)


def versions() -> dict[str, tuple[str, dict | None]]:
    """Each package's version, and its row of packages.toml if its tests are run."""
    found = {}
    for line in (HERE / "corpus.txt").read_text().splitlines():
        name, _, version = line.partition("  #")[0].partition("==")
        if line and not line.startswith("#") and "library" not in line:
            found[name] = version, None
    for package in packages():
        if package["name"] not in LEFT_OUT:
            found[package["name"]] = package["version"], package
    return dict(sorted(found.items()))


def translated(kernels: list[dict], build: Path, folder: Path) -> dict[int, str]:
    """The error of each kernel that does not translate, or is refused by glslang."""
    file, errors = folder / "kernels.jsonl", {}
    file.write_text("".join(json.dumps(kernel) + "\n" for kernel in kernels))
    for subgroup in ("32", "8"):
        command = [build / "msl_translate", file, "--subgroup", subgroup]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=ROOT, check=True
        )
        for line in done.stdout.splitlines():
            result = json.loads(line)
            if result["error"]:
                errors.setdefault(result["kernel"], result["error"])
    return errors


def distinct(kernels: list[dict]) -> list[dict]:
    seen = {}
    for kernel in kernels:
        key = kernel["header"], kernel["source"]
        kept = seen.setdefault(key, kernel)
        for instance in kernel["instances"] if kept is not kernel else []:
            if instance not in kept["instances"]:
                kept["instances"].append(instance)
    return list(seen.values())


def reason(error: str) -> str:
    """The code that an error quotes, or else what it says."""
    text = error.splitlines()[0]
    quoted = re.search("`[^`]+`", text)
    return (quoted[0] if quoted else text).replace("|", "\\|")


def row(name: str, build: Path, verbose: bool) -> tuple[str, int, int]:
    version, package = versions()[name]
    folder = build / "extras" / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary) / "made.jsonl"
        if package:
            of_tests(package, folder, out)
        else:
            of_calls(name, folder, out)
        made = [json.loads(line) for line in out.read_text().splitlines()]
        kernels = distinct(made)
        errors = translated(kernels, build, Path(temporary))
    why = sorted({reason(error) for error in errors.values()})
    if verbose:
        for i, error in errors.items():
            print(f"{kernels[i]['name']}: {error}")
    count, right = len(kernels), len(kernels) - len(errors)
    text = f"| {name} | {version} | {count} | {right} | {'; '.join(why)} |"
    print(text.replace("|  |", "| |"), flush=True)
    return text.replace("|  |", "| |") + "\n", count, right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", nargs="+", choices=versions(), metavar="PACKAGE")
    args = parser.parse_args()
    build = args.build.resolve()
    rows = [row(name, build, bool(args.only)) for name in args.only or versions()]
    count, right = (sum(r[i] for r in rows) for i in (1, 2))
    share = f"{100 * right / count:.1f} %"
    table = HEAD + "|---|---|---|---|---|\n" + "".join(r[0] for r in rows)
    table += f"| together | | {count} | {right} ({share}) | |\n"
    failed = 0 if right >= 0.98 * count else count - right
    if not args.only:
        text = PAGE.read_text()
        before, rest = text.split(HEAD)
        old = HEAD + rest[: rest.index("\n\n") + 1]
        if args.write:
            PAGE.write_text(before + table + rest[len(old) - len(HEAD) :])
        elif old != table:
            print(f"The table of {PAGE.name} is another: corpus.py --write")
            failed += 1
    print(f"{right} passed, {failed} failed, {count - right - failed} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
