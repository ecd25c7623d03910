"""Time limits after which a kernel's driver resets a GPU.

What Linux tells of it in /sys: parameters of amdgpu, i915 and xe. A GPU that is
reset loses what it computed, so that `mlx-vulkan doctor` names limit and repair.
"""

import platform
import re
from pathlib import Path

from .layout import field

SYS = Path("/sys")


def read(path: Path) -> str | None:
    """The text of a small file, without its end of line; None if unreadable."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:g} s"


def span(values: list[int]) -> str:
    """Milliseconds of several engines as one phrase."""
    low, high = min(values), max(values)
    return seconds(low) if low == high else f"{seconds(low)} to {seconds(high)}"


def amdgpu_default(release: str) -> str:
    """The default of amdgpu, by the kernel's release."""
    major = re.match(r"(\d+)", release)
    if major and int(major[1]) >= 7:
        return "2 s"
    return "10 s, or 60 s for compute on older kernels"


def amdgpu(sys: Path, release: str) -> list[str]:
    text = read(sys / "module/amdgpu/parameters/lockup_timeout")
    if text is None:
        return []
    repair = (
        "to raise it: amdgpu.lockup_timeout=60000 (milliseconds) on the kernel's "
        "command line"
    )
    values = [part.strip() for part in text.split(",") if part.strip()]
    try:
        numbers = [int(value) for value in values]
    except ValueError:
        return [f"amdgpu lockup_timeout={text}; {repair}"]
    # One value for all, or: graphics, compute, SDMA, video.
    number = numbers[1] if len(numbers) > 1 else numbers[0] if numbers else 0
    if number < 0:
        return ["amdgpu never resets the GPU (lockup_timeout < 0)"]
    if number == 0:
        limit = f"the kernel's default ({amdgpu_default(release)})"
    else:
        limit = seconds(number)
    return [f"amdgpu resets the GPU after {limit}; {repair}"]


def cards_of(sys: Path, driver: str) -> list[Path]:
    """The /sys/class/drm/card<n> of a driver."""
    found = []
    for card in sorted((sys / "class/drm").glob("card*")):
        link = card / "device/driver"
        if re.fullmatch(r"card\d+", card.name) and link.resolve().name == driver:
            found.append(card)
    return found


def numbers_in(card: Path, pattern: str) -> list[int]:
    texts = [read(path) for path in sorted(card.glob(pattern))]
    return [int(text) for text in texts if text and re.fullmatch(r"-?\d+", text)]


def i915(sys: Path) -> list[str]:
    lines = []
    if read(sys / "module/i915/parameters/enable_hangcheck") in ("N", "0"):
        lines.append("i915 never resets the GPU (enable_hangcheck=N)")
    for card in cards_of(sys, "i915"):
        for name, what in (
            ("preempt_timeout_ms", "preempts work that others wait for after"),
            ("heartbeat_interval_ms", "checks that the GPU still answers every"),
        ):
            values = numbers_in(card, f"engine/*/{name}")
            if values and max(values) == 0:
                lines.append(f"i915: {name} is off (0)")
            elif values:
                lines.append(
                    f"i915 {what} {span(values)}; to change it, write milliseconds, or "
                    f"0 for never, to {card}/engine/*/{name}"
                )
    return lines


def xe(sys: Path) -> list[str]:
    lines = []
    for card in cards_of(sys, "xe"):
        engines = "device/tile*/gt*/engines/*"
        values = numbers_in(card, f"{engines}/job_timeout_ms")
        if not values:
            continue
        line = f"xe resets the GPU after {span(values)}"
        most = numbers_in(card, f"{engines}/job_timeout_max")
        if most:
            line += f" (at most {span(most)} without another kernel)"
        lines.append(
            f"{line}; to change it, write milliseconds to "
            f"{card}/{engines}/job_timeout_ms"
        )
    return lines


def nvidia(sys: Path) -> list[str]:
    if not (sys / "module/nvidia").is_dir():
        return []
    return [
        "nvidia: its limit cannot be read. GPUs without a display have none; "
        "MLX_VK_TIMEOUT reports kernels that hang"
    ]


def lines(vendor: int, sys: Path = SYS, release: str | None = None) -> list[str]:
    """The watchdogs of a vendor's GPUs, a sentence each.

    `vendor` is the PCI id, e.g. 0x1002. Empty where nothing can be read.
    """
    release = platform.release() if release is None else release
    if vendor == 0x1002:
        return amdgpu(sys, release)
    if vendor == 0x8086:
        return xe(sys) + i915(sys)
    if vendor == 0x10DE:
        return nvidia(sys)
    return []


def show(device: dict, sys: Path = SYS) -> None:
    for line in lines(device.get("vendor_id", 0), sys):
        field("watchdog", line, 7)
