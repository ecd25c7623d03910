"""`mlx-vulkan cache warm`: what it compiles is what a model then asks for."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FIRST_TOKENS = """
import json, sys
import mlx.core as mx
mx.set_default_device(mx.gpu)
from mlx_lm import load, generate
from mlx_vulkan import native
model, tokenizer = load(sys.argv[1])
generate(model, tokenizer, "The capital of France is", max_tokens=3)
print(json.dumps(native.counters()))
"""


def run(*words: str, cache) -> subprocess.CompletedProcess:
    env = {**os.environ, "MLX_VK_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    return subprocess.run(
        [sys.executable, *words], env=env, capture_output=True, text=True
    )


def warm(folder, cache) -> subprocess.CompletedProcess:
    return run("-m", "mlx_vulkan", "cache", "warm", str(folder), cache=cache)


def other_kernels(folder: Path) -> Path:
    """Sources that differ by a comment from those that the library has compiled."""
    source = Path(__file__).resolve().parents[2] / "src/kernels/common/args.glsl"
    (folder / "common").mkdir(parents=True)
    (folder / "common/args.glsl").write_text(source.read_text() + "// as new\n")
    return folder


def test_a_warm_model_compiles_nothing(model_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("MLX_VK_KERNEL_PATH", str(other_kernels(tmp_path / "kernels")))
    tmp_path = tmp_path / "cache"
    monkeypatch.setenv("MLX_VK_DEBUG", "cache")  # names what is compiled
    first = warm(model_folder, tmp_path)
    assert first.returncode == 0, first.stdout + first.stderr
    assert " kernels were compiled (" in first.stdout
    assert f"are stored in {tmp_path}" in first.stdout
    second = warm(model_folder, tmp_path)
    told = second.stdout + second.stderr
    assert second.returncode == 0 and second.stdout.startswith("All "), told
    used = run("-c", FIRST_TOKENS, str(model_folder), cache=tmp_path)
    assert used.returncode == 0, used.stderr
    counts = json.loads(used.stdout.splitlines()[-1])
    assert counts["compilations"] == 0, used.stderr
    assert counts["disk_hits"] > 10


def test_cut_models_keep_what_differs():
    import mlx.nn as nn

    from mlx_vulkan import warm

    class Layer(nn.Module):
        def __init__(self, size=8, window=0):
            super().__init__()
            self.proj, self.window = nn.Linear(size, 8), window

    assert warm.alike([Layer(), Layer(), Layer()])
    assert not warm.alike([Layer(), Layer(size=16)])
    assert not warm.alike([Layer(), Layer(window=4)])


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (None, "is not a folder"),
        ({}, "has no config.json"),
        ({"config.json": "{}"}, "has no model*.safetensors"),
        ({"config.json": "{", "model.safetensors": ""}, "mlx-lm cannot load"),
        ({"config.json": "{}", "model.safetensors": "x"}, "mlx-lm cannot load"),
    ],
)
def test_what_is_no_model_is_told(tmp_path, files, words):
    folder = tmp_path / "model"
    if files is not None:
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
    done = warm(folder, tmp_path / "cache")
    assert done.returncode == 1
    assert words in done.stderr and str(folder) in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stdout + done.stderr


def test_a_cache_that_is_off_is_told(model_folder):
    done = warm(model_folder, "off")
    assert done.returncode == 1 and "The kernel cache is off" in done.stderr
