"""A report as text that fits into an issue."""

from ..bench.report import F32, HALF, MEMORY, number
from .kernels import file_of

SHOWN = 6  # suspects, failures


def percent(share: float | None) -> str:
    return "?" if share is None else f"{share * 100:.0f} %"


def text(report: dict) -> str:
    device, versions, limits = (report[n] for n in ("device", "versions", "limits"))
    plans = device.get("plans", {})
    lines = [
        f"{device['name']}, {device['driver']}, mlx-vulkan {versions['mlx-vulkan']}",
        f"class {plans.get('class')}, {plans.get('cores') or '?'} cores; limits: "
        f"{number(limits[MEMORY])} GB/s, {number(limits[HALF])} TFLOP/s "
        f"of 16 bits, {number(limits[F32])} of 32 ({limits['source']})",
        self_test(report["selftest"]),
    ]
    for name, row in report["speeds"].items():
        if row["unit"] == "tokens/s":
            lines.append(f"{report['shape']}, {name}: {number(row['value'])} tokens/s")
    for phase in report["phases"]:
        lines += ["", *of_phase(phase)]
    if report["suspects"]:
        lines += ["", "Suspected:"]
    for row in report["suspects"][:SHOWN]:
        lines += suspect(row)
    for name, why in report["failures"].items():
        lines.append(f"FAILED: {name}: {why.splitlines()[0][:200]}")
    return "\n".join(lines)


def self_test(found: dict) -> str:
    if not found:
        return "self-test: no report"
    bad = [failure["id"] for failure in found["failures"][:SHOWN]]
    more = f": {', '.join(bad)}" if bad else ""
    return f"self-test: {found['passed']} passed, {found['failed']} failed{more}"


def of_phase(phase: dict) -> list[str]:
    lines = [f"{phase['name']}: {number(phase['kernel_ms'])} ms in kernels"]
    if phase["step_ms"]:
        lines[0] += f", of {number(phase['step_ms'])} ms without the profile"
    for row in phase["kernels"][:5]:
        line = f"  {percent(row['share']):>5} {file_of(row['kernel'])[:24]:24}"
        lines.append(line + f" {percent(row['fraction'])} of its limit")
    return lines


def suspect(row: dict) -> list[str]:
    at = f"{percent(row['share'])} of the time at {percent(row['fraction'])}"
    title = f"  {row['phase']}: {at} of its limit:"
    rule = f"    chosen by {row['rule']}" if row["rule"] else "    no plan chose it"
    why = "; ".join(row["why"])
    return [title, f"    {row['kernel']}", rule + (f" ({why})" if why else "")]
