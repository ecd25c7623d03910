"""Check the results of this GPU and driver against the CPU.

Runs every family of kernels in worker processes, so that a hang or a crash of
the driver is a result too, and writes a report to attach to an issue. Takes
about a minute on a GPU.
"""

import os
import signal
import sys
import time

from .. import arguments
from ..arguments import Failed, note

# Depths: every dtype and layout covered, less than that, everything.
USUAL, QUICK, FULL = "usual", "quick", "full"

# Seconds without progress that the library grants a batch, and that the runner
# grants a worker; software devices get three times as many.
LIBRARY_LIMIT, RUNNER_LIMIT = 10, 40


EXAMPLES = """
mlx-vulkan selftest
mlx-vulkan selftest --quick
mlx-vulkan selftest --only matmul --json matmul.json
"""
EXIT = "Exit status: 0 if every case passed, 1 if not, 2 if nothing could run."


def add_arguments(parser) -> None:
    parser.add_argument(
        "--only",
        action="append",
        metavar="PATTERN",
        help="run only this family, id, or shell pattern of ids; repeatable",
    )
    seeds = arguments.at_least(0, most=2**64 - 1)
    parser.add_argument(
        "--seed",
        type=seeds,
        default=0,
        metavar="N",
        help="seed of the random inputs (default: %(default)s)",
    )
    parser.add_argument(
        "--list", action="store_true", help="print the ids and run nothing"
    )
    depth = parser.add_mutually_exclusive_group()
    depth.add_argument(
        "--quick",
        action="store_const",
        const=QUICK,
        dest="depth",
        help="run fewer dtypes, layouts and modes",
    )
    depth.add_argument(
        "--full",
        action="store_const",
        const=FULL,
        dest="depth",
        help="run every dtype and layout: about 17,000 cases",
    )
    parser.set_defaults(depth=USUAL)
    parser.add_argument(
        "--jobs",
        type=arguments.at_least(1),
        metavar="N",
        help="number of worker processes (default: half the cores, at most 6, or 2 on "
        "a software device)",
    )
    parser.add_argument(
        "--json",
        metavar="FILE",
        default="mlx-vulkan-selftest.json",
        help="file of the report (default: ./%(default)s)",
    )
    parser.add_argument(
        "--limit",
        type=arguments.at_least(1, float),
        metavar="SECONDS",
        help="time without progress after which a case counts as a hang "
        f"(default: {RUNNER_LIMIT}, {3 * RUNNER_LIMIT} on a software device)",
    )


def default_jobs(software: bool) -> int:
    """Workers compile kernels most of the time, a core each; every one has a
    context on the GPU."""
    cores = len(os.sched_getaffinity(0))
    return min(2, cores) if software else min(6, max(1, cores // 2))


def doctor() -> dict:
    """Runs `mlx-vulkan doctor --json` in a process of its own, which may hang."""
    import json
    import subprocess

    command = [sys.executable, "-m", "mlx_vulkan", "doctor", "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return {"problems": ["doctor does not end within 120 s: the driver hangs."]}
    try:
        return json.loads(done.stdout)
    except ValueError:
        text = (done.stderr or done.stdout).strip()[-1000:]
        return {"problems": [f"doctor ends with status {done.returncode}: {text}"]}


def selected(facts: dict) -> dict | None:
    return next((d for d in facts.get("devices", ()) if d.get("selected")), None)


def worker_env(mode, software: bool) -> dict:
    """The user's environment and the mode's settings, without silent fallbacks, and
    with an exception that names the kernel if a batch makes no progress."""
    factor = 3 if software else 1
    env = {
        "MLX_ENABLE_TF32": "0",
        **os.environ,
        "MLX_VK_FALLBACK": "deny",
        "MLX_VK_TIMEOUT": f"{factor * LIBRARY_LIMIT},error",
    }
    env |= mode.settings
    words = [os.environ.get("MLX_VK_DEBUG"), "watch", mode.settings.get("MLX_VK_DEBUG")]
    env["MLX_VK_DEBUG"] = ",".join(word for word in words if word)
    return env


def run(args) -> int:
    from . import plan

    facts = {} if args.list else doctor()
    device = selected(facts)
    if not args.list and device is None:
        reasons = " ".join(facts.get("problems", ()))
        reasons = reasons or facts.get("loader", {}).get("why", "") + "."
        raise Failed(
            f"There is no GPU to test: {reasons} `mlx-vulkan doctor` says what to do; "
            "MLX_VK_DEVICE=cpu tests a software device.",
            2,
        )
    software = device is not None and device.get("type") == "cpu"
    if args.only:
        chosen = plan.matching(args.only, args.depth, software)
    else:
        chosen = plan.select(args.depth, software)
    if not chosen:
        raise Failed(
            f"Nothing matches {' '.join(args.only)}; --list prints all ids.", 2
        )
    if args.list:
        for mode, cases in chosen:
            for case in cases:
                print(mode.id_of(case))
        return 0
    return run_plan(chosen, args, facts, device)


def run_plan(chosen, args, facts: dict, device: dict) -> int:
    """Runs the modes, reports; 0 only if every case passed."""
    from rich.console import Console

    from . import report

    try:
        open(args.json, "a").close()
    except OSError as error:
        raise Failed(
            f"The report cannot be written: {error}. Choose another --json FILE.", 2
        ) from error
    console, started = Console(highlight=False), time.monotonic()
    software = device.get("type") == "cpu"
    jobs = args.jobs or default_jobs(software)
    results, whole = execute(chosen, args, jobs, software, console)
    about = {
        "device": device.get("name"),
        "driver": device.get("driver"),
        "seed": args.seed,
        "depth": args.depth,
        "jobs": jobs,
        "only": args.only or [],
        "whole": whole,
        "seconds": round(time.monotonic() - started, 1),
        "versions": {**facts.get("packages", {}), "python": facts.get("python")},
        "modes": {mode.name or "plain": mode.about for mode, _ in chosen},
        "doctor": facts,
    }
    made = report.make(results, about)
    report.save(made, args.json)
    report.show(made, os.path.abspath(args.json), console)
    if not whole:
        note("Interrupted: the report has the cases that ran.")
    return 1 if made["failed"] or not whole else 0


def interrupted(number, frame):
    raise KeyboardInterrupt


def execute(chosen, args, jobs: int, software: bool, console) -> tuple[list, bool]:
    """Runs all modes in turn; returns the results, and whether all ran: SIGINT and
    SIGTERM end it early."""
    from . import runner
    from .progress import Bar, Lines

    results, totals, order = [], {}, {}
    for mode, cases in chosen:
        for case in cases:
            part = case.family, mode.name
            totals[part] = totals.get(part, 0) + 1
            order[mode.id_of(case)] = len(order)
    shown = Bar(console, totals) if console.is_terminal else Lines(totals)

    def progress(result) -> None:
        results.append(result)
        shown.add(result)

    limit = args.limit or RUNNER_LIMIT * (3 if software else 1)
    workers = runner.Runner(args.seed, limit, progress, jobs=jobs)
    before = signal.signal(signal.SIGTERM, interrupted)
    whole = True
    try:
        with shown:
            for mode, cases in chosen:
                ids = [mode.id_of(case) for case in cases]
                workers.run(ids, worker_env(mode, software), mode.repeats)
    except KeyboardInterrupt:
        whole = False
    finally:
        signal.signal(signal.SIGTERM, before)
    return sorted(results, key=lambda result: order[result.id]), whole
