"""mlx_lm.server under load: errors, tokens per second, latency, memory, as a plot.

    python benchmarks/serve.py MODEL [--clients 1,4,16,32] [--seconds 60]
        [--soak 300] [--restart] [--left GB] [--json FILE] [--plot FILE.png]
    python benchmarks/serve.py --shape qwen3-8b [--tokenizer FOLDER] ...
    python benchmarks/serve.py --draw FILE --plot FILE.png

--shape serves random weights of a shape of mlx_vulkan.bench.shapes, made in memory;
without --tokenizer each byte is a token.

Clients ask one after the other, streaming, with prompts and answers of mixed
lengths; some share a beginning, as a chat does, some go away in the middle. For
each number of clients: answers, errors, tokens of answers per second, time to the
first token, and the server's memory, which --soak watches for longer with the most
clients. --restart ends the server under load, halves files of its kernel cache and
starts it again. --left fills the device but for so many GB and asks for more, which
must be an error for that client alone. The JSON is written all the while.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import make_model
import requests

from mlx_vulkan.bench.report import about

STEP = 5  # seconds between looks at the device
WORDS = "the quick brown fox jumps over a lazy dog and then it sleeps".split()
ANSWERS = (4, 16, 64)  # tokens
CHAT = "You are a helpful assistant who answers in short sentences. "


@dataclass
class Round:
    """What a number of clients met."""

    clients: int
    seconds: float = 0.0
    begun: float = field(default_factory=time.monotonic)
    answers: int = 0
    left: int = 0  # by clients that went away
    # Connections reset before a byte of an answer, and then made again: the server
    # lets no more than five wait.
    again: int = 0
    tokens: int = 0
    first_ms: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)
    # Of the whole device, once in 5 s, where nvidia-smi tells.
    device_mb: list[float] = field(default_factory=list)
    # Tokens of each 5 s.
    course: list[int] = field(default_factory=list)

    def rate(self) -> float:
        return self.tokens / self.seconds


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """mlx_lm.server in a process of its own, until close()."""

    def __init__(
        self,
        model: str,
        *more: str,
        tokenizer: str | None = None,
        log=subprocess.DEVNULL,
        **options,
    ):
        """With a `tokenizer`, which is a folder, `model` is the name of a shape."""
        self.model = model
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/v1/completions"
        command = [sys.executable, "-m", "mlx_lm", "server", "--model", model]
        if tokenizer:
            command[1:4] = [__file__, "--serve", model, tokenizer]
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
        """Of each piece the time and the tokens of the answer so far, as the server
        counts them at the end: a token may be no whole character. Goes away after
        `leave_after` pieces."""
        body = {**body, "stream": True, "stream_options": {"include_usage": True}}
        with requests.post(self.url, json=body, stream=True, timeout=timeout) as reply:
            reply.raise_for_status()
            seen, ended = 0, False
            for line in reply.iter_lines():
                ended |= line == b"data: [DONE]"
                if line.startswith(b"data: ") and not ended:
                    piece = json.loads(line[6:])
                    usage = piece.get("usage") or {}
                    seen = usage.get("completion_tokens", seen + 1)
                    yield time.perf_counter(), seen
                    if seen == leave_after:
                        return
            if not ended:
                raise requests.ConnectionError("the answer ended early")

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


def serve(shape: str, tokenizer: str, *more: str) -> None:
    """mlx_lm.server with random weights instead of those of a file."""
    from mlx_lm import server
    from mlx_lm.tokenizer_utils import load

    from mlx_vulkan.bench.shapes import make

    model, config = make(shape, 4, None, "bfloat16")
    loaded = (model, load(Path(tokenizer)), config)
    server.load = lambda *_, **__: loaded
    sys.argv = ["mlx_lm.server", *more]
    server.main()


def client(
    server: Server, seed: int, longest: int, round_: Round, end: float, lock, answers
):
    rng = random.Random(seed)
    while time.monotonic() < end:
        size = int(longest ** rng.uniform(0.2, 1))
        prompt = (CHAT if rng.random() < 0.5 else "") + " ".join(
            rng.choices(WORDS, k=size)
        )
        leave = rng.randint(1, 5) if rng.random() < 0.1 else None
        begun, pieces = time.perf_counter(), []
        wanted = rng.choice(answers)
        for attempt in range(3):
            try:
                for piece in server.stream(leave, prompt=prompt, max_tokens=wanted):
                    pieces.append(piece)
                error = "" if pieces else "an empty answer"
            except requests.RequestException as e:
                error = repr(e)
                if not pieces and "ConnectionReset" in error and attempt < 2:
                    round_.again += 1
                    time.sleep(0.1)
                    continue
            break
        with lock:
            tokens = pieces[-1][1] if pieces else 0
            at = int((time.monotonic() - round_.begun) / STEP)
            round_.course += [0] * (at + 1 - len(round_.course))
            round_.course[at] += tokens
            if error:
                round_.errors.append(error)
            elif leave:
                round_.left += 1
            else:
                round_.answers += 1
            round_.tokens += tokens
            if pieces:
                round_.first_ms.append((pieces[0][0] - begun) * 1e3)


def device_mb() -> float | None:
    """What is in use of the device, or of the largest part of several."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
        used = [float(line) for line in done.stdout.split()]
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    chosen = os.environ.get("MLX_VK_DEVICE", "")
    if chosen.isdigit() and int(chosen) < len(used):
        return used[int(chosen)]
    return max(used, default=None)


