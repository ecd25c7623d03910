"""Logits of a tiny model, and how far rounding may move them."""

import contextlib

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import make_prompt_cache

PROMPT, STEPS = 37, 3
LONGEST = 128  # terms of a dot product in these models
FLOAT32 = 4 * (2 * np.sqrt(LONGEST) + 8) * 2.0**-24
BFLOAT16 = np.sqrt(2 * 12) * 2.0**-9


def logits(model, tokens, device, make_cache=make_prompt_cache) -> list[np.ndarray]:
    """The last position's logits after the prompt, and after each further token."""
    before = mx.default_device()
    mx.set_default_device(device)
    try:
        cache = make_cache(model)
        feeds = [tokens[:, :PROMPT]]
        feeds += [tokens[:, i : i + 1] for i in range(PROMPT, tokens.shape[1])]
        out = []
        for feed in feeds:
            last = model(mx.array(feed), cache=cache)[:, -1]
            out.append(np.array(last.astype(mx.float32)))
        return out
    finally:
        mx.set_default_device(before)


@contextlib.contextmanager
def noise(model, relative):
    """Moves what each layer returns at random, by so much of its size."""
    original = {}

    def make(forward):
        def moved(x):
            size = mx.sqrt(mx.mean(mx.square(x), axis=-1, keepdims=True))
            return x + relative * size * mx.random.normal(x.shape)

        def noisy(self, *args, **kwargs):
            y = forward(self, *args, **kwargs)
            return (moved(y[0]), *y[1:]) if isinstance(y, tuple) else moved(y)

        return noisy

    for kind in {type(layer) for layer in model.layers}:
        original[kind] = kind.__call__
        kind.__call__ = make(kind.__call__)
    try:
        yield
    finally:
        for kind, forward in original.items():
            kind.__call__ = forward


def bounds(model, tokens, reference, relative=FLOAT32, **how) -> list[float]:
    """How far correct arithmetic in another order may move the logits.

    Float32: a sum of n terms in any order stays, but for rare luck, within
    2 sqrt(n) u of its size (u = 2^-24), and the elementwise functions between
    two products (norm, exp, rotation) within some 8 u. A layer is two chains of
    two products each, attention and MLP: 4 (2 sqrt(n) + 8) u of the stream.
    Bfloat16: sums are float32's, but some 12 results on each of the two chains
    are rounded, each by at most 2^-9 and independently of the others.

    That much noise after each layer, on the CPU, moves the logits as MLX's own
    rounding would; 4 times the most over three seeds covers the tail of a
    maximum over few samples.
    """
    most = [0.0] * len(reference)
    with noise(model, relative):
        for seed in range(3):
            mx.random.seed(seed)
            moved = logits(model, tokens, mx.cpu, **how)
            for i, (m, r) in enumerate(zip(moved, reference)):
                most[i] = max(most[i], float(np.abs(m - r).max()))
    return [4 * m for m in most]
