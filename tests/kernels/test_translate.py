"""Every custom kernel of the installed packages translates and compiles."""

import fnmatch
import json
import os
import subprocess
from pathlib import Path

import pytest
import tomllib
from conftest import HERE, ROOT

BUILD = Path(os.environ.get("MLXVK_BUILD", ROOT / "build"))
EXPECTED = tomllib.loads((HERE / "expected.toml").read_text()).get("expected", [])


def expected(kernel):
    for row in EXPECTED:
        if row["package"] == kernel["package"]:
            if fnmatch.fnmatchcase(kernel["name"], row["kernel"]):
                return row["reason"]
    return None


def test_extraction(extracted):
    """All calls of mx.fast.metal_kernel in the packages have made a kernel."""
    lost = [k for k in extracted if "error" in k]
    assert not lost, "\n".join(f"{k['file']}:{k['line']}: {k['error']}" for k in lost)
    assert all(k["instances"] for k in extracted)
    made = {(k["file"], k["line"]) for k in extracted if k["package"] == "mlx_lm"}
    assert len(made) >= 20


# SIMD-groups that are subgroups, and those that shared memory stands for.
@pytest.mark.parametrize("subgroup", [32, 8])
@pytest.mark.parametrize("float16", [True, False])
def test_translates(extraction, extracted, subgroup, float16):
    command = [BUILD / "msl_translate", extraction, "--subgroup", str(subgroup)]
    command += ["--float16"] if float16 else []
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-2000:]
    errors, seen = {}, set()
    for line in done.stdout.splitlines():
        result = json.loads(line)
        kernel = extracted[result["kernel"]]
        seen.add(result["kernel"])
        assert not result["refused"], (
            f"{kernel['name']}: glslang refuses what the translator made:\n"
            f"{result['error']}"
        )
        if result["error"]:
            errors.setdefault(result["kernel"], result["error"])
    assert len(seen) == len(extracted)
    new = [
        f"{extracted[i]['file']}: {extracted[i]['name']}: {error}"
        for i, error in errors.items()
        if not expected(extracted[i])
    ]
    assert not new, "\n".join(new)
    repaired = [
        k["name"] for i, k in enumerate(extracted) if expected(k) and i not in errors
    ]
    assert not repaired, f"translate, though expected.toml says no: {repaired}"
    wanted = [k for k in extracted if k["package"] != "mlx"]
    refused = [i for i in errors if extracted[i]["package"] != "mlx"]
    assert len(refused) <= 0.05 * len(wanted)


def test_command():
    """msl/README.md's example, and an error."""

    def run(body):
        words = ["-", "--in", "x:float", "--out", "y:float", "--template", "T=float"]
        command = [BUILD / "msl", *words, "--threads", "64"]
        return subprocess.run(command, input=body, capture_output=True, text=True)

    readme = (ROOT / "msl" / "README.md").read_text()
    done = run(readme.partition("echo '")[2].partition("'")[0])
    assert "local_size_x = 64" in done.stdout and done.returncode == 0
    assert "load(Ptr_f32(u_x), u_i) * 2.0" in done.stdout
    done = run("y[0] = x[0] +;")
    assert done.returncode == 1 and "line 1 of the body, column 14: " in done.stderr
