"""The process that tunes; __init__.py starts it, and another one where it hangs.

Reads one job, a line of JSON. Writes events, each a line: {"trying": ...} before
each candidate, {"left": ...} for one that is left out, {"timing": ...} before each
time of a step, with its candidate, {"class": ...} with what was chosen, {"cell": ...}
with times before and after, {"end": ...}.
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
from .check import Check, Differs

# A step has to be faster by so much, and by more than noise.
LEAST_GAIN = 1.005
ROUNDS, LEAST_ROUNDS = 14, 4
CONFIRM = 8
MOST_CANDIDATES = 16


class Tuner:
    def __init__(self, job: dict, say):
        self.job, self.say = job, say
        self.skip = {tuple(pair) for pair in job["skip"]}
        self.done = set(job["done"])
        self.choices = list(job["choices"])
        self.deadline = job["deadline"]
        self.timestamps = False
        self.faults = os.environ.get("MLX_VK_TEST_TUNE", "")

    def seconds(self, cell, choices) -> float:
        library.use(choices)
        return library.measure(cell.run, self.timestamps) / cell.calls

    def timed(self, cell, choice: dict | None) -> float:
        """Seconds of a step with a candidate, or without one."""
        who = choice and [choice[x] for x in ("class", "plan", "text", "kernel")]
        self.say(timing=who)
        if who and self.faults == "hang timing":
            time.sleep(3600)
        return self.seconds(cell, [*self.choices, *([choice] if choice else [])])

    def late(self, share: float = 1.0) -> bool:
        left = self.deadline - time.time()
        return left < (1 - share) * self.job["seconds"]

    def trial(self, cell, found: dict, one: dict, check, expected):
        """The choice of a candidate that compiles and computes the same; else None."""
        pair = (found["class"], one["plan"])
        if pair in self.skip:
            return None
        choice = {**one, "class": found["class"], "sizes": found["sizes"]}
        choice["text"] = found["text"]
        self.say(trying=[*pair, found["text"], one["kernel"]])
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
        best = max(
            alive, key=lambda plan: -statistics.median(times[plan]), default=None
        )
        result = {"text": found["text"], "candidates": tried, "class": found["class"]}
        if best and len(own) >= LEAST_ROUNDS:
            gain = self.confirm(cell, alive[best])
            if gain:
                self.choices.append(alive[best] | {"gain": gain})
                result |= {"kernel": alive[best]["kernel"], "gain": gain}
        self.done.add(found["class"])
        self.say(**{"class": result, "choices": self.choices, "done": [*self.done]})

    def promising(self, alive: dict, times: dict, own: list) -> dict:
        """Those that may still be faster than the default and the best."""
        best = min((statistics.median(times[p]) for p in alive), default=0)
        kept = {}
        for plan, choice in alive.items():
            low, high = ratio_interval(times[plan], own) or (0, math.inf)
            near = statistics.median(times[plan]) <= 1.02 * best
            if high >= LEAST_GAIN and near:
                kept[plan] = choice
        return kept

    def pairs(self, before, after, rounds: int):
        """Calls both functions in turn; returns their results."""
        times = ([], [])
        sides = list(zip((before, after), times))
        for turn in range(rounds):
            for seconds, into in sides if turn % 2 else sides[::-1]:
                into.append(seconds())
        return times

    def compare(self, cell, before: list, after: list, rounds: int):
        """Times of a step with both lists of choices, in turn."""
        sides = (lambda: self.seconds(cell, before), lambda: self.seconds(cell, after))
        return self.pairs(*sides, rounds)

    def confirm(self, cell, choice: dict) -> float:
        """How much faster a step is with it, measured again; 0 if it is not."""
        sides = (lambda: self.timed(cell, None), lambda: self.timed(cell, choice))
        own, other = self.pairs(*sides, CONFIRM)
        low, high = ratio_interval(other, own)
        gain = statistics.median(own) / statistics.median(other)
        return round(gain, 4) if low > 1 and gain >= LEAST_GAIN else 0.0

    def final(self, cell) -> dict:
        rounds = LEAST_ROUNDS if self.late() else CONFIRM
        own, other = self.compare(cell, [], self.choices, rounds)
        low, high = ratio_interval(other, own)
        return {
            "name": cell.name,
            "before": own,
            "after": other,
            "gain": statistics.median(own) / statistics.median(other),
            "interval": [low, high],
        }


def output(cell):
    import numpy as np

    y = cell.run()[:, -1].astype(cell.mx.float32)
    return np.array(y).astype(np.float64)


def same(cell, expected, most: float) -> None:
    """Throws Differs where a step's outputs are not those of the default plans, up
    to what rounding in some layers makes of them: a router may choose another
    expert, so that where the operation was checked alone much is allowed."""
    import numpy as np

    got = output(cell)
    size = float(np.sqrt(np.mean(expected**2))) or 1.0
    off = float(np.sqrt(np.mean((got - expected) ** 2))) / size
    if not off <= most:
        raise Differs(f"the step's outputs differ by {off:.2g} of their size")


def cells_of(job: dict, model, vocabulary: int):
    """Functions that make the cells."""
    from .cells import Cell

    for kind, rows, *context in job["cells"]:
        size = (kind, rows, *(context or [job["context"]]))
        yield lambda size=size: Cell(model, vocabulary, *size)


def classes_of(cell, software: bool) -> list[dict]:
    """The classes of problems in a step, the most frequent first."""
    output(cell)  # what is made once is planned here
    library.record(True)
    cell.run()
    cell.mx.synchronize()
    found = library.classes()
    if not software:  # whose compiler is slow: a kernel at a time, as it is tried
        library.prepare(MOST_CANDIDATES)
    library.record(False)
    return sorted(found, key=lambda one: -one["calls"])


def tune(job: dict, say) -> None:
    import mlx.core as mx

    from . import cells

    tuner = Tuner(job, say)
    model, vocabulary = cells.load(job)
    mx.eval(mx.zeros(1) + 1)
    tuner.timestamps = library.status()["timestamps"] and not job["software"]
    makes = cells_of(job, model, vocabulary)
    reached = []  # cells and what they plan
    for make in makes:
        if tuner.late(0.75):
            break
        library.use([])
        cell = make()
        found = classes_of(cell, job["software"])
        reached.append((make, found))
        say(at=cell.name)
        for one in found:
            if one["class"] not in tuner.done and len(one["candidates"]) > 1:
                if tuner.late(0.75):
                    break
                tuner.tune_class(cell, one)
        del cell
        mx.clear_cache()
    finish(tuner, reached, say)


def by_hand(found: list[dict]) -> list[dict]:
    """The device's own plans, where a test hook hides them."""
    return [
        {**one, "class": each["class"], "sizes": each["sizes"]}
        for each in found
        for one in each["candidates"]
        if one["view"] == "device"
    ]


def finish(tuner, reached: list, say) -> None:
    """Times each cell with and without the choices, and gives up those of a cell that
    is slower with them."""
    import mlx.core as mx

    measured = []
    for make, found in reached:
        planned = {one["class"] for one in found}
        gone = [c for c in tuner.choices if c["class"] in planned]
        hand = by_hand(found)
        if not gone and not hand:
            continue
        cell = make()
        result = tuner.final(cell)
        if result["interval"][1] < 1:
            tuner.choices = [c for c in tuner.choices if c not in gone]
            for choice in gone:
                tuner.leave_out(choice, f"{cell.name} is slower with it")
            result["given_up"] = True
        if hand:
            ours, theirs = tuner.compare(cell, tuner.choices, hand, CONFIRM)
            result["of_hand"] = statistics.median(theirs) / statistics.median(ours)
        measured.append(result)
        say(cell=result)
        del cell
        mx.clear_cache()
    say(end={"choices": tuner.choices, "cells": measured, "tried": len(reached)})


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
