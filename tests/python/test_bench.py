"""`mlx-vulkan bench`: operations, models, comparisons, plots."""

import json
import re
from pathlib import Path

import pytest

from commands import command, python
from mlx_vulkan.bench import chips, compare, intervals, plots, report, shapes

ROOT = Path(__file__).resolve().parents[2]


def test_each_threshold_of_plans_has_a_sweep():
    header = (ROOT / "src/policy/policy.h").read_text()
    families = r"struct (\w+)Thresholds {(.*?)\n};"
    fields = {
        f"{family.lower()}.{field}"
        for family, body in re.findall(families, header, re.S)
        for field in re.findall(r"^  uint\d+_t (\w+) = ", body, re.M)
    }
    done = python(ROOT / "benchmarks/thresholds.py", "--list")
    assert set(done.stdout.split()) == fields and len(fields) > 40


def test_rows_are_timed_and_judged(tmp_path):
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    words = ("--small", "--rows", "9,1", "--rounds", "2", "--seconds", "0.001")
    script = ROOT / "benchmarks/rows.py"
    done = python(script, "k, v", "experts of", *words, "--json", a)
    assert done.returncode == 0, done.stderr
    rows = json.loads(a.read_text())["results"]
    assert [row["facts"]["rows"] for row in rows] == [1, 9, 1, 9]
    assert all(len(r["values"]) == 2 and min(r["values"]) > 0 for r in rows)
    assert rows[0]["flops"] * 9 == rows[1]["flops"]
    assert rows[0]["bytes"] < rows[1]["bytes"] < 9 * rows[0]["bytes"]
    for row in rows:  # one row of 1.04 and of 1.06 of the time of nine
        few = 104.0 if "k, v" in row["name"] else 106.0
        row["values"] = [few if row["facts"]["rows"] == 1 else 100.0]
    b.write_text(json.dumps({**json.loads(a.read_text()), "results": rows}))
    done = python(script, "--draw", b, a, "--plot", tmp_path / "a.png")
    assert done.returncode == 0, done.stderr
    mine = done.stdout.split(str(a)[:-5])[0]
    assert "NOT MONOTONE 30B-A3B experts of a layer: 1 rows take 106.0 us" in mine
    assert "monotone within 5 %: 8B k, v" in mine
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"


def test_drafts_are_accepted_at_the_rate_asked_for(tmp_path):
    file = tmp_path / "a.json"
    words = ("--shape", "tiny", "--draft", "tiny", "--prompt", "9", "--runs", "1")
    words += ("--tokens", "100", "--accept", "0,0.5,1", "--drafts", "3")
    done = python(ROOT / "benchmarks/speculate.py", *words, "--json", file)
    assert done.returncode == 0, done.stderr
    plain, *rows = json.loads(file.read_text())["results"]
    assert plain["name"] == "plain" and len(plain["values"]) == 3
    none, half, all_ = (row["facts"]["drafted"] for row in rows)
    assert none == 0 and all_ == 0.75
    assert abs(half - (1 - 1 / (1 + 0.5 + 0.25 + 0.125))) < 0.1


def test_bench_operations(tmp_path):
    file, words = tmp_path / "a.json", ("--seconds", "0.02", "--small")
    done = command("bench", *words, "--json", str(file))
    assert done.returncode == 0, done.stderr
    report = json.loads(file.read_text())
    assert report["device"] in done.stdout and report["limits"]["memory GB/s"] > 0
    assert f"json: {file}" in done.stdout and "e-0" not in done.stdout
    rows = {row["name"]: row for row in report["results"]}
    assert len(rows) > 90 and all(min(r["values"]) > 0 for r in rows.values())
    # Two arrays in, one out.
    assert rows["add_same f32"]["bytes"] == 3 * 3 * 5 * 37 * 4
    square = rows["matmul_bench_square bf16"]
    assert square["flops"] == 2 * 2 * 3 * 2 and square["peak"] == "16-bit TFLOP/s"
    if report["limits_source"] == "measured":  # no operation is beyond the limit
        assert "> 100 %" not in done.stdout and "(measured)" in done.stdout
    done = command("bench", "ops", *words, "--filter", "square f")
    assert done.stdout.count("square f16") == 2 and "softmax" not in done.stdout
    done = command("bench", "--filter", "nothing")
    assert done.returncode == 2 and "name contains 'nothing'" in done.stderr


