"""Say whether a model fits this machine's GPU, and with which settings.

Reads sizes only: no weight is loaded, nothing is computed. Shows what the weights
take, how many tokens of context fit beside them, and flags for mlx_lm.server.
"""

import dataclasses
import json
from pathlib import Path

from . import arguments, models, native
from .arguments import Failed
from .layout import field, heading, wrapped

EXAMPLES = """
mlx-vulkan fit mlx-community/Qwen3-8B-4bit     # in the hub's cache on this machine
mlx-vulkan fit ./my-model --card 12            # on a card with 12 GB
"""
EXIT = "Exit status: 0 if the model fits, 1 if not."

GB = 1e9
CHUNK = 2048  # tokens of a prompt that mlx-lm reads at once
# Lengths at which a cache is measured. Sliding windows are full by the first.
SHORT, LONG = 4 * CHUNK, 8 * CHUNK
# Left to the driver and the desktop of a card of which only the size is known.
TAKEN = 0.5 * GB
CHAT = 4096  # tokens of a conversation that a server is asked for
# As src/runtime/memory.h: what a full card puts into RAM of what steps make and use,
# a third of its budget within these bounds.
LEAST_SPILL, MOST_SPILL = 256 << 20, 4 << 30
# As src/backend/weights.cpp: a cache of experts has slots for as many, and their
# stacks take at most so much of RAM.
LEAST_SLOTS, MOST_RAM = 16, 2 / 3


@dataclasses.dataclass
class Sizes:
    """Bytes that a model takes."""

    weights: int
    experts: int  # of the weights: stacks of experts
    of_layer: int  # experts of a layer, or 0
    per_token: float  # of the cache of one sequence
    fixed: float  # of the same, whatever its length
    step: int  # what a chunk of a prompt needs beside the weights
    context: int | None  # most tokens that the model was made for

    def cache(self, tokens: int) -> float:
        return self.fixed + self.per_token * tokens


@dataclasses.dataclass
class Fit:
    """Where a model's weights go, and what is left of a card beside them."""

    host: int  # bytes of weights that a card lacks room for: experts first
    stacks: int  # bytes of RAM for all experts, with a cache of them on the card, or 0
    free: float  # bytes for caches
    tokens: int  # of one sequence, all on the card; 0: none
    most: int  # the same where a part is in RAM; 0: the model does not fit
    chats: int  # sequences of CHAT tokens, in half of `free`
    prompts: int  # prompts at once, in a quarter of it
    kept: int  # bytes of remembered prompts, the last quarter


def add_arguments(parser) -> None:
    parser.add_argument("model", help=models.HELP)
    parser.add_argument(
        "--card",
        type=arguments.at_least(1, float),
        metavar="GB",
        help="a card of this size instead of this machine's",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead")


def sizes_of(model, config: dict) -> Sizes:
    """Sizes of a model of mlx-lm whose weights need not be there: arrays know their
    size before they are computed."""
    from mlx.utils import tree_flatten
    from mlx_lm.models.switch_layers import QuantizedSwitchLinear, SwitchLinear

    def bytes_of(module) -> int:
        return sum(array.nbytes for _, array in tree_flatten(module.parameters()))

    text = config.get("text_config", config)
    stacks = (SwitchLinear, QuantizedSwitchLinear)
    experts = sum(bytes_of(m) for m in model.modules() if isinstance(m, stacks))
    short, long = cache_bytes(model, (SHORT, LONG))
    per_token = (long - short) / (LONG - SHORT)
    return Sizes(
        weights=bytes_of(model),
        experts=experts,
        of_layer=max(
            (m.num_experts for m in model.modules() if isinstance(m, stacks)), default=0
        ),
        per_token=per_token,
        fixed=long - per_token * LONG,
        step=step_bytes(text),
        context=text.get("max_position_embeddings"),
    )


def cache_bytes(model, lengths: tuple[int, ...]) -> list[int]:
    """What a prompt's cache takes after so many tokens, multiples of CHUNK; nothing
    is computed."""
    import mlx.core as mx
    from mlx_lm.models.cache import make_prompt_cache

    cache, found = make_prompt_cache(model), []
    for tokens in range(CHUNK, max(lengths) + 1, CHUNK):
        with mx.stream(mx.cpu):  # on the GPU prompts begin before they are evaluated
            model(mx.zeros((1, CHUNK), mx.int32), cache=cache)
        if tokens in lengths:
            found.append(sum(layer.nbytes for layer in cache))
    return found


def step_bytes(config: dict) -> int:
    """What a layer makes of a prompt's chunk, in 16 bits: about eight arrays of the
    model's width and four of the width between, and the largest matrix dequantized."""
    hidden = config.get("hidden_size", 0)
    inner = config.get("intermediate_size") or 4 * hidden
    width = 8 * hidden + 4 * inner
    if active := config.get("num_experts_per_tok"):
        each = config.get("moe_intermediate_size") or inner
        width = max(width, active * (2 * hidden + 4 * each))
    return 2 * (CHUNK * width + hidden * inner)


def fit(sizes: Sizes, memory: dict) -> Fit:
    # As src/backend/weights.cpp: weights leave a sixth of the budget, and what
    # exceeds that is read in the host's memory.
    budget, apart = memory["budget"], memory["apart"]
    room = budget * 5 / 6
    host = max(0, int(sizes.weights - room)) if apart else 0
    slots = sizes.of_layer * (1 - host / max(sizes.experts, 1))
    free = budget - (sizes.weights - host) - sizes.step
    spill = between(LEAST_SPILL, budget / 3, MOST_SPILL) if apart else 0
    tokens, most = tokens_in(sizes, free), tokens_in(sizes, free + spill)
    if not tokens:
        free += spill
    return Fit(
        host=host,
        stacks=sizes.experts if host and slots >= LEAST_SLOTS else 0,
        free=free,
        tokens=tokens,
        most=most,
        chats=between(1, free / 2 / sizes.cache(CHAT), 32),
        prompts=between(1, 1 + free / 4 / sizes.step, 8),
        kept=int(free / 4),
    )


def tokens_in(sizes: Sizes, free: float) -> int:
    """The length of a sequence whose cache takes so many bytes."""
    if free < sizes.fixed + sizes.per_token:
        return 0
    tokens = int((free - sizes.fixed) / sizes.per_token) if sizes.per_token else 1 << 30
    return min(tokens, sizes.context or tokens)


def between(least: int, value: float, most: int) -> int:
    return max(least, min(int(value), most))


def lazy_model(name: str):
    """The model and its config, and the folder; nothing is downloaded or read but
    sizes. Throws Failed."""
    models.require_mlx_lm()
    from mlx_lm.utils import load_model

    path = local_folder(name)
    with models.loading(name):
        model, config = load_model(path, lazy=True)
    return model, config


def local_folder(name: str) -> Path:
    if not models.is_hub_name(name):
        return models.folder_of(name)
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(name, local_files_only=True))
    except Exception as error:
        raise Failed(
            f"{name} is not in the hub's cache on this machine; nothing is downloaded "
            f"here. Give a folder, or run: hf download {name}"
        ) from error


