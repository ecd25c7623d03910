"""Dense products by the tiles that GPUs without matrix units take, and float32 on
all (gemm/gemm.comp with PREFETCH), which software devices take when asked to."""

import os

import pytest
from processes import EMULATION, output_of

# An item's error: its own rounding, and float32 sums.
CHECK = """
import sys
import mlx.core as mx
import numpy as np
name, full = sys.argv[1], sys.argv[2] == "full"
dtype = getattr(mx, name)
half = {"bfloat16": 2.0**-8, "float16": 2.0**-11}.get(name, 0)
rng = np.random.default_rng(11)
exact = np.complex128 if name == "complex64" else np.float64


def wide(a):
    return np.array(a if name == "complex64" else a.astype(mx.float32)).astype(exact)


def some(*shape):
    x = rng.standard_normal(shape)
    if name == "complex64":
        x = x + 1j * rng.standard_normal(shape)
    return mx.array(x.astype(np.complex64 if exact is np.complex128 else np.float32)
                    ).astype(dtype)


def check(a, b, label, c=None):
    y = wide(a @ b if c is None else mx.addmm(c, a, b, 0.5, 2.0))
    want, size = wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b))
    if c is not None:
        want, size = 0.5 * want + 2 * wide(c), 0.5 * size + 2 * np.abs(wide(c))
    bound = half * 1.01 * np.abs(want) + 2.0**-20 * size
    if y.shape != want.shape or not np.all(np.abs(y - want) <= bound):
        print(label, np.max(np.abs(y - want)))
        sys.exit(1)


def matrix(rows, cols, transposed):
    return some(cols, rows).T if transposed else some(rows, cols)


# 128 x 128, 64 x 64 and 32 x 32, each with parts of tiles at its edges; k's that
# end within a step.
shapes = [(140, 268, 76), (131, 70, 37), (60, 68, 40), (33, 31, 5)]
layouts = [(False, False), (False, True), (True, False), (True, True)]
for m, n, k in shapes:
    for a_t, b_t in layouts if full else layouts[:: 1 if m > 131 else 3]:
        check(matrix(m, k, a_t), matrix(k, n, b_t), f"{m}, {n}, {k}, {a_t}, {b_t}")
check(some(140, 0), some(0, 132), "no k")
check(some(3, 72, 76), some(3, 76, 132), "a batch")
if name != "complex64":
    check(some(140, 76), some(76, 268), "a bias", c=some(268))
if full or name == "float32":
    check(some(70, 8200), some(8200, 72), "parts of k")
    # Beyond k lie items that are not numbers, as do rows and columns of others.
    a, b = np.full((2, 200, 200), np.nan, np.float32)
    a[:140, :76] = rng.standard_normal((140, 76))
    b[:76, :132] = rng.standard_normal((76, 132))
    a, b = mx.array(a).astype(dtype), mx.array(b).astype(dtype)
    check(a[:140, :76], b[:76, :132], "a part of a matrix")
"""
FULL = os.environ.get("MLX_VK_TEST_FULL") == "1"
# Each kernel compiles for seconds.
TYPES = ["float32", *["float16", "bfloat16", "complex64"][: 3 if FULL else 0]]


@pytest.mark.parametrize("dtype", TYPES)
def test_tiles(gpu, request, dtype):
    done = output_of(
        *("-c", CHECK, dtype, "full" if FULL else "some"),
        MLX_VK_TEST=f"skinny_rows=5,{EMULATION}",
        MLX_VK_PROFILE="1",
    )
    if "llvmpipe" in request.config.mlxvk_name:
        assert "PREFETCH=1" in done.stderr
