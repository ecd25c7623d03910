"""Linear algebra on the CPU, between its GPU neighbours: counted, with errors."""

import pathlib

import mlx.core as mx
import numpy as np
import pytest
from processes import python

from mlx_vulkan import native

HERE = pathlib.Path(__file__).resolve().parent


def random(n, dtype=mx.complex64):
    """Complex matrices have no kernel."""
    return mx.array(np.random.default_rng(0).standard_normal((n, n))).astype(dtype)


ON_CPU = {
    "Eig": lambda: mx.linalg.eig(random(5, mx.float32)),
    "SVD": lambda: mx.linalg.svd(random(80)),
    "Eigh": lambda: mx.linalg.eigh(random(80)),
}


@pytest.mark.parametrize("name", ON_CPU)
def test_cpu_in_order(gpu, name):
    """What has no kernel runs between its GPU neighbours, and is counted."""
    before = native.counters()["fallbacks"]
    got = ON_CPU[name]()
    mx.eval(got)
    after = native.counters()
    assert after["fallbacks"] == before + 1
    assert f"{name} on the CPU" in [
        f["signature"] for f in after["fallback_signatures"]
    ]
    with mx.stream(mx.cpu):
        want = ON_CPU[name]()
    for g, w in zip(got, want):
        assert mx.array_equal(g, w)


def test_cpu_between_gpu_work(gpu):
    def step(a):
        s = mx.sin(a)
        return mx.linalg.eigvalsh((s + s.T).astype(mx.complex64)) + a @ a

    x = random(40) / 20
    with mx.stream(mx.cpu):
        want = x
        for _ in range(3):
            want = step(want)
    for _ in range(20):
        got = x
        for _ in range(3):
            got = step(got)
        assert mx.abs(got - want).max() <= 1e-3 * mx.abs(want).max()


DENIED = "import mlx.core as mx\nmx.eval(mx.linalg.eig(mx.eye(7)))"


def test_deny_names_it(gpu):
    result = python("-c", DENIED, folder=HERE, MLX_VK_FALLBACK="deny")
    assert result.returncode != 0
    assert "Eig of float32 (7,7)" in result.stderr
    assert "MLX_VK_FALLBACK=deny" in result.stderr


FAILS = """
import mlx.core as mx
for _ in range(3):
    try:
        mx.eval(mx.linalg.eig(mx.full((8, 8), float("nan")))[0] + 1)
        print("nothing thrown")
    except RuntimeError as e:
        print("Eig" in str(e))
    assert mx.sum(mx.arange(10) + 1).item() == 55
"""


def test_error_on_the_cpu(gpu):
    """An error of the CPU's part reaches the reader; later work is not touched."""
    done = python("-c", FAILS, folder=HERE)
    assert done.returncode == 0, done.stderr[-3000:]
    said = [line for line in done.stdout.splitlines() if "entry" not in line]
    assert said == ["True"] * 3  # between lines of LAPACK
