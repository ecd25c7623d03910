"""Bad surroundings and bad requests: a sentence, never a crash or a hang.

Each runs in a process of its own, since device and settings are per process.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import output_of, python

WORK = """
import json, sys
import mlx.core as mx
mx.set_default_device(mx.gpu)
a = mx.arange(1000, dtype=mx.float32)
b = mx.softmax(mx.exp(-a / 100).reshape(10, 100), axis=-1)
total = float((b.sum() + mx.sort(a)[3]).item())
assert abs(total - 13) < 1e-3, total
"""
COUNT = """
from mlx_vulkan import native
print(json.dumps(native.counters()))
"""


def run(code: str, timeout: float = 120, **env: str) -> subprocess.CompletedProcess:
    return python("-c", code, limit=timeout, **env)


def check(code: str, **env: str) -> str:
    return output_of("-c", code, limit=120, **env).stdout


@pytest.mark.parametrize(
    "env",
    [
        {"VK_DRIVER_FILES": "/nonexistent", "VK_ICD_FILENAMES": "/nonexistent"},
        {"VK_LOADER_DRIVERS_DISABLE": "*", "VK_DRIVER_FILES": "/nonexistent"},
    ],
)
def test_no_device_leaves_the_cpu(env):
    check(
        "import mlx.core as mx\n"
        "assert not mx.is_available(mx.gpu)\n"
        "assert mx.default_device() == mx.Device(mx.cpu)\n"
        "assert (mx.ones(3) + 1).sum().item() == 6\n",
        **env,
    )


def test_doctor_explains_no_device():
    done = python("-m", "mlx_vulkan", "doctor", VK_DRIVER_FILES="/nonexistent")
    assert done.returncode == 1, done.stderr
    assert "does not run on a GPU" in done.stdout
    assert "libmlx" in done.stdout


def test_unknown_device_lists_the_devices():
    check(
        "import mlx.core as mx\n"
        "assert mx.is_available(mx.gpu)\n"
        "try:\n"
        "    mx.eval(mx.add(mx.ones(3), 1, stream=mx.gpu))\n"
        "except Exception as e:\n"
        "    assert 'no-such-device' in str(e) and 'uuid' in str(e), e\n"
        "else:\n"
        "    raise AssertionError('did not throw')\n"
        "mx.set_default_device(mx.cpu)\n"
        "assert (mx.ones(3) + 1).sum().item() == 6\n",
        MLX_VK_DEVICE="no-such-device",
    )


def test_allocation_beyond_the_heap():
    check(
        "import re\n"
        "import mlx.core as mx\n"
        "mx.set_default_device(mx.gpu)\n"
        "try:\n"
        "    mx.eval(mx.zeros((1 << 20, 1 << 22), dtype=mx.uint8))\n"
        "except Exception as e:\n"
        "    assert len(re.findall(r'\\d+', str(e))) >= 2, e\n"
        "else:\n"
        "    raise AssertionError('did not throw')\n"
        "assert (mx.ones(3) + 1).sum().item() == 6\n"
    )


def test_a_device_without_float64_says_so():
    check(
        "import mlx.core as mx\n"
        "mx.set_default_device(mx.gpu)\n"
        "try:\n"
        "    a = mx.array([1.0, 2.0], dtype=mx.float64)\n"
        "    mx.eval(mx.exp(a, stream=mx.gpu))\n"
        "except Exception as e:\n"
        "    assert 'shaderFloat64' in str(e) and 'stream=mx.cpu' in str(e), e\n"
        "else:\n"
        "    raise AssertionError('did not throw')\n"
        "assert (mx.ones(3) + 1).sum().item() == 6\n",
        MLX_VK_DISABLE="float64",
    )


def test_fork_leaves_the_child_its_cpu():
    check(
        "import os\n"
        "import mlx.core as mx\n"
        "mx.set_default_device(mx.gpu)\n"
        "assert (mx.ones(3) + 1).sum().item() == 6\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    code = 1\n"
        "    try:\n"
        "        mx.eval(mx.add(mx.ones(3), 1, stream=mx.gpu))\n"
        "    except Exception as e:\n"
        "        code = 0 if 'fork' in str(e) else 2\n"
        "    os._exit(code)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
        "assert (mx.ones(3) + 1).sum().item() == 6\n"
    )


def compilations(cache) -> int:
    out = check(WORK + COUNT, MLX_VK_CACHE=str(cache))
    return json.loads(out.splitlines()[-1])["compilations"]


def entries(cache):
    return [p for p in cache.rglob("*") if p.is_file()]


def test_cache_is_used(tmp_path):
    assert compilations(tmp_path) > 0
    assert entries(tmp_path)
    assert compilations(tmp_path) == 0


def test_truncated_cache(tmp_path):
    compilations(tmp_path)
    for path in entries(tmp_path):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert compilations(tmp_path) > 0
    assert compilations(tmp_path) == 0


def test_corrupt_cache(tmp_path):
    compilations(tmp_path)
    for path in entries(tmp_path):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0xFF
        path.write_bytes(data)
    compilations(tmp_path)
    assert compilations(tmp_path) == 0


def test_foreign_cache(tmp_path):
    compilations(tmp_path)
    for path in entries(tmp_path):
        path.write_bytes(b"not of this program\n" * 100)
    (tmp_path / "README").write_text("somebody else's folder")
    (tmp_path / "folder").mkdir()
    assert compilations(tmp_path) > 0
    assert (tmp_path / "README").read_text() == "somebody else's folder"


def test_unwritable_cache(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    assert compilations(file / "cache") > 0
    assert compilations("/proc/mlx-vulkan-cache") > 0
    folder = tmp_path / "readonly"
    folder.mkdir()
    folder.chmod(0o555)
    assert compilations(folder) > 0
    assert compilations("off") > 0


def test_killed_while_writing(tmp_path):
    rng = random.Random(1)
    for _ in range(4):
        process = subprocess.Popen(
            [sys.executable, "-c", WORK],
            env={**os.environ, "MLX_VK_CACHE": str(tmp_path)},
            stderr=subprocess.DEVNULL,
        )
        end = time.time() + 60
        while not entries(tmp_path) and process.poll() is None and time.time() < end:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.2))
        process.send_signal(signal.SIGKILL)
        process.wait()
    compilations(tmp_path)
    assert compilations(tmp_path) == 0


# A kernel that does not compile, and who comes to know of it: each way to read
# what it should have made, or what was made of that, behind the end of its batch
# too. `unrelated` is of the same stream.
BROKEN = """
import sys
import mlx.core as mx, numpy as np

