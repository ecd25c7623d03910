"""Runs the tests of a package from PyPI that is built on MLX, from the source archive
of the version in packages.toml, and compares what fails with what is expected to.

    run.py NAME --build BUILD        downloads it the first time
    run.py NAME --build BUILD --list  prints the tests that fail, as packages.toml
                                      has them

Ends with `N passed, N failed, N skipped (N expected)`; an expected failure that
passes counts as failed.
"""

import argparse
import fnmatch
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

import tomllib

HERE = Path(__file__).resolve().parent
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]


def packages() -> list[dict]:
    return tomllib.loads((HERE / "packages.toml").read_text())["package"]


def unpacked(package: dict, folder: Path) -> Path:
    name, version = package["name"], package["version"]
    source = folder / f"{name.replace('-', '_')}-{version}"
    if not source.exists():
        print(f"== Fetching {name} {version}", flush=True)
        wanted = folder / f"{name}.txt"
        wanted.write_text(f"{name}=={version} --hash=sha256:{package['sha256']}\n")
        command = [*PIP, "download", "--no-deps", "--no-binary", name]
        command += ["--require-hashes", "-r", str(wanted), "-d", str(folder)]
        subprocess.run(command, check=True)
        shutil.unpack_archive(f"{source}.tar.gz", folder, filter="data")
    return source


def execute(package: dict, source: Path) -> dict[str, str]:
    """Tests, and whether they passed, failed or were skipped."""
    home = source / package.get("home", ".")
    hub = HERE.parent / "kernels"  # hub.py: tests that want a model from one
    env = {
        **os.environ,
        "MLX_VK_FALLBACK": "deny",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": os.pathsep.join([str(home), str(source), str(hub)]),
    }
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "hub"]
        command += ["-p", "no:cacheprovider", "--rootdir", str(source)]
        command += ["--junit-xml", str(report)]
        for test in package.get("left_out", []):
            command.append(f"--ignore={source / test}")
        code = subprocess.run([*command, str(source / "tests")], cwd=source, env=env)
        if not report.exists():
            sys.exit(f"pytest wrote no report and ended with {code.returncode}")
        found = {}
        for case in ET.parse(report).getroot().iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            bad = case.find("failure") is not None or case.find("error") is not None
            skipped = case.find("skipped") is not None
            found[name] = "failed" if bad else "skipped" if skipped else "passed"
        return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("name", choices=[p["name"] for p in packages()])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--list", action="store_true")
    args = parser.parse_args()
    package = next(p for p in packages() if p["name"] == args.name)
    folder = args.build.resolve() / "extras" / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    source = unpacked(package, folder)
    found = execute(package, source)
    if args.list:
        print(*[name for name in found if found[name] == "failed"], sep="\n")
        return 0
    expected = 0
    for row in package.get("expected", []):
        for test in fnmatch.filter(found, row["test"]):
            if found[test] == "passed":
                print(f"{test} passes, but should fail: {row['reason']}")
                found[test] = "failed"
            elif found[test] == "failed":
                found[test] = "expected"
                expected += 1
        if not fnmatch.filter(found, row["test"]):
            print(f"packages.toml: no test is called {row['test']}")
            found[row["test"]] = "failed"
    values = list(found.values())
    for test in [name for name in found if found[name] == "failed"]:
        print("FAILED", test)
    print(
        f"{values.count('passed')} passed, {values.count('failed')} failed, "
        f"{values.count('skipped')} skipped ({expected} expected)"
    )
    return 1 if "failed" in values or "passed" not in values else 0


if __name__ == "__main__":
    sys.exit(main())
