"""Compile what a model needs, before anyone waits for it.

A model of the folder's shapes, its weights all zero, reads prompts and makes
tokens through mlx-lm, so that the plans of this device choose what they will
choose later. Layers that are alike are cut to two.
"""

import contextlib
import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

from . import native

# Prompts, in tokens, each followed by a few decoded ones. Software devices run
# the shorter ones only, since they take long for the others.
LENGTHS = (5, 20, 50, 100, 200, 500, 1000, 2100, 4200, 8400, 16800)
SOFTWARE = 100
DECODED = 4
KEPT_LAYERS = 2


class NoModel(Exception):
    """Why there is nothing to warm up, as a sentence."""


@dataclasses.dataclass
class Result:
    kernels: int  # that the model needs
    compiled: int  # of these, now; the others were in the cache
    seconds: float


def check_folder(folder: str) -> Path:
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise NoModel(
            f"{folder} is not a folder; give one in mlx-lm's format (config.json "
            "and model*.safetensors), as `mlx_lm.convert` writes it."
        )
    if not (path / "config.json").is_file():
        raise NoModel(f"{folder} has no config.json: it is not a model folder.")
    if not list(path.glob("model*.safetensors")):
        raise NoModel(f"{folder} has no model*.safetensors: its weights are missing.")
    return path


@contextlib.contextmanager
def loading(folder: str | Path):
    """What fails within becomes a sentence."""
    try:
        yield
    except Exception as error:
        words = f"{type(error).__name__}: {error}".splitlines()[0]
        raise NoModel(f"mlx-lm cannot load {folder} ({words}).") from error


def check_device(mx) -> None:
    if not native.is_vulkan() or not mx.is_available(mx.gpu):
        raise NoModel("There is no Vulkan device; `mlx-vulkan doctor` says why.")
    cache = native.report()["cache"]
    if not cache["path"]:
        raise NoModel(f"The kernel cache is {native.CACHE_OFF}: nothing to warm up.")
    if not cache["writable"]:
        raise NoModel(f"The kernel cache cannot be written: {cache['why_not']}.")


def plain_values(module) -> tuple:
    """What a layer does that its weights' shapes do not tell."""
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

    with loading(path):
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
    """The prompts to read: within the model's context and the device's patience."""
    context = config.get("max_position_embeddings") or max(LENGTHS)
    most = min(SOFTWARE, context) if software else context
    return [n for n in LENGTHS if n + DECODED <= most] or [1]


def runs(config: dict, software: bool) -> list[tuple[str, int, bool]]:
    """Name, prompt tokens, and whether tokens are drawn or the best is taken."""
    all_lengths = lengths(config, software)
    greedy = [(f"prompt of {n} tokens", n, False) for n in all_lengths]
    return [*greedy, ("sampling", all_lengths[0], True)]


def warm(folder: str, progress: Callable[[str, int, int], None]) -> Result:
    """Compiles all that the folder's model needs; `progress(what, done, all)`.

    Throws NoModel, with a sentence.
    """
    started = time.perf_counter()
    path = check_folder(folder)
    try:
        import mlx.core as mx

        check_device(mx)
        # mlx_lm makes its stream on the device that is the default at its import.
        mx.set_default_device(mx.gpu)
        from mlx_lm.generate import generate_step
        from mlx_lm.sample_utils import make_sampler
    except ImportError as error:
        raise NoModel(
            f"mlx-lm is missing ({error}); run: pip install mlx-lm"
        ) from error

    progress("loading", 0, 1)
    model, config = hollow(path)
    limit = getattr(getattr(model, "args", None), "vocab_size", 2)
    software = any(d["selected"] and d["type"] == "cpu" for d in devices())
    todo = runs(config, software)
    # Which records are of one batch, and can be joined, depends on the layers
    # that were cut away, and on what the host does.
    native.prepare_cuts(True)
    for index, (what, tokens, drawn) in enumerate(todo):
        progress(what, index, len(todo))
        prompt = mx.arange(tokens) % max(1, limit)
        sampler = make_sampler(temp=0.7, top_p=0.9) if drawn else None
        for _ in generate_step(prompt, model, max_tokens=DECODED, sampler=sampler):
            pass
        mx.clear_cache()
    mx.synchronize()
    native.prepare_cuts(False)
    progress("done", len(todo), len(todo))
    counts = native.counters()
    kernels = counts["pipelines"]
    seconds = time.perf_counter() - started
    return Result(kernels, kernels - counts["disk_hits"], seconds)


def devices() -> list[dict]:
    return native.report()["devices"]


def run(args) -> int:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    try:
        hidden = not console.is_terminal
        with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
            task = bar.add_task("starting", total=None)

            def progress(what: str, done: int, total: int) -> None:
                bar.update(task, description=what, completed=done, total=total)

            result = warm(args.model, progress)
    except NoModel as error:
        print(error)
        return 1
    took = f"{result.seconds:.1f} s"
    if result.compiled:
        print(f"{result.compiled} of {result.kernels} kernels were compiled ({took}).")
    else:
        print(f"All {result.kernels} kernels were in the cache ({took}).")
    return 0
