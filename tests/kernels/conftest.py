"""mx.metal.is_available is true here, and kernels that run are noted."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE / "fuzz")]
os.environ.setdefault("MLX_ENABLE_TF32", "0")

import mlx.core as mx  # noqa: E402

original = mx.fast.metal_kernel
CALLED: set[str] = set()


def noting(*args, **kwargs):
    kernel = original(*args, **kwargs)
    name = args[0] if args else kwargs["name"]

    def call(**kwargs):
        CALLED.add(name)
        return kernel(**kwargs)

    return call


# twins_vlm.py puts a module of that name, without a spec, into sys.modules.
PACKAGES = ["mlx_lm"] + (["mlx_vlm"] if importlib.util.find_spec("mlx_vlm") else [])

# Before packages are imported: some make their kernels then.
mx.metal.is_available = lambda: True
mx.fast.metal_kernel = noting


@pytest.fixture(scope="session")
def extraction(tmp_path_factory):
    """The file that extract.py writes, in a process of its own: it imports the
    packages without what they need."""
    file = tmp_path_factory.mktemp("kernels") / "kernels.jsonl"
    build = pathlib.Path(os.environ.get("MLXVK_BUILD", ROOT / "build"))
    source = pathlib.Path((build / "mlx_source_dir.txt").read_text().strip())
    command = [sys.executable, str(HERE / "extract.py"), *PACKAGES]
    command += ["--mlx-tests", str(source / "python" / "tests")]
    with open(file, "w") as out:
        subprocess.run(command, stdout=out, check=True)
    return file


@pytest.fixture(scope="session")
def extracted(extraction):
    return [json.loads(line) for line in extraction.read_text().splitlines()]
