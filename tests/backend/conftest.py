"""The device under test: the default GPU, which has to be this backend's."""

import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
os.environ.setdefault("MLX_ENABLE_TF32", "0")

import mlx.core as mx  # noqa: E402

ALLOW_CPU = os.environ.get("MLX_VK_TEST_ALLOW_CPU") == "1"


def device_under_test():
    """mx.Device and its name; raises where it is not a Vulkan device."""
    if not mx.is_available(mx.gpu):
        if ALLOW_CPU:
            return mx.cpu, "CPU (MLX_VK_TEST_ALLOW_CPU=1)"
        raise pytest.UsageError(
            "mx.gpu is not available, so there is nothing to test. Set "
            "MLX_VK_DEVICE=cpu for the software device, or "
            "MLX_VK_TEST_ALLOW_CPU=1 to try the tests themselves on MLX's CPU."
        )
    info = mx.device_info(mx.gpu)
    if not str(info.get("architecture", "")).startswith("vulkan"):
        raise pytest.UsageError(f"mx.gpu is not a Vulkan device: {info}")
    return mx.gpu, info["device_name"]


def pytest_configure(config):
    device, name = device_under_test()
    config.mlxvk_device = device
    config.mlxvk_name = name


def pytest_report_header(config):
    variables = {k: v for k, v in os.environ.items() if k.startswith("MLX_VK_")}
    return [f"device: {config.mlxvk_name}", f"environment: {variables}"]


@pytest.fixture(autouse=True)
def on_device(request):
    before = mx.default_device()
    mx.set_default_device(request.config.mlxvk_device)
    yield
    mx.set_default_device(before)


@pytest.fixture
def gpu(request):
    """Skips where the tests run on MLX's CPU."""
    if request.config.mlxvk_device != mx.gpu:
        pytest.skip("needs a GPU")
    return mx.gpu


def pytest_collection_modifyitems(items):
    # A row's tags select it: pytest -k reduce.
    for item in items:
        case = getattr(getattr(item, "callspec", None), "params", {}).get("case")
        if case is not None:
            item.extra_keyword_matches.update(case.tags)