x = mx.random.normal((64, 64))
unrelated = x * 2
mx.eval(x, unrelated)


def behind(n):
    y = mx.softmax(x, axis=-1)
    for _ in range(n):
        y = mx.sin(y) + x
    return y


def later(read):
    y = mx.softmax(x, axis=-1)
    mx.async_eval(y)
    return read(y)


def twice():
    y = mx.softmax(x, axis=-1)
    try:
        mx.eval(y)
    except RuntimeError:
        return mx.sum(y).item()


ways = {
    "eval": lambda: mx.eval(mx.softmax(x, axis=-1)),
    "numpy": lambda: np.array(mx.softmax(x, axis=-1)),
    "item": lambda: mx.softmax(x, axis=-1)[0, 0].item(),
    "far behind": lambda: mx.eval(behind(300)),
    "later, numpy": lambda: later(np.array),
    "later, a part": lambda: later(lambda y: y[0, 0].item()),
    "later, on the CPU": lambda: later(lambda y: mx.sum(y, stream=mx.cpu).item()),
    "twice": twice,
}
try:
    ways[sys.argv[1]]()
    print("no error")
except RuntimeError as error:
    assert "softmax" in str(error), error
    print("told")
mx.eval(mx.exp(x))
print(mx.array_equal(unrelated / 2, x).item())
"""


@pytest.mark.parametrize(
    "way",
    [
        *("eval", "numpy", "item", "far behind"),
        *("later, numpy", "later, a part", "later, on the CPU", "twice"),
    ],
)
def test_broken_kernel(tmp_path, way):
    kernels = tmp_path / "kernels"
    shutil.copytree(Path(__file__).parents[2] / "src" / "kernels", kernels)
    broken = kernels / "softmax.comp"
    broken.write_text(broken.read_text().replace("void main() {", "void main() { !"))
    # Not built, so compiled in the background as the first of a kind is.
    done = output_of(
        *("-c", BROKEN, way),
        limit=120,
        MLX_VK_KERNEL_PATH=str(kernels),
        MLX_VK_CACHE="off",
    )
    assert done.stdout.split() == ["told", "True"], done.stdout + done.stderr
