"""examples/ build with find_package(MLX) against the installed package, and run."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    if os.environ.get("MLX_VK_TEST_FULL") != "1":
        pytest.skip("builds programs: with MLX_VK_TEST_FULL=1 (make test-full)")
    folder = tmp_path_factory.mktemp("examples")
    place = run(sys.executable, "-m", "mlx", "--cmake-dir")
    assert place.returncode == 0, place.stderr
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    options = [*generator, f"-DMLX_ROOT={place.stdout.strip()}"]
    for step in (
        ["-S", ROOT / "examples", "-B", folder, *options],
        ["--build", folder],
    ):
        done = run("cmake", *step)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.parametrize(
    "program, says",
    [("from_cpp", "The product is the CPU's."), ("from_c", "All rows are right.")],
)
def test_example(built, program, says):
    done = run(built / program)
    assert done.returncode == 0 and says in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("program", ["from_cpp", "from_c"])
def test_the_reason_why_there_is_no_device(built, program):
    done = run(built / program, MLX_VK_DEVICE="no such device")
    assert done.returncode == 1
    assert "no such device" in done.stderr
