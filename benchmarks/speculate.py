"""Times mlx-lm's speculative decoding with random weights and a known share of hits.

    python benchmarks/speculate.py [--shape qwen3-8b] [--draft qwen3-0.6b]
        [--accept 0.6,0.8,0.9] [--drafts 2,3,4,8] [--json FILE]

Both models are whole, and so is their work. Only the last matrix is tied to the first
one: its rows are permuted embeddings, and the layers' outputs are small, so that the
token after t is a known p(t). The draft's permutation differs for so many of ten
tokens, whose drafts are refused. The texts are compared with p. `--accept` is the share
of hits among drafts that follow a hit.
"""

import argparse
import statistics
import sys
import time

import mlx.core as mx
import numpy as np
from mlx_lm.generate import generate_step, speculative_generate_step

from mlx_vulkan import arguments, native
from mlx_vulkan.bench import report, shapes

SMALL = 2.0**-10  # of a layer's output, beside an embedding


def make(name: str):
    """A model whose last matrix is its own, with layers that change little."""
    model, config = shapes.make(name, 4, None, "bfloat16", tie_word_embeddings=False)
    for layer in model.layers:
        for last in (layer.self_attn.o_proj, layer.mlp.down_proj):
            last.scales, last.biases = last.scales * SMALL, last.biases * SMALL
    mx.eval(model.parameters())
    return model, config["vocab_size"]


def tie(model, following: np.ndarray) -> None:
    """Makes following[t] the token after t."""
    before = mx.array(np.argsort(following).astype(np.uint32))
    table, head = model.model.embed_tokens, model.lm_head
    for name in ("weight", "scales", "biases"):
        setattr(head, name, mx.take(getattr(table, name), before, axis=0))
    mx.eval(head.parameters())


def one_cycle(tokens: np.ndarray) -> np.ndarray:
    """The permutation that leads from each of `tokens`, all there are, to the next."""
    following = np.empty_like(tokens)
    following[tokens] = np.roll(tokens, -1)
    return following


def mostly(following: np.ndarray, tokens: np.ndarray, accept: float, rng) -> np.ndarray:
    """The permutation, but for (1 - accept) * 10 of each ten neighbours in `tokens`."""
    whole = tokens[: len(tokens) // 10 * 10].reshape(-1, 10)
    wrong = rng.permuted(whole, axis=1)[:, : round(10 * (1 - accept))].reshape(-1)
    changed = following.copy()
    changed[wrong] = np.roll(following[wrong], 1)
    return changed


def expected(accept: float, drafts: int) -> float:
    """Tokens of a step, if hits are independent: its own, and the drafts before a
    miss."""
    return sum(accept**i for i in range(drafts + 1))


def decode(steps, text: np.ndarray) -> tuple[float, list[bool]]:
    """Tokens per second after the first, and which of them were drafted. The tokens
    must be `text`."""
    found, drafted = [], []
    begun = 0.0
    for token, _, *by_draft in steps:
        begun = begun or time.perf_counter()
        found.append(int(token))
        drafted += by_draft
    seconds = time.perf_counter() - begun
    if found != text[: len(found)].tolist():
        at = next(i for i, t in enumerate(found) if t != text[i])
        sys.exit(f"Token {at} is {found[at]} where {text[at]} follows.")
    return (len(found) - 1) / seconds, drafted


def note_of(accept: float, drafts: int, drafted: list[bool]) -> str:
    each = len(drafted) / max(1, drafted.count(False))
    return (
        f"{each:.2f} tokens per step (expected {expected(accept, drafts):.2f}), "
        f"{100 * sum(drafted) / len(drafted):.0f} % of the tokens drafted"
    )


def measure(args, model, draft, vocabulary: int) -> list[report.Row]:
    rng = np.random.default_rng(0)
    tokens = rng.permutation(vocabulary)
    following = one_cycle(tokens)
    tie(model, following)
    prompt = mx.array(np.roll(tokens, args.prompt - 1)[: args.prompt].astype(np.uint32))
    text, most = tokens[1:], dict(max_tokens=args.tokens)

    def plain():
        return decode(generate_step(prompt, model, **most), text)

    def speculative(drafts):
        more = dict(num_draft_tokens=drafts, **most)
        return decode(speculative_generate_step(prompt, model, draft, **more), text)

    rows = [report.Row("plain", "tokens/s", [])]
    for accept in args.accept:
        tie(draft, mostly(following, tokens, accept, rng))
        cells = [
            report.Row(f"{accept:g} accepted, {n} drafts", "tokens/s", [])
            for n in args.drafts
        ]
        for i in range(args.runs + 1):  # the first one is for the kernels
            rate, _ = plain()
            rows[0].values += [rate] if i else []
            for row, drafts in zip(cells, args.drafts):
                rate, drafted = speculative(drafts)
                row.values += [rate] if i else []
                row.note = note_of(accept, drafts, drafted)
                row.facts = {"accept": accept, "drafts": drafts}
                row.facts["drafted"] = sum(drafted) / len(drafted)
        rows += cells
    before = statistics.median(rows[0].values)
    for row in rows[1:]:
        row.note = f"{row.median / before:.2f} of plain; {row.note}"
    return rows


def share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1 or round(10 * value, 6) % 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of tenths, 0 to 1")
    return value


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    one = arguments.at_least(1)
    numbers = arguments.several(one)
    parser.add_argument("--shape", default="qwen3-8b")
    parser.add_argument("--draft", default="qwen3-0.6b")
    parser.add_argument(
        "--accept", type=arguments.several(share), default="0.6,0.8,0.9", metavar="A,.."
    )
    parser.add_argument("--drafts", type=numbers, default="2,3,4,8", metavar="N,...")
    parser.add_argument("--prompt", type=one, default=256, help="tokens")
    parser.add_argument("--tokens", type=one, default=256, help="of a text")
    parser.add_argument("--runs", type=one, default=3, help="timed runs of each")
    report.add_arguments(parser)
    args = parser.parse_args()
    native.require_device()
    (model, vocabulary), (draft, of_draft) = make(args.shape), make(args.draft)
    if vocabulary != of_draft:
        sys.exit(f"The models have {vocabulary} and {of_draft} tokens.")
    rows = measure(args, model, draft, vocabulary)
    return report.finish(args, rows, {}, rows[:3], report.about())


if __name__ == "__main__":
    sys.exit(main())