def nothing(_: Round) -> None:
    pass


def load(
    server: Server,
    clients: int,
    seconds: float,
    longest: int,
    seed=0,
    look=nothing,
    answers=ANSWERS,
) -> Round:
    """`look` is called with what there is once in 5 s."""
    round_, lock = Round(clients), threading.Lock()
    begun = round_.begun
    threads = [
        threading.Thread(
            target=client,
            args=(server, seed + i, longest, round_, begun + seconds, lock, answers),
        )
        for i in range(clients)
    ]
    for thread in threads:
        thread.start()
    looked = begun
    while any(thread.is_alive() for thread in threads):
        with contextlib.suppress(OSError):  # it is gone: the clients say so
            round_.memory_mb.append(server.memory_mb())
        if time.monotonic() > looked + STEP:
            looked = time.monotonic()
            if (used := device_mb()) is not None:
                round_.device_mb.append(used)
            with lock:
                round_.seconds = looked - begun
                look(round_)
        time.sleep(min(1.0, seconds / 10))
    round_.seconds = time.monotonic() - begun
    return round_


def halves(values: list[float]) -> tuple[float, float]:
    """Means of the second and the last quarter: what grows differs in them."""
    n = len(values) // 4
    if n == 0:
        return 0.0, 0.0
    return statistics.mean(values[n : 2 * n]), statistics.mean(values[-n:])


# Takes all of the device but so many GB, says so, and keeps it until it is killed.
FILLER = """
import sys, time
import mlx.core as mx
mx.set_default_device(mx.gpu)
if str(mx.device_info(mx.gpu).get("architecture", "")).endswith("cpu"):
    print(0, flush=True)  # whose memory is everybody's
    sys.exit()
mx.set_cache_limit(0)
kept = []
try:
    while True:
        kept.append(mx.zeros(1 << 28, mx.float32))
        mx.eval(kept[-1])
except RuntimeError as error:
    print(error, file=sys.stderr)
    kept.pop()
del kept[-int(sys.argv[1]) :]
print(len(kept), flush=True)
time.sleep(1000)
"""


def outcome(server: Server, **body) -> str:
    """How a request ends: "answered", or its error."""
    try:
        server.ask(**body, timeout=40)
        return "answered"
    except requests.RequestException as error:
        return repr(error)[:300]


