"""`mlx-vulkan run`: the allocator is there, and nothing else changes."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import mlx_vulkan
from mlx_vulkan import native


def run(*words: str, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "mlx_vulkan", "run", *words],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
    )


USES_ALL = """
import sys
import numpy as np
import mlx.core as mx
a = np.arange(1000, dtype=np.float32)
x = mx.array(a, dtype=mx.float32)
y = mx.exp(-x / 1000, stream=mx.gpu)
assert np.allclose(np.array(y), np.exp(-a / 1000), atol=1e-6)
names = {line.split()[-1] for line in open("/proc/self/maps")}
print([name for name in names if name.endswith("/libmimalloc.so")][0])
# Who calls malloc gets it from there.
import ctypes
malloc = ctypes.CDLL(None).malloc
malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
inside = ctypes.CDLL(None).mi_is_in_heap_region
inside.restype, inside.argtypes = ctypes.c_bool, [ctypes.c_void_p]
assert inside(malloc(100))
"""


def test_the_allocator_serves_numpy_and_mlx():
    done = run("--", sys.executable, "-c", USES_ALL)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(native.allocator_path())


def test_doctor_says_so():
    words = (sys.executable, "-m", "mlx_vulkan", "doctor")
    assert "mimalloc, by `mlx-vulkan run`" in run("--", *words).stdout
    without = subprocess.run(words, capture_output=True, text=True).stdout
    assert "the system's; `mlx-vulkan run -- COMMAND`" in without


def test_it_comes_behind_what_is_preloaded():
    show = "import os; print(os.environ['LD_PRELOAD'])"
    ours = str(native.allocator_path())
    other = native.library_path().resolve()
    code = [sys.executable, "-c", show]
    assert run(*code).stdout.strip() == ours
    assert run(*code, LD_PRELOAD=str(other)).stdout.strip() == f"{other}:{ours}"
    assert run(*code, LD_PRELOAD=f"{ours} {other}").stdout.strip() == f"{other}:{ours}"


def test_exit_codes_arguments_and_signals_are_the_commands_own():
    exits = "import sys; print(sys.argv[1:]); sys.exit(7)"
    done = run("--", sys.executable, "-c", exits, "--", "-x", "a b")
    assert done.returncode == 7 and done.stdout.strip() == "['--', '-x', 'a b']"
    kills = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    assert run("--", sys.executable, "-c", kills).returncode == -signal.SIGTERM
    pid = "import os; print(os.getpid())"
    process = subprocess.Popen(
        [sys.executable, "-m", "mlx_vulkan", "run", sys.executable, "-c", pid],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.communicate()[0].strip() == str(process.pid)


def test_a_script_runs_with_this_python(tmp_path):
    script = tmp_path / "x.py"
    script.write_text("import sys; print(sys.executable)")
    assert run("--", str(script)).stdout.strip() == sys.executable


def test_what_cannot_run(tmp_path):
    done = run("--", "no-such-command", "x")
    assert done.returncode == 127
    assert done.stderr == "mlx-vulkan run: no-such-command was not found\n"
    plain = tmp_path / "plain"
    plain.write_text("x")
    done = run("--", str(plain))
    assert done.returncode == 126 and "is not executable" in done.stderr
    plain.chmod(0o755)
    done = run("--", str(plain))
    assert done.returncode == 126 and "cannot be run" in done.stderr
    done = run()
    assert done.returncode == 2 and "Give a program" in done.stderr


def copy_of_the_package(folder: Path) -> dict[str, str]:
    shutil.copytree(Path(mlx_vulkan.__file__).parent, folder / "mlx_vulkan")
    return {"PYTHONPATH": str(folder)}


def test_without_the_allocator(tmp_path):
    env = copy_of_the_package(tmp_path)
    (tmp_path / "mlx_vulkan" / "lib" / "libmimalloc.so").unlink()
    done = run("--", "true", **env)
    assert done.returncode == 1 and "libmimalloc.so, is not installed" in done.stderr


def test_in_a_folder_that_the_loader_cannot_name(tmp_path):
    folder = tmp_path / "a b"
    folder.mkdir()
    done = run("--", "true", **copy_of_the_package(folder))
    assert done.returncode == 1 and "a colon or a space" in done.stderr
