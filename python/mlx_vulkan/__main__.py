"""The `mlx-vulkan` command."""

import argparse
import sys

from . import __version__, bench, cache, coverage, doctor, profile, run, selftest


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="mlx-vulkan", description="The Vulkan backend of MLX."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    for module in (doctor, selftest, cache, profile, run, bench, coverage):
        name = module.__name__.rsplit(".", 1)[-1]
        summary = module.__doc__.strip().splitlines()[0]
        command = commands.add_parser(name, help=summary, description=summary)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    args = parser.parse_args(argv)
    try:
        return args.run(args) or 0
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        return 130  # as in a shell
    except (RuntimeError, ValueError) as error:
        # MLX's own sentences begin with the [call] that refuses.
        if not str(error).startswith("["):
            raise
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
