"""What one decode step makes the GPU do, of models of Qwen3-0.6B's shape and,
with less layers, of Qwen3-30B-A3B's.

Its widths are small: they change neither the dispatches nor the barriers.
"""

import mlx.core as mx
import pytest
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import make_prompt_cache

import tiny
from mlx_vulkan import native

LAYERS, EXPERT_LAYERS, STEPS = 28, 12, 4


def quantized(model):
    with mx.stream(mx.cpu):
        tiny.quantize(model, groups=(64,)).set_dtype(mx.bfloat16)
        mx.eval(model.parameters())
    return model


@pytest.fixture(scope="module")
def model():
    return quantized(
        tiny.make_model(
            "qwen3",
            num_hidden_layers=LAYERS,
            num_attention_heads=16,
            num_key_value_heads=8,
            head_dim=128,
        )
    )


@pytest.fixture(scope="module")
def prompt():
    return mx.arange(1, 21)


def difference(before: dict) -> dict:
    after = native.counters()
    return {k: v - before[k] for k, v in after.items() if isinstance(v, (int, float))}


def check_rules(cost, layers, **expected):
    """Each layer has the same records joined: batches end between halves of
    layers only. Other devices may lack the registers for some of them."""
    rules = {k[9:]: v / layers for k, v in cost.items() if k.startswith("rewrites_")}
    assert all(count == int(count) for count in rules.values()), rules
    if mx.device_info(mx.gpu)["architecture"] == "vulkan-cpu":
        assert {rule: count for rule, count in rules.items() if count} == expected


def cost_of_step(model, prompt, layers):
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
    print({k: v / layers for k, v in cost.items()})
    return cost


def test_dispatches_and_barriers(model, prompt):
    cost = cost_of_step(model, prompt, LAYERS)
    # Embedding, last norm, head and argmax are counted with the layers.
    assert cost["dispatches"] <= 7 * LAYERS
    assert cost["barriers"] <= 7 * LAYERS
    check_rules(cost, LAYERS, siblings=3, residual=2, gate=1, norm=2, rope=5)
    assert cost["copies"] == 0
    assert cost["host_waits"] == 1
    assert cost["fallbacks"] == cost["decompositions"] == cost["compilations"] == 0
    # The token is in memory that both sides see, or is all that crosses.
    assert cost["uploaded_bytes"] <= 8 and cost["downloaded_bytes"] <= 8


def test_dispatches_and_barriers_of_experts(prompt):
    model = quantized(
        tiny.make_model(
            "qwen3_moe",
            num_hidden_layers=EXPERT_LAYERS,
            num_attention_heads=16,
            num_key_value_heads=8,
            head_dim=128,
            num_experts=128,
            num_experts_per_tok=8,
        )
    )
    cost = cost_of_step(model, prompt, EXPERT_LAYERS)
    # 8 and 8 a layer; the rest is counted with them.
    assert cost["dispatches"] <= 9 * EXPERT_LAYERS
    assert cost["barriers"] <= 10 * EXPERT_LAYERS
    experts = {"router": 4, "experts": 2, "combine": 3}
    check_rules(cost, EXPERT_LAYERS, siblings=2, residual=1, norm=2, rope=5, **experts)
    assert cost["copies"] == cost["fallbacks"] == cost["decompositions"] == 0


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
