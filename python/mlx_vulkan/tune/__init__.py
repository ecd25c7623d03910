"""Let plans of products and attention learn what is fast on this GPU.

Times alternatives to the kernels of a model's steps on this GPU, and keeps for later
processes those that are faster and compute the same.
"""

import datetime
import json
import os
import statistics
import sys
import time
from pathlib import Path

from .. import __version__, arguments, models, native
from ..arguments import Failed
from ..layout import heading, wrapped
from ..selftest.process import Worker, signal_name
from . import library, table

EXAMPLES = """
mlx-vulkan tune mlx-community/Qwen3-0.6B-4bit
mlx-vulkan tune --shape qwen3-8b --minutes 2 --json tuned.json
mlx-vulkan tune --show
mlx-vulkan tune --export my-gpu.json      # to attach to an issue
mlx-vulkan tune --reset
"""
EXIT = (
    "Exit status: 1 if the model could not be tuned; the earlier table stays in force."
)
WORKER = (sys.executable, "-m", "mlx_vulkan.tune.worker")
# Seconds without an event after which a candidate is taken to hang, also where
# kernels compile for long; and in which a model is made or a step of defaults ends.
PATIENCE, SOFTWARE_PATIENCE, START = 60, 300, 600
LOSSES = 4  # of workers, until the device is given up
STATE = ("choices", "good", "done")  # that a worker goes on from
SMALL = (("decode", 1), ("prompt", 16))  # cells of software devices


def add_arguments(parser) -> None:
    from ..bench.model import BITS
    from ..bench.shapes import SHAPES

    tasks = parser.add_mutually_exclusive_group(required=True)
    tasks.add_argument("model", nargs="?", metavar="MODEL", help=models.HELP)
    tasks.add_argument(
        "--shape",
        choices=sorted(SHAPES),
        metavar="SHAPE",
        help="random weights of a shape of `mlx-vulkan bench model`",
    )
    tasks.add_argument(
        "--show", action="store_true", help="print what this GPU was tuned to"
    )
    tasks.add_argument(
        "--reset", action="store_true", help="forget it: plans choose by default again"
    )
    tasks.add_argument(
        "--export", metavar="FILE", type=arguments.output, help="write it to this file"
    )
    tasks.add_argument(
        "--import",
        dest="take",
        metavar="FILE",
        help="take it from this file, of the same GPU and driver",
    )
    parser.add_argument(
        "--minutes",
        type=arguments.at_least(0, float),
        default=2,
        help="how long to tune (default: %(default)s)",
    )
    parser.add_argument(
        "--bits", type=int, choices=BITS, default=4, help="of a shape (default: 4)"
    )
    parser.add_argument(
        "--json",
        metavar="FILE",
        type=arguments.output,
        help="write all times and choices to this file",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE.png",
        type=arguments.picture,
        help="plot times before and after (needs matplotlib)",
    )


def run(args) -> int:
    native.require_device()
    if args.show:
        return table.show(library.status())
    if args.reset:
        return table.reset()
    if args.export:
        return table.export(args.export)
    if args.take:
        return table.take(args.take)
    return tune(args)


def job_of(args) -> dict:
    from .cells import CELLS, CONTEXT, SHORT

    device = next(d for d in native.report()["devices"] if d["selected"])
    software = device["type"] == "cpu"
    seconds = args.minutes * 60
    return {
        "shape": args.shape,
        "model": args.model,
        "bits": args.bits,
        "software": software,
        "cells": SMALL if software else CELLS,
        "context": SHORT if software else CONTEXT,
        "seconds": seconds,
        "deadline": time.time() + seconds,
        "skip": [],
        "choices": [],
        "done": [],
        "good": {},
        "reached": 0,  # cells
    }


