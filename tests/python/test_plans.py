"""tools/check_plans.py: which planned variants no test executes."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

import check_plans

LINE = "7 per_row type=f32 | r5+0[0,8) w5+0[0,8) | 2000 1*0 | 7 norm{T=f32 LAYER=0} |"


def test_kernels_are_read_from_the_log():
    assert check_plans.kernel_of(LINE + " not gate: form.") == "norm{T=f32 LAYER=0}"
    assert check_plans.kernel_of("0 other | r1 w2 | | 0 copy |") is None
    assert check_plans.kernel_of("[mlx-vulkan] select: 1 records, 1 run") is None


def test_values_are_counted_by_kernel(monkeypatch, tmp_path):
    names = {"norm{T=f32 LAYER=0}", "norm{T=f16 LAYER=1}", "copy{T=f32}"}
    values = check_plans.values_of(names)
    assert values["norm"] == {"T=f32", "T=f16", "LAYER=0", "LAYER=1"}
    assert check_plans.form("norm{T=f32 LAYER=0}") == ("norm", "T", "LAYER")
    file = tmp_path / "list.toml"
    file.write_text(
        '[[unexecuted]]\nreason = "none"\n[unexecuted.kernels]\n"n*" = "T=* SG=8"\n'
    )
    monkeypatch.setattr(check_plans, "LIST", file)
    reasons, stale = check_plans.listed(values)
    assert set(reasons) == {("norm", "T=f32"), ("norm", "T=f16")}
    assert stale == ["list.toml: no n* has SG=8"]
