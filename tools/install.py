"""Install the built wheel into the environment that runs this script.

Packages the outputs of the CMake build folder, so nothing compiles twice, and
does nothing while they are older than the last installation.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAMP = Path(sys.prefix) / ".mlx_vulkan_installed"


def inputs(build: Path):
    yield build / "mlx" / "libmlx.so"
    yield build / "libmimalloc.so"
    yield ROOT / "pyproject.toml"
    yield ROOT / "third_party" / "mlx.json"
    yield ROOT / "README.md"
    for kind in ("*.py", "*.json"):
        yield from (ROOT / "python").rglob(kind)


def up_to_date(build: Path) -> bool:
    return STAMP.exists() and all(
        path.exists() and path.stat().st_mtime <= STAMP.stat().st_mtime
        for path in inputs(build)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    args = parser.parse_args()
    if up_to_date(args.build):
        return
    print("== Installing mlx-vulkan into", sys.prefix, flush=True)
    started = time.time()
    command = [sys.executable, "-m", "pip", "install", "-q"]
    command += ["--disable-pip-version-check", "--no-deps", "--force-reinstall"]
    # Debian 12's pip, 23.0, does not know -C.
    command += ["--no-build-isolation", str(ROOT)]
    command += [f"--config-settings=build-dir={args.build.resolve()}"]
    command += ["--config-settings=cmake.define.MLXVK_BUILD_TESTS=ON"]
    result = subprocess.run(command)
    if result.returncode:
        sys.exit(result.returncode)
    STAMP.touch()
    print(f"   installed in {time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
