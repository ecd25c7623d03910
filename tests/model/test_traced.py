"""Decode steps that are traced and built again, against the model's own Python.

Both make the same graph, so all comparisons are of bits. MLX_VK_TEST_FULL=1 runs more
models for 600 tokens.
"""

import contextlib
import gc
import itertools
import os
import threading
import weakref

import mlx.core as mx
import numpy as np
import pytest
from mlx.utils import tree_flatten, tree_unflatten
from mlx_lm.generate import (
    BatchGenerator,
    generate_step,
    speculative_generate_step,
)
from mlx_lm.models.cache import (
    BatchRotatingKVCache,
    KVCache,
    QuantizedKVCache,
    load_prompt_cache,
    make_prompt_cache,
    save_prompt_cache,
)
from mlx_lm.tuner.utils import linear_to_lora_layers, remove_lora_layers
from untraced import traced_runs as runs
from untraced import untraced

from mlx_vulkan import native
from mlx_vulkan.bench import shapes
from mlx_vulkan.traced import prompts
from tiny import make_model

FULL = os.environ.get("MLX_VK_TEST_FULL") == "1"


def prompt(n=20, seed=0) -> list[int]:
    return np.random.default_rng(seed).integers(1, 50, n).tolist()


def generate(model, n, length=20, **how):
    tokens, rows = [], []
    for token, row in generate_step(
        mx.array(prompt(length)), model, max_tokens=n, **how
    ):
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
    check(make_model(family), 10, 8)


@pytest.mark.parametrize("length", [10, 256, 300])
@pytest.mark.parametrize("family", ["qwen3", "gemma3_text"])
def test_no_token_of_a_second_answer_is_of_python(family, length):
    """Caches that are full after a prompt, or larger than their window, make room."""
    model = make_model(family, **({"sliding_window": 264} if "gemma" in family else {}))
    generate(model, 4)
    before = runs(model)
    answer = generate(model, 12, length)[1]
    assert runs(model) - before == 13  # one ahead
    with untraced(model):
        assert np.array_equal(answer, generate(model, 12, length)[1])


@pytest.mark.parametrize("length", [10, 256, 300])
@pytest.mark.parametrize("kind", ["codes", "windows"])
def test_caches_make_room(kind, length):
    """Quantized caches, and windows in batches."""
    model, answers = make_model("qwen3", head_dim=32), []
    for mode in (contextlib.nullcontext(), untraced(model)):
        with mode:
            for n in (20, length):
                if kind == "codes":
                    rows, caches = 1, codes(model)
                else:
                    rows, layers = 2, model.layers
                    caches = [BatchRotatingKVCache(264, [0, 3]) for _ in layers]
                model(mx.array([prompt(n, row) for row in range(rows)]), cache=caches)
                before = runs(model)
                token = mx.array([[5]] * rows)
                made = [model(token, cache=caches) for _ in range(20)]
                answer = np.array(mx.concatenate(made))
        answers.append(answer)
        # A window that rotates is of another kind, whose first step is Python's.
        rotates = kind == "windows" and length > 20
        assert runs(model) - before == (20 - rotates if len(answers) == 1 else 0)
    assert np.array_equal(*answers)


def rotating(model):
    return make_prompt_cache(model, max_kv_size=16)


def test_rotating_cache():
    check(make_model("qwen3"), 40, 38, rotating)  # wraps twice


@pytest.mark.parametrize(
    "family", ["qwen3", "gemma3_text", "qwen3_next"][: 3 if FULL else 1]
)
def test_600_tokens(family):
    check(make_model(family), 600, 598)  # a cache grows twice, a window wraps 38 times


@pytest.mark.parametrize("bits", [4, 8])
def test_quantized_cache(bits):
    how = {"kv_bits": bits, "kv_group_size": 32, "quantized_kv_start": 24}
    check(make_model("llama", head_dim=64), 16, 12, **how)


