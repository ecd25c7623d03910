"""The commands of README.md, docs/quickstart.md and docs/troubleshooting.md run.

Each page's blocks of `sh` and `python` run in order, in one empty folder, offline: a
cache of the Hugging Face Hub holds the demo's model, SmolLM2-135M, under every model's
name. MLXVK_DOCS_PYTHON=venv/bin/python takes another environment. A line
before a block says how it runs:

<!-- run: slow -->     with MLX_VK_TEST_FULL=1 (make test-full)
<!-- run: server -->   in the background, until the page ends (also slow)
<!-- run: dry -->      as `make -n`
<!-- run: no, why -->  is only parsed
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / ".demo" / "SmolLM2-135M-Instruct"
FULL = os.environ.get("MLX_VK_TEST_FULL") == "1"
RUN = ("README.md", "docs/quickstart.md", "docs/troubleshooting.md")
PARSED = (
    "CONTRIBUTING.md",
    *(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md")),
)
BLOCK = re.compile(
    r"(?:^<!-- run: (\w+)(?:, [^\n]*)? -->\n)?^```(sh|python)\n(.*?)^```$",
    re.DOTALL | re.M,
)
NAME = re.compile(r"mlx-community/[\w.-]+")
PORT = 8080
SECONDS = 300
# Of a clean environment with the wheel, if it is given.
PYTHON = os.environ.get("MLXVK_DOCS_PYTHON", sys.executable)


@dataclass
class Block:
    how: str
    language: str
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text("utf-8")
    return [
        Block(m[1] or "yes", m[2], m[3], text.count("\n", 0, m.start(3)))
        for m in BLOCK.finditer(text)
    ]


def hub(folder: Path, names: set[str]) -> None:
    """A cache in which each of `names` is the demo's model."""
    if not names:
        return
    demo = [sys.executable, str(ROOT / "tools" / "demo.py")]
    subprocess.run([*demo, "--prepare", "--prompt", ""], check=True)
    for name in names:
        place = folder / f"models--{name.replace('/', '--')}"
        revision = "0" * 40
        (place / "refs").mkdir(parents=True)
        (place / "refs" / "main").write_text(revision)
        snapshot = place / "snapshots" / revision
        snapshot.mkdir(parents=True)
        for file in MODEL.iterdir():
            (snapshot / file.name).symlink_to(file)


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port: int, server: subprocess.Popen) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        assert server.poll() is None, "the server ended"
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError("the server does not listen")


def parses(block: Block) -> None:
    if block.language == "python":
        compile(block.text, "block", "exec")
    else:
        subprocess.run(["bash", "-n"], input=block.text, text=True, check=True)


class Session:
    """What a reader of a page has in front of them."""

    def __init__(self, folder: Path, names: set[str]):
        self.folder, self.servers, self.port = folder, [], free_port()
        hub(folder / "hub", names)
        programs = Path(PYTHON).parent
        self.env = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HF_HUB_CACHE": str(folder / "hub"),
            "HF_HUB_OFFLINE": "1",
            "MLX_VK_CACHE": str(folder / "kernels"),
        }

    def start(self, block: Block) -> subprocess.Popen:
        command = ["bash", "-e", "-o", "pipefail", "-c"]
        text = block.text.replace(str(PORT), str(self.port))
        if block.language == "python":
            command = [PYTHON, "-c"]
        where = self.folder
        if block.how == "dry":
            text, where = re.sub(r"^make\b", "make -n", text, flags=re.M), ROOT
        return subprocess.Popen(
            [*command, text],
            cwd=where,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, block: Block) -> str:
        process = self.start(block)
        try:
            output, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            raise AssertionError(f"not done in {SECONDS} s:\n{output}") from None
        assert process.returncode == 0, f"{block.text}\n{output}"
        return output

    def serve(self, block: Block) -> None:
        server = self.start(block)
        self.servers.append(server)
        wait_for(self.port, server)

    def close(self) -> None:
        for server in self.servers:
            os.killpg(server.pid, signal.SIGTERM)
            server.communicate(timeout=60)


@pytest.mark.parametrize("page", sorted({*RUN, *PARSED}))
def test_parses(page):
    for block in blocks(page):
        parses(block)
        assert block.how in ("yes", "no", "slow", "server", "dry"), block.how


@pytest.mark.parametrize("page", RUN)
def test_commands_run(page, tmp_path):
    there = blocks(page)
    assert len(there) >= 5
    names = set(NAME.findall("".join(block.text for block in there)))
    session = Session(tmp_path, names)
    ran = 0
    try:
        for block in there:
            if block.how == "no" or (block.how in ("slow", "server") and not FULL):
                continue
            print(
                f"== {page}:{block.line + 1}: {block.text.splitlines()[0]}", flush=True
            )
            started = time.monotonic()
            if block.how == "server":
                session.serve(block)
            else:
                print(session.run(block), end="")
            print(f"== {time.monotonic() - started:.1f} s", flush=True)
            ran += 1
    finally:
        session.close()
        shutil.rmtree(tmp_path, ignore_errors=True)
    assert ran


def test_a_broken_command_is_found(tmp_path):
    session = Session(tmp_path, set())
    for text in ("mlx-vulkan nosuch\n", "false\ntrue\n", "false | true\n"):
        with pytest.raises(AssertionError):
            session.run(Block("yes", "sh", text, 1))
    with pytest.raises(AssertionError):
        session.run(Block("yes", "python", "import nosuch\n", 1))
    with pytest.raises(SyntaxError):
        parses(Block("no", "python", "x = (\n", 1))
    with pytest.raises(subprocess.CalledProcessError):
        parses(Block("no", "sh", "if true\n", 1))
