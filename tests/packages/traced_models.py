"""The models that mlx-lm's own tests make, traced and not: which are traced, and that
tokens after a prompt have the same bits.

    traced_models.py --build BUILD    downloads mlx-lm's source archive the first time

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
from mlx_lm.models.cache import make_prompt_cache
from run import packages, unpacked

sys.path.append(str(Path(__file__).resolve().parents[1]))
from untraced import untraced  # noqa: E402

# Whose Python decides by what changes from step to step.
NOT_TRACED = {
    "afm7": "reads the number of keys",
    "gemma3n": "changes its weights in each call",
    "llama4": "makes masks from positions, for caches of chunks",
}
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
    cache = make_prompt_cache(model)
    tokens = [list(range(1, 12)), *([t + 3] for t in range(TOKENS))]
    rows = [[t % vocabulary for t in row] for row in tokens]
    return [np.array(model(mx.array([row]), cache=cache)) for row in rows]


def judge(model, vocabulary: int) -> str:
    """What is wrong with it; "" if nothing is."""
    family = type(model).__module__.rpartition(".")[2]
    mx.random.seed(0)
    model.update(tree_map(randomize, model.parameters()))
    model.eval()
    mx.eval(model.parameters())
    ours = logits(model, vocabulary)
    with untraced(model):
        theirs = logits(model, vocabulary)
    steps = vars(model).get("_mlx_vulkan_steps")
    is_traced = steps is not None and steps.runs >= TOKENS - 2
    if not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(ours, theirs)):
        return "other bits"
    if is_traced == (family in NOT_TRACED):
        return "is traced" if is_traced else "is not traced"
    return ""


def model_test_runner(self, model, model_type, vocab_size, num_layers):
    """In the place of mlx-lm's."""
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", type=Path, required=True)
    folder = parser.parse_args().build.resolve() / "extras" / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    package = next(p for p in packages() if p["name"] == "mlx-lm")
    file = unpacked(package, folder) / "tests" / "test_models.py"
    spec = importlib.util.spec_from_file_location("test_models", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cases = module.TestModels
    cases.model_test_runner = model_test_runner
    for case in unittest.defaultTestLoader.loadTestsFromTestCase(cases):
        method = getattr(cases, case._testMethodName)
        if "model_test_runner" in inspect.getsource(method):
            with contextlib.suppress(unittest.SkipTest):
                method(case)
    failed = {name: wrong for name, wrong in found.items() if wrong}
    for name, wrong in failed.items():
        print("FAILED", name, wrong)
    expected = len(NOT_TRACED)
    print(
        f"{len(found) - len(failed)} passed, {len(failed)} failed, 0 skipped "
        f"({expected} expected)"
    )
    return 1 if failed or not found else 0


if __name__ == "__main__":
    sys.exit(main())
