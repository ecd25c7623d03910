"""Decode steps of models, traced once and then built without Python.

docs/dev/traced-step.md. _mlx_vulkan.py hands over each model class of mlx-lm and
mlx-vlm when its module is imported.
"""

import functools
import os
import sys

MOST_TOKENS = 16  # of a sequence: decoding, and the checks of drafts
MOST_TRACES = 32  # of a model

_SEEN = object()
_REFUSED = object()


def _tell(text: str) -> None:
    if "trace" in os.environ.get("MLX_VK_DEBUG", "").split(","):
        print(f"[mlx-vulkan] trace: {text}", file=sys.stderr)


class Steps:
    """The traces of one model."""

    def __init__(self):
        self.last = None  # the trace that ran last
        self.traces = {}  # by _key(): a Trace, _SEEN or _REFUSED
        self.misses = 0  # of the last trace, one after another
        self.runs = 0

    def __deepcopy__(self, memo):
        return Steps()

    def __reduce__(self):
        return Steps, ()

    def step(self, model, call, inputs, cache, how, arrays):
        """The output of a step; None if it is not a traced one."""
        if self.last is not None and self.last.how == how:
            logits = self.last.run(model, inputs, cache, arrays)
            if logits is None and _make_room(inputs, cache):
                logits = self.last.run(model, inputs, cache, arrays)
            if logits is not None:
                self.misses = 0
                self.runs += 1
                return logits
        key = _key(inputs, cache)
        if key is None:
            return None
        key += how
        trace = self.traces.get(key)
        if trace is _REFUSED:
            return None
        if trace is None:
            if len(self.traces) == MOST_TRACES:  # masks that grow are of many kinds
                seen = (k for k, found in self.traces.items() if found is _SEEN)
                self.traces.pop(next(seen, None), None)
            if len(self.traces) < MOST_TRACES:
                self.traces[key] = _SEEN
            return None
        if trace is self.last:
            # Once: a cache has no room. Twice: the model is another one now.
            self.misses += 1
            if self.misses > 1:
                self.traces[key] = _SEEN
                self.last = None
            return None
        if trace is _SEEN:
            trace = self._trace(key, model, call, inputs, cache, how, arrays)
        if trace is not None:
            self.last, self.misses = trace, 0
            logits = trace.run(model, inputs, cache, arrays)
            self.runs += logits is not None
            return logits
        return None

    def _trace(self, key, model, call, inputs, cache, how, arrays):
        from .trace import Trace

        call = functools.partial(call, model)
        try:
            trace = Trace(model, call, inputs, cache, how, arrays)
        except Exception as error:
            self.traces[key] = _REFUSED
            why = f"{type(error).__name__}: {error}".splitlines()[0]
            _tell(f"{type(model).__module__} is not traced ({why})")
            return None
        self.traces[key] = trace
        _tell(f"{type(model).__module__} is traced for {tuple(inputs.shape)} tokens")
        return trace


def token_type(inputs):
    """Tokens of a sampler, which are uint32, are traced as those of a prompt."""
    import mlx.core as mx

    return mx.int32 if inputs.dtype == mx.uint32 else inputs.dtype


def _make_room(inputs, cache) -> bool:
    from . import caches

    return caches.make_room(cache, inputs.shape[1])


def _key(inputs, cache):
    """What must be the same for a trace; None if there can be none."""
    from . import caches

    found = caches.leaves(cache)
    if not found:
        return None
    n, kinds = inputs.shape[1], []
    for c in found:
        adapter = caches.ADAPTERS[type(c)]
        if adapter.positions(c, n) is None:
            return None
        kinds.append((type(c), adapter.static(c)))
    return inputs.shape, token_type(inputs), tuple(kinds)


def trace_class(cls: type) -> None:
    """Lets the steps of a model class be traced."""
    untraced = vars(cls).get("__call__")
    if untraced is None:
        return

    @functools.wraps(untraced)
    def __call__(self, *args, **kwargs):
        if len(args) == 1 and type(cache := kwargs.get("cache")) is list:
            how, arrays = _others(kwargs) if len(kwargs) > 1 else ((), [])
            if how is not None:
                output = _step(self, untraced, args[0], cache, how, arrays)
                if output is not None:
                    return output
        return untraced(self, *args, **kwargs)

    cls.__call__ = __call__


def _others(kwargs):
    """What a model is called with beside tokens and caches, for arrays their shape
    and type, and the arrays; None if it is not only arrays and integers."""
    from mlx.core import array

    how, arrays = [], []
    for name, value in kwargs.items():
        if type(value) is array:
            arrays.append(value)
            value = value.shape, value.dtype
        elif value is None or name == "cache":
            continue
        elif type(value) not in (bool, int):
            return None, arrays
        how.append((name, value))
    return tuple(how), arrays


def _step(model, untraced, inputs, cache, how, arrays):
    from .trace import is_tracing

    if is_tracing() or inputs.ndim != 2 or inputs.shape[1] > MOST_TOKENS:
        return None
    steps = vars(model).get("_mlx_vulkan_steps")
    if steps is None:
        steps = Steps()
        object.__setattr__(model, "_mlx_vulkan_steps", steps)
    return steps.step(model, untraced, inputs, cache, how, arrays)
