"""Reads drivers' assembly into basic blocks and loops, and counts instructions.

Classes of a count: `fma`, `float`, `int`, `slow` (integer products, 64 bits), `math`
(exp2, rcp ...), `matrix`, `shared` (LDS), `load`, `store`, `scalar` (once a subgroup),
`barrier`, `other`, and `copy` (NVK's, which NVIDIA's compiler does without). Beside
them: `macs`, multiply-adds of a lane; `matrix_macs`, those of a subgroup's matrices;
`shared_bytes`, `load_bytes` and `store_bytes` of a lane.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

INSTRUCTIONS = ("fma", "float", "int", "slow", "math", "matrix", "shared")
INSTRUCTIONS += ("load", "store", "scalar", "barrier", "other", "copy")


@dataclass
class Block:
    label: str
    counts: Counter = field(default_factory=Counter)
    targets: list[str] = field(default_factory=list)  # of branches
    jumps: bool = False  # always: the next block is not reached from here

    @property
    def size(self) -> int:
        return sum(self.counts[name] for name in INSTRUCTIONS)


@dataclass
class Loop:
    blocks: set[int]
    inner: list["Loop"] = field(default_factory=list)

    def direct(self) -> set[int]:
        """Blocks outside of inner loops."""
        return self.blocks.difference(*(loop.blocks for loop in self.inner))


@dataclass
class Program:
    blocks: list[Block]
    loops: list[Loop]  # outermost ones
    skipped: set[int]  # blocks that usually do not run

    def count(self, indices: Iterable[int]) -> Counter:
        total: Counter = Counter()
        for i in indices:
            if i not in self.skipped:
                total.update(self.blocks[i].counts)
        return total

    def count_loop(self, loop: Loop) -> Counter:
        return self.count(loop.blocks)


def find_loops(blocks: list[Block]) -> list[Loop]:
    """Natural loops, outermost ones first: a branch back to a block, and all blocks
    from which that branch is reached. Loops with the same first block are one."""
    at = {block.label: i for i, block in enumerate(blocks)}
    before: list[list[int]] = [[] for _ in blocks]
    latches: dict[int, list[int]] = {}
    for i, block in enumerate(blocks):
        ends = [at[t] for t in block.targets if t in at]
        if not block.jumps and i + 1 < len(blocks):
            ends.append(i + 1)
        for end in ends:
            before[end].append(i)
            if end <= i:
                latches.setdefault(end, []).append(i)
    found = []
    for first, left in latches.items():
        body = {first}
        while left:
            if (i := left.pop()) not in body:
                body.add(i)
                left += before[i]
        found.append(Loop(body))
    outer: list[Loop] = []
    for loop in sorted(found, key=lambda l: -len(l.blocks)):
        where = outer
        while around := next((l for l in where if loop.blocks <= l.blocks), None):
            where = around.inner
        where.append(loop)
    return outer


RARE = 200  # instructions


def rarely(blocks: list[Block]) -> set[int]:
    """A long stretch without loads, stores or products that a branch passes, such as
    sums that are rescaled after a larger item."""
    at = {block.label: i for i, block in enumerate(blocks)}
    skipped: set[int] = set()
    for i, block in enumerate(blocks):
        for target in block.targets:
            side = range(i + 1, at.get(target, 0))
            size = sum(blocks[b].size for b in side)
            kinds = ("load", "store", "matrix", "fma", "barrier")
            if size >= RARE and not any(
                blocks[b].counts[k] for b in side for k in kinds
            ):
                skipped.update(side)
    return skipped


def longer_sides(blocks: list[Block]) -> set[int]:
    """Sides of an if and its else that make the same loads, or only convert: one
    runs, usually the shorter, which does not test for an edge or for NaN."""
    at = {block.label: i for i, block in enumerate(blocks)}
    skipped: set[int] = set()
    for i, block in enumerate(blocks):
        for target in block.targets:
            other = at.get(target, 0)
            last = other - 1  # of the first side; ANV's parser leaves an empty one
            while last > i and not (blocks[last].size or blocks[last].targets):
                last -= 1
            then = blocks[last]
            if block.jumps or other <= i + 1 or not then.jumps:
                continue
            end = min((at.get(t, 0) for t in then.targets), default=0)
            if end <= other:
                continue
            sides = range(i + 1, other), range(other, end)
            loads = [sum(blocks[b].counts["load"] for b in side) for side in sides]
            sizes = [sum(blocks[b].size for b in side) for side in sides]
            kinds = ("load", "store", "shared", "matrix", "fma", "barrier")
            converts = min(sizes) > 0 and not any(
                blocks[b].counts[k] for side in sides for b in side for k in kinds
            )
            if loads[0] == loads[1] > 0 or converts:
                skipped.update(sides[sizes[0] < sizes[1]])
    return skipped


def program(blocks: list[Block]) -> Program:
    """Where a compiler fuses nothing, a multiply-add is two instructions."""
    total: Counter = sum((b.counts for b in blocks), Counter())
    if total["macs"] < total["float"] / 10:
        for block in blocks:
            block.counts["macs"] = block.counts["float"] / 2
    skipped = longer_sides(blocks) | rarely(blocks)
    return Program(blocks, find_loops(blocks), skipped)


def size_of(op: str, sizes: dict[str, int]) -> int:
    """Bytes of a load or store by the longest of `sizes` that its name contains."""
    for name in sorted(sizes, key=len, reverse=True):
        if name in op:
            return sizes[name]
    return 4


AMD_SIZES = {"b128": 16, "dwordx4": 16, "b96": 12, "dwordx3": 12, "b64": 8}
AMD_SIZES |= {"dwordx2": 8, "dword": 4, "b32": 4, "short": 2, "16": 2}
AMD_SIZES |= {"byte": 1, "u8": 1, "i8": 1, "b8": 1}
AMD_FMA = re.compile(
    r"v_(dual_)?(pk_)?(fma|fmac|fmamk|fmaak|mad|mac)_(mix|[fl]|legacy)"
)
AMD_MATH = re.compile(r"v_(s_)?(exp|log|rcp|rsq|sqrt|sin|cos)_")
AMD_SLOW = re.compile(r"v_(mul_(lo|hi)_|mad_(co_)?[iu]64|.*_f64)")


def amd_macs(op: str) -> int:
    if re.match(r"v_(dot2|pk_fma)", op):
        return 2
    if op.startswith("v_dot4"):
        return 4
    return 1 if AMD_FMA.match(op) else 0


def count_amd(line: str, c: Counter) -> None:
    op = line.split()[0]
    if wmma := re.match(r"v_wmma_.*?_(\d+)x(\d+)x(\d+)", op):
        m, n, k = map(int, wmma.groups())
        c.update(matrix=1, matrix_macs=m * n * k)
    elif op.startswith("v_"):
        macs = sum(amd_macs(part.split()[0]) for part in line.split(" :: "))
        kind = "fma" if macs else "float" if re.search(r"_b?f(16|32)", op) else "int"
        kind = "math" if AMD_MATH.match(op) else kind
        kind = "slow" if AMD_SLOW.match(op) else kind
        c.update({kind: 1, "macs": macs})
    elif op.startswith("ds_"):
        twice = 2 if re.search(r"_2addr|(read|write)2", op) else 1
        c.update(shared=1, shared_bytes=size_of(op, AMD_SIZES) * twice)
    elif memory := re.match(r"(global|buffer|flat|scratch)_(load|store|atomic)", op):
        kind = "load" if memory[2] == "load" else "store"
        c.update({kind: 1, kind + "_bytes": size_of(op, AMD_SIZES)})
    elif op.startswith("s_barrier"):
        c.update(barrier=1)
    elif re.match(r"s_(wait|delay|nop|clause|sleep|branch|cbranch|endpgm|set)", op):
        c.update(other=1)
    else:
        c.update(scalar=1)


def parse_amd(text: str) -> Program:
    """RADV's "Assembly": labels BB<n>, a tab before instructions."""
    blocks = [Block("")]
    for line in text.splitlines():
        if label := re.match(r"(BB\d+):", line):
            blocks.append(Block(label[1]))
        elif line.startswith("\t") and line.strip():
            block = blocks[-1]
            count_amd(line.split(";")[0].strip(), block.counts)
            if branch := re.match(r"\ts_(c?)branch\S*\s+(BB\d+)", line):
                block.targets.append(branch[2])
                block.jumps = not branch[1]
    return program(blocks)


