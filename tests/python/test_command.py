"""The mlx-vulkan command, and what it says of a broken installation."""

import ctypes
import json
import os
import subprocess
import sys

from mlx_vulkan import native


def command(*words: str, **env: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "mlx_vulkan", *words],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
    )


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


def test_doctor_shows_settings_and_typos():
    out = command("doctor", MLX_VK_FALLBACK="warn", MLX_VK_DEVISE="0").stdout
    assert "MLX_VK_FALLBACK=warn" in out
    assert "MLX_VK_DEVISE is not a setting" in out


def test_doctor_shows_the_cache(tmp_path):
    folder = tmp_path / "cache"
    program = "import mlx.core as mx; mx.eval(mx.exp(mx.ones(8), stream=mx.gpu))"
    env = {**os.environ, "MLX_VK_CACHE": str(folder)}
    subprocess.run([sys.executable, "-c", program], env=env, check=True)
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
    assert str(folder) in out and f"entries   {len(files)} " in out
    assert all(name in out for name in drivers) and drivers


def test_doctor_says_why_nothing_is_cached(tmp_path):
    file = tmp_path / "file"
    file.write_text("x")
    out = command("doctor", MLX_VK_CACHE=str(file)).stdout
    assert f"writable  no: {file} is not a folder" in out
    assert "off (MLX_VK_CACHE=off" in command("doctor", MLX_VK_CACHE="off").stdout


def test_cache(tmp_path):
    (tmp_path / "entry").write_text("x")
    out = command("cache", MLX_VK_CACHE=str(tmp_path)).stdout
    assert str(tmp_path) in out and "1 files" in out
    command("cache", "--clear", MLX_VK_CACHE=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_profile_runs_a_program():
    program = "import mlx.core as mx; mx.eval(mx.exp(mx.ones(8), stream=mx.gpu))"
    done = command("profile", "--", sys.executable, "-c", program)
    assert done.returncode == 0
    assert "unary" in done.stdout + done.stderr


def test_bench():
    done = command("bench", "--seconds", "0.02", "--size", "64")
    assert done.returncode == 0, done.stderr
    assert "matmul" in done.stdout


def test_another_libmlx_is_noticed(monkeypatch):
    monkeypatch.setattr(native, "library", lambda: ctypes.CDLL(None))
    assert not native.is_vulkan()
    assert "is not the Vulkan build" in " ".join(native.problems())
    monkeypatch.setenv("MLX_VK", "0")
    assert "unset it" in " ".join(native.problems())
    assert native.report() == {}
