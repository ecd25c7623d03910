"""`make demo` says whether it runs on a GPU."""

import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("architecture", "told"), [("vulkan-cpu", True), ("vulkan-discrete", False)]
)
def test_a_software_device_is_called_one(architecture, told, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import demo

    info = {"device_name": "X", "architecture": architecture}
    core = types.SimpleNamespace(device_info=lambda _: info, gpu=None)
    demo.show_device(core)
    out = capsys.readouterr().out
    assert out.startswith("== Device: X\n")
    assert ("computes on the CPU" in out) == told
    sys.modules.pop("demo"), sys.modules.pop("common", None)
