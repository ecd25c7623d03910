"""One traced step: how it is made, and how it is built again."""

import builtins
import contextlib
import sys
import threading
import weakref

import mlx.core as mx

from . import caches, calls, opaque, token_type
from .opaque import Refused, is_opaque
from .weights import Snapshot

tracing = threading.local()
ANSWERS = {"__eq__": False, "__ne__": True, "__gt__": True, "__bool__": True}
OPERATORS = "add and floordiv lshift matmul mod mul or pow rshift sub truediv xor"
CHANGES = ("__setitem__", *(f"__i{name}__" for name in OPERATORS.split()))
ARGUMENTS = set()  # ids of what the model is called with and keeps, while it is traced
one_at_a_time = threading.Lock()  # a trace changes functions of mlx and mlx-lm


def is_tracing() -> bool:
    return getattr(tracing, "on", False)


def _attention(untraced):
    def scaled_dot_product_attention(
        q, k, v, *, scale, mask=None, sinks=None, **others
    ):
        if not (is_opaque(k) or is_opaque(v)):
            return untraced(q, k, v, scale=scale, mask=mask, sinks=sinks, **others)
        if not (is_opaque(k) and is_opaque(v)) or others:
            raise Refused("attention over keys and values of different kinds")
        causal = type(mask) is str and mask == "causal"
        if not (causal or mask is None or is_opaque(mask)):
            raise Refused("a mask of the model's own")
        arrays = [q, k.array, v.array]
        arrays += [mask.array] if is_opaque(mask) else []
        arrays += [] if sinks is None else [sinks]
        how = calls.bits(scale), causal, is_opaque(mask), sinks is not None
        return calls.late("attend", arrays, *how)

    return scaled_dot_product_attention


def _comparing(untraced, answer: bool):
    """A comparison with 0, whose answer for a place is the same in each step."""

    def compare(self, *other):
        if caches.is_place(self) and all(type(o) is int and o == 0 for o in other):
            return answer
        return untraced(self, *other)

    return compare


def _number(value=0):
    """int() of mlx_vlm.models.base, to which a place is a number."""
    return value if caches.is_place(value) else int(value)


def _is_instance(value, kinds) -> bool:
    """Its isinstance()."""
    is_number = kinds is mx.array and caches.is_place(value)
    return not is_number and isinstance(value, kinds)


def _changing(untraced):
    """An operator that changes an array, which is no place then."""

    def change(self, *others):
        if id(self) in ARGUMENTS:
            raise Refused("the model changes what it is called with")
        caches.PLACES.pop(id(self), None)
        return untraced(self, *others)

    return change


def _replacements() -> list:
    """Owners and names of functions that take the stand-ins of keys and values, and
    places."""
    attention = _attention(mx.fast.scaled_dot_product_attention)
    product = opaque.choosing(opaque.matmul, mx.array.__matmul__)
    made = [
        (mx.fast, "scaled_dot_product_attention", attention),
        (mx.array, "__matmul__", product),
    ]
    if (base := sys.modules.get("mlx_vlm.models.base")) is not None:
        # cache_position_offset() would evaluate an array.
        made += [(base, "int", _number), (base, "isinstance", _is_instance)]
    for name, answer in ANSWERS.items():
        made.append((mx.array, name, _comparing(getattr(mx.array, name), answer)))
    for name in filter(vars(mx.array).get, CHANGES):
        made.append((mx.array, name, _changing(getattr(mx.array, name))))
    for function in opaque.FUNCTIONS:
        name = function.__name__
        made.append((mx, name, opaque.choosing(function, getattr(mx, name))))
    return made


@contextlib.contextmanager
def _traced():
    """Attention, and a few other functions, take the stand-ins of keys and values."""
    with one_at_a_time, contextlib.ExitStack() as restored:
        for owner, name, function in _replacements():
            before = getattr(owner, name, None) or getattr(builtins, name)
            restored.callback(setattr, owner, name, before)
            setattr(owner, name, function)
        tracing.on = True
        try:
            yield
        finally:
            tracing.on = False
            caches.PLACES.clear()
            ARGUMENTS.clear()


class Layer:
    """One cache of the step."""

    __slots__ = ("adapter", "kind", "static", "group", "updated")

    def __init__(self, cache, group: int):
        self.kind = type(cache)
        self.adapter = caches.ADAPTERS[self.kind]
        self.static = self.adapter.static(cache)
        self.group = group
        self.updated = 0  # number of its arrays among the step's outputs


