"""Write docs/dev/coverage.md: primitives by dtype, and custom kernels.

    python tools/gen_coverage.py [--build BUILD]

Probes run on this machine's device (`mlx-vulkan coverage`); kernels are those of
the installed mlx-lm, of mlx-vlm (downloaded as `make test-full` does), and of
MLX's tests, through the translator alone (tests/kernels).
"""

import argparse
import json
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import tomllib
from run_tests import extra

from common import choose_device

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "tests" / "kernels"
PAGE = ROOT / "docs" / "dev" / "coverage.md"

HEAD = """# Coverage

<!-- written by tools/gen_coverage.py -->

`mlx-vulkan coverage` prints the first part for the device at hand.

## Primitives

"""
KERNELS_HEAD = """## Custom kernels

Kernels that mlx-lm, mlx-vlm and MLX's tests pass to `mx.fast.metal_kernel`, as
`tests/kernels/extract.py` finds them in the installed packages. Each is translated
and compiled with the types that its callers allow, both with SIMD-groups that are
subgroups and with SIMD-groups emulated in shared memory. {ok} of {all} translate and
compile (✓).

| package | kernel | |
|---|---|---|
"""


def extracted(build: Path) -> list[dict]:
    folder = extra(build, "vlm", "--no-deps", "-r", "tools/requirements-full.txt")
    source = Path((build / "mlx_source_dir.txt").read_text().strip())
    command = [sys.executable, KERNELS / "extract.py", "mlx_lm", "mlx_vlm"]
    command += ["--root", folder, "--mlx-tests", source / "python" / "tests"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    (build / "kernels.jsonl").write_text(done.stdout)
    return [json.loads(line) for line in done.stdout.splitlines()]


def errors(build: Path) -> dict[int, str]:
    """Of each kernel that does not translate."""
    found: dict[int, str] = {}
    for subgroup in ("32", "8"):
        command = [build / "msl_translate", build / "kernels.jsonl"]
        command += ["--subgroup", subgroup]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        for line in done.stdout.splitlines():
            result = json.loads(line)
            if result["error"]:
                found.setdefault(result["kernel"], result["error"])
    return found


def kernel_rows(build: Path) -> tuple[list[str], int, int]:
    table = tomllib.loads((KERNELS / "expected.toml").read_text())
    expected = table.get("expected", [])
    kernels = extracted(build)
    failed = errors(build)
    rows: dict[tuple, list] = {}
    for i, kernel in enumerate(kernels):
        name = kernel.get("name", f"line {kernel['line']}")
        place = (kernel["package"], kernel["file"], kernel["line"])
        error = failed.get(i) or kernel.get("error")
        rows.setdefault(place, [name, None])
        if error:
            known = (r["reason"] for r in expected if fnmatch(name, r["kernel"]))
            rows[place][1] = "refused: " + next(known, error.splitlines()[0])
    lines = [
        f"| {package} | {name} | {why or '✓'} |"
        for (package, _, _), (name, why) in sorted(rows.items())
    ]
    return lines, sum(not why for _, why in rows.values()), len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    build = parser.parse_args().build.resolve()
    subprocess.run(["ninja", "-C", build, "msl_translate"], check=True)
    choose_device()
    command = [sys.executable, "-m", "mlx_vulkan", "coverage", "--markdown"]
    primitives = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=build)
    if not primitives.stdout:
        sys.exit("mlx-vulkan coverage printed nothing")
    rows, ok, total = kernel_rows(build)
    text = HEAD + primitives.stdout + "\n"
    text += KERNELS_HEAD.format(ok=ok, all=total) + "\n".join(rows) + "\n"
    PAGE.write_text(text)
    print(f"{PAGE}: {ok} of {total} kernels")


if __name__ == "__main__":
    main()
