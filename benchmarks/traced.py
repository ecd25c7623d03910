"""The calling thread's time of a decode step, in Python and traced.

python benchmarks/traced.py [--experts] [--layers 28]

A model of many small layers, so that the host's work is what counts. The processor
time of the calling thread, in microseconds: the model's step, the sampler's graph,
async_eval.
"""

import argparse
import statistics
import time

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_map
from mlx_lm.models import qwen3, qwen3_moe
from mlx_lm.models.cache import make_prompt_cache

SHAPE = dict(
    model_type="qwen3",
    hidden_size=64,
    intermediate_size=64,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=64,
    vocab_size=64,
    rms_norm_eps=1e-6,
    rope_theta=1e6,
    max_position_embeddings=4096,
    tie_word_embeddings=True,
)
EXPERTS = dict(
    num_experts=8,
    num_experts_per_tok=2,
    decoder_sparse_step=1,
    mlp_only_layers=[],
    moe_intermediate_size=64,
    norm_topk_prob=True,
)
PARTS = ("model", "sampler", "async_eval")


def make(layers: int, experts: bool) -> nn.Module:
    module = qwen3_moe if experts else qwen3
    config = SHAPE | dict(num_hidden_layers=layers) | (EXPERTS if experts else {})
    model = module.Model(module.ModelArgs.from_dict(config))
    model.update(tree_map(lambda p: p.astype(mx.bfloat16), model.parameters()))
    nn.quantize(model, group_size=64, bits=4)
    mx.eval(model.parameters())
    return model


def measure(model: nn.Module, steps: int = 60) -> dict[str, list[float]]:
    caches, times = make_prompt_cache(model), {part: [] for part in PARTS}
    token = mx.argmax(model(mx.array([[1] * 20]), cache=caches)[:, -1, :], -1)
    for _ in range(steps):
        mx.eval(token)
        marks = [time.thread_time()]
        logits = model(token[:, None], cache=caches)
        marks.append(time.thread_time())
        logits = logits[:, -1, :]
        token = mx.argmax(logits - mx.logsumexp(logits, keepdims=True), -1)
        marks.append(time.thread_time())
        mx.async_eval(token)
        marks.append(time.thread_time())
        for part, start, end in zip(PARTS, marks, marks[1:]):
            times[part].append(1e6 * (end - start))
    return {part: spent[steps // 6 :] for part, spent in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experts", action="store_true")
    parser.add_argument("--layers", type=int, default=28)
    args = parser.parse_args()
    model = make(args.layers, args.experts)
    cls = type(model)
    traced = cls.__call__
    for _ in range(3):
        for name, call in (("python", traced.__wrapped__), ("traced", traced)):
            cls.__call__ = call
            spent = measure(model)
            middle = {p: round(statistics.median(t)) for p, t in spent.items()}
            print(name, middle, "least", {p: round(min(t)) for p, t in spent.items()})
    cls.__call__ = traced


if __name__ == "__main__":
    main()
