"""Time a language model: prompts, decoding, batches, long contexts.

Measures prompt and generated tokens per second with mlx-lm's own functions, as
`mlx_lm.benchmark` does. The first run of each size is not counted. --shape needs
no download: it makes a model of a known shape with random weights.
"""

import gc
import time

from .. import arguments, models, native
from ..arguments import Failed
from . import host, report
from .shapes import SHAPES, make

EXAMPLES = """
mlx-vulkan bench model --shape qwen3-0.6b
mlx-vulkan bench model mlx-community/Qwen3-0.6B-4bit -p 512,4096 -g 256
mlx-vulkan bench model ./my-model -b 1,4,16 --json model.json --plot model.png
"""

DTYPES = ("bfloat16", "float16", "float32")
BITS = (0, 1, 2, 3, 4, 5, 6, 8)
GROUPS = (32, 64, 128)


def add_arguments(parser) -> None:
    public = sorted(name for name in SHAPES if not name.startswith("tiny"))
    weights = parser.add_mutually_exclusive_group(required=True)
    weights.add_argument("folder", nargs="?", metavar="MODEL", help=models.HELP)
    weights.add_argument(
        "--shape",
        choices=sorted(SHAPES),
        metavar="SHAPE",
        help=f"random weights of this shape: {', '.join(public)}; `tiny` and "
        "tiny-FAMILY are for tests",
    )
    positive = arguments.at_least(1)
    numbers = arguments.several(positive)
    parser.add_argument(
        "--bits",
        type=int,
        choices=BITS,
        default=4,
        help="bits per weight of a shape, 0 for none (default: %(default)s)",
    )
    parser.add_argument(
        "--group-size",
        type=int,
        choices=GROUPS,
        help="group size of a shape (default: the largest that its sizes allow)",
    )
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        default="bfloat16",
        help="floating-point type of a shape (default: %(default)s)",
    )
    parser.add_argument(
        "-p",
        "--prompt",
        type=numbers,
        default="512,2048",
        metavar="N,...",
        help="prompt lengths in tokens (default: %(default)s)",
    )
    parser.add_argument(
        "-g",
        "--generate",
        type=positive,
        default=128,
        metavar="N",
        help="tokens to generate (default: %(default)s)",
    )
    parser.add_argument(
        "-b",
        "--batch",
        type=numbers,
        default="1",
        metavar="N,...",
        help="batch sizes (default: %(default)s)",
    )
    parser.add_argument(
        "-n",
        "--runs",
        type=positive,
        default=3,
        metavar="N",
        help="timed runs of each size (default: %(default)s)",
    )
    parser.add_argument(
        "--kv-bits", type=int, choices=BITS, help="quantize the KV cache (default: no)"
    )
    parser.add_argument(
        "--cpu", action="store_true", help="run on MLX's CPU backend instead"
    )
    report.add_arguments(parser)


class NoWords:
    """The tokenizer that batch_generate needs; no token ends a text."""

    eos_token_ids = ()

    @staticmethod
    def decode(tokens) -> str:
        return ""


def single(model, prompt, tokens: int, kv_bits) -> tuple[float, float]:
    """Prompt and generated tokens per second."""
    from mlx_lm.generate import generate_step

    begun = first = time.perf_counter()
    more = {"kv_bits": kv_bits} if kv_bits else {}
    for i, _ in enumerate(generate_step(prompt, model, max_tokens=tokens, **more)):
        if i == 0:
            first = time.perf_counter()
    ended = time.perf_counter()
    return len(prompt) / (first - begun), (tokens - 1) / max(ended - first, 1e-9)


def many(model, prompts, tokens: int) -> tuple[float, float]:
    from mlx_lm.generate import batch_generate

    stats = batch_generate(model, NoWords(), prompts, max_tokens=tokens).stats
    return stats.prompt_tps, stats.generation_tps


COUNTERS = ("dispatches", "barriers", "batches", "copies", "host_waits", "fallbacks")


