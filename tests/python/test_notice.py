"""What MLX says where it does not run on a GPU, and of settings it ignores."""

from pathlib import Path

import pytest

from commands import python

ADDS = """
import mlx.core as mx
print((mx.ones(2) + 1).tolist(), mx.default_device())
print((mx.ones(2) + 2).tolist())
"""
NO_DRIVER = {"VK_DRIVER_FILES": "/nonexistent", "MLX_VK_DEVICE": None}
LAVAPIPE = sorted(Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json"))


def notices(done) -> list[str]:
    return [line for line in done.stderr.splitlines() if "MLX runs on the CPU" in line]


def check_notice(done, cause: str) -> None:
    assert done.returncode == 0 and "Device(cpu, 0)" in done.stdout, done.stderr
    (line,) = notices(done)
    assert line.startswith("[mlx-vulkan] MLX runs on the CPU: ") and cause in line
    assert "`mlx-vulkan doctor`" in line and "MLX_VK=0" in line


def test_a_loader_without_a_driver():
    check_notice(python("-c", ADDS, **NO_DRIVER), "no Vulkan driver is installed")
    asked = NO_DRIVER | {"MLX_VK_DEVICE": "cpu"}
    check_notice(python("-c", ADDS, **asked), "no Vulkan driver is installed")


@pytest.mark.parametrize("device", [None, "cpu"])
def test_no_loader(tmp_path, device):
    for name in ("libvulkan.so.1", "libvulkan.so"):
        (tmp_path / name).write_text("")
    env = {"LD_LIBRARY_PATH": str(tmp_path), "MLX_VK_DEVICE": device}
    check_notice(python("-c", ADDS, **env), "the Vulkan loader (libvulkan.so.1)")


@pytest.mark.skipif(not LAVAPIPE, reason="lavapipe is not installed")
def test_lavapipe_alone():
    env = {"VK_DRIVER_FILES": str(LAVAPIPE[0]) if LAVAPIPE else ""}
    done = python("-c", ADDS, **env, MLX_VK_DEVICE=None)
    check_notice(done, "a software device, which is opt-in: MLX_VK_DEVICE=cpu")
    done = python("-c", ADDS, **env, MLX_VK_DEVICE="cpu")
    assert "Device(gpu, 0)" in done.stdout and not notices(done)


@pytest.mark.parametrize(
    "program",
    [
        "import mlx.core, mlx.nn, mlx_lm",
        "import mlx.core as mx; mx.is_available(mx.gpu); mx.default_device()",
        "import mlx.core as mx; mx.set_default_device(mx.cpu); mx.eval(mx.ones(2))",
        "import mlx.core as mx; mx.eval(mx.ones(2, stream=mx.cpu))",
        "import mlx.core as mx\nwith mx.stream(mx.cpu): mx.eval(mx.ones(2))",
    ],
)
def test_no_notice_for_imports_and_the_cpu_by_choice(program):
    done = python("-c", program, **NO_DRIVER)
    assert done.returncode == 0 and not notices(done), done.stderr


def test_no_notice_when_switched_off():
    done = python("-c", ADDS, **NO_DRIVER, MLX_VK="0", MLX_VK_DEVISE="1")
    assert done.returncode == 0 and "[mlx-vulkan]" not in done.stderr


FORKS = """
import os
import mlx.core as mx
mx.eval(mx.ones(2) + 1)
if os.fork() == 0:
    mx.eval(mx.array(1.0))  # MLX's own CPU threads do not survive a fork
    os._exit(0)
os.wait()
"""


def test_a_forked_child_does_not_say_it_again():
    assert len(notices(python("-c", FORKS, **NO_DRIVER))) == 1


REFUSED = """
import mlx.core as mx
for call in (
    lambda: mx.set_default_device(mx.gpu),
    lambda: mx.default_stream(mx.gpu),
    lambda: mx.ones(2, stream=mx.gpu),
):
    try:
        call()
    except ValueError as error:
        print(error)
"""


def test_the_gpu_is_refused_with_the_cause():
    lines = python("-c", REFUSED, **NO_DRIVER).stdout.splitlines()
    assert len(lines) == 3
    for line, call in zip(lines, ("set_default_device", "default_stream") * 2):
        if call in line:
            assert line.startswith(f"[{call}] There is no GPU to use: ")
        assert "no Vulkan driver is installed" in line
        assert "`mlx-vulkan doctor` says what to do." in line


INDICES = """
import mlx.core as mx
for device in (mx.Device(mx.gpu, 3), mx.Device(mx.gpu, -1), mx.Device(mx.cpu, 3)):
    for call in (lambda d: mx.ones(2, stream=d), mx.set_default_device):
        try:
            call(device)
        except ValueError as error:
            print(error)
print(mx.default_device().type == mx.gpu)
"""


def test_a_device_that_is_not_there_is_a_sentence():
    *lines, default = python("-c", INDICES).stdout.splitlines()
    assert len(lines) == 6 and default == "True"
    for line, name in zip(lines, ["gpu, 3"] * 2 + ["gpu, -1"] * 2 + ["cpu, 3"] * 2):
        assert f"Device({name}) does not exist: a process has 1 {name[:3]} dev" in line


def test_settings_that_are_ignored_are_told_once():
    bad = {"MLX_VK_DEVISE": "0", "MLX_VK_MEMORY": "foo", "MLX_VK_TEST_X": "1"}
    bad |= {"MLX_VK_DEBUG": "x,cache", "MLX_VK_TIMEOUT": "-1,error"}
    lines = sorted(python("-c", ADDS, **bad).stderr.splitlines())
    # The last of its words is the newest debug mode.
    debug = "[mlx-vulkan] MLX_VK_DEBUG=x is ignored: expected validate, paths, select, "
    assert lines.pop(0).startswith(debug)
    assert lines == [
        "[mlx-vulkan] MLX_VK_DEVISE is not a setting; did you mean MLX_VK_DEVICE?",
        "[mlx-vulkan] MLX_VK_MEMORY=foo is ignored: expected auto, unified, discrete "
        "or uncached.",
        "[mlx-vulkan] MLX_VK_TIMEOUT=-1 is ignored: expected a number of 0 or more, "
        "or error.",
    ]
