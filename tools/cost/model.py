"""Estimates how long a kernel takes from its work, its code and the chip's constants.

time = max(memory, core):

- memory: bytes of all operands, each once, by the data sheet's bandwidth.
- core: subgroups are spread over compute units and SIMDs; the busiest unit has
  `rounds` = ceil(workgroups / units) of them. A pass of the main loop costs each pipe
  (VALU, matrices, shared memory, loads) the cycles of its instructions. `n` subgroups
  of a SIMD overlap: their pipes' sum for one alone, the busiest pipe for many,
  busiest + (sum - busiest) / n in between; but no pass is shorter than a load from
  memory. Instructions outside of the loop count once.

No stalls between instructions, no cache misses beyond the first, no bank conflicts, no
clock below the boost: it is for comparing kernels and plans. docs/dev/driver-costs.md
states its error on an H200.
"""

import math
from collections import Counter
from dataclasses import dataclass, field

from .chips import Hardware
from .isa import Loop, Program


@dataclass
class Work:
    """One dispatch, as tests/drivers/driver_cost.cpp describes it."""

    groups: int
    workgroup: int  # invocations
    subgroup: int
    bytes: float
    flops: float
    steps: float = 1  # passes of a subgroup through its main loop
    passes: float = 1  # through the loop around that
    slices: float = 1  # of a loop between the main and the innermost one, a step
    lane_macs: float = 0  # of a lane and step

    @property
    def subgroups(self) -> int:
        return math.ceil(self.workgroup / self.subgroup)


@dataclass
class Code:
    """Instructions of a subgroup: of a step, and of the rest of the kernel."""

    step: Counter = field(default_factory=Counter)
    once: Counter = field(default_factory=Counter)


def macs(counts: Counter, lanes: int, matrices: bool) -> float:
    return counts["matrix_macs"] if matrices else counts["macs"] * lanes


def scaled(counts: Counter, factor: float) -> Counter:
    return Counter({name: n * factor for name, n in counts.items()})


class Walker:
    """Finds the main loop and what a step of it executes."""

    def __init__(self, program: Program, work: Work):
        self.program, self.work = program, work
        everything = program.count(range(len(program.blocks)))
        self.matrices = everything["matrix"] > 0
        self.needed = work.lane_macs * work.subgroup  # a step

    def macs(self, loop: Loop) -> float:
        counts = self.program.count_loop(loop)
        return macs(counts, self.work.subgroup, self.matrices)

    def hot(self) -> list[Loop]:
        """The innermost loop that has most of the products, after those around it.
        Of loops alike, such as one without tests for edges, the shortest."""
        best: tuple[float, float, list[Loop]] = (0, 0, [])

        def visit(loop: Loop, around: list[Loop]) -> None:
            nonlocal best
            chain = [*around, loop]
            for inner in loop.inner:
                visit(inner, chain)
            own = self.program.count(loop.direct())
            products = macs(own, self.work.subgroup, self.matrices)
            size = sum(own[name] for name in ("fma", "float", "int", "load", "shared"))
            if products and (products, -size) > best[:2]:
                best = (products, -size, chain)

        for loop in self.program.loops:
            visit(loop, [])
        return best[2]

    def cost(self, loop: Loop, needed: float, slices: float) -> Counter:
        """A pass of a loop whose inner loops make what it does not of `needed`.
        Those with products share it evenly; others run once."""
        total = self.program.count(loop.direct())
        inner = [l for l in loop.inner if self.macs(l)]
        for other in loop.inner:
            if not self.macs(other):
                total.update(self.program.count_loop(other))
        rest = needed - macs(total, self.work.subgroup, self.matrices)
        for each in inner:
            share = max(rest, 0) / len(inner)
            nested = any(self.macs(l) for l in each.inner)
            if nested:
                one = self.cost(each, share / slices, 1)
                total.update(scaled(one, slices))
            else:
                times = max(share / self.macs(each), 1)
                total.update(scaled(self.program.count_loop(each), times))
        return total

    def code(self) -> Code:
        program, work = self.program, self.work
        chain = self.hot() if self.needed else []
        looping = set().union(*(l.blocks for l in program.loops))
        blocks = range(len(program.blocks))
        once = program.count(i for i in blocks if i not in looping)
        if not chain:
            for loop in program.loops:
                once.update(program.count_loop(loop))
            return Code(once=once)
        at = len(chain) - 1
        # A loop around most of a step that adds no products runs once a tile.
        while at > 0 and self.macs(chain[at]) < 0.75 * self.needed:
            most = self.macs(chain[at]) >= 0.5 * self.needed
            if most and self.macs(chain[at - 1]) <= self.macs(chain[at]):
                break
            at -= 1
        main = chain[at]
        for around in chain[:at]:
            direct = program.count(around.direct())
            once.update(scaled(direct, work.passes))
        inner = any(self.macs(l) for l in main.inner)
        if inner and self.macs(main) < 0.75 * self.needed:
            return Code(self.cost(main, self.needed, work.slices), once)
        # The compiler may have unrolled it, or left less in it.
        made = self.macs(main) / self.needed
        unrolled = max(round(made), 1) if made >= 0.75 else made
        return Code(scaled(program.count_loop(main), 1 / unrolled), once)