NAK_LINE = re.compile(
    r"(?:@!?u?p\d+)?\s+(?:(?:\S+ )*?(\S+)\s*= )?([a-z][a-z0-9_.]*)(.*?)(?://|$)"
)
NAK_KINDS = {"ffma": "fma", "hfma2": "fma", "fadd": "float", "fmul": "float"}
NAK_KINDS |= {"hadd2": "float", "hmul2": "float", "mufu": "math", "i2f": "math"}
NAK_KINDS |= {"f2i": "math", "f2f": "math", "bra": "other", "bssy": "other"}
NAK_KINDS |= {"bsync": "other", "bclear": "other", "nop": "other", "exit": "other"}
NAK_KINDS |= {"ldc": "other", "s2r": "other", "r2ur": "other", "membar": "other"}
NAK_KINDS |= {"imad64": "slow", "bar": "barrier", "vote": "other", "warpsync": "other"}
NAK_KINDS |= {"mov": "copy"}


def count_nak(destination: str, op: str, c: Counter) -> None:
    name = op.split(".")[0]
    if mma := re.match(r"hmma\.m(\d+)n(\d+)k(\d+)", op):
        m, n, k = map(int, mma.groups())
        c.update(matrix=1, matrix_macs=m * n * k)
    elif name == "ldsm":
        c.update(shared=1, shared_bytes=4 * int(op.rsplit("x", 1)[-1]))
    elif name == "shfl":
        c.update(shared=1, shared_bytes=4)
    elif name in ("ld", "st", "atom", "red", "atoms"):
        bits = re.search(r"\.[bui](\d+)", op)
        size = int(bits[1]) // 8 if bits else 4
        kind = "shared" if "shared" in op or name == "atoms" else "store"
        kind = "load" if kind == "store" and name == "ld" else kind
        c.update({kind: 1, kind + "_bytes": size})
    elif destination.startswith(("ur", "up")):
        c.update(scalar=1)
    else:
        kind = NAK_KINDS.get(name, "int")
        c.update({kind: 1, "macs": {"ffma": 1, "hfma2": 2, "idp4": 4}.get(name, 0)})


