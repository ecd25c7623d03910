"""What mlx-lm does with a model, with no operation decomposed.

conftest.py sets MLX_VK_FALLBACK=deny. Greedy decoding of the demo's real model
is in test_generate.py; here the models are tiny and random.
"""

import types

import mlx.core as mx
import mlx.optimizers as optim
import numpy as np
import pytest
from mlx_lm import batch_generate
from mlx_lm.generate import generate_step, speculative_generate_step
from mlx_lm.models import cache as caches
from mlx_lm.sample_utils import make_sampler
from mlx_lm.tuner import trainer
from mlx_lm.tuner.callbacks import TrainingCallback
from mlx_lm.tuner.utils import linear_to_lora_layers

import tiny
from reference import bounds, logits

PROMPT = np.random.default_rng(2).integers(3, 200, 21)
TOKENS = 12


@pytest.fixture(autouse=True)
def on_gpu():
    before = mx.default_device()
    mx.set_default_device(mx.gpu)
    yield
    mx.set_default_device(before)


def unquantized():
    # With tied embeddings a random model would only repeat its last token.
    return tiny.make_model("llama", head_dim=64, tie_word_embeddings=False)


@pytest.fixture(scope="module")
def model():
    return tiny.quantize(unquantized())


def generate(model, prompt=PROMPT, count=TOKENS, **how) -> list[int]:
    steps = generate_step(mx.array(prompt), model, max_tokens=count, **how)
    return [int(token) for token, _ in steps]


def on_cpu(model, prompt=PROMPT, count=TOKENS) -> list[int]:
    """Greedy tokens from MLX's CPU, without a cache."""
    tokens = list(map(int, prompt))
    with mx.stream(mx.cpu):
        for _ in range(count):
            tokens.append(int(mx.argmax(model(mx.array([tokens]))[0, -1])))
    return tokens[len(prompt) :]


@pytest.fixture(scope="module")
def greedy(model):
    return on_cpu(model)


def test_greedy(model, greedy):
    assert generate(model) == greedy


@pytest.mark.parametrize(
    "how",
    [
        {"temp": 0.7, "top_k": 1},
        {"temp": 0.7, "top_p": 1e-4},
        {"temp": 0.7, "min_p": 1.0},
        {"temp": 1e-4},
    ],
    ids=str,
)
def test_sampling_that_leaves_one_token_is_greedy(model, greedy, how):
    assert generate(model, sampler=make_sampler(**how)) == greedy


def allowed(logprobs, top_p=0.0, min_p=0.0, top_k=0):
    """The tokens that survive the filters in mlx-lm's order, by their definition."""
    p = np.exp(logprobs.astype(np.float64))
    kept = np.ones(p.size, bool)
    order = np.argsort(-p)
    if top_p:
        above = np.concatenate([[0.0], np.cumsum(p[order])[:-1]])
        kept[order[above >= top_p * p.sum()]] = False
    if min_p:
        kept &= p >= min_p * p.max()
    if top_k:
        kept[[i for i in order if kept[i]][top_k:]] = False
    return kept


FILTERS = [{}, {"top_k": 7}, {"top_p": 0.8}, {"min_p": 0.1}]
FILTERS += [{"top_p": 0.9, "min_p": 0.05, "top_k": 20}]


@pytest.mark.parametrize("how", FILTERS, ids=str)
def test_samples_follow_the_distribution(how):
    temp, draws, size = 0.8, 20000, 50
    x = np.random.default_rng(3).normal(size=size).astype(np.float32) * 1.5
    logprobs = x - np.log(np.exp(x.astype(np.float64)).sum()).astype(np.float32)
    kept = allowed(logprobs, **how)
    p = np.where(kept, np.exp(logprobs.astype(np.float64) / temp), 0)
    p /= p.sum()
    mx.random.seed(11)
    rows = mx.broadcast_to(mx.array(logprobs), (draws, size))
    drawn = np.array(make_sampler(temp, **how)(rows))
    counts = np.bincount(drawn, minlength=size)
    assert counts[~kept].sum() == 0
    # Chi-square with k - 1 degrees of freedom: mean k - 1, variance 2 (k - 1);
    # six sigma above the mean.
    free = kept.sum() - 1
    rare = kept & (draws * p < 5)
    seen = np.append(counts[kept & ~rare], counts[rare].sum())
    want = np.append(draws * p[kept & ~rare], draws * p[rare].sum())
    chi = (np.square(seen - want) / np.maximum(want, 1)).sum()
    assert chi <= free + 6 * np.sqrt(2 * free)


def test_sampled_generation(model):
    how = {"top_p": 0.9, "min_p": 0.02, "top_k": 20}
    runs = []
    for seed in (1, 1, 2):
        mx.random.seed(seed)
        sampler = make_sampler(0.8, **how)
        steps = generate_step(
            mx.array(PROMPT), model, max_tokens=TOKENS, sampler=sampler
        )
        runs.append([(int(t), np.array(lp)) for t, lp in steps])
        # A token on the edge of a filter may fall to either side.
        wider = {"top_p": 0.901, "min_p": 0.0199, "top_k": 21}
        for token, logprobs in runs[-1]:
            assert allowed(logprobs, **wider)[token]
    words = [[token for token, _ in run] for run in runs]
    assert words[0] == words[1] != words[2]


