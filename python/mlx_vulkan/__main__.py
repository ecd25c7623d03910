"""The `mlx-vulkan` command."""

import argparse
import os
import sys

from . import (
    __version__,
    bench,
    cache,
    coverage,
    doctor,
    fit,
    profile,
    report,
    run,
    selftest,
    tune,
)
from .arguments import Failed, add_command, note

DESCRIPTION = """
Diagnose, test and measure the Vulkan backend of MLX.

MLX itself needs none of these commands: `import mlx.core` uses the GPU.
"""
EXAMPLES = """
examples:
  mlx-vulkan doctor                           # is the GPU used, and if not, why
  mlx-vulkan selftest                         # does it compute correct results
  mlx-vulkan bench model --shape qwen3-0.6b   # how fast is it
  mlx-vulkan report                           # tell the project about this GPU
  mlx-vulkan run -- mlx_lm.server --model mlx-community/Qwen3-0.6B-4bit

`mlx-vulkan COMMAND --help` describes a command and its options.
"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="mlx-vulkan",
        description=DESCRIPTION.strip(),
        epilog=EXAMPLES.strip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--version", action="version", version=__version__, help="print the version"
    )
    commands = made.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in (
        doctor,
        selftest,
        report,
        run,
        bench,
        tune,
        profile,
        cache,
        fit,
        coverage,
    ):
        name = module.__name__.rsplit(".", 1)[-1]
        add_command(commands, name, module).set_defaults(run=module.run)
    return made


def main(argv: list[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == ["bench"]:
        words[1:] = bench.with_default(words[1:])
    args = parser().parse_args(words)
    try:
        return args.run(args) or 0
    except BrokenPipeError:
        # Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130  # as in a shell
    except Failed as error:
        note(f"mlx-vulkan {args.command}: {error}")
        return error.code
    except (RuntimeError, ValueError) as error:
        # MLX's own sentences begin with the [call] that refuses.
        if not str(error).startswith("["):
            raise
        note(f"mlx-vulkan {args.command}: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
