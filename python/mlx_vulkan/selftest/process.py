"""One worker process and the lines that it reads and writes."""

import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections import deque


class Worker:
    """A process that takes jobs until close(), and answers in events. Each is used
    by one thread; only kill() may come from another."""

    def __init__(self, command, env: dict):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=env,
            # Ctrl-C is for the runner, which ends its workers.
            start_new_session=True,
        )
        self.pipe = self.process.stdout.fileno()
        self.rest = b""
        self.events = deque()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.pipe, selectors.EVENT_READ)

    def send(self, job: dict) -> None:
        """Writes a job as a line, which must be smaller than a pipe (64 KiB), because a
        hung process does not read. next() tells of a process that has ended."""
        try:
            self.process.stdin.write(json.dumps(job).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def close(self) -> None:
        """Ends the process after its last job."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass

    @property
    def closed(self) -> bool:
        return self.process.stdin.closed

    def next(self, limit: float) -> dict | None:
        """The next event; None at the end. TimeoutError after `limit` seconds."""
        end = time.monotonic() + limit
        while not self.events:
            if not self.selector.select(max(end - time.monotonic(), 0)):
                raise TimeoutError
            data = os.read(self.pipe, 1 << 16)
            if not data:
                return None
            *lines, self.rest = (self.rest + data).split(b"\n")
            self.events.extend(json.loads(line) for line in lines)
        return self.events.popleft()

    def kill(self) -> None:
        self.process.kill()

    def stop(self) -> int | None:
        """Ends the process; its exit status, or None if it cannot be ended (a
        driver that hangs in the kernel)."""
        self.close()
        try:
            self.process.wait(timeout=5 if self.process.poll() is None else 0)
        except subprocess.TimeoutExpired:
            self.process.kill()
        try:
            status = self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            status = None
        self.selector.close()
        self.process.stdout.close()
        return status

    def last_words(self) -> str:
        """The end of what it wrote to standard error."""
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace").strip()[-1500:]


def signal_name(status: int | None) -> str:
    if status is None:
        return "cannot be killed: the driver hangs"
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"
