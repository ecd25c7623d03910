"""`mlx-vulkan tune`: what it finds, leaves out and keeps."""

import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commands import command, python

KERNELS = Path(__file__).resolve().parents[2] / "src/kernels"
TINY = ("tune", "--shape", "tiny", "--minutes", "3")


@pytest.fixture(autouse=True)
def software(monkeypatch):
    monkeypatch.setenv("MLX_VK_DEVICE", "cpu")


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """Kernels of which the scalar tile without 16-byte loads computes nothing, and
    the matvec of 16 outputs does not compile."""
    folder = tmp_path_factory.mktemp("broken") / "kernels"
    shutil.copytree(KERNELS, folder)
    for name, breaks in (
        ("qmm", "void main() {\n#if VEC == 0\n  return;\n#endif\n"),
        ("qmv", "#if OUTS == 16\n#error on purpose\n#endif\nvoid main() {"),
    ):
        file = folder / f"quant/{name}.comp"
        assert file.read_text().count("void main() {") == 1
        file.write_text(file.read_text().replace("void main() {", breaks))
    return folder


def table_of(cache: Path) -> Path | None:
    return next(iter(cache.glob("tuned-*.entry")), None)


PRODUCT = """
import sys
import mlx.core as mx
from mlx_vulkan.tune import library
w = mx.quantize(mx.random.normal((512, 512)).astype(mx.float16))
def run():
    for rows in (1, 64):
        x = mx.random.normal((rows, 512)).astype(mx.float16)
        mx.eval(mx.quantized_matmul(x, *w))
run()
library.record(True)
run()
"""
# Takes the second candidate of each of the two problems.
CHOOSE = """
made = [{**c["candidates"][1], "problem": c["problem"]} for c in library.classes()]
assert len(made) == 2
cell = {"name": "decode 1", "gain": 1.5, "before": [3.0], "after": [2.0]}
cell["interval"] = [1.4, 1.6]
made = {"choices": made, "model": "by hand", "when": "today", "cells": [cell]}
library.store(made)
"""


def run_program(text: str, cache: Path, **env) -> str:
    done = python("-c", text, MLX_VK_CACHE=str(cache), **env)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def kernels(cache: Path, **env) -> set[str]:
    """What ran, without the shapes."""
    text = run_program(PRODUCT, cache, MLX_VK_PROFILE="1", **env)
    return {
        word for word in text.split() if word.startswith(("ROWS=", "OUTS=", "VEC="))
    }


def test_a_table_is_used_and_can_be_switched_off(tmp_path):
    by_default = kernels(tmp_path)
    run_program(PRODUCT + CHOOSE, tmp_path)
    chosen = kernels(tmp_path)
    assert chosen != by_default and chosen == kernels(tmp_path)
    assert kernels(tmp_path, MLX_VK_DISABLE="tuned") == by_default
    done = command("doctor", MLX_VK_CACHE=str(tmp_path))
    assert "by hand: 2 kernels, steps 1.50 times" in " ".join(done.stdout.split())
    done = command("tune", "--show", MLX_VK_CACHE=str(tmp_path))
    assert "quantized m=64" in done.stdout and "by hand" in done.stdout

    # Export, forget, import.
    file = str(tmp_path / "table.json")
    env = {"MLX_VK_CACHE": str(tmp_path)}
    assert command("tune", "--export", file, **env).returncode == 0
    assert command("tune", "--reset", **env).returncode == 0
    assert kernels(tmp_path) == by_default
    assert command("tune", "--export", file + "2", **env).returncode == 1
    done = command("tune", "--import", file, **env)
    assert "2 choices are in force" in done.stdout, done.stderr
    assert kernels(tmp_path) == chosen

    # Of another driver, or none of ours.
    table = json.loads(Path(file).read_text())
    Path(file).write_text(json.dumps(table | {"driver": "another"}))
    done = command("tune", "--import", file, **env)
    assert done.returncode == 1 and "of another driver" in done.stderr
    one = {**table["choices"][0], "variant": 1}
    for bad in (
        [1],
        {"choices": [{}]},
        table | {"choices": [one]},
        table | {"cells": 1},
    ):
        Path(file).write_text(json.dumps(bad))
        done = command("tune", "--import", file, **env)
        assert done.returncode == 2 and "no table" in done.stderr, bad
    # A table under another device's or driver's name is not found.
    entry = table_of(tmp_path)
    entry.rename(entry.with_name("tuned-0123-4567.entry"))
    assert kernels(tmp_path) == by_default


