"""`mlx-vulkan report`: what owners of a GPU send to the project."""

import getpass
import json
import platform
import re
from pathlib import Path

import pytest

from commands import command
from mlx_vulkan import report
from mlx_vulkan.report import kernels, private, summary, worker

ROOT = Path(__file__).resolve().parents[2]


def test_report_of_a_tiny_model(tmp_path):
    file = tmp_path / "report.json"
    words = ("--shape", "tiny", "--only", "arange", "--json", str(file))
    done = command("report", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    text = file.read_text()
    made = json.loads(text)
    assert made["device"]["plans"]["class"] and not made["failures"]
    assert made["selftest"]["passed"] > 0 and made["selftest"]["failed"] == 0
    for name in ("prompt 128", "prompt 512", "decode after 512"):
        assert made["speeds"][name]["value"] > 0
    assert all(value > 0 for value in made["limits"]["measured"].values())
    *prompts, decode = made["phases"]
    assert [phase["name"] for phase in prompts] == ["prompt 128", "prompt 512"]
    for phase in made["phases"]:
        rows = phase["kernels"]
        assert sum(row["share"] for row in rows) == pytest.approx(1)
        products = [row for row in rows if row["kernel"].startswith("quant/qm")]
        assert products and all(row["flops"] > 0 for row in products)
        for row in products:
            assert row["rule"] and row["chosen"] and row["fraction"] > 0
    # q, k, v, o, gate, up and down; of the last layer only k and v are needed.
    weights = 128 * (128 + 2 * 64 + 128 + 3 * 256) + 128 * 2 * 64
    flops = sum(r["flops"] for r in prompts[0]["kernels"] if "/qmm" in r["kernel"])
    assert flops == 2 * 128 * weights
    assert decode["kernel_ms"] > 0
    for folder in (str(Path.home()), str(tmp_path), str(ROOT)):
        assert folder not in text
    assert not re.search(rf"\b{re.escape(platform.node())}\b", text)
    assert "Please attach" in done.stdout and len(done.stdout.splitlines()) < 60


def test_a_report_without_a_device_says_so(tmp_path):
    done = command("report", "--json", str(tmp_path / "x.json"), MLX_VK="0")
    assert done.returncode == 2 and "There is no Vulkan device" in done.stderr
    assert not (tmp_path / "x.json").exists()


def test_rules_are_functions_of_the_tree():
    for function, path in kernels.RULES.values():
        assert f"{function}(" in (ROOT / path).read_text(), function
    assert "plan_tiled" in kernels.rule_of("quant/qmm{T=bf16}")
    assert "plan_weights" in kernels.rule_of("gemm/rows_coopmat{T=bf16 CODES=0}")
    assert kernels.rule_of("norm{T=bf16}") == ""


QMM = "quant/qmm{T=bf16 GROUP=64 CODE=0 BATCH=0 BM=32 BN=64}"
EXPERTS = "quant/qmv_experts{T=bf16}"
PATHS = """
[mlx-vulkan] quantized products
        3 x bf16 m=16 n=64 k=64 batch=1 bits=4 w^T: qmm 32x64 (no matrices (of bf16))
        9 x bf16 m=1 n=64 k=64 batch=1 bits=4 w^T: qmv rows=1
"""


def event(at: float, name: str, us: float, bytes=0, flops=0) -> dict:
    args = {"bytes": bytes, "flops": flops, "matrix_units": False}
    return {"ph": "X", "tid": 2, "name": name, "ts": at, "dur": us, "args": args}


def phases() -> dict:
    """A prompt of 16 rows, twice, in which a product is slow; a step of experts."""
    mark = f"unary{{{worker.MARK}}}"
    names = [*worker.LIMITS, "prompt 16", "", "decode after 16", ""]
    tokens = {"prompt 16": 16, "decode after 16": 1}
    runs = {"prompt 16": 2}
    plan = [
        {"name": n, "tokens": tokens.get(n, 0), "runs": runs.get(n, 1)} for n in names
    ]
    inside = (
        [event(0, "add", 10, bytes=1e6)],  # 100 GB/s
        [event(0, "gemm", 10, flops=1e8)],  # 10 TFLOP/s
        [event(0, "gemm", 10, flops=5e7)],
        [event(0, QMM, 80, flops=2e8), event(1, "norm{T=bf16}", 20, bytes=2e6)] * 2,
        [event(0, "random", 1000)],
        [event(0, EXPERTS, 100, bytes=8e7), event(1, "gather{T=u8}", 1, bytes=1e9)],
        [event(0, "random", 1000)],
    )
    events = [event(0, "random", 1000)]
    for i, part in enumerate(inside, 1):
        events.append(event(100 * i, mark, 1))
        events += [e | {"ts": 100 * i + 1 + j} for j, e in enumerate(part)]
    plan = {"phases": plan, "experts": 16, "active": 2}
    return kernels.read(plan, {"traceEvents": events}, PATHS)


def test_slow_kernels_are_suspected_first():
    found = phases()
    limits = kernels.limits("unknown", found)
    assert limits["memory GB/s"] == pytest.approx(100)
    assert limits["16-bit TFLOP/s"] == pytest.approx(10)
    assert "measured" in limits["source"]
    prompt, decode = (kernels.describe(p, limits, True) for p in found["phases"])
    slow = prompt["kernels"][0]
    assert slow["kernel"] == "quant/qmm{T=bf16 GROUP=64 BM=32 BN=64}"
    assert (slow["share"], slow["calls"]) == (pytest.approx(0.8), 1)
    assert slow["fraction"] == pytest.approx(0.25) and slow["flops"] == 2e8
    assert prompt["kernel_ms"] == pytest.approx(0.1)
    (why,) = slow["chosen"]
    assert (why["why"], why["calls"]) == ("no matrices (of bf16)", 3)
    # Two of 16 experts are read; a gather reads less than its operand.
    rows = {row["kernel"]: row for row in decode["kernels"]}
    assert rows[EXPERTS]["of_bandwidth"] == pytest.approx(1)
    assert rows["gather{T=u8}"]["fraction"] is None
    (suspect,) = kernels.suspects([prompt, decode])
    assert suspect["why"] == ["no matrices (of bf16)"]
    assert "plan_tiled" in suspect["rule"]


def test_summaries_name_what_failed():
    found = phases()
    limits = kernels.limits("unknown", found)
    prompt, _ = (kernels.describe(p, limits, True) for p in found["phases"])
    prompt["step_ms"] = 0.2
    text = summary.text(
        {
            "device": {"name": "X", "driver": "Mesa"},
            "versions": {"mlx-vulkan": "1"},
            "limits": limits,
            "selftest": {"passed": 1, "failed": 1, "failures": [{"id": "sort/u8"}]},
            "shape": "tiny",
            "speeds": {"prompt 16": {"value": 5, "unit": "tokens/s"}},
            "phases": [prompt],
            "suspects": kernels.suspects([prompt]),
            "failures": {"kernels": "exit status 1: DEVICE_LOST"},
        }
    )
    assert "1 failed: sort/u8" in text and "prompt 16: 5 tokens/s" in text
    assert "80 % quant/qmm" in text and "25 % of its limit" in text
    assert "0.1 ms in kernels, of 0.2 ms without the profile" in text
    assert "chosen by plan_tiled in src/ops/quant/plan.cpp (no matrices" in text
    assert "FAILED: kernels: exit status 1: DEVICE_LOST" in text


def test_reports_have_no_names_of_their_machine():
    user, host = getpass.getuser(), platform.node()
    text = f"MLX_VK_CACHE=/home/{user}/.cache/x on {host}: '/tmp/a b' src/vk/caps.h"
    (made,) = private.scrubbed([text])
    assert made.endswith("'a b' src/vk/caps.h")
    assert "/home" not in made and host not in made and "=x on HOST" in made
    assert private.scrubbed({"n": 1, "b": [None, True]}) == {"n": 1, "b": [None, True]}


def test_a_part_that_fails_is_in_the_report(tmp_path):
    part = report.Part(str(tmp_path))
    part.run("kernels", "no_such_module")
    assert "No module named no_such_module" in part.failures["kernels"]
    assert part.load("trace.json") == {}
