"""Whether a model is still the one that was traced.

A traced step has the model's weights in it. Assignments to modules are counted; when
the count has changed, the model is compared with what it was. Lists of modules, which
nothing counts, are always compared. The library watches the arrays themselves, which
`weight[0] = 1` changes in place.
"""

import weakref
from operator import is_

import mlx.core as mx
import mlx.nn as nn

# Methods of nn.Module (a dict) that change one.
CHANGES = (
    "__setattr__",
    "__delattr__",
    "__setitem__",
    "__delitem__",
    "__ior__",
    "clear",
    "pop",
    "popitem",
    "setdefault",
)

changes = 0


def count_changes() -> None:
    """Lets modules count their changes. Does so once."""

    def counted(change):
        def method(*args, **kwargs):
            global changes
            changes += 1
            return change(*args, **kwargs)

        method.__name__ = change.__name__
        method.__doc__ = change.__doc__
        method.counted = True
        return method

    for name in CHANGES:
        change = getattr(nn.Module, name)
        if not hasattr(change, "counted"):
            setattr(nn.Module, name, counted(change))


def same(left, right) -> bool:
    return len(left) == len(right) and all(map(is_, left, right))


def _attributes(module) -> dict:
    """What a module has beside its items, but for its traces."""
    if not isinstance(module, nn.Module):
        return {}
    return {k: v for k, v in vars(module).items() if k != "_mlx_vulkan_steps"}


def kept(model) -> dict:
    """Arrays that a model keeps from call to call, such as mlx-vlm's _rope_deltas:
    its own whose names say that they are no weights."""
    return {
        name: value
        for name, value in model.items()
        if name[0] == "_" and type(value) is mx.array
    }


def without(items: dict, names) -> dict:
    return {name: value for name, value in items.items() if name not in names}


class Snapshot:
    """What a model consists of: modules, lists and dicts of them, arrays. Without the
    arrays that it keeps, which are inputs of its steps."""

    def __init__(self, model: nn.Module):
        count_changes()
        self.changes = changes
        # Not the model itself, which holds its traces and would never end.
        self.model = weakref.ref(model)
        self.modules: list[tuple] = []  # with their items and attributes
        self.lists: list[tuple] = []
        self.arrays: list[mx.array] = []
        self.kept = kept(model)
        seen = {id(model)}
        own = _attributes(model)
        items = without(model, self.kept)
        self.modules.append((None, items, own))
        for child in (*items.values(), *own.values()):
            self._walk(child, seen)

    def _walk(self, value, seen: set) -> None:
        if isinstance(value, mx.array):
            if id(value) not in seen:
                seen.add(id(value))
                self.arrays.append(value)
        elif isinstance(value, (dict, list, tuple)):
            if id(value) in seen:
                return
            seen.add(id(value))
            if isinstance(value, dict):
                own = _attributes(value)
                self.modules.append((value, dict(value), own))
                children = [*value.values(), *own.values()]
            else:
                self.lists.append((value, list(value)))
                children = value
            for child in children:
                self._walk(child, seen)

    def _modules(self):
        """Each with its items now, and with its items and attributes then."""
        _, *rest = self.modules[0]
        model = self.model()
        yield model, without(model, self.kept), *rest
        for module, *rest in self.modules[1:]:
            yield module, module, *rest

    def holds(self) -> bool:
        """Whether the model still is what it was."""
        if not all(same(now, then) for now, then in self.lists):
            return False
        if self.changes == changes:
            return True
        for module, now, items, attributes in self._modules():
            own = _attributes(module)
            if not (
                now.keys() == items.keys()
                and same(now.values(), items.values())
                and own.keys() == attributes.keys()
                and same(own.values(), attributes.values())
            ):
                return False
        self.changes = changes
        return True

    def restore(self) -> None:
        """Undoes what a trace has changed."""
        for now, then in self.lists:
            if isinstance(now, list):
                now[:] = then
        for module, _, items, attributes in self._modules():
            dict.clear(module)
            dict.update(module, items)
            for name in _attributes(module).keys() - attributes.keys():
                del vars(module)[name]
            if isinstance(module, nn.Module):
                vars(module).update(attributes)
