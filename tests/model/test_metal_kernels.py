"""Models with kernels of their own, translated: the GPU's logits, by kernels,
against the CPU's, by the operations that mlx-lm has beside them.

MLX_VK_METAL_KERNELS=1 is for whole processes; here mx.metal.is_available is true
while a model's modules are imported and run.
"""

import importlib
import sys

import mlx.core as mx
import numpy as np
import pytest
from test_families import check

import tiny

# Modules of mlx_lm.models that make kernels as they are imported.
SHARED = ("gated_delta", "ssm", "bitlinear_layers")
WIDE = dict(linear_key_head_dim=128, linear_value_head_dim=64)
CASES = {
    "qwen3_next": ("qwen3_next", {}, {"gated_delta_step"}),
    "qwen3_next, 128 wide": ("qwen3_next", WIDE, {"gated_delta_step_packed_btree"}),
    "mamba2": ("mamba2", {"state_size": 64}, {"ssm_kernel"}),
    "bitnet": ("bitnet", {}, {"bitlinear_matmul"}),
}


@pytest.fixture
def called(monkeypatch, request):
    """Names of the kernels that ran."""
    made, names = mx.fast.metal_kernel, set()

    def noting(*args, **kwargs):
        kernel = made(*args, **kwargs)

        def call(**arguments):
            names.add(kwargs["name"])
            return kernel(**arguments)

        return call

    monkeypatch.setattr(mx.metal, "is_available", lambda: True)
    monkeypatch.setattr(mx.fast, "metal_kernel", noting)
    family = CASES[request.node.callspec.params["case"]][0]
    modules = [f"mlx_lm.models.{name}" for name in (*SHARED, family)]
    kept = {name: sys.modules.pop(name) for name in modules if name in sys.modules}
    yield names
    for name in modules:
        sys.modules.pop(name, None)
    sys.modules.update(kept)


def by_operations(self, x, packed):
    """BitLinear's product: 2-bit codes less one, times the scale."""
    codes = mx.concatenate([(packed >> i) & 3 for i in (0, 2, 4, 6)])
    weight = codes.astype(x.dtype) - 1
    scale = 1 / self.weight_scale if self.invert_weight_scales else self.weight_scale
    return (x @ weight.T) * scale


def bitnet(model):
    """Random codes; the CPU has no kernel to run."""
    layers = importlib.import_module("mlx_lm.models.bitlinear_layers")
    kernel = layers.BitLinear.execute_matmul_kernel

    def either(self, x, packed):
        on_gpu = mx.default_device() == mx.gpu
        return (kernel if on_gpu else by_operations)(self, x, packed)

    layers.BitLinear.execute_matmul_kernel = either
    generator = np.random.default_rng(5)
    for _, module in model.named_modules():
        if isinstance(module, layers.BitLinear):
            codes = generator.integers(0, 3, (4, *module.weight.shape), np.uint8)
            packed = codes[0] | codes[1] << 2 | codes[2] << 4 | codes[3] << 6
            module.weight = mx.array(packed)
            module.weight_scale = mx.array([(2 / 3 * module.in_features) ** -0.5])


@pytest.mark.parametrize("case", CASES)
def test_float32(case, called):
    family, more, kernels = CASES[case]
    model = tiny.make_model(family, **more)
    if family == "bitnet":
        bitnet(model)
    check(model, batch=2)
    assert called == kernels
