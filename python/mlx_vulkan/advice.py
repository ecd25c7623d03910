"""The verdict of `mlx-vulkan doctor`, and what to do about it."""

import os
import platform
import re

from . import drivers, native

OK, SLOW, NOT_USED = "OK", "SLOW", "NOT USED"

# IDs of os-release, and how each distribution installs the loader and drivers.
DISTRIBUTIONS = {
    "Debian, Ubuntu": (
        {"debian", "ubuntu"},
        "sudo apt install libvulkan1 mesa-vulkan-drivers",
    ),
    "Fedora": (
        {"fedora", "rhel", "centos"},
        "sudo dnf install vulkan-loader mesa-vulkan-drivers",
    ),
    "Arch": (
        {"arch"},
        "sudo pacman -S vulkan-icd-loader vulkan-radeon (Intel: vulkan-intel)",
    ),
    "openSUSE": (
        {"suse", "opensuse", "opensuse-tumbleweed", "opensuse-leap"},
        "sudo zypper install libvulkan1 libvulkan_radeon (Intel: libvulkan_intel)",
    ),
    "NVIDIA GPUs": (
        set(),
        "NVIDIA's driver, which includes Vulkan (Debian: nvidia-driver; Ubuntu: "
        "sudo ubuntu-drivers install; Fedora: akmod-nvidia; Arch: nvidia-utils)",
    ),
}

# GPUs with matrix units, by driver, and the driver that offers them.
MATRIX_UNITS = (
    (
        "MESA_RADV",
        r"NAVI3|NAVI4|GFX11|GFX12|PHOENIX|STRIX|HAWK",
        "Update Mesa to 23.3 or later",
    ),
    (
        "NVIDIA_PROPRIETARY",
        r"RTX|\b(H100|H200|A100|A10|L4|L40|L40S|T4|V100|B200)\b",
        "Update the NVIDIA driver to 550 or later",
    ),
)

# Drivers whose newer versions may offer what is missing.
MESA_DRIVERS = ("MESA_RADV", "INTEL_OPEN_SOURCE_MESA", "MESA_NVK", "MESA_TURNIP")


def selected(facts: dict) -> dict | None:
    return next((d for d in facts.get("devices", ()) if d.get("selected")), None)


def sentence(parts: list[str]) -> str:
    return ". ".join(part.rstrip(".") for part in parts) + "." if parts else ""


def verdict(facts: dict) -> tuple[str, str]:
    """One of the words above, and the reason as a sentence."""
    if not facts["vulkan"]:
        return NOT_USED, sentence(facts["problems"]) or "libmlx.so cannot be loaded."
    device = selected(facts)
    if device is None:
        why = facts.get("loader", {}).get("why") or "there is no Vulkan device"
        return NOT_USED, f"MLX does not run on a GPU: {why}."
    if facts["problems"]:
        return NOT_USED, sentence(facts["problems"])
    name = device.get("name")
    if device.get("type") == "cpu":
        return SLOW, f"{name} is a software device: it computes on the CPU."
    if "problem" in device.get("memory", {}):
        return NOT_USED, sentence(
            [f"{name} does not start", device["memory"]["problem"]]
        )
    cache = facts.get("cache", {})
    if cache and not cache.get("writable"):
        return SLOW, f"MLX uses {name}, but every process compiles its kernels again."
    if without_matrix_units(device):
        return SLOW, f"MLX uses {name}, but its driver is too old for matrix units."
    if any(entry.get("grade") != "note" for entry in drivers.warnings(device)):
        return OK, f"MLX uses {name}, whose driver has a known bug."
    return OK, f"MLX uses {name}."


def without_matrix_units(device: dict) -> str | None:
    """The repair, if only the driver hides the device's matrix units."""
    if device.get("optional", {}).get("VK_KHR_cooperative_matrix", True):
        return None
    for driver, names, repair in MATRIX_UNITS:
        known = re.search(names, device.get("name", ""))
        if known and driver == device.get("driver_id"):
            return repair
    return None


