"""mlx-vulkan and mlx-cpu in one environment, whoever came first or goes first."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MLX = metadata.version("mlx")
# Which library it is, that the default device computes, and what is mapped.
LOOK = """
import ctypes
import mlx.core as mx
vulkan = hasattr(ctypes.CDLL("libmlx.so"), "mlx_vulkan_doctor_json")
assert (mx.arange(4) + 1).tolist() == [1, 2, 3, 4]
maps = {line.split()[-1] for line in open("/proc/self/maps") if "/libmlx.so" in line}
print("vulkan" if vulkan else "other", mx.is_available(mx.gpu), len(maps))
"""


def pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """This tree's, of what is built already."""
    folder = tmp_path_factory.mktemp("wheel")
    build = Path(os.environ.get("MLXVK_BUILD", ROOT / "build")).resolve()
    options = ["--no-deps", "--no-build-isolation"]
    options += [f"--config-settings=build-dir={build}"]
    options += ["--config-settings=cmake.define.MLXVK_BUILD_TESTS=ON"]
    pip("wheel", *options, "-w", str(folder), str(ROOT))
    return next(folder.glob("mlx_vulkan-*.whl"))


class Environment:
    def __init__(self, folder: Path):
        command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
        subprocess.run(command, check=True)
        self.python = folder / "bin" / "python"
        self.site = next(folder.glob("lib/python*/site-packages"))
        self.install(f"mlx=={MLX}")

    def install(self, *packages) -> None:
        pip("--python", str(self.python), "install", "--no-deps", *map(str, packages))

    def lacks_modules(self) -> bool:
        """Of mlx, since mlx-cpu of older versions has copies, which go with it."""
        record = (self.site / f"mlx-{MLX}.dist-info" / "RECORD").read_text()
        files = (line.partition(",")[0] for line in record.splitlines())
        return any(f.endswith(".py") and not (self.site / f).exists() for f in files)

    def uninstall(self, package: str) -> None:
        pip("--python", str(self.python), "uninstall", "-y", package)

    def look(self, code: str = LOOK, **env: str) -> subprocess.CompletedProcess:
        env = {
            **os.environ,
            "MLX_VK_DEVICE": os.environ.get("MLX_VK_DEVICE", ""),
            **env,
        }
        command = [str(self.python), "-c", code]
        return subprocess.run(command, env=env, capture_output=True, text=True)

    def says(self, **env: str) -> str:
        done = self.look(**env)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        return done.stdout.strip()


def test_mlx_cpu_after_us_and_gone_again(wheel, tmp_path):
    env = Environment(tmp_path / "env")
    env.install(wheel)
    assert env.says() == "vulkan True 1"
    # Alone, it cannot be but a library without a GPU.
    assert env.says(MLX_VK="0").startswith("vulkan False")
    env.install(f"mlx-cpu=={MLX}")
    assert env.says() == "vulkan True 1"
    assert env.says(MLX_VK="0") == "other False 1"
    env.uninstall("mlx-cpu")  # which takes mlx/lib/libmlx.so along
    if env.lacks_modules():
        env.install("--force-reinstall", f"mlx=={MLX}")
    assert not (env.site / "mlx" / "lib" / "libmlx.so").exists()
    assert env.says() == "vulkan True 1"


def test_mlx_cpu_before_us(wheel, tmp_path):
    env = Environment(tmp_path / "env")
    env.install(f"mlx-cpu=={MLX}")
    assert env.says() == "other False 1"
    env.install(wheel)
    assert env.says() == "vulkan True 1"
    # Python reads no .pth of such a folder.
    found = env.look(PYTHONPATH=str(env.site), PYTHONNOUSERSITE="1")
    assert found.stdout.startswith("vulkan True")
    bare = subprocess.run(
        [sys.executable, "-S", "-c", LOOK],
        env={**os.environ, "PYTHONPATH": str(env.site)},
        capture_output=True,
        text=True,
    )
    assert bare.stdout.strip() == "vulkan True 2", bare.stderr
    env.uninstall("mlx-vulkan")
    assert not list(env.site.glob("*mlx_vulkan*"))


def test_another_version_of_mlx_is_named(wheel, tmp_path):
    env = Environment(tmp_path / "env")
    env.install(f"mlx-cpu=={MLX}")
    env.install(wheel)
    info = env.site / f"mlx-{MLX}.dist-info" / "METADATA"
    info.write_text(info.read_text().replace(f"Version: {MLX}", "Version: 0.99.0"))
    # mlx/lib/libmlx.so leads to ours: no import, nor a second one.
    twice = """
for _ in range(2):
    try:
        import mlx.core
    except ImportError as error:
        print(error)
"""
    done = env.look(twice)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    first, second = done.stdout.splitlines()
    assert first == second and first.startswith("mlx is 0.99.0, but mlx-vulkan is ")
    assert "pip install 'mlx-vulkan==0.99.0.*'" in first
    assert f"pip install mlx=={MLX}" in first
    assert "mlx-vulkan==0.99.0" in env.look(MLX_VK="0").stderr
    # mlx-cpu's library, if it came last, works with it.
    env.uninstall("mlx-cpu")
    env.install(f"mlx-cpu=={MLX}")
    done = env.look()
    assert done.stdout.startswith("other False"), done.stderr
    assert "pip install 'mlx-vulkan==0.99.0.*'" in done.stderr
    assert "warn" in done.stderr.lower()


def test_start_of_python_loads_nothing(wheel, tmp_path):
    env = Environment(tmp_path / "env")
    env.install(wheel)
    code = """
import sys
assert "_mlx_vulkan" in sys.modules and "mlx_vulkan" not in sys.modules
assert "libmlx" not in open("/proc/self/maps").read()
assert "ctypes" not in sys.modules
"""
    done = env.look(code)
    assert done.returncode == 0, done.stderr
