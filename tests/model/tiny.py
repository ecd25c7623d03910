"""Random models of mlx-lm's families, small enough for a software device."""

import importlib

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_map_with_path

from mlx_vulkan.bench import shapes


def make_model(family: str, seed: int = 0, **more) -> nn.Module:
    """A float32 model with random weights, made on the CPU.

    Vectors (norms, biases, sinks, rates) are moved from their initial values,
    where a forgotten one would show no difference; matrices get what would
    leave the size of a row's product unchanged.
    """
    with mx.stream(mx.cpu):
        mx.random.seed(seed)
        module = importlib.import_module(f"mlx_lm.models.{family}")
        unknown = more.keys() - module.ModelArgs.__dataclass_fields__.keys()
        assert not unknown, f"{family} has no {unknown}"
        config = shapes.tiny(family) | more
        model = module.Model(module.ModelArgs.from_dict(config))

        def randomize(path, value):
            if path.endswith("inv_freq") or not mx.issubdtype(value.dtype, mx.floating):
                return value
            noise = mx.random.normal(value.shape)
            if value.ndim < 2:
                return value + 0.1 * noise
            return noise * value.shape[-1] ** -0.5

        model.update(tree_map_with_path(randomize, model.parameters()))
        model.eval()
        mx.eval(model.parameters())
    return model


def quantize(model: nn.Module, groups=(32, 64), **experts) -> nn.Module:
    """4 bits in `groups` in turn; with `experts`, the experts so."""
    count = 0

    def how(path, module):
        nonlocal count
        if not hasattr(module, "to_quantized") or module.weight.shape[-1] % 64:
            return False
        if experts and "experts" in path:
            return experts
        count += 1
        return {"group_size": groups[(count - 1) % len(groups)], "bits": 4}

    with mx.stream(mx.cpu):
        nn.quantize(model, class_predicate=how)
        mx.eval(model.parameters())
    return model