def counts(model, prompt, args, steps: int = 8) -> list[report.Row]:
    """The counts that a decode step adds, a row each; a note names the fallbacks."""
    import mlx.core as mx
    from mlx_lm.generate import generate_step

    readings = []
    for i, _ in enumerate(generate_step(prompt, model, max_tokens=steps + 4)):
        if i in (2, 2 + steps):  # generate_step works one token ahead
            mx.synchronize()
            readings.append(native.counters())
    before, after = readings
    which = ", ".join(f["signature"] for f in after["fallback_signatures"])
    return [
        report.Row(
            f"{name.replace('_', ' ')} per step",
            "count",
            [(after[name] - before[name]) / steps],
            group="counts",
            note=which if name == "fallbacks" else "",
        )
        for name in COUNTERS
    ]


def once(model, vocabulary: int, size: int, batch: int, args) -> tuple[float, float]:
    import mlx.core as mx

    prompts = mx.random.randint(0, vocabulary, (batch, size))
    if batch == 1:
        return single(model, prompts[0], args.generate, args.kv_bits)
    return many(model, prompts.tolist(), args.generate)


def cells(args) -> list[tuple[int, int]]:
    return [(batch, size) for batch in args.batch for size in args.prompt]


def time_cell(model, vocabulary: int, batch: int, size: int, args, step) -> list:
    import mlx.core as mx

    mx.reset_peak_memory()
    found = []
    for i in range(args.runs + 1):
        step(f"batch {batch}, prompt {size}: " + (f"run {i}" if i else "warming up"))
        found.append(once(model, vocabulary, size, batch, args))
    peak = mx.get_peak_memory() / 1e9
    gc.collect()
    mx.clear_cache()
    where = f"batch {batch}, " if batch > 1 else ""
    prompts, decoded = ([run[i] for run in found[1:]] for i in (0, 1))
    rows = [
        report.Row(f"{where}prompt {size}", "tokens/s", prompts, "prompt"),
        report.Row(f"decode {where}after {size}", "tokens/s", decoded, "decode"),
        report.Row(f"memory {where}after {size}", "GB", [peak], "memory"),
    ]
    # The first token belongs to the prompt.
    return [row for row in rows if args.generate > 1 or row.group != "decode"]


def prepare(args):
    """The model and its config. Throws Failed."""
    import mlx.core as mx

    # mlx_lm makes its stream on the device that is the default at its import.
    mx.set_default_device(mx.cpu if args.cpu else mx.gpu)
    mx.random.seed(7)
    if args.shape:
        return make(args.shape, args.bits, args.group_size, args.dtype)
    path = models.folder_of(args.folder)
    with models.loading(args.folder):
        from mlx_lm.utils import load_model

        return load_model(path)


def name_of(args, config: dict) -> str:
    if not args.shape:
        return args.folder.rstrip("/").rsplit("/", 1)[-1]
    group = config.get("quantization", {}).get("group_size")
    return f"{args.shape} " + (f"{args.bits}-bit g{group}" if group else args.dtype)


def run(args) -> int:
    if not args.cpu:
        native.require_device()
    if args.kv_bits and args.batch != [1]:
        raise Failed(
            "--kv-bits is for one sequence: mlx-lm's batches do not quantize it.", 2
        )
    models.require_mlx_lm()
    name, rows = time_cells(args)
    for row in rows:
        row.facts = {"model": name, "kv_bits": args.kv_bits}
    print(name)
    short = [row for row in rows if row.group in ("prompt", "decode")]
    return report.finish(args, rows, {}, short, report.about(args.cpu))


def time_cells(args) -> tuple[str, list[report.Row]]:
    """The model's name and the results."""
    import mlx.core as mx
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    hidden = not console.is_terminal
    rows = []
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task(
            "making the model", total=len(cells(args)) * (args.runs + 1) + 1
        )
        model, config = prepare(args)
        vocabulary = config.get("text_config", config)["vocab_size"]
        for batch, size in cells(args):
            rows += time_cell(
                model,
                vocabulary,
                batch,
                size,
                args,
                lambda cell: bar.update(task, advance=1, description=cell),
            )
        if not args.cpu:
            prompt = mx.random.randint(0, vocabulary, (args.prompt[0],))
            rows += counts(model, prompt, args) + host.rows(model, prompt)
    return name_of(args, config), rows
