"""A kernel that does not compile: who asks hears of it, and nobody else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

KERNELS = Path(__file__).resolve().parents[2] / "src" / "kernels"
PROGRAM = """
import mlx.core as mx
mx.set_default_device(mx.gpu)
x = mx.arange(4, dtype=mx.float32)
mx.eval(x)
for _ in range(2):
    try:
        mx.eval(mx.softmax(x))
        print("computed")
    except RuntimeError as error:
        print(error)
print("then", (x + 1).sum().item())
"""


def test_a_kernel_that_does_not_compile_is_told(tmp_path):
    folder = tmp_path / "kernels"
    shutil.copytree(KERNELS, folder)
    with open(folder / "softmax.comp", "a") as file:
        file.write("\nint broken() { return nonsense; }\n")
    env = {
        **os.environ,
        "MLX_VK_KERNEL_PATH": str(folder),
        "MLX_VK_CACHE": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # From the batch, then from the call.
    assert done.stdout.count("[vulkan] The kernel softmax{") == 2
    assert done.stdout.count("nonsense") >= 2 and "computed" not in done.stdout
    assert done.stdout.endswith("then 10.0\n")
