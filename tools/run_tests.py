"""Run the test tiers and end with `N passed, N failed, N skipped`.

    run_tests.py                 every tier once, in its main mode
    run_tests.py --full          every tier in every mode
    run_tests.py backend model   some tiers (with --full: in every mode)
    run_tests.py --names FOLDER  also notes the kernels of each step (check_plans.py)

Output goes to the terminal as it comes; counts come from each tool's own
report. Where there is no GPU the tiers run on lavapipe.
"""

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

import tomllib
from check_plans import kernel_of

from common import choose_device, doctor

ROOT = Path(__file__).resolve().parent.parent
WORKERS = str(min(os.cpu_count() or 2, 4))


@dataclass
class Step:
    """One process of a tier, and how its result is counted."""

    tier: str
    name: str
    command: list[str]
    count: str  # exit, junit, doctest or summary
    env: dict[str, str] = field(default_factory=dict)
    timeout: int = 3000
    repeat: int = 1  # processes, one after the other


@dataclass
class Result:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    note: str = ""
    output: str = ""  # of what failed, its end

    def __iadd__(self, other: "Result") -> "Result":
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.note = self.note or other.note
        self.output = self.output or other.output
        return self

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def python(*words: str) -> list[str]:
    return [sys.executable, *words]


def pytest(*words: str, workers: bool = True) -> list[str]:
    command = python("-m", "pytest", "-q", "--tb=short", "-rf")
    command += ["--junitxml={report}"]
    if workers:
        command += ["-n", WORKERS, "--dist", "worksteal"]
    return command + list(words)


def sources() -> list[str]:
    return [
        str(path.relative_to(ROOT))
        for folder in ("src", "msl", "tests", "tools", "examples")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".c", ".cpp", ".h")
    ]


def lint(build: Path) -> list[Step]:
    ruff = str(Path(sys.prefix) / "bin" / "ruff")
    return [
        Step(
            "lint",
            "clang-format",
            ["clang-format", "--dry-run", "-Werror", *sources()],
            "exit",
        ),
        Step("lint", "ruff check", [ruff, "check", "-q", "."], "exit"),
        Step("lint", "ruff format", [ruff, "format", "--check", "-q", "."], "exit"),
        Step("lint", "size gate", python("tools/check_size.py"), "exit"),
        Step("lint", "functions", python("tools/check_functions.py"), "exit"),
        Step("lint", "includes", python("tools/check_includes.py"), "exit"),
        Step("lint", "overrides", python("tools/check_overrides.py"), "exit"),
        Step("lint", "samples", python("tools/check_docs.py"), "exit"),
    ]


def doctest(tier: str, binary: Path, **env: str) -> Step:
    command = [str(binary), "--reporters=xml", "--out={report}"]
    return Step(tier, binary.name, command, "doctest", env)


def null(build: Path) -> list[Step]:
    return [doctest("null", build / "null_tests")]


def radv_icd() -> str | None:
    """RADV, Mesa's driver for AMD, which has a device without hardware."""
    files = os.environ.get("VK_DRIVER_FILES", "")
    if "radeon" in files:
        return files
    folders = ("/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d")
    folders += ("/etc/vulkan/icd.d",)
    found = (f for d in folders for f in sorted(Path(d).glob("radeon_icd*.json")))
    return next((str(f) for f in found), None)


def radv(build: Path, families: tuple[str, ...] = ("navi21",)) -> list[Step]:
    icd = radv_icd()
    if icd is None:
        print("== radv: skipped, since RADV (mesa-vulkan-drivers) is not installed")
        return []
    steps = []
    for family in families:
        env = {"VK_DRIVER_FILES": icd}
        env["VK_ICD_FILENAMES"] = icd  # for loaders before 1.3.207
        command = python("tools/run_drivers.py", "--build", str(build))
        command += ["--system-radv", family]
        steps.append(Step("radv", family, command, "summary", env))
    return steps


# What host and device do in turn, for memory of other kinds than lavapipe's.
HOST_AND_DEVICE = (
    "tests/backend/test_memory.py",
    "tests/backend/test_donation.py",
    "tests/backend/test_streams.py::test_random_dags",
)
OTHER_MEMORY = {
    # Slow host reads: mirrors, of which one side is given back.
    "uncached": {"MLX_VK_MEMORY": "uncached"},
    # Host caches that are not coherent, in both models.
    "noncoherent": {"MLX_VK_DEBUG": "noncoherent", "MLX_VK_TEST": "small_buffer=0"},
    "uncached, noncoherent": {
        "MLX_VK_MEMORY": "uncached",
        "MLX_VK_DEBUG": "noncoherent",
        "MLX_VK_TEST": "small_buffer=0",
    },
}


