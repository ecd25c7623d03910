"""`mlx-vulkan selftest`: it passes here, and it notices what is broken."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mlx_vulkan import cases as table
from mlx_vulkan import selftest as cli
from mlx_vulkan.selftest import FULL, QUICK, USUAL, check, cover, plan, runner
from mlx_vulkan.selftest.report import ADVICE

KERNELS = Path(__file__).resolve().parents[2] / "src" / "kernels"


def selftest(folder: Path, *words: str, **env: str):
    """Exit status, output and report of a run."""
    report = folder / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "mlx_vulkan", "selftest", "--json", report, *words],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
    )
    found = json.loads(report.read_text()) if report.exists() else None
    return done.returncode, done.stdout + done.stderr, found


def test_list():
    command = [sys.executable, "-m", "mlx_vulkan", "selftest", "--list"]
    ids = subprocess.run(command, capture_output=True, text=True).stdout.split()
    assert len(ids) == len(set(ids)) > 2000
    families = {case.partition("/")[0] for case in ids}
    assert {"sort", "matmul", "sdpa", "model", "measure"} <= families
    assert "hook" not in families
    assert any(case.endswith("@shuffle") for case in ids)


def test_passes(tmp_path):
    words = ["--only", "softmax", "--only", "scan/cumsum_*", "--only", "measure/eval*"]
    status, out, report = selftest(tmp_path, *words, "--seed", "3", "--quick")
    assert status == 0, out
    assert report["failed"] == 0 and report["failures"] == []
    assert report["passed"] == sum(f["passed"] for f in report["families"].values())
    assert set(report["families"]) == {"softmax", "scan", "measure"}
    assert report["seed"] == 3 and report["whole"]
    assert report["device"] and report["driver"] and report["versions"]["mlx"]
    assert report["doctor"]["devices"] and set(report["modes"]) == {"plain", "shuffle"}
    assert report["measured"]["eval-wait"]["value"] > 0
    # No terminal: a line for each family and mode.
    lines = [line.partition(",")[0] for line in out.splitlines()]
    count = report["families"]["softmax"]["passed"]
    counts = [int(x.split()[1]) for x in lines if x.startswith("softmax")]
    assert sum(counts) == count and len(counts) == 2
    assert any(line.startswith("scan@shuffle: ") for line in lines)
    assert str(tmp_path / "report.json") in out.replace("\n", "")


def test_the_model_passes_in_every_mode(tmp_path):
    words = [
        f"--only=model/experts-f32{mode}" for mode in ("", "@shuffle", "@discrete")
    ]
    status, out, report = selftest(tmp_path, *words)
    assert status == 0 and report["passed"] == 3, out


# What is broken: file, a change, the cases to run, one that must fail.
BROKEN = {
    "softmax scales wrong": (
        "common/softmax_row.glsl",
        ("return 1.0 / row_sum", "return 1.002 / row_sum"),
        "softmax/softmax_*",
        "softmax/softmax_129-f32-contiguous",
    ),
    "sort merges wrong beyond a tile": (
        "sort.comp",
        ("left + b + (k - m)", "left + (k - m)"),
        "sort/*",
        "sort/sort_3001-f32-contiguous",
    ),
    "argsort of two tiles forgets positions": (
        "sort.comp",
        ("position_at[k] = load(A.positions_in, from);", "position_at[k] = k;"),
        "sort/*",
        "sort/sort_3001-f32-contiguous",
    ),
    "a split product loses its last part": (
        "gemm/splitk_sum.comp",
        ("sum += load(A.parts", "sum += float(s + 1 < A.splits) * load(A.parts"),
        "matmul/*",
        "matmul/matmul_17x9x70000-f32-contiguous",
    ),
    "gather takes one row always": (
        "common/tuples.glsl",
        ("+= int64_t(k) *", "+= 0 * int64_t(k) *"),
        "gather/*",
        "gather/embedding-f32-contiguous",
    ),
}


def break_kernel(folder: Path, file: str, change: tuple[str, str]) -> str:
    """A copy of the kernels with one change in one of them."""
    copy = folder / "kernels"
    shutil.copytree(KERNELS, copy)
    text = (copy / file).read_text()
    assert change[0] in text, f"{file} has changed: break it in another way"
    (copy / file).write_text(text.replace(*change))
    return str(copy)


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_kernel_fails(tmp_path, fault):
    file, change, cases, wrong = BROKEN[fault]
    env = {"MLX_VK_KERNEL_PATH": break_kernel(tmp_path, file, change)}
    status, out, report = selftest(tmp_path, "--only", cases, "--quick", **env)
    assert status == 1 and report["failed"] > 0, out
    family = wrong.partition("/")[0]
    assert report["families"][family]["failed"] > 0
    failure = {f["id"]: f for f in report["failures"]}[wrong]
    assert failure["kind"] == "values" and "values are wrong" in failure["text"]
    assert failure["dtype"] == "float32" and failure["layout"] == "contiguous"
    assert failure["inputs"]
    assert f"values: {ADVICE['values']}" in out
    assert f"repeat:  {report['failures'][0]['repeat']}" in out
    # The command that repeats it does so, alone.
    words = shlex.split(failure["repeat"])
    assert f"MLX_VK_KERNEL_PATH={env['MLX_VK_KERNEL_PATH']}" in words
    words = words[words.index("selftest") + 1 :]
    status, _, again = selftest(tmp_path, *words, **env)
    assert status == 1 and [f["id"] for f in again["failures"]] == [wrong]
    assert again["failures"][0]["text"] == failure["text"] and again["passed"] == 0


def test_a_kernel_that_does_not_compile_fails(tmp_path):
    change = ("float total = 0.0;", "float total = none;")
    env = {
        "MLX_VK_KERNEL_PATH": break_kernel(tmp_path, "common/softmax_row.glsl", change)
    }
    only = "softmax/softmax_7-f32-contiguous"
    status, _, report = selftest(tmp_path, "--only", only, **env)
    assert status == 1
    (failure,) = report["failures"]
    assert failure["kind"] == "exception" and "none" in failure["text"]


def test_a_missing_barrier_fails(tmp_path):
    # What the barrier kept apart is permuted: the second pass of a reduction, a
    # merge of a sort runs before what it reads is there.
    env = {"MLX_VK_TEST": "drop_barrier=1"}
    only = ["--only", "sort/sort_3001*@shuffle", "--only", "scan/*50000*@shuffle"]
    status, out, report = selftest(tmp_path, *only, **env)
    assert status == 1, out
    assert {f["kind"] for f in report["failures"]} == {"values"}


def test_hangs_and_crashes_are_results(tmp_path):
    only = [f"--only=hook/{fate}" for fate in ("stall", "crash", "throw", "fine")]
    status, out, report = selftest(tmp_path, *only, "--limit", "3")
    assert status == 1 and report["passed"] == 1, out
    found = {f["id"]: f for f in report["failures"]}
    assert found["hook/stall"]["kind"] == "hang"
    assert found["hook/crash"]["kind"] == "crash"
    assert "SIGSEGV" in found["hook/crash"]["text"]
    assert found["hook/throw"]["kind"] == "exception"


def test_no_device(tmp_path):
    env = {"MLX_VK_DEVICE": "no such device"}
    status, out, report = selftest(tmp_path, **env)
    assert status == 2 and report is None
    assert "There is no GPU to test" in out and "doctor" in out


def test_nothing_matches(tmp_path):
    status, out, _ = selftest(tmp_path, "--only", "sort/no-such-case")
    assert status == 2 and "Nothing matches" in out


def test_sigterm_leaves_a_report(tmp_path):
    path = tmp_path / "report.json"
    words = ["--jobs", "2", "--json", path]
    process = subprocess.Popen(
        [sys.executable, "-m", "mlx_vulkan", "selftest", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # A family has ended, others have not.
    first = process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    rest, errors = process.communicate(timeout=60)
    assert process.returncode == 1 and "Interrupted" in errors, rest + errors
    report = json.loads(path.read_text())
    assert report["whole"] is False and report["jobs"] == 2
    assert report["families"][first.partition(":")[0]]["passed"] > 0
    assert report["failed"] == 0 and report["failures"] == []


# A worker that does what the name of a case says: stall, once (stall, but the
# first time only), leave, slow, after (a/stall has begun), meet (the case with the
# same number beside it), or alone: fail if any other case runs meanwhile.
FAKE = """
import json, os, sys, time
from pathlib import Path

