"""Attention's backward pass in blocks, and when it is decomposed."""

import os
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from processes import EMULATION, output_of

from mlx_vulkan.cases import attention_vjp as vjp


def gradients(shape, mask=None):
    rng = np.random.default_rng(7)
    inputs = [rng.normal(size=s).astype(np.float32) for s in vjp.shapes_of(*shape)]
    got = vjp.backward(mx, *map(mx.array, inputs), mask)
    mx.eval(got)
    want = vjp.gradients(*(x.astype(np.float64) for x in inputs), mask)
    for g, w in zip(got, want):
        np.testing.assert_allclose(np.array(g), w, 1e-4, 5e-5)


# 48 * 48 scores hold neither a head nor an even number of rows; 200 * 200 hold
# some of the heads, or all of a batch.
@pytest.mark.parametrize("edge", ["1", "48", "110", "200"])
@pytest.mark.parametrize("mask", [None, "causal"])
def test_blocks(monkeypatch, edge, mask):
    monkeypatch.setenv("MLX_SDPA_VJP_BLOCK", edge)
    gradients((2, 4, 2, 33, 131, 32) if edge != "1" else (1, 2, 1, 3, 5, 32), mask)


# The forward pass splits the keys and merges their parts.
@pytest.mark.parametrize("queries, keys", [(2, 60000), (9, 60000)])
def test_many_keys(queries, keys):
    gradients((1, 2, 1, queries, keys, 32))


def test_decomposition(monkeypatch):
    monkeypatch.setenv("MLX_SDPA_VJP_FALLBACK", "1")
    gradients((1, 4, 2, 33, 70, 32), "causal")


def attend(q, **more):
    y = mx.fast.scaled_dot_product_attention(q, q, q, scale=0.25, **more)
    return y.square().sum()


def test_masks_and_sinks_have_gradients():
    q = mx.random.normal((1, 2, 9, 32))
    by_mask = mx.grad(lambda m: attend(q, mask=m))(mx.zeros((9, 9)))
    by_sinks = mx.grad(lambda s: attend(q, sinks=s))(mx.zeros((2,)))
    mx.eval(by_mask, by_sinks)
    assert mx.isfinite(by_mask).all() and mx.isfinite(by_sinks).all()


def test_no_queries():
    q = mx.zeros((1, 2, 0, 32))

    def loss(k):
        return mx.fast.scaled_dot_product_attention(
            q, k, k, scale=1, force_fused=True
        ).sum()

    assert not mx.grad(loss)(mx.ones((1, 2, 5, 32))).any()


# Each compiles two emulated kernels, for some ten seconds.
FULL = os.environ.get("MLX_VK_TEST_FULL") == "1"
EMULATED = [("bfloat16", "causal", (2, 4, 2, 37, 53, 32))]
if FULL:
    EMULATED += [
        ("float16", "causal", (1, 4, 2, 53, 21, 48)),
        ("bfloat16", None, (1, 2, 2, 19, 33, 16)),
        ("float16", "bool", (2, 2, 1, 17, 35, 32)),
    ]
IN_REGISTERS = """
import sys
from mlx_vulkan.cases import attention_vjp as vjp
import mlx.core as mx
import numpy as np
dtype, mask, shape = getattr(mx, sys.argv[1]), sys.argv[2], eval(sys.argv[3])
rng = np.random.default_rng(11)
inputs = [mx.array(rng.normal(size=s)).astype(dtype) for s in vjp.shapes_of(*shape)]
wide = [np.array(x.astype(mx.float32)).astype(np.float64) for x in inputs]
mask = None if mask == "None" else mask
if mask == "bool":
    mask = rng.random((1, 1, *shape[3:5])) < 0.6
    mask[:, :, 3] = False
mx_mask = mx.array(mask) if isinstance(mask, np.ndarray) else mask
got = vjp.backward(mx, *inputs, mx_mask, force=True)
u = {"bfloat16": 2.0**-8, "float16": 2.0**-11}[sys.argv[1]]
for name, g, want in zip("qkv", got, vjp.gradients(*wide, mask)):
    g = np.array(g.astype(mx.float32))
    # The output, the weights, their gradients and the result are rounded to halves,
    # by u/2 each and not alike: in the mean square less than 2 u.
    error = np.sqrt(np.mean((g - want) ** 2) / np.mean(want**2))
    if not error < 2 * u:
        sys.exit(f"d{name}: {error}")
"""


@pytest.mark.parametrize("dtype, mask, shape", EMULATED)
def test_in_registers(request, dtype, mask, shape):
    done = output_of(
        *("-c", IN_REGISTERS, dtype, mask, shape),
        folder=Path(__file__).parent,
        MLX_VK_TEST=f"emulate,{EMULATION}",
        MLX_VK_DEBUG="paths",
    )
    if "llvmpipe" in request.config.mlxvk_name:
        assert "backward, in registers" in done.stderr
