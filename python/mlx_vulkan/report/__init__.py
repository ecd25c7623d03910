"""Test and measure this GPU, and write a report for the project.

Runs the quick self-test and a model with random weights, then times its kernels:
which ran, by which rule, at which fraction of the GPU's limits. Takes a few minutes.
The report has no names of users, hosts or folders; docs/devices.md says where to
send it.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .. import advice, arguments, native, selftest
from ..arguments import Failed, note
from ..bench import report as tables
from ..bench.shapes import SHAPES
from . import kernels, private, summary

EXAMPLES = """
mlx-vulkan report
mlx-vulkan report --shape qwen3-8b --json 8b.json
"""
EXIT = "Exit status: 0, 1 if the report has failures, 2 if there is no device."

FORMAT = 1
PROMPTS = (128, 512)
SECONDS = 1800  # limit of a part, which then counts as hung


def add_arguments(parser) -> None:
    parser.add_argument(
        "--shape",
        choices=sorted(SHAPES),
        default="qwen3-0.6b",
        metavar="SHAPE",
        help="shape of the model, as in `bench model` (default: %(default)s)",
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="PATTERN",
        help="self-test only this family, id, or shell pattern of ids; repeatable",
    )
    parser.add_argument(
        "--json",
        metavar="FILE",
        type=arguments.output,
        default="mlx-vulkan-report.json",
        help="file of the report (default: ./%(default)s)",
    )


class Part:
    """Runs the report's commands, each in a process of its own, which a driver may
    end."""

    def __init__(self, folder: str):
        self.folder = Path(folder)
        self.failures: dict[str, str] = {}

    def run(self, name: str, *words: str, **env: str) -> str:
        """Runs a command and returns its stderr; a failure goes into `failures`."""
        said, why = "", ""
        with open(self.folder / name, "w+") as errors:
            try:
                done = subprocess.run(
                    [sys.executable, "-m", *words],
                    env={"MLX_VK_TIMEOUT": "60,error", **os.environ, **env},
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    timeout=SECONDS,
                )
                why = f"exit status {done.returncode}" if done.returncode else ""
            except subprocess.TimeoutExpired:
                why = f"no end within {SECONDS} s"
            errors.seek(0)
            said = errors.read()
        if why:
            self.failures[name] = f"{why}: {said.strip()[-1000:]}"
        return said

    def load(self, name: str) -> dict:
        """Reads a JSON file that a command wrote; empty if it did not."""
        try:
            return json.loads((self.folder / name).read_text())
        except (OSError, ValueError):
            return {}


def run(args) -> int:
    if native.installed("mlx-lm") is None:
        raise Failed("mlx-lm is missing; run: pip install mlx-lm", 2)
    facts = selftest.doctor()  # not here: this process must go on if a driver hangs
    if advice.selected(facts) is None:
        why = " ".join(facts.get("problems", ())) or facts.get("loader", {}).get("why")
        raise Failed(
            f"There is no Vulkan device: {why}. `mlx-vulkan doctor` says what to do.", 2
        )
    report = measure(args, private.facts(facts))
    try:
        Path(args.json).write_text(json.dumps(report, indent=1) + "\n")
    except OSError as error:
        raise Failed(f"{args.json} cannot be written: {error.strerror}.") from error
    print(summary.text(report))
    print(f"\nPlease attach {os.path.abspath(args.json)} to an issue.")
    return 1 if report["failures"] or report["selftest"].get("failed") else 0


def measure(args, facts: dict) -> dict:
    name = facts["device"]["name"]
    with tempfile.TemporaryDirectory() as folder:
        part = Part(folder)
        checked = check(part, args.only)
        speeds = time_model(part, args.shape)
        found = time_kernels(part, args.shape)
    limits = kernels.limits(name, found)
    matrices = facts["device"]["optional"].get("VK_KHR_cooperative_matrix", False)
    phases = [kernels.describe(p, limits, matrices) for p in found["phases"]]
    for phase in phases:
        phase["step_ms"] = step_ms(phase, speeds)
    report = {
        "format": FORMAT,
        **facts,
        "shape": args.shape,
        "failures": part.failures,
        "selftest": checked,
        "speeds": speeds,
        "limits": limits,
        "suspects": kernels.suspects(phases),
        "phases": phases,
    }
    return private.scrubbed(report)


def check(part: Part, only: list[str] | None) -> dict:
    """Runs the self-test; returns the part of its report that is not elsewhere."""
    note("self-test, about a minute ...")
    words = [f"--only={pattern}" for pattern in only or ()]
    file = part.folder / "selftest.json"
    part.run("selftest", "mlx_vulkan", "selftest", "--quick", f"--json={file}", *words)
    full = part.load("selftest.json")
    if full.get("failed"):
        part.failures.pop("selftest", None)  # the report lists them
    kept = ("passed", "failed", "whole", "seconds", "only", "failures", "measured")
    return {name: full[name] for name in kept if name in full}


def time_model(part: Part, shape: str) -> dict:
    """Tokens per second, and the counts that a decode step adds."""
    note("speed of a model ...")
    file = part.folder / "speeds.json"
    words = ["bench", "model", f"--shape={shape}", "--group-size=64", "-g=64"]
    words += [f"-p={','.join(map(str, PROMPTS))}", "-n=2", f"--json={file}"]
    part.run("speeds", "mlx_vulkan", *words)
    if not part.load("speeds.json"):
        return {}
    _, rows = tables.load(str(file))
    return {row.name: {"value": row.median, "unit": row.unit} for row in rows}


def step_ms(phase: dict, speeds: dict) -> float | None:
    """Milliseconds of a step without the profile, the host's included."""
    if speed := speeds.get(phase["name"], {}).get("value"):
        return phase["tokens"] / speed * 1e3
    return None


def time_kernels(part: Part, shape: str) -> dict:
    """Phases with the events of each, and the paths that the plans took."""
    note("times of kernels ...")
    trace, phases = part.folder / "trace.json", part.folder / "phases.json"
    prompts = ",".join(map(str, PROMPTS))
    said = part.run(
        "kernels",
        *("mlx_vulkan.report.worker", shape, prompts, str(phases)),
        MLX_VK_PROFILE=str(trace),
        MLX_VK_DEBUG="paths",
    )
    plan, events = part.load("phases.json"), part.load("trace.json")
    if not plan or not events:
        return {"phases": [], "limits": {}}
    return kernels.read(plan, events, said)
