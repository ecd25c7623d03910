"""What a step's noise leaves undecided: candidates alone, then together in a step."""

import math
import statistics

from ..bench.intervals import ratio_interval
from . import library
from .check import Check
from .worker import (
    ALONE,
    CONFIRM,
    LEAST_GAIN,
    LEAST_ROUNDS,
    ROUNDS,
    TOGETHER,
    choice_of,
)

LEAST_ALONE = 1.03  # times as fast, of a product or attention
MOST_SAMPLES, MOST_PAIRS = 20 * ROUNDS, 4 * CONFIRM


def again(tuner, reached: list) -> None:
    """Rounds over all that is undecided, until nothing is or the time is over."""
    import mlx.core as mx

    trials = [
        Trial(tuner, make, found)
        for make, classes in reached
        for found in classes
        if tuner.undecided.get(found["class"])
    ]
    once = {}  # several cells may have a class
    for trial in trials:
        once.setdefault(trial.key, trial)
    open_ = list(once.values())
    while open_ and not tuner.late(ALONE):
        for trial in open_:
            if tuner.late(ALONE):
                break
            trial.sample()
            mx.clear_cache()
        open_ = [trial for trial in open_ if not trial.decided]
    for trial in once.values():
        if trial.noise and trial.line == LEAST_ALONE:
            tuner.noise["alone"].append(trial.noise)
    for make, classes in reached:
        keys = [found["class"] for found in classes]
        good = [once[k].best for k in keys if k in once and once[k].best]
        good = [choice for choice in good if choice not in tuner.choices]
        if good and not tuner.late(TOGETHER):
            cell = make()
            cell.run()
            together(tuner, cell, good)
            del cell
            mx.clear_cache()


class Trial:
    """The undecided candidates of a class, and their times."""

    def __init__(self, tuner, make, found: dict):
        self.tuner, self.make, self.found = tuner, make, found
        self.key, self.best = found["class"], None
        wanted = tuner.undecided.get(self.key, ())
        self.alive = {
            one["plan"]: choice_of(found, one)
            for one in found["candidates"]
            if one["plan"] in wanted and (self.key, one["plan"]) not in tuner.skip
        }
        self.times = {plan: [] for plan in self.alive}
        self.own, self.line, self.noise = [], LEAST_ALONE, 0.0

    @property
    def decided(self) -> bool:
        return not self.alive or len(self.own) >= MOST_SAMPLES

    def sample(self) -> None:
        """Some rounds alone; in a step where it is not known how. Weights may lie in
        caches that a step empties, and rewrites join what is apart here: a step decides
        in the end."""
        import mlx.core as mx

        tuner = self.tuner
        library.use([])
        check = Check(mx, self.found)
        cell = None if check.made else self.make()
        self.line = LEAST_GAIN if cell else LEAST_ALONE

        def timed(mine: list[dict]) -> float:
            tuner.announce(mine, "in a step" if cell else "alone")
            choices = [*mine, *tuner.choices]
            if cell:
                return tuner.seconds(cell, choices)
            return check.seconds(choices, tuner.timestamps)

        timed([])
        for one in self.alive.values():  # compiled, and not the first to wake a GPU
            timed([one])
        for turn in range(ROUNDS):
            if tuner.late(ALONE) and turn >= LEAST_ROUNDS:
                break
            self.own.append(timed([]))
            for plan in list(self.alive)[:: 1 if turn % 2 else -1]:
                self.times[plan].append(timed([self.alive[plan]]))
        self.judge()

    def judge(self) -> None:
        """Leaves out what is not faster by the line; the best of what is, once
        nothing that may be better is undecided."""
        good = {}
        for plan in list(self.alive):
            times = self.times[plan]
            low, high = ratio_interval(times, self.own)
            self.noise = math.sqrt(high / low) - 1
            gain = statistics.median(self.own) / statistics.median(times)
            if high < self.line:
                del self.alive[plan]
            elif low > 1 and gain >= self.line:
                good[plan] = gain
        if good:
            plan = max(good, key=good.get)
            self.best = self.alive[plan] | {"alone": round(good[plan], 4)}
            if len(good) == len(self.alive):
                self.alive = {}


def together(tuner, cell, choices: list[dict]) -> None:
    """Takes those with which the step is faster; else half of them, if that is."""
    before, own, other = tuner.choices, [], []
    low, high = 0, 2
    while low <= 1 and high >= LEAST_GAIN and len(own) < MOST_PAIRS:
        if tuner.late(TOGETHER) and own:
            break
        sides = (before, [*choices, *before])
        times = tuner.compare(cell, *sides, rounds=CONFIRM, when="together")
        own, other = own + times[0], other + times[1]
        low, high = tuner.noisy("step", other, own)
    gain = statistics.median(own) / statistics.median(other)
    if low > 1 and gain >= LEAST_GAIN:
        tuner.take(choices)
        for one in choices:
            result = {name: one[name] for name in ("class", "text", "kernel", "alone")}
            tuner.finished(one["class"], result | {"together": round(gain, 4)})
        return
    half = len(choices) // 2
    for part in (choices[:half], choices[half:]) if half else ():
        if not tuner.late(TOGETHER):
            together(tuner, cell, part)
