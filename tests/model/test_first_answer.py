"""A first answer with an empty cache compiles nothing: the library carries the kernels
of common models for the chips of tools/record_kernels.py."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import record_kernels  # noqa: E402
from test_warm import FIRST_TOKENS  # noqa: E402

BUILD = Path(os.environ.get("MLXVK_BUILD", ROOT / "build"))
FULL = os.environ.get("MLX_VK_TEST_FULL")
CHIPS = record_kernels.CHIPS if FULL else ("nvidia", "navi33", "phoenix", "vega")
MODELS = record_kernels.MODELS if FULL else ("smollm2", "qwen3-0.6b")
# Devices whose own driver the list is of.
LISTED = ("llvmpipe", "NVIDIA H")


def compiled_nothing(done: subprocess.CompletedProcess) -> None:
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout.splitlines()[-1])
    names = [x for x in done.stderr.splitlines() if "compiles" in x]
    again = "tools/record_kernels.py makes the list again"
    assert counts["compilations"] == 0, "\n".join([again, *names])
    assert counts["shipped_hits"] > 10


def test_on_this_device(loaded, model_folder, tmp_path, monkeypatch):
    import mlx.core as mx

    name = mx.device_info()["device_name"]
    if not any(part in name for part in LISTED):
        pytest.skip(f"no list was recorded with the driver of {name}")
    monkeypatch.setenv("MLX_VK_CACHE", str(tmp_path))
    monkeypatch.setenv("MLX_VK_DEBUG", "cache")
    command = [sys.executable, "-c", FIRST_TOKENS, str(model_folder)]
    compiled_nothing(subprocess.run(command, capture_output=True, text=True))


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("model", MODELS)
def test_on_another_chip(chip, model, tmp_path, monkeypatch):
    assert (BUILD / "libchip_layer.so").exists(), "ninja chip_layer builds the layer"
    monkeypatch.setenv("MLX_VK_DEBUG", "cache")
    compiled_nothing(record_kernels.run(BUILD, chip, model, tmp_path))
    # The next process builds early what this one used.
    assert list(tmp_path.glob("recent-*.entry"))
