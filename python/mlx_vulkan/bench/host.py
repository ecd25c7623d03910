"""What a decode step takes of the calling thread, by part."""

import ctypes
import os
import platform
import statistics
import struct
import sys
import time

from .report import Row

PARTS = ("model", "sampler", "async_eval")
SYSTEM_CALLS = {"x86_64": 298, "aarch64": 241}  # perf_event_open


class Instructions:
    """Counts what this thread executes in user space, where Linux permits it."""

    def __init__(self):
        self.file = -1
        number = SYSTEM_CALLS.get(platform.machine())
        if number is None:
            return
        # struct perf_event_attr: hardware, its size, instructions, ..., flags that
        # leave out the kernel and hypervisors.
        attributes = struct.pack("IIQQQQQ", 0, 64, 1, 0, 0, 0, 1 << 5 | 1 << 6)
        buffer = ctypes.create_string_buffer(attributes, 64)
        self.file = ctypes.CDLL(None).syscall(number, buffer, 0, -1, -1, 0)

    def read(self) -> int:
        """0 if nothing is counted."""
        return struct.unpack("q", os.read(self.file, 8))[0] if self.file >= 0 else 0

    def close(self) -> None:
        if self.file >= 0:
            os.close(self.file)


def steps(model, prompt, count: int):
    """Runs decode steps as mlx-lm's loop does; calls yielded once before each part of
    a step and once after the last."""
    import mlx.core as mx
    from mlx_lm.models.cache import make_prompt_cache

    caches = make_prompt_cache(model)
    token = mx.argmax(model(prompt[None], cache=caches)[:, -1, :], axis=-1)
    for _ in range(count):
        mx.eval(token)
        yield
        logits = model(token[:, None], cache=caches)[:, -1, :]
        yield
        token = mx.argmax(logits - mx.logsumexp(logits, keepdims=True), axis=-1)
        yield
        mx.async_eval(token)
        yield


def calls_of_a_step(model, prompt) -> int:
    """Python functions, and functions called by Python, in the last of some steps."""
    calls, begun = 0, steps(model, prompt, 8)

    def count(frame, event, function):
        nonlocal calls
        calls += event in ("call", "c_call")

    for _ in range(8 * (len(PARTS) + 1) - len(PARTS)):
        next(begun)
    sys.setprofile(count)
    try:
        for _ in PARTS:
            next(begun)
    finally:
        sys.setprofile(None)
    return calls


def rows(model, prompt, count: int = 32) -> list[Row]:
    """A row for each part of a step; the first quarter of the steps is not counted."""
    counter, marks = Instructions(), []
    for _ in steps(model, prompt, count):
        marks.append((time.thread_time(), counter.read()))
    counter.close()
    found = []
    for i, part in enumerate(PARTS):
        pairs = list(zip(marks[i :: len(PARTS) + 1], marks[i + 1 :: len(PARTS) + 1]))
        pairs = pairs[count // 4 :]
        spent = [1e6 * (end[0] - start[0]) for start, end in pairs]
        found.append(Row(f"host, {part} per step", "us", spent, "host"))
        executed = [end[1] - start[1] for start, end in pairs]
        if any(executed):
            middle = statistics.median(executed)
            name = f"host, {part} instructions per step"
            found.append(Row(name, "count", [middle], "host"))
    calls = calls_of_a_step(model, prompt)
    return [*found, Row("Python calls per step", "count", [calls], "host")]
