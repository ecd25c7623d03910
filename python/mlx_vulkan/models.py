"""The model of a command: a folder in mlx-lm's format, or a name on the hub."""

import contextlib
import re
from pathlib import Path

from .arguments import Failed

HELP = "a folder in mlx-lm's format, or the name of a model on the Hugging Face hub"
FILES = ("*.json", "*.safetensors", "*.py", "*.model", "*.tiktoken", "*.txt", "*.jinja")


def require_mlx_lm() -> None:
    try:
        import mlx_lm  # noqa: F401
    except ImportError as error:
        raise Failed(f"mlx-lm is missing ({error}); run: pip install mlx-lm") from error


def is_hub_name(name: str) -> bool:
    named = re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name)
    return named is not None and not Path(name).exists()


def folder_of(name: str) -> Path:
    """The model's folder, downloaded if `name` is a hub's. Throws Failed."""
    if is_hub_name(name):
        with loading(name):
            from huggingface_hub import snapshot_download

            return Path(snapshot_download(name, allow_patterns=list(FILES)))
    path = Path(name).expanduser()
    if not path.is_dir():
        raise Failed(
            f"{name} is not a folder; give one in mlx-lm's format (config.json and "
            "model*.safetensors), as `mlx_lm.convert` writes it, or the name of a "
            "model on the Hugging Face hub."
        )
    if not (path / "config.json").is_file():
        raise Failed(f"{name} has no config.json: it is not a model folder.")
    if not list(path.glob("model*.safetensors")):
        raise Failed(f"{name} has no model*.safetensors: its weights are missing.")
    return path


@contextlib.contextmanager
def loading(name: str | Path):
    """Turns the exceptions of mlx-lm and the hub into a sentence."""
    try:
        yield
    except Exception as error:
        words = f"{type(error).__name__}: {error}".splitlines()[0]
        raise Failed(f"mlx-lm cannot load {name} ({words}).") from error