folder = Path(os.environ["FAKE_FOLDER"])
for line in sys.stdin:
    for case in json.loads(line)["ids"]:
        print(json.dumps({"begin": case}), flush=True)
        mark = folder / case.replace("/", "-")
        seen = mark.exists()
        mark.touch()
        failure = None
        if "stall" in case or ("once" in case and not seen):
            time.sleep(600)
        if "leave" in case:
            sys.exit(3)
        while "after" in case and not (folder / "a-stall").exists():
            time.sleep(0.01)
        if "slow" in case or "after" in case:
            time.sleep(0.5)
        while "meet" in case and len(list(folder.glob("*" + case[-5:]))) < 2:
            time.sleep(0.01)
        others = [p.name for p in folder.iterdir() if p != mark]
        if "alone" in case and others:
            failure = {"kind": "values", "text": str(others)}
        if "once" not in case and "meet" not in case:
            mark.unlink()
        event = {"end": case, "seconds": 0.0, "failure": failure, "facts": {}}
        print(json.dumps(event), flush=True)
    print(json.dumps({"idle": True}), flush=True)
"""


@pytest.fixture
def run_fakes(tmp_path):
    """Runs ids in fake workers; returns results by id."""

    def run(ids, program=FAKE, limit=1.0, jobs=1):
        command = (sys.executable, "-c", program)
        work = runner.Runner(0, limit, command=command, jobs=jobs)
        env = {**os.environ, "FAKE_FOLDER": str(tmp_path)}
        return {result.id: result for result in work.run(ids, env, 1)}

    return run


@pytest.fixture
def kinds(run_fakes):
    def run(*args, **more):
        return {id: r.kind for id, r in run_fakes(*args, **more).items()}

    return run


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_the_rest_goes_on_after_a_hang(kinds, jobs):
    ids = ["a/1", "a/stall", "a/2", "b/leave", "b/3", "c/4"]
    wanted = ["", "hang", "", "crash", "", ""]
    assert kinds(ids, jobs=jobs) == dict(zip(ids, wanted))


def test_workers_run_at_the_same_time(kinds):
    # Each pair waits for the other one.
    ids = [f"{family}/{n}-meet{n}" for n in range(3) for family in "ab"]
    assert set(kinds(ids, limit=20, jobs=2).values()) == {""}
    assert len(kinds(ids, limit=20, jobs=5)) == len(ids)


def test_measurements_run_alone(kinds):
    ids = ["measure/alone", *(f"{family}/slow" for family in "abc")]
    found = kinds(ids, limit=20, jobs=4)
    assert list(found)[-1] == "measure/alone" and set(found.values()) == {""}


def test_what_a_hang_blocks_is_run_again(run_fakes):
    found = run_fakes(["a/stall", "a/1", "b/after", "b/once", "b/2"], limit=2, jobs=2)
    assert found["a/stall"].kind == "hang" and found["a/1"].passed
    assert "the first without progress" in found["a/stall"].text
    assert "b/once" in found["a/stall"].text
    assert found["b/once"].passed and found["b/2"].passed


def test_what_hangs_with_another_names_the_suspect():
    work = runner.Runner(0, 1.0, jobs=2)
    work.suspect = ("a/first", 10.0)
    results = []
    for expected in ("", "a/first on the same GPU"):
        lane = runner.Lane(runner.deque(["b/second"]), flying="b/second", began=9.0)
        work.settle(lane, runner.Result("b/second", "hang", "slow"), results)
        # It does not count against its family.
        assert lane.blamed is None
        assert [expected in r.text for r in results] == [True] * len(results)
    assert [r.kind for r in results] == ["hang"]


def test_hangs_at_once_do_not_give_up_the_device(kinds):
    ids = [f"{family}/{fate}" for family in "abcdefg" for fate in ("once", "slow")]
    assert set(kinds(ids, limit=2, jobs=7).values()) <= {"", "hang"}


def test_a_family_that_keeps_hanging_is_given_up(kinds):
    found = kinds([f"a/leave{i}" for i in range(5)] + ["b/1"])
    assert list(found.values()).count("crash") == runner.LOSSES
    assert found["a/leave4"] == "not run" and found["b/1"] == ""


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_device_that_keeps_hanging_is_given_up(kinds, jobs):
    found = list(kinds([f"f{i}/leave" for i in range(12)], jobs=jobs).values())
    lost = found.count("crash")
    # Those that have begun end as they do.
    assert runner.LOSSES_IN_A_ROW <= lost < runner.LOSSES_IN_A_ROW + jobs
    assert found.count("not run") == 12 - lost


@pytest.mark.parametrize("jobs", [1, 2])
def test_workers_that_never_start_are_given_up(kinds, jobs):
    found = kinds(["a/1", "b/2"], "raise SystemExit(7)", jobs=jobs)
    assert found == {"a/1": "not run", "b/2": "not run"}


@pytest.mark.parametrize(
    "got, want, passes",
    [
        ([1.0, np.nan, np.inf], [1.0, np.nan, np.inf], True),
        ([1.0 + 2e-7], [1.0], True),
        ([1.0 + 1e-6], [1.0], False),
        ([np.nan], [1.0], False),
        ([1.0], [np.nan], False),
        ([np.inf], [3e38], False),
        ([-np.inf], [np.inf], False),
        ([1.0, 2.0], [1.0], False),
    ],
)
def test_compare(got, want, passes):
    def compare():
        table.compare(np.array(got), np.array(want), 4e-7, 0.0, "x")

    if passes:
        compare()
    else:
        with pytest.raises(check.WrongValues, match="^x"):
            compare()


def test_layouts_place_the_same_values():
    import mlx.core as mx

    values = np.random.default_rng(0).normal(size=(4, 5, 6))
    case = table.Case("c", lambda rng, dtype: [values], None, None)
    for layout in (*table.LAYOUTS, check.DONATED):
        (held,), (item,) = check.placed(
            mx, check.Check("f", "c", case, "float32", layout), 0
        )
        np.testing.assert_array_equal(
            np.array(held), item.values.astype(np.float32), layout
        )


def checks_by_family(depth):
    found = plan.families(depth, False)
    return {family: checks for family, checks in found.items() if checks[0].case}


def test_full_meets_every_case_and_layout_in_several_types():
    found = checks_by_family(FULL)
    checks = [check for list_of in found.values() for check in list_of]
    assert len({check.id for check in checks}) == len(checks)
    assert {check.name for check in checks} == {c.name for c in table.load_cases()}
    for family in ("unary", "reduce", "gather", "sort", "matmul", "softmax"):
        layouts = {check.layout for check in found[family]}
        # sort leaves out what is like another one.
        assert len(layouts) >= 5, family
        for layout in layouts:
            dtypes = {c.dtype for c in found[family] if c.layout == layout}
            assert len(dtypes) >= 2, (family, layout)


def test_usual_meets_every_layout_and_type_of_a_family():
    full, usual = checks_by_family(FULL), checks_by_family(USUAL)
    assert set(full) == set(usual)
    for family, checks in usual.items():
        cases = {check.name: check.case for check in checks}
        assert len(cases) >= min(cover.DRAWN, len({c.name for c in full[family]})) / 2
        met = {(check.dtype, check.layout) for check in checks}
        dtypes = {dtype for case in cases.values() for dtype in case.dtypes}
        assert dtypes == {dtype for dtype, _ in met}, family
        for dtype in dtypes & set(table.FLOATS):
            own = {
                layout
                for case in cases.values()
                if dtype in case.dtypes
                for layout in cover.layouts_of(case)
            }
            assert {(dtype, layout) for layout in own} <= met, family
        for dtype in dtypes:
            assert (dtype, "contiguous") in met, family


@pytest.mark.parametrize("software", [False, True])
def test_the_usual_list_takes_a_minute(software):
    # 20 to 60 ms of a core for each kernel that has not been compiled before: at
    # 1,200 kernels and six workers 4 to 12 s, then some ms a case.
    counts = {}
    for depth in (QUICK, USUAL, FULL):
        counts[depth] = sum(len(cases) for _, cases in plan.select(depth, software))
    assert 2000 < counts[USUAL] <= 3000
    assert counts[QUICK] < 0.8 * counts[USUAL] and counts[FULL] > 3 * counts[USUAL]


def test_jobs(monkeypatch):
    for cores, gpu, software in [(1, 1, 1), (2, 1, 2), (8, 4, 2), (64, 6, 2)]:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=cores: range(n))
        assert cli.default_jobs(False) == gpu and cli.default_jobs(True) == software
    done = subprocess.run(
        [sys.executable, "-m", "mlx_vulkan", "selftest", "--jobs", "0"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "--jobs" in done.stderr


def test_workers_mark_their_progress(monkeypatch):
    monkeypatch.setenv("MLX_VK_DEBUG", "cache")
    found = [cli.worker_env(mode, False)["MLX_VK_DEBUG"] for mode in plan.MODES[:2]]
    assert found == ["cache,watch", "cache,watch,shuffle"]
