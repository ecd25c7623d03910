"""The chaos program finds what is broken, and what it found stays mended.

Faults that the program does not know of stand for bugs: its rounds have to fail, for
the right reason.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("MLXVK_BUILD", HERE.parents[1] / "build"))


def chaos(scene, secret, *words, **variables):
    command = [sys.executable, str(HERE / "run.py"), "--build", str(BUILD)]
    command += ["--scene", scene, "--round", "0", "--seed", "1", "--storm", "3"]
    done = subprocess.run(
        [*command, "--secret", secret, *words],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=200,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "scene, secret, finding",
    [
        # Work that did not run and that nobody reports; devices with timestamps
        # notice, and then nobody expects the error.
        ("fork", "drop=0.2", ("graphs.Wrong", "GPU dropped work")),
        ("fork", "submit=0.2", ("unnamed:", "not recovered:")),
        ("storm", "leak=1", ("leak: the process grew",)),
        ("exit", "hang=1", ("hangs",)),
    ],
    ids=["a wrong value", "an error out of nowhere", "a leak", "a hang"],
)
def test_it_finds(scene, secret, finding):
    limit = ("--limit", "8") if "hang" in secret else ()
    # So that each array is an allocation of the driver's.
    guard = ("--set", "MLX_VK_DEBUG=guard") if "leak" in secret else ()
    code, output = chaos(scene, secret, *limit, *guard)
    assert code == 1, output[-3000:]
    assert any(f in output for f in finding), output[-3000:]
    assert "0 passed, 1 failed" in output
    if "hang" in secret:
        assert "scene.py" in output and "Thread" in output


CHECKS = """
import ctypes, os, sys
import mlx.core as mx
import numpy as np
mx.set_default_device(mx.gpu)
faults = ctypes.CDLL(os.environ["CHAOS_LIBRARY"])
faults.chaos_set.argtypes = [ctypes.c_char_p, ctypes.c_double]
second, cpu = mx.new_stream(mx.gpu), mx.new_stream(mx.cpu)
first = mx.default_stream(mx.gpu)
known = np.arange(3000, dtype=np.int32)

def raises(f, text):
    try:
        f()
    except RuntimeError as e:
        assert text in str(e), e
    else:
        raise AssertionError("did not raise")

def state(x, want):
    try:
        assert np.array_equal(np.array(x), want), "a wrong value"
        return "right"
    except RuntimeError:
        return "raised"

def fail(name):
    faults.chaos_set(name, 1.0)

def mend(name):
    faults.chaos_set(name, 0.0)
"""
READ = """
x = mx.array(known) * 2
mx.eval(x)
fail(b"end")
raises(lambda: np.array(x), "vkEndCommandBuffer")
"""
AFTER = """
mx.eval(mx.array(known) + known)
for streams in ((first, second), (first, cpu)):
    for fault in (b"submit", b"end"):
        made, x = [], mx.array(known)
        for i in range(6):
            x = mx.add(x, mx.array(known), stream=streams[i % 2])
            made.append((x, known * (i + 2)))
        fail(fault)
        raises(lambda: mx.eval([x for x, _ in made]), "vk")
        mend(fault)
        said = [state(x, want) for x, want in made]
        assert "raised" in said, said
        # Who reads it later is told, too.
        assert state(mx.add(x, 1, stream=streams[1]), known * 7 + 1) == "raised"
    mx.set_default_device(mx.gpu)
"""
EARLY = """
import time
mx.eval(mx.array(known) + 1)
for i in range(5):
    a = mx.array(known)
    b = a + 1
    fail(b"submit")
    mx.async_eval(b)
    time.sleep(0.05)
    mend(b"submit")
    assert state(b * 2, (known + 1) * 2) == "raised"
    assert state(a * 3, known * 3) == "right"
"""
KERNEL = """
def f(x):
    return (x * 7 + 1) * x - 5
want = (known * 7 + 1) * known - 5
fail(b"pipeline")
raises(lambda: mx.eval(mx.compile(f)(mx.array(known))), "vkCreateComputePipelines")
mend(b"pipeline")
assert np.array_equal(np.array(mx.compile(f)(mx.array(known))), want)
"""


@pytest.mark.parametrize(
    "code, variables",
    [
        (READ, {"MLX_VK_MEMORY": "discrete"}),
        (AFTER, {}),
        (EARLY, {}),
        (KERNEL, {}),
    ],
    ids=["read by NumPy", "arrays of a failed eval", "an early failure", "a kernel"],
)
def test_what_it_found(tmp_path, code, variables):
    """One by one: a read that cannot copy, arrays of an eval that failed, a batch that
    failed before its reader began, a kernel that was refused once."""
    sys.path.insert(0, str(HERE))
    import run

    class Args:
        library, secret, cache = BUILD / "libchaos_faults.so", "", tmp_path / "cache"

    env = run.environment(Args, tmp_path, 1, **variables)
    done = subprocess.run(
        [sys.executable, "-c", CHECKS + code],
        env=env,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
