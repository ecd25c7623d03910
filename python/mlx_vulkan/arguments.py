"""Commands and types of arguments: bad input is reported before anything runs."""

import argparse
import math
import os
import sys
from argparse import ArgumentTypeError
from pathlib import Path


class Failed(Exception):
    """A command's failure: a sentence, and the exit status, 1, or 2 for wrong
    arguments."""

    def __init__(self, sentence: str, code: int = 1):
        super().__init__(sentence)
        self.code = code


def add_command(commands, name: str, module):
    """Adds a command or subcommand from its module: docstring, EXAMPLES, EXIT and
    add_arguments()."""
    summary, _, more = module.__doc__.strip().partition("\n")
    examples = getattr(module, "EXAMPLES", "").strip().splitlines()
    parts = ["examples:", *(f"  {line}" for line in examples)] if examples else []
    if said := getattr(module, "EXIT", ""):
        parts += ["", said]
    parser = commands.add_parser(
        name,
        help=summary.rstrip("."),
        description=f"{summary}\n{more}".strip(),
        epilog="\n".join(parts),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    return parser


def note(sentence: str) -> None:
    """Prints a message that is not part of the results, on stderr."""
    print(sentence, file=sys.stderr)


def at_least(least, kind=int, most=math.inf):
    """The argument type of numbers from `least` to `most`."""
    name = "a whole number" if kind is int else "a number"
    bound = f"of {least} or more" if most == math.inf else f"from {least} to {most}"

    def number(text: str):
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most or value == math.inf:
            raise ArgumentTypeError(f"{text!r} is not {name} {bound}")
        return value

    return number


def several(kind):
    """The argument type of lists separated by commas."""
    return lambda text: [kind(word) for word in text.split(",")]


def output(text: str) -> str:
    """The argument type of files that can be written; the file is not touched yet."""
    path = Path(text)
    folder = path.absolute().parent
    try:
        if path.is_dir():
            why = "it is a folder"
        elif not folder.is_dir():
            why = f"there is no folder {folder}"
        elif not os.access(path if path.exists() else folder, os.W_OK):
            why = "permission denied"
        else:
            return text
    except OSError as error:
        why = error.strerror
    raise ArgumentTypeError(f"{text!r} cannot be written: {why}")


def picture(text: str) -> str:
    """An output with a suffix that matplotlib knows; .png is added if it has none."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        words = f"needs matplotlib ({error}); run: pip install matplotlib"
        raise ArgumentTypeError(words) from error
    known = FigureCanvasBase.get_supported_filetypes()
    text = text if Path(text).suffix else f"{text}.png"
    if Path(text).suffix[1:].lower() not in known:
        raise ArgumentTypeError(
            f"{text!r} is not a picture: use a suffix of {', '.join(known)}"
        )
    return output(text)