def code_of(program: Program, work: Work) -> Code:
    return Walker(program, work).code()


SHARED, CACHE, ISSUE = "shared memory", "loads", "issue"


def pipe_cycles(counts: Counter, lanes: int, hardware: Hardware) -> dict[str, float]:
    """Cycles that a subgroup's instructions take of each pipe; those of `SHARED` and
    `CACHE` are of the whole core."""
    core = hardware.core
    wide = max(lanes / core.width, 1)
    cycles: Counter = Counter()
    for kind, pipe in core.pipes.items():
        if kind == "matrix":
            rate = core.matrix_rate or core.width
            cycles[pipe] += counts["matrix_macs"] / rate
        else:
            cycles[pipe] += counts[kind] * wide * core.slow.get(kind, 1)
    if core.issue:
        names = ("fma", "float", "int", "slow", "math", "matrix", "shared", "load")
        cycles[ISSUE] = sum(counts[n] for n in (*names, "store", "scalar", "other"))
    # An instruction takes 32 addresses a cycle.
    turns = max(lanes / 32, 1)
    cycles[SHARED] = max(
        counts["shared_bytes"] * lanes / core.shared_bytes,
        counts["shared"] * turns,
    )
    moved = counts["load_bytes"] + counts["store_bytes"]
    cycles[CACHE] = max(
        moved * lanes / core.cache_bytes,
        (counts["load"] + counts["store"]) * turns,
    )
    return dict(cycles)


@dataclass
class Estimate:
    us: float
    bound: str  # what it waits for
    bandwidth: float  # fraction of the memory's
    rate: float  # fraction of the matrix units', or of FP32
    rounds: int
    filled: float  # workgroups / (units * rounds)
    resident: float  # subgroups of a SIMD
    cycles: dict[str, float] = field(default_factory=dict)  # pipes of a step
    matrix_share: float = 0  # of a step's busiest pipe that is products


def overlapped(pipes: dict[str, float], n: float) -> float:
    busiest = max(pipes.values(), default=0)
    return busiest + (sum(pipes.values()) - busiest) / n


def estimate(
    work: Work, code: Code, hardware: Hardware, occupancy: float, cores: int = 0
) -> Estimate:
    """`occupancy`: subgroups that registers and shared memory leave room for on a
    SIMD; `cores`: other than the product's."""
    core, units = hardware.core, cores or hardware.cores
    rounds = math.ceil(work.groups / units)
    on_simd = max(rounds * work.subgroups / core.simds, 1)
    resident = max(min(occupancy, on_simd), 1)
    latency = hardware.latency_ns * hardware.ghz  # in cycles
    times = []
    for counts in (code.step, code.once):
        pipes = pipe_cycles(counts, work.subgroup, hardware)
        # All SIMDs use these, so each has a share of their rate.
        for name in (SHARED, CACHE):
            pipes[name] *= min(core.simds, max(rounds * work.subgroups, 1))
        waits = latency if counts["load"] else 0
        alone = max(pipes.values(), default=0)
        shared = overlapped(pipes, resident)
        times.append((max(shared, (waits + alone) / resident), pipes, shared))
    (step, pipes, busy), (once, _, _) = times
    cycles = on_simd * (work.steps * step + once)
    core_us = cycles / hardware.ghz / 1e3
    memory_us = work.bytes / hardware.gb_s / 1e3
    us = max(core_us, memory_us)
    if memory_us >= core_us:
        bound = "memory"
    elif work.steps * step < once:
        bound = "begin, end"
    else:
        bound = max(pipes, key=pipes.get) if busy >= step else "latency"
    products = 0.0
    if work.lane_macs and busy:
        only = {"matrix_macs": code.step["matrix_macs"]}
        if not code.step["matrix"]:
            only = {"fma": work.lane_macs}
        made = pipe_cycles(Counter(only), work.subgroup, hardware)
        products = max(made.values()) / busy
    return Estimate(
        us,
        bound,
        memory_us / us,
        work.flops / us / 1e6 / hardware.tflops,
        rounds,
        work.groups / units / rounds,
        resident,
        pipes,
        products,
    )
