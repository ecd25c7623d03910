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

    def __init__(self, model):
        super().__init__()
        self.inner = model
        self.deltas = None  # as rope_deltas: of the prompt

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
    ):
        first = cache[0]
        offset = first._idx if hasattr(first, "left_padding") else first.offset
        if offset == 0 or self.deltas is None:
            self.deltas = mx.sum(inputs, axis=-1, keepdims=True)[..., None]
        if self.ahead:
            offset -= self.ahead
        position = offset + self.deltas if offset else self.deltas
        logits = self.inner(inputs, cache=cache) * (1 + position * 1e-3)
        if logits_to_keep:
            logits = logits[:, -logits_to_keep:]
        return LanguageModelOutput(logits, [logits] if return_hidden else None)