def steps(facts: dict) -> list[str]:
    """The steps to take, as paragraphs for layout.paragraph()."""
    found = []
    if not facts["vulkan"] or facts["problems"]:
        return list(facts["problems"]) or [f"Reinstall the library: {native.REPAIR}"]
    device = selected(facts)
    if device is None:
        found += without_device(facts)
    else:
        if device.get("type") == "cpu":
            found.append(
                "For a GPU, unset MLX_VK_DEVICE" + needs_driver(facts.get("devices"))
            )
        if "problem" in device.get("memory", {}):
            found.append("Run `mlx-vulkan selftest` and attach its report to an issue.")
        if repair := without_matrix_units(device):
            found.append(
                f"{repair} ({device.get('driver')} here): prompts are several times "
                "faster with matrix units (VK_KHR_cooperative_matrix)."
            )
        found += [
            f"{entry['repair'][0].upper()}{entry['repair'][1:]}: {entry['breaks']}."
            for entry in drivers.warnings(device)
            if entry.get("grade") != "note"
        ]
    found += for_cache(facts.get("cache", {}))
    found += [
        f"Correct {entry['name']}={entry['value']}: expected {entry['expected']}."
        for entry in facts.get("config", ())
        if "expected" in entry
    ]
    found += [
        f"Correct {unknown['name']}: did you mean {unknown['nearest']}?"
        for unknown in facts.get("unknown_settings", ())
    ]
    return found


def needs_driver(devices) -> str:
    if any(device.get("type") != "cpu" for device in devices or ()):
        return "."
    return " and install the GPU's driver.\n" + packages()


def without_device(facts: dict) -> list[str]:
    loader, devices = facts.get("loader", {}), facts.get("devices", [])
    if os.environ.get("MLX_VK") == "0":
        return ["Unset MLX_VK: MLX_VK=0 switches this backend off."]
    if os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES"):
        found = [
            "Check VK_DRIVER_FILES and VK_ICD_FILENAMES, which choose the drivers."
        ]
    else:
        found = []
    if node := loader.get("closed_node"):
        return [
            *found,
            f"Join the group of the GPU's device file ({node}): sudo usermod -aG "
            'render,video "$USER", then log out and in again. In a container, pass '
            "the device: --device /dev/dri --group-add render.",
        ]
    chosen = os.environ.get("MLX_VK_DEVICE", "")
    old = [device for device in devices if is_old(device)]
    if old:
        return [
            *found,
            f"Update Mesa ({old[0]['driver']}): {old[0]['name']} lacks "
            f"{', '.join(old[0]['missing'])}. Debian 12 has a newer Mesa in "
            "bookworm-backports, Ubuntu in the PPA kisak/kisak-mesa.",
        ]
    if chosen not in ("", "auto") and devices:
        names = "; ".join(f"{i}: {d['name']}" for i, d in enumerate(devices))
        return [*found, f"Set MLX_VK_DEVICE to one of the devices ({names})."]
    if any(d.get("type") != "cpu" for d in devices):
        return [
            *found,
            "Update the GPU's driver: the lines MISSING above name the Vulkan "
            "features that it does not offer. Some GPUs never offer them.",
        ]
    found.append(
        "Install the Vulkan loader and the driver of your GPU, then run "
        "`mlx-vulkan doctor` again:\n" + packages()
    )
    if any(d.get("type") == "cpu" for d in devices):
        found.append("Without a GPU, MLX_VK_DEVICE=cpu runs this backend on the CPU.")
    return found


def is_old(device: dict) -> bool:
    """Whether a newer Mesa may offer what is missing."""
    return bool(device.get("missing")) and device.get("driver_id") in MESA_DRIVERS


def for_cache(cache: dict) -> list[str]:
    if not cache or cache.get("writable"):
        return []
    if not cache.get("path"):
        return ["Set MLX_VK_CACHE to a folder, so that kernels are compiled once."]
    why = cache["why_not"]
    if "Set MLX_VK_CACHE" in why or "chmod" in why:
        return [why[0].upper() + why[1:]]
    return [
        f"The kernel cache cannot be written ({why}): free space there, or set "
        "MLX_VK_CACHE to a folder of your own."
    ]


def distribution() -> str | None:
    """This machine's key of DISTRIBUTIONS, if it has one."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    ids = [release.get("ID", ""), *release.get("ID_LIKE", "").split()]
    for name, (known, _) in DISTRIBUTIONS.items():
        if known.intersection(ids):
            return name
    return None


def packages() -> str:
    """Commands to install packages, a line for each distribution, this one's first."""
    mine = distribution()
    names = sorted(DISTRIBUTIONS, key=lambda name: name != mine)
    return "\n".join(f"{name:<15} {DISTRIBUTIONS[name][1]}" for name in names)
