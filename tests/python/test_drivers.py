"""Known-bad drivers, and the watchdogs of fake /sys trees."""

import re
from pathlib import Path

import pytest

from mlx_vulkan import amdgpu, drivers, watchdog


def device(driver_id: str, driver: str, name: str = "GPU") -> dict:
    return {"driver_id": driver_id, "driver": driver, "name": name}


def sources(*words: str) -> list[str]:
    return [entry["source"].rsplit("/", 1)[-1] for entry in drivers.warnings(*words)]


def test_the_table_is_complete():
    fields = {"drivers", "devices", "since", "before", "breaks", "repair"}
    root = Path(__file__).resolve().parents[2]
    names = set(
        re.findall(r"MLXVK_CASE\((\w+)\)", (root / "src/vk/caps.cpp").read_text())
    )
    for entry in drivers.known():
        assert set(entry) <= fields | {"source", "grade"}
        assert entry["breaks"] and entry["repair"] and entry["drivers"]
        assert set(entry["drivers"]) <= names
        assert entry["source"].startswith(("https://github.com/", "docs/"))
        assert entry.get("grade", "note") == "note"
        re.compile(entry.get("devices", ""))
        for key in ("since", "before"):
            assert key not in entry or drivers.version(entry[key])
    affected = {name for entry in drivers.known() for name in entry["drivers"]}
    assert {"MESA_RADV", "INTEL_OPEN_SOURCE_MESA", "NVIDIA_PROPRIETARY"} <= affected
    assert {"AMD_OPEN_SOURCE", "MESA_TURNIP", "MESA_LLVMPIPE"} <= affected


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("radv Mesa 26.1.6", (26, 1, 6)),
        ("llvmpipe Mesa 22.3.6 (LLVM 15.0.6)", (22, 3, 6)),
        ("turnip Mesa driver Mesa 24.1.3-1ubuntu2", (24, 1, 3)),
        ("NVIDIA 580.159.04", (580, 159, 4)),
        ("AMD open-source driver 2025.Q2.1 (LLPC)", ()),
        ("a driver", ()),
        ("", ()),
    ],
)
def test_versions(text, numbers):
    assert drivers.version(text) == numbers


def test_ranges():
    def radv(version, name="AMD Radeon RX 6900 XT (RADV NAVI21)"):
        return sources(device("MESA_RADV", f"radv Mesa {version}", name))

    assert radv("25.0.6") == [] and radv("26.0.5") == [] and radv("26.1.0") == []
    assert radv("25.0.7") == radv("25.3.1") == radv("26.0.4") == ["22128"]
    vega = "AMD Radeon RX Vega (RADV VEGA10)"
    assert radv("24.0.3", vega) == ["1792"] and radv("24.0.3") == []

    def nvidia(version):
        return sources(device("NVIDIA_PROPRIETARY", f"NVIDIA {version}"))

    assert nvidia("470.256.02") == ["6303"] and nvidia("515.65.01") == []
    assert "929" in nvidia("580.82.07") and "929" not in nvidia("580.126.09")
    assert nvidia("570.133.20") == []
    # Every version of AMDVLK, also where none can be read.
    amdvlk = device("AMD_OPEN_SOURCE", "AMD open-source driver 2025.Q2.1 (LLPC)")
    assert sources(amdvlk) == ["413"]
    # A version that cannot be read is in no range.
    assert sources(device("MESA_RADV", "radv of somebody")) == []
    assert sources(device("", "Mesa 26.0.4")) == []


def test_show(capsys):
    drivers.show(device("MESA_RADV", "radv Mesa 26.0.4"))
    out = capsys.readouterr().out
    assert "KNOWN BUG" in out and "26.0.5 or later" in out and "issues/22128" in out
    drivers.show(device("INTEL_OPEN_SOURCE_MESA", "Mesa 26.2.2"))
    out = capsys.readouterr().out
    assert "note" in out and "KNOWN BUG" not in out
    drivers.show(device("MESA_RADV", "radv Mesa 26.1.6"))
    assert capsys.readouterr().out == ""


def tree(
    root: Path, files: dict[str, str], links: dict[str, str] | None = None
) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name, target in (links or {}).items():
        (root / target).mkdir(parents=True, exist_ok=True)
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(root / target)
    return root


@pytest.mark.parametrize(
    ("value", "release", "words"),
    [
        ("", "6.17.0-14-generic", "the kernel's default (10 s"),
        ("\n", "7.0.12-zen1", "the kernel's default (2 s)"),
        ("0", "7.1", "(2 s)"),
        ("20000\n", "7.1", "after 20 s;"),
        ("10000,60000,10000,10000", "6.1", "after 60 s;"),
        ("2500", "6.1", "after 2.5 s;"),
        ("-1", "6.1", "never"),
        ("5000,-1", "6.1", "never"),
        ("(null)", "7.0", "lockup_timeout=(null)"),
    ],
)
def test_amdgpu(tmp_path, value, release, words):
    tree(tmp_path, {"module/amdgpu/parameters/lockup_timeout": value})
    (line,) = watchdog.lines(0x1002, tmp_path, release)
    assert words in line
    assert watchdog.lines(0x8086, tmp_path, release) == []


