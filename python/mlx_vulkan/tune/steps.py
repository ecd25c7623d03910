"""A model's steps: which are reached, and what they learn from other devices' plans and
from each other."""

import math
from collections import Counter

from . import library
from .worker import (
    FEW_ROUNDS,
    FIRST,
    LEARN,
    MOST_CANDIDATES,
    OF_CELL,
    SURVEY,
    classes_of,
)

DEVICES = ("nvidia", "amd", "intel", "least")
WAYS = len(DEVICES)  # that a step is timed in, of a kind of problems
GATHER = 2  # check.BATCH_GATHER


class Steps:
    def __init__(self, tuner, makes: list, clear_cache):
        self.tuner, self.makes = tuner, makes
        self.reached = []  # functions that make cells, and the classes that they plan
        self.software = tuner.job["software"]
        self.clear_cache = clear_cache

    def survey(self) -> None:
        """All steps with the plans of other devices."""
        known = self.tuner.job["reached"]  # by a worker that was lost
        while len(self.reached) < len(self.makes):
            if self.tuner.late(SURVEY) and len(self.reached) >= known:
                break
            self.reach(SURVEY)
            self.clear_cache()

    def candidates(self) -> None:
        """Steps with one candidate each, while there is time; twice, as a cell may not
        take all of it."""
        tuner = self.tuner
        for share in (OF_CELL, 1.0):
            for i in range(len(self.makes)):
                if tuner.late(FIRST):
                    return
                if i == len(self.reached):
                    cell = self.reach(FIRST)
                elif tuner.open(self.reached[i][1]):
                    cell = self.reached[i][0]()
                else:
                    continue
                end = max(tuner.left(FIRST) * (1 - share), 0)
                # Twice: "dequantize, then a dense product" plans another class.
                for _ in range(2):
                    tuner.tune_classes(cell, self.planned(cell, i), end)
                del cell
                self.clear_cache()

    def learn(self) -> None:
        """Kinds of problems together, as the views see them that won elsewhere: what
        has not been reached, then all, as one kernel may compute several products if
        they are planned alike."""
        tuner = self.tuner
        for classes_in in (tuner.open, list):
            for make, found in self.reached:
                if tuner.late(LEARN):
                    return
                if classes_in(found):
                    cell = make()
                    tuner.say(at=cell.name, reached=0)
                    self.look(cell, classes_in(found), found, self.winners, LEARN)
                    del cell
                    self.clear_cache()

    def reach(self, until: float):
        """The next cell, with the plans of that device with which it is fastest."""
        tuner = self.tuner
        make = self.makes[len(self.reached)]
        library.use(tuner.choices)
        cell = make()
        tuner.say(at=cell.name, reached=len(self.reached) + 1)
        library.use([])
        found = self.classes(cell, WAYS)
        self.reached.append((make, found))
        if cell.name not in tuner.surveyed:
            self.look(cell, tuner.open(found), found, lambda group: DEVICES, until)
            tuner.surveyed.add(cell.name)
            tuner.state()
        return cell

    def classes(self, cell, prepared: int) -> list[dict]:
        """With kernels, but of a slow compiler: one at a time, as it is tried."""
        with self.tuner.spends("kernels"):
            return classes_of(cell, 0 if self.software else prepared)

    def planned(self, cell, i: int) -> list[dict]:
        """The classes of a cell with the choices in force."""
        library.use(self.tuner.choices)
        mine = self.classes(cell, MOST_CANDIDATES)
        found = self.reached[i][1]
        found += unknown(mine, found)
        return mine

    def look(self, cell, classes: list, found: list, views, until: float) -> None:
        """Takes, for each kind of problems, the plans of the view with which the step
        is fastest, if it is faster. Adds to `found` what these plan besides."""
        tuner = self.tuner
        for group in groups(classes):
            if tuner.late(until):
                break
            chosen = distinct(group, views(group), tuner)
            ways, others = {}, {}
            for view in chosen:
                mine = self.seen_as(cell, group, view, chosen)
                if not mine:
                    continue
                tuner.announce(mine)
                library.use([*mine, *tuner.choices])
                others[view] = unknown(classes_of(cell), found)
                mine += self.seen_as(cell, others[view], view, chosen)
                if tuner.same_together(cell, mine):
                    ways[view] = mine
            best, gain, _ = tuner.fastest(cell, ways, FEW_ROUNDS)
            if gain:
                tuner.take(ways[best])
                found += others[best]
                tuner.state()

    def seen_as(self, cell, classes: list[dict], view: str, views) -> list[dict]:
        """A view's plans, those that are right; all views' are checked at once."""
        tuner, made = self.tuner, []
        for one in classes:
            plans = {one["views"][name] for name in views} - {tuner.taken(one)}
            right = tuner.right(cell, one, plans)
            made += [right[plan] for plan in right if plan == one["views"][view]]
        return made

    def winners(self, group: list[dict]) -> list[str]:
        """The views by how often they give what was fastest for this kind of
        problem, above all of about as many rows."""
        tuner, score = self.tuner, Counter()
        known = {one["class"]: one for _, found in self.reached for one in found}
        for one in known.values():
            if one["class"] not in tuner.done or kind(one) != kind(group[0]):
                continue
            near = 1 / (1 + abs(math.log2(rows(one) / rows(group[0]))))
            plan = tuner.taken(one)
            score.update({v: near for v, p in one["views"].items() if p == plan})
        return [view for view, _ in score.most_common()]


def distinct(group: list[dict], views, tuner) -> list[str]:
    """A few views whose plans differ from each other's and from those in force."""
    seen, found = {tuple(tuner.taken(one) for one in group)}, []
    for view in views:
        plans = tuple(one["views"][view] for one in group)
        if plans not in seen and len(found) < WAYS:
            seen.add(plans)
            found.append(view)
    return found


def unknown(classes: list[dict], found: list[dict]) -> list[dict]:
    known = {one["class"] for one in found}
    return [one for one in classes if one["class"] not in known]


def kind(found: dict) -> tuple:
    return found["kind"], found["members"].get("stack") == GATHER


def rows(found: dict) -> int:
    p = found["members"]
    return max(p.get("m", p.get("queries", 1)) * p.get("batch", 1), 1)


def groups(classes: list[dict]) -> list[list[dict]]:
    """By their kind, in the order of the first ones."""
    found = {}
    for one in classes:
        found.setdefault(kind(one), []).append(one)
    return [*found.values()]
