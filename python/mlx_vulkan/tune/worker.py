"""The process that tunes; __init__.py starts it, and another one where it hangs.

Reads one job, a line of JSON. Writes events, each a line: {"trying": ...} before
each candidate, {"left": ...} for one that is left out, {"timing": ...} before each
time, with its candidates, {"class": ...} with what was chosen, {"cell": ...} with times
before and after, {"end": ...}.

Steps are timed with the plans of other devices first (steps.py), then with one
candidate each, then with the views that won elsewhere. What noise leaves undecided is
timed alone (again.py), and what is faster so is tried in a step together.
"""

import collections
import contextlib
import ctypes
import json
import math
import os
import signal
import statistics
import sys
import time

from ..bench.intervals import ratio_interval
from ..selftest.worker import works
from . import library
from .cells import work
from .check import Check, Differs

# A step has to be faster by so much, and by more than noise.
LEAST_GAIN = 1.005
# A product's gain may be hidden by what runs beside it. Candidates that are at least
# HIDDEN times as fast in a step are timed alone, unless another one is HIDING_GAIN
# times as fast.
HIDDEN, HIDING_GAIN = 0.98, 1.1
ROUNDS, LEAST_ROUNDS = 14, 4
FEW_ROUNDS = 6  # where gains are large
# After two rounds, what was slower by so much than something else is left out.
SLOWER = 1.05
CONFIRM = 8
MOST_CANDIDATES = 16
# Shares of the time after which no step is surveyed, none is timed with one candidate,
# nothing is learned, nothing timed alone, and nothing together.
SURVEY, FIRST, LEARN, ALONE, TOGETHER = 0.35, 0.64, 0.72, 0.78, 0.85
OF_CELL = 0.25  # of the time left, what a cell's candidates may take