def parse_nak(text: str) -> Program:
    """NVK's "NAK assembly": `block 3 L14 [predecessors] -> {`, `} -> [successors]`."""
    blocks: list[Block] = []
    for line in text.splitlines():
        if head := re.match(r"block(?:\.\w+)? (\d+) ", line):
            blocks.append(Block(head[1]))
        elif tail := re.match(r"\} -> \[(.*)\]", line):
            block, number = blocks[-1], int(blocks[-1].label)
            ends = [t for t in re.findall(r"\d+", tail[1])]
            block.jumps = str(number + 1) not in ends
            block.targets = [t for t in ends if int(t) != number + 1]
        elif blocks and (found := NAK_LINE.match(line)):
            count_nak(found[1] or "", found[2], blocks[-1].counts)
    return program(blocks)


IR3_LINE = re.compile(r"((?:\([a-z0-9]+\))*)([a-z][a-z0-9_.]*)\s*(.*)")
IR3_MATH = ("rcp", "exp2", "log2", "rsq", "sqrt", "sin", "cos", "hexp2", "hrsq")
IR3_OTHER = ("nop", "br", "brao", "braa", "jump", "predt", "predf", "prede", "end")
IR3_OTHER += ("fence", "shps", "shpe", "getone", "stc", "stsc", "sync", "chmask")


