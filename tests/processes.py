"""Python in a process of its own, on the same device, under other variables."""

import os
import subprocess
import sys
from pathlib import Path

LISTS = ("MLX_VK_DEBUG", "MLX_VK_TEST")
TESTS = Path(__file__).resolve().parent
# A word of MLX_VK_TEST: the sources of matrices that software devices emulate.
EMULATION = f"kernels={TESTS / 'emulation'}"


def python(*words, limit=300, folder=None, **variables) -> subprocess.CompletedProcess:
    """`words` after the name of Python, for `limit` seconds at most. The tests'
    modules can be imported there, as those of `folder`, where it runs. A variable
    that is None is taken away; words of LISTS are added to those that are set."""
    for name in LISTS:
        if variables.get(name) and os.environ.get(name):
            variables[name] = f"{os.environ[name]},{variables[name]}"
    paths = [folder, TESTS, variables.pop("PYTHONPATH", os.environ.get("PYTHONPATH"))]
    variables["PYTHONPATH"] = os.pathsep.join(str(path) for path in paths if path)
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env={k: v for k, v in environment.items() if v is not None},
        capture_output=True,
        text=True,
        timeout=limit,
    )
    if "select" in (environment.get("MLX_VK_DEBUG") or ""):  # run_tests.py --names
        print(done.stderr, file=sys.stderr)
    return done


def output_of(*words, **more) -> subprocess.CompletedProcess:
    """The same, of what has to end well."""
    done = python(*words, **more)
    assert done.returncode == 0, done.stderr[-3000:]
    return done
