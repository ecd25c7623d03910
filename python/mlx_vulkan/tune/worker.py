"""The process that tunes; __init__.py starts it, and another one where it hangs.

Reads one job, a line of JSON. Writes events, each a line: {"trying": ...} before
each candidate, {"left": ...} for one that is left out, {"timing": ...} before each
time, with its candidates, {"class": ...} with what was found for a class of problems,
{"cell": ...} with times before and after, {"end": ...}.

For each step of the model, candidates for its products, attention and norms are timed
alone. Those that are faster so are tried together in the step, which decides: weights
may lie in caches that a step empties, and what runs side by side hides gains.
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
from .check import ATTENTION, Check, Differs

# Alone, a candidate has to be faster by so much, a step by so much, and both by more
# than noise.
LEAST_ALONE, LEAST_GAIN = 1.03, 1.005
LEAST_ROUNDS, ROUNDS, MOST_ROUNDS = 4, 14, 140  # the most where noise hides a gain
# After two rounds, what was slower by so much than something else is left out.
SLOWER = 1.05
CONFIRM, MOST_PAIRS = 8, 32  # pairs of steps at a time, and in all
# Shares of the time after which nothing is timed alone, and nothing together.
ALONE, TOGETHER = 0.7, 0.85


class Tuner:
    def __init__(self, job: dict, say):
        self.job, self.say = job, say
        self.skip = {tuple(pair) for pair in job["skip"]}
        self.done = set(job["done"])  # problems that were timed alone
        self.good = dict(job["good"])  # what was faster alone for a problem
        self.choices = list(job["choices"])
        self.spent = collections.Counter()  # seconds
        self.noise = {"step": [], "alone": []}  # halves of intervals of gains
        self.deadline = job["deadline"]
        self.timestamps = False
        self.faults = os.environ.get("MLX_VK_TEST_TUNE", "")
        # Tests of later times take a candidate, whether or not it is faster.
        self.takes_any = self.faults.startswith(("hang together", "hang in"))

    @contextlib.contextmanager
    def spends(self, phase: str):
        begun = time.monotonic()
        yield
        self.spent[phase] += time.monotonic() - begun

    def left(self, share: float = 1.0) -> float:
        """Seconds until this share of the time is over."""
        return self.deadline - (1 - share) * self.job["seconds"] - time.time()

    def late(self, share: float = 1.0) -> bool:
        return self.left(share) < 0

    def announce(self, choices: list[dict], when: str) -> None:
        """The candidates that the next time is of: if it hangs, one of them does."""
        texts, kernels = (
            " and ".join(one[name] for one in choices) for name in ("problem", "kernel")
        )
        pairs = [[one["problem"], one["variant"]] for one in choices]
        self.say(timing=[pairs, texts, kernels, when])
        if choices and self.faults == f"hang {when}":
            time.sleep(3600)

    def leave_out(self, choice: dict, why: str) -> None:
        self.say(
            left={"text": choice["problem"], "kernel": choice["kernel"], "why": why}
        )

    def state(self, **more) -> None:
        """Says what another worker would have to know."""
        self.say(choices=self.choices, good=self.good, done=[*self.done], **more)

    def interval(self, kind: str, times: list, own: list) -> tuple[float, float]:
        """The interval of a gain, from 0 where times are few. Its width is noted."""
        low, high = ratio_interval(times, own) or (0, math.inf)
        if low:
            self.noise[kind].append(math.sqrt(high / low) - 1)
        return low, high

    def tune(self, cell, found: list[dict]) -> None:
        """Classes of problems of a step: alone, then together."""
        for one in found:
            if self.late(ALONE):
                break
            if one["problem"] not in self.done and len(one["candidates"]) > 1:
                with self.spends("alone"):
                    self.tune_class(cell.mx, one)
        taken = {(one["problem"], one["variant"]) for one in self.choices}
        good = [self.good[p] for p in (x["problem"] for x in found) if p in self.good]
        good = [c for c in good if (c["problem"], c["variant"]) not in taken]
        with self.spends("together"):
            if good and not self.late(TOGETHER) and self.same_together(cell, good):
                together(self, cell, good)
        for choice in good:  # other steps may have the problem, but not again this
            del self.good[choice["problem"]]
        self.state()

    def tune_class(self, mx, found: dict) -> None:
        library.use([])
        check = Check(mx, found)
        choices = [
            {"problem": found["problem"], **one}
            for one in found["candidates"][1:]
            if (found["problem"], one["variant"]) not in self.skip
        ]
        right = [one for one in choices if check.made and self.right(mx, check, one)]
        best = self.fastest(check, right)
        if best and found["kind"] == ATTENTION and self.slower_at_end(mx, found, best):
            best = None
        self.done.add(found["problem"])
        result = {"problem": found["problem"], "candidates": len(right)}
        if best:
            self.good[found["problem"]] = best
            result |= {name: best[name] for name in ("kernel", "alone")}
        self.state(**{"class": result})

    def right(self, mx, check, choice: dict) -> bool:
        """Whether a candidate compiles and computes the same."""
        pairs = [[choice["problem"], choice["variant"]]]
        self.say(trying=[pairs, choice["problem"], choice["kernel"], ""])
        if self.faults == "hang":
            time.sleep(3600)
        try:
            check.run([choice])
        except Differs as why:
            self.leave_out(choice, f"wrong: {why}")
        except RuntimeError as why:
            if not works(mx):  # the device is lost or stuck, for this process
                raise
            self.leave_out(choice, f"does not run: {str(why)[:300]}")
        else:
            return True
        return False

    def timed_alone(self, check, choices: list[dict], when: str = "alone") -> float:
        self.announce(choices, when)
        return check.seconds(choices, self.timestamps)

    def fastest(self, check, choices: list[dict]) -> dict | None:
        """The candidate with the least time alone, if it is faster than the plan's
        choice."""
        if self.takes_any and choices:
            return choices[0] | {"alone": 1.0}
        own, times = [], [[] for _ in choices]
        alive = [*range(len(choices))]
        gain, low = 0.0, 0.0
        while alive and len(own) < MOST_ROUNDS and not (self.late(ALONE) and own):
            own.append(self.timed_alone(check, []))
            for i in alive if len(own) % 2 else alive[::-1]:
                times[i].append(self.timed_alone(check, [choices[i]]))
            alive = promising(alive, times, own)
            if alive and len(own) >= LEAST_ROUNDS:
                best = min(alive, key=lambda i: statistics.median(times[i]))
                gain = statistics.median(own) / statistics.median(times[best])
                low = (ratio_interval(times[best], own) or (0, 0))[0]
            if low > 1 and len(own) >= ROUNDS:
                break
        if not alive or low <= 1 or gain < LEAST_ALONE:
            return None
        self.interval("alone", times[best], own)
        return choices[best] | {"alone": round(gain, 4)}

    def slower_at_end(self, mx, found: dict, choice: dict) -> bool:
        """Whether a choice of attention is slower with the most keys of its class,
        for which it holds too."""
        keys = found["most_keys"]
        when = f"with {keys} keys"
        library.use([])
        check = Check(mx, found | {"members": found["members"] | {"keys": keys}})
        if not check.made:
            return False
        self.timed_alone(check, [choice], when)  # compiled
        own, other = turns(
            [
                lambda: self.timed_alone(check, [], when),
                lambda: self.timed_alone(check, [choice], when),
            ],
            ROUNDS,
        )
        slower = self.interval("alone", other, own)[1] < 1
        if slower:
            self.leave_out(choice, f"it is slower {when}")
        return slower

    def take(self, choices: list[dict]) -> None:
        """Those in place of what was taken for their problems."""
        problems = {one["problem"] for one in choices}
        kept = [one for one in self.choices if one["problem"] not in problems]
        self.choices = [*kept, *choices]

    def same_together(self, cell, choices: list[dict]) -> bool:
        library.use(self.choices)
        expected = output(cell)
        library.use([*choices, *self.choices])
        self.announce(choices, "together")
        try:
            same(cell, expected)
        except Differs as why:
            for one in choices:
                self.leave_out(one, f"wrong with others: {why}")
            return False
        return True

    def seconds(self, cell, choices: list[dict]) -> float:
        library.use(choices)
        return library.measure(cell.run, self.timestamps) / cell.calls

    def compare(self, cell, *sides: list, rounds: int, when: str):
        """Times of a step with each list of choices, in turn."""

        def timed(choices):
            self.announce(choices, when)
            return self.seconds(cell, choices)

        return turns([lambda c=c: timed(c) for c in sides], rounds)

    def final(self, cell) -> dict:
        """A step's times before and after."""
        rounds = LEAST_ROUNDS if self.late() else CONFIRM
        when = f"in the comparison of {cell.name}"
        own, other = self.compare(cell, [], self.choices, rounds=rounds, when=when)
        return {
            "name": cell.name,
            "before": own,
            "after": other,
            "gain": statistics.median(own) / statistics.median(other),
            "interval": self.interval("step", other, own),
        }


