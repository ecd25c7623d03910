"""mlx-lm on real weights: the GPU against MLX's CPU, and what a step costs."""

import json
import os
import subprocess
import sys

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import make_prompt_cache

TOKENS = int(os.environ.get("MLX_VK_TEST_TOKENS", 24))
MARGIN = 0.1
PROMPTS = {
    "france": "What is the capital of France, and why is it famous?",
    "story": "Once upon a time, a girl found a map in an old book.",
    "science": "Water boils at 100 degrees because",
    "russian": "Москва - столица России. Париж -",
}
CHAT = ("france",)


def prompt_ids(tokenizer, name: str) -> list[int]:
    """Chat form for one; plain text for the others, whose prefill is shorter."""
    text = PROMPTS[name]
    if name not in CHAT:
        return tokenizer.encode(text)
    messages = [{"role": "user", "content": text}]
    return tokenizer.apply_chat_template(messages, add_generation_prompt=True)


def step(model, cache, ids, device) -> np.ndarray:
    """Logits of the last position, as f32."""
    with mx.stream(device):
        logits = model(mx.array([ids]), cache=cache)[0, -1]
        return np.array(logits.astype(mx.float32))


@pytest.fixture(scope="module", params=list(PROMPTS))
def greedy(request, loaded):
    """The CPU's greedy tokens of one prompt, and its logits at each."""
    model, tokenizer = loaded
    ids = prompt_ids(tokenizer, request.param)
    before = mx.default_device()
    mx.set_default_device(mx.cpu)
    try:
        cache, feed, tokens, logits = make_prompt_cache(model), ids, [], []
        for _ in range(TOKENS):
            logits.append(step(model, cache, feed, mx.cpu))
            tokens.append(int(logits[-1].argmax()))
            feed = [tokens[-1]]
    finally:
        mx.set_default_device(before)
    return ids, tokens, logits


@pytest.fixture(scope="module")
def on_gpu(loaded, greedy):
    """The GPU's logits, teacher-forced on the CPU's tokens."""
    model, _ = loaded
    ids, tokens, _ = greedy
    cache = make_prompt_cache(model)
    feeds = [ids, *([token] for token in tokens[:-1])]
    return [step(model, cache, feed, mx.gpu) for feed in feeds]


def test_greedy_tokens_equal_the_cpus(greedy, on_gpu):
    _, tokens, logits = greedy
    compared, wrong = 0, []
    for index, (token, cpu, gpu) in enumerate(zip(tokens, logits, on_gpu)):
        second, first = np.sort(cpu)[-2:]
        if first - second > MARGIN:
            compared += 1
            if int(gpu.argmax()) != token:
                wrong.append((index, token, int(gpu.argmax()), first - second))
    assert not wrong
    assert compared > TOKENS // 2


def logit_bound(model, ids, reference) -> float:
    """How far correct f32 arithmetic in another order may move the logits.

    A layer adds its attention and MLP outputs to the residual stream. Each is
    a chain of dot products of at most 1536 terms; rounding of a sum of n terms
    in any order stays, but for rare luck, within 2 sqrt(n) u of its size. So
    the stream is moved after each layer by that much (u = 2^-24, two chains),
    at random, and the largest answer of the logits over some seeds, times 4
    for the tail of a maximum over few samples, is the bound.
    """
    relative = 2 * 2 * np.sqrt(1536) * 2.0**-24
    layers = list(model.model.layers)
    largest = 0.0

    class Noisy:
        def __init__(self, layer):
            self.layer = layer

        def __getattr__(self, name):
            return getattr(self.layer, name)

        def __call__(self, *args, **kwargs):
            out = self.layer(*args, **kwargs)
            size = mx.sqrt(mx.mean(mx.square(out), axis=-1, keepdims=True))
            return out + relative * size * mx.random.normal(out.shape)

    before = mx.default_device()
    mx.set_default_device(mx.cpu)
    try:
        for seed in range(3):
            mx.random.seed(seed)
            cache = make_prompt_cache(model)
            model.model.layers = [Noisy(layer) for layer in layers]
            moved = step(model, cache, ids, mx.cpu)
            largest = max(largest, float(np.abs(moved - reference).max()))
    finally:
        model.model.layers = layers
        mx.set_default_device(before)
    return 4 * largest


def test_first_logits_agree(loaded, greedy, on_gpu):
    model, _ = loaded
    ids, _, logits = greedy
    bound = logit_bound(model, ids, logits[0])
    difference = float(np.abs(on_gpu[0] - logits[0]).max())
    print(f"largest difference {difference:.2e}, bound {bound:.2e}")
    assert bound < 0.1, "a bound this wide would prove nothing"
    assert difference <= bound


STEP = """
import json, sys
import mlx.core as mx
from mlx_lm import load
from mlx_lm.models.cache import make_prompt_cache
from mlx_vulkan import native

mx.set_default_device(mx.gpu)
model, tokenizer = load(sys.argv[1])
ids = tokenizer.encode("The capital of France is")
cache = make_prompt_cache(model)

def advance(tokens):
    token = mx.argmax(model(tokens, cache=cache)[:, -1], axis=-1)
    mx.eval(token)
    return token

token = advance(mx.array([ids]))
words = [token.item()]
for _ in range(3):
    token = advance(token[None])
    words.append(token.item())
before = native.counters()
token = advance(token[None])
after = native.counters()
print(json.dumps({
    "text": tokenizer.decode(words),
    "compilations": after["compilations"],
    "signatures": after.get("fallback_signatures", []),
    "step": {key: after[key] - before[key] for key in after
             if isinstance(after[key], (int, float)) and key in before},
}))
"""


def run_step(folder, cache) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", STEP, str(folder)],
        env={**os.environ, "MLX_VK_CACHE": str(cache)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def two_starts(model_folder, tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    return run_step(model_folder, cache), run_step(model_folder, cache)


def test_second_start_compiles_nothing(two_starts):
    first, second = two_starts
    assert "Paris" in first["text"] and first["text"] == second["text"]
    assert second["compilations"] == 0


def test_decode_step_stays_on_the_gpu(two_starts):
    facts = two_starts[1]
    cost = facts["step"]
    assert cost["fallbacks"] == 0, facts["signatures"]
    assert cost["decompositions"] == 0, facts["signatures"]
    assert cost["host_waits"] == 1
    # Token ids are the only data that cross.
    assert cost["uploaded_bytes"] <= 64
    assert cost["downloaded_bytes"] <= 64


def test_stream_generate_names_paris(loaded):
    from mlx_lm import stream_generate

    model, tokenizer = loaded
    ids = prompt_ids(tokenizer, "france")
    parts = [r.text for r in stream_generate(model, tokenizer, ids, max_tokens=16)]
    assert "Paris" in "".join(parts)
