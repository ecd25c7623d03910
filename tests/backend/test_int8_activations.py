"""Products with x rounded to bytes, multiplied by integer dot products
(MLX_VK_INT8_ACTIVATIONS): codes as signed and as unsigned bytes."""

from pathlib import Path

import pytest
from processes import output_of

PROGRAM = Path(__file__).with_name("int8_products.py")


@pytest.mark.parametrize(
    "int8, parts",
    [
        ("signed", ("formats",)),
        ("signed", ("rows", "layouts", "special")),
        ("unsigned", ("bytes_of_8_bits", "special")),
    ],
)
def test_products(gpu, int8, parts):
    settings = {"MLX_VK_TEST": f"int8={int8}", "MLX_VK_DEBUG": "paths"}
    done = output_of(PROGRAM, *parts, **settings)
    assert "qmm_dot" in done.stderr
    assert ("qmv" in done.stderr) == ("rows" in parts)  # of 8 rows and fewer
    assert "qmm " not in done.stderr


def test_only_where_asked_for(gpu):
    """Without the variable, and with 1 where matrix units or no fast products of
    bytes are, nothing is rounded."""
    code = (
        "import mlx.core as mx\n"
        "w = mx.quantize(mx.random.normal((32, 64)))\n"
        "mx.eval(mx.quantized_matmul(mx.random.normal((64, 64)), *w))\n"
    )
    done = output_of("-c", code, MLX_VK_DEBUG="paths", MLX_VK_INT8_ACTIVATIONS=None)
    assert "k=64" in done.stderr and "qmm_dot" not in done.stderr