def promising(alive: list[int], times: list, own: list) -> list[int]:
    """Those that may still be faster than the plan's choice, and than the best."""
    if len(own) == 2:
        line = SLOWER * min(max(x) for x in (own, *(times[i] for i in alive)))
        return [i for i in alive if min(times[i]) <= line]
    if len(own) < LEAST_ROUNDS:
        return alive
    near = 1.02 * min(statistics.median(times[i]) for i in alive)
    return [
        i
        for i in alive
        if statistics.median(times[i]) <= near
        and (ratio_interval(times[i], own) or (0, math.inf))[1] >= LEAST_ALONE
    ]


def turns(sides: list, rounds: int) -> list[list[float]]:
    """Calls the functions in turn; returns the results of each."""
    times = [[] for _ in sides]
    calls = list(zip(sides, times))
    for turn in range(rounds):
        for seconds, into in calls if turn % 2 else calls[::-1]:
            into.append(seconds())
    return times


def together(tuner, cell, choices: list[dict]) -> None:
    """Takes those with which the step is faster; else half of them, if that is."""
    if tuner.takes_any:
        return tuner.take(choices)
    before, own, other = tuner.choices, [], []
    low, high = 0, 2
    while low <= 1 and high >= LEAST_GAIN and len(own) < MOST_PAIRS:
        if tuner.late(TOGETHER) and own:
            break
        sides = (before, [*choices, *before])
        times = tuner.compare(cell, *sides, rounds=CONFIRM, when="together")
        own, other = own + times[0], other + times[1]
        low, high = tuner.interval("step", other, own)
    gain = statistics.median(own) / statistics.median(other)
    if low > 1 and gain >= LEAST_GAIN:
        tuner.take([one | {"gain": round(gain, 4)} for one in choices])
        return
    half = len(choices) // 2
    for part in (choices[:half], choices[half:]) if half else ():
        if not tuner.late(TOGETHER):
            together(tuner, cell, part)