@pytest.mark.parametrize("family", ["qwen3", "gemma3_text", "qwen3_next"])
def test_batches_that_sequences_join_and_leave(family):
    model, results = make_model(family), []
    for mode in (contextlib.nullcontext(), untraced(model)):
        made = {}
        with mode:
            batches = BatchGenerator(model, completion_batch_size=8)
            for round in range(44):
                if round % 3 == 0 and round < 24:  # 8 join, one after another
                    n = 3 + round // 3
                    batches.insert([prompt(n, n)], [45 - 2 * n if n % 2 else 12])
                for r in batches.next()[1]:
                    row = np.array(r.logprobs.astype(mx.float32))
                    made.setdefault(r.uid, []).append((r.token, row))
            batches.close()
        results.append(made)
    ours, theirs = results
    assert len(ours) == 8 and ours.keys() == theirs.keys()
    for uid in ours:
        assert [t for t, _ in ours[uid]] == [t for t, _ in theirs[uid]]
        assert all(
            np.array_equal(a, b) for (_, a), (_, b) in zip(ours[uid], theirs[uid])
        )
    assert runs(model) >= 20


def codes(model):
    return [QuantizedKVCache(group_size=32, bits=4) for _ in model.layers]


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("family", ["qwen3", "gemma2", "deepseek_v3", "codes"])
def test_several_tokens_a_step(family, rows):
    """As a check of drafts, by caches and models that compute with keys themselves."""
    if family == "codes":
        model, make = make_model("llama", head_dim=32), codes
    else:
        model, make = make_model(family), make_prompt_cache
    results = []
    for mode in (contextlib.nullcontext(), untraced(model)):
        with mode:
            caches, logits = make(model), []
            for i in range(5):
                tokens = mx.array([prompt(3, i + 9 * row) for row in range(rows)])
                logits.append(np.array(model(tokens, cache=caches)))
            results.append(logits)
    assert all(np.array_equal(a, b) for a, b in zip(*results))
    assert runs(model) == 3


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


def test_adapters():
    model, results = make_model("qwen3"), []
    how = {"rank": 4, "scale": 8.0, "dropout": 0.0}
    for mode in (contextlib.nullcontext(), untraced(model)):
        with mode:
            caches = make_prompt_cache(model)
            rows = [steps(model, caches, prompt(4))]
            mx.random.seed(5)
            linear_to_lora_layers(model, 2, how)
            model.eval()
            adapters = [(k, mx.random.normal(v.shape)) for k, v in adapters_of(model)]
            model.update(tree_unflatten(adapters))
            mx.eval(model.parameters())
            before = runs(model)
            rows.append(steps(model, caches, prompt(5, 1)))
            assert runs(model) - before == (3 if not results else 0)
            remove_lora_layers(model)
            rows.append(steps(model, caches, prompt(4, 2)))
            results.append(rows)
    for got, want in zip(*results):
        assert np.array_equal(got, want)


def adapters_of(model) -> list:
    return [(k, v) for k, v in tree_flatten(model.parameters()) if "lora_" in k]


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
@pytest.mark.parametrize("make", [make_prompt_cache, rotating])
def test_saved_prompt_cache(tmp_path, make, traced_first):
    model = make_model("qwen3")
    modes = [contextlib.nullcontext(), untraced(model)]
    first, second = modes if traced_first else reversed(modes)
    with first:
        caches = make(model)
        generate(model, 6, prompt_cache=caches)
        save_prompt_cache(str(tmp_path / "cache.safetensors"), caches)
        want = steps(model, caches, prompt(5, 1))
    with second:
        loaded = load_prompt_cache(str(tmp_path / "cache.safetensors"))
        got = steps(model, loaded, prompt(5, 1))
    assert np.array_equal(got, want)


def too_long(caches):
    """A cache whose update does not fit: it has room for 1.5 times the memory."""
    keys = caches[1].keys
    memory = mx.device_info(mx.gpu)["memory_size"]
    room = memory * 3 // 2 // (keys.nbytes // keys.shape[2])
    shape = (*keys.shape[:2], room, keys.shape[3])
    caches[1].keys = mx.broadcast_to(keys[:, :, :1], shape)


