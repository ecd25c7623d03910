"""What Linux tells in /sys of the memory of AMD's cards, and the traps in it.

RADV's driver in the kernel moves video memory to RAM under pressure and may not move it
back; tokens then take three times as long until a restart.
"""

import os
from pathlib import Path

from .layout import field
from .watchdog import SYS, cards_of, read

VENDOR = 0x1002
NO_SPILL = "nogttspill"


def bytes_in(path: Path) -> int | None:
    text = read(path)
    return int(text) if text and text.isdecimal() else None


def gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"


def spills(environment=os.environ) -> list[str]:
    if NO_SPILL in environment.get("RADV_PERFTEST", "").split(","):
        return []
    return [
        "RADV moves video memory to RAM when it runs short, and not always back: where "
        f"tokens become slow until a restart, set RADV_PERFTEST={NO_SPILL} "
        "(https://github.com/ggml-org/llama.cpp/issues/24066)"
    ]


def lines(device: dict, sys: Path = SYS, environment=os.environ) -> list[str]:
    """Sentences about the card of a device as mlx_vulkan.native reports it; none for
    devices that are not AMD's cards."""
    if device.get("vendor_id") != VENDOR:
        return []
    cards = [
        card / "device"
        for card in cards_of(sys, "amdgpu")
        if int(read(card / "device/device") or "0", 16) == device.get("device_id")
    ]
    found = []
    for card in cards:
        if gtt := bytes_in(card / "mem_info_gtt_total"):
            found.append(
                f"at most {gib(gtt)} of RAM for this GPU (GTT, half of the RAM by "
                "default); to change it, ttm.pages_limit=N on the kernel's command "
                "line, in pages of 4 KiB"
            )
        if device.get("type") != "discrete":
            continue
        seen = bytes_in(card / "mem_info_vis_vram_total")
        size = bytes_in(card / "mem_info_vram_total")
        if seen and size and seen < size:
            found.append(
                f"the CPU reaches {gib(seen)} of {gib(size)}: turn on Resizable BAR, "
                "also named Smart Access Memory, in the firmware's settings, which "
                "makes loading faster"
            )
        if read(card / "power/control") == "auto":
            found.append(
                "a card without a display loses its memory to RAM while it idles; to "
                f"keep it: echo on | sudo tee {card}/power/control"
            )
    if device.get("type") == "discrete" and device.get("driver_id") == "MESA_RADV":
        found += spills(environment)
    return found


def show(device: dict, sys: Path = SYS) -> None:
    for line in lines(device, sys):
        field("memory", line, 7)
