"""Time the operations and decoding on this machine's device."""

import subprocess
import sys
from pathlib import Path

from common import choose_device

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    choose_device()
    commands = [["-m", "mlx_vulkan", "bench"]]
    commands += [
        [f"benchmarks/{name}.py"]
        for name in ("ops", "decode")
        if (ROOT / "benchmarks" / f"{name}.py").exists()
    ]
    worst = 0
    for command in commands:
        print("==", " ".join(command), flush=True)
        worst = max(
            worst, subprocess.run([sys.executable, *command], cwd=ROOT).returncode
        )
    return worst


if __name__ == "__main__":
    sys.exit(main())
