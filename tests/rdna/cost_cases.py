"""Runs the kernels of the main job for tools/run_costs.py: those of a token, a prompt
and experts of Qwen3's 8B and 30B-A3B, with fewer layers, rows or experts where counts
grow with these. In MLX_VK_PROFILE's trace, a kernel that no case has begins each.

    python cost_cases.py FILE [NAME ...]    names of cases go to FILE, as JSON
"""

import json
import sys
from pathlib import Path

import mlx.core as mx
import numpy as np

GROUP, BITS, TYPE = 64, 4, mx.bfloat16
random = np.random.default_rng(1)


def made(x):
    mx.eval(x)
    return x


def items(*shape, dtype=TYPE):
    return made(mx.array(random.standard_normal(shape, np.float32)).astype(dtype))


def weights(*shape):
    """Of 4 bits: codes, scales and biases, made on the CPU."""
    *batch, n, k = shape
    codes = random.integers(0, 2**32, (*batch, n, k * BITS // 32), np.uint32)
    scales = made(items(*batch, n, k // GROUP) * 0.01)
    return mx.array(codes), scales, made(-8 * scales)


def quantized(rows, n, k):
    x, w = items(rows, k), weights(n, k)
    return lambda: mx.quantized_matmul(x, *w, transpose=True, group_size=GROUP)


def dense(rows, n, k, dtype):
    x, w = items(rows, k, dtype=dtype), items(n, k, dtype=dtype)
    return lambda: x @ w.T


def attention(heads, kv_heads, queries, keys):
    q = items(1, heads, queries, 128)
    k, v = items(1, kv_heads, keys, 128), items(1, kv_heads, keys, 128)
    mask = "causal" if queries > 1 else None
    return lambda: mx.fast.scaled_dot_product_attention(
        q, k, v, scale=128**-0.5, mask=mask
    )


def token(shape, **changes):
    """One layer of a model, a token after 64 keys."""
    import mlx.nn as nn
    from mlx.utils import tree_map
    from mlx_lm.models import qwen3, qwen3_moe
    from mlx_lm.models.cache import KVCache

    config = shape | changes | dict(num_hidden_layers=1, vocab_size=1024)
    module = qwen3_moe if "num_experts" in config else qwen3
    layer = module.Model(module.ModelArgs(**config)).model.layers[0]
    nn.quantize(layer, GROUP, BITS)
    layer.update(tree_map(fill, layer.parameters()))
    x = items(1, 1, config["hidden_size"])
    cache = KVCache()
    keys = items(1, config["num_key_value_heads"], 64, 128)
    cache.update_and_fetch(keys, keys)
    mx.eval(cache.state)
    return lambda: layer(x, cache=cache)


def fill(parameter):
    """Replaces what quantizing would compute."""
    if parameter.dtype == mx.uint32:
        return mx.array(random.integers(0, 2**32, parameter.shape, np.uint32))
    return made(items(*parameter.shape) * 0.01)


def experts(tokens, n, k, count=16, active=8):
    """Of a prompt: each expert has as many rows as in one of 512 tokens."""
    x, w = items(tokens * active, 1, k), weights(count, n, k)
    rows = np.sort(np.arange(tokens * active) % count).astype(np.uint32)
    chosen = mx.array(rows)
    return lambda: mx.gather_qmm(
        x, *w, rhs_indices=chosen, transpose=True, group_size=GROUP, sorted_indices=True
    )


def cases():
    from mlx_vulkan.bench.shapes import SHAPES

    yield "token, layer of 8B", lambda: token(SHAPES["qwen3-8b"])
    yield (
        "token, layer of 30B-A3B",
        lambda: token(SHAPES["qwen3-30b-a3b"], num_experts=16),
    )
    for rows in (1, 8, 16, 64):
        yield f"product of {rows}", lambda rows=rows: quantized(rows, 4096, 4096)
    yield "product of 512", lambda: quantized(512, 4096, 512)
    for dtype, name in ((mx.float16, "f16"), (mx.bfloat16, "bf16")):
        for rows in (8, 64):
            yield (
                f"{name} product of {rows}",
                lambda rows=rows, dtype=dtype: dense(rows, 4096, 1024, dtype),
            )
        yield (
            f"{name} product of 512",
            lambda dtype=dtype: dense(512, 4096, 512, dtype),
        )
    yield "attention of a token, 8,192 keys", lambda: attention(32, 8, 1, 8192)
    yield "attention of a prompt of 512", lambda: attention(8, 2, 512, 512)
    yield "experts of a prompt, gate", lambda: experts(64, 768, 2048)
    yield "experts of a prompt, down", lambda: experts(64, 2048, 768)


def main() -> None:
    file, *wanted = sys.argv[1:]
    ran = []
    for name, make in cases():
        if wanted and name not in wanted:
            continue
        with mx.stream(mx.cpu):
            call = make()
        mx.synchronize(mx.cpu)
        mx.eval(mx.arctanh(mx.zeros((1,))))
        mx.synchronize()
        mx.eval(call())
        mx.synchronize()
        ran.append(name)
    Path(file).write_text(json.dumps(ran), "utf-8")


if __name__ == "__main__":
    main()
