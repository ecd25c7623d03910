"""Choices of attention at the most keys of their class. A class is measured at the keys
of a step, and holds for up to 1.4 times as many."""

import functools
import math

from . import library
from .check import ATTENTION, Check
from .worker import ROUNDS, interval


def most_of_class(size: int) -> int:
    """The largest size that is in a class with this one (`bucket()` of
    src/ops/tuned/plan.cpp)."""
    if size <= 64:
        return size
    middle = 1 << size.bit_length() - 1
    middle *= 1 if size / middle < 1.4142135 else 2
    return math.ceil(middle * 1.4142135) - 1


def give_up_slower(tuner, reached: list) -> None:
    """Leaves out choices of attention that are slower at those keys, alone."""
    import mlx.core as mx

    found = {one["class"]: one for _, classes in reached for one in classes}
    for choice in [*tuner.choices]:
        one = found.get(choice["class"])
        if not one or one["kind"] != ATTENTION or tuner.late():
            continue
        keys = most_of_class(one["members"]["keys"])
        library.use([])
        check = Check(mx, one | {"members": one["members"] | {"keys": keys}})
        if not check.made:
            continue

        def timed(choices: list, check=check, keys=keys) -> float:
            tuner.announce(choices, f"with {keys} keys")
            return check.seconds(choices, tuner.timestamps)

        timed([choice])  # compiled
        sides = [functools.partial(timed, mine) for mine in ([], [choice])]
        own, other = tuner.turns(sides, ROUNDS)
        if interval(other, own)[1] < 1:
            tuner.choices.remove(choice)
            tuner.leave_out(choice, f"it is slower with {keys} keys")
        del check
        mx.clear_cache()
