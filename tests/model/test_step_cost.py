"""What one decode step of a model of Qwen3-0.6B's shape makes the GPU do.

Its widths are small: they change neither the dispatches nor the barriers.
"""

import mlx.core as mx
import pytest
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import make_prompt_cache

import tiny
from mlx_vulkan import native

LAYERS, STEPS = 28, 4


@pytest.fixture(scope="module")
def model():
    model = tiny.make_model(
        "qwen3",
        num_hidden_layers=LAYERS,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
    )
    with mx.stream(mx.cpu):
        tiny.quantize(model, groups=(64,)).set_dtype(mx.bfloat16)
        mx.eval(model.parameters())
    return model


@pytest.fixture(scope="module")
def prompt():
    return mx.arange(1, 21)


def difference(before: dict) -> dict:
    after = native.counters()
    return {k: v - before[k] for k, v in after.items() if isinstance(v, (int, float))}


def test_dispatches_and_barriers(model, prompt):
    before = mx.default_device()
    mx.set_default_device(mx.gpu)
    try:
        cache = make_prompt_cache(model)

        def step(tokens):
            token = mx.argmax(model(tokens, cache=cache)[:, -1], axis=-1)
            mx.eval(token)
            return token

        token = step(prompt[None])
        for _ in range(2):
            token = step(token[None])
        counters = native.counters()
        token = step(token[None])
        token.item()
        cost = difference(counters)
    finally:
        mx.set_default_device(before)
    print({k: v / LAYERS for k, v in cost.items()})
    # Embedding, last norm, head and argmax are counted with the layers.
    assert cost["dispatches"] <= 7 * LAYERS
    assert cost["barriers"] <= 7 * LAYERS
    assert cost["copies"] == 0
    assert cost["host_waits"] == 1
    assert cost["fallbacks"] == cost["decompositions"] == cost["compilations"] == 0
    # The token is in memory that both sides see, or is all that crosses.
    assert cost["uploaded_bytes"] <= 8 and cost["downloaded_bytes"] <= 8


def test_generation_waits_for_tokens_only(model, prompt):
    before = mx.default_device()
    mx.set_default_device(mx.gpu)
    try:
        steps = generate_step(prompt, model, max_tokens=STEPS + 4)
        for _ in range(3):
            next(steps)
        counters = native.counters()
        for _ in range(STEPS):
            next(steps)
        cost = difference(counters)
    finally:
        mx.set_default_device(before)
    print({k: v / STEPS for k, v in cost.items()})
    # mlx-lm reads a token when the next step is already submitted.
    assert cost["host_waits"] <= STEPS
    assert cost["copies"] == cost["fallbacks"] == cost["decompositions"] == 0
    assert cost["uploaded_bytes"] <= 8 * STEPS
    assert cost["downloaded_bytes"] <= 8 * STEPS