def test_a_step_that_fails_in_the_middle():
    model = make_model("qwen3")
    caches = make_prompt_cache(model)
    steps(model, caches, prompt(6))
    with untraced(model):
        want = steps(model, copies(caches), prompt(3, 1))
    before = runs(model)
    broken = copies(caches)
    too_long(broken)
    logits = model(mx.array([[3]]), cache=broken)
    with pytest.raises((RuntimeError, MemoryError), match="GiB|GB|bytes"):
        mx.eval(logits)
    for left in (logits, broken[0].keys, broken[1].values):  # of that step
        with pytest.raises(RuntimeError, match="has failed"):
            mx.eval(left)
    assert np.array_equal(steps(model, caches, prompt(3, 1)), want)
    assert runs(model) == before + 4


@pytest.mark.parametrize("lost", [False, True])
def test_caches_alone_are_evaluated(lost):
    """As mlx-lm does after a chunk of a prompt, whose logits nobody reads."""
    model, results = make_model("qwen3"), []
    for mode in (contextlib.nullcontext(), untraced(model)):
        with mode:
            caches, rows = make_prompt_cache(model), []
            for token in prompt(8):
                logits = model(mx.array([[token]]), cache=caches)
                mx.eval([c.state for c in caches])
                if not lost:
                    rows.append(np.array(logits))
            rows += [np.array(c.keys[..., : c.offset, :]) for c in caches]
            rows.append(steps(model, caches, [7]))
            results.append(rows)
    assert all(np.array_equal(a, b) for a, b in zip(*results))
    assert runs(model) == 7


def test_other_streams():
    model, results = make_model("qwen3"), []
    other = mx.new_stream(mx.gpu)
    for mode in (contextlib.nullcontext(), untraced(model)):
        with mode:
            caches, rows = make_prompt_cache(model), []
            token = mx.array([3])
            for i in range(12):
                # Tokens come from a CPU stream, steps are now and then of another one.
                with mx.stream(other if i % 4 == 3 else mx.default_stream(mx.gpu)):
                    row = model(token[None], cache=caches)[0, -1]
                    token = mx.argmax(row, keepdims=True, stream=mx.cpu)
                    mx.async_eval(token)
                    rows.append(mx.add(row, 1, stream=mx.cpu))
            results.append([np.array(row) for row in rows])
    assert all(np.array_equal(a, b) for a, b in zip(*results))
    assert runs(model) >= 6


def test_other_threads():
    model, results = make_model("qwen3"), {}

    def answer(i):
        with mx.stream(mx.new_stream(mx.gpu)):
            results[i] = generate(model, 12)[1]

    want = generate(model, 12)[1]
    threads = [threading.Thread(target=answer, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(results[i], want) for i in range(3))
    assert runs(model) > 10


@pytest.mark.parametrize("family", ["qwen3", "olmo2", "gemma3_text"])
def test_prompts_begin_early(family, monkeypatch):
    model = make_model(family, num_hidden_layers=9)
    tokens, rows, begun = mx.array([prompt(40)]), [], []
    for layers in (prompts.LAYERS, 1000):
        monkeypatch.setattr(prompts, "updates", itertools.count())
        monkeypatch.setattr(prompts, "LAYERS", layers)
        caches = make_prompt_cache(model)
        before = native.counters()["batches"]
        logits = model(tokens, cache=caches)
        mx.synchronize()
        begun.append(native.counters()["batches"] - before)
        mx.eval([c.state for c in caches])
        rows.append([np.array(logits), *(np.array(c.keys) for c in caches)])
    assert begun[0] >= 2 and begun[1] == 0
    assert all(np.array_equal(a, b) for a, b in zip(*rows))


def test_a_compiled_prompt_does_not_begin_early():
    model = make_model("qwen3", num_hidden_layers=3)
    tokens = mx.array([prompt(40)])
    want = model(tokens, cache=make_prompt_cache(model))
    got = mx.compile(lambda t: model(t, cache=make_prompt_cache(model)))(tokens)
    assert np.array_equal(np.array(got), np.array(want))


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
    return [KVCache.from_state(cache.state) for cache in caches]
