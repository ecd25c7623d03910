"""Show or clear the cache of compiled kernels, or fill it for a model.

The cache is a folder; MLX_VK_CACHE chooses another one. Without an option its
path, number of files and size are printed.
"""

import contextlib
import os
import re
import stat
from pathlib import Path

from . import native, warm
from .arguments import Failed, add_command

EXAMPLES = """
mlx-vulkan cache
mlx-vulkan cache --clear
mlx-vulkan cache warm mlx-community/Qwen3-0.6B-4bit
"""

# Files of src/pipeline: kernels, drivers' caches, names of the last kernels, and
# leftovers of killed writers.
OWN = re.compile(
    r"(spv-[0-9a-f]{32}|driver-[0-9a-f]{32}-[0-9]+|recent-[0-9a-f]{32})"
    r"\.entry(\.tmp-[0-9]+-[0-9]+-[0-9]+)?"
)


def add_arguments(parser) -> None:
    options = parser.add_mutually_exclusive_group()
    options.add_argument("--clear", action="store_true", help="delete every entry")
    options.add_argument("--path", action="store_true", help="print only the path")
    actions = parser.add_subparsers(dest="action", metavar="[warm]")
    add_command(actions, "warm", warm)


def folder() -> Path | None:
    """The cache folder; None when it is switched off."""
    cache = native.report().get("cache")
    if cache is not None:
        return Path(cache["path"]) if cache["path"] else None
    # Another libmlx is loaded: follows default_cache_folder() of src/pipeline.
    setting = os.environ.get("MLX_VK_CACHE")
    if setting is not None:
        return None if setting in ("", "off") else Path(setting)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "mlx-vulkan"
    home = os.environ.get("HOME")
    return Path(home) / ".cache" / "mlx-vulkan" if home else None


def entries(path: Path) -> dict[Path, int]:
    """The cache's own files in its folder, and their sizes; no links, no folders."""
    found = {}
    for file in path.iterdir() if path.exists() else ():
        with contextlib.suppress(FileNotFoundError):  # other processes evict
            info = file.lstat()
            if OWN.fullmatch(file.name) and stat.S_ISREG(info.st_mode):
                found[file] = info.st_size
    return found


def run(args) -> int:
    if args.action == "warm":
        if args.clear or args.path:
            raise Failed("`cache warm` takes neither --clear nor --path.", 2)
        return warm.run(args)
    path = folder()
    if path is None:
        print(f"The kernel cache is {native.CACHE_OFF}.")
        return 0
    if args.path:
        print(path)
        return 0
    try:
        files = entries(path)
        print(f"{path}: {len(files)} files, {sum(files.values()) / 1e6:.1f} MB")
        if args.clear:
            for file in files:
                file.unlink(missing_ok=True)
            print(f"{path}: cleared")
    except OSError as error:
        verb = "cleared" if args.clear else "read"
        raise Failed(
            f"The kernel cache cannot be {verb}: {error.filename}: {error.strerror}."
        ) from error
    return 0
