"""MLX_VK_QMM_STATS and MLX_VK_SDPA_STATS: which kernel ran for which shape."""

import os
import subprocess
import sys

QMM = """
import mlx.core as mx
w = mx.quantize(mx.random.normal((64, 128)), group_size=64, bits=4)
for m in (1, 1, 40):
    x = mx.random.normal((m, 128))
    mx.eval(mx.quantized_matmul(x, *w, group_size=64, bits=4))
"""
SDPA = """
import mlx.core as mx
k = mx.random.normal((1, 2, 50, 64))
for n in (1, 20):
    q = mx.random.normal((1, 4, n, 64))
    mx.eval(mx.fast.scaled_dot_product_attention(q, k, k, scale=0.1))
"""


def rows(code, variable):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, variable: "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return [" ".join(line.split()) for line in done.stderr.splitlines()]


def test_quantized_products_say_their_path(gpu):
    found = rows(QMM, "MLX_VK_QMM_STATS")
    assert "[mlx-vulkan] quantized products" in found
    shape = "f32 m={} n=64 k=128 batch=1 bits=4 group=64 affine w^T"
    assert f"2 x {shape.format(1)}: qmv rows=1" in found
    (tiled,) = [r for r in found if shape.format(40) in r]
    assert tiled.endswith("(no cooperative matrices for x's type)")


def test_attention_says_its_path(gpu):
    found = rows(SDPA, "MLX_VK_SDPA_STATS")
    assert "[mlx-vulkan] attention" in found
    head = "1 x f32 batch=1 heads=4/2 queries={} keys=50 dim=64/64: "
    (one,) = [r for r in found if head.format(1) in r]
    assert "decode, splits=1" in one
    (many,) = [r for r in found if head.format(20) in r]
    assert many.endswith(
        "prefill (no cooperative matrices for this type in subgroups of 32)"
    )


def test_nothing_is_printed_unasked(gpu):
    assert not any("quantized products" in r for r in rows(QMM, "UNRELATED"))
