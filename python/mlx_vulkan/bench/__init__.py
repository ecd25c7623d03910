"""Time operations and models, and compare results.

Without a command, operations are timed (`mlx-vulkan bench ops`).
"""

from .. import arguments
from . import compare, model, ops, roofline
from .measure import measure

__all__ = ["add_arguments", "measure", "run", "with_default"]

EXAMPLES = """
mlx-vulkan bench                                   # operations
mlx-vulkan bench model --shape qwen3-0.6b          # prompts and decoding
mlx-vulkan bench model mlx-community/Qwen3-0.6B-4bit --json a.json
mlx-vulkan bench compare a.json b.json
mlx-vulkan bench roofline a.json --plot ops.png
"""
COMMANDS = {"ops": ops, "model": model, "compare": compare, "roofline": roofline}


def with_default(words: list[str]) -> list[str]:
    """The arguments of `bench`, with the command `ops` if none is given."""
    given = words and (words[0] in ("-h", "--help") or not words[0].startswith("-"))
    return words if given else ["ops", *words]


def add_arguments(parser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        arguments.add_command(commands, name, module).set_defaults(bench=module.run)


def run(args) -> int:
    return args.bench(args)