def test_i915(tmp_path):
    engine = "class/drm/card1/engine"
    tree(
        tmp_path,
        {
            "module/i915/parameters/enable_hangcheck": "Y\n",
            f"{engine}/rcs0/preempt_timeout_ms": "640\n",
            f"{engine}/ccs0/preempt_timeout_ms": "7500\n",
            f"{engine}/rcs0/heartbeat_interval_ms": "2500\n",
            "class/drm/card1-DP-1/enabled": "enabled",
        },
        {"class/drm/card1/device/driver": "bus/pci/drivers/i915"},
    )
    preempt, heartbeat = watchdog.lines(0x8086, tmp_path, "6.1")
    assert (
        "after 0.64 s to 7.5 s" in preempt and "engine/*/preempt_timeout_ms" in preempt
    )
    assert "every 2.5 s" in heartbeat
    tree(
        tmp_path,
        {
            "module/i915/parameters/enable_hangcheck": "N",
            f"{engine}/rcs0/preempt_timeout_ms": "0",
            f"{engine}/ccs0/preempt_timeout_ms": "0",
        },
    )
    never, off, _ = watchdog.lines(0x8086, tmp_path, "6.1")
    assert "never resets" in never and "preempt_timeout_ms is off" in off


def test_xe(tmp_path):
    engines = "class/drm/card0/device/tile0/gt0/engines"
    tree(
        tmp_path,
        {
            f"{engines}/ccs/job_timeout_ms": "5000\n",
            f"{engines}/rcs/job_timeout_ms": "5000\n",
            f"{engines}/ccs/job_timeout_max": "10000\n",
        },
        {"class/drm/card0/device/driver": "bus/pci/drivers/xe"},
    )
    (line,) = watchdog.lines(0x8086, tmp_path, "6.17")
    assert "after 5 s (at most 10 s without another kernel)" in line


def amd_card(**more) -> dict:
    card = dict(vendor_id=0x1002, device_id=0x7480, type="discrete")
    return card | {"driver_id": "MESA_RADV"} | more


def test_memory_of_amd_cards(tmp_path, capsys):
    card = "class/drm/card1/device"
    tree(
        tmp_path,
        {
            f"{card}/device": "0x7480\n",
            f"{card}/mem_info_gtt_total": f"{16 << 30}\n",
            f"{card}/mem_info_vram_total": f"{8 << 30}\n",
            f"{card}/mem_info_vis_vram_total": f"{256 << 20}\n",
            f"{card}/power/control": "auto\n",
        },
        {f"{card}/driver": "bus/pci/drivers/amdgpu"},
    )
    gtt, bar, power, spills = amdgpu.lines(amd_card(), tmp_path, {})
    assert "at most 16.0 GiB of RAM" in gtt and "ttm.pages_limit" in gtt
    assert "reaches 0.2 GiB of 8.0 GiB" in bar and "Resizable BAR" in bar
    assert f"sudo tee {tmp_path / card}/power/control" in power
    assert "RADV_PERFTEST=nogttspill" in spills
    # Only what still is to be done.
    done = {"RADV_PERFTEST": "bfloat16,nogttspill"}
    tree(
        tmp_path,
        {
            f"{card}/mem_info_vis_vram_total": f"{8 << 30}",
            f"{card}/power/control": "on",
        },
    )
    assert amdgpu.lines(amd_card(), tmp_path, done) == [gtt]
    # An integrated GPU has no memory of its own; other cards and vendors differ.
    assert amdgpu.lines(amd_card(type="integrated"), tmp_path, {}) == [gtt]
    assert amdgpu.lines(amd_card(device_id=1), tmp_path, done) == []
    assert amdgpu.lines(amd_card(vendor_id=0x10DE), tmp_path, {}) == []
    amdgpu.show(amd_card(), tmp_path)
    assert "memory" in capsys.readouterr().out


def test_nothing_to_read(tmp_path, capsys):
    for vendor in (0, 0x1002, 0x8086, 0x10DE, 0x5143):
        assert watchdog.lines(vendor, tmp_path, "6.1") == []
    # Unreadable, or not what it should be.
    tree(tmp_path, {"module/amdgpu/parameters/lockup_timeout/folder": ""})
    assert watchdog.lines(0x1002, tmp_path, "6.1") == []
    assert watchdog.amdgpu_default("strange") != ""
    tree(tmp_path, {"module/nvidia/version": "580"})
    watchdog.show({"vendor_id": 0x10DE}, tmp_path)
    assert "MLX_VK_TIMEOUT" in capsys.readouterr().out