def backend(build: Path) -> list[Step]:
    # Most of the time is LLVM's: here llvmpipe compiles without optimization. The
    # other modes and tiers run optimized code.
    env = {"MLX_VK_DEBUG": "validate", "GALLIVM_PERF": "nopt"}
    steps = backend_mode("validate", env)
    for mode, env in OTHER_MEMORY.items():
        steps += backend_mode(mode, env, *HOST_AND_DEVICE)
    return steps


def backend_mode(mode: str, env: dict[str, str], *files: str) -> list[Step]:
    command = pytest(*(files or ("tests/backend",)))
    return [Step("backend", mode, command, "junit", env)]


def package(build: Path) -> list[Step]:
    command = pytest("tests/python")
    env = {"MLXVK_BUILD": str(build)}
    return [Step("package", "wheel and command", command, "junit", env)]


def upstream(build: Path) -> list[Step]:
    runner = ["tests/upstream/run_mlx.py"]
    where = ["--build", str(build)]
    return [
        Step("upstream", "C++", python(*runner, "cpp", *where), "summary"),
        Step(
            "upstream",
            "Python",
            python(*runner, "python", *where, "--workers", WORKERS),
            "summary",
        ),
    ]


def model(build: Path) -> list[Step]:
    command = pytest("tests/model", workers=False)
    return [Step("model", "SmolLM2", command, "junit")]


def kernels(build: Path) -> list[Step]:
    env = {"MLXVK_BUILD": str(build)}
    return [Step("kernels", "custom kernels", pytest("tests/kernels"), "junit", env)]


def chaos(build: Path, seconds: int = 20) -> list[Step]:
    """Faults of all kinds (tests/chaos). What fails is repeated by its seed."""
    command = python("tests/chaos/run.py", "--build", str(build))
    command += ["--seconds", str(seconds), "--finals", "lost_submit", "lost_wait"]
    command += ["hang"]
    env = {"MLXVK_BUILD": str(build)}
    found = pytest("tests/chaos", workers=False)
    return [
        Step("chaos", f"{seconds} s", command, "summary"),
        Step("chaos", "what it finds", found, "junit", env),
    ]


def lab(chip: str, *command: str) -> list[str]:
    """A command by a driver of tools/driver_lab.py that executes kernels."""
    return python("tools/driver_lab.py", "run", "--execute", chip, *command)


CASES = "tests/backend/test_cases.py"


def few_cases() -> list[str]:
    lines = (ROOT / "tests" / "rdna" / "cases.txt").read_text("utf-8").splitlines()
    return [f"{CASES}::test_case[{line}]" for line in lines if line[:1] != "#"]


def rdna(build: Path) -> list[Step]:
    """RADV's code for AMD chips in an emulator (tests/rdna)."""
    cases = lab("gfx1201", *pytest(*few_cases()))
    return [
        Step("rdna", "emulator", pytest("tests/rdna"), "junit"),
        Step("rdna", "gfx1201", cases, "junit"),
    ]


TIERS = {
    "lint": lint,
    "null": null,
    "radv": radv,
    "rdna": rdna,
    "package": package,
    "backend": backend,
    "kernels": kernels,
    "model": model,
    "upstream": upstream,
    "chaos": chaos,
    "packages": lambda build: [],  # with --full
}


def lanes(count: int) -> dict[str, str]:
    """lavapipe with such subgroups. Mesa's cache of compiled shaders does not
    tell one width from another, and would mix them up."""
    return {
        "LP_NATIVE_VECTOR_WIDTH": str(32 * count),
        "MESA_SHADER_CACHE_DISABLE": "true",
    }


