"""Fail when a file under src/ includes one of a higher layer.

The ladder of docs/dev/architecture.md: a layer includes itself and those before it.
Those up to ranks are free of MLX. msl/ is a library beside them: it includes itself
alone, and src/ its public header alone.
"""

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# io, jit and overrides stand side by side.
LADDER = (
    ("vk",),
    ("policy",),
    ("pipeline",),
    ("kernels",),
    ("runtime",),
    ("ranks",),
    ("backend",),
    ("ops",),
    ("jit", "io", "overrides"),
    ("versions",),
)
RUNG = {layer: rung for rung, layers in enumerate(LADDER) for layer in layers}
MSL = "msl/translate.h"
MLX_RUNG = RUNG["backend"]  # the lowest that may include MLX
INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<(mlx/[^>]+)>)')


def below(layer: str) -> str:
    names = [n for n, rung in RUNG.items() if rung < RUNG[layer]]
    return ", ".join([*names, "itself"])


def problem(layer: str, included: str) -> str:
    """What is wrong with a file of `layer` including `included`, or nothing."""
    target = included.split("/")[0]
    if target == "msl" or layer == "msl":
        free = layer == target == "msl" or included == MSL
        return "" if free else f"of msl/, src/ includes {MSL}; msl/ includes itself"
    if target == "mlx":
        if RUNG[layer] < MLX_RUNG:
            return f"src/{layer} is free of MLX"
    elif target not in RUNG:
        return 'a header is named by its path under src, as "vk/vk.h"'
    elif target != layer and RUNG[target] >= RUNG[layer]:
        return f"src/{layer} may include {below(layer)}"
    return ""


def check(root: Path) -> list[str]:
    failures = []
    for path in sorted(p for d in ("src", "msl") for p in (root / d).rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        relative = path.relative_to(root)
        layer = relative.parts[1] if relative.parts[0] == "src" else "msl"
        if layer == "msl" and relative.parts[1] == "tests":
            continue
        if layer not in RUNG and layer != "msl":
            failures.append(f"{relative}: src/{layer} has no place in the ladder.")
            continue
        if path.suffix == ".h" and layer == "kernels":
            continue  # names files by their path under src/kernels, as GLSL does
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if match := INCLUDE.match(line):
                included = match[1] or match[2]
                if why := problem(layer, included):
                    failures.append(f'{relative}:{number}: "{included}": {why}.')
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="holds src/ and msl/")
    failures = check(parser.parse_args().root)
    for failure in failures:
        print(failure, file=sys.stderr)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
