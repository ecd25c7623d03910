"""Reads the trace and the paths of report/worker.py: the kernels of each phase, their
share of its time, the fraction of the GPU's limits, and the rules to suspect.
"""

import re
from collections import defaultdict

from ..bench import chips
from ..bench.report import F32, HALF, MEMORY
from .worker import LIMITS, MARK

# The function that chose a kernel, by the kernel's file.
QUANT, GEMM = "src/ops/quant/plan.cpp", "src/ops/gemm/plan.cpp"
ATTENTION = "src/ops/attention/plan.cpp"
RULES = {
    r"quant/qmv": ("plan_matvec", QUANT),
    r"quant/qvm": ("plan_vecmat", QUANT),
    r"gemm/rows_coopmat.* CODES=1": ("plan_codes", QUANT),
    r"gemm/rows_coopmat.* CODES=": ("plan_weights", QUANT),
    r"gemm/rows_skinny.* BITS=": ("plan_skinny", QUANT),
    r"quant/qmm_fragments": ("plan_fragments", QUANT),
    r"quant/qmm_tall": ("plan_tall", QUANT),
    r"quant/qmm_dot": ("plan_dot", QUANT),
    r"quant/qmm\{": ("plan_tiled", QUANT),
    r"quant/(dequantize|half_rows)": ("dequantizes_first", QUANT),
    r"gemm/": ("plan_gemm", GEMM),
    r"attention/(decode|merge)": ("plan_decode", ATTENTION),
    r"attention/(prefill|ranges)": ("plan_prefill", ATTENTION),
}

# A kernel is suspected if its limit would save this share of its phase.
SUSPECT = 0.1
# Faster is implausible: operands may exceed what is read of them, as in a gather.
TOO_FAST = 1.2


def file_of(kernel: str) -> str:
    return kernel.partition("{")[0]


