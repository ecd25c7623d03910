"""Known answers of the emulator's instructions: builds and runs isa/*.cpp."""

import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import driver_lab as lab  # noqa: E402

# The emulator without its kernel side.
INSTRUCTIONS = (
    "atomic compare control decode global half lanes llvm matrix packed run scalar "
    "scalar_float sdwa shared table text vector vector_float"
).split()


def build() -> Path:
    folder = lab.build_emulator().parent
    program = folder / "isa_test"
    sources = sorted(HERE.glob("*.cpp"))
    texts = [path.read_bytes() for path in (*sources, *sorted(HERE.glob("*.h")))]
    texts.append((folder / "done").read_bytes())
    key = hashlib.sha256(b"".join(texts)).hexdigest()
    stamp = folder / "isa_done"
    with lab.alone(folder / "isa_lock"):
        if program.exists() and stamp.exists() and stamp.read_text() == key:
            return program
        # They are many assertions, which nothing runs twice: unoptimized.
        flags = [flag for flag in lab.EMULATOR_FLAGS if not flag.startswith("-O")]
        ccache = [found] if (found := shutil.which("ccache")) else []
        objects = [folder / f"{name}.o" for name in INSTRUCTIONS]

        def compile(source: Path) -> Path:
            target = folder / f"isa_{source.stem}.o"
            lab.run(
                [*ccache, "c++", *flags, "-c", source, "-o", target],
                f"Compiling {source.name} (apt: g++ doctest-dev)",
            )
            return target

        with ThreadPoolExecutor(os.cpu_count()) as threads:
            objects += threads.map(compile, sources)
        static = ["-static-libstdc++", "-static-libgcc"]
        lab.run(
            ["c++", *static, *objects, "-o", program, "-ldl"],
            "Linking the tests of instructions",
        )
        stamp.write_text(key)
    return program


def test_known_answers():
    lab.setup()
    loader = lab.first("ld-linux-x86-64.so.2", lab.libraries())
    command = [loader, "--library-path", lab.libraries(), build()]
    env = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
