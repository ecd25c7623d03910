"""Run a program with a faster malloc, which MLX's many small objects gain by."""

import os
import shlex
import shutil
import sys

from . import native

NOT_EXECUTABLE, NOT_FOUND = 126, 127  # as in a shell


def add_arguments(parser) -> None:
    parser.add_argument(
        "what", nargs="...", metavar="-- COMMAND", help="a program and its arguments"
    )


def run(args) -> int:
    words = args.what[1:] if args.what[:1] == ["--"] else args.what
    if not words:
        return fail("Give a command: mlx-vulkan run -- python x.py", 2)
    if words[0].endswith(".py"):
        words = [sys.executable, *words]
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
    program = shutil.which(words[0])
    if program is None:
        there = os.path.exists(words[0]) and os.sep in words[0]
        what = "is not executable" if there else "was not found"
        code = NOT_EXECUTABLE if there else NOT_FOUND
        return fail(f"{words[0]} {what}: {shlex.join(words)}", code)
    environment = dict(os.environ, LD_PRELOAD=preload(str(allocator)))
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(program, words, environment)  # signals and exit code are its own
    except OSError as error:
        return fail(f"{program} cannot be run: {error.strerror}", NOT_EXECUTABLE)


def preload(allocator: str) -> str:
    """LD_PRELOAD with the allocator behind what is there, whose malloc counts."""
    before = os.environ.get("LD_PRELOAD", "").replace(":", " ").split()
    return ":".join([*(path for path in before if path != allocator), allocator])


def fail(sentence: str, code: int) -> int:
    print(f"mlx-vulkan run: {sentence}", file=sys.stderr)
    return code