def test_rows_of_the_chip_are_a_default(tmp_path):
    """A file that was exported is used where there is no table."""
    by_default = kernels(tmp_path)
    run_program(PRODUCT + CHOOSE, tmp_path)
    chosen = kernels(tmp_path)
    file = tmp_path / "rows.json"
    own = {"MLX_VK_CACHE": str(tmp_path)}
    assert command("tune", "--export", file, **own).returncode == 0
    table = json.loads(file.read_text())
    assert table["class"] == "software" and "uuid" not in table
    assert table["cells"] == [{"name": "decode 1", "gain": 1.5}]

    new = tmp_path / "new"
    rows = {"MLX_VK_TEST": f"rows={file}"}
    assert kernels(new) == by_default
    assert kernels(new, **rows) == chosen
    assert kernels(new, MLX_VK_DISABLE="tuned", **rows) == by_default
    done = command("doctor", MLX_VK_CACHE=str(new), **rows)
    assert "on another GPU of this chip: 2 kernels" in " ".join(done.stdout.split())
    done = command("tune", "--show", MLX_VK_CACHE=str(new), **rows)
    assert "quantized m=64" in done.stdout, done.stderr
    # A user's table wins, also an empty one, until it is forgotten.
    run_program(
        "import mlx.core as mx\nfrom mlx_vulkan.tune import library\n"
        "mx.eval(mx.zeros(1) + 1)\nlibrary.store({'choices': []})",
        new,
    )
    assert kernels(new, **rows) == by_default
    assert command("tune", "--reset", MLX_VK_CACHE=str(new)).returncode == 0
    assert kernels(new, **rows) == chosen
    # A plan that the device does not have.
    gone = [{**one, "variant": "no such plan"} for one in table["choices"]]
    file.write_text(json.dumps(table | {"choices": gone}))
    assert kernels(new, **rows) == by_default


@pytest.mark.parametrize("damage", ["cut", "flip", "text", "variant", "problem"])
def test_a_damaged_table_is_no_table(tmp_path, damage):
    by_default = kernels(tmp_path)
    run_program(PRODUCT + CHOOSE, tmp_path)
    entry = table_of(tmp_path)
    data = entry.read_bytes()
    if damage == "cut":
        entry.write_bytes(data[:-7])
    elif damage == "flip":
        entry.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    else:
        # Well-formed, but what it says is not so.
        change = {
            "text": "table['choices'] = 'all'",
            "variant": "[c.update(variant='a plan') for c in table['choices']]",
            "problem": "[c.update(problem='dense m=x') for c in table['choices']]",
        }[damage]
        run_program(
            PRODUCT + f"table = library.status()['table']\n{change}\n"
            "assert library.store(table)",
            tmp_path,
        )
    assert kernels(tmp_path) == by_default


def tune(tmp_path, *words, **env):
    file = tmp_path / "out.json"
    env = {"MLX_VK_CACHE": str(tmp_path / "cache"), **env}
    done = command(*TINY, "--json", str(file), *words, **env)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(file.read_text())


def test_what_is_wrong_or_does_not_compile_is_left_out(tmp_path, broken):
    out, found = tune(tmp_path, MLX_VK_KERNEL_PATH=str(broken))
    assert len(found["problems"]) >= 8 and "Left out" in out
    left = [(one["kernel"], one["why"]) for one in found["left_out"]]
    wrong = [kernel for kernel, why in left if "items differ" in why]
    assert wrong and all("VEC=0" in kernel for kernel in wrong), left
    bad = [kernel for kernel, why in left if "on purpose" in why]
    assert bad and all("OUTS=16" in kernel for kernel in bad), left
    for choice in found["choices"]:
        assert not {"VEC=0", "OUTS=16"} & set(choice["kernel"].split())
    for cell in found["cells"]:
        assert min(*cell["before"], *cell["after"]) > 0
    assert found["open"] == 0 and found["spent"]["alone"] > 0


# Kernels of five products of a decode step are slower than by hand.
WRONG = {"MLX_VK_TEST": "plans=quant.compiled_weights=1"}