def test_bench_model_and_compare(tmp_path):
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    words = ("bench", "model", "--shape", "tiny", "-g", "4", "-n", "2", "-p", "7,33")
    done = command(*words, "-b", "1,3", "--json", str(a))
    assert done.returncode == 0, done.stderr
    report = json.loads(a.read_text())
    rows = {row["name"]: row for row in report["results"]}
    assert {"prompt 7", "batch 3, prompt 33", "decode after 33"} <= set(rows)
    assert all(len(r["values"]) == 2 for r in rows.values() if r["unit"] == "tokens/s")
    assert rows["dispatches per step"]["values"][0] > 0
    for part in ("model", "sampler", "async_eval"):
        assert min(rows[f"host, {part} per step"]["values"]) > 0
    # The Python of its two layers makes three times as many calls.
    assert rows["Python calls per step"]["values"][0] <= 46
    # The same twice as fast.
    for row in report["results"]:
        row["values"] = [v * 2 for v in row["values"]]
    b.write_text(json.dumps(report))
    done = command("bench", "compare", str(a), str(b))
    assert done.returncode == 0 and done.stdout.count(" 2.00 ") >= 8, done.stdout
    # Commands run in turn; what they leave is what is compared.
    sides = [f"echo {x} >> {tmp_path}/turns; cp {x} {{json}}" for x in (a, b)]
    done = command("bench", "compare", "--rounds", "2", "--filter", "decode", *sides)
    assert done.stdout.count(" 2.00 ") == 4 and "memory" not in done.stdout, done.stdout
    assert (tmp_path / "turns").read_text().split() == [str(a), str(b)] * 2
    done = command("bench", "compare", str(a), "echo broken; exit 3 # {json}")
    assert done.returncode == 1 and "ended with 3" in done.stderr
    assert "broken" in done.stderr
    assert command("bench", "compare", str(a), str(tmp_path)).returncode == 1
    assert "do not quantize" in command(*words, "-b", "2", "--kv-bits", "8").stderr
    done = command("bench", "compare", a, b, "--filter", "nothing")
    assert done.returncode == 1 and "no result in common" in done.stderr
    assert done.stdout == ""
    # One token is the prompt's: none is decoded.
    done = command(*words, "-g", "1", "-p", "7")
    assert done.returncode == 0 and "decode" not in done.stdout, done.stdout


def test_bench_joins_runs(tmp_path):
    from mlx_vulkan.bench import report

    head = {"device": "d", "driver": "e", "version": "1", "commit": "", "date": "x"}
    files = []
    for i, limit in ((1, 3.0), (2, 5.0), (6, 4.0)):
        rows = [report.Row("x", "us", [i, i, 100.0], "ops", 1e6, 1e6)]
        files.append(str(tmp_path / f"{i}.json"))
        report.save(files[-1], head, rows, {"copy GB/s": limit * 1000})
    _, (row,), limits = report.join(files)
    assert row.values == [1, 2, 6] and limits == {"memory GB/s": 5000.0}
    picture = tmp_path / "x.png"
    words = ("--markdown", "--plot", tmp_path / "x")  # which is named as it is written
    done = command("bench", "roofline", *files, *words)
    assert "| x | 2 us (1, 6) | 10 % (memory) |" in done.stdout, done.stdout
    assert f"plot: {picture}" in done.stdout
    assert picture.read_bytes()[:4] == b"\x89PNG"
    report.save(files[0], {**head, "driver": "other"}, rows, {})
    done = command("bench", "roofline", *files)
    assert done.returncode == 1 and "of different drivers" in done.stderr


def test_bench_draws(tmp_path):
    from matplotlib import pyplot

    rows = [
        report.Row("x", "us", [3.0, 2.0], f"family {i}", 1e6, 1e6) for i in range(4)
    ]
    head = {"device": "d", "driver": "e", "version": "1", "commit": ""}
    for limits in ({}, {report.MEMORY: 2.0, report.HALF: 0.1, report.F32: 0.1}):
        plots.plot(str(tmp_path / "a.png"), head, rows, limits)
        assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    models = [
        report.Row("decode", "tokens/s", [1.0, 2.0]),
        report.Row("memory", "GB", [0.5]),
        report.Row("dispatches", "count", [200]),
    ]
    plots.plot(str(tmp_path / "b.png"), head, models, {})
    assert (tmp_path / "b.png").exists()
    # One unit an axis.
    figure = plots.bars(pyplot, models)
    axes = {ax.get_xlabel(): len(ax.patches) for ax in figure.axes}
    assert axes == {"tokens/s": 1, "MB": 1, "count": 1}
    pyplot.close(figure)


