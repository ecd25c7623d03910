"""Decode steps that are traced and built again, against the model's own Python.

Both make the same graph, so all comparisons are of bits.
"""

import contextlib
import gc
import weakref

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.generate import batch_generate, generate_step, speculative_generate_step
from mlx_lm.models.cache import (
    KVCache,
    load_prompt_cache,
    make_prompt_cache,
    save_prompt_cache,
)

from mlx_vulkan.bench import shapes
from tiny import make_model

# They multiply keys themselves, outside of attention.
NOT_TRACED = {"gemma2", "deepseek_v3"}


def runs(model) -> int:
    steps = vars(model).get("_mlx_vulkan_steps")
    return steps.runs if steps else 0


@contextlib.contextmanager
def untraced(model):
    cls = type(model)
    traced = cls.__call__
    cls.__call__ = traced.__wrapped__
    try:
        yield
    finally:
        cls.__call__ = traced


def prompt(n=20, seed=0) -> list[int]:
    return np.random.default_rng(seed).integers(1, 50, n).tolist()


def generate(model, n, **how):
    tokens, rows = [], []
    for token, row in generate_step(mx.array(prompt()), model, max_tokens=n, **how):
        tokens.append(token)
        rows.append(np.array(row.astype(mx.float32)))
    return tokens, np.stack(rows)


def check(model, n, least, make=make_prompt_cache, **how):
    """`n` tokens, of which at least `least` steps are traced; the traced cache."""
    before, caches, results = runs(model), [], []
    for mode in (contextlib.nullcontext(), untraced(model)):
        with mode:
            caches.append(make(model))
            results.append(generate(model, n, prompt_cache=caches[-1], **how))
    (tokens, rows), (want, want_rows) = results
    assert tokens == want
    assert np.array_equal(rows, want_rows)
    assert runs(model) - before >= least
    for ours, theirs in zip(*caches):
        assert getattr(ours, "offset", 0) == getattr(theirs, "offset", 0)
        assert getattr(ours, "_idx", 0) == getattr(theirs, "_idx", 0)
    return caches[0]


@pytest.mark.parametrize("family", sorted(shapes.TINY))
def test_families(family):
    model = make_model(family)
    check(model, 10, 0 if family in NOT_TRACED else 8)
    assert (runs(model) == 0) == (family in NOT_TRACED)


def test_growth_of_a_cache():
    def almost_full(model):
        caches = make_prompt_cache(model)
        model(mx.array([prompt(232)]), cache=caches)
        return caches

    check(make_model("qwen3"), 12, 10, almost_full)


def test_rotating_cache():
    def rotating(model):
        return make_prompt_cache(model, max_kv_size=16)

    check(make_model("qwen3"), 40, 38, rotating)  # wraps twice


@pytest.mark.parametrize("bits", [4, 8])
def test_quantized_cache(bits):
    how = {"kv_bits": bits, "kv_group_size": 32, "quantized_kv_start": 24}
    check(make_model("llama", head_dim=64), 16, 12, **how)


def test_batches_that_sequences_leave():
    model, results = make_model("qwen3"), []
    prompts = [prompt(n, n) for n in (3, 9, 5)]
    for mode in (contextlib.nullcontext(), untraced(model)):
        with mode:
            made = batch_generate(
                model, Tokens(), prompts, max_tokens=[6, 10, 14], verbose=False
            )
            results.append(made.texts)
    assert results[0] == results[1]
    assert runs(model) > 0


class Tokens:
    """A tokenizer whose text is the tokens."""

    eos_token_ids = ()
    eos_token_id = None
    bos_token = None
    has_thinking = has_tool_calling = False

    def decode(self, tokens):
        return " ".join(map(str, tokens))


def test_speculative_decoding():
    model, draft = make_model("qwen3"), make_model("llama")
    results = []
    for mode in (contextlib.nullcontext(), untraced(model)):
        with mode:
            step = speculative_generate_step(
                mx.array(prompt()), model, draft, num_draft_tokens=2, max_tokens=24
            )
            results.append([(t, np.array(row), drafted) for t, row, drafted in step])
    for (token, row, drafted), (want, want_row, of_draft) in zip(*results):
        assert (token, drafted) == (want, of_draft)
        assert np.array_equal(row, want_row)
    assert runs(model) > 5 and runs(draft) > 5


