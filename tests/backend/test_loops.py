"""MLX_VK_DEBUG=loops: a loop beyond its bound is an error that names it.

Each broken kernel would run for ever on a GPU; llvmpipe would end it in silence.
"""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from processes import python

KERNELS = Path(__file__).resolve().parents[2] / "src/kernels"

HEAD = """
import mlx.core as mx, numpy as np
rng = np.random.default_rng(0)
def same(found, expected):
    mx.eval(found)  # numpy passes over exceptions of the buffer protocol
    assert np.array_equal(np.array(found), expected)
"""
SEARCHSORTED = """
s = np.sort(rng.normal(size=1000)).astype(np.float32)
v = rng.normal(size=300).astype(np.float32)
same(mx.searchsorted(mx.array(s), mx.array(v)), np.searchsorted(s, v))
"""
# Several tiles of a row, which are then merged.
SORT = """
x = rng.integers(0, 10**9, size=(2, 10_000)).astype(np.int32)
same(mx.sort(mx.array(x)), np.sort(x))
"""
# Many invocations meet in few items; sums of small integers are exact.
SCATTER = """
i = rng.integers(0, 5, size=4000)
for dtype in (mx.float32, mx.float16, mx.complex64):
    y = mx.zeros(5, dtype=dtype).at[mx.array(i)].add(mx.ones(4000, dtype=dtype))
    same(y.astype(mx.float32), np.bincount(i).astype(np.float32))
"""
REMAINDER = """
x = np.array([3e38, 1e30, 7.5], dtype=np.float32)
y = np.array([3e-38, 7e-3, 2.0], dtype=np.float32)
same(mx.remainder(mx.array(x), mx.array(y)), np.fmod(x, y))
"""
POWER = """
x = np.array([3, -2, 7, 1, 5], dtype=np.int64)
y = np.array([33, 63, 0, 2**62, -1], dtype=np.int64)
with np.errstate(over="ignore"):
    expected = np.power(x, np.abs(y)) * (y >= 0)
same(mx.array(x) ** mx.array(y), expected)
"""
# Long runs and single rows of a matrix, over tile borders.
GATHER_QMM = """
mx.random.seed(0)
w, scales, biases = mx.quantize(mx.random.normal((6, 64, 128)), 64, 4)
x = mx.random.normal((300, 1, 128))
i = np.sort(rng.integers(0, 3, size=300)) * 2 + (np.arange(300) == 299)
i = i.astype(np.uint32)
y = mx.gather_qmm(x, w, scales, biases, rhs_indices=mx.array(i),
                  transpose=True, group_size=64, bits=4, sorted_indices=True)
mx.eval(y)
dense = np.array(mx.dequantize(w, scales, biases, 64, 4))
expected = np.einsum("rik,rnk->rin", np.array(x), dense[i])
# Sums of 128 products of normal numbers, in another order and, where matrices
# are cooperative, from operands of 10 bits.
assert np.allclose(np.array(y), expected, atol=0.2)
"""
HEALTHY = (SEARCHSORTED, SORT, SCATTER, REMAINDER, POWER, GATHER_QMM)


@dataclass
class Broken:
    """A line of a kernel, what it becomes, and who notices."""

    file: str
    old: str
    new: str
    code: str
    kernel: str
    bound: str
    loop: int = 0  # which loop of the file


NARROWING = """\
    low = b_first ? low : middle + 1;
    high = b_first ? middle : high;
"""
BROKEN = {
    "searchsorted": Broken(
        "searchsorted.comp",
        "high = below ? high : middle;",
        "high = high;",
        SEARCHSORTED,
        "searchsorted{T=f32",
        "32",
    ),
    "sort": Broken(
        "sort.comp",
        "key_at[a + middle]);\n" + NARROWING,
        "key_at[a + middle]);\n",
        SORT,
        "sort{T=i32",
        "32",
    ),
    "merge": Broken(
        "sort.comp",
        "load(A.src, a + middle));\n" + NARROWING,
        "load(A.src, a + middle));\n",
        SORT,
        "sort{T=i32 ARG=0 MERGE=1",
        "32",
        1,
    ),
    "scatter": Broken(
        "common/atomics.glsl",
        "seen = before;",
        "seen = ~before;",
        SCATTER,
        "scatter{T=f32",
        "",
        1,
    ),
    "complex scatter": Broken(
        "common/atomics.glsl",
        "seen = before;",
        "seen = ~before;",
        SCATTER.replace("mx.float32, mx.float16, mx.complex64", "mx.complex64,"),
        "scatter{T=c64",
        "",
        0,
    ),
    "remainder": Broken(
        "common/power.glsl",
        "shift -= s;",
        "shift -= s / 64;",
        REMAINDER,
        "",
        "8",
    ),
    "tiles of sorted rows": Broken(
        "gemm/sorted_walk.glsl",
        "    i += A.m_tiles;",
        "    i += 0;",
        GATHER_QMM,
        "quant/qmm{T=f32",
        "",
    ),
}


def run(code: str, **env: str) -> subprocess.CompletedProcess:
    return python("-c", HEAD + code, **{"MLX_VK_DEBUG": "loops", **env})


@pytest.mark.parametrize("name", BROKEN)
def test_a_loop_without_end_is_named(gpu, tmp_path, name):
    broken = BROKEN[name]
    folder = tmp_path / "kernels"
    shutil.copytree(KERNELS, folder)
    path = folder / broken.file
    text = path.read_text()
    assert broken.old in text
    path.write_text(text.replace(broken.old, broken.new))
    lines = text.splitlines()
    loops = [i for i, line in enumerate(lines, 1) if "BOUNDED_WHILE(" in line]
    place = f"{broken.file}:{loops[broken.loop]} "

    done = run(broken.code, MLX_VK_KERNEL_PATH=str(folder))
    assert done.returncode == 1, done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("RuntimeError: [vulkan] MLX_VK_DEBUG=loops: in the kernel ")
    assert f"in the kernel {broken.kernel}" in last
    assert f"the loop at {place}" in last
    assert f"went beyond its bound of {broken.bound}" in last


def test_sound_loops_stay_within_their_bounds(gpu):
    done = run("".join(HEALTHY))
    assert done.returncode == 0, done.stderr


def test_the_device_goes_on_after_the_error(gpu, tmp_path):
    folder = tmp_path / "kernels"
    shutil.copytree(KERNELS, folder)
    path = folder / "searchsorted.comp"
    broken = BROKEN["searchsorted"]
    path.write_text(path.read_text().replace(broken.old, broken.new))
    code = """
s, v = mx.arange(100.0), mx.array([3.0, 50.0])
mx.eval(s)  # not with what fails
try:
    mx.eval(mx.searchsorted(s, v) + 1)
    raise SystemExit("no error")
except RuntimeError as error:
    assert "searchsorted.comp" in str(error), error
same(mx.sort(-s), -np.arange(100.0, dtype=np.float32)[::-1])
"""
    done = run(code, MLX_VK_KERNEL_PATH=str(folder))
    assert done.returncode == 0, done.stderr
