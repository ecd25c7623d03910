"""The self-test's final report: a table, the failures, a file."""

import json
import os
import shlex
from collections import defaultdict

from rich.console import Console
from rich.table import Table

from .runner import Result

SHOWN = 20

ADVICE = {
    "values": "a kernel computes wrong values on this driver",
    "exception": "the library or the driver refuses",
    "hang": "the GPU got stuck; if it stays so, end its processes or restart",
    "crash": "the driver or the library ended the process",
    "not run": "left out after what failed before",
}


def repeat_command(case_id: str, seed: int, settings: dict) -> str:
    """A command line that repeats one case, with the user's own settings."""
    words = [f"{name}={shlex.quote(value)}" for name, value in settings.items()]
    words += ["mlx-vulkan", "selftest", "--only", shlex.quote(case_id)]
    return " ".join([*words, "--seed", str(seed)])


def own_settings() -> dict:
    """The MLX_VK_* and Vulkan loader variables that the user has set."""
    prefixes = ("MLX_VK_", "VK_")
    return {k: v for k, v in sorted(os.environ.items()) if k.startswith(prefixes)}


def by_family(results: list[Result]) -> dict[str, dict]:
    rows = defaultdict(lambda: {"passed": 0, "failed": 0, "not_run": 0, "seconds": 0.0})
    for result in results:
        row = rows[result.family]
        key = "passed" if result.passed else "failed"
        row["not_run" if result.kind == "not run" else key] += 1
        row["seconds"] += result.seconds
    return {
        name: {**row, "seconds": round(row["seconds"], 2)} for name, row in rows.items()
    }


def make(results: list[Result], run: dict) -> dict:
    """The report as a dictionary. `run` has device, driver, doctor, seed, ...;
    times are in seconds."""
    settings = own_settings()
    failures = [
        {
            "id": result.id,
            "kind": result.kind,
            "text": result.text,
            "seed": run["seed"],
            **result.facts,
            "repeat": repeat_command(result.id, run["seed"], settings),
        }
        for result in results
        if not result.passed
    ]
    measured = {
        result.id.partition("/")[2]: result.facts
        for result in results
        if result.family == "measure" and result.passed
    }
    return {
        "format": 1,
        **run,
        "settings": settings,
        "passed": sum(result.passed for result in results),
        "failed": len(failures),
        "families": by_family(results),
        "failures": failures,
        "measured": measured,
    }


def save(report: dict, path: str) -> None:
    with open(path, "w") as file:
        json.dump(report, file, indent=1)
        file.write("\n")


def show(report: dict, path: str, console: Console) -> None:
    table = Table("family", title=f"{report['device']}, {report['driver']}")
    for name in ("passed", "failed", "not run", "seconds"):
        table.add_column(name, justify="right")
    for name, row in report["families"].items():
        bad = row["failed"] or row["not_run"]
        cells = [row["passed"], row["failed"] or "", row["not_run"] or ""]
        cells = [str(cell) for cell in cells] + [f"{row['seconds']:.1f}"]
        table.add_row(name, *cells, style="red" if bad else None)
    console.print(table)
    if report["measured"]:
        table = Table("measured", show_header=False, title="Measured")
        table.add_column(justify="right")
        table.add_column()
        for name, fact in report["measured"].items():
            table.add_row(name, f"{fact['value']:,.3f}", fact["unit"])
        console.print(table)
    show_failures(report["failures"], console)
    seconds = f"{report['seconds']:.0f} s"
    last = f"{report['passed']:,} passed in {seconds}. Report: {path}"
    if report["failed"]:
        last = (
            f"{report['passed']:,} passed, {report['failed']:,} FAILED in {seconds}. "
            f"Please attach {path} to a bug report."
        )
    console.print(last, soft_wrap=True)


def show_failures(failures: list[dict], console: Console) -> None:
    """The first two of each family and kind, what to do, how to repeat them."""
    seen, shown = defaultdict(int), 0
    for failure in failures:
        kind, text = failure["kind"], failure["text"]
        family = failure["id"].partition("/")[0], kind
        seen[family] += 1
        if seen[family] > 2 or shown == SHOWN:
            continue
        shown += 1
        head = f"[red]{failure['id']}[/red]  {kind}: {ADVICE[kind]}"
        console.print(head, soft_wrap=True)
        for line in (text, f"repeat:  {failure['repeat']}"):
            console.print(f"  {line}", soft_wrap=True, markup=False)
    if len(failures) > shown:
        console.print(f"... and {len(failures) - shown:,} more, all in the report")
