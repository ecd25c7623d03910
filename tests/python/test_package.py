"""The installed wheel: layout, symbols, headers, and building against it."""

import hashlib
import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from mlx_vulkan import native

ROOT = Path(__file__).resolve().parents[2]
VERSIONS = json.loads((ROOT / "third_party/mlx.json").read_text())["versions"]
OFFICIAL_HEADERS = VERSIONS[metadata.version("mlx")]["headers"]


@pytest.fixture(scope="module")
def library() -> Path:
    path = native.library_path()
    assert path is not None
    return path


@pytest.fixture(scope="module")
def package(library) -> Path:
    return library.parents[2] / "mlx"


def test_the_vulkan_build_is_loaded():
    assert native.is_vulkan()
    assert native.problems() == []


def test_wheel_files():
    files = {str(file) for file in metadata.files("mlx-vulkan")}
    # The library, and what leads to it where nobody has loaded it.
    assert {"mlx_vulkan/lib/libmlx.so", "mlx/lib/libmlx.so"} <= files
    assert "mlx/include/mlx/mlx.h" in files
    assert "mlx/share/cmake/MLX/MLXConfig.cmake" in files
    assert "mlx_vulkan/doctor.py" in files
    # Nothing of the libraries that are linked in, nothing of the frontend.
    allowed = ("mlx/lib/libmlx.so", "mlx/include/mlx/", "mlx/share/cmake/MLX/")
    allowed += ("mlx_vulkan/", "mlx_vulkan-", "mlx_vulkan.pth", "_mlx_vulkan.py")
    allowed += ("__pycache__/_mlx_vulkan.", "../../../bin/mlx-vulkan")
    assert [f for f in files if not f.startswith(allowed)] == []


def test_wheel_fits_every_python():
    tags = metadata.distribution("mlx-vulkan").read_text("WHEEL")
    assert re.search(r"Tag: py3-none-(linux|manylinux)", tags)


def test_headers_are_the_official_ones(package):
    folder, lines = package / "include" / "mlx", []
    headers = (str(p.relative_to(folder)) for p in folder.rglob("*.h"))
    for name in sorted(headers, key=str.encode):
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        lines.append(f"{digest}  {name}\n")
    assert hashlib.sha256("".join(lines).encode()).hexdigest() == OFFICIAL_HEADERS


def test_runpath_names_no_folder_of_the_build(library):
    dynamic = subprocess.check_output(["readelf", "-d", str(library)], text=True)
    for path in re.findall(r"(?:RUNPATH|RPATH).*\[(.*)\]", dynamic):
        assert all(part.startswith("$ORIGIN") for part in path.split(":"))
    # The loader is opened at run time, so machines without it still have a CPU.
    assert "libvulkan" not in dynamic


def test_linked_in_libraries_stay_hidden(library):
    names = subprocess.check_output(
        ["nm", "-D", "--defined-only", "-C", str(library)], text=True
    )
    assert "mlx::core::eval" in names
    for foreign in ("glslang", "spv::", "TShader", "Vma", " vk"):
        assert not re.search(rf"[TtWwVvDdBb] {foreign}", names), foreign


def test_import_needs_no_environment():
    code = "import mlx.core as mx; assert (mx.ones(2) + 1).sum().item() == 4"
    bare = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    subprocess.run([sys.executable, "-c", code], env=bare, check=True)


PROGRAM = """
#include <cstdio>
#include "mlx/mlx.h"
namespace mx = mlx::core;
int main() {
  auto device = mx::is_available(mx::Device::gpu) ? mx::Device::gpu : mx::Device::cpu;
  mx::set_default_device(device);
  auto x = mx::sum(mx::arange(5.0) * 2.0f);
  std::printf("%g\\n", x.item<float>());
}
"""
PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(MLX CONFIG REQUIRED)
add_executable(user main.cpp)
target_link_libraries(user PRIVATE mlx)
"""


def test_cpp_programs_build_against_it(package, tmp_path):
    (tmp_path / "main.cpp").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    build = tmp_path / "build"
    where = f"-DMLX_ROOT={package / 'share/cmake/MLX'}"
    configure = ["cmake", "-S", str(tmp_path), "-B", str(build), "-G", "Ninja", where]
    subprocess.run(configure, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", str(build)], check=True, capture_output=True)
    assert subprocess.check_output([build / "user"], text=True) == "20\n"


def test_environment_page_is_up_to_date():
    command = [sys.executable, str(ROOT / "tools/gen_environment.py"), "--check"]
    subprocess.run(command, check=True)
