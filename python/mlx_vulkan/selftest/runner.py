"""Runs cases in worker processes, which may hang or crash without harm here."""

import dataclasses
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed

from .process import Worker, signal_name

WORKER = (sys.executable, "-m", "mlx_vulkan.selftest.worker")
# A family that loses this many workers is given up: each loss costs the limit.
# So is the device, after this many losses with no case passed in between.
LOSSES, LOSSES_IN_A_ROW = 3, 6
# Families whose results other work would distort: one worker, after all others.
ALONE = ("measure",)
# How long a case takes where drivers compile for long, in units of 50 ms (H200);
# most are 1. A family of more than PIECE units is dealt out in pieces.
WEIGHT = {"model": 160, "attention": 9, "attention_vjp": 12}
WEIGHT.update({"quantized_matmul": 3, "matmul": 3, "scan": 2})
PIECE = 160
# Ids in one line to a worker, which must fit into a pipe.
CHUNK = 400


def family_of(case_id: str) -> str:
    return case_id.partition("/")[0]


@dataclasses.dataclass
class Result:
    """The result of a case. kind: "", values, exception, hang, crash, not run."""

    id: str
    kind: str = ""
    text: str = ""
    seconds: float = 0.0
    facts: dict = dataclasses.field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return not self.kind

    @property
    def family(self) -> str:
        return family_of(self.id)


def pieces(ids: list[str]) -> list[deque]:
    """Pieces of adjacent cases of a family, which share kernels; the longest first."""
    found = {}
    for case in ids:
        weight = WEIGHT.get(family_of(case), 1)
        of_family = found.setdefault(family_of(case), [])
        if not of_family or len(of_family[-1]) * weight >= PIECE:
            of_family.append(deque())
        of_family[-1].append(case)
    return sorted(
        (piece for family in found.values() for piece in family),
        key=lambda piece: -len(piece) * WEIGHT.get(family_of(piece[0]), 1),
    )


def result_of(event: dict) -> Result:
    failure = event["failure"] or {}
    return Result(
        event["end"],
        failure.get("kind", ""),
        failure.get("text", ""),
        event["seconds"],
        event["facts"],
    )


def is_stuck(result: Result) -> bool:
    """Whether another process on the same device may have caused the failure."""
    return result.kind == "hang" or "DEVICE_LOST" in result.text


@dataclasses.dataclass
class Lane:
    """State of a thread: its remaining cases of a family, the worker, the case that
    runs and since when (seconds of the monotonic clock)."""

    pending: deque = dataclasses.field(default_factory=deque)
    worker: Worker | None = None
    flying: str | None = None
    began: float = 0.0
    # The case to which a loss of the worker is attributed.
    blamed: str | None = None


