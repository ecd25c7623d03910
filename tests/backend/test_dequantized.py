"""Weights dequantized once, before a dense product (MLX_VK_TEST=dequantize_rows=N)."""

import pytest
from processes import output_of

# Products of every format and layout against the same weights' dense product,
# in float32. Each uses the memory that the one before it has used.
CHECK = """
import sys
import mlx.core as mx
mx.random.seed(3)
FORMATS = [("affine", 64, b) for b in (2, 3, 4, 5, 6, 8)] + [
    ("affine", 128, 4), ("affine", 32, 8),
    ("mxfp4", 32, 4), ("mxfp8", 32, 8), ("nvfp4", 16, 4)]
# 16-bit inputs and results: half a unit in the last place of each of both.
ROUNDING = {mx.float32: 2e-5, mx.float16: 2e-3, mx.bfloat16: 1.6e-2}
LAYOUTS = {
    "plain": lambda m, k: mx.random.normal((m, k)),
    "stack": lambda m, k: mx.random.normal((2, m // 2, k)),
    "padded rows": lambda m, k: mx.random.normal((m, k + 8))[:, :k],
    "columns": lambda m, k: mx.random.normal((k, m)).T,
    "reversed": lambda m, k: mx.random.normal((m, k))[::-1],
    "one row": lambda m, k: mx.broadcast_to(mx.random.normal((1, k)), (m, k)),
}
products = 0
for mode, group, bits in FORMATS:
    for dtype, rounding in ROUNDING.items():
        for transpose in (True, False):
            many = mode == "affine" and bits == 4
            for layout in LAYOUTS if many else ["plain"]:
                for m, n, k in ((40, 128, 256), (34, 384, 128)):
                    shape = (n, k) if transpose else (k, n)
                    w = mx.random.normal(shape).astype(dtype)
                    how = dict(group_size=group, bits=bits, mode=mode)
                    q = mx.quantize(w, **how)
                    x = LAYOUTS[layout](m, k).astype(dtype)
                    y = mx.quantized_matmul(x, *q, transpose=transpose, **how)
                    wide = mx.dequantize(*q, **how).astype(mx.float32)
                    want = x.astype(mx.float32) @ (wide.T if transpose else wide)
                    norm = mx.abs(x.astype(mx.float32)) @ mx.abs(
                        wide.T if transpose else wide)
                    worst = mx.max(mx.abs(y.astype(mx.float32) - want) / norm)
                    assert y.dtype == dtype and y.shape == want.shape
                    if not worst.item() <= rounding:
                        sys.exit(f"{mode} {bits} {dtype} {transpose} {layout} "
                                 f"{(m, n, k)}: {worst.item()}")
                    products += 1
print(products)
"""


@pytest.mark.parametrize("rows, first", [("33", True), ("41", False), ("0", False)])
def test_products_agree(gpu, rows, first):
    settings = {"MLX_VK_TEST": f"dequantize_rows={rows}", "MLX_VK_DEBUG": "paths"}
    done = output_of("-c", CHECK, **settings)
    assert int(done.stdout) == 252
    assert ("dequantized first" in done.stderr) == first
