"""What the make targets share: the device to run on."""

import json
import os
import subprocess
import sys

SOFTWARE = ("cpu", "software")


def doctor() -> dict:
    """The facts of `mlx-vulkan doctor`, from a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "mlx_vulkan", "doctor", "--json"],
        capture_output=True,
        text=True,
    )
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"problems": [done.stderr.strip()], "devices": []}


def has_gpu(facts: dict) -> bool:
    return any(
        device.get("usable") and str(device.get("type")).lower() not in SOFTWARE
        for device in facts.get("devices", ())
    )


def choose_device() -> None:
    """Ask for lavapipe where there is no GPU; call it before importing mlx."""
    if not os.environ.get("MLX_VK_DEVICE") and not has_gpu(doctor()):
        os.environ["MLX_VK_DEVICE"] = "cpu"
