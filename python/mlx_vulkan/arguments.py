"""Types of arguments: what cannot be is said before anything runs."""

import math
import os
from argparse import ArgumentTypeError
from pathlib import Path


def at_least(least, kind=int, most=math.inf):
    """Numbers of a kind."""
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
    """What commas part, as a list."""
    return lambda text: [kind(word) for word in text.split(",")]


def output(text: str) -> str:
    """A file that can be written, which is not touched yet."""
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
    """An output whose ending matplotlib knows; without one it is a PNG."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        words = f"needs matplotlib ({error}); run: pip install matplotlib"
        raise ArgumentTypeError(words) from error
    known = FigureCanvasBase.get_supported_filetypes()
    if (Path(text).suffix[1:].lower() or "png") not in known:
        raise ArgumentTypeError(f"{text!r} ends with none of {', '.join(known)}")
    return output(text)