def full_modes(build: Path) -> list[Step]:
    """What `make test-full` runs besides the main modes."""
    steps = []
    for mode, env in {
        "unified": {"MLX_VK_MEMORY": "unified"},
        "discrete": {"MLX_VK_MEMORY": "discrete"},
        "shuffle": {"MLX_VK_DEBUG": "shuffle"},
        "discrete+shuffle": {"MLX_VK_MEMORY": "discrete", "MLX_VK_DEBUG": "shuffle"},
        "guard": {"MLX_VK_DEBUG": "guard"},
        "loops": {"MLX_VK_DEBUG": "loops"},
        # Mesa 25.0's lavapipe has none: there every mode takes the scalar paths.
        # That of the tier lavapipe has some.
        "no matrix units": {"MLX_VK_DISABLE": "coopmat"},
        # lavapipe's have as many lanes as its vectors, 8 where there is AVX.
        "subgroups of 4": lanes(4),
        "subgroups of 16": lanes(16),
        **OTHER_MEMORY,
    }.items():
        steps += backend_mode(mode, env)
    steps += radv(build, ("vega10", "gfx1100"))
    steps += executed(build)
    steps += chaos(build, 600)[:1]
    tunings = python("tests/chaos/tunings.py")
    steps.append(Step("chaos", "20 tunings", tunings, "summary"))
    for kind in ("asan", "tsan"):
        steps.append(doctest(f"null {kind}", ROOT / f"build-{kind}" / "null_tests"))
    fuzz = python("tests/fuzz/run.py", "--build", str(build))
    steps.append(Step("null", "fuzzers", fuzz, "summary"))
    runner = python("tests/upstream/run_mlx.py", "cpp", "--build", str(build))
    for mode, env in {
        "C++ discrete": {"MLX_VK_MEMORY": "discrete"},
        "C++ shuffle": {"MLX_VK_DEBUG": "shuffle"},
        **{f"C++ {mode}": env for mode, env in OTHER_MEMORY.items()},
    }.items():
        steps.append(Step("upstream", mode, runner, "summary", env))
    slow = python("tests/upstream/run_mlx.py", "python", "--build", str(build))
    for mode, env in OTHER_MEMORY.items():
        command = [*slow, "--workers", WORKERS]
        steps.append(Step("upstream", f"Python {mode}", command, "summary", env))
    steps.append(Step("upstream", "Python, slow ones", [*slow, "--slow"], "summary"))
    steps += with_extras(build, slow)
    steps += packages(build)
    repeated = [*runner, "--only", "*scheduler*,*stream*,*event*", "--repeat", "20"]
    steps.append(Step("upstream", "streams 20 times", repeated, "summary"))
    for mode in ("unified", "discrete"):
        name, env = f"streams 20 times, {mode}", {"MLX_VK_MEMORY": mode}
        command = pytest("tests/backend/test_streams.py", workers=False)
        steps.append(Step("backend", name, command, "junit", env, repeat=20))
    hostile = pytest("tests/backend/test_bounds.py", workers=False)
    env = {"MLX_VK_TEST_EXAMPLES": "10000", "MLX_VK_DEBUG": "guard"}
    steps.append(Step("backend", "hostile indices", hostile, "junit", env))
    cases = pytest("tests/backend/test_cases.py")
    env = {"MLX_VK_DEBUG": "bounds"}
    steps.append(Step("backend", "no index outside", cases, "junit", env))
    for tier, file in (
        ("backend", "test_streams"),
        ("backend", "test_distributed"),
        ("model", "test_rotating"),
        ("model", "test_traced"),
    ):
        command = pytest(f"tests/{tier}/{file}.py", workers=False)
        env = {"MLX_VK_TEST_FULL": "1"}
        steps.append(Step(tier, "long counts", command, "junit", env))
    files = ("test_doc_commands", "test_examples")
    pages = pytest(*(f"tests/python/{f}.py" for f in files), workers=False)
    env = {"MLX_VK_TEST_FULL": "1"}
    steps.append(Step("package", "documents and examples", pages, "junit", env))
    steps.append(Step("model", "server", pytest("tests/serve", workers=False), "junit"))
    steps.append(
        Step(
            "model",
            "discrete",
            pytest("tests/model", workers=False),
            "junit",
            {"MLX_VK_MEMORY": "discrete"},
        )
    )
    return steps


