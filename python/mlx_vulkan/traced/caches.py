"""The caches of mlx-lm and mlx-vlm in a traced step.

Each kind of cache has an adapter: what of it is an array of the step, what is a
position, and a stand-in that the model gets while it is traced. A stand-in is an
instance of the cache's class, whose keys and values are opaque: the model can only
hand them on to attention. Its offset is an array without a value. Whatever else
Python asks it for raises, and the model is not traced.
"""

import copy

import mlx.core as mx

from .calls import given, late
from .opaque import Opaque, Refused


def causal(padding: list, slot: int, n: int, window, shift: int = -1) -> Opaque:
    return Opaque(late("causal", padding, slot, n, window or 0, shift), open=-1)


PLACES = {}  # by id; emptied after each trace


def place(slot: int) -> mx.array:
    """A number of tokens before or after the step. Not 0, as positions() says."""
    made = late("position", [], slot)
    PLACES[id(made)] = made
    return made


def is_place(value) -> bool:
    return PLACES.get(id(value)) is value


class StandIn:
    """What the stand-ins of caches with positions share.

    `slots` is the first of the cache's slots of positions, `inputs` its arrays.
    """

    def __init__(self, cache, n: int, slots: int, inputs: list):
        put = super().__setattr__
        put("_real", cache)
        put("_n", n)
        put("_slots", slots)
        put("_inputs", inputs)
        put("_results", None)

    def __getattr__(self, name):
        if name in vars(self._real):
            raise Refused(f"the model reads {name} of {type(self._real).__name__}")
        raise AttributeError(name)

    def __setattr__(self, name, value):
        raise Refused(f"the model sets {name} of {type(self._real).__name__}")

    def _finish(self, results: list) -> None:
        if self._results is not None:
            raise Refused("the model updates a cache twice")
        object.__setattr__(self, "_results", results)

    def _position(self) -> int:
        """The slot of the offset now: before or after the update."""
        return self._slots + (self._results is not None)

    def _check(self, keys, values) -> None:
        if keys.shape[-2] != self._n or values.shape[-2] != self._n:
            raise Refused("the model updates a cache by another number of tokens")

    def _put(self, updates, slot: int) -> list:
        """The first of the cache's arrays after updates at a position."""
        pairs = zip(self._inputs, updates)
        return [late("put", [cache, update], slot) for cache, update in pairs]

    def _take(self, count: int, slot: int) -> list:
        """The valid part of so many results, whose number has a slot."""
        if self._results is None:
            raise Refused("the model reads a cache before its update")
        return [Opaque(late("take", [r], slot)) for r in self._results[:count]]

    @property
    def offset(self):
        # A new object, which the model may change in place.
        return place(self._position())

    def _empty(self):
        return False

    empty = _empty

    @property
    def state(self):
        raise Refused("the model reads the state of a cache")

    def make_mask(self, N, return_array=False, window_size=None):
        if N == 1 and window_size is None:
            return None
        if return_array or window_size is not None:
            return causal([], self._position(), N, window_size)
        return "causal"


