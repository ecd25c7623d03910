"""Compile the kernels that a model needs, before its first use.

A model of the same shapes, with all weights zero, reads prompts and generates
tokens through mlx-lm, so that the same kernels are chosen as later. Only two of
several identical layers are kept.
"""

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

from . import models, native
from .arguments import Failed

EXAMPLES = """
mlx-vulkan cache warm mlx-community/Qwen3-0.6B-4bit
mlx-vulkan cache warm ./my-model
"""
EXIT = "Exit status: 1 if some kernels could not be stored."

# Prompts, in tokens, each followed by a few decoded ones. Software devices run
# the shorter ones only, since they take long for the others.
LENGTHS = (5, 20, 50, 100, 200, 500, 1000, 2100, 4200, 8400, 16800)
SOFTWARE = 100
DECODED = 4
KEPT_LAYERS = 2


@dataclasses.dataclass
class Result:
    kernels: int  # that the model needs
    compiled: int  # of these, compiled now; the others were shipped or in the cache
    seconds: float
    stored: int  # in the cache, of the compiled ones
    why_not_stored: str  # the first error, if some could not be


def add_arguments(parser) -> None:
    parser.add_argument("model", help=models.HELP)


def check_device() -> None:
    native.require_device()
    cache = native.report()["cache"]
    if not cache["path"]:
        raise Failed(f"The kernel cache is {native.CACHE_OFF}: nothing to warm up.")
    if not cache["writable"]:
        raise Failed(f"The kernel cache cannot be written: {cache['why_not']}.")


def plain_values(module) -> tuple:
    """Properties of a layer that its weights' shapes do not show."""
    found = []
    for path, part in module.named_modules():
        plain = {
            name: value
            for name, value in vars(part).items()
            if isinstance(value, (int, float, bool, str, type(None)))
        }
        found.append((path, type(part).__name__, tuple(sorted(plain.items(), key=str))))
    return tuple(sorted(found, key=str))


def alike(layers: list) -> bool:
    from mlx.utils import tree_flatten

    def shapes(layer):
        return [(n, p.shape, p.dtype) for n, p in tree_flatten(layer.parameters())]

    first = (plain_values(layers[0]), shapes(layers[0]))
    return all((plain_values(x), shapes(x)) == first for x in layers[1:])


def hollow(path: Path):
    """The folder's model with few layers and zeros for weights; reads no weight."""
    import mlx.core as mx
    from mlx.utils import tree_map
    from mlx_lm.utils import load_model

    with models.loading(path):
        model, config = load_model(path, lazy=True)
    layers = getattr(model, "layers", None)
    if isinstance(layers, list) and len(layers) > KEPT_LAYERS and alike(layers):
        del layers[KEPT_LAYERS:]
    zeros = {}  # one array a shape: a large model's weights need not fit

    def zero(weight):
        key = (tuple(weight.shape), weight.dtype)
        if key not in zeros:
            zeros[key] = mx.zeros(weight.shape, weight.dtype)
        return zeros[key]

    model.update(tree_map(zero, model.parameters()))
    return model, config


def lengths(config: dict, software: bool) -> list[int]:
    """Prompt lengths within the model's context; software devices get short ones."""
    context = config.get("max_position_embeddings") or max(LENGTHS)
    most = min(SOFTWARE, context) if software else context
    return [n for n in LENGTHS if n + DECODED <= most] or [1]


def runs(config: dict, software: bool) -> list[tuple[str, int, bool]]:
    """Name, prompt tokens, and whether tokens are drawn or the best is taken."""
    all_lengths = lengths(config, software)
    greedy = [(f"prompt of {n} tokens", n, False) for n in all_lengths]
    return [*greedy, ("sampling", all_lengths[0], True)]


def exercise(model, config: dict, todo, progress: Callable[[str, int, int], None]):
    """Reads the prompts of runs() and generates tokens after each."""
    import mlx.core as mx
    from mlx_lm.generate import generate_step
    from mlx_lm.sample_utils import make_sampler

    limit = getattr(getattr(model, "args", None), "vocab_size", 2)
    # Which records are of one batch, and can be joined, depends on the layers
    # that were cut away, and on what the host does.
    native.prepare_cuts(True)
    for index, (phase, tokens, drawn) in enumerate(todo):
        progress(phase, index, len(todo))
        prompt = mx.arange(tokens) % max(1, limit)
        sampler = make_sampler(temp=0.7, top_p=0.9) if drawn else None
        for _ in generate_step(prompt, model, max_tokens=DECODED, sampler=sampler):
            pass
        mx.clear_cache()
    mx.synchronize()
    native.prepare_cuts(False)
    progress("done", len(todo), len(todo))


def warm(folder: str, progress: Callable[[str, int, int], None]) -> Result:
    """Compiles all that the folder's model needs; `progress(phase, done, all)`.

    Throws Failed.
    """
    started = time.perf_counter()
    models.require_mlx_lm()
    import mlx.core as mx

    check_device()
    # mlx_lm makes its stream on the device that is the default at its import.
    mx.set_default_device(mx.gpu)
    path = models.folder_of(folder)
    progress("loading", 0, 1)
    model, config = hollow(path)
    software = any(d["selected"] and d["type"] == "cpu" for d in devices())
    exercise(model, config, runs(config, software), progress)
    counts, cache = native.counters(), native.report()["cache"]
    kernels = counts["pipelines"]
    compiled = kernels - counts["disk_hits"] - counts["shipped_hits"]
    return Result(
        kernels,
        compiled,
        time.perf_counter() - started,
        max(0, compiled - cache["not_stored"]),
        cache["why_not_stored"],
    )


def devices() -> list[dict]:
    return native.report()["devices"]


def run(args) -> int:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("starting", total=None)

        def progress(phase: str, done: int, total: int) -> None:
            bar.update(task, description=phase, completed=done, total=total)

        result = warm(args.model, progress)
    took, where = f"{result.seconds:.1f} s", native.report()["cache"]["path"]
    if not result.compiled:
        print(
            f"All {result.kernels} kernels were in the library or in the cache {where} "
            f"({took})."
        )
        return 0
    print(
        f"{result.compiled} of {result.kernels} kernels were compiled ({took}); "
        f"{result.stored} of them are stored in {where}."
    )
    if result.stored < result.compiled:
        raise Failed(
            f"{result.compiled - result.stored} of {result.compiled} kernels could "
            f"not be stored in {where}: {result.why_not_stored}."
        )
    return 0