class Tuner:
    def __init__(self, job: dict, say):
        self.job, self.say = job, say
        self.skip = {tuple(pair) for pair in job["skip"]}
        self.done = set(job["done"])
        self.choices = list(job["choices"])
        self.undecided = dict(job["undecided"])  # a class's plans
        self.surveyed = set(job["surveyed"])  # names of cells
        self.checked = {}  # a class and a plan: its choice, or None if it was left out
        self.unknown = set()  # classes that nothing is known to check
        self.spent = collections.Counter()  # seconds
        self.noise = {"step": [], "alone": []}  # halves of intervals of gains
        self.deadline = job["deadline"]
        self.timestamps = False
        self.faults = os.environ.get("MLX_VK_TEST_TUNE", "")

    def seconds(self, cell, choices) -> float:
        library.use(choices)
        return library.measure(cell.run, self.timestamps) / cell.calls

    def announce(self, choices: list[dict], when: str = "in a step") -> None:
        """The candidates that the next time is of: if it hangs, one of them does."""
        texts, kernels = (
            " and ".join(one[name] for one in choices) for name in ("text", "kernel")
        )
        pairs = [[one["class"], one["plan"]] for one in choices]
        self.say(timing=[pairs, texts, kernels, when])
        if choices and self.faults == f"hang {when}":
            time.sleep(3600)

    def timed(self, cell, choices: list[dict], when: str = "in a step") -> float:
        """Seconds of a step with these in place of what was taken for their classes."""
        self.announce(choices, when)
        return self.seconds(cell, [*choices, *self.choices])

    @contextlib.contextmanager
    def spends(self, what: str):
        begun = time.monotonic()
        yield
        self.spent[what] += time.monotonic() - begun

    def left(self, share: float = 1.0) -> float:
        """Seconds until this share of the time is over."""
        return self.deadline - (1 - share) * self.job["seconds"] - time.time()

    def late(self, share: float = 1.0) -> bool:
        return self.left(share) < 0

    def noisy(self, kind: str, times: list, own: list) -> tuple[float, float]:
        """The interval of a gain, whose width is noted."""
        low, high = interval(times, own)
        if low:
            self.noise[kind].append(math.sqrt(high / low) - 1)
        return low, high

    def taken(self, found: dict) -> str:
        """The plan in force."""
        mine = (c["plan"] for c in self.choices if c["class"] == found["class"])
        return next(mine, found["candidates"][0]["plan"])

    def take(self, choices: list[dict], **more) -> None:
        """Those in place of what was taken for their classes."""
        classes = {one["class"] for one in choices}
        kept = [one for one in self.choices if one["class"] not in classes]
        made = [one | more for one in choices if one["view"]]  # "": by default
        self.choices = [*kept, *made]

    def right(self, cell, found: dict, plans: set) -> dict[str, dict]:
        """The choices of those plans of a class that compile and compute the same."""
        every = {one["plan"]: one for one in found["candidates"]}
        wanted = {plan: one for plan, one in every.items() if plan in plans}
        key, check = found["class"], None
        for plan, one in wanted.items():
            if (key, plan) in self.checked or (key, plan) in self.skip:
                continue
            if self.late(TOGETHER):
                break
            with self.spends("checks"):
                if not check:
                    library.use([])
                    check = Check(cell.mx, found)
                    if not check.made:
                        self.unknown.add(key)
                    library.use(self.choices)
                    expected = output(cell)
                self.checked[key, plan] = self.trial(cell, found, one, check, expected)
        made = {plan: self.checked.get((key, plan)) for plan in wanted}
        return {plan: choice for plan, choice in made.items() if choice}

    def trial(self, cell, found: dict, one: dict, check, expected):
        """The choice of a candidate that compiles and computes the same; else None."""
        pair = (found["class"], one["plan"])
        choice = choice_of(found, one)
        self.say(trying=[[pair], found["text"], one["kernel"], ""])
        try:
            if self.faults == "hang":
                self.faults = ""
                time.sleep(3600)
            check.run([choice, *self.choices])
            library.use([choice, *self.choices])
            same(cell, expected, self.allowed([choice]))
        except Differs as why:
            return self.leave_out(choice, f"wrong: {why}")
        except RuntimeError as why:
            if not works(cell.mx):  # the device is lost or stuck, for this process
                raise
            return self.leave_out(choice, f"does not run: {str(why)[:300]}")
        return choice

    def allowed(self, choices: list[dict]) -> float:
        """Of a step's outputs, how much may differ."""
        known = all(one["class"] not in self.unknown for one in choices)
        return 0.7 if known else 0.2

    def same_together(self, cell, choices: list[dict]) -> bool:
        library.use(self.choices)
        expected = output(cell)
        library.use([*choices, *self.choices])
        self.announce(choices)
        try:
            same(cell, expected, self.allowed(choices))
        except Differs as why:
            for one in choices:
                self.leave_out(one, f"wrong with others: {why}")
            return False
        return True

    def leave_out(self, choice: dict, why: str) -> None:
        self.say(left={"text": choice["text"], "kernel": choice["kernel"], "why": why})

    def open(self, classes: list[dict]) -> list[dict]:
        return [
            one
            for one in classes
            if one["class"] not in self.done and len(one["candidates"]) > 1
        ]

    def tune_classes(self, cell, classes: list[dict], end: float) -> None:
        """Those that are open, until so many seconds are left of the first share."""
        for one in self.open(classes):
            if self.left(FIRST) < end:
                break
            self.tune_class(cell, one)

    def tune_class(self, cell, found: dict) -> None:
        plans = {one["plan"] for one in found["candidates"][: MOST_CANDIDATES + 1]}
        right = self.right(cell, found, plans - {self.taken(found)})
        ways = {plan: [choice] for plan, choice in right.items()}
        best, gain, maybe = self.fastest(cell, ways)
        result = {"text": found["text"], "class": found["class"]}
        result["candidates"] = len(right)
        if gain:
            self.take(ways[best], gain=gain)
            result |= {"kernel": right[best]["kernel"], "gain": gain}
        if gain < HIDING_GAIN:
            hidden = [plan for plan in maybe if not gain or plan != best]
            self.undecided[found["class"]] = hidden
        self.finished(found["class"], result)

    def finished(self, which: str, result: dict) -> None:
        self.done.add(which)
        self.state(**{"class": result})

    def state(self, **more) -> None:
        """Says what another worker would have to know."""
        sets = {"done": [*self.done], "surveyed": [*self.surveyed]}
        self.say(choices=self.choices, undecided=self.undecided, **sets, **more)

    def fastest(self, cell, ways: dict, rounds: int = ROUNDS) -> tuple:
        """The one of these lists of choices with which a step is fastest; by how much,
        measured again, 0 if none is; and those that may be faster alone."""
        times, own = {way: [] for way in ways}, []
        alive, sure, gain = [*ways], False, 0.0
        with self.spends("steps"):
            while alive and len(own) < rounds and not sure and not self.late(TOGETHER):
                own.append(self.timed(cell, []))
                for way in alive if len(own) % 2 else alive[::-1]:
                    times[way].append(self.timed(cell, ways[way]))
                alive, sure = self.promising(alive, times, own)
            best = min(alive, key=lambda w: statistics.median(times[w]), default="")
            if len(own) < LEAST_ROUNDS:
                return best, 0.0, []
            if best:
                gain = statistics.median(own) / statistics.median(times[best])
            gain = self.confirm(cell, ways[best]) if gain >= LEAST_GAIN else 0.0
        enough = [way for way in ways if len(times[way]) >= LEAST_ROUNDS]
        maybe = [way for way in enough if interval(times[way], own)[1] >= HIDDEN]
        return best, gain, maybe

    def promising(self, alive: list, times: dict, own: list) -> tuple[list, bool]:
        """Those that may still be faster than the default and the best; whether that
        is one that is faster for sure."""
        if len(own) == 2:
            line = SLOWER * min(max(x) for x in (own, *(times[p] for p in alive)))
            return [way for way in alive if min(times[way]) <= line], False
        if len(own) < LEAST_ROUNDS:
            return alive, False
        near = 1.02 * min(statistics.median(times[way]) for way in alive)
        kept, sure = [], False
        for way in alive:
            low, high = interval(times[way], own)
            if high >= LEAST_GAIN and statistics.median(times[way]) <= near:
                kept.append(way)
                sure = low >= LEAST_GAIN
        return kept, sure and len(kept) == 1

    def turns(self, sides: list, rounds: int) -> list[list[float]]:
        """Calls the functions in turn; returns the results of each."""
        times = [[] for _ in sides]
        calls = list(zip(sides, times))
        for turn in range(rounds):
            for seconds, into in calls if turn % 2 else calls[::-1]:
                into.append(seconds())
        return times

    def compare(self, cell, *sides: list, rounds: int, when: str):
        """Times of a step with each list of choices, in turn."""

        def timed(choices):
            self.announce(choices, when)
            return self.seconds(cell, choices)

        return self.turns([lambda c=c: timed(c) for c in sides], rounds)

    def confirm(self, cell, choices: list[dict]) -> float:
        """How much faster a step is with them, measured again; 0 if it is not."""
        sides = (lambda: self.timed(cell, []), lambda: self.timed(cell, choices))
        own, other = self.turns(sides, CONFIRM)
        low, high = self.noisy("step", other, own)
        gain = statistics.median(own) / statistics.median(other)
        return round(gain, 4) if low > 1 and gain >= LEAST_GAIN else 0.0

    def final(self, cell, hand: list[dict]) -> dict:
        """A step's times before, after, and by hand where that is another."""
        rounds = LEAST_ROUNDS if self.late() else CONFIRM
        sides = [[], self.choices, *([hand] if hand else [])]
        when = f"in the comparison of {cell.name}"
        own, other, *more = self.compare(cell, *sides, rounds=rounds, when=when)
        low, high = self.noisy("step", other, own)
        result = {
            "name": cell.name,
            "before": own,
            "after": other,
            "gain": statistics.median(own) / statistics.median(other),
            "interval": [low, high],
        }
        if hand:
            of_hand = statistics.median(more[0]) / statistics.median(other)
            result |= {"hand": more[0], "of_hand": of_hand}
        return result


