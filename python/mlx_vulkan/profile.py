"""Run a program under the profiler, or sum up a trace it wrote."""

import json
import os
import shlex
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from . import arguments
from .run import NOT_EXECUTABLE, NotRun, program_of, words_of


def add_arguments(parser) -> None:
    parser.add_argument(
        "--trace",
        metavar="FILE",
        type=arguments.output,
        help="write a Chrome/Perfetto trace as well",
    )
    parser.add_argument(
        "what", nargs="...", help="a .json trace to sum up, or: -- program arguments"
    )


def run(args) -> int:
    words = words_of(args.what)
    if not words:
        print("Give a trace file, or `-- program arguments` to run.")
        return 2
    if len(words) == 1 and words[0].endswith(".json"):
        if args.trace:
            print("--trace is for a program, not for a trace.")
            return 2
        return summarize(Path(words[0]))
    try:
        program, words = program_of(words)
    except NotRun as error:
        return fail(str(error), error.code)
    # The program may run in another folder.
    trace = Path(args.trace).absolute() if args.trace else None
    before = written(trace)
    environment = dict(os.environ, MLX_VK_PROFILE=str(trace or 1))
    print("profiling:", shlex.join(words), file=sys.stderr)
    try:
        code = subprocess.run(words, executable=program, env=environment).returncode
    except OSError as error:
        return fail(f"{program} cannot be run: {error.strerror}", NOT_EXECUTABLE)
    code = code if code >= 0 else 128 - code  # as in a shell
    if trace and written(trace) == before:
        return fail(f"{words[0]} has written no trace to {trace}.", code or 1)
    summed = summarize(trace) if trace else 0
    return code or summed


def written(trace: Path | None) -> int | None:
    """When; None if there is none."""
    return trace.stat().st_mtime_ns if trace and trace.exists() else None


def fail(sentence: str, code: int) -> int:
    print(f"mlx-vulkan profile: {sentence}", file=sys.stderr)
    return code


def summarize(path: Path) -> int:
    """Prints time per event name and track of a Chrome trace; the exit status."""
    try:
        totals = sums(json.loads(path.read_text()))
    except OSError as error:
        print(f"{path} cannot be read: {error.strerror}.")
        return 1
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"{path} is no Chrome trace ({type(error).__name__}: {error}).")
        return 1
    print(f"{'ms':>10} {'calls':>8}  track / event")
    for (track, name), (calls, ms) in sorted(totals.items(), key=lambda t: -t[1][1]):
        print(f"{ms:10.3f} {calls:8}  {track} / {name}")
    return 0


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
