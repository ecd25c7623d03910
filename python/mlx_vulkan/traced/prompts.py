"""Prompts: the GPU starts while Python builds the rest of the graph.

A prompt's graph of 48 layers takes Python milliseconds, in which the GPU would wait.
Each cache of keys that gets many tokens asks the library to begin with the layers
before it, which its keys need anyway.
"""

import functools
import itertools

from . import MOST_TOKENS
from .calls import begin

LAYERS = 4  # begun at a time
CACHES = (
    "KVCache",
    "QuantizedKVCache",
    "RotatingKVCache",
    "BatchKVCache",
    "BatchRotatingKVCache",
    "ChunkedKVCache",
)

updates = itertools.count()


def begin_early(module) -> None:
    """Lets the caches of mlx_lm.models.cache or mlx_vlm.models.cache begin prompts."""
    for name in CACHES:
        cls = getattr(module, name, None)
        if untouched := cls and vars(cls).get("update_and_fetch"):
            cls.update_and_fetch = _beginning(untouched)


def _beginning(untouched):
    @functools.wraps(untouched)
    def update_and_fetch(self, keys, values):
        if keys.shape[2] > MOST_TOKENS and next(updates) % LAYERS == LAYERS // 2:
            begin(keys)
        return untouched(self, keys, values)

    return update_and_fetch
