"""Who is told that Metal is available: models of mlx-lm and mlx-vlm that ask before
they make kernels, and nobody else (the wheel's hook, _mlx_vulkan.py)."""

import os
import subprocess
import sys

import pytest

# As a module of that name: at its import, in a function, through decorators, caches,
# mx.compile and threads.
ASKS = """
import functools, os, sys, threading, types
import mlx.core as mx

TEXT = '''
import functools, threading
import mlx.core as mx
from mlx.core import metal

at_import = mx.metal.is_available()

def direct():
    return mx.metal.is_available()

def made(function):
    return functools.wraps(function)(lambda: metal.is_available())

@functools.lru_cache(maxsize=None)
def cached():
    return mx.metal.is_available()

@mx.compile
def compiled(x):
    return x + 1 if mx.metal.is_available() else x

def threaded():
    found = []
    thread = threading.Thread(target=lambda: found.append(metal.is_available()))
    thread.start()
    thread.join()
    return found[0]
'''

def answers(name):
    module = types.ModuleType(name)
    exec(compile(TEXT, name, "exec"), module.__dict__)
    assert module.cached() == module.cached()
    all = {module.at_import, module.direct(), module.made(len)(), module.cached()}
    all |= {module.threaded(), module.compiled(mx.array(0)).item() == 1}
    assert len(all) == 1, (name, all)
    return all.pop()

for name in sys.argv[1:]:
    print(name, answers(name))
"""
KERNELS = [
    "mlx_lm.models.gated_delta",
    "mlx_lm.models.ssm",
    "mlx_lm.models.rwkv7",
    "mlx_lm.models.kimi_k3",
    "mlx_lm.models.deepseek_v41",
    "mlx_lm.tuner.losses",
    "mlx_lm.utils",
    "mlx_vlm.models.kernels",
    "mlx_vlm.models.qwen3_5.gated_delta",
    "mlx_vlm.models.rwkv7.language",
    "mlx_vlm.quantization.one_bit",
    "mlx_vlm.turboquant",
]
# Modules of older mlx-lm that ask before they wire memory, and make no kernel.
WIRE = ["mlx_lm.generate", "mlx_lm.quant.dwq", "mlx_lm.server", "mlx_lm.tuner.trainer"]
NONE = [
    "__main__",
    "mlx_lm",
    "mlx_lm.models",
    *WIRE,
    "mlx_lm_models.ssm",
    "mlx_vlm.generate.common",
    "mlx_vlm.models.exact_speculative_verify",
    "mlx_vlm.models.fast_ops",
    "mlx_vlm.models.quantized_verifier",
    "mlx_vlm.models.nemotron_h.speculative_verifier",
    "mlx_vlm.models.qwen3_5.language",
    "mlx_vlm.trainer.vlm.sft.trainer",
    "mlx_vlm.tests.test_models_dspark",
    "test_models",
]


def run(code: str, *args: str, **env: str) -> str:
    env = {**os.environ, "MLX_VK_DEVICE": "cpu", "MLX_VK_METAL_KERNELS": ""} | env
    command = [sys.executable, "-c", code, *args]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("env", "models", "others"),
    [
        ({}, True, False),
        ({"MLX_VK_METAL_KERNELS": "0"}, False, False),
        ({"MLX_VK_METAL_KERNELS": "1"}, True, True),
        # Without a GPU, or without this backend, nothing is changed.
        ({"MLX_VK_DEVICE": "", "VK_LOADER_DRIVERS_DISABLE": "*"}, False, False),
        ({"MLX_VK": "0"}, False, False),
    ],
    ids=["not set", "0", "1", "no device", "MLX_VK=0"],
)
def test_who_is_told(env, models, others):
    found = dict(
        line.split() for line in run(ASKS, *KERNELS, *NONE, **env).split("\n") if line
    )
    assert {name for name in KERNELS if found[name] == "True"} == set(KERNELS * models)
    assert {name for name in NONE if found[name] == "True"} == set(NONE * others)


def test_every_call_of_mlx_lm_is_known():
    """So that a version with a new one does not go unnoticed: a call elsewhere
    takes the way of other devices."""
    code = """
import pathlib, mlx_lm
folder = pathlib.Path(mlx_lm.__file__).parent
for file in sorted(folder.rglob("*.py")):
    text = file.read_text()
    if calls := text.count("metal.is_available"):
        name = ".".join(("mlx_lm", *file.relative_to(folder).with_suffix("").parts))
        print(name, calls, text.count("set_wired_limit("), "metal_kernel(" in text)
"""
    calls = {name: rest for name, *rest in map(str.split, run(code).splitlines())}
    assert "mlx_lm.models.gated_delta" in calls
    for name in WIRE:
        asked, wired, kernels = calls.get(name, ("0", "0", "False"))
        assert int(asked) <= int(wired) and kernels == "False", (name, calls[name])
    found = dict(line.split() for line in run(ASKS, *calls).strip().split("\n"))
    assert {n for n in calls if found[n] == "False"} == set(WIRE) & set(calls), found


EXCHANGE = """
import os, threading, _thread, time
import mlx.core as mx, numpy as np
import mlx_lm.models.ssm, mlx_lm.utils
can_run_metal = getattr(mlx_lm.utils, "can_run_metal", lambda: True)  # since 0.32
assert can_run_metal() and mlx_lm.models.ssm._ssm_kernel is not None
assert mx.metal.is_available() == (os.environ["MLX_VK_METAL_KERNELS"] == "1")
x = mx.arange(6, dtype=mx.float32)
assert np.array_equal(np.array(x), np.arange(6))
assert np.array_equal(np.from_dlpack(x), np.arange(6))
assert mx.array_equal(mx.asarray(np.arange(6)), mx.arange(6))
try:
    import torch
except ImportError:
    pass
else:
    assert torch.from_dlpack(x).tolist() == x.tolist()
    assert mx.array_equal(mx.array(torch.arange(6)), mx.arange(6))
assert x.__dlpack_device__() == (1, 0)
_thread.start_new_thread(mx.metal.is_available, ())  # called by no Python code
assert list(map(lambda f: f(), [mx.metal.is_available])) == [mx.metal.is_available()]
time.sleep(0.05)
"""


@pytest.mark.parametrize("set_to", ["", "0", "1"])
def test_arrays_are_handed_over_as_ever(set_to):
    code = EXCHANGE
    if set_to == "0":
        code = code.replace("assert can_run_metal() and", "assert")
        code = code.replace("_ssm_kernel is not None", "_ssm_kernel is None")
    run(code, MLX_VK_METAL_KERNELS=set_to)


def test_a_kernel_that_cannot_be_translated_says_what_to_set():
    run("""
import mlx.core as mx
kernel = mx.fast.metal_kernel(name="pictures", input_names=["x"], output_names=["y"],
                              source="texture2d<float> t; y[0] = x[0];")
x = mx.ones(3)
y = kernel(inputs=[x], output_shapes=[(3,)], output_dtypes=[mx.float32],
           grid=(3, 1, 1), threadgroup=(3, 1, 1), stream=mx.gpu)
try:
    mx.eval(y)
except RuntimeError as e:
    assert "pictures" in str(e) and "MLX_VK_METAL_KERNELS=0" in str(e), e
else:
    raise AssertionError
""")