def longer(array: mx.array, used: int, more: int, step: int) -> mx.array:
    """Room for `more` tokens in multiples of `step` behind those used, as mlx-lm
    makes it."""
    shape = list(array.shape)
    shape[2] = -(-more // step) * step
    if used % step:
        array = array[..., :used, :]
    return mx.concatenate([array, mx.zeros(shape, array.dtype)], axis=2)


def window_room(cache, offset: int) -> int | None:
    """Gives a window without room what mlx-lm gives it; how many tokens it loses, or
    None if it has room."""
    if cache.keys is None:
        return None
    size, most = cache.keys.shape[2], cache.max_size
    lost = max(size - most, 0)
    if lost:  # a prompt leaves more than the window
        cache.keys = cache._trim(lost, cache.keys)
        cache.values = cache._trim(lost, cache.values)
        cache._idx = most
    elif offset >= size and size < most:
        step = min(cache.step, most - offset)
        cache.keys = longer(cache.keys, 0, step, step)
        cache.values = longer(cache.values, 0, step, step)
        cache._idx = offset
    else:
        return None
    return lost


class KeysAndValues:
    """KVCache: positions are the offset before and after the step."""

    name = "KVCache"
    open = (True, True)

    @staticmethod
    def static(cache) -> tuple:
        return ()

    @staticmethod
    def positions(cache, n: int):
        offset = cache.offset
        return None if cache.keys is None or not offset else (offset, offset + n)

    @staticmethod
    def make_room(cache, n: int) -> bool:
        used = cache.size()
        if cache.keys is None or used + n <= cache.keys.shape[2]:
            return False
        cache.keys = longer(cache.keys, used, n, cache.step)
        cache.values = longer(cache.values, used, n, cache.step)
        return True

    @staticmethod
    def arrays(cache) -> list:
        return [cache.keys, cache.values]

    @staticmethod
    def store(cache, arrays, n: int) -> None:
        cache.keys, cache.values = arrays
        cache.offset += n

    class stand_in(StandIn):
        def update_and_fetch(self, keys, values):
            self._check(keys, values)
            self._finish(self._put([keys, values], self._slots))
            return self.keys_and_values()

        def keys_and_values(self):
            return tuple(self._take(2, self._slots + 1))


class Codes:
    """QuantizedKVCache."""

    name = "QuantizedKVCache"
    open = (True,) * 6

    @staticmethod
    def static(cache) -> tuple:
        return (cache.group_size, cache.bits)

    positions = KeysAndValues.positions

    @staticmethod
    def make_room(cache, n: int) -> bool:
        used = cache.offset
        if cache.keys is None or used + n <= cache.keys[0].shape[2]:
            return False
        for name in ("keys", "values"):
            parts = getattr(cache, name)
            made = [longer(part, used, n, cache.step) for part in parts]
            setattr(cache, name, type(parts)(made))
        return True

    @staticmethod
    def arrays(cache) -> list:
        return [*cache.keys, *cache.values]

    @staticmethod
    def store(cache, arrays, n: int) -> None:
        cache.keys = type(cache.keys)(arrays[:3])
        cache.values = type(cache.values)(arrays[3:])
        cache.offset += n

    class stand_in(StandIn):
        @property
        def bits(self):
            return self._real.bits

        @property
        def group_size(self):
            return self._real.group_size

        def update_and_fetch(self, keys, values):
            self._check(keys, values)
            how = {"group_size": self.group_size, "bits": self.bits}
            parts = [*mx.quantize(keys, **how), *mx.quantize(values, **how)]
            self._finish(self._put(parts, self._slots))
            return self.keys_and_values()

        def keys_and_values(self):
            views = self._take(6, self._slots + 1)
            return tuple(views[:3]), tuple(views[3:])

        def make_mask(self, N, return_array=False, window_size=None):
            return super().make_mask(N, return_array=N > 1, window_size=window_size)


class Rotating:
    """RotatingKVCache, one token at a time, neither growing nor shrinking.

    Positions: offset before and after, place of the update, number of valid keys.
    """

    name = "RotatingKVCache"
    open = (True, True)

    @staticmethod
    def static(cache) -> tuple:
        return (cache.max_size, cache.keep)

    @staticmethod
    def positions(cache, n: int):
        if n != 1 or cache.keys is None or not cache.offset:
            return None
        offset, most, at = cache.offset, cache.max_size, cache._idx
        size = cache.keys.shape[2]
        if size > most or (offset >= size and size < most):
            return None
        if at == most:
            at = cache.keep
        return (offset, offset + 1, at, min(offset + 1, size))

    @staticmethod
    def make_room(cache, n: int) -> bool:
        return n == 1 and window_room(cache, cache.offset) is not None

    arrays = KeysAndValues.arrays

    @staticmethod
    def store(cache, arrays, n: int) -> None:
        cache.keys, cache.values = arrays
        cache.offset += n
        if cache._idx == cache.max_size:
            cache._idx = cache.keep
        cache._idx += n

    class stand_in(StandIn):
        def update_and_fetch(self, keys, values):
            self._check(keys, values)
            self._finish(self._put([keys, values], self._slots + 2))
            return self.keys_and_values()

        def keys_and_values(self):
            return tuple(self._take(2, self._slots + 3))

        def make_mask(self, N, window_size=None, return_array=False):
            if N != 1:
                raise Refused("a mask of several queries over a rotating cache")
            if window_size is None or self._real.max_size <= window_size:
                return None
            raise Refused("a window smaller than its rotating cache")


class Batch:
    """BatchKVCache: the offsets are an array already; positions are of the index."""

    name = "BatchKVCache"
    open = (True, True, False, False)

    @staticmethod
    def static(cache) -> tuple:
        return ()

    @staticmethod
    def positions(cache, n: int):
        if not cache._idx or getattr(cache, "_right_padding", None) is not None:
            return None
        return (cache._idx, cache._idx + n)

    make_room = KeysAndValues.make_room

    @staticmethod
    def arrays(cache) -> list:
        return [cache.keys, cache.values, cache.offset, cache.left_padding]

    @staticmethod
    def store(cache, arrays, n: int) -> None:
        cache.keys, cache.values, cache.offset, _ = arrays
        cache._idx += n

    class stand_in(StandIn):
        @property
        def offset(self):
            return self._inputs[2] if self._results is None else self._results[2]

        @property
        def left_padding(self):
            return self._inputs[3]

        @property
        def _idx(self):
            return place(self._position())

        def update_and_fetch(self, keys, values):
            self._check(keys, values)
            results = self._put([keys, values], self._slots)
            self._finish([*results, self._inputs[2] + self._n, self._inputs[3]])
            return self.keys_and_values()

        def keys_and_values(self):
            return tuple(self._take(2, self._slots + 1))

        def make_mask(self, N, return_array=False, window_size=None):
            return causal([self._inputs[3]], self._position(), N, window_size)


class RotatingBatch:
    """BatchRotatingKVCache, one token at a time, neither growing nor shrinking.

    Positions: place of the update, number of valid keys, offset and shift of the mask.
    """

    name = "BatchRotatingKVCache"
    open = Batch.open
    arrays = Batch.arrays

    @staticmethod
    def static(cache) -> tuple:
        return (cache.max_size, cache.rotated or cache._idx >= cache.max_size)

    @staticmethod
    def positions(cache, n: int):
        if n != 1 or cache.keys is None or cache._lengths is not None:
            return None
        offset, most, place = cache._offset, cache.max_size, cache._idx
        size = cache.keys.shape[2]
        if size > most or (offset >= size and size < most):
            return None
        place = place if place < most else 0
        return (place, min(offset + 1, size), min(offset, most - 1), place + 1)

    @staticmethod
    def make_room(cache, n: int) -> bool:
        if n != 1 or cache._lengths is not None:
            return False
        lost = window_room(cache, cache._offset)
        if lost:
            cache.left_padding = cache.left_padding - lost
        return lost is not None

    @staticmethod
    def store(cache, arrays, n: int) -> None:
        cache.keys, cache.values, cache.offset, cache.left_padding = arrays
        if cache._idx == cache.max_size:
            cache._idx, cache.rotated = 0, True
        cache._offset += n
        cache._idx += n

    class stand_in(StandIn):
        def _padding(self, rotates: bool):
            return self._inputs[3] - 1 if rotates else self._inputs[3]

        @property
        def offset(self):
            return self._inputs[2] if self._results is None else self._results[2]

        def update_and_fetch(self, keys, values):
            self._check(keys, values)
            results = self._put([keys, values], self._slots)
            _, rotates = RotatingBatch.static(self._real)
            self._finish([*results, self._inputs[2] + 1, self._padding(rotates)])
            return self.keys_and_values()

        def keys_and_values(self):
            return tuple(self._take(2, self._slots + 1))

        def make_mask(self, N, window_size=None, return_array=False):
            if N != 1 or self._results is not None:
                raise Refused("a mask of several queries over a rotating cache")
            most, rotates = RotatingBatch.static(self._real)
            shift = self._slots + 3 if rotates else -1
            padding = [self._padding(rotates)]
            return causal(padding, self._slots + 2, N, window_size or most, shift)


class Arrays:
    """ArraysCache: arrays alone, so that a copy of it is its stand-in."""

    name = "ArraysCache"

    @staticmethod
    def static(cache) -> tuple:
        return tuple(a is None for a in Arrays._all(cache))

    @staticmethod
    def _all(cache) -> list:
        return [*cache.cache, cache.left_padding, cache.lengths]

    @staticmethod
    def positions(cache, n: int):
        return ()

    @staticmethod
    def arrays(cache) -> list:
        return [a for a in Arrays._all(cache) if a is not None]

    @staticmethod
    def store(cache, arrays, n: int) -> None:
        Arrays.fill(cache, arrays)

    @staticmethod
    def fill(cache, arrays) -> None:
        rest = iter(arrays)
        filled = [None if a is None else next(rest) for a in Arrays._all(cache)]
        *cache.cache, cache.left_padding, cache.lengths = filled

    @staticmethod
    def copy(cache, inputs: list):
        made = copy.copy(cache)
        Arrays.fill(made, inputs)
        return made

    @staticmethod
    def results(stand_in, cache) -> list:
        results = Arrays._all(stand_in)
        if [a is None for a in results] != [a is None for a in Arrays._all(cache)]:
            raise Refused("an array of a cache comes or goes")
        return [a for a in results if a is not None]


ADAPTERS = {}  # by class of cache
STAND_INS = {}
LISTS = set()  # classes of lists of caches


def learn(module) -> None:
    """Knows the caches of mlx_lm.models.cache or mlx_vlm.models.cache from now on.

    The packages' classes have the same names, attributes and meanings.
    """
    for adapter in (KeysAndValues, Codes, Rotating, Batch, RotatingBatch, Arrays):
        cls = getattr(module, adapter.name, None)
        if cls is None:
            continue
        ADAPTERS[cls] = adapter
        if adapter is not Arrays:
            STAND_INS[cls] = type(cls.__name__, (adapter.stand_in, cls), {})
    if hasattr(module, "CacheList"):
        LISTS.add(module.CacheList)


def make_room(caches, n: int) -> bool:
    """Whether a cache had no room for `n` tokens and has now."""
    made = False
    for cache in leaves(caches) or ():
        adapter = ADAPTERS[type(cache)]
        if hasattr(adapter, "make_room"):
            made |= adapter.make_room(cache, n)
    return made


def leaves(caches) -> list | None:
    """The caches without lists of them; None if one is unknown."""
    found = []
    for cache in caches:
        if type(cache) in LISTS:
            inner = leaves(cache.caches)
            if inner is None:
                return None
            found += inner
        elif type(cache) in ADAPTERS:
            found.append(cache)
        else:
            return None
    return found


def rebuild(caches, stand_ins) -> list:
    """The model's list of caches, with stand-ins in the place of leaves."""
    made = []
    for cache in caches:
        if type(cache) in LISTS:
            inner = copy.copy(cache)
            inner.caches = tuple(rebuild(cache.caches, stand_ins))
            made.append(inner)
        else:
            made.append(next(stand_ins))
    return made


def stand_for(adapter, cache, n: int, slots: int, first: int):
    """A stand-in of a cache whose arrays are the step's inputs from `first` on."""
    arrays = adapter.arrays(cache)
    opens = getattr(adapter, "open", (False,) * len(arrays))
    inputs = [given(first + i, a, o) for i, (a, o) in enumerate(zip(arrays, opens))]
    if adapter is Arrays:
        return Arrays.copy(cache, inputs)
    return STAND_INS[type(cache)](cache, n, slots, inputs)


def results_of(adapter, stand_in, cache) -> list | None:
    """The cache's arrays after the step; None if it was not updated."""
    if adapter is Arrays:
        return Arrays.results(stand_in, cache)
    return stand_in._results
