"""What `make test-drivers` makes of a driver's answers, without a driver."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import driver_lab  # noqa: E402
import run_drivers as tier  # noqa: E402

DECODE = "quant/qmv{T=bf16 ROWS=1 OUTS=4}"
PROMPT = "quant/qmm{T=bf16 BM=64}"


@pytest.fixture
def judged(tmp_path, monkeypatch):
    def judge(variants, expected="", device=None):
        path = tmp_path / "expected.toml"
        path.write_text(expected)
        monkeypatch.setattr(tier, "EXPECTED", path)
        device = {"driver": "ANV Mesa 26", "differs": [], "missing": []} | (
            device or {}
        )
        report = tier.Report("dg2", "ANV", device, variants)
        tier.judge(report)
        return report

    return judge


def variant(name, spills=0, failed=""):
    executables = [] if failed else [{"subgroup": 8, "Spills": spills}]
    return tier.Variant(name, failed, executables)


def entry(chip="dg2", name="quant/qmv ROWS=1", what="spill", driver=""):
    return (
        f'[[expected]]\nchips = ["{chip}"]\nvariant = "{name}"\nwhat = "{what}"\n'
        f'driver = "{driver}"\nreason = "because"\n'
    )


def test_a_decode_kernel_must_not_spill(judged):
    assert not judged([variant(DECODE)]).failures
    assert "spills (7)" in judged([variant(DECODE, 7)]).failures[0]
    assert not judged([variant(PROMPT, 7)]).failures


def test_what_is_expected_is_explained(judged):
    report = judged([variant(DECODE, 7)], entry())
    assert not report.failures
    assert report.explained == {"because": 1}


@pytest.mark.parametrize(
    "other",
    [
        entry(chip="tgl"),
        entry(driver="Mesa 22"),
        entry(what="fail"),
        entry(name="quant/qmv ROWS=16"),
        entry(name="quant/qm ROWS=1"),
    ],
)
def test_other_entries_explain_nothing(judged, other):
    assert any("spills" in f for f in judged([variant(DECODE, 7)], other).failures)


def test_an_entry_must_apply(judged):
    assert "no longer applies" in judged([variant(DECODE)], entry()).failures[0]


def test_what_does_not_compile_fails(judged):
    assert judged([variant(PROMPT, failed="out of registers")]).failures
    expected = entry(name="quant/qmm BM=64", what="fail")
    assert not judged([variant(PROMPT, failed="out")], expected).failures


def test_a_driver_must_report_spills(judged):
    silent = tier.Variant(DECODE, "", [{"subgroup": 8}])
    assert "reports no spills" in judged([silent]).failures[0]


def test_a_row_that_differs_and_a_feature_that_is_missing_fail(judged):
    report = judged([], device={"differs": ["cores"], "missing": ["shaderInt8"]})
    assert len(report.failures) == 2


def test_a_crash_costs_one_variant(monkeypatch, tmp_path):
    names = ["a{}", "b{}", "c{}"]

    def run(chip, words, build):
        left = [names[int(i)] for i in words[1:]]
        text = json.dumps({"name": left[0], "executables": []})
        text = "" if left[0] == "b{}" else text
        crash = "The driver crashed (Segmentation fault) at b{}\n"
        return tier.subprocess.CompletedProcess([], 1, text + "\n", crash)

    monkeypatch.setattr(tier, "run_program", run)
    found = tier.compile_all(driver_lab.CHIPS["dg2"], names, tmp_path)
    assert [bool(v.failed) for v in found] == [False, True, False]


def test_no_network_is_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("MLXVK_DRIVER_LAB", str(tmp_path))
    monkeypatch.setattr(driver_lab, "mirrors", lambda day: ["http://127.0.0.1:9"])
    with pytest.raises(driver_lab.LabError, match="needs the network once"):
        driver_lab.setup()