def count_ir3(flags: str, op: str, operands: str, c: Counter) -> None:
    again = re.search(r"\(rpt(\d)\)", flags)
    n = 1 + int(again[1]) if again else 1
    name = op.split(".")[0]
    if name in (
        "ldl",
        "stl",
        "ldlw",
        "stlw",
        "ldg",
        "stg",
        "ldp",
        "stp",
        "isam",
        "ldib",
    ):
        items = re.search(r", (\d+)$", operands)
        size = 2 if op.endswith("16") else 1 if op.endswith("8") else 4
        kind = {"l": "shared", "g": "load"}.get(name[2], "load")
        kind = "store" if kind == "load" and name[0] == "s" else kind
        count = int(items[1]) if items else 1
        c.update({kind: 1, kind + "_bytes": size * count})
    elif name == "bar":
        c.update(barrier=1)
    elif name in IR3_OTHER:
        c.update(other=1 if name == "nop" else n)
    elif name in IR3_MATH:
        c.update(math=n)
    elif op.startswith("mad.f"):
        c.update(fma=n, macs=n)
    else:
        c.update({"float" if re.search(r"\.f\b", op) else "int": n})


def parse_ir3(text: str) -> Program:
    """Turnip's "IR3 Assembly": labels l<n>, branches to #l<n>."""
    blocks = [Block("")]
    for line in text.splitlines():
        if label := re.match(r"(l\d+):$", line):
            blocks.append(Block(label[1]))
        elif not line.startswith((";", "@")) and (found := IR3_LINE.match(line)):
            block = blocks[-1]
            count_ir3(*found.groups(), block.counts)
            if target := re.search(r"#(l\d+)", line):
                block.targets.append(target[1])
                block.jumps = found[2] == "jump"
                blocks.append(Block(""))
    return program(blocks)


AGX_MATH = ("rcp", "exp2", "log2", "rsqrt", "sqrt", "sin_pt_1", "sin_pt_2")
AGX_OTHER = ("wait", "pop_exec", "stop", "logical_end", "signal_pix")


def count_agx(line: str, c: Counter) -> None:
    op = line.split(" = ", 1)[-1].split()[0]
    access = re.match(r"(device|local|stack|uniform)_(load|store)", op)
    if access and access[1] != "uniform":
        width = max((len(m) for m in re.findall(r"\b[xyzw]+\b", line)), default=1)
        kind = "shared" if access[1] == "local" else access[2]
        c.update({kind: 1, kind + "_bytes": 4 * width})
    elif op in ("ffma", "hfma"):
        c.update(fma=1, macs=1)
    elif op in AGX_MATH:
        c.update(math=1)
    elif op in ("imad", "imul", "imsub"):
        c.update(slow=1)
    elif "shuffle" in op or op.startswith("quad"):
        c.update(shared=1, shared_bytes=4)
    elif "barrier" in op:
        c.update(barrier=1)
    elif op in AGX_OTHER or re.match(r"(if|else|while|jmp|break|push|begin)", op):
        c.update(other=1)
    else:
        c.update({"float" if re.match(r"[fh](add|mul|cmp|sel)", op) else "int": 1})


def parse_agx(text: str) -> Program:
    """Honeykrisp's code after register allocation, which AGX_MESA_DEBUG=shaders
    prints last of three forms: `block3 {`, `} -> block4 from block2`."""
    forms: list[list[Block]] = []
    for line in text.splitlines():
        if head := re.match(r"block(\d+) \{", line):
            if head[1] == "0":
                forms.append([])
            forms[-1].append(Block(head[1]))
        elif forms and (tail := re.match(r"\}(?: -> ([^f]*))?", line)):
            block, number = forms[-1][-1], int(forms[-1][-1].label)
            ends = re.findall(r"block(\d+)", tail[1] or "")
            block.jumps = str(number + 1) not in ends
            block.targets = [t for t in ends if int(t) != number + 1]
        elif forms and line.startswith("   ") and not forms[-1][-1].targets:
            if line.strip():
                count_agx(line.strip(), forms[-1][-1].counts)
    # A preamble, which is small, follows in its own forms.
    most = max((len(form) for form in forms), default=0)
    return program([form for form in forms if len(form) == most][-1])


