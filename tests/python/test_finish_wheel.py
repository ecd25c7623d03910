"""A wheel's bytes follow from its files alone, and it lists what is compiled in."""

import base64
import csv
import hashlib
import io
import json
import os
import sys
import time
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("MLXVK_BUILD", ROOT / "build"))
sys.path.insert(0, str(ROOT / "tools"))

import finish_wheel  # noqa: E402

INFO = "mlx_vulkan-1.dist-info"
FILES = {
    "mlx_vulkan/__init__.py": (b"", 0o644),
    "mlx_vulkan/lib/libmlx.so": (bytes(range(256)) * 40, 0o755),
    f"{INFO}/WHEEL": (b"Wheel-Version: 1.0\n", 0o644),
    f"{INFO}/RECORD": (b"what it was", 0o644),
}


def wheel(folder: Path, files, when, umask=0) -> Path:
    folder.mkdir()
    path = folder / "mlx_vulkan-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, (data, mode) in files:
            info = zipfile.ZipInfo(name, time.gmtime(when)[:6])
            info.external_attr = (0o100000 | mode & ~umask) << 16
            archive.writestr(info, data)
    return path


def test_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    one = wheel(tmp_path / "a", FILES.items(), 10**9)
    other = wheel(tmp_path / "b", reversed(FILES.items()), 1.5e9, 0o022)
    made = [finish_wheel.finish(w, BUILD, w.parent / "to") for w in (one, other)]
    assert made[0].read_bytes() == made[1].read_bytes()
    assert finish_wheel.compare(*made) == 0 and finish_wheel.compare(one, made[0]) == 1
    with zipfile.ZipFile(made[0]) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert names[-1] == f"{INFO}/RECORD"
        assert names[:-1] == sorted(names[:-1], key=lambda n: (INFO in n, n))
        rows = list(csv.reader(io.StringIO(archive.read(names[-1]).decode())))
        assert [row[0] for row in rows] == sorted(names[:-1]) + names[-1:]
        for name, digest, size in rows[:-1]:
            data = archive.read(name)
            want = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
            assert digest == f"sha256={want.rstrip(b'=').decode()}"
            assert int(size) == len(data)
        mode = archive.getinfo("mlx_vulkan/lib/libmlx.so").external_attr >> 16
        assert mode & 0o777 == 0o755


def test_what_is_compiled_in(tmp_path):
    made = finish_wheel.finish(
        wheel(tmp_path / "a", FILES.items(), 10**9), BUILD, tmp_path / "to"
    )
    with zipfile.ZipFile(made) as archive:
        listed = json.loads(archive.read(f"{INFO}/sboms/mlx-vulkan.cdx.json"))
    folder = ROOT / "third_party"
    mlx = folder / f"mlx-{finish_wheel.cached(BUILD, 'MLXVK_MLX')}"
    manifests = [m for m in (folder / "Cargo.toml", mlx / "Cargo.toml") if m.exists()]
    lock = "".join(m.with_suffix(".lock").read_text() for m in manifests)
    direct = "".join(m.read_text().partition("[depend")[2] for m in manifests)
    packages = [p for p in listed["components"] if p["purl"].startswith("pkg:cargo/")]
    assert len(packages) == direct.count("=") / 2
    assert len(listed["components"]) == len(packages) + (not mlx.exists())
    for part in packages:
        assert f'"{part["name"]}"\nversion = "{part["version"]}"' in lock
        assert part["hashes"][0]["content"] in lock and part["licenses"]
        assert part["name"] in direct
    assert listed["bomFormat"] == "CycloneDX" and listed["specVersion"] == "1.6"


def test_a_path_of_the_build_is_refused(tmp_path):
    files = FILES | {"mlx_vulkan/__init__.py": (str(ROOT).encode(), 0o644)}
    with pytest.raises(SystemExit, match="__init__.py holds the path"):
        finish_wheel.finish(
            wheel(tmp_path / "a", files.items(), 10**9), BUILD, tmp_path
        )