def output(cell):
    y = cell.run()[:, -1].astype(cell.mx.float32)
    cell.mx.eval(y)
    return y


def same(cell, expected) -> None:
    """Throws Differs where a step's outputs are not those of the plans' choices. Each
    candidate was checked alone, so that much is allowed: what rounding in some layers
    makes of them, as a router may choose another expert."""
    mx = cell.mx

    def size(x) -> float:
        return mx.sqrt(mx.mean(mx.square(x))).item()

    off = size(output(cell) - expected) / (size(expected) or 1.0)
    if not off <= 0.7:
        raise Differs(f"the step's outputs differ by {off:.2g} of their size")


def cells_of(job: dict, model, vocabulary: int):
    """Functions that make the cells."""
    from .cells import Cell

    for kind, rows, *context in job["cells"]:
        size = (kind, rows, *(context or [job["context"]]))
        yield lambda size=size: Cell(model, vocabulary, *size)


def classes_of(cell, prepared: bool) -> list[dict]:
    """The classes of problems in a step with the choices in force, those of most work
    first; kernels of candidates are built."""
    output(cell)  # what is made once is planned here
    library.record(True)
    cell.run()
    cell.mx.synchronize()
    found = library.classes()
    if prepared:
        library.prepare()
    library.record(False)
    return sorted(found, key=lambda one: -work(one))


def tune(job: dict, say) -> None:
    import mlx.core as mx

    from . import cells

    tuner = Tuner(job, say)
    with tuner.spends("model"):
        model, vocabulary = cells.load(job)
        mx.eval(mx.zeros(1) + 1)
    tuner.timestamps = library.status()["timestamps"] and not job["software"]
    reached = []  # functions that make cells, and the classes that they plan
    for make in cells_of(job, model, vocabulary):
        if tuner.late(ALONE) and len(reached) >= job["reached"]:
            break
        library.use(tuner.choices)
        cell = make()
        say(at=cell.name, reached=len(reached) + 1)
        planned = {}
        # Twice: "dequantize, then a dense product" plans another class.
        for _ in range(2):
            library.use(tuner.choices)
            with tuner.spends("kernels"):
                # A slow compiler builds one at a time, as it is tried.
                found = classes_of(cell, not job["software"])
            found = [one for one in found if one["problem"] not in planned]
            planned |= {one["problem"]: one for one in found}
            tuner.tune(cell, found)
        reached.append((make, planned))
        del cell
        mx.clear_cache()
    finish(tuner, reached, say)


def finish(tuner, reached: list, say) -> None:
    """Times each cell with and without the choices, and gives up those of a cell that
    is slower with them."""
    import mlx.core as mx

    measured = []
    for make, planned in reached:
        gone = [c for c in tuner.choices if c["problem"] in planned]
        if not gone:
            continue
        cell = make()
        say(at=f"the comparison of {cell.name}", reached=0)
        result = tuner.final(cell)
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
    every = {p: one for _, planned in reached for p, one in planned.items()}
    open_ = [p for p, one in every.items() if len(one["candidates"]) > 1]
    end = {"choices": tuner.choices, "cells": measured, "tried": len(reached)}
    end["open"] = len({*open_} - tuner.done)
    end["spent"] = {phase: round(s, 1) for phase, s in tuner.spent.items()}
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
