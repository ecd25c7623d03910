"""Show or clear the kernel cache on disk, or fill it for a model."""

import os
import shutil
from pathlib import Path

from . import native, warm


def add_arguments(parser) -> None:
    parser.add_argument("--clear", action="store_true", help="delete every entry")
    parser.add_argument("--path", action="store_true", help="print the folder only")
    actions = parser.add_subparsers(dest="action", metavar="warm")
    summary = warm.__doc__.splitlines()[0]
    filler = actions.add_parser("warm", help=summary, description=summary)
    filler.add_argument("model", help="a model's folder, in mlx-lm's format")


def folder() -> Path | None:
    """The cache folder; None when it is switched off."""
    said = native.report().get("cache", {}).get("path")
    if said:
        return Path(said)
    setting = os.environ.get("MLX_VK_CACHE", "")
    if setting == "off":
        return None
    if setting:
        return Path(setting)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mlx-vulkan"


def run(args) -> int:
    if args.action == "warm":
        return warm.run(args)
    path = folder()
    if path is None:
        print("The kernel cache is off (MLX_VK_CACHE=off).")
        return 0
    if args.path:
        print(path)
        return 0
    files = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else []
    size = sum(p.stat().st_size for p in files)
    print(f"{path}: {len(files)} files, {size / 1e6:.1f} MB")
    if args.clear and path.is_dir():
        for entry in path.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        print("cleared")
    return 0