def memory_of(card: float | None) -> dict:
    """Name, size and budget in bytes of a card, this machine's by default, and whether
    it has memory of its own. Throws Failed."""
    if card:
        name, size = f"a card of {card:g} GB", card * GB
        return {"name": name, "size": size, "budget": size - TAKEN, "apart": True}
    native.require_device()
    device = next(d for d in native.report()["devices"] if d["selected"])
    memory = device["memory"]
    size = memory["size"]
    return {
        "name": device["name"],
        "size": size,
        "budget": min(size, memory.get("budget", size - TAKEN)),
        "apart": device["type"] == "discrete",
    }


def ram(which: str = "MemAvailable") -> int | None:
    """Bytes of RAM: those that are free or can be made so, or "MemTotal"."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    words = next((w for w in map(str.split, lines) if w[0] == f"{which}:"), None)
    return int(words[1]) * 1024 if words else None


def flags(found: Fit) -> str:
    return (
        f"--decode-concurrency {found.chats} --prompt-concurrency {found.prompts} "
        f"--prompt-cache-bytes {found.kept}"
    )


def run(args) -> int:
    model, config = lazy_model(args.model)
    sizes, memory = sizes_of(model, config), memory_of(args.card)
    found = fit(sizes, memory)
    if args.json:
        both = dataclasses.asdict(sizes) | dataclasses.asdict(found)
        print(json.dumps(both | {"memory": memory, "ram": ram()}, indent=2))
    else:
        show(args.model, sizes, memory, found)
    return 0 if found.most else 1


def show(name: str, sizes: Sizes, memory: dict, found: Fit) -> None:
    print(wrapped(verdict(name, sizes, memory, found), "", "  "))
    heading("Model")
    stacks = f", {gb(sizes.experts)} of them experts" if sizes.experts else ""
    field("weights", gb(sizes.weights) + stacks)
    fixed = f", and {gb(sizes.fixed)} at any length" if sizes.fixed > 1e6 else ""
    field("cache", f"{sizes.per_token / 1024:.0f} KiB per token{fixed}")
    field("prompts", f"{gb(sizes.step)} while {CHUNK:,} tokens are read")
    heading("Machine")
    field("card", f"{memory['name']}: {gb(memory['budget'])} of {gb(memory['size'])}")
    if free := ram():
        cached = 0 < found.stacks < (ram("MemTotal") or 0) * MOST_RAM
        takes = found.stacks if cached else found.host
        short = "" if free > takes else f", less than the {gb(takes)} that stay there"
        field("RAM", f"{gb(free)} available{short}")
        if found.stacks:
            on_card = f"all {gb(found.stacks)} in RAM, those used most on the card too"
            field("experts", on_card if cached else "not cached: RAM is too small")
    if found.most:
        heading("Settings")
        words = f"mlx_lm.server --model {name} {flags(found)}"
        print(wrapped(words, "  ", "      "))


def verdict(name: str, sizes: Sizes, memory: dict, found: Fit) -> str:
    if not found.most:
        lacks = sizes.cache(CHAT) - found.free
        return (
            f"NO: {name} lacks {gb(lacks)} for a conversation of "
            f"{CHAT:,} tokens on {memory['name']}. Take fewer bits or a smaller model."
        )
    tokens = found.tokens or found.most
    bound = ", all that it was made for" if tokens == sizes.context else ""
    fits = f"{name} fits {memory['name']}"
    if found.host:
        part = "of its experts" if found.host <= sizes.experts else "of its weights"
        fits = (
            f"{name} runs on {memory['name']} with {gb(found.host)} {part} in RAM, "
            "read over the bus"
        )
    if not found.tokens:
        bound += ", but much slower than with a smaller model: its cache is in RAM too"
    elif found.most > found.tokens:
        bound += f", or slower with {found.most:,}, a part of its cache in RAM"
    return f"YES: {fits}, with {tokens:,} tokens of context{bound}."


def gb(count: float) -> str:
    return f"{count / GB:.1f} GB"
