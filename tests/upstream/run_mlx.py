"""Runs MLX's own test suites, from the locked source, on this backend.

    python tests/upstream/run_mlx.py cpp            # mlx_cpp_tests
    python tests/upstream/run_mlx.py python [-k EXPRESSION] [FILES]

Run it with the Python that has the backend installed. Expected failures stand
in xfail.txt, and they are strict: one that passes is a failure. Tests that race
with themselves stand in races.txt and may fail; those of slow.txt are skipped on
the devices it names. Tests that MLX marks for Metal alone run too, with
mx.metal.is_available true while their decorators are evaluated; metal.txt has
those that cannot. The last line of either command is a summary; the exit code
is 0 if nothing failed.
"""

import argparse
import ast
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from importlib import metadata

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def device_name(device):
    """The name of the device that the tests will run on, then the settings of the
    backend that are in force: MLX_VK_MEMORY=discrete and the like."""
    if device == "cpu":
        return "cpu"
    code = (
        "import mlx.core as mx\n"
        "assert mx.is_available(mx.gpu), 'mx.gpu is not available'\n"
        "print(mx.device_info(mx.gpu)['device_name'])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    if result.returncode != 0:
        sys.exit(
            "MLX finds no GPU device to test. Set MLX_VK_DEVICE=cpu for the "
            f"software device, or pass --device cpu.\n{result.stderr}"
        )
    settings = [f"{k}={v}" for k, v in os.environ.items() if k.startswith("MLX_VK_")]
    return " ".join([result.stdout.strip().splitlines()[-1], *sorted(settings)])


def expected_failures(name, path=HERE / "xfail.txt"):
    """Test id -> reason, of the lines that apply to the device `name`.

    A line is `device test_id  # reason`. The device is `any`, `gpu` (any but
    the CPU), or a part of what device_name() says, in any case; after an @ come the
    versions of MLX, separated by commas, if it is not all. The id is
    file.py::Class::test or cpp::name_of_the_case, where * matches anything.
    """
    mlx = metadata.version("mlx")
    expected = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = re.fullmatch(r"(\S+)\s+(\S+)\s+#\s*(.+)", line.strip())
        if not match:
            sys.exit(f"{path}:{number}: want `device test_id  # reason`")
        device, test, reason = match.groups()
        device, _, versions = device.partition("@")
        if versions and mlx not in versions.split(","):
            continue
        gpu = device == "gpu" and name != "cpu"
        if device == "any" or gpu or device.lower() in name.lower():
            expected[test] = reason
    return expected


def build_dir(args):
    return pathlib.Path(args.build or ROOT / "build").resolve()


def mlx_source(args):
    if args.mlx_source:
        return pathlib.Path(args.mlx_source)
    note = build_dir(args) / "mlx_source_dir.txt"
    if not note.exists():
        sys.exit(f"{note} is missing: configure the build, or pass --mlx-source.")
    return pathlib.Path(note.read_text().strip())


def summary(suite, passed, failed, skipped, xfailed):
    print(
        f"{suite}: {passed} passed, {failed} failed, {skipped} skipped "
        f"({xfailed} expected failures)"
    )
    return 0 if failed == 0 and passed > 0 else 1


def run_doctest(binary, arguments, env, timeout, quiet=False):
    """Returns passed, failed; a crash or a hang counts as one failure."""
    try:
        result = subprocess.run(
            [binary, *arguments],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout,
        )
        output, code = result.stdout, result.returncode
    except subprocess.TimeoutExpired as e:
        output = (e.stdout or b"").decode(errors="replace")
        output += f"\nstopped after {timeout} s"
        code = 1
    match = re.search(r"test cases:\s*\d+ \|\s*(\d+) passed \|\s*(\d+) failed", output)
    if not match:
        print(output)
        print(f"{binary} ended without a summary (exit code {code})")
        return 0, 1
    passed, failed = int(match[1]), int(match[2])
    if (failed or code != 0) and not quiet:
        print(output)
    # A crash at exit is a failure too.
    return passed, failed if failed or code == 0 else 1


def run_cpp(args):
    binary = args.binary or build_dir(args) / "tests/upstream/mlx_cpp_tests"
    if not pathlib.Path(binary).exists():
        sys.exit(f"{binary} is missing: build the target mlx_cpp_tests.")
    name = device_name(args.device)
    print(f"mlx_cpp_tests on {name}", flush=True)
    env = dict(os.environ, MLX_ENABLE_TF32="0")
    env.pop("DEVICE", None)
    if args.device == "cpu":
        env["DEVICE"] = "cpu"
    expected = [
        test.removeprefix("cpp::").replace("_", "?")
        for test in expected_failures(name)
        if test.startswith("cpp::")
    ]
    runs = [["-sfe=*linalg_tests.cpp"]]
    if args.only:
        runs[0].append(f"-tc={args.only}")
    if expected:
        runs[0].append("-tce=" + ",".join(e.replace(",", "\\,") for e in expected))
    passed = failed = 0
    for arguments in runs * args.repeat:
        p, f = run_doctest(binary, arguments, env, args.timeout)
        passed, failed = passed + p, failed + f
    if not args.only:
        # Linear algebra does not exist on any GPU.
        cpu = dict(env, DEVICE="cpu")
        p, f = run_doctest(binary, ["-sf=*linalg_tests.cpp"], cpu, args.timeout)
        passed, failed = passed + p, failed + f
        for test in expected:
            p, f = run_doctest(binary, [f"-tc={test}"], env, args.timeout, quiet=True)
            if p > 0 or f == 0:
                print(f"expected to fail, but passed: {test}")
                failed += 1
    return summary("upstream cpp", passed, failed, 0, len(expected))


# Placed beside the copied tests: expected failures become strict xfail marks,
# and a failing subtest fails its test (reports of subtests know no marks).
CONFTEST = """
import contextlib
import json
import os
import pathlib
import unittest

import mlx.core as mx
import pytest


@contextlib.contextmanager
def subtest(self, msg=None, **parameters):
    try:
        yield
    except BaseException as e:
        e.add_note(f"in subtest {msg or ''} {parameters}")
        raise


unittest.TestCase.subTest = subtest

EXPECTED = json.loads(os.environ["MLX_UPSTREAM_XFAIL"])
RACES = json.loads(os.environ["MLX_UPSTREAM_RACES"])
SLOW = json.loads(os.environ["MLX_UPSTREAM_SLOW"])
ONLY = json.loads(os.environ["MLX_UPSTREAM_ONLY"])
METAL = json.loads(os.environ["MLX_UPSTREAM_METAL"])

available = mx.metal.is_available


# Decorators are evaluated as test modules are imported.
@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    if isinstance(collector, pytest.Module):
        mx.metal.is_available = lambda: True
    try:
        return (yield)
    finally:
        mx.metal.is_available = available


@pytest.fixture(autouse=True)
def metal_in_the_body(request):
    # Some tests ask again for which backend to write their kernel.
    if METAL.get(name_of(request.node)) == "body":
        mx.metal.is_available = lambda: True
    yield
    mx.metal.is_available = available


def name_of(item):
    parts = item.nodeid.split("::")
    return "::".join([pathlib.PurePath(parts[0]).name, *parts[1:]])


def pytest_collection_modifyitems(items):
    kept = []
    for item in items:
        name = name_of(item)
        if METAL.get(name, "body") != "body":
            item.add_marker(pytest.mark.skip(reason="for Metal: " + METAL[name]))
        if name in EXPECTED:
            item.add_marker(pytest.mark.xfail(reason=EXPECTED[name], strict=True))
        if name in RACES:
            item.add_marker(pytest.mark.xfail(reason=RACES[name], strict=False))
        if name in SLOW:
            item.add_marker(pytest.mark.skip(reason="slow here: " + SLOW[name]))
        if not ONLY or name in ONLY:
            kept.append(item)
    items[:] = kept
"""


def marked_tests(source, words):
    """Names of the tests with `words` in a decorator, or in their class's."""
    for path in sorted(source.glob("test_*.py")):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.ClassDef):
                continue
            for test in node.body:
                marks = [*node.decorator_list, *getattr(test, "decorator_list", [])]
                if any(words in ast.unparse(mark) for mark in marks):
                    if getattr(test, "name", "").startswith("test"):
                        yield f"{path.name}::{node.name}::{test.name}"


