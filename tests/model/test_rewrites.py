"""Rewrites of records change nothing: the same tokens, and logits to the bit.

Families whose layers differ in what follows a product: biases (qwen2), norms of
q and k (qwen3), norms of outputs (gemma2), one product for q, k and v (phi3), a
factor of the residual (granite), experts (qwen3_moe).
"""

import json
import os
from pathlib import Path

import pytest
from processes import output_of

FAMILIES = ("llama", "qwen2", "qwen3", "gemma2", "phi3", "granite", "qwen3_moe")
TOKENS = 200 if os.environ.get("MLX_VK_TEST_FULL") else 16

GENERATE = """
import hashlib, json, sys
import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import make_prompt_cache
import tiny
from mlx_vulkan import native

mx.set_default_device(mx.gpu)
families, tokens = sys.argv[1].split(","), int(sys.argv[2])
found = {}
for family in families:
    model = tiny.quantize(tiny.make_model(family), groups=(64,))
    with mx.stream(mx.cpu):
        model.set_dtype(mx.bfloat16)
        mx.eval(model.parameters())
    cache = make_prompt_cache(model)
    feed, words, bits = mx.arange(1, 21)[None], [], hashlib.sha256()
    for _ in range(tokens):
        logits = model(feed, cache=cache)[:, -1]
        feed = mx.argmax(logits, axis=-1)[None]
        mx.eval(feed, logits)
        words.append(feed.item())
        bits.update(np.array(logits.astype(mx.float32)).tobytes())
    found[family] = [words, bits.hexdigest()]
counters = native.counters()
rules = {k[9:]: v for k, v in counters.items() if k.startswith("rewrites_")}
print(json.dumps([found, rules]))
"""


def generate(**environment):
    done = output_of(
        *("-c", GENERATE, ",".join(FAMILIES), TOKENS),
        folder=Path(__file__).parent,
        limit=3000,
        **environment,
    )
    assert "joined kernel" not in done.stderr, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def plain():
    found, rules = generate(MLX_VK_DISABLE="fuse")
    assert not any(rules.values())
    return found


@pytest.mark.parametrize(
    "environment",
    [
        {"MLX_VK_MEMORY": "unified"},
        {"MLX_VK_MEMORY": "discrete", "MLX_VK_DEBUG": "shuffle"},
    ],
    ids=["unified", "discrete, shuffled"],
)
def test_same_bits(plain, environment):
    found, rules = generate(**environment)
    # That of quantized caches rounds otherwise: test_quantized_attention.py.
    assert rules.pop("attention") == 0
    assert all(rules.values()), rules
    for family in FAMILIES:
        assert found[family] == plain[family], family
