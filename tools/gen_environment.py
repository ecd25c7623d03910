"""Write docs/dev/all-settings.md from the library's own table of settings.

python tools/gen_environment.py           # writes it
python tools/gen_environment.py --check   # fails if it is out of date
"""

import argparse
import sys
from pathlib import Path

from mlx_vulkan import native

PAGE = Path(__file__).resolve().parent.parent / "docs" / "dev" / "all-settings.md"
HEAD = """# Environment variables

Made by `tools/gen_environment.py` from the table in `src/vk/config.cpp`;
`mlx-vulkan doctor` shows those in force. They are read when the library loads.

| name | default | meaning |
|---|---|---|
"""
TAIL = """
MLX's own `MLX_MAX_OPS_PER_BUFFER`, `MLX_MAX_MB_PER_BUFFER` and
`MLX_ENABLE_TF32` hold too, and the Vulkan loader's `VK_DRIVER_FILES` and
`VK_LOADER_DEBUG` help where a driver is not found. For attention's backward
pass, `MLX_SDPA_VJP_FALLBACK=1` decomposes it, as its second derivatives need,
and `MLX_SDPA_VJP_BLOCK=n` holds at most n * n scores at once;
`GATED_DELTA_VJP_FALLBACK=1` decomposes the gated delta rule's.
"""


def page() -> str:
    rows = []
    for entry in native.report()["config"]:
        default = f"`{entry['default']}`" if entry["default"] else ""
        meaning = entry["description"].replace("|", "\\|")
        rows.append(f"| `{entry['name']}` | {default} | {meaning} |\n")
    return HEAD + "".join(rows) + TAIL


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if not native.is_vulkan():
        print(*native.problems(), sep="\n", file=sys.stderr)
        return 1
    if args.check:
        if PAGE.exists() and PAGE.read_text() == page():
            return 0
        print(f"{PAGE.name} is out of date: run tools/gen_environment.py")
        return 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