class Tuning:
    """Follows workers until one ends."""

    def __init__(self, job: dict, status):
        self.job, self.status = job, status
        self.left, self.classes, self.losses = [], {}, 0
        self.at = "making the model"

    def run(self) -> dict:
        """The last event. Throws Failed."""
        while True:
            end = self.follow()
            if end:
                return end
            self.losses += 1
            if self.losses >= LOSSES:
                raise Failed(
                    f"The device was lost {LOSSES} times; nothing was changed. "
                    + "; ".join(f"{x['kernel']}: {x['why']}" for x in self.left)
                )

    def follow(self) -> dict | None:
        """One worker; None if it was lost."""
        # A kernel that never ends becomes an error of the worker.
        env = {**os.environ, "MLX_VK_TIMEOUT": "20,error"}
        if self.losses:
            env.pop("MLX_VK_TEST_TUNE", None)
        worker = Worker(WORKER, env)
        worker.send(self.job)
        trying, why, hangs = None, "", False
        patience = SOFTWARE_PATIENCE if self.job["software"] else PATIENCE
        patience = float(os.environ.get("MLX_VK_TEST_PATIENCE", patience))
        try:
            while True:
                event = worker.next(patience if trying else START)
                if event is None:
                    why = signal_name(worker.process.poll())
                    break
                if "failed" in event:
                    why = event["failed"]
                    break
                if "end" in event:
                    worker.stop()
                    return event["end"]
                trying = self.take(event)
        except TimeoutError:
            hangs, why = True, f"nothing happened for {patience:.0f} s"
            worker.kill()
        words = worker.last_words()
        worker.stop()
        pairs, text, kernel, when = trying or ([], "", "", "")
        if hangs:
            why = f"hangs{when and ' '}{when}: {why}"
        if not pairs:
            why = f"{self.at}, with the kernels by default: {why}"
            raise Failed(f"The model could not be tuned: {why}. {words}".strip())
        self.job["skip"] += pairs
        self.job["choices"] = [
            one
            for one in self.job["choices"]
            if [one["problem"], one["variant"]] not in pairs
        ]
        for problem, _ in pairs:
            self.job["good"].pop(problem, None)
        self.left.append({"text": text, "kernel": kernel, "why": why})
        self.status(f"left out: {kernel}: {why}")
        return None

    def take(self, event: dict):
        """Notes an event; the candidate that is being tried after it."""
        if "trying" in event:
            self.status(event["trying"][1])
            return event["trying"]
        if "timing" in event:
            return event["timing"]
        if "left" in event:
            self.left.append(event["left"])
            self.status(f"left out: {event['left']['kernel']}: {event['left']['why']}")
        if "class" in event:
            one = event["class"]
            self.classes[one["problem"]] = one
        if "choices" in event:
            self.job |= {name: event[name] for name in STATE}
        if "at" in event:
            self.at = event["at"]
            self.status(self.at)
            self.job["reached"] = max(self.job["reached"], event["reached"])
        return None


def tune(args) -> int:
    from rich.console import Console

    models.require_mlx_lm()
    if args.model:
        models.folder_of(args.model)
    if library.status()["disabled"]:
        raise Failed("MLX_VK_DISABLE=tuned switches off what would be found.", 2)
    console = Console(stderr=True)
    begun = time.time()
    with console.status("making the model") as line:
        tuning = Tuning(job_of(args), line.update)
        end = tuning.run()
    made = {
        "choices": end["choices"],
        "cells": end["cells"],
        "noise": end["noise"],
        "model": args.shape or args.model,
        "when": datetime.datetime.now(datetime.timezone.utc).isoformat()[:16],
        "version": __version__,
        "seconds": round(time.time() - begun, 1),
    }
    report(made, end, tuning)
    files(args, made, end, tuning)
    # Other models' choices stay, and those of the chip's rows.
    old = table.choices_of(library.status())
    mine = {c["problem"] for c in end["choices"]} | set(tuning.job["done"])
    kept = [c for c in old if c["problem"] not in mine]
    if end["tried"]:
        table.store(made | {"choices": [*made["choices"], *kept]})
    return 0


def report(made: dict, end: dict, tuning: Tuning) -> None:
    heading(f"{made['model']}, {made['seconds']:.0f} s")
    print(f"  {'step':<14} {'before ms':>10} {'after ms':>10} {'faster':>8}")
    for cell in made["cells"]:
        before, after = (statistics.median(cell[s]) for s in ("before", "after"))
        note = "  (slower: given up)" if cell.get("given_up") else ""
        print(
            f"  {cell['name']:<14} {before * 1e3:>10.3f} {after * 1e3:>10.3f} "
            f"{cell['gain']:>8.3f}{note}"
        )
    if not end["tried"]:
        print("  No step was reached in this time: give it more --minutes.")
    elif not made["cells"]:
        print("  The default plans are the fastest.")
    heading("Kernels")
    for choice in made["choices"]:
        print(wrapped(f"{choice['problem']}:", "  ", "      "))
        print(wrapped(f"{choice['kernel']} ({choice['variant']})", "    ", "      "))
    for kind, half in made["noise"].items():
        timed = "a step" if kind == "step" else "a product or attention alone"
        print(f"  noise of {timed}: {100 * half:.1f} % (half an interval of 99 %)")
    tried = sum(one["candidates"] for one in tuning.classes.values())
    print(
        f"  {tried} candidates of {len(tuning.classes)} problems in "
        f"{end['tried']} steps; {len(made['choices'])} taken"
    )
    if end["open"]:
        print(f"  {end['open']} problems were not reached: give it more --minutes.")
    if tuning.left:
        heading("Left out")
    for one in tuning.left:
        print(wrapped(f"{one['kernel']}: {one['why']}", "  ", "      "))


def files(args, made: dict, end: dict, tuning: Tuning) -> None:
    head = library.status()
    head = {name: head[name] for name in ("device", "driver")}
    more = {"left_out": tuning.left, "problems": [*tuning.classes.values()]}
    more |= {name: end[name] for name in ("open", "spent")}
    if args.json:
        text = json.dumps({**head, **made, **more}, indent=1)
        Path(args.json).write_text(text + "\n")
        print(f"json: {os.path.abspath(args.json)}")
    if args.plot:
        from ..bench import plots
        from ..bench import report as bench

        rows = [
            bench.Row(f"{cell['name']} {side}", "ms", [s * 1e3 for s in cell[side]])
            for cell in made["cells"]
            for side in ("before", "after")
        ]
        if rows:
            plots.plot(args.plot, bench.about(), rows, {})
            print(f"plot: {os.path.abspath(args.plot)}")
