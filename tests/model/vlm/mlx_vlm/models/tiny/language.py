"""A language model with what mlx-vlm's have and mlx-lm's have not."""

from dataclasses import dataclass

import mlx.core as mx
import mlx.nn as nn


@dataclass
class LanguageModelOutput:
    logits: mx.array
    hidden_states: list | None = None


class LanguageModel(nn.Module):
    ahead = None
    changes_deltas = None  # "array" or "value": what it is called with, or its own

    def __init__(self, model):
        super().__init__()
        self.inner = model
        self._rope_deltas = None  # of the prompt, or of a batch's

    @property
    def layers(self):
        return self.inner.layers

    def __call__(
        self,
        inputs,
        inputs_embeds=None,
        cache=None,
        logits_to_keep=0,
        return_hidden=False,
        rope_deltas=None,
    ):
        if rope_deltas is not None:
            if self.changes_deltas == "array":
                rope_deltas += 1
            self._rope_deltas = rope_deltas
            if self.changes_deltas == "value":
                self._rope_deltas = rope_deltas + 1
        first = cache[0]
        offset = first._idx if hasattr(first, "left_padding") else first.offset
        if offset == 0 or self._rope_deltas is None:
            self._rope_deltas = mx.sum(inputs, axis=-1, keepdims=True)
        if self.ahead:
            offset -= self.ahead
        deltas = self._rope_deltas
        position = (offset + deltas if offset else deltas)[..., None]
        logits = self.inner(inputs, cache=cache) * (1 + position * 1e-3)
        if logits_to_keep:
            logits = logits[:, -logits_to_keep:]
        return LanguageModelOutput(logits, [logits] if return_hidden else None)
