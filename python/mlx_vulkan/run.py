"""Run a program with a faster malloc, which MLX's many small objects gain by."""

import os
import shlex
import shutil
import sys

from . import native

NOT_EXECUTABLE, NOT_FOUND = 126, 127  # as in a shell


class NotRun(Exception):
    """Why a program cannot be run, as a sentence, and a shell's code for it."""

    def __init__(self, sentence: str, code: int):
        super().__init__(sentence)
        self.code = code


def add_arguments(parser) -> None:
    parser.add_argument(
        "what", nargs="...", metavar="-- COMMAND", help="a program and its arguments"
    )


def run(args) -> int:
    words = words_of(args.what)
    if not words:
        return fail("Give a command: mlx-vulkan run -- python x.py", 2)
    allocator = native.allocator_path()
    if allocator is None:
        return fail(
            "The allocator, mlx_vulkan/lib/libmimalloc.so, is not installed; run: "
            + native.REPAIR,
            1,
        )
    if any(c in str(allocator) for c in ": \t"):
        return fail(
            f"The loader cannot preload {allocator}: its folder has a colon or a "
            "space in its name. Install mlx-vulkan in another one.",
            1,
        )
    try:
        program, words = program_of(words)
    except NotRun as error:
        return fail(str(error), error.code)
    environment = dict(os.environ, LD_PRELOAD=preload(str(allocator)))
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(program, words, environment)  # signals and exit code are its own
    except OSError as error:
        return fail(f"{program} cannot be run: {error.strerror}", NOT_EXECUTABLE)


def words_of(what: list[str]) -> list[str]:
    """The command that an argument list has behind its first `--`, if it has one."""
    return what[1:] if what[:1] == ["--"] else what


def program_of(words: list[str]) -> tuple[str, list[str]]:
    """The program of a command, and its words; a script's is this Python. Throws
    NotRun."""
    if words[0].endswith(".py"):
        words = [sys.executable, *words]
    program = shutil.which(words[0])
    if program is None:
        there = os.path.exists(words[0]) and os.sep in words[0]
        what = "is not executable" if there else "was not found"
        code = NOT_EXECUTABLE if there else NOT_FOUND
        raise NotRun(f"{words[0]} {what}: {shlex.join(words)}", code)
    return program, words


def preload(allocator: str) -> str:
    """LD_PRELOAD with the allocator behind what is there, whose malloc counts."""
    before = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    return ":".join([*(path for path in before if path != allocator), allocator])


def fail(sentence: str, code: int) -> int:
    print(f"mlx-vulkan run: {sentence}", file=sys.stderr)
    return code
