"""The process that tunes; __init__.py starts it, and another one where it hangs.

Reads one job, a line of JSON. Writes events, each a line: {"trying": ...} before
each candidate, {"left": ...} for one that is left out, {"timing": ...} before each
time, with its candidates, {"class": ...} with what was chosen, {"cell": ...} with times
before and after, {"end": ...}.

First, steps are timed with one candidate each. What noise leaves undecided is then
timed alone (again.py), and what is faster so is tried in a step together.
"""

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
CONFIRM = 8
MOST_CANDIDATES = 16
# The share of the time after which steps are not timed with one candidate any more, and
# of what is left of it that a cell may take: the first ones matter most.
FIRST, OF_CELL = 0.68, 0.25


class Tuner:
    def __init__(self, job: dict, say):
        self.job, self.say = job, say
        self.skip = {tuple(pair) for pair in job["skip"]}
        self.done = set(job["done"])
        self.choices = list(job["choices"])
        self.undecided = dict(job["undecided"])  # a class's plans
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

    def timed(self, cell, choice: dict | None) -> float:
        """Seconds of a step with a candidate, or without one."""
        mine = [choice] if choice else []
        self.announce(mine)
        return self.seconds(cell, [*self.choices, *mine])

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

    def trial(self, cell, found: dict, one: dict, check, expected):
        """The choice of a candidate that compiles and computes the same; else None."""
        pair = (found["class"], one["plan"])
        if pair in self.skip:
            return None
        choice = {**one, "class": found["class"], "sizes": found["sizes"]}
        choice["text"] = found["text"]
        self.say(trying=[[pair], found["text"], one["kernel"], ""])
        try:
            if self.faults == "hang":
                self.faults = ""
                time.sleep(3600)
            check.run([*self.choices, choice])
            library.use([*self.choices, choice])
            same(cell, expected, 0.7 if check.made else 0.2)
        except Differs as why:
            return self.leave_out(choice, f"wrong: {why}")
        except RuntimeError as why:
            if not works(cell.mx):  # the device is lost or stuck, for this process
                raise
            return self.leave_out(choice, f"does not run: {str(why)[:300]}")
        return choice

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
        check = Check(cell.mx, found)
        library.use(self.choices)
        expected = output(cell)
        alive = {}
        for one in found["candidates"][1 : MOST_CANDIDATES + 1]:
            choice = self.trial(cell, found, one, check, expected)
            if choice and not self.late():
                alive[one["plan"]] = choice
        del check
        tried = len(alive)
        times = {plan: [] for plan in alive}
        own = []
        for turn in range(ROUNDS):
            if not alive or (self.late() and turn < LEAST_ROUNDS):
                break
            own.append(self.timed(cell, None))
            order = list(alive) if turn % 2 else list(alive)[::-1]
            for plan in order:
                times[plan].append(self.timed(cell, alive[plan]))
            if turn + 1 >= LEAST_ROUNDS:
                alive = self.promising(alive, times, own)
        best = min(alive, key=lambda p: statistics.median(times[p]), default=None)
        result = {"text": found["text"], "candidates": tried, "class": found["class"]}
        gain = 0.0
        if best and len(own) >= LEAST_ROUNDS:
            gain = self.confirm(cell, alive[best])
        if gain:
            self.choices.append(alive[best] | {"gain": gain})
            result |= {"kernel": alive[best]["kernel"], "gain": gain}
        if gain < HIDING_GAIN:
            taken = best if gain else None
            self.undecided[found["class"]] = [
                plan
                for plan in times
                if plan != taken and interval(times[plan], own)[1] >= HIDDEN
            ]
        self.finished(found["class"], result)

    def finished(self, which: str, result: dict) -> None:
        self.done.add(which)
        more = {"choices": self.choices, "done": [*self.done]}
        self.say(**{"class": result, "undecided": self.undecided, **more})

    def promising(self, alive: dict, times: dict, own: list) -> dict:
        """Those that may still be faster than the default and the best."""
        best = min((statistics.median(times[p]) for p in alive), default=0)
        kept = {}
        for plan, choice in alive.items():
            _, high = interval(times[plan], own)
            near = statistics.median(times[plan]) <= 1.02 * best
            if high >= LEAST_GAIN and near:
                kept[plan] = choice
        return kept

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

    def confirm(self, cell, choice: dict) -> float:
        """How much faster a step is with it, measured again; 0 if it is not."""
        sides = (lambda: self.timed(cell, None), lambda: self.timed(cell, choice))
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


def classes_of(cell, software: bool) -> list[dict]:
    """The classes of problems in a step, those of most work first."""
    output(cell)  # what is made once is planned here
    library.record(True)
    cell.run()
    cell.mx.synchronize()
    found = library.classes()
    if not software:  # whose compiler is slow: a kernel at a time, as it is tried
        library.prepare(MOST_CANDIDATES)
    library.record(False)
    return sorted(found, key=lambda one: -work(one))


def tune(job: dict, say) -> None:
    import mlx.core as mx

    from . import cells
    from .again import again

    tuner = Tuner(job, say)
    model, vocabulary = cells.load(job)
    mx.eval(mx.zeros(1) + 1)
    tuner.timestamps = library.status()["timestamps"] and not job["software"]
    reached = []  # cells and what they plan
    for make in cells_of(job, model, vocabulary):
        if tuner.late(FIRST) and len(reached) >= job["reached"]:
            break
        library.use([])
        cell = make()
        say(at=cell.name, reached=len(reached) + 1)
        found = classes_of(cell, job["software"])
        reached.append((make, found))
        end = tuner.left(FIRST) * (1 - OF_CELL)
        tuner.tune_classes(cell, found, max(end, 0))
        del cell
        mx.clear_cache()
    for make, found in reached:
        if tuner.open(found) and not tuner.late(FIRST):
            tuner.tune_classes(make(), found, 0)
    again(tuner, reached)
    finish(tuner, reached, say)


def by_hand(found: list[dict], skip: set) -> list[dict]:
    """The device's own plans, where a test hook hides them."""
    return [
        one | {name: each[name] for name in ("class", "sizes", "text")}
        for each in found
        for one in each["candidates"]
        if one["view"] == "device" and (each["class"], one["plan"]) not in skip
    ]


def finish(tuner, reached: list, say) -> None:
    """Times each cell with and without the choices, and gives up those of a cell that
    is slower with them."""
    import mlx.core as mx

    measured = []
    for make, found in reached:
        planned = {one["class"] for one in found}
        gone = [c for c in tuner.choices if c["class"] in planned]
        hand = by_hand(found, tuner.skip)
        if not gone and not hand:
            continue
        cell = make()
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