@pytest.mark.parametrize("family", ["llama", "gemma3_text", "qwen3_moe"])
def test_batch_equals_one_by_one(family):
    # Lengths on both sides of gemma3's window of 16.
    model = tiny.quantize(tiny.make_model(family))
    prompts = [list(map(int, PROMPT[:n])) for n in (5, 21, 11)]
    tokenizer = types.SimpleNamespace(eos_token_ids=[], decode=str)
    counts = [4, TOKENS, 8]
    batch = batch_generate(
        model, tokenizer, prompts, max_tokens=counts, return_token_ids=True
    )
    for prompt, count, got in zip(prompts, counts, batch.token_ids):
        assert got == on_cpu(model, prompt, count)


def test_speculative_decoding_equals_greedy(model, greedy):
    # The same model before its quantization: it is right about part of them.
    draft = unquantized()
    steps = speculative_generate_step(
        mx.array(PROMPT), model, draft, num_draft_tokens=3, max_tokens=TOKENS
    )
    tokens, drafted = zip(*[(int(token), by_draft) for token, _, by_draft in steps])
    assert list(tokens) == greedy
    assert 0 < sum(drafted) < TOKENS - TOKENS // 4


def test_prompt_cache_survives_a_file(model, greedy, tmp_path):
    cache = caches.make_prompt_cache(model)
    model(mx.array(PROMPT[None, :-1]), cache=cache)
    caches.save_prompt_cache(str(tmp_path / "c.safetensors"), cache, {"a": "b"})
    loaded, about = caches.load_prompt_cache(
        str(tmp_path / "c.safetensors"), return_metadata=True
    )
    assert about == {"a": "b"}
    for kept, read in zip(cache, loaded):
        assert read.offset == len(PROMPT) - 1
        for k, r in zip(kept.state, read.state):
            assert mx.array_equal(k, r)
    assert generate(model, PROMPT[-1:], prompt_cache=loaded) == greedy


def test_trimmed_prompt_cache(model, greedy):
    cache = caches.make_prompt_cache(model)
    model(mx.array([*map(int, PROMPT), 7, 9, 11])[None], cache=cache)
    assert caches.trim_prompt_cache(cache, 4) == 4
    assert generate(model, PROMPT[-1:], prompt_cache=cache) == greedy


@pytest.mark.parametrize("bits, group", [(8, 64), (4, 32)])
def test_quantized_cache(model, bits, group):
    tokens = np.random.default_rng(4).integers(1, 200, (1, 45))

    def quantized(model):
        return [caches.QuantizedKVCache(group, bits) for _ in model.layers]

    want = logits(model, tokens, mx.cpu, quantized)
    got = logits(model, tokens, mx.gpu, quantized)
    plain = logits(model, tokens, mx.gpu)
    # A key or value next to a rounding edge may fall to the other side: one
    # step, 1 / (2^bits - 1) of its group's range, of one element among the
    # hidden sizes of all tokens. Allowed: that much for one in 64 elements.
    step = 4 / (2**bits - 1) / np.sqrt(64)
    for g, w, p in zip(got, want, plain):
        assert np.abs(g - w).max() < step * w.std()
        # And it is another cache than the plain one.
        assert 0 < np.abs(g - p).max()
    full = generate(model, kv_bits=bits, kv_group_size=group, quantized_kv_start=0)
    assert len(full) == TOKENS


@pytest.mark.parametrize("keep", [0, 4])
def test_rotating_cache_beyond_its_window(model, keep):
    # A prompt of 37 into 16 places, which then turn over once more.
    tokens = np.random.default_rng(5).integers(1, 200, (1, 37 + 20))

    def rotating(model):
        return [caches.RotatingKVCache(16, keep=keep) for _ in model.layers]

    want = logits(model, tokens, mx.cpu, rotating)
    got = logits(model, tokens, mx.gpu, rotating)
    limits = bounds(model, tokens, want, make_cache=rotating)
    for i, (g, w, limit) in enumerate(zip(got, want, limits)):
        assert limit < 2e-3 * w.std(), "a bound this wide would prove nothing"
        assert np.abs(g - w).max() <= limit, f"token {i}"
    forgets = logits(model, tokens, mx.gpu)[-1]
    assert np.abs(forgets - got[-1]).max() > limits[-1]


class Losses(TrainingCallback):
    def __init__(self):
        self.values = []

    def on_train_loss_report(self, info):
        self.values.append(info["train_loss"])


def train(folder, device) -> list[float]:
    mx.set_default_device(device)
    model = tiny.quantize(unquantized())
    model.freeze()
    mx.random.seed(6)
    linear_to_lora_layers(model, 2, {"rank": 4, "scale": 10.0, "dropout": 0.0})
    # Counting in threes: a rule that 20 steps can learn.
    data = [([3 * (i + j) % 60 + 1 for j in range(28 + i)], 0) for i in range(4)]
    arguments = trainer.TrainingArgs(
        batch_size=2,
        iters=20,
        steps_per_report=1,
        adapter_file=str(folder / "adapters.safetensors"),
    )
    np.random.seed(8)
    losses = Losses()
    trainer.train(
        model, optim.Adam(5e-4), data, args=arguments, training_callback=losses
    )
    return losses.values


def test_lora_training(tmp_path):
    losses = train(tmp_path, mx.gpu)
    saved = mx.load(str(tmp_path / "adapters.safetensors"))
    assert all(bool(mx.isfinite(v).all()) for v in saved.values())
    assert len(losses) == 20
    assert np.mean(losses[-4:]) < 0.3 * np.mean(losses[:4])
    want = train(tmp_path, mx.cpu)
    # The first loss is a forward pass: rounding only. Adam divides a gradient
    # by its own size, so that later ones may drift apart by more.
    np.testing.assert_allclose(losses[0], want[0], rtol=1e-5)
    np.testing.assert_allclose(losses, want, rtol=1e-3)
