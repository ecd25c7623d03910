"""The process whose kernels `mlx-vulkan report` times: MLX_VK_PROFILE is set.

Runs operations that reach the device's limits, then prompts and decode steps of a
model. In the trace, a kernel that no model has separates these phases.
"""

import json
import sys
import time
from pathlib import Path

MARK = "OP=ArcTanh"
GROUP, BITS, STEPS = 64, 4, 8
LIMITS = ("copy", "16-bit product", "f32 product")


class Phases:
    def __init__(self, mx):
        self.mx = mx
        self.found: list[dict] = []

    def begin(self, name: str, tokens: int = 0, runs: int = 1) -> None:
        """`tokens`: rows of a step. Phases without a name do not count."""
        self.mx.synchronize()
        self.mx.eval(self.mx.arctanh(self.mx.zeros((1,))))
        self.mx.synchronize()
        self.found.append({"name": name, "tokens": tokens, "runs": runs})


def warm(call) -> None:
    """Calls for 0.3 s: an idle GPU takes more than 50 ms to raise its clocks."""
    end = time.monotonic() + 0.3
    while True:
        call()
        if time.monotonic() >= end:
            return


def is_slow(mx) -> bool:
    """Whether an emulator executes the kernels: a GPU adds 16 million numbers within
    20 ms."""
    x = mx.zeros((1 << 24,))
    mx.eval(x + 1.0)
    begun = time.monotonic()
    mx.eval(x + 1.0)
    return time.monotonic() - begun > 0.2


def run_limits(mx, phases: Phases, scale: int) -> None:
    from ..bench.ops import array, side

    n = side(scale, 4096)
    x = array(mx, 2 * n, n)
    a, b = array(mx, n, n, dtype="bfloat16"), array(mx, n, n)
    calls = (lambda: x + 1.0, lambda: a @ a, lambda: b @ b)
    for name, call in zip(LIMITS, calls):
        warm(lambda call=call: mx.eval(call()))
        phases.begin(name)
        for _ in range(4):
            mx.eval(call())
        phases.begin("")


def run_model(mx, model, vocabulary: int, phases: Phases, prompts: list[int]) -> None:
    from mlx_lm.models.cache import make_prompt_cache

    def run(tokens):
        cache = make_prompt_cache(model)
        model(tokens, cache=cache)
        mx.eval([c.state for c in cache])  # mlx-lm's prompts need no logits
        return cache

    def decode(cache, steps: int) -> None:
        token = mx.zeros((1, 1), mx.int32)
        for _ in range(steps):
            token = mx.argmax(model(token, cache=cache)[:, -1:], axis=-1)
            mx.eval(token)

    for size in prompts:
        tokens = mx.random.randint(0, vocabulary, (1, size))
        warm(lambda tokens=tokens: run(tokens))
        phases.begin(f"prompt {size}", size, 2)
        run(tokens)
        cache = run(tokens)
        phases.begin("")
    decode(cache, 4)
    phases.begin(f"decode after {prompts[-1]}", 1, STEPS)
    decode(cache, STEPS)
    phases.begin("")


def main() -> int:
    shape, prompts, file = sys.argv[1:]
    import mlx.core as mx

    from ..bench.shapes import make
    from ..cases import is_software

    mx.set_default_device(mx.gpu)
    phases = Phases(mx)
    run_limits(mx, phases, 16 if is_software(mx) or is_slow(mx) else 1)
    model, config = make(shape, BITS, GROUP, "bfloat16")
    inner = config.get("text_config", config)
    sizes = [int(size) for size in prompts.split(",")]
    run_model(mx, model, inner["vocab_size"], phases, sizes)
    experts = inner.get("num_experts") or inner.get("num_local_experts") or 1
    active = inner.get("num_experts_per_tok") or 1
    plan = {"phases": phases.found, "experts": experts, "active": active}
    Path(file).write_text(json.dumps(plan))
    return 0


if __name__ == "__main__":
    sys.exit(main())
