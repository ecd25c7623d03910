"""The probe that RADV_EXPERIMENTAL=bfloat16 asks for: matrices of bf16 that are not
precise are given up. Software devices emulate them, whole and broken."""

import shutil
from pathlib import Path

import pytest
from processes import TESTS, output_of

PRODUCT = """
import mlx.core as mx
x = mx.random.normal((40, 128)).astype(mx.bfloat16)
w = mx.random.normal((72, 128)).astype(mx.bfloat16)
y = (x @ w.T).astype(mx.float32)
want = x.astype(mx.float32) @ w.T.astype(mx.float32)
assert mx.allclose(y, want, rtol=2**-7, atol=2**-7), mx.abs(y - want).max()
"""

SUM = "y[e_] += a[ITEM_C(e_) / MN * MK + k_] * b[k_ * MN + ITEM_C(e_) % MN];"
TERM = SUM.removeprefix("y[e_] += ").removesuffix(";")
BF16 = "return uintBitsToFloat(i == 0 ? pair << 16 : pair & 0xffff0000u);"
# What is lost: a line of the emulation, and what it becomes.
BROKEN = {
    "long sums": (
        SUM,
        f"{SUM} y[e_] = uintBitsToFloat(floatBitsToUint(y[e_]) & 0xffffff00u);",
    ),
    "items that cancel": (
        SUM,
        f"float p_ = {TERM}; y[e_] += abs(p_) < 0.01 && abs(p_) > 1e-9 ? 0.0 : p_;",
    ),
    "subnormal items": (
        BF16,
        "uint q = i == 0 ? pair << 16 : pair & 0xffff0000u;"
        " return (q & 0x7f800000u) == 0 ? 0.0 : uintBitsToFloat(q);",
    ),
}


def product(folder: Path, words: str) -> str:
    done = output_of(
        "-c",
        PRODUCT,
        MLX_VK_TEST=f"matrices=16x16x16,kernels={folder}",
        MLX_VK_DISABLE="halves",
        MLX_VK_PROFILE="1",
        RADV_EXPERIMENTAL=words,
    )
    return done.stdout + done.stderr


@pytest.fixture
def software(gpu, request):
    if "llvmpipe" not in request.config.mlxvk_name:
        pytest.skip("only software devices emulate matrices")


def test_precise_matrices_are_kept(software):
    report = product(TESTS / "emulation", "sparse,bfloat16")
    assert "gemm/rows_coopmat{" in report
    assert "bf16 matrices are off" not in report


@pytest.mark.parametrize("sums", BROKEN)
def test_broken_matrices_are_given_up(software, tmp_path, sums):
    folder = tmp_path / "emulation"
    shutil.copytree(TESTS / "emulation", folder)
    file = folder / "common" / "emulated_matrices.glsl"
    line, broken = BROKEN[sums]
    text = file.read_text("utf-8")
    assert text.count(line) == 1
    file.write_text(text.replace(line, broken), "utf-8")
    report = product(folder, "bfloat16")
    assert f"bf16 matrices are off, since they do not add up {sums} precisely" in report
    assert "gemm/rows_coopmat{" not in report
