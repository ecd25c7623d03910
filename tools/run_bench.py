"""Time the operations and decoding on this machine's device."""

import subprocess
import sys
from pathlib import Path

from common import choose_device
from demo import demo_model

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    choose_device()
    bench = ["-m", "mlx_vulkan", "bench"]
    model = [*bench, "model", str(demo_model()), "-p", "128", "-g", "64"]
    worst = 0
    for command in (bench, model):
        print("==", " ".join(command), flush=True)
        worst = max(
            worst, subprocess.run([sys.executable, *command], cwd=ROOT).returncode
        )
    return worst


if __name__ == "__main__":
    sys.exit(main())
