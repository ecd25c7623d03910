"""The wheel's version and requirements, from third_party/mlx.json.

scikit-build-core asks for them (pyproject.toml). MLXVK_MLX is the version of MLX that
the wheel is for, the newest if it is not set. As a program: prints the packages of
that time, for the development environment, all versions (--all) or the
wheel's (--version).
"""

import json
import os
import sys
from pathlib import Path

TABLE = json.loads(
    (Path(__file__).resolve().parent.parent / "third_party/mlx.json").read_text()
)


def mlx_version() -> str:
    version = os.environ.get("MLXVK_MLX") or TABLE["newest"]
    if version not in TABLE["versions"]:
        known = ", ".join(TABLE["versions"])
        raise SystemExit(f"third_party/mlx.json has no MLX {version}, but {known}.")
    return version


def dynamic_metadata(field: str, settings=None, *_):
    version = mlx_version()
    if field == "version":
        return f"{version}.post{TABLE['post']}"
    if field == "dependencies":
        # numpy and rich: `mlx-vulkan selftest`; whoever has mlx-lm has both.
        return [f"mlx=={version}", "numpy", "rich>=13"]
    raise ValueError(f"{field} is not from third_party/mlx.json")


if __name__ == "__main__":
    if sys.argv[1:] == ["--all"]:
        sys.exit(print(*TABLE["versions"]))
    if sys.argv[1:] == ["--version"]:
        sys.exit(print(dynamic_metadata("version")))
    mlx = mlx_version()
    print(f"mlx=={mlx}", f"mlx-lm=={TABLE['versions'][mlx]['mlx-lm']}")
