"""The mlx-vulkan command and Python, in processes of their own."""

import os
import subprocess
import sys


def python(*words, **env: str | None) -> subprocess.CompletedProcess:
    """A variable that is None is taken away."""
    found = {**os.environ, **env}
    return subprocess.run(
        [sys.executable, *map(str, words)],
        env={name: value for name, value in found.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=600,
    )


def command(*words, **env: str | None) -> subprocess.CompletedProcess:
    return python("-m", "mlx_vulkan", *words, **env)