class Runner:
    """Runs lists of cases, one list after the other, in up to `jobs` workers at a
    time. limit: seconds without a sign of life after which a worker is killed.
    progress is called by the threads that wait for workers, one at a time."""

    def __init__(
        self,
        seed: int,
        limit: float,
        progress: Callable[[Result], None] = lambda result: None,
        command=WORKER,
        jobs: int = 1,
    ):
        self.seed, self.limit, self.jobs = seed, limit, jobs
        self.progress, self.command = progress, command
        self.lock = threading.RLock()
        self.losses = Counter()
        self.in_a_row = 0
        self.given_up = ""  # reason why nothing more is run
        self.suspect = None  # the last case to get stuck first, and when it ended
        self.retried = set()
        self.stopping = False
        self.lanes: list[Lane] = []

    def run(self, ids: list[str], env: dict, repeats: int) -> list[Result]:
        """Runs the cases, the longest pieces first."""
        results = []
        for alone in (False, True):
            chosen = [case for case in ids if (family_of(case) in ALONE) == alone]
            queue = deque(pieces(chosen))
            if queue:
                count = 1 if alone else min(self.jobs, len(queue))
                self.run_queue(queue, count, env, repeats, results)
        return results

    def run_queue(self, queue: deque, count: int, env, repeats, results) -> None:
        self.lanes = [Lane() for _ in range(count)]
        with ThreadPoolExecutor(count) as pool:
            try:
                threads = [
                    pool.submit(self.serve, lane, queue, env, repeats, results)
                    for lane in self.lanes
                ]
                for thread in as_completed(threads):
                    thread.result()
            except BaseException:
                self.end()
                raise

    def end(self) -> None:
        with self.lock:
            self.stopping = True
            for lane in self.lanes:
                if lane.worker:
                    lane.worker.kill()

    def done(self, result: Result, results: list) -> None:
        with self.lock:
            if self.stopping:
                return
            results.append(result)
            self.in_a_row = 0 if result.passed else self.in_a_row
            self.progress(result)

    def refill(self, lane: Lane, queue: deque, results: list) -> bool:
        """Gives the lane its next family; False if none is left. Families that were
        given up are dropped."""
        with self.lock:
            while not self.stopping:
                self.drop_given_up(lane.pending, results)
                if lane.pending:
                    return True
                if not queue:
                    return False
                lane.pending = queue.popleft()
        return False

    def drop_given_up(self, pending: deque, results: list) -> None:
        for _ in range(len(pending)):
            case = pending.popleft()
            if self.given_up:
                why = self.given_up
            elif self.in_a_row >= LOSSES_IN_A_ROW:
                why = f"{self.in_a_row} workers were lost before, one after another"
            elif self.losses[family_of(case)] >= LOSSES:
                why = f"{LOSSES} workers were lost in this family before"
            else:
                pending.append(case)
                continue
            self.done(Result(case, "not run", why), results)

    def serve(self, lane: Lane, queue: deque, env, repeats: int, results) -> None:
        """A thread's work: runs one worker after the other until nothing is left."""
        idle_starts = 0
        while self.refill(lane, queue, results):
            with self.lock:
                if self.stopping:
                    return
                lane.worker = Worker(self.command, env)
            began, trouble = self.follow(lane, queue, repeats, results)
            idle_starts = 0 if began else idle_starts + 1
            if idle_starts == 2 and not self.given_up:
                self.given_up = f"workers end before their first case: {trouble}"

    def follow(self, lane: Lane, queue, repeats: int, results) -> tuple[bool, str]:
        """Removes from `lane.pending` what a worker finishes; returns whether it began
        a case, and why it ended early."""
        worker, timed_out, any_began = lane.worker, False, False
        lane.flying = lane.blamed = None

        def send() -> None:
            ids = [case for case, _ in zip(lane.pending, range(CHUNK))]
            worker.send({"ids": ids, "seed": self.seed, "repeats": repeats})

        send()
        try:
            while True:
                try:
                    event = worker.next(self.limit)
                except TimeoutError:
                    timed_out = True
                    worker.kill()
                    break
                if event is None:
                    break
                if "begin" in event:
                    any_began = True
                    lane.began, lane.flying = time.monotonic(), event["begin"]
                    lane.blamed = lane.flying
                elif "end" in event:
                    lane.flying = None
                    self.settle(lane, result_of(event), results)
                elif self.refill(lane, queue, results):
                    send()
                else:
                    worker.close()
        except BaseException:
            worker.kill()
            raise
        finally:
            lost = not worker.closed
            status = worker.stop()
        how = f"no sign of life for {self.limit:g} s" if timed_out else ""
        how = how or signal_name(status)
        words = worker.last_words()
        text = how + (f"; its last words: {words}" if words else "")
        if lane.flying:
            kind = "hang" if timed_out else "crash"
            seconds = self.limit if timed_out else 0.0
            self.settle(lane, Result(lane.flying, kind, text, seconds), results)
        if lost and lane.blamed:
            self.count_loss(lane.blamed)
        lane.flying = lane.worker = None
        return any_began, text

    def count_loss(self, case_id: str) -> None:
        with self.lock:
            self.losses[family_of(case_id)] += 1
            self.in_a_row += 1

    def settle(self, lane: Lane, result: Result, results: list) -> None:
        """Records the result of the lane's case, or requeues it: a case that got stuck
        while another process's did runs once more."""
        with self.lock:
            lane.pending.remove(result.id)
            if is_stuck(result) and not self.stopping:
                first, stuck = self.suspect or ("", 0.0)
                if lane.began <= stuck:
                    lane.blamed = None
                    if result.id not in self.retried:
                        self.retried.add(result.id)
                        lane.pending.appendleft(result.id)
                        return
                    result.text += f"\n{first} on the same GPU made no progress "
                    result.text += "before: that is the suspect"
                else:
                    self.suspect = (result.id, time.monotonic())
                    beside = [
                        x.flying for x in self.lanes if x.flying and x is not lane
                    ]
                    if beside:
                        result.text += "\nthe first without progress; other workers "
                        result.text += f"were at {', '.join(beside)}"
            self.done(result, results)