EXECUTED_CHIPS = ("navi21", "navi31", "gfx1151", "gfx1201")
# These tests run kernels that plans choose and the case table lacks.
OTHERS = (
    "test_experts.py",
    "test_gather_rows.py",
    "test_quantized_attention.py",
    "test_sort_rows.py::test_order[float32]",
    "test_sort_rows.py::test_order[uint8]",
    "test_tiles.py",
)
# Cases whose plans depend on the class of device: MLX_VK_TEST=plans=CLASS, where each
# file of src/policy is a class.
PLANNED = "(sdpa or matmul or mm or linear or norm) and not cum"
CLASSES = {path.stem for path in (ROOT / "src" / "policy").glob("*.cpp")}
CLASSES -= {"policy", "software"}


def executed(build: Path) -> list[Step]:
    """Whole suites in the emulator, and each class's plans on lavapipe. A chip's
    case table takes some 20 minutes of a core."""
    steps = []
    hours = 4 * 3600
    first_tokens = {"MLX_VK_TEST_TOKENS": "4"}
    tokens = ["tests/model/test_generate.py", "-k", "greedy and science"]
    for chip in EXECUTED_CHIPS:
        for name, command, env in (
            ("cases", pytest(CASES), {}),
            ("families", pytest("tests/model/test_families.py"), {}),
            ("SmolLM2", pytest(*tokens, workers=False), first_tokens),
        ):
            command = lab(chip, *command)
            steps.append(Step("rdna", f"{chip} {name}", command, "junit", env, hours))
    for chip in ("vega10", "renoir", "navi33", "phoenix", "strix1", "gfx1200"):
        command = lab(chip, *pytest(*few_cases()))
        steps.append(Step("rdna", chip, command, "junit"))
    for chip in ("navi31", "gfx1201"):
        command = lab(chip, *pytest("tests/backend/test_property.py"))
        env = {"MLX_VK_TEST_EXAMPLES": "2000"}
        steps.append(Step("rdna", f"{chip} fuzz", command, "junit", env, hours))
    command = lab("gfx1201", *pytest(*(f"tests/backend/{name}" for name in OTHERS)))
    steps.append(Step("rdna", "gfx1201 others", command, "junit"))
    report = ["tests/python/test_report.py", "-k", "tiny_model"]
    command = lab("gfx1201", *pytest(*report, workers=False))
    steps.append(Step("rdna", "gfx1201 report", command, "junit"))
    for count in (4, 8):
        command, env = lab("lavapipe", *pytest(CASES)), lanes(count)
        name = f"cases, {count} lanes"
        steps.append(Step("lavapipe", name, command, "junit", env, hours))
    for name in sorted(CLASSES):
        command = lab("lavapipe", *pytest(CASES, "-k", PLANNED))
        env = {**lanes(8), "MLX_VK_TEST": f"plans={name}"}
        steps.append(Step("lavapipe", f"plans {name}", command, "junit", env, hours))
    return steps


def with_extras(build: Path, upstream: list[str]) -> list[Step]:
    """What needs packages beyond tools/requirements.txt, which are installed in
    folders of the build: mlx-vlm's kernels, and, with the variable TORCH (pip's
    arguments for a PyTorch that runs on CPUs: torch), MLX's comparisons with it."""
    folder = extra(build, "vlm", "--no-deps", "-r", "tools/requirements-full.txt")
    env = {"MLXVK_BUILD": str(build), "PYTHONPATH": str(folder)}
    env["MLX_VK_TEST_FUZZ"] = "4000"
    steps = [Step("kernels", "mlx-vlm", pytest("tests/kernels"), "junit", env)]
    if torch := os.environ.get("TORCH"):
        env = {"PYTHONPATH": str(extra(build, "torch", *shlex.split(torch)))}
        command = [*upstream, "--torch"]
        steps.append(Step("upstream", "PyTorch", command, "summary", env))
    return steps


# Call what is for Metal alone; they fail on MLX's CPU, too.
MLX_VLM_FAILS = [
    f"mlx_vlm/tests/test_speculative.py::test_{name}"
    for name in (
        "qwen3_5_ragged_decode_attention_matches_one_pass_singleton",
        "qwen3_5_ragged_decode_attention_matches_two_pass_singleton",
        "qwen_target_verify_quantized_linear_matches_singleton_batch_path",
    )
]