def interval(times: list, own: list) -> tuple[float, float]:
    """Of a gain; all are possible where there are too few times."""
    return ratio_interval(times, own) or (0, math.inf)


def choice_of(found: dict, one: dict) -> dict:
    return one | {name: found[name] for name in ("class", "sizes", "text")}


def output(cell):
    y = cell.run()[:, -1].astype(cell.mx.float32)
    cell.mx.eval(y)
    return y


def same(cell, expected, most: float) -> None:
    """Throws Differs where a step's outputs are not those of the default plans, up
    to what rounding in some layers makes of them: a router may choose another
    expert, so that where the operation was checked alone much is allowed."""
    mx = cell.mx

    def size(x) -> float:
        return mx.sqrt(mx.mean(mx.square(x))).item()

    off = size(output(cell) - expected) / (size(expected) or 1.0)
    if not off <= most:
        raise Differs(f"the step's outputs differ by {off:.2g} of their size")


def cells_of(job: dict, model, vocabulary: int):
    """Functions that make the cells."""
    from .cells import Cell

    for kind, rows, *context in job["cells"]:
        size = (kind, rows, *(context or [job["context"]]))
        yield lambda size=size: Cell(model, vocabulary, *size)


def classes_of(cell, prepared: int = 0) -> list[dict]:
    """The classes of problems in a step with the choices in force, those of most work
    first; kernels of so many candidates of each are built."""
    output(cell)  # what is made once is planned here
    library.record(True)
    cell.run()
    cell.mx.synchronize()
    found = library.classes()
    if prepared:
        library.prepare(prepared)
    library.record(False)
    return sorted(found, key=lambda one: -work(one))


