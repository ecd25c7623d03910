"""Attention of prompts with the softmax on matrices in registers: by matrices that
software devices emulate, else by those of the device where their layout is known."""

import os
from pathlib import Path

import pytest
from processes import EMULATION, output_of

# Each compiles an emulated kernel, for some ten seconds.
FULL = os.environ.get("MLX_VK_TEST_FULL") == "1"
CASES = [("bfloat16", "causal", (2, 4, 2, 140, 150, 32, 32))]
if FULL:
    CASES += [
        ("float16", "sinks", (1, 4, 2, 70, 40, 16, 48)),
        ("bfloat16", "bool", (2, 2, 1, 67, 99, 64, 64)),
        ("float16", "added", (1, 4, 2, 33, 65, 48, 16)),
        ("bfloat16", None, (2, 2, 2, 65, 31, 32, 32)),
    ]
CHECK = """
import sys
import mlx.core as mx
import numpy as np
from mlx_vulkan.cases.attention import attention, fused
dtype, kind, shape = getattr(mx, sys.argv[1]), sys.argv[2], eval(sys.argv[3])
batch, heads, kv_heads, queries, keys, dim, value_dim = shape
rng = np.random.default_rng(5)


def rounded(*shape):
    return mx.array(rng.normal(size=shape)).astype(dtype)


def wide(x):
    return np.array(x.astype(mx.float32)).astype(np.float64)


inputs = [rounded(batch, heads, queries, dim), rounded(batch, kv_heads, keys, dim)]
inputs.append(rounded(batch, kv_heads, keys, value_dim))
mask = want_mask = "causal" if kind in ("causal", "sinks") else None
if kind == "bool":
    want_mask = rng.random((1, 1, queries, keys)) < 0.4
    want_mask[:, :, 3] = False
    mask = mx.array(want_mask)
elif kind == "added":
    mask = 4 * rounded(batch, 1, queries, keys)
    want_mask = wide(mask)
sinks = rounded(heads) if kind == "sinks" else None
got = wide(fused(mx, *inputs, mask, sinks))
want_sinks = None if sinks is None else wide(sinks)
want = attention(*map(wide, inputs), want_mask, want_sinks)
# Weights and the result are rounded to halves, by u/2 each.
u = {"bfloat16": 2.0**-8, "float16": 2.0**-11}[sys.argv[1]]
error = np.sqrt(np.mean((got - want) ** 2) / np.mean(want**2))
worst = np.abs(got - want).max() / np.abs(want).max()
if not (error < u and worst < 2 * u):
    sys.exit(f"{error} {worst}")
if kind in ("causal", "None"):
    # The mean of ones: weights that are truncated make it 0.7 u too small.
    ones = wide(fused(mx, *inputs[:2], mx.ones_like(inputs[2]), mask, sinks))
    if abs(ones.mean() - 1) > u / 8:
        sys.exit(f"the mean of ones is {ones.mean()}")
"""


@pytest.mark.parametrize("dtype, kind, shape", CASES)
def test_prompts(request, dtype, kind, shape):
    done = output_of(
        *("-c", CHECK, dtype, kind, shape),
        folder=Path(__file__).parent,
        MLX_VK_TEST=f"emulate,{EMULATION}",
        MLX_VK_DEBUG="paths",
    )
    if "llvmpipe" in request.config.mlxvk_name:
        assert "prefill_fragments" in done.stderr
