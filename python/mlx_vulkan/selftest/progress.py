"""Progress of the self-test: a bar, or lines without a terminal."""

from collections import Counter

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from .runner import Result

# Cases of each family and mode.
Totals = dict[tuple[str, str], int]


class Bar:
    """One bar for all cases, shown within a context."""

    def __init__(self, console, totals: Totals):
        self.bar = Progress(
            TextColumn("{task.description:<32}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]}", style="red"),
            console=console,
            transient=True,
        )
        self.task = self.bar.add_task("", total=sum(totals.values()), failed="")
        self.failed = 0

    def __enter__(self):
        self.bar.start()

    def __exit__(self, *error):
        self.bar.stop()

    def add(self, result: Result) -> None:
        self.failed += not result.passed
        self.bar.update(
            self.task,
            advance=1,
            description=f"{result.family} {result.id.partition('@')[2]}",
            failed=f"{self.failed} failed" if self.failed else "",
        )


class Lines:
    """A line for each family that ends in a mode, and for each failure at once, so that
    an aborted run shows its progress."""

    def __init__(self, totals: Totals):
        self.left = dict(totals)
        self.counts = {part: Counter() for part in totals}
        self.seconds = Counter()

    def __enter__(self):
        pass

    def __exit__(self, *error):
        pass

    def add(self, result: Result) -> None:
        part = result.family, result.id.partition("@")[2]
        kind = result.kind if result.kind in ("", "not run") else "FAILED"
        self.counts[part][kind or "passed"] += 1
        self.seconds[part] += result.seconds
        self.left[part] -= 1
        if kind == "FAILED":
            print(f"{result.id}  {result.kind}", flush=True)
        if self.left[part] == 0:
            counts = self.counts[part].items()
            words = ", ".join(f"{n} {outcome}" for outcome, n in counts)
            name = "@".join(filter(None, part))
            print(f"{name}: {words}, {self.seconds[part]:.1f} s", flush=True)
