"""The facts of `mlx-vulkan doctor` for a report, and texts without private names."""

import getpass
import os
import platform
import re

from .. import advice, drivers

DEVICE = (
    *("name", "type", "driver", "driver_id", "vendor_id", "api_version", "limits"),
    *("plans", "optional", "missing", "heaps", "memory", "tuned"),
)
FOLDERS = re.compile(r"(?<![\w.)}\]/])/(?:[^\s/'\":;,=(){}]+/)+")


def facts(doctor: dict) -> dict:
    """Versions, the device in use and the user's settings."""
    device = advice.selected(doctor) or {}
    settings = {e["name"]: e["value"] for e in doctor.get("config", ()) if e["set"]}
    settings.pop("MLX_VK_DEVICE", None)  # may be a UUID
    if shown := os.environ.get("RADV_EXPERIMENTAL"):
        settings["RADV_EXPERIMENTAL"] = shown
    return {
        "verdict": doctor["verdict"],
        "versions": {k: v for k, v in doctor["packages"].items() if v}
        | {"python": doctor["python"], "linux": platform.release()},
        "device": {name: device[name] for name in DEVICE if name in device}
        | {"known_bugs": [entry["breaks"] for entry in drivers.warnings(device)]},
        "settings": settings,
    }


def scrubbed(value):
    """The value without folders, and without the names of user and host."""
    if isinstance(value, dict):
        return {name: scrubbed(item) for name, item in value.items()}
    if isinstance(value, list):
        return [scrubbed(item) for item in value]
    if not isinstance(value, str):
        return value
    value = FOLDERS.sub("", value)
    for name, instead in ((user(), "USER"), (platform.node(), "HOST")):
        if len(name) > 1:
            value = re.sub(rf"\b{re.escape(name)}\b", instead, value)
    return value


def user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
