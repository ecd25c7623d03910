"""Quantized products in tiles of rows (quant/qmm.comp) against float64: formats,
ends of tiles, and rows of x that 16-byte loads cannot take."""

import mlx.core as mx
import numpy as np
import pytest

HALF = {mx.float32: 2.0**-24, mx.float16: 2.0**-11, mx.bfloat16: 2.0**-8}
# m, n, k, bits, group, mode
CASES = [
    (16, 72, 128, 4, 64, "affine"),
    (33, 264, 256, 4, 64, "affine"),
    (100, 520, 512, 4, 32, "affine"),
    (65, 129, 128, 2, 64, "affine"),
    (40, 66, 160, 3, 32, "affine"),
    (33, 64, 128, 5, 32, "affine"),
    (90, 200, 192, 6, 64, "affine"),
    (70, 130, 96, 8, 32, "affine"),
    (70, 96, 80, 4, 16, "nvfp4"),
    (70, 96, 64, 4, 32, "mxfp4"),
    (70, 96, 64, 8, 32, "mxfp8"),
]


def wide(a):
    return np.array(a.astype(mx.float32)).astype(np.float64)


def check(y, x, w, dtype):
    want, size = x @ w, np.abs(x) @ np.abs(w)
    bound = 1.01 * HALF[dtype] * np.abs(want) + 2.0**-24 * x.shape[-1] * size
    assert np.all(np.abs(wide(y) - want) <= bound)


def matrix(rng, dtype, shape, **how):
    """Codes and their sides, and the weights that they stand for."""
    parts = mx.quantize(mx.array(rng.standard_normal(shape)).astype(dtype), **how)
    exact = [p if p.dtype != dtype else p.astype(mx.float32) for p in parts]
    return parts, np.swapaxes(wide(mx.dequantize(*exact, **how)), -1, -2)


@pytest.fixture(autouse=True)
def scalar(gpu, request):
    half = request.getfixturevalue("dtype") != mx.float32
    if half and "llvmpipe" not in request.config.mlxvk_name:
        pytest.skip("may take matrix units, which test_matrix_units.py checks")


@pytest.mark.parametrize("dtype", HALF, ids=str)
@pytest.mark.parametrize("m, n, k, bits, group, mode", CASES)
def test_products(gpu, dtype, m, n, k, bits, group, mode):
    how = {"group_size": group, "bits": bits, "mode": mode}
    rng = np.random.default_rng(m + n + k)
    parts, w = matrix(rng, dtype, (n, k), **how)
    flat = mx.array(rng.standard_normal(m * k + 1)).astype(dtype)
    for start in (0, 1):  # 1: not aligned
        x = flat[start : start + m * k].reshape(m, k)
        y = mx.quantized_matmul(x, *parts, transpose=True, **how)
        check(y, wide(x), w, dtype)


@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_rows_sorted_by_expert(gpu, dtype):
    rng = np.random.default_rng(7)
    how = {"group_size": 64, "bits": 4}
    experts = np.sort(rng.integers(0, 5, 150)).astype(np.uint32)
    x = mx.array(rng.standard_normal((150, 1, 128))).astype(dtype)
    parts, w = matrix(rng, dtype, (5, 136, 128), **how)
    y = mx.gather_qmm(
        x,
        *parts,
        rhs_indices=mx.array(experts),
        transpose=True,
        sorted_indices=True,
        **how,
    )
    check(y, wide(x), w[experts], dtype)