class Trace:
    """A step for `n` tokens per sequence; `how`: what the model is called with beside
    its tokens and caches, of which `arrays` are inputs, as are the arrays that the
    model keeps. Throws Refused, or what the model throws."""

    def __init__(self, model, call, inputs: mx.array, cache: list, how, arrays: list):
        found = caches.leaves(cache)
        if found is None or len(set(map(id, found))) < len(found):
            raise Refused("a cache is unknown, or there twice")
        self.n, self.how = inputs.shape[1], how
        self.flat = all(type(c) not in caches.LISTS for c in cache)
        snapshot = Snapshot(model)
        kept = snapshot.kept
        try:
            call = self._with_arrays(model, call, arrays, kept)
            first = 1 + len(arrays) + len(kept)
            outputs, n_given = self._call(call, inputs, cache, found, first)
            if not snapshot.holds():
                raise Refused("the model changes itself")
        finally:
            if not snapshot.holds():
                snapshot.restore()
            dict.update(model, kept)
        self.kept = {name: (a.shape, a.dtype) for name, a in kept.items()}
        snapshot.kept = self.kept
        self.number = calls.record(outputs, n_given)
        self.end = weakref.finalize(self, calls.forget, self.number)
        self.end.atexit = False
        if not calls.watch(self.number, snapshot.arrays):
            raise Refused("weights cannot be watched")
        self.snapshot = snapshot

    def _with_arrays(self, model, call, arrays: list, kept: dict):
        """The call with stand-ins for its arrays, and for those that the model keeps,
        in whose place it may keep others of them."""
        made = [calls.given(1 + i, a) for i, a in enumerate([*arrays, *kept.values()])]
        own = dict(zip(kept, made[len(arrays) :]))
        names = (name for name, value in self.how if type(value) is tuple)
        how = dict(self.how) | dict(zip(names, made))
        self.keeps = []  # names, and which inputs of the step

        def run(inputs, cache):
            ARGUMENTS.update(map(id, [inputs, *made]))
            dict.update(model, own)
            output = call(inputs, cache=cache, **how)
            for name, then in own.items():
                now = dict.get(model, name)
                at = [1 + i for i, m in enumerate(made) if m is now]
                if not at:
                    raise Refused("the model changes itself")
                if now is not then:
                    self.keeps.append((name, *at))
            return output

        return run

    def _call(self, call, inputs, cache, found, first: int) -> tuple[list, int]:
        """Runs the model on stand-ins; the step's outputs and number of inputs. Those
        of caches begin at `first`."""
        self.layers, groups, n_slots, stand_ins = [], {}, 0, []
        for c in found:
            adapter = caches.ADAPTERS[type(c)]
            positions = adapter.positions(c, self.n)
            if positions is None:
                raise Refused("a cache is not ready")
            key = (adapter, positions)
            if key not in groups:
                groups[key] = len(groups), n_slots
                n_slots += len(positions)
            group, slots = groups[key]
            self.layers.append(Layer(c, group))
            stand_ins.append(caches.stand_for(adapter, c, self.n, slots, first))
            first += len(adapter.arrays(c))
        self.n_groups = len(groups)
        with _traced():
            output = call(
                calls.given(0, inputs.astype(token_type(inputs))),
                caches.rebuild(cache, iter(stand_ins)),
            )
        logits = self._logits(output)
        outputs = [logits]
        for layer, stand_in, c in zip(self.layers, stand_ins, found):
            results = caches.results_of(layer.adapter, stand_in, c)
            if results is not None:
                layer.updated = len(results)
                outputs += results
        return outputs, first

    def _logits(self, output) -> mx.array:
        """Those of the model's output, which is they or has nothing else."""
        self.made_of = None
        if type(output).__name__ == "LanguageModelOutput":  # of mlx-vlm
            self.made_of = type(output)
            held = {name for name, value in vars(output).items() if value is not None}
            output = output.logits if held == {"logits"} else None
        if type(output) is not mx.array:
            raise Refused("the model returns more than an array")
        return output

    def run(self, model, inputs: mx.array, cache: list, arrays: list):
        """The step's output; None, with nothing changed, if the trace does not hold."""
        found = cache if self.flat else caches.leaves(cache)
        if found is None or len(found) != len(self.layers) or not self.snapshot.holds():
            return None
        arrays = [inputs, *arrays]
        for name, like in self.kept.items():
            own = dict.get(model, name)
            if type(own) is not mx.array or (own.shape, own.dtype) != like:
                return None
            arrays.append(own)
        n, groups = self.n, [None] * self.n_groups
        for layer, c in zip(self.layers, found):
            adapter = layer.adapter
            if type(c) is not layer.kind or adapter.static(c) != layer.static:
                return None
            positions = adapter.positions(c, n)
            group = groups[layer.group]
            if group is None:
                if positions is None:
                    return None
                groups[layer.group] = positions
            elif group != positions:
                return None
            arrays += adapter.arrays(c)
        slots = [p for group in groups for p in group]
        results = calls.run(self.number, arrays, slots)
        if not results:
            return None
        for name, i in self.keeps:
            dict.__setitem__(model, name, arrays[i])
        at = 1
        for layer, c in zip(self.layers, found):
            if layer.updated:
                layer.adapter.store(c, results[at : at + layer.updated], n)
                at += layer.updated
        return results[0] if self.made_of is None else self.made_of(logits=results[0])
