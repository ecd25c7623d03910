"""Time operations and models, with what the device could do beside.

mlx-vulkan bench                          # operations
mlx-vulkan bench model --shape qwen3-0.6b # prompts and decoding, random weights
mlx-vulkan bench compare A.json B.json    # or two commands, in turn
mlx-vulkan bench roofline A.json ... --plot OPS.png
"""

from . import compare, model, ops, roofline
from .measure import measure

__all__ = ["add_arguments", "measure", "run"]


def add_arguments(parser) -> None:
    ops.add_arguments(parser)
    parser.set_defaults(bench=ops.run, **ops.DEFAULTS)
    commands = parser.add_subparsers(metavar="[ops | model | compare | roofline]")
    for module in (ops, model, compare, roofline):
        name = module.__name__.rsplit(".", 1)[-1]
        summary = module.__doc__.strip().splitlines()[0]
        command = commands.add_parser(name, help=summary, description=summary)
        module.add_arguments(command)
        command.set_defaults(bench=module.run)


def run(args) -> int:
    return args.bench(args)
