"""Sorts by digits (MLX_VK_TEST=radix_items=N), which long rows take."""

import os
import subprocess
import sys

import mlx.core as mx
import pytest

from mlx_vulkan import native

# Each kind of key, against NumPy's stable order: tiles that are not full, ties,
# zeros of both signs, infinities, NaN (of both signs: all equal, and last).
CHECK = """
import sys
import numpy as np
import mlx.core as mx

rng = np.random.default_rng(5)
ROWS = [(1, 1), (3, 33), (2, 5000), (300, 70), (1, 70001)]
FLOATS = ("float32", "float16", "bfloat16")

def keys(dtype, shape):
    if dtype == "bool_":
        return rng.random(shape) < 0.5
    if dtype not in FLOATS:
        info = np.iinfo(dtype)
        return rng.integers(info.min, int(info.max) + 1, shape).astype(dtype)
    x = (rng.normal(size=shape) * 10).astype(np.float32)
    for value in (0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-37, 65504.0):
        x[rng.random(shape) < 0.05] = value
    return x

def bits(x):
    kinds = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32}
    return np.array(x.view(kinds[x.itemsize]))

count = 0
for dtype in ("float32", "bfloat16", "uint32", "int16", "uint8", "bool_", "int64"):
    for shape in ROWS:
        x = mx.array(keys(dtype, shape)).astype(getattr(mx, dtype))
        views = {"whole": x, "transposed": mx.contiguous(x.T).T, "back": x[:, ::-1]}
        for name, view in views.items():
            wide = view.astype(mx.float32) if dtype in FLOATS else view
            order = np.argsort(np.array(wide), axis=-1, kind="stable")
            found = np.array(mx.argsort(view, axis=-1))
            if not np.array_equal(found, order):
                sys.exit(f"argsort {dtype} {shape} {name}")
            if dtype == "int64":
                continue
            want = np.take_along_axis(bits(mx.contiguous(view)), order, -1)
            if not np.array_equal(bits(mx.sort(view, axis=-1)), want):
                sys.exit(f"sort {dtype} {shape} {name}")
            count += 1
assert mx.sort(mx.zeros((0,))).size == 0
columns = mx.sort(mx.array([[3, 2], [1, 4]]), axis=0)
assert columns.tolist() == [[1, 2], [3, 4]]
print(count)
"""


def subgroup_size(gpu) -> int:
    name = mx.device_info(gpu)["device_name"]
    device = next(d for d in native.report()["devices"] if d["name"] == name)
    return device["limits"]["subgroup_size"]


@pytest.mark.parametrize("least", ["1", "0"])
def test_order(gpu, least):
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        env={
            **os.environ,
            "MLX_VK_TEST": f"radix_items={least}",
            "MLX_VK_PROFILE": "1",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) == 90
    fits = 8 <= subgroup_size(gpu) <= 64
    assert ("radix{" in done.stderr) == (fits and least == "1")
