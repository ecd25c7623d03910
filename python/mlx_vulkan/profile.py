"""Run a program under the profiler, or sum up a trace it wrote."""

import json
import os
import shlex
import subprocess
import sys
from collections import defaultdict
from pathlib import Path


def add_arguments(parser) -> None:
    parser.add_argument(
        "--trace", metavar="FILE", help="write a Chrome/Perfetto trace as well"
    )
    parser.add_argument(
        "what", nargs="...", help="a .json trace to sum up, or: -- program arguments"
    )


def run(args) -> int:
    words = [word for word in args.what if word != "--"]
    if not words:
        print("Give a trace file, or `-- program arguments` to run.")
        return 2
    if len(words) == 1 and words[0].endswith(".json"):
        summarize(Path(words[0]))
        return 0
    environment = dict(os.environ, MLX_VK_PROFILE=args.trace or "1")
    if words[0].endswith(".py"):
        words.insert(0, sys.executable)
    print("profiling:", shlex.join(words), file=sys.stderr)
    code = subprocess.run(words, env=environment).returncode
    if args.trace and Path(args.trace).exists():
        summarize(Path(args.trace))
    return code


def summarize(path: Path) -> None:
    """Time per event name and track of a Chrome trace."""
    trace = json.loads(path.read_text())
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
    print(f"{'ms':>10} {'calls':>8}  track / event")
    for (track, name), (calls, ms) in sorted(totals.items(), key=lambda t: -t[1][1]):
        print(f"{ms:10.3f} {calls:8}  {track} / {name}")
