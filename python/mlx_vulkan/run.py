"""Run a program with a faster malloc, which makes MLX's Python code faster.

The program runs under mimalloc (LD_PRELOAD) and is otherwise unchanged: its
arguments, signals and exit status are its own. A .py file runs with this Python.
"""

import os
import shutil
import sys

from . import native
from .arguments import Failed

EXAMPLES = """
mlx-vulkan run -- mlx_lm.generate --model mlx-community/Qwen3-0.6B-4bit
mlx-vulkan run -- train.py --epochs 3
"""
EXIT = (
    "Exit status: the program's; 127 if it is not found, 126 if it is not executable."
)

NOT_EXECUTABLE, NOT_FOUND = 126, 127  # as in a shell


def add_arguments(parser) -> None:
    parser.usage = "%(prog)s [-h] -- PROGRAM [ARGUMENT ...]"
    parser.add_argument(
        "program",
        nargs="...",
        metavar="-- PROGRAM",
        help="the program and its arguments",
    )


def run(args) -> int:
    words = words_of(args.program)
    if not words:
        raise Failed("Give a program: mlx-vulkan run -- python x.py", 2)
    allocator = native.allocator_path()
    if allocator is None:
        raise Failed(
            "The allocator, mlx_vulkan/lib/libmimalloc.so, is not installed; run: "
            + native.REPAIR
        )
    if any(c in str(allocator) for c in ": \t"):
        raise Failed(
            f"The loader cannot preload {allocator}: its folder has a colon or a "
            "space in its name. Install mlx-vulkan in another one."
        )
    program, words = program_of(words)
    environment = dict(os.environ, LD_PRELOAD=preload(str(allocator)))
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(program, words, environment)  # signals and exit code are its own
    except OSError as error:
        raise cannot_run(program, error) from error


def cannot_run(program: str, error: OSError) -> Failed:
    return Failed(f"{program} cannot be run: {error.strerror}", NOT_EXECUTABLE)


def words_of(program: list[str]) -> list[str]:
    """The program and its arguments, without the `--` before them."""
    return program[1:] if program[:1] == ["--"] else program


def program_of(words: list[str]) -> tuple[str, list[str]]:
    """The path of a program, and its words; a script's is this Python. Throws
    Failed."""
    if words[0].endswith(".py"):
        words = [sys.executable, *words]
    program = shutil.which(words[0])
    if program is None:
        if os.path.exists(words[0]) and os.sep in words[0]:
            raise Failed(f"{words[0]} is not executable", NOT_EXECUTABLE)
        raise Failed(f"{words[0]} was not found", NOT_FOUND)
    return program, words


def preload(allocator: str) -> str:
    """LD_PRELOAD with the allocator appended: an earlier malloc takes precedence."""
    before = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    return ":".join([*(path for path in before if path != allocator), allocator])
