"""mlx_lm.server, unmodified, on this backend: clients that stay, go and vanish.

In make test-full: five minutes. benchmarks/serve.py is the load.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))


def make(path: Path, *more: str) -> Path:
    # In a process of its own: it sets the default device.
    script = str(ROOT / "benchmarks" / "make_model.py")
    subprocess.run([sys.executable, script, "tiny", str(path), *more], check=True)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def start(folder, tmp_path):
    import serve

    servers = []

    def begin(
        cache=tmp_path / "cache",
        model=folder,
        tokenizer=None,
        log=subprocess.DEVNULL,
        **more,
    ):
        env = {**os.environ, "MLX_VK_CACHE": str(cache), "HF_HUB_OFFLINE": "1", **more}
        how = dict(tokenizer=tokenizer, env=env, log=log)
        servers.append(serve.Server(str(model), **how))
        return servers[-1]

    yield begin
    for server in servers:
        server.close(signal.SIGKILL)


def test_many_clients(start):
    import serve

    server = start()
    serve.load(server, 4, 8, 200)  # kernels, caches
    first = serve.load(server, 8, 15, 200, seed=100)
    second = serve.load(server, 8, 15, 200, seed=200)
    for r in (first, second):
        assert r.errors == []
        assert r.answers > 8
    assert len(list(server.stream(2, prompt="Once upon", max_tokens=50))) == 2
    # Prompt caches are kept by number, so that memory has an end.
    assert second.memory_mb[-1] < 1.1 * first.memory_mb[-1] + 20
    assert server.close() in (0, -signal.SIGTERM)


def test_a_client_that_vanishes_is_its_own_trouble(start):
    server = start()
    body = b'{"prompt": "Once", "max_tokens": 400, "stream": true}'
    head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    for how in range(3):
        s = socket.create_connection(("127.0.0.1", server.port))
        s.sendall(head % len(body) + body[: len(body) if how else 10])
        if how == 2:
            s.recv(100)
        # Reset, not closed in order.
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        s.close()
    assert server.ask(prompt="Hello", max_tokens=3)["usage"]["completion_tokens"] == 3


def test_wrong_requests_end_for_who_made_them(start):
    import requests

    server = start()
    for body in ({"prompt": 7}, {"prompt": "x", "max_tokens": -1}, {"nothing": 1}):
        reply = requests.post(server.url, json=body, timeout=60)
        assert reply.status_code >= 400, reply.text
    assert server.ask(prompt="Hello", max_tokens=2)["choices"]


def test_a_prompt_too_large_is_an_error_for_who_asked(start, tmp_path):
    """2,048 rows of 2^20 bf16 numbers are 4 GiB, twice what lavapipe has as one array.
    With a seed mlx-lm runs a request by itself; an error in a batch ends its worker.
    Twenty such prompts, while another client gets its answers."""
    import serve

    wide = ("intermediate_size=1048576", "hidden_size=64")
    words = [word for value in wide for word in ("-s", value)]
    model = make(tmp_path / "wide", *words, "--group-size", "64")
    small, large = {"prompt": "Hi"}, {"prompt": " ".join(["a"] * 1500)}
    others, done = [], threading.Event()

    def ask(server):
        while not done.is_set():
            others.append(serve.outcome(server, **small, max_tokens=2))

    with open(tmp_path / "log", "w") as log:
        server = start(model=model, log=log, MLX_VK_DEVICE="cpu")
        assert serve.outcome(server, **small, max_tokens=2) == "answered"
        client = threading.Thread(target=ask, args=(server,))
        client.start()
        try:
            for seed in range(1, 21):
                end = serve.outcome(server, **large, max_tokens=2, seed=seed)
                assert end != "answered" and "Timeout" not in end
                if seed == 2:
                    resident = server.memory_mb()
        finally:
            done.set()
            client.join()
        assert len(others) >= 20 and set(others) == {"answered"}
        assert serve.outcome(server, **small, max_tokens=2, seed=1) == "answered"
        assert serve.outcome(server, **small, max_tokens=2) == "answered"
        assert server.memory_mb() < 1.1 * resident + 64
    said = (tmp_path / "log").read_text()
    assert said.count("[malloc] Unable to allocate an array of 4294967296 bytes") >= 20


def test_sigterm_under_load(start, tmp_path):
    """And a start with half of what the first one cached cut in two."""
    import serve

    cache = tmp_path / "cache"
    server = start(cache)
    env = {**os.environ, "MLX_VK_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    found = serve.restart(server, 4, 100, env=env)
    assert found["exit"] in (0, -signal.SIGTERM) and found["end_s"] < 15
    assert found["entries"] > 10 and found["again"] == "answered"


def test_a_start_after_a_kill(start, tmp_path):
    """Killed while it compiles and writes its cache, cut files included."""
    cache = tmp_path / "cache"
    server = start(cache)
    server.close(signal.SIGKILL)
    entries = sorted(cache.glob("*.entry"))
    assert entries
    for i, entry in enumerate(entries):
        if i % 2:
            entry.write_bytes(entry.read_bytes()[: entry.stat().st_size // 2])
    (cache / "spv-0.entry.tmp-1-2-3").write_bytes(b"half")
    begun = time.monotonic()
    again = start(cache)
    assert again.ask(prompt="Hello", max_tokens=3)["usage"]["completion_tokens"] == 3
    assert time.monotonic() - begun < 120


def test_a_shape_is_served(start, folder):
    server = start(model="tiny", tokenizer=str(folder))
    assert server.ask(prompt="Hello", max_tokens=3)["usage"]["completion_tokens"] == 3