def steps(model, caches, tokens) -> np.ndarray:
    made = [model(mx.array([[t]]), cache=caches) for t in tokens]
    return np.array(mx.concatenate(made))


def replace(layer):
    layer.weight = layer.weight * 1.5


def update(layer):
    layer.update({"weight": layer.weight * 0.5})


def overwrite(layer):
    layer.weight[0] = 0.25


@pytest.mark.parametrize("edit", [replace, update, overwrite])
def test_edited_weights(edit):
    model = make_model("qwen3")
    results = []
    layer = model.model.layers[1].mlp.up_proj
    original = layer.weight
    copy = mx.array(np.array(original))
    for mode in (contextlib.nullcontext(), untraced(model)):
        layer.weight = mx.array(np.array(copy))
        with mode:
            caches = make_prompt_cache(model)
            before = steps(model, caches, prompt(6))
            edit(layer)
            results.append((before, steps(model, caches, prompt(6, 1))))
    assert np.array_equal(results[0][0], results[1][0])
    assert np.array_equal(results[0][1], results[1][1])
    assert runs(model) > 5


def test_replaced_layer():
    model, results = make_model("qwen3"), []
    layers = model.model.layers
    first = list(layers)
    for mode in (contextlib.nullcontext(), untraced(model)):
        layers[:] = first
        with mode:
            caches = make_prompt_cache(model)
            steps(model, caches, prompt(6))
            layers[0] = layers[1]
            results.append(steps(model, caches, prompt(6, 1)))
    assert np.array_equal(*results)


@pytest.mark.parametrize("traced_first", [True, False])
def test_saved_prompt_cache(tmp_path, traced_first):
    model = make_model("qwen3")
    modes = [contextlib.nullcontext(), untraced(model)]
    first, second = modes if traced_first else reversed(modes)
    with first:
        caches = make_prompt_cache(model)
        generate(model, 6, prompt_cache=caches)
        save_prompt_cache(str(tmp_path / "cache.safetensors"), caches)
        want = steps(model, caches, prompt(5, 1))
    with second:
        loaded = load_prompt_cache(str(tmp_path / "cache.safetensors"))
        got = steps(model, loaded, prompt(5, 1))
    assert np.array_equal(got, want)


def looks_at_offset(self, x, mask=None, cache=None):
    assert cache.offset < 1000
    return self.untraced(x, mask, cache)


def test_a_model_that_looks_at_a_position_is_not_traced(monkeypatch):
    model = make_model("qwen3")
    cls = type(model.model.layers[0])
    monkeypatch.setattr(cls, "untraced", cls.__call__, raising=False)
    monkeypatch.setattr(cls, "__call__", looks_at_offset)
    check(model, 6, 0)
    assert runs(model) == 0


def test_a_model_that_draws_numbers_is_not_traced(monkeypatch):
    model = make_model("qwen3")
    inner = type(model.model)
    call = inner.__call__

    def noisy(self, *args, **kwargs):
        made = call(self, *args, **kwargs)
        return made + 1e-3 * mx.random.normal(made.shape)

    monkeypatch.setattr(inner, "__call__", noisy)
    caches = make_prompt_cache(model)
    rows = [steps(model, [KVCache() for _ in caches], [3]) for _ in range(4)]
    assert runs(model) == 0
    assert not np.array_equal(rows[-1], rows[-2])


def test_a_model_ends_with_its_last_reference():
    model = make_model("qwen3")
    steps(model, make_prompt_cache(model), prompt(6))
    assert runs(model) > 0
    alive, weight = weakref.ref(model), weakref.ref(model.model.layers[0].mlp)
    gc.disable()
    try:
        del model
        assert alive() is None and weight() is None
    finally:
        gc.enable()


def test_a_compiled_step_is_not_traced():
    model = make_model("qwen3")
    caches = make_prompt_cache(model)
    steps(model, caches, prompt(4))
    before = runs(model)
    want = np.array(model(mx.array([[7]]), cache=copies(caches)))
    got = mx.compile(lambda t: model(t, cache=copies(caches)))(mx.array([[7]]))
    assert np.array_equal(np.array(got), want)
    assert runs(model) == before + 1


def copies(caches) -> list:
    made = [KVCache() for _ in caches]
    for copy, cache in zip(made, caches):
        copy.state = cache.state
    return made
