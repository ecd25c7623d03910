"""`mlx-vulkan doctor`: the facts, the verdict, and what to do."""

import json

import pytest

from commands import command, python
from mlx_vulkan import advice, doctor


def test_doctor():
    done = command("doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    for word in ("libmlx", "Devices", "driver", "uuid", "heap", "Settings in force"):
        assert word in done.stdout


def test_doctor_json():
    facts = json.loads(command("doctor", "--json").stdout)
    assert facts["vulkan"] and facts["problems"] == []
    assert sum(device["selected"] for device in facts["devices"]) == 1
    assert all(device["driver_id"] for device in facts["devices"])
    assert {"vendor_id", "driver"} <= set(facts["devices"][0])
    assert facts["local_rank"] is None
    assert {"MLX_VK_DEVICE", "MLX_VK_MEMORY"} <= {c["name"] for c in facts["config"]}


def test_doctor_says_which_memory_and_why():
    def memory(**env):
        facts = json.loads(command("doctor", "--json", **env).stdout)
        return next(d["memory"] for d in facts["devices"] if d["selected"])

    assert memory()["largest_array"] > 1 << 20
    assert memory()["model"].startswith(("unified: ", "mirrored: "))
    forced = memory(MLX_VK_MEMORY="discrete")
    assert forced["model"] == "mirrored: MLX_VK_MEMORY asks for it"
    out = command("doctor", MLX_VK_MEMORY="unified").stdout
    assert "unified: MLX_VK_MEMORY asks for it" in out and "largest array" in out


def test_doctor_shows_settings_typos_and_bad_values():
    bad = {"MLX_VK_DEVISE": "0", "MLX_VK_MEMORY": "foo"}
    out = command("doctor", MLX_VK_FALLBACK="warn", **bad).stdout
    force, ignored = out.split("Settings in force")[1].split("Settings ignored")
    ignored, steps = ignored.split("What to do")
    assert "MLX_VK_FALLBACK=warn" in force and "foo" not in force
    assert "MLX_VK_MEMORY=foo: expected auto, unified, discrete" in ignored
    nearest = "MLX_VK_DEVISE is not a setting; did you mean MLX_VK_DEVICE?"
    assert nearest in ignored and "Correct MLX_VK_DEVISE" in steps


def test_doctor_shows_the_cache(tmp_path):
    folder = tmp_path / "cache"
    program = "import mlx.core as mx; mx.eval(mx.exp(mx.ones(8), stream=mx.gpu))"
    assert python("-c", program, MLX_VK_CACHE=str(folder)).returncode == 0
    done = command("doctor", "--json", MLX_VK_CACHE=str(folder))
    cache = json.loads(done.stdout)["cache"]
    files = list(folder.iterdir())
    assert cache["path"] == str(folder) and cache["writable"] and not cache["why_not"]
    assert cache["entries"] == len(files) >= 2 and cache["limit"] > cache["bytes"]
    assert cache["bytes"] == sum(file.stat().st_size for file in files)
    drivers = {driver["name"]: driver["bytes"] for driver in cache["driver_caches"]}
    assert drivers == {
        file.stem: file.stat().st_size
        for file in files
        if file.name.startswith("driver-")
    }
    out = command("doctor", MLX_VK_CACHE=str(folder)).stdout
    assert str(folder) in out and f"entries    {len(files)} " in out
    assert all(name in out for name in drivers) and drivers


def test_doctor_says_why_nothing_is_cached(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    out = " ".join(command("doctor", MLX_VK_CACHE=str(file)).stdout.split())
    assert f"writable no: {file} is not a folder" in out
    assert "off (MLX_VK_CACHE=off" in command("doctor", MLX_VK_CACHE="off").stdout
    out = " ".join(command("doctor", MLX_VK_CACHE="/sys/x").stdout.split())
    assert "writable no: /sys: " in out  # root may write there, says access(2)
    assert "The kernel cache cannot be written (/sys: " in out


def test_no_line_is_long_and_numbers_have_units():
    for env in ({}, {"VK_DRIVER_FILES": "/nonexistent"}, {"MLX_VK_DEVICE": "7"}):
        for line in command("doctor", **env).stdout.splitlines():
            assert len(line) <= 100 or " " not in line.strip(), line
    limits = {"subgroup_size": 32, "max_workgroup_size": 1024, "shared_memory": 49152}
    limits |= {"max_push_constants": 256, "max_buffer_size": 3 << 30}
    assert doctor.limits(limits) == (
        "subgroups of 32 lanes, workgroups of up to 1,024 invocations, 48 KiB of "
        "shared memory, 256 bytes of push constants, buffers of up to 3 GiB"
    )


def test_the_verdict_comes_first():
    done = command("doctor", MLX_VK_DEVICE="cpu")
    first = done.stdout.splitlines()[0]
    assert first.startswith("SLOW: ") and "a software device" in first
    assert done.returncode == 0
    done = command("doctor", VK_DRIVER_FILES="/nonexistent")
    assert done.returncode == 1 and done.stdout.startswith(
        "NOT USED: MLX does not run on a GPU: no Vulkan driver is installed"
    )
    for words in ("apt install", "dnf install", "pacman -S", "zypper install"):
        assert words in done.stdout.split("What to do")[1]
    done = command("doctor", MLX_VK_DEVICE="nosuch")
    assert done.stdout.startswith("NOT USED: ") and done.returncode == 1
    assert "MLX_VK_DEVICE=nosuch names no device" in done.stdout.splitlines()[0]


def facts(**more) -> dict:
    """Those of a machine where all is well."""
    device = {
        "name": "AMD Radeon RX 7900 XTX (RADV NAVI31)",
        "driver": "radv Mesa 26.1.6",
        "driver_id": "MESA_RADV",
        "type": "discrete",
        "selected": True,
        "usable": True,
        "missing": [],
        "optional": {"VK_KHR_cooperative_matrix": True},
        "memory": {},
    }
    cache = {"path": "/c", "writable": True, "why_not": ""}
    return {
        "vulkan": True,
        "problems": [],
        "devices": [device | more.pop("device", {})],
        "loader": {"found": True, "why": "", "closed_node": ""},
        "cache": cache,
    } | more


NO = {"selected": False}
CLOSED = "/dev/dri/renderD128 cannot be opened: Permission denied"


@pytest.mark.parametrize(
    ("found", "verdict", "step"),
    [
        (facts(), "OK", ""),
        (facts(device={"type": "cpu"}), "SLOW", "unset MLX_VK_DEVICE"),
        (
            facts(cache={"path": "", "writable": False, "why_not": "off"}),
            "SLOW",
            "Set MLX_VK_CACHE",
        ),
        (
            facts(cache={"path": "/c", "writable": False, "why_not": "/c: full"}),
            "SLOW",
            "cannot be written (/c: full)",
        ),
        (
            facts(device={"optional": {"VK_KHR_cooperative_matrix": False}}),
            "SLOW",
            "Update Mesa to 23.3 or later",
        ),
        (
            facts(device={"driver": "radv Mesa 26.0.4"}),
            "OK",
            "Update Mesa to 26.0.5 or later",
        ),
        (
            facts(devices=[], loader={"why": CLOSED, "closed_node": CLOSED}),
            "NOT USED",
            "usermod -aG render,video",
        ),
        (
            facts(
                device={"type": "cpu"} | NO,
                loader={"why": CLOSED, "closed_node": CLOSED},
            ),
            "NOT USED",
            "usermod -aG render,video",
        ),
        (
            facts(device={"missing": ["timelineSemaphore"], "usable": False} | NO),
            "NOT USED",
            "Update Mesa (radv Mesa 26.1.6)",
        ),
        (
            facts(
                device={"missing": ["x"], "driver_id": "QUALCOMM_PROPRIETARY"} | NO,
            ),
            "NOT USED",
            "Update the GPU's driver",
        ),
        (
            facts(vulkan=False, problems=["/x is loaded. pip install mlx-vulkan"]),
            "NOT USED",
            "pip install mlx-vulkan",
        ),
        (
            facts(device={"memory": {"problem": "the probe fails"}}),
            "NOT USED",
            "selftest",
        ),
    ],
)
def test_verdicts_and_steps(found, verdict, step, monkeypatch):
    monkeypatch.delenv("MLX_VK_DEVICE", raising=False)
    word, reason = advice.verdict(found)
    steps = advice.steps(found)
    assert word == verdict and reason.endswith(".")
    assert step in " ".join(steps) and bool(steps) == bool(step)
    # A closed device file is no matter of missing drivers.
    assert "usermod" not in step or "install" not in " ".join(steps)


@pytest.mark.parametrize(
    ("release", "name"),
    [
        ({"ID": "debian"}, "Debian, Ubuntu"),
        ({"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}, "Debian, Ubuntu"),
        ({"ID": "opensuse-tumbleweed", "ID_LIKE": "opensuse suse"}, "openSUSE"),
        ({"ID": "arch"}, "Arch"),
        ({"ID": "fedora"}, "Fedora"),
        ({"ID": "other"}, None),
    ],
)
def test_this_distribution_comes_first(release, name, monkeypatch):
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: release)
    assert advice.distribution() == name
    assert name is None or advice.packages().startswith(name)