def fields(kernel: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+)=(\w+)", kernel.partition("{")[2]))


def short(kernel: str) -> str:
    """The kernel's name without the fields that are 0."""
    return re.sub(r" \w+=0(?=[ }])", "", kernel)


def rule_of(kernel: str) -> str:
    for pattern, (function, path) in RULES.items():
        if re.match(pattern, kernel):
            return f"{function} in {path}"
    return ""


def read_paths(text: str) -> list[dict]:
    """Parses the lines of MLX_VK_DEBUG=paths."""
    line = re.compile(r" *(\d+) x (.+?): ([^(]+?)(?: \((.*)\))?")
    found = (line.fullmatch(text) for text in text.splitlines())
    names = ("calls", "shape", "path", "why")
    return [dict(zip(names, m.groups(""))) for m in found if m]


def rows_of(shape: str) -> int:
    """The rows of a call: of queries, of x, of all experts together."""
    sizes = {name: int(n) for name, n in re.findall(r"\b(\w+)=(\d+)", shape)}
    return sizes.get("queries") or sizes.get("m", 0) * sizes.get("batch", 1)


def took(path: str, kernel: str) -> bool:
    """Whether a call that took this path ran the kernel."""
    file, size = file_of(kernel).split("/")[-1], fields(kernel)
    word = re.split(r"[ ,]", path)[0]
    if word == "dequantized":
        return kernel.startswith(("gemm/", "quant/dequantize"))
    if word == "qmv":
        return file.startswith("qmv")
    if word == "decode":
        return kernel.startswith("attention/decode")
    tile = re.search(r"(\d+)x(\d+)$", path)
    same = not tile or "BM" not in size or tile.groups() == (size["BM"], size["BN"])
    return file == word and same


def read(plan: dict, trace: dict, said: str) -> dict:
    """`plan`: from worker.py; `trace`: from MLX_VK_PROFILE; `said`: its stderr."""
    events = [
        event
        for event in trace["traceEvents"]
        if event.get("ph") == "X" and event.get("tid") == 2
    ]
    parts: list[list[dict]] = [[]]  # before the first phase
    for event in sorted(events, key=lambda event: event["ts"]):
        if MARK in event["name"]:
            parts.append([])
        else:
            parts[-1].append(event)
    phases = [
        phase | {"events": part}
        for phase, part in zip(plan["phases"], parts[1:])
        if phase["name"]
    ]
    paths = read_paths(said)
    limits = {phase["name"]: phase for phase in phases if phase["name"] in LIMITS}
    found = [phase for phase in phases if phase["name"] not in LIMITS]
    experts, active = plan["experts"], plan["active"]
    for phase in found:
        rows = (phase["tokens"], phase["tokens"] * active)
        phase["paths"] = [p for p in paths if rows_of(p["shape"]) in rows]
        if phase["tokens"] == 1:
            for event in phase["events"]:
                if event["name"].startswith("quant/qmv_experts"):
                    # The operand holds the weights of all experts.
                    event["args"]["bytes"] *= active / experts
    return {"phases": found, "limits": limits}


def best(phase: dict, quantity: str) -> float:
    """The most bytes or flops per second of the phase's events."""
    rates = (e["args"][quantity] / e["dur"] * 1e6 for e in phase["events"] if e["dur"])
    return max(rates, default=0)


def limits(name: str, found: dict) -> dict:
    """The GPU's limits, from its data sheet or as reached by a copy and products, whose
    rates are given in any case."""
    reached = found["limits"]
    measured = {}
    for limit, of, quantity, unit in zip(
        (MEMORY, HALF, F32), LIMITS, ("bytes", "flops", "flops"), (1e9, 1e12, 1e12)
    ):
        measured[limit] = best(reached[of], quantity) / unit if of in reached else 0
    used, source = measured, "measured by a copy and two products"
    if sheet := chips.find(name):
        used = {MEMORY: sheet.memory, HALF: sheet.half, F32: sheet.f32}
        source = sheet.source
    return {**used, "source": source, "measured": measured}


def describe(phase: dict, limit: dict, matrices: bool) -> dict:
    """The kernels of a phase, those that lose most time first."""
    rows = defaultdict(lambda: {"calls": 0, "us": 0.0, "bytes": 0.0, "flops": 0.0})
    for event in phase["events"]:
        row, given = rows[event["name"]], event["args"]
        row["calls"] += 1
        row["us"] += event["dur"]
        row["bytes"] += given["bytes"]
        row["flops"] += given["flops"]
        row["matrix_units"] = given["matrix_units"]
    whole = sum(row["us"] for row in rows.values())
    rate_limit = limit[HALF if matrices else F32]
    kernels = []
    for name, row in rows.items():
        row = {"kernel": short(name), "share": row["us"] / whole if whole else 0} | row
        bandwidth = fraction(row["bytes"], row["us"], limit[MEMORY] * 1e9)
        rate = fraction(row["flops"], row["us"], rate_limit * 1e12)
        row |= {"of_bandwidth": bandwidth, "of_rate": rate}
        row["rule"] = rule_of(name)
        known = max(bandwidth, rate)
        row["fraction"] = known if known <= TOO_FAST or row["rule"] else None
        row["chosen"] = chosen(phase["paths"], name)
        for quantity in ("calls", "us", "bytes", "flops"):
            row[quantity] /= phase["runs"]
        kernels.append(row)
    kernels.sort(key=lambda row: -lost(row))
    ms = whole / phase["runs"] / 1e3
    head = {"name": phase["name"], "tokens": phase["tokens"], "kernel_ms": ms}
    return head | {"kernels": kernels}


def fraction(work: float, us: float, limit: float) -> float:
    return work / (us * 1e-6) / limit if us and limit else 0.0


def chosen(paths: list[dict], kernel: str) -> list[dict]:
    """Paths that ran the kernel; shapes that differ only in keys count as one."""
    found: dict[tuple, int] = defaultdict(int)
    for p in paths:
        if took(p["path"], kernel):
            shape = re.sub(r"queries=1 keys=\d+", "queries=1 keys=*", p["shape"])
            found[shape, p["path"], p["why"]] += int(p["calls"])
    return [
        {"shape": shape, "path": path, "why": why, "calls": calls}
        for (shape, path, why), calls in found.items()
    ]


def lost(row: dict) -> float:
    """The share of a phase that would be saved at the limit."""
    known = 1 if row["fraction"] is None else min(row["fraction"], 1)
    return row["share"] * (1 - known)


def suspects(phases: list[dict]) -> list[dict]:
    """Kernels that lose much, and whose choice a rule can change."""
    found = [
        {"phase": phase["name"], "lost": lost(row)}
        | {name: row[name] for name in ("kernel", "share", "fraction", "rule")}
        | {"why": sorted({c["why"] for c in row["chosen"] if c["why"]})}
        for phase in phases
        for row in phase["kernels"]
        if lost(row) >= SUSPECT
    ]
    return sorted(found, key=lambda row: -row["lost"])
