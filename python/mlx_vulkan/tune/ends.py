"""Times choices of attention at the most keys of their class. A class is measured at
the keys of a step, and holds for up to 1.4 times as many."""

from . import library
from .check import ATTENTION, Check
from .worker import ROUNDS, interval


def give_up_slower(tuner, reached: list) -> None:
    """Leaves out choices of attention that are slower at those keys, alone."""
    import mlx.core as mx

    found = {one["class"]: one for _, classes in reached for one in classes}
    for choice in [*tuner.choices]:
        one = found.get(choice["class"])
        if not one or one["kind"] != ATTENTION or tuner.late():
            continue
        keys = one["last"][2]
        longest = one | {"members": one["members"] | {"keys": keys}}
        if is_slower(tuner, mx, longest, choice, f"with {keys} keys"):
            tuner.choices.remove(choice)
            tuner.leave_out(choice, f"it is slower with {keys} keys")
        mx.clear_cache()


def is_slower(tuner, mx, found: dict, choice: dict, when: str) -> bool:
    """Returns whether the choice is slower than the default for that problem alone."""
    library.use([])
    check = Check(mx, found)
    if not check.made:
        return False

    def timed(choices: list) -> float:
        tuner.announce(choices, when)
        return check.seconds(choices, tuner.timestamps)

    timed([choice])  # compiled
    own, other = tuner.turns([lambda: timed([]), lambda: timed([choice])], ROUNDS)
    return interval(other, own)[1] < 1