def packages(build: Path) -> list[Step]:
    """The tests of packages built on MLX (tests/packages), by the versions there."""
    file = ROOT / "tests" / "packages" / "packages.toml"
    names = [p["name"] for p in tomllib.loads(file.read_text())["package"]]
    env = {"MLX_VK_METAL_KERNELS": "1"}
    steps = []
    for name in names:
        command = python("tests/packages/run.py", name, "--build", str(build))
        steps.append(Step("packages", name, command, "summary", env))
    command = python("tests/packages/traced_models.py", "--build", str(build))
    steps.append(Step("packages", "traced models", command, "summary", {}, 4 * 3600))
    command = python("tests/packages/corpus.py", "--build", str(build))
    steps.append(Step("packages", "kernels of packages", command, "summary"))
    if checkout := os.environ.get("MLX_VLM"):
        steps += mlx_vlm_tests(Path(checkout).resolve(), build)
    return steps


def mlx_vlm_tests(checkout: Path, build: Path) -> list[Step]:
    """As users have it, with nothing set. From a checkout of 0.6.15, since neither of
    its archives has tests."""
    wanted = "tests/packages/mlx-vlm.txt"
    others = extra(build, "vlm-tests", "--no-deps", "-r", wanted)
    tests = checkout / "mlx_vlm" / "tests"
    # A program, which loads what its command line names.
    command = pytest(str(tests), f"--ignore={tests / 'test_smoke.py'}", "-p", "hub")
    command += ["--rootdir", str(checkout)]
    for test in MLX_VLM_FAILS:
        command += ["--deselect", test]
    hub = str(ROOT / "tests" / "kernels")
    paths = [hub, str(checkout), str(others)]
    env = {"HF_HUB_OFFLINE": "1", "MLX_VK_FALLBACK": "deny"}
    env["PYTHONPATH"] = os.pathsep.join(paths)
    traced = python("tests/packages/traced_models.py", "--vlm", str(checkout))
    return [
        Step("packages", "mlx-vlm", command, "junit", env),
        Step("packages", "mlx-vlm: traced models", traced, "summary", env, 3600),
    ]


def extra(build: Path, name: str, *requirements: str) -> Path:
    folder = build / "extras" / name
    note = folder / "requirements"
    text = " ".join(requirements)
    if "-r" in requirements:
        text += (ROOT / requirements[-1]).read_text()
    if not note.exists() or note.read_text() != text:
        print("== Installing", *requirements, flush=True)
        command = [sys.executable, "-m", "pip", "install", "-q", "--upgrade"]
        command += ["--disable-pip-version-check", "--target", str(folder)]
        subprocess.run([*command, *requirements], cwd=ROOT, check=True)
        note.write_text(text)
    return folder


def build_tests(build: Path, sanitized: bool) -> None:
    """Compile what only the tests need."""
    targets = ["null_tests", "driver_compile", "mlx_cpp_tests", "msl_translate", "msl"]
    targets += ["chaos_faults", "chip_layer"]
    print("== Building", ", ".join(targets), flush=True)
    subprocess.run(["ninja", "-C", str(build), *targets], check=True)
    if sanitized:
        for kind in ("asan", "tsan"):
            subprocess.run(["tests/null/sanitize.sh", kind], cwd=ROOT, check=True)


def execute(step: Step, environment: dict[str, str], names: Path | None) -> Result:
    """Runs a process; the kernels that it ran go to a file of `names`."""
    env = {**environment, **step.env}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [word.replace("{report}", str(report)) for word in step.command]
        if names and "pytest" in command:
            # Its processes' pipes would fill up.
            command += ["-s", "--deselect", "tests/backend/test_distributed.py"]
            env["MLX_VK_DEBUG"] = ",".join(
                filter(None, (env.get("MLX_VK_DEBUG"), "select"))
            )
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=env,
            start_new_session=True,
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        watchdog = Watchdog(process, step.timeout)
        output, kernels = [], set()
        for line in process.stdout:
            if names and (kernel := kernel_of(line)):
                kernels.add(kernel)
                continue
            output.append(line)
            if step.count != "doctest" or len(line) < 500:
                print(line, end="", flush=True)
        code = process.wait()
        timed_out = watchdog.stop()
        result = count(step, report, "".join(output))
    if kernels:
        file = names / re.sub(r"[^a-zA-Z0-9]+", "-", f"{step.tier} {step.name}")
        file.write_text("".join(f"{kernel}\n" for kernel in sorted(kernels)))
    if timed_out:
        result.failed += 1
        result.note = f"stopped after {step.timeout} s"
    elif code != 0 and result.failed == 0:
        result.failed += 1
        result.note = f"exit code {code}"
    elif step.count != "exit" and result.passed == 0 and result.failed == 0:
        result.failed += 1
        result.note = "no test ran"
    if result.failed:
        result.output = "".join(output)[-1500:]
    return result