GEN_LINE = re.compile(r"(?:\([^)]*\) )?([a-z]\w*)(\S*?)\((\d+)\)\s*(.*?)(?:\{|$)")
GEN_OTHER = ("sync", "if", "else", "endif", "break", "while", "cont", "nop", "jmpi")


def message_bytes(rest: str) -> int:
    """Bytes of a lane: of `d16u32, V2`, or of the channels that a mask leaves."""
    if mask := re.search(r"Mask = 0x(\w)", rest):
        return 4 * (4 - int(mask[1], 16).bit_count())
    size = re.search(r"\bd(\d+)", rest)
    items = re.search(r"\bV(\d+)", rest)
    # Scattered messages before Xe-HPG: items of 16 bits.
    return (int(size[1]) // 8 if size else 2) * (int(items[1]) if items else 1)


def count_send(line: str, width: int, lanes: int, c: Counter) -> None:
    """The message stands in the line after its `send`."""
    unit, _, rest = line.partition(" MsgDesc: (")
    what = re.search(r"\b(load|store|read|write|atomic)", rest)
    if not what:
        barrier = unit.strip() == "gateway" and rest.startswith("barrier")
        c.update({"barrier" if barrier else "other": 1})
        return
    share, moved = width / lanes, message_bytes(rest)
    if "transpose" in rest:  # a block for all lanes
        share, moved = 1, moved / lanes
    local = unit.strip() == "slm" or "Surface = 254" in rest
    loads = what[1] in ("load", "read")
    kind = "shared" if local else "load" if loads else "store"
    c.update({kind: share, kind + "_bytes": moved * share})


def count_gen(
    op: str, form: str, width: int, lanes: int, rest: str, c: Counter
) -> None:
    share = width / lanes
    if op == "dpas":
        depth, repeat = map(int, re.findall(r"\d+", form)[:2])
        c.update(matrix=1, matrix_macs=depth * repeat * width * 2)
    elif op in GEN_OTHER:
        c.update(other=1)
    elif width == 1:
        c.update(scalar=1)
    elif op == "math":
        c.update(math=share)
    elif re.search(r"<\d[^>]*>(U?Q|DF)\b", rest.split("  ")[0]):
        c.update(slow=share)
    elif re.match(r"\S*:?(F|HF|BF)\b", rest.partition(">")[2]):
        fused = op == "mad"
        c.update({"fma" if fused else "float": share, "macs": share if fused else 0})
    else:
        c.update(int=share)


def parse_gen(text: str, lanes: int = 16) -> Program:
    """ANV's "GEN Assembly": labels LABEL<n>, the execution size in brackets. `lanes`:
    of a subgroup, which may be fewer than those of a move that fills registers."""
    lines = text.splitlines()
    blocks = [Block("")]
    for i, line in enumerate(lines):
        if label := re.match(r"(LABEL\d+):", line):
            blocks.append(Block(label[1]))
        elif found := GEN_LINE.match(line):
            op, form, width, rest = found.groups()
            block = blocks[-1]
            if op.startswith("send"):
                message = lines[i + 1] if i + 1 < len(lines) else ""
                count_send(message, int(width), lanes, block.counts)
            else:
                count_gen(op, form, int(width), lanes, rest, block.counts)
            if target := re.search(r"JIP:\s+(LABEL\d+)", rest):
                if op in ("if", "else", "while", "jmpi"):
                    block.targets.append(target[1])
                    block.jumps = op == "else"
                    blocks.append(Block(""))
    return program(blocks)


# The name of the text that a driver offers, and its parser.
PARSERS: dict[str, tuple[str, Callable[..., Program]]] = {
    "RADV": ("Assembly", parse_amd),
    "ANV": ("GEN Assembly", parse_gen),
    "NVK": ("NAK assembly", parse_nak),
    "Turnip": ("IR3 Assembly", parse_ir3),
    "Honeykrisp": ("printed", parse_agx),
}
