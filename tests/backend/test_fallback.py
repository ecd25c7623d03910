"""What has no kernel of its own is right, counted, and can be denied."""

import pathlib

import mlx.core as mx
import numpy as np
import pytest
from processes import python

from mlx_vulkan import native

HERE = pathlib.Path(__file__).resolve().parent

# Operations that are decomposed where their variable asks for it.
ASKED = {"GATED_DELTA_VJP_FALLBACK": "1"}
CODE = {
    "GatedDeltaUpdate": (
        "mx.grad(lambda q: mx.fast.gated_delta_update(q, q, q, mx.ones((1, 2, 16)),"
        " mx.ones((1, 2, 16)))[0].sum())(mx.ones((1, 2, 16, 128)))"
    ),
}


def run(code, **environment):
    code = f"import mlx.core as mx\nmx.eval({code})"
    return python("-c", code, folder=HERE, **environment)


@pytest.mark.parametrize("name", CODE)
def test_deny_names_the_operation(gpu, name):
    assert run(CODE[name], MLX_VK_FALLBACK="deny").returncode == 0
    result = run(CODE[name], MLX_VK_FALLBACK="deny", **ASKED)
    assert result.returncode != 0
    assert name in result.stderr
    assert "MLX_VK_FALLBACK=deny" in result.stderr


@pytest.mark.parametrize("name", CODE)
def test_warn_prints_a_signature_once(gpu, name):
    code = f"[{CODE[name]} for _ in range(3)]"
    result = run(code, MLX_VK_FALLBACK="warn", **ASKED)
    assert result.returncode == 0, result.stderr
    lines = [s for s in result.stderr.splitlines() if "decomposed" in s]
    assert len(lines) == 1 and name in lines[0]


@pytest.mark.parametrize("name", CODE)
def test_counters_count_it(gpu, name, monkeypatch):
    before = native.counters()
    mx.eval(eval(CODE[name]))
    assert native.counters()["decompositions"] == before["decompositions"]
    monkeypatch.setenv(*next(iter(ASKED.items())))
    mx.eval(eval(CODE[name]))
    after = native.counters()
    for key in ("fallbacks", "decompositions"):
        assert after[key] == before[key] + 1
    assert name in [f["signature"] for f in after["fallback_signatures"]]


def check_transform(got, want):
    """Sizes of a transform's items, plus something exact or of its input.

    The norm of a transform's error is at most 6.7 log2(n) u of the norm of the result
    (Higham, Accuracy and Stability of Numerical Algorithms, theorem 24.2); four more
    roundings are those of the input, the size and the sum.
    """
    bound = (6.7 * np.log2(max(2, want.shape[-1])) + 4) * 2.0**-24
    error = np.linalg.norm(got - want, axis=-1)
    assert (error <= bound * np.linalg.norm(want, axis=-1)).all()


def test_results_between_gpu_operations(gpu):
    """A transform in the middle of GPU work sees it, and is seen by it."""
    rng = np.random.default_rng(0)
    for n in (1, 16, 4096):
        x = rng.normal(size=(5, n)).astype(np.float32)
        for _ in range(10):
            a = mx.array(x) * 2 + 1
            b = mx.abs(mx.fft.fft(a, axis=-1)) + mx.abs(a)
            want = np.abs(np.fft.fft(x * 2 + 1)) + np.abs(x * 2 + 1)
            check_transform(np.array(b), want)


def test_results_across_streams(gpu):
    stream, cpu = mx.new_stream(mx.gpu), mx.new_stream(mx.cpu)
    x = mx.sort(mx.random.normal((4, 4096), stream=cpu), stream=cpu)
    y = mx.fft.rfft(x, stream=stream)
    z = mx.abs(y) + 1
    w = mx.sum(z, stream=cpu)
    mx.eval(w, z)
    want = np.abs(np.fft.rfft(np.array(x))) + 1
    check_transform(np.array(z), want)
