"""Processes of one job share out the devices (MLX_VK_DEVICE=auto)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, os, sys
import mlx.core as mx
from mlx_vulkan import native
facts = native.report()
chosen = [i for i, d in enumerate(facts["devices"]) if d["selected"]]
x = mx.arange(4, dtype=mx.float32)
total = mx.sum(x * 2, stream=mx.gpu).item()
line = {"rank": os.environ.get("MLX_RANK"), "local": facts["local_rank"],
        "chosen": chosen, "devices": len(facts["devices"]), "total": total}
sys.stdout.write("FACTS" + json.dumps(line) + chr(10))
"""


@pytest.fixture
def two_devices(tmp_path) -> dict[str, str]:
    """An environment in which the loader lists lavapipe twice."""
    folders = ("/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d")
    found = [p for f in folders for p in sorted(Path(f).glob("lvp_icd*.json"))]
    if not found:
        pytest.fail("lavapipe is missing (Debian: apt install mesa-vulkan-drivers)")
    copy = tmp_path / "lvp_again.json"
    manifest = json.loads(found[0].read_text())
    library = manifest["ICD"]["library_path"]
    if library.startswith("."):
        manifest["ICD"]["library_path"] = str((found[0].parent / library).resolve())
    copy.write_text(json.dumps(manifest))
    files = f"{found[0]}:{copy}"
    # VK_ICD_FILENAMES is the older name.
    return {
        **os.environ,
        "VK_DRIVER_FILES": files,
        "VK_ICD_FILENAMES": files,
        "MLX_VK_DEVICE": "cpu",
    }


def facts(output: str) -> list[dict]:
    lines = [line for line in output.splitlines() if "FACTS" in line]
    found = [json.loads(line.split("FACTS", 1)[1]) for line in lines]
    return sorted(found, key=lambda one: one["rank"] or "")


def test_two_ranks_of_mlx_launch_take_two_devices(two_devices, tmp_path):
    script = tmp_path / "ranks.py"
    script.write_text(PROGRAM)
    launch = [str(Path(sys.executable).parent / "mlx.launch"), "--backend", "ring"]
    launch += ["-n", "3", "--", sys.executable, str(script)]
    done = subprocess.run(
        launch, env=two_devices, capture_output=True, text=True, input="", timeout=300
    )
    found = facts(done.stdout)
    assert [one["local"] for one in found] == [0, 1, 2], done.stdout + done.stderr
    devices = found[0]["devices"]
    assert devices == 2
    assert [one["chosen"] for one in found] == [[0], [1], [0]]
    assert [one["total"] for one in found] == [12, 12, 12]


def alone(env: dict[str, str]) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, env=env, capture_output=True, text=True)


def test_without_a_launcher_the_first_is_taken(two_devices):
    done = alone(two_devices)
    assert facts(done.stdout)[0]["chosen"] == [0], done.stderr
    assert facts(done.stdout)[0]["local"] is None
    # By index, the launcher does not matter.
    done = alone({**two_devices, "MLX_VK_DEVICE": "0", "LOCAL_RANK": "1"})
    assert facts(done.stdout)[0]["chosen"] == [0], done.stderr


def test_a_launcher_that_makes_no_sense_is_told(two_devices):
    done = alone({**two_devices, "MLX_RANK": "1", "MLX_HOSTFILE": "/gone"})
    assert done.returncode != 0
    assert "MLX_HOSTFILE=/gone cannot be read" in done.stderr
    assert "name one with MLX_VK_DEVICE" in done.stderr