def too_large(found: dict, model: str, gigabytes: int, words: int, **options):
    """Two prompts that the device has no room for, one asked for by itself (with a
    seed mlx-lm joins it to no batch), one in a batch. Yields after each."""
    server = Server(model, **options)
    filler = subprocess.Popen(
        [sys.executable, "-c", FILLER, str(gigabytes)], stdout=subprocess.PIPE
    )
    small = dict(prompt="Hello", max_tokens=3)
    large = dict(prompt=" ".join(["the"] * words), max_tokens=3)
    requests_ = {
        "small": small,
        "large, alone": {**large, "seed": 1},
        "small, after it": small,
        "small, alone, after it": {**small, "seed": 1},
        "large, in a batch": large,
        "small, after that": small,
    }
    try:
        found["filled_gb"] = int(filler.stdout.readline() or 0)
        for name, body in requests_.items():
            begun = time.monotonic()
            found[name] = outcome(server, **body)
            found[name + ", s"] = time.monotonic() - begun
            yield
    finally:
        filler.kill()
        found["exit"] = server.close()


def restart(server: Server, clients: int, longest: int, **options) -> dict:
    """SIGTERM under load; then a start with half of the kernel cache cut in two."""
    end, lock = time.monotonic() + 5, threading.Lock()
    threads = [
        threading.Thread(
            target=client, args=(server, i, longest, Round(0), end, lock, ANSWERS)
        )
        for i in range(clients)
    ]
    for thread in threads:
        thread.start()
    time.sleep(2)
    begun = time.monotonic()
    found = {"exit": server.close(), "end_s": time.monotonic() - begun}
    for thread in threads:
        thread.join()
    entries = sorted(Path(options["env"]["MLX_VK_CACHE"]).glob("*.entry"))
    for entry in entries[::2]:
        entry.write_bytes(entry.read_bytes()[: entry.stat().st_size // 2])
    begun = time.monotonic()
    again = Server(server.model, **options)
    found["entries"] = len(entries)
    found["again"] = outcome(again, prompt="Hello", max_tokens=3)
    found["start_s"] = time.monotonic() - begun
    again.close()
    return found


def plot(path: str, rounds: list[Round]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (rates, memory, course) = pyplot.subplots(1, 3, figsize=(14, 3.5))
    by_clients = sorted(rounds, key=lambda r: r.clients)
    rates.plot([r.clients for r in by_clients], [r.rate() for r in by_clients], "o-")
    rates.set_xlabel("clients")
    rates.set_ylabel("tokens/s")
    rates.set_ylim(bottom=0)
    last = max(rounds, key=lambda r: r.seconds)
    for name, values in (("process", last.memory_mb), ("device", last.device_mb)):
        step = last.seconds / max(len(values), 1)
        memory.plot([i * step for i in range(len(values))], values, label=name)
    memory.set_xlabel(f"seconds with {last.clients} clients")
    memory.set_ylabel("MB")
    memory.set_ylim(bottom=0)
    memory.legend()
    course.plot([i * STEP for i in range(len(last.course))], last.course)
    course.set_xlabel(f"seconds with {last.clients} clients")
    course.set_ylabel(f"tokens in {STEP} s")
    course.set_ylim(bottom=0)
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def show(r: Round) -> None:
    first = sorted(r.first_ms or [0])
    before, after = halves(r.memory_mb)
    print(
        f"{r.clients:3} clients, {r.seconds:.0f} s: {r.rate():8.1f} tokens/s, "
        f"{r.answers} answers, {r.left} left, first token "
        f"{statistics.median(first):.0f} ms (median; 95 % within "
        f"{first[int(len(first) * 0.95)]:.0f}), memory {before:.0f} then {after:.0f} MB"
        + (", device {:.0f} then {:.0f} MB".format(*halves(r.device_mb)))
        * (len(r.device_mb) > 3)
        + f", {r.again} connected again, {len(r.errors)} errors",
        flush=True,
    )
    for error in sorted(set(r.errors))[:3]:
        print("   ", error)


def write(path: str | None, report: dict) -> None:
    """Whole or not at all: it may be the last thing that this process does."""
    if path:
        half = Path(path + ".half")
        half.write_text(json.dumps(report, indent=1))
        half.replace(path)


def draw(args) -> int:
    report = json.loads(Path(args.draw).read_text())
    plot(args.plot, [Round(**r) for r in report["rounds"]])
    return 0


def measure(args, folder: str) -> int:
    env = {**os.environ, "MLX_VK_CACHE": folder, "HF_HUB_OFFLINE": "1"}
    log = open(args.log, "w") if args.log else subprocess.DEVNULL
    options = dict(env=env, log=log, tokenizer=tokenizer_of(args, folder))
    counts = [int(n) for n in args.clients.split(",")]
    plan = [(n, args.seconds) for n in counts]
    plan += [(max(counts), args.soak)] if args.soak else []
    asked = dict(answers=[int(n) for n in args.answers.split(",")])
    report = {"about": about(), "model": args.model, "longest": args.longest, **asked}
    report["rounds"] = []
    begun = time.monotonic()
    server, rounds = Server(args.model, **options), []
    report["start_s"] = time.monotonic() - begun
    try:
        warm = min(args.seconds, 15)
        load(server, max(counts), warm, args.longest, seed=1000, **asked)
        for seed, (count, seconds) in enumerate(plan):

            def look(r: Round) -> None:
                now = [asdict(r) for r in (*rounds, r)]
                write(args.json, {**report, "rounds": now})

            r = load(server, count, seconds, args.longest, seed * 100, look, **asked)
            rounds.append(r)
            look(r)
            show(r)
        report["rounds"] = [asdict(r) for r in rounds]
        if args.restart:
            report["restart"] = restart(server, max(counts), args.longest, **options)
            print("restart:", report["restart"], flush=True)
            write(args.json, report)
    finally:
        status = server.close()
    print(f"The server ended with {status}.")
    if args.left:
        found = report["too_large"] = {}
        for _ in too_large(found, args.model, args.left, args.words, **options):
            write(args.json, report)
        print("too large:", json.dumps(found, indent=1))
    write(args.json, report)
    if args.plot:
        plot(args.plot, rounds)
    return 1 if any(r.errors for r in rounds) else 0


def tokenizer_of(args, folder: str) -> str | None:
    """A folder with a tokenizer for a shape; None for a model of files."""
    if not args.shape:
        return None
    if not args.tokenizer:
        make_model.save_tokenizer(Path(folder))
    return args.tokenizer or folder


def main() -> int:
    if sys.argv[1:2] == ["--serve"]:
        return serve(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?")
    parser.add_argument("--shape", help="instead of a model: random weights")
    parser.add_argument("--tokenizer", metavar="FOLDER", help="for a shape")
    parser.add_argument("--clients", default="1,4,16,32")
    parser.add_argument("--seconds", type=float, default=60, help="of each number")
    parser.add_argument("--soak", type=float, default=0, help="seconds, most clients")
    parser.add_argument("--longest", type=int, default=1500, help="words of a prompt")
    parser.add_argument("--answers", default="4,16,64", help="tokens of answers")
    parser.add_argument("--restart", action="store_true")
    parser.add_argument("--left", type=int, default=0, metavar="GB")
    parser.add_argument("--words", type=int, default=120_000, help="that do not fit")
    parser.add_argument("--json")
    parser.add_argument("--log", help="a file for what the servers write")
    parser.add_argument("--plot", metavar="FILE.png")
    parser.add_argument("--draw", metavar="FILE", help="JSON of another run")
    args = parser.parse_args()
    if args.draw:
        return draw(args)
    args.model = args.model or args.shape
    if not args.model:
        parser.error("a model's folder or a shape is needed")
    with tempfile.TemporaryDirectory() as folder:
        return measure(args, folder)


if __name__ == "__main__":
    sys.exit(main())