@pytest.mark.parametrize("name", sorted(n for n in shapes.SHAPES if "tiny" in n))
def test_tiny_shapes_work_with_the_defaults(name):
    import mlx.core as mx

    model, config = shapes.make(name, 4, None, "bfloat16")
    assert config["quantization"]["group_size"] in (32, 64, 128)
    tokens = mx.array([[1, 2, 3]])
    assert model(tokens).shape[:2] == (1, 3)
    quantized = [m for _, m in model.named_modules() if hasattr(m, "bits")]
    assert len(quantized) >= 2


@pytest.mark.parametrize(
    ("device", "half"),
    [
        ("NVIDIA H200", 989),
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA H200 NVL", 835),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA GeForce RTX 4070 Ti", 80.2),
        ("AMD Radeon RX 7900 XTX (RADV NAVI31)", 122.8),
        ("AMD Radeon RX 7900 XT (RADV NAVI31)", 103),
        ("Radeon 8060S Graphics (RADV GFX1151)", 59.4),
        ("Intel(R) Arc(tm) B580 Graphics (BMG G21)", 116.5),
        ("Apple M1 Max (G13C C0)", 10.4),
        ("NVIDIA H2000", None),
        ("llvmpipe (LLVM 15.0.6, 256 bits)", None),
    ],
)
def test_known_chips(device, half):
    chip = chips.find(device)
    assert (chip.half if chip else None) == half


def test_the_table_of_chips_is_sane():
    for chip in chips.CHIPS:
        assert 50 < chip.memory < 10000 and chip.source
        assert 1 <= chip.half / chip.f32 < 25
    assert len({chip.name for chip in chips.CHIPS}) == len(chips.CHIPS)


def test_a_roof_is_memory_or_compute():
    limits = {report.MEMORY: 1000.0, report.HALF: 100.0, report.F32: 10.0}

    def roof(bytes, flops, peak=report.HALF):
        return report.Row("x", "us", [1.0], "", bytes, flops, peak=peak).roof(limits)

    assert roof(5e5, 1e6) == (0.5, "memory")
    assert roof(1e5, 5e7) == (0.5, "compute")
    assert roof(1e5, 5e6, report.F32) == (0.5, "compute")
    assert report.percent(0.5) == "50 %" and report.percent(2.74) == "> 100 %"
    assert report.Row("x", "us", [1.0]).roof({})[0] == 0


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (6.56e-05, "TFLOP/s", "65.6 MFLOP/s"),
        (299.123, "TFLOP/s", "299 TFLOP/s"),
        (0.05, "us", "50 ns"),
        (1234.5, "us", "1.23 ms"),
        (2391.4, "tokens/s", "2,391 tokens/s"),
        (0.00042, "GB", "420 kB"),
        (4800, "GB/s", "4.8 TB/s"),
        (0, "us", "0 us"),
        (1.5, "count", "1.5 count"),
    ],
)
def test_numbers_for_people(value, unit, text):
    assert report.quantity(value, unit) == text


def test_quantiles_of_student():
    # From a table of the distribution, two-sided 99 %.
    for freedom, t in ((1, 63.657), (2, 9.925), (4, 4.604), (8, 3.355), (30, 2.750)):
        assert intervals.quantile(freedom) == pytest.approx(t, abs=2e-3)


def test_noise_is_not_clear():
    def judge(a, b, unit="us"):
        return compare.judge(report.Row("x", unit, a), report.Row("x", unit, b))

    # One sample a side, or ranges apart by chance: nothing is clear.
    assert judge([1.0], [1.1]) == "? (one sample)"
    assert judge([1.0, 1.05, 1.1], [1.11, 1.15, 1.2]) == "within noise"
    assert judge([1.0, 1.01, 0.99, 1.0], [0.9, 0.91, 0.89, 0.9]) == "better"
    assert judge([1.0, 1.01, 0.99, 1.0], [0.9, 0.91, 0.89, 0.9], "tokens/s") == "worse"
    assert judge([21.0], [21.0], "count") == "equal"
    low, high = intervals.ratio_interval([1.0, 1.0, 1.0], [2.0, 2.0, 2.0])
    assert low == pytest.approx(2) and high == pytest.approx(2)


def test_intervals_hold_what_they_promise():
    import random

    draw = random.Random(0)
    inside = 0
    for _ in range(1000):
        a, b = ([draw.lognormvariate(0, 0.1) for _ in range(5)] for _ in "ab")
        low, high = intervals.ratio_interval(a, b)
        inside += low < 1 < high
    # 990 are expected; fewer than 980 would be three standard deviations below.
    assert inside >= 980