def metal_rules(path=HERE / "metal.txt"):
    """Test id -> "body", or the reason why it is skipped."""
    rules = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = re.fullmatch(r"(body|skip)\s+(\S+)\s+#\s*(.+)", line.strip())
        if not match:
            sys.exit(f"{path}:{number}: want `body|skip test_id  # reason`")
        rules[match[2]] = "body" if match[1] == "body" else match[3]
    return rules


def run_python(args):
    source = mlx_source(args) / "python" / "tests"
    name = device_name(args.device)
    expected = {
        test: reason
        for test, reason in expected_failures(name).items()
        if not test.startswith("cpp::")
    }
    slow = expected_failures(name, HERE / "slow.txt")
    only = list(slow) if args.slow else []
    if args.metal:
        rules = metal_rules()
        only = list(marked_tests(source, "metal.is_available"))
        only += [test for test, rule in rules.items() if rule == "body"]
    if args.torch:
        only = list(marked_tests(source, "has_torch"))
    env = dict(
        os.environ,
        DEVICE=args.device,
        MLX_ENABLE_TF32="0",
        MLX_ENABLE_CACHE_THRASHING_CHECK="0",
        MLX_UPSTREAM_XFAIL=json.dumps(expected),
        MLX_UPSTREAM_RACES=json.dumps(expected_failures(name, HERE / "races.txt")),
        MLX_UPSTREAM_SLOW=json.dumps({} if args.slow else slow),
        MLX_UPSTREAM_ONLY=json.dumps(only),
        MLX_UPSTREAM_METAL=json.dumps(metal_rules()),
        PYTHONDONTWRITEBYTECODE="1",
    )
    # MLX's tests skip some cases where this is set.
    env.pop("CI", None)
    print(f"MLX's Python tests on {name}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        tests = pathlib.Path(folder) / "tests"
        shutil.copytree(source, tests, ignore=shutil.ignore_patterns("__pycache__"))
        (tests / "conftest.py").write_text(CONFTEST)
        if args.device == "gpu":
            # MLX refuses linear algebra on GPUs, so its tests name the CPU.
            linalg = tests / "test_linalg.py"
            text = linalg.read_text()
            linalg.write_text(text.replace("stream=mx.cpu", "stream=mx.gpu"))
        report = pathlib.Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-rfEX", "--tb=short"]
        command += ["-p", "no:cacheprovider", f"--junitxml={report}"]
        command += ["-o", "faulthandler_timeout=900"]
        command += ["--rootdir", str(tests)]
        if args.workers > 1:
            command += ["-n", str(args.workers)]
        if args.k:
            command += ["-k", args.k]
        command += args.files
        try:
            subprocess.run(command, cwd=tests, env=env, timeout=args.timeout)
        except subprocess.TimeoutExpired:
            print(f"stopped after {args.timeout} s")
        if not report.exists():
            return summary("upstream python", 0, 1, 0, 0)
        if args.report:
            shutil.copy(report, args.report)
        counts = dict(passed=0, failed=0, skipped=0, xfailed=0)
        for case in ET.parse(report).getroot().iter("testcase"):
            skip = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                counts["failed"] += 1
            elif skip is not None:
                xfail = skip.get("type") == "pytest.xfail"
                counts["xfailed" if xfail else "skipped"] += 1
            else:
                counts["passed"] += 1
    return summary("upstream python", **counts)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--device", default="gpu", choices=["gpu", "cpu"])
    common.add_argument("--build", help="build folder (default: build)")
    common.add_argument("--timeout", type=int, default=3600, help="seconds")
    commands = parser.add_subparsers(dest="command", required=True)
    cpp = commands.add_parser("cpp", parents=[common])
    cpp.add_argument("--binary", help="mlx_cpp_tests (default: in the build)")
    cpp.add_argument("--only", help="doctest name filter")
    cpp.add_argument("--repeat", type=int, default=1)
    python = commands.add_parser("python", parents=[common])
    python.add_argument("--mlx-source", help="MLX source tree")
    python.add_argument("--workers", type=int, default=2)
    python.add_argument("--report", help="keep the JUnit report here")
    python.add_argument("-k", help="pytest's -k")
    python.add_argument("--slow", action="store_true", help="those of slow.txt alone")
    python.add_argument(
        "--metal", action="store_true", help="those that MLX marks for Metal alone"
    )
    python.add_argument(
        "--torch", action="store_true", help="those that compare with PyTorch"
    )
    python.add_argument("files", nargs="*")
    args = parser.parse_args()
    sys.exit(run_cpp(args) if args.command == "cpp" else run_python(args))


if __name__ == "__main__":
    main()
