"""Show the time per kernel of a program, or of a trace that it wrote.

The program runs with MLX_VK_PROFILE and prints a table of its kernels to stderr
at exit. With --trace, it writes a Chrome/Perfetto trace instead, whose times are
then summed per kernel.
"""

import json
import os
import shlex
import subprocess
from collections import defaultdict
from pathlib import Path

from . import arguments, native
from .arguments import Failed, note
from .run import cannot_run, program_of, words_of

EXAMPLES = """
mlx-vulkan profile -- python generate.py
mlx-vulkan profile --trace trace.json -- python generate.py
mlx-vulkan profile trace.json
"""
EXIT = "Exit status: the program's; 1 if there is no device or no trace."


def add_arguments(parser) -> None:
    parser.usage = (
        "%(prog)s [-h] [--trace FILE] -- PROGRAM [ARGUMENT ...]\n"
        "       %(prog)s [-h] TRACE.json"
    )
    parser.add_argument(
        "--trace",
        metavar="FILE",
        type=arguments.output,
        help="write a Chrome/Perfetto trace to this file",
    )
    parser.add_argument(
        "program",
        nargs="...",
        metavar="TRACE.json | -- PROGRAM",
        help="a trace, or a program and its arguments",
    )


def run(args) -> int:
    words = words_of(args.program)
    if not words:
        raise Failed("Give a trace, or `-- PROGRAM ARGUMENTS`.", 2)
    if len(words) == 1 and words[0].endswith(".json"):
        if args.trace:
            raise Failed("--trace is for a program, not for a trace.", 2)
        summarize(Path(words[0]))
        return 0
    program, words = program_of(words)
    native.require_device()
    # The program may run in another folder.
    trace = Path(args.trace).absolute() if args.trace else None
    before = written(trace)
    environment = dict(os.environ, MLX_VK_PROFILE=str(trace or 1))
    note(f"profiling: {shlex.join(words)}")
    try:
        code = subprocess.run(words, executable=program, env=environment).returncode
    except OSError as error:
        raise cannot_run(program, error) from error
    code = code if code >= 0 else 128 - code  # as in a shell
    if trace and written(trace) == before:
        raise Failed(f"{words[0]} has written no trace to {trace}.", code or 1)
    if trace:
        summarize(trace)
        print(f"trace: {trace} (open it in https://ui.perfetto.dev)")
    return code


def written(trace: Path | None) -> int | None:
    """The time of the last change, or None."""
    return trace.stat().st_mtime_ns if trace and trace.exists() else None


def summarize(path: Path) -> None:
    """Prints time per event name and track of a Chrome trace. Throws Failed."""
    from rich.table import Table

    from .bench.report import console

    try:
        totals = sums(json.loads(path.read_text()))
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Failed(
            f"{path} is not a Chrome trace ({type(error).__name__}: {error})."
        ) from error
    if not totals:
        raise Failed(f"{path} has no events: its program did not use the device.")
    table = Table(title=str(path))
    for column, justify in (("ms", "right"), ("calls", "right"), ("track", "left")):
        table.add_column(column, justify=justify)
    table.add_column("event", overflow="fold")
    for (track, name), (calls, ms) in sorted(totals.items(), key=lambda t: -t[1][1]):
        table.add_row(f"{ms:,.3f}", f"{calls:,}", str(track), name)
    console().print(table, markup=False)


def sums(trace) -> dict:
    """Calls and milliseconds of each track and event name."""
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    tracks = {
        (e.get("pid"), e.get("tid")): e["args"]["name"]
        for e in events
        if e.get("ph") == "M" and e.get("name") == "thread_name"
    }
    totals = defaultdict(lambda: [0, 0.0])
    for event in events:
        if event.get("ph") == "X":
            track = tracks.get((event.get("pid"), event.get("tid")), event.get("tid"))
            entry = totals[(track, event["name"])]
            entry[0] += 1
            entry[1] += event.get("dur", 0) / 1e3
    return totals
