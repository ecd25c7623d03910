"""What steps learn from other devices' plans and from each other: they are made up, and
take as long as their plans say, with noise of 0.5 %."""

import random
import time

import pytest

from mlx_vulkan.tune import library, steps, worker

DEVICES = dict.fromkeys(("", *steps.DEVICES), "own")


def problem(name: str, m: int = 8, **views: str) -> dict:
    """Views of a device have the default plan, but those that are given."""
    views = DEVICES | views
    candidates = {}
    for view, plan in views.items():
        one = {"view": view, "plan": plan, "kernel": plan}
        candidates.setdefault(plan, one)
    sizes, members = [m, 1, 0], {"m": m, "batch": 1, "n": 64, "k": 64}
    found = {"class": name, "text": name, "sizes": sizes, "members": members}
    found |= {"kind": 0, "calls": 1, "views": views}
    return found | {"candidates": [*candidates.values()]}


class Step:
    """`milliseconds` is a function of the plan of each class."""

    def __init__(self, name: str, classes: list, milliseconds):
        self.name, self.classes, self.milliseconds = name, classes, milliseconds

    def plans(self, choices: list[dict]) -> dict:
        defaults = {one["class"]: "own" for one in self.classes}
        return defaults | {c["class"]: c["plan"] for c in reversed(choices)}


@pytest.fixture
def tuner(monkeypatch):
    job = {"skip": [], "done": [], "choices": [], "undecided": {}, "surveyed": []}
    job |= {"seconds": 1000, "deadline": time.time() + 1000}
    made = worker.Tuner(job | {"software": True, "reached": 0}, lambda **event: None)
    noise, used = random.Random(3), []
    made.timings = 0

    def seconds(cell, choices):
        made.timings += 1
        return cell.milliseconds(cell.plans(choices)) * noise.lognormvariate(0, 0.005)

    def right(cell, found, plans):
        return {
            one["plan"]: worker.choice_of(found, one)
            for one in found["candidates"]
            if one["plan"] in plans
        }

    def classes_of(cell, prepared=0):
        """A product that is dequantized first plans a dense one."""
        plans = cell.plans(used[-1])
        unplanned = {"dense"} if plans.get("product") != "dequantize" else set()
        return [one for one in cell.classes if one["class"] not in unplanned]

    monkeypatch.setattr(library, "use", used.append)
    monkeypatch.setattr(steps, "classes_of", classes_of)
    made.seconds, made.right = seconds, right
    made.same_together = lambda cell, choices: True
    return made


def steps_of(tuner, *cells: Step) -> steps.Steps:
    return steps.Steps(tuner, [lambda c=c: c for c in cells], lambda: None)


def taken(tuner) -> dict:
    return {choice["class"]: choice["plan"] for choice in tuner.choices}


def test_products_that_one_kernel_shares_change_together(tuner):
    def milliseconds(plans):
        several = [plan == "tall" for plan in plans.values()]
        return 2.0 if all(several) else 3.0 + sum(several)

    names = ("query", "key", "value")
    cell = Step("step", [problem(x, amd="tall") for x in names], milliseconds)
    made = steps_of(tuner, cell)
    for one in cell.classes:  # none is found alone
        tuner.tune_class(cell, one)
    assert taken(tuner) == {}
    tuner.done.clear()
    made.survey()
    assert taken(tuner) == dict.fromkeys(names, "tall")
    made.candidates()
    assert taken(tuner) == dict.fromkeys(names, "tall")


def test_what_another_device_plans_too_is_taken_with_it(tuner):
    def milliseconds(plans):
        dense = {"own": 9.0, "tiles": 1.0}[plans["dense"]]
        return {"own": 5.0, "dequantize": dense}[plans["product"]]

    product = problem("product", intel="dequantize")
    dense = problem("dense", intel="tiles", least="loop")
    made = steps_of(tuner, Step("step", [product, dense], milliseconds))
    made.survey()
    assert taken(tuner) == {"product": "dequantize", "dense": "tiles"}
    (_, found) = made.reached[0]
    assert {one["class"] for one in found} == {"product", "dense"}


def test_a_candidate_may_be_the_default_again(tuner):
    costs = {"long": {"own": 8.0, "tall": 4.0}, "short": {"own": 1.0, "tall": 2.0}}

    def milliseconds(plans):
        return sum(costs[name][plan] for name, plan in plans.items())

    classes = [problem(name, nvidia="tall") for name in costs]
    made = steps_of(tuner, Step("step", classes, milliseconds))
    made.survey()
    assert taken(tuner) == dict.fromkeys(costs, "tall")
    made.candidates()
    assert taken(tuner) == {"long": "tall"}


@pytest.mark.parametrize("late", [False, True])
def test_what_is_not_reached_takes_what_won_elsewhere(tuner, late):
    def milliseconds(plans):
        return sum({"own": 3.0, "few": 2.0, "one": 4.0}[p] for p in plans.values())

    views = {"cores/2": "one", "cores*2": "few"}
    cells = [
        Step(f"{m} rows", [problem(f"m{m}", m, **views)], milliseconds) for m in (8, 9)
    ]
    made = steps_of(tuner, *cells)
    made.survey()  # no device has the plan
    assert taken(tuner) == {} and len(made.reached) == 2
    over = lambda share=1.0: share == worker.FIRST and "m8" in tuner.done  # noqa: E731
    tuner.late = over if late else tuner.late
    made.candidates()
    assert taken(tuner) == {"m8": "few"} if late else {"m8": "few", "m9": "few"}
    assert ("m9" in tuner.done) == (not late)
    made.learn()
    assert taken(tuner) == {"m8": "few", "m9": "few"}


def test_what_is_clearly_slower_is_timed_twice(tuner):
    views = {f"view {i}": f"slow {i}" for i in range(12)}

    def milliseconds(plans):
        return {"own": 1.0, "good": 0.9}.get(plans["product"], 1.2)

    found = problem("product", nvidia="good", **views)
    tuner.tune_class(Step("step", [found], milliseconds), found)
    assert taken(tuner) == {"product": "good"}
    least = 12 * 2 + 2 * worker.LEAST_ROUNDS + 2 * worker.CONFIRM
    assert tuner.timings == least
    assert tuner.undecided.get("product", []) == []


def test_plans_that_are_wrong_together_are_left_out(tuner, monkeypatch):
    import mlx.core as mx

    left, used = [], []
    cell = Step("step", [problem("product", amd="tall")], lambda plans: 1.0)
    cell.mx = mx
    cell.run = lambda: mx.ones((1, 2, 4)) * (2 if used[-1] else 1)
    choices = [*tuner.right(cell, cell.classes[0], {"tall"}).values()]
    monkeypatch.setattr(library, "use", used.append)
    monkeypatch.delattr(tuner, "same_together")
    tuner.say = lambda **event: left.append(event.get("left"))
    assert tuner.same_together(cell, []) and not tuner.same_together(cell, choices)
    assert [one["kernel"] for one in left if one] == ["tall"]
