"""mlx_lm.server under load: errors, tokens a second, latency, memory, as a plot.

    python benchmarks/serve.py MODEL [--clients 1,4,16,32] [--seconds 60]
        [--json FILE] [--plot FILE.png]

Clients ask one after the other, streaming, with prompts and answers of mixed
lengths; some share a beginning, as a chat does, some go away in the middle. For
each number of clients: answers, errors, tokens of answers a second, time to the
first token, and the server's resident memory.
"""

import argparse
import contextlib
import json
import random
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import requests

WORDS = "the quick brown fox jumps over a lazy dog and then it sleeps".split()
CHAT = "You are a helpful assistant who answers in short sentences. "


@dataclass
class Round:
    """What a number of clients met."""

    clients: int
    seconds: float = 0.0
    answers: int = 0
    left: int = 0  # by clients that went away
    tokens: int = 0
    first_ms: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)

    def rate(self) -> float:
        return self.tokens / self.seconds


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """mlx_lm.server in a process of its own, until close()."""

    def __init__(self, model: str, *more: str, log=subprocess.DEVNULL, **options):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/v1/completions"
        command = [sys.executable, "-m", "mlx_lm", "server", "--model", model]
        command += ["--port", str(self.port), *more]
        self.process = subprocess.Popen(command, stdout=log, stderr=log, **options)
        end = time.monotonic() + 120
        while True:
            try:
                self.ask(prompt="Hello", max_tokens=1)
                return
            except requests.ConnectionError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.close()
                    raise RuntimeError("mlx_lm.server did not start") from None
                time.sleep(0.2)

    def ask(self, timeout: float = 300, **body) -> dict:
        reply = requests.post(self.url, json=body, timeout=timeout)
        reply.raise_for_status()
        return reply.json()

    def stream(self, leave_after: int | None = None, timeout=300, **body):
        """Times of the answer's pieces; goes away after `leave_after` of them."""
        with requests.post(
            self.url, json={**body, "stream": True}, stream=True, timeout=timeout
        ) as reply:
            reply.raise_for_status()
            seen = 0
            for line in reply.iter_lines():
                if line.startswith(b"data: ") and line != b"data: [DONE]":
                    json.loads(line[6:])
                    yield time.perf_counter()
                    seen += 1
                    if seen == leave_after:
                        return

    def memory_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def close(self, how: int = signal.SIGTERM) -> int:
        """The exit status; kills what does not end in 20 s."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def client(server: Server, seed: int, longest: int, round_: Round, end: float, lock):
    rng = random.Random(seed)
    while time.monotonic() < end:
        size = int(longest ** rng.uniform(0.2, 1))
        prompt = (CHAT if rng.random() < 0.5 else "") + " ".join(
            rng.choices(WORDS, k=size)
        )
        leave = rng.randint(1, 5) if rng.random() < 0.1 else None
        begun, pieces = time.perf_counter(), []
        try:
            wanted = rng.choice([4, 16, 64])
            for at in server.stream(leave, prompt=prompt, max_tokens=wanted):
                pieces.append(at)
            error = "" if pieces else "an empty answer"
        except requests.RequestException as e:
            error = repr(e)
        with lock:
            if error:
                round_.errors.append(error)
            elif leave:
                round_.left += 1
            else:
                round_.answers += 1
            round_.tokens += len(pieces)
            if pieces:
                round_.first_ms.append((pieces[0] - begun) * 1e3)


def load(server: Server, clients: int, seconds: float, longest: int, seed=0) -> Round:
    round_, lock = Round(clients), threading.Lock()
    begun = time.monotonic()
    threads = [
        threading.Thread(
            target=client,
            args=(server, seed + i, longest, round_, begun + seconds, lock),
        )
        for i in range(clients)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        with contextlib.suppress(OSError):  # it is gone: the clients say so
            round_.memory_mb.append(server.memory_mb())
        time.sleep(min(1.0, seconds / 10))
    round_.seconds = time.monotonic() - begun
    return round_


def plot(path: str, rounds: list[Round]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (rates, memory) = pyplot.subplots(1, 2, figsize=(12, 4))
    rates.plot([r.clients for r in rounds], [r.rate() for r in rounds], "o-")
    rates.set_xlabel("clients")
    rates.set_ylabel("tokens/s")
    memory.plot([m for r in rounds for m in r.memory_mb])
    memory.set_xlabel("samples")
    memory.set_ylabel("resident MB")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--clients", default="1,4,16,32")
    parser.add_argument("--seconds", type=float, default=60, help="of each number")
    parser.add_argument("--longest", type=int, default=1500, help="words of a prompt")
    parser.add_argument("--json")
    parser.add_argument("--plot", metavar="FILE.png")
    args = parser.parse_args()
    server, rounds = Server(args.model), []
    try:
        for count in map(int, args.clients.split(",")):
            r = load(server, count, args.seconds, args.longest)
            rounds.append(r)
            first = statistics.median(r.first_ms or [0])
            print(
                f"{count:3} clients: {r.rate():8.1f} tokens/s, {r.answers} answers, "
                f"{r.left} left, first token {first:.0f} ms (median), "
                f"{r.memory_mb[-1]:.0f} MB, {len(r.errors)} errors"
            )
            for error in sorted(set(r.errors))[:3]:
                print("   ", error)
    finally:
        status = server.close()
    print(f"The server ended with {status}.")
    if args.json:
        Path(args.json).write_text(json.dumps([asdict(r) for r in rounds], indent=1))
    if args.plot:
        plot(args.plot, rounds)
    return 1 if any(r.errors for r in rounds) else 0


if __name__ == "__main__":
    sys.exit(main())
