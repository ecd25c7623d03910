"""Traced steps of mlx-vlm's models: their caches, calls and outputs.

mlx-vlm itself is not a dependency; tests/model/vlm has its names.
tests/packages/traced_models.py tries its own models.
"""

import importlib
import pathlib

import mlx.core as mx
import numpy as np
import pytest
from untraced import traced_runs as runs
from untraced import untraced

from tiny import make_model

VLM = str(pathlib.Path(__file__).parent / "vlm")
PROMPT = [[3, 1, 4, 1, 5, 9, 2, 6]]


@pytest.fixture
def vlm(monkeypatch):
    monkeypatch.syspath_prepend(VLM)
    cache = importlib.import_module("mlx_vlm.models.cache")
    language = importlib.import_module("mlx_vlm.models.tiny.language")
    return language.LanguageModel(make_model("qwen3")), cache


def answer(model, caches, prompt, n=6, **how) -> list[np.ndarray]:
    model(mx.array(prompt), cache=caches)
    token, rows = mx.array([[7]] * len(prompt)), []
    for _ in range(n):
        output = model(token, inputs_embeds=None, cache=caches, **how)
        assert type(output).__name__ == "LanguageModelOutput"
        assert output.hidden_states is None or how["return_hidden"]
        rows.append(np.array(output.logits))
        token = mx.argmax(output.logits[:, -1:], axis=-1)
    return rows


def check(model, make, prompt, traced: int, **how):
    """Same bits as Python's; `traced` of the 6 steps are traced."""
    before = runs(model)
    ours = answer(model, make(), prompt, **how)
    assert runs(model) - before == traced
    with untraced(model):
        theirs = answer(model, make(), prompt, **how)
    assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def caches_of(model, cls, *args):
    return lambda: [cls(*args) for _ in model.layers]


def test_caches_and_calls(vlm):
    model, cache = vlm
    plain = caches_of(model, cache.KVCache)
    check(model, plain, PROMPT, 5)
    # What the model keeps of a prompt is an input of its steps.
    check(model, plain, [[2, 7, 1]], 6)
    check(model, caches_of(model, cache.RotatingKVCache, 6), PROMPT, 5)
    check(model, caches_of(model, cache.BatchKVCache, [0, 2]), PROMPT * 2, 5)


def test_arrays_of_a_call(vlm):
    """mlx-vlm hands a batch's rope_deltas to each step, and the model keeps them."""
    model, cache = vlm
    batch = caches_of(model, cache.BatchKVCache, [0, 2])
    traced = 5
    for deltas in ([[3], [40]], [[-2], [7]]):
        deltas = mx.array(deltas)
        check(model, batch, PROMPT * 2, traced, rope_deltas=deltas)
        assert model._rope_deltas is deltas
        traced = 6
    # Another type is another step.
    check(model, batch, PROMPT * 2, 5, rope_deltas=deltas.astype(mx.float32))


@pytest.mark.parametrize("change", ["array", "value"])
def test_arrays_that_the_model_changes(vlm, monkeypatch, change):
    """The trace is refused."""
    model, cache = vlm
    monkeypatch.setattr(type(model), "changes_deltas", change)
    batch = caches_of(model, cache.BatchKVCache, [0, 2])
    for _ in range(2):
        before = runs(model)
        deltas = mx.array([[3], [40]])
        answer(model, batch(), PROMPT * 2, rope_deltas=deltas)
        assert runs(model) == before
        assert deltas.tolist() == ([[9], [46]] if change == "array" else [[3], [40]])


def test_an_offset_that_the_model_changes(vlm, monkeypatch):
    """The changed offset may be 0, so the trace is refused."""
    model, cache = vlm
    monkeypatch.setattr(type(model), "ahead", 8)  # the offset of the first step
    check(model, caches_of(model, cache.KVCache), PROMPT, 0)


def test_settings_of_a_call(vlm):
    model, cache = vlm
    plain = caches_of(model, cache.KVCache)
    check(model, plain, PROMPT, 5, logits_to_keep=1)
    check(model, plain, PROMPT, 0, return_hidden=True)


def test_a_trimmed_cache_begins_a_prompt(vlm):
    """A cache with room and no tokens: its offset is 0, which no traced step has."""
    model, cache = vlm
    check(model, caches_of(model, cache.KVCache), PROMPT, 5)
    rows = []
    for mode in (None, untraced(model)):
        caches = [cache.KVCache() for _ in model.layers]
        model(mx.array(PROMPT), cache=caches)
        for c in caches:
            c.trim(len(PROMPT[0]))
        before = runs(model)
        if mode is None:
            rows.append(np.array(model(mx.array([[7]]), cache=caches).logits))
            assert runs(model) == before
        else:
            with mode:
                rows.append(np.array(model(mx.array([[7]]), cache=caches).logits))
    assert np.array_equal(*rows)