def tune(job: dict, say) -> None:
    import mlx.core as mx

    from . import cells
    from .again import again
    from .ends import give_up_slower
    from .steps import Steps

    tuner = Tuner(job, say)
    with tuner.spends("model"):
        model, vocabulary = cells.load(job)
        mx.eval(mx.zeros(1) + 1)
    tuner.timestamps = library.status()["timestamps"] and not job["software"]
    steps = Steps(tuner, [*cells_of(job, model, vocabulary)], mx.clear_cache)
    with tuner.spends("survey"):
        steps.survey()
    with tuner.spends("candidates"):
        steps.candidates()
    with tuner.spends("learning"):
        steps.learn()
    with tuner.spends("undecided"):
        again(tuner, steps.reached)
    with tuner.spends("ends of classes"):
        give_up_slower(tuner, steps.reached)
    finish(tuner, steps.reached, say)


def by_hand(found: list[dict], skip: set) -> list[dict]:
    """The device's own plans, where a test hook hides them."""
    return [
        choice_of(each, one)
        for each in found
        for one in each["candidates"]
        if one["view"] == "device" and (each["class"], one["plan"]) not in skip
    ]


def finish(tuner, reached: list, say) -> None:
    """Times each cell with and without the choices, and gives up those of a cell that
    is slower with them."""
    import mlx.core as mx

    from .steps import unknown

    measured = []
    for make, found in reached:
        planned = {one["class"] for one in found}
        gone = [c for c in tuner.choices if c["class"] in planned]
        hand = by_hand(found, tuner.skip)
        if not gone and not hand:
            continue
        cell = make()
        if hand:  # which may plan a dense product in place of another
            library.use(hand)
            hand += by_hand(unknown(classes_of(cell), found), tuner.skip)
        say(at=f"the comparison of {cell.name}", reached=0)
        result = tuner.final(cell, hand)
        if result["interval"][1] < 1:
            tuner.choices = [c for c in tuner.choices if c not in gone]
            for choice in gone:
                tuner.leave_out(choice, f"{cell.name} is slower with it")
            result["given_up"] = True
        measured.append(result)
        say(cell=result)
        del cell
        mx.clear_cache()
    noise = {
        kind: statistics.median(halves)
        for kind, halves in tuner.noise.items()
        if halves
    }
    end = {"choices": tuner.choices, "cells": measured, "tried": len(reached)}
    end["open"] = len({one["class"] for _, x in reached for one in tuner.open(x)})
    end["spent"] = {what: round(s, 1) for what, s in tuner.spent.items()}
    say(end=end | {"noise": noise})


def end_with_parent() -> None:
    """Also where this process hangs, and whatever ends the parent."""
    death_signal, parent = 1, os.getppid()
    ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def main() -> int:
    end_with_parent()
    # What libraries print must not come between the lines of the protocol.
    lines = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(**event):
        lines.write(json.dumps(event) + "\n")

    try:
        tune(json.loads(sys.stdin.readline()), say)
    except Exception as error:
        say(failed=f"{type(error).__name__}: {error}")
        # The device may be lost or stuck: nothing is left to be torn down.
        os._exit(1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
