"""Decoding with a rotating key-value cache: memory stays flat.

MLX_VK_TEST_FULL=1 runs 10,000 steps.
"""

import os

import mlx.core as mx
import pytest
from mlx_lm.models.cache import RotatingKVCache

from tiny import make_model

STEPS = 10_000 if os.environ.get("MLX_VK_TEST_FULL") == "1" else 120


def decode(steps, measured):
    """Active memory and cache memory at `measured` moments of the decoding."""
    mx.set_default_device(mx.gpu)
    model = make_model("llama")
    cache = [RotatingKVCache(max_size=24, keep=4) for _ in model.layers]
    logits = model(mx.arange(1, 41)[None], cache=cache)
    token = mx.argmax(logits[:, -1:], axis=-1)
    del logits
    found = []
    for step in range(steps):
        token = mx.argmax(model(token, cache=cache)[:, -1:], axis=-1)
        mx.async_eval(token)
        if (step + 1) % (steps // measured) == 0:
            mx.synchronize()
            found.append((mx.get_active_memory(), mx.get_cache_memory()))
    assert cache[0].offset == 40 + steps
    # Which positions it holds turns over, how many does not.
    assert cache[0].keys.shape[2] == 24
    return found


@pytest.fixture
def no_buffer_cache():
    before = mx.set_cache_limit(0)
    yield
    mx.set_cache_limit(before)
    mx.clear_cache()


def test_active_memory_is_flat(no_buffer_cache):
    # Without the cache of buffers, an array counts what it takes, to the byte.
    found = decode(STEPS, 10)
    assert len(set(found)) == 1 and found[0][1] == 0, found


def test_cached_memory_is_bounded():
    found = decode(STEPS, 10)
    active, cached = zip(*found)
    # An array may lie in a buffer of up to two pages more than it needs.
    assert max(active) <= min(active) + (1 << 16), active
    assert max(cached) <= 2 * max(cached[:2]) + (1 << 16), cached
