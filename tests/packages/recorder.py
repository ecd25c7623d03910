"""A pytest plugin: the kernels that tests make with mx.fast.metal_kernel and call, in
the file that MLXVK_KERNELS names, as tests/kernels/extract.py writes them. They do not
run: what they return is zeros."""

import atexit
import json
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "kernels"))

import extract  # noqa: E402
import mlx.core as mx  # noqa: E402

recorder = extract.Recorder()
mx.fast.metal_kernel = recorder
mx.metal.is_available = lambda: True


@atexit.register
def save():
    with open(os.environ["MLXVK_KERNELS"], "w") as file:
        for kernel in recorder.kernels:
            if kernel["instances"]:
                print(json.dumps(kernel), file=file)
