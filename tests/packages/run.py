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
        shutil.unpack_archive(f"{source}.tar.gz", folder)
    return source


def needs(package: dict, folder: Path) -> list[str]:
    """Folders of what its tests import, one a package, so that a change of its
    version installs it anew. Without dependencies: MLX and NumPy are ours."""
    folders = []
    for wanted in package.get("needs", []):
        target = folder / "needs" / wanted
        if not target.exists():
            print(f"== Installing {wanted}", flush=True)
            part = target.with_name(f"{wanted}.part")
            command = [*PIP, "install", "--no-deps", "--upgrade", "--target", str(part)]
            subprocess.run([*command, wanted], check=True)
            part.rename(target)
        folders.append(str(target))
    return folders


def execute(
    package: dict, source: Path, others: list[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Tests, and whether they passed, failed or were skipped; and the errors of
    those that failed."""
    home = source / package.get("home", ".")
    hub = HERE.parent / "kernels"  # hub.py: tests that want a model from one
    env = {
        **os.environ,
        "MLX_VK_FALLBACK": "deny",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": os.pathsep.join([str(home), str(source), str(hub), *others]),
    }
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "hub"]
        command += ["-p", "no:cacheprovider", "--rootdir", str(source)]
        command += ["--junit-xml", str(report)]
        command += ["--hub-skips", str(package.get("hub_skips", 0))]
        if package.get("cpu_is_gpu"):  # tests/kernels
            command += ["-p", "cpu_is_gpu"]
        for test in package.get("left_out", []):
            command.append(f"--ignore={source / test}")
        code = subprocess.run([*command, str(source / "tests")], cwd=source, env=env)
        if not report.exists():
            sys.exit(f"pytest wrote no report and ended with {code.returncode}")
        found, errors = {}, {}
        for case in ET.parse(report).getroot().iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            bad = [*case.iter("failure"), *case.iter("error")]
            errors[name] = "".join(f"{e.get('message')}{e.text}" for e in bad)
            skipped = case.find("skipped") is not None
            found[name] = "failed" if bad else "skipped" if skipped else "passed"
        return found, errors


def on_software() -> bool:
    """In a process of its own, since a device is kept to the end of its process."""
    code = "import mlx.core as mx; print(mx.device_info()['device_name'])"
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return "llvmpipe" in run.stdout


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
    found, errors = execute(package, source, needs(package, folder))
    if args.list:
        print(*[name for name in found if found[name] == "failed"], sep="\n")
        return 0
    expected = 0
    for row in package.get("expected", []):
        if row.get("software") and not on_software():
            continue
        for test in fnmatch.filter(found, row["test"]):
            if found[test] == "passed":
                print(f"{test} passes, but should fail: {row['reason']}")
                found[test] = "failed"
            elif found[test] == "failed" and row.get("error", "") in errors[test]:
                found[test] = "expected"
                expected += 1
        if not fnmatch.filter(found, row["test"]):
            print(f"packages.toml: no test is called {row['test']}")
            found[row["test"]] = "failed"
    for row in package.get("skipped", []):
        tests = [t for t in found if found[t] == "failed" and row["error"] in errors[t]]
        if len(tests) > row["most"]:
            most = f"{len(tests)} tests, at most {row['most']} may"
            print(f"packages.toml: {row['reason']}: {most}")
        else:
            found.update(dict.fromkeys(tests, "skipped"))
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