class Watchdog:
    """Ends a step's whole process group when it takes too long."""

    def __init__(self, process: subprocess.Popen, seconds: int):
        import threading

        self.fired = False
        self.process = process
        self.timer = threading.Timer(seconds, self.fire)
        self.timer.daemon = True
        self.timer.start()

    def fire(self) -> None:
        self.fired = True
        os.killpg(self.process.pid, signal.SIGKILL)

    def stop(self) -> bool:
        self.timer.cancel()
        return self.fired


def count(step: Step, report: Path, output: str) -> Result:
    result = Result()
    if step.count == "summary":
        pattern = r"(\d+) passed, (\d+) failed, (\d+) skipped(?: \((\d+) expected)?"
        found = re.findall(pattern, output)
        if found:
            passed, failed, skipped, expected = found[-1]
            skipped = int(skipped) + int(expected or 0)
            result = Result(int(passed), int(failed), skipped)
            if int(expected or 0):
                result.note = f"{expected} of the skipped are expected failures"
    elif step.count == "junit" and report.exists():
        for case in ET.parse(report).getroot().iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                result.failed += 1
            elif case.find("skipped") is not None:
                result.skipped += 1
            else:
                result.passed += 1
    elif step.count == "doctest" and report.exists():
        try:
            cases = ET.parse(report).getroot().find("OverallResultsTestCases")
            # Those that the filters leave out are no tests of this run.
            result = Result(int(cases.get("successes")), int(cases.get("failures")))
        except (ET.ParseError, AttributeError):
            result = Result(failed=1, note="the report is broken: a crash?")
        if result.failed:
            print(report.read_text(errors="replace"))
    elif step.count == "exit":
        result.passed = 1
    return result


def run(steps: list[Step], environment: dict[str, str], names: Path | None) -> Result:
    total, rows, started = Result(), [], time.time()
    for step in steps:
        settings = " ".join(f"{k}={v}" for k, v in step.env.items())
        print(f"\n== {step.tier}: {step.name} {settings}", flush=True)
        begun = time.time()
        result = Result()
        for _ in range(step.repeat):
            result += execute(step, environment, names)
        if step.count == "exit" and result.failed:
            result.passed = 0
        total += result
        rows.append((step, result, time.time() - begun))
        print(f"== {step.tier}: {step.name}: {result} {result.note}", flush=True)
    print(
        f"\n{'tier':<12} {'run':<26} {'passed':>7} {'failed':>7} {'skipped':>8}  time"
    )
    for step, result, seconds in rows:
        print(
            f"{step.tier:<12} {step.name:<26} {result.passed:7} {result.failed:7} "
            f"{result.skipped:8} {seconds:5.0f} s  {result.note}"
        )
    for step, result, _ in rows:
        if result.failed:
            print(f"== Failed: {step.tier}: {step.name}\n{result.output}")
    print(f"{time.time() - started:.0f} s in all")
    return total


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--full", action="store_true", help="every mode")
    parser.add_argument("--names", type=Path, metavar="FOLDER", help="see above")
    parser.add_argument("tiers", nargs="*", choices=[*TIERS, []], metavar="tier")
    # Folders that tests make as kernel caches: one that the group can write to,
    # as some systems' 002 has it, is refused.
    os.umask(0o022)
    args = parser.parse_args()
    build = args.build.resolve()
    tiers = args.tiers or list(TIERS)

    if tiers != ["lint"]:
        build_tests(build, sanitized=args.full and "null" in tiers)
        choose_device()
    # Step lists look at what was built, so they come after the build.
    steps = [step for tier in tiers for step in TIERS[tier](build)]
    if args.full:
        steps += [s for s in full_modes(build) if s.tier.split()[0] in tiers]
    environment = {k: v for k, v in os.environ.items() if k != "CI"}
    if tiers != ["lint"]:
        devices = [d["name"] for d in doctor().get("devices", []) if d.get("selected")]
        print("== Device:", ", ".join(devices) or "none that the doctor knows of")
    if args.names:
        args.names.mkdir(parents=True, exist_ok=True)
    total = run(steps, environment, args.names)
    print(total)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