@pytest.mark.parametrize(
    "where", ["", "alone", "together", "in the comparison of decode 1"]
)
def test_a_candidate_that_hangs_is_left_out(tmp_path, where):
    hang = f"hang {where}".strip()
    _, found = tune(tmp_path, MLX_VK_TEST_TUNE=hang, MLX_VK_TEST_PATIENCE="8", **WRONG)
    (left,) = [one for one in found["left_out"] if "hangs" in one["why"]]
    why = f"hangs {where}".strip()
    assert left["why"] == f"{why}: nothing happened for 8 s"
    assert "quant/" in left["kernel"] and len(found["problems"]) >= 8


def ended(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"  # nobody may wait for it


def test_killed_in_the_middle_the_old_table_stays(tmp_path):
    cache = tmp_path / "cache"
    run_program(PRODUCT + CHOOSE, cache)
    before = table_of(cache).read_bytes()
    # Its worker sleeps in the middle of the first candidate.
    hangs = {"MLX_VK_TEST_TUNE": "hang", "MLX_VK_TEST_PATIENCE": "600"}
    process = subprocess.Popen(
        [sys.executable, "-m", "mlx_vulkan", *TINY],
        env={**os.environ, "MLX_VK_CACHE": str(cache), **hangs},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    time.sleep(8)
    assert process.poll() is None
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    (worker,) = map(int, children.read_text().split())
    process.kill()
    process.communicate()
    for _ in range(100):  # the worker ends with it
        if ended(worker):
            break
        time.sleep(0.1)
    assert ended(worker)
    assert table_of(cache).read_bytes() == before
    assert not list(cache.glob("tuned-*.tmp-*"))


MEASURED = """
library.prepare()
import time
for timestamps in (True, False):
    begun = time.perf_counter()
    seconds = library.measure(run, timestamps)
    assert 0 < seconds <= time.perf_counter() - begun, seconds
again = library.measure(lambda: None, True)
assert again < seconds, again
"""


def test_measures_and_builds_candidates_as_on_a_gpu(tmp_path):
    run_program(PRODUCT + MEASURED, tmp_path)


def test_needs_something_to_do(tmp_path):
    env = {"MLX_VK_CACHE": str(tmp_path)}
    done = command(*TINY[:3], "--minutes", "0", **env)
    assert done.returncode == 0 and "No step was reached" in done.stdout
    done = command(*TINY, **env, MLX_VK_DISABLE="tuned")
    assert done.returncode == 2 and "switches off" in done.stderr
    done = command("tune", "/nonexist", **env)
    assert done.returncode == 1 and "not a folder" in done.stderr
    assert command("tune", **env).returncode == 2


@pytest.fixture
def tuner():
    """One whose steps take a second less what its choices say, with noise of 10 %."""
    from mlx_vulkan.tune import worker

    job = {"skip": [], "done": [], "choices": [], "good": {}}
    job |= {"seconds": 1000, "deadline": time.time() + 1000}
    made, noise = worker.Tuner(job, lambda **event: None), random.Random(5)

    def seconds(cell, choices):
        gained = sum(one["faster"] for one in choices)
        return (1 - gained) * noise.lognormvariate(0, 0.1)

    made.seconds = seconds
    return made


def choice(number: int, faster: float) -> dict:
    names = ("problem", "variant", "kernel")
    return {name: str(number) for name in names} | {"faster": faster}


def taken(tuner) -> list[dict]:
    assert all(one["gain"] > 1 for one in tuner.choices)
    return [{k: v for k, v in one.items() if k != "gain"} for one in tuner.choices]


def test_gains_below_the_noise_are_found_together(tuner):
    from mlx_vulkan.tune.worker import together

    good = [choice(i, 0.035) for i in range(5)]
    together(tuner, None, good)
    assert taken(tuner) == good


def test_one_that_is_slower_is_found_among_gains(tuner):
    from mlx_vulkan.tune.worker import together

    good = [choice(i, 0.12) for i in range(3)]
    together(tuner, None, [*good[:1], choice(7, -0.5), *good[1:]])
    assert taken(tuner) == good
    tuner.choices = []
    together(tuner, None, [choice(i, 0.0) for i in range(4)])
    assert tuner.choices == []


def test_what_is_faster_replaces_what_was_taken(tuner):
    from mlx_vulkan.tune.worker import together

    tuner.choices = [choice(i, 0.1) | {"gain": 1.1} for i in range(2)]
    better = choice(1, 0.4)
    together(tuner, None, [better])
    assert taken(tuner) == [choice(0, 0.1), better]


class MadeUp:
    """A check whose candidates take so long alone, with this noise."""

    made = True

    def __init__(self, means: dict, noise: float):
        self.means, self.spread, self.random = means, noise, random.Random(2)

    def seconds(self, choices, timestamps):
        mean = self.means[choices[0]["variant"]] if choices else 1.0
        return mean * self.random.lognormvariate(0, self.spread)


def test_what_is_fastest_alone_is_found(tuner):
    means = {"slow": 1.1, "even": 1.0, "faster": 0.8, "some": 0.9}
    made = [dict.fromkeys(("problem", "kernel", "variant"), name) for name in means]
    best = tuner.fastest(MadeUp(means, 0.01), made)
    assert best["variant"] == "faster" and 1.2 < best["alone"] < 1.3
    assert not tuner.fastest(MadeUp(means, 0.01), made[:2])
    assert not tuner.fastest(MadeUp(dict.fromkeys(means, 0.98), 0.01), made)
    assert not tuner.fastest(MadeUp(means, 0.5), made[1:2])
    assert not tuner.fastest(MadeUp(means, 0.01), [])


def test_attention_is_timed_at_the_most_keys_of_its_class(tuner, monkeypatch):
    from mlx_vulkan.tune import worker

    def check(mx, found):
        means = {"long": 1.3, "even": 1.0} if found["members"]["keys"] > 700 else {}
        return MadeUp(means, 0.01)

    monkeypatch.setattr(worker, "Check", check)
    monkeypatch.setattr(worker.library, "use", lambda _: None)
    found = {"members": {"keys": 513}, "most_keys": 724}
    names = ("problem", "variant", "kernel")
    for name, slower in (("long", True), ("even", False)):
        made = dict.fromkeys(names, name)
        assert tuner.slower_at_end(None, found, made) == slower


def test_what_takes_most_of_a_step_is_tuned_first(tmp_path):
    out = run_program(ORDER, tmp_path)
    assert out.split() == ["quantized", "attention", "dense", "norm"], out


ORDER = """
import mlx.core as mx
from mlx_vulkan.tune import library
from mlx_vulkan.tune.cells import work
library.status()
library.record(True)
w = mx.quantize(mx.random.normal((2048, 512)).astype(mx.float16))
x = mx.random.normal((1, 512)).astype(mx.float16)
q = mx.random.normal((1, 8, 1, 64)).astype(mx.float16)
k = mx.random.normal((1, 2, 512, 64)).astype(mx.float16)
mx.eval(mx.fast.rms_norm(x, None, 1e-5), x @ mx.ones((512, 64), mx.float16))
mx.eval(mx.fast.scaled_dot_product_attention(q, k, k, scale=1.0))
mx.eval(mx.quantized_matmul(x, *w))
for found in sorted(library.classes(), key=lambda one: -work(one)):
    print(found["problem"].split()[0])
"""


EMULATED = """
import mlx.core as mx
from mlx_vulkan.tune import check, library
library.status()
library.record(True)
w = mx.quantize((mx.random.normal((4, 64, 512)) * 0.05).astype(mx.bfloat16))
x = mx.random.normal((40, 1, 512)).astype(mx.bfloat16)
which = mx.sort(mx.random.randint(0, 4, (40,))).astype(mx.uint32)
mx.eval(mx.quantized_matmul(x[:9, 0], *(a[0] for a in w)))
mx.eval(mx.gather_qmm(x, *w, rhs_indices=which, sorted_indices=True))
for found in library.classes():
    one = check.Check(mx, found)
    assert one.made
    for other in found["candidates"][1:]:
        one.run([{**other, "problem": found["problem"]}])
        print(other["kernel"])
"""


def test_kernels_of_matrix_units_have_forms_that_compute_the_same(tmp_path):
    """By emulation."""
    folder = KERNELS.parents[1] / "tests/emulation"
    hooks = f"skinny_rows=5,kernels={folder}"
    out = run_program(EMULATED, tmp_path, MLX_VK_TEST=hooks)
    forms = {
        word for word in out.split() if word.startswith(("WK=", "DEPTH=", "AHEAD="))
    }
    assert forms >= {"WK=2", "WK=4", "DEPTH=2", "AHEAD=2"}, out
    assert "qmm_tall{" in out and "SORTED=1" in out
