"""Random models of mlx-lm's families: the GPU's logits against the CPU's.

Nothing may be decomposed on the way: conftest.py sets MLX_VK_FALLBACK=deny.
"""

import mlx.core as mx
import numpy as np
import pytest

import tiny
from mlx_vulkan.bench import shapes
from reference import BFLOAT16, FLOAT32, PROMPT, STEPS, bounds, logits


def check(model, batch, relative=FLOAT32, dtype=mx.float32, widest=2e-3):
    """`widest` is what part of the logits' spread the bound may reach."""
    tokens = np.random.default_rng(1).integers(1, 200, (batch, PROMPT + STEPS))
    with mx.stream(mx.cpu):
        # Rounded first, so that both devices have the same weights.
        model.set_dtype(dtype)
        model.set_dtype(mx.float32)
        mx.eval(model.parameters())
    reference = logits(model, tokens, mx.cpu)
    allowed = bounds(model, tokens, reference, relative)
    with mx.stream(mx.cpu):
        model.set_dtype(dtype)
        mx.eval(model.parameters())
    for i, (got, want) in enumerate(zip(logits(model, tokens, mx.gpu), reference)):
        spread = float(want.std())
        assert allowed[i] < widest * spread, "a bound this wide would prove nothing"
        difference = float(np.abs(got - want).max())
        print(f"step {i}: {difference:.1e} of {spread:.1e}, bound {allowed[i]:.1e}")
        assert difference <= allowed[i], f"step {i}"


@pytest.mark.parametrize("family", shapes.TINY)
def test_float32(family):
    check(tiny.make_model(family), batch=2)


@pytest.mark.parametrize("family", shapes.TINY)
def test_quantized(family):
    experts = {"group_size": 32, "bits": 4, "mode": "mxfp4"}
    model = tiny.make_model(family)
    check(tiny.quantize(model, **(experts if family == "gpt_oss" else {})), batch=1)


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma2", "phi3"])
def test_bfloat16(family):
    model = tiny.quantize(tiny.make_model(family))
    check(model, 1, BFLOAT16, mx.bfloat16, widest=0.5)
