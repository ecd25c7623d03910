"""Random expressions of the Metal Shading Language without undefined behaviour.

Integers wrap, shifts stay below the
width, divisors are positive, indices are masked. Floats are k * 2^-s: bounds of k
and s travel with each expression, so that all operations are exact in any order
and contracted or not; half and bfloat may round, once an operation, and stay in
range.
"""

import random
from dataclasses import dataclass

# name: kind (i, u, b, f), bits (floats: of the significand)
SCALARS = {
    "bool": ("b", 1),
    "char": ("i", 8),
    "uchar": ("u", 8),
    "short": ("i", 16),
    "ushort": ("u", 16),
    "int": ("i", 32),
    "uint": ("u", 32),
    "long": ("i", 64),
    "ulong": ("u", 64),
    "half": ("f", 11),
    "bfloat": ("f", 8),
    "float": ("f", 24),
}
INTEGERS = ("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong")
FLOATS = ("half", "bfloat", "float")
# What a variable of a float type may hold: |x| <= limit, in steps of 1/4.
LIMIT = {"half": 64, "bfloat": 16, "float": 256}
# Magnitude that an expression may reach, and bits of fraction.
REACH = {"half": 2**13, "bfloat": 2**20, "float": 2**24}
FRACTION = {"half": 8, "bfloat": 8, "float": 12}
SWIZZLES = {
    2: ("xy", "yx", "xx"),
    3: ("xy", "yx", "xx", "yz", "xz", "zyx", "yyz"),
    4: (
        *("xy", "yx", "xx", "yz", "xz", "zyx", "yyz"),
        "zw",
        "wy",
        "xyz",
        "yzw",
        "wzyx",
    ),
}
THREADS = 64  # two SIMD-groups
ITEMS = 256  # of each input
SLOTS = 8  # of each thread in each output


@dataclass
class E:
    """An expression: its text, scalar type, items (1: a scalar), precedence,
    and for floats the largest magnitude and bits of fraction."""

    text: str
    type: str
    n: int = 1
    level: int = 100
    reach: float = 0
    fraction: int = 0

    def at(self, level):
        return self.text if self.level >= level else f"({self.text})"


@dataclass
class Variable:
    name: str
    type: str
    n: int = 1
    length: int = 0  # of an array, or what a pointer may reach
    kind: str = "scalar"  # scalar, array, pointer, struct
    const: bool = False


def promote(a):
    return "int" if SCALARS[a][1] < 32 else a


def common(a, b):
    """C++'s usual arithmetic conversions."""
    if "f" in (SCALARS[a][0], SCALARS[b][0]):
        floats = [t for t in (a, b) if t in FLOATS]
        return "float" if "float" in floats or len(set(floats)) > 1 else floats[0]
    a, b = promote(a), promote(b)
    if a == b:
        return a
    (ka, ba), (kb, bb) = SCALARS[a], SCALARS[b]
    if ka == kb or ba != bb:
        return a if ba > bb else b
    return a if ka == "u" else b


def is_float(kind):
    return kind in FLOATS


def width(kind):
    return SCALARS[promote(kind)][1]


class Generator:
    def __init__(self, seed, collectives=True):
        self.r = random.Random(seed)
        self.names = 0
        self.scopes = [[]]
        self.functions = []
        self.header = []
        self.lines = []
        self.indent = 1
        self.loops = 0  # around, of which one may break out
        self.uniform = 2  # 2: over the threadgroup, 1: over SIMD-groups, 0: not
        self.collectives = collectives
        self.in_body = False
        r = self.r
        kinds = [t for t in SCALARS if t not in ("ulong",)] + ["ulong"]
        self.inputs = ["int", "float", *r.sample(kinds, 3)]
        self.outputs = ["int", "float", r.choice(kinds)]
        self.shared = []

    # names, scopes, lines

    def name(self, stem="v"):
        self.names += 1
        return f"{stem}{self.names}"

    def variables(self):
        return [v for scope in self.scopes for v in scope]

    def declare(self, *args, **kwargs):
        self.scopes[-1].append(Variable(*args, **kwargs))
        return self.scopes[-1][-1]

    def emit(self, text):
        self.lines.append("  " * self.indent + text)

    def block(self, statements, depth):
        self.scopes.append([])
        self.indent += 1
        for _ in range(statements):
            self.statement(depth)
        self.indent -= 1
        self.scopes.pop()

    # expressions

    def literal(self, kind):
        r = self.r
        if kind == "bool":
            return E(r.choice(("true", "false")), "bool")
        if is_float(kind):
            value = r.randrange(-32, 33) / 4
            text = {"float": f"{value}f", "half": f"half({value}f)"}.get(
                kind, f"bfloat({value}f)"
            )
            level = 90 if kind == "float" and value < 0 else 100
            return E(text, kind, 1, level, 8, 2)
        small = r.random() < 0.7
        if kind == "int":
            value = r.randrange(-20, 100) if small else r.randrange(-(2**31) + 1, 2**31)
            text = hex(value) if value > 255 and r.random() < 0.5 else str(value)
            return E(
                text, "int" if value < 2**31 else "uint", 1, 100 if value >= 0 else 90
            )
        if kind == "uint":
            value = r.randrange(100) if small else r.randrange(2**32)
            return E(f"{value}u" if r.random() < 0.7 else f"{value:#x}u", "uint")
        value = r.randrange(100) if small else r.randrange(2**15)
        return E(f"{kind}({value})", kind)

    def index(self, length, depth=1):
        """Masked to a power of two that is not over `length`."""
        mask = (1 << (length.bit_length() - 1)) - 1
        if mask == 0 or self.r.random() < 0.15:
            return str(self.r.randrange(length))
        e = self.integer(depth, ("int", "uint", "short", "uchar", "long", "uint"))
        return f"{e.at(71)} & {mask}"

    def leaves(self, kind, n=1):
        found = []
        for v in self.variables():
            if v.type != kind:
                continue
            if v.kind == "scalar" and v.n == n:
                found.append(v)
            elif v.kind in ("array", "pointer") and n == 1:
                found.append(v)
            elif v.kind == "scalar" and v.n > 1 and n == 1:
                found.append(v)
        return found

    def bounded(self, text, kind, n=1, level=100):
        e = E(text, kind, n, level)
        if is_float(kind):
            e.reach, e.fraction = LIMIT[kind], 2
        return e

    def leaf(self, kind, n=1, depth=1):
        r = self.r
        found = self.leaves(kind, n)
        if found and r.random() < 0.75:
            v = r.choice(found)
            if v.kind == "array":
                return self.bounded(
                    f"{v.name}[{self.index(v.length, depth - 1)}]", kind
                )
            if v.kind == "pointer":
                choice = r.random()
                if choice < 0.3:
                    return self.bounded(f"*{v.name}", kind, 1, 90)
                if choice < 0.5:
                    i = self.index(v.length, depth - 1)
                    return self.bounded(f"*({v.name} + ({i}))", kind, 1, 90)
                return self.bounded(
                    f"{v.name}[{self.index(v.length, depth - 1)}]", kind
                )
            if v.n > 1 and n == 1:
                if r.random() < 0.6:
                    return self.bounded(f"{v.name}.{'xyzw'[r.randrange(v.n)]}", kind)
                # No power of two that is over 2 and not over 3.
                return self.bounded(f"{v.name}[{self.index(v.n, depth - 1)}]", kind)
            return self.bounded(v.name, kind, v.n)
        if n > 1:
            return self.construct(kind, n, 0)
        if kind in self.inputs and self.in_body and r.random() < 0.5:
            i = self.inputs.index(kind)
            return self.bounded(f"in{i}[{self.index(ITEMS, depth - 1)}]", kind)
        return self.literal(kind)

    def cast(self, e, kind):
        """e as another scalar type, in one of C++'s ways; to a float only what
        is in range."""
        if e.type == kind and self.r.random() < 0.9:
            return e
        n = f"{e.n}" if e.n > 1 else ""
        if e.n > 1:
            e = E(f"{e.type}{e.n}({e.text})", *[e.type, e.n, 100, e.reach, e.fraction])
        if is_float(kind) and not is_float(e.type):
            mask = {"half": 63, "bfloat": 15, "float": 255}[kind]
            if e.type != "bool":
                vector = f"{e.type}{n}"
                kept = mask if e.n == 1 else f"{vector}({mask})"
                kept = f"{e.type}(127)" if e.n == 1 and mask > 127 else kept
                if mask > 127 and e.n > 1:
                    kept = f"{vector}(127)"
                e = E(f"{e.at(71)} & {kept}", e.type, e.n, 40)
            reach, fraction = 256, 0
            if mask < 255:
                reach = mask + 1
        elif is_float(e.type) and not is_float(kind):
            if kind != "bool":
                e = self.settled(e, 8192)
                if kind in ("char", "uchar"):  # 256 is beyond them
                    e = E(f"int{n}({e.text})", "int", e.n)
                elif SCALARS[kind][0] == "u":
                    e = self.call("abs", [e], e.type, e.n, e.reach, e.fraction)
            reach = fraction = 0
        elif is_float(kind):
            if e.reach > LIMIT[kind] or e.fraction > 6:
                e = self.settled(e)
            reach, fraction = e.reach, e.fraction
            if e.type != kind and {e.type, kind} == {"half", "bfloat"}:
                e = E(f"float{n}({e.text})", "float", e.n, 100, reach, fraction)
        else:
            reach = fraction = 0
        name = kind + n
        way = self.r.random()
        if way < 0.5 or e.n > 1:
            text, level = f"{name}({e.text})", 100
        elif way < 0.8:
            text, level = f"static_cast<{name}>({e.text})", 100
        else:
            text, level = f"({name}){e.at(90)}", 90
        return E(text, kind, e.n, level, reach, fraction)

    def call(self, function, arguments, kind, n=1, reach=0, fraction=0):
        prefix = self.r.choice(("", "", "metal::"))
        text = f"{prefix}{function}({', '.join(a.text for a in arguments)})"
        return E(text, kind, n, 100, reach, fraction)

    def settled(self, e, limit=0):
        """Clamped to what a variable may hold (or kept, if under `limit`), in
        steps of 1/4."""
        if e.reach <= max(limit, LIMIT[e.type]) and e.fraction <= 2:
            return e
        return E(f"settle({e.text})", e.type, e.n, 100, LIMIT[e.type], 2)

    def integer(self, depth, kinds=INTEGERS):
        """A scalar integer of any of C++'s types, mostly of `kinds`."""
        r = self.r
        if depth <= 0:
            return self.leaf(r.choice(kinds), depth=depth)
        choice = r.random()
        if choice < 0.12:
            return self.leaf(r.choice(kinds), depth=depth)
        if choice < 0.22:
            return self.cast(self.any_scalar(depth - 1), r.choice(kinds))
        if choice < 0.32:
            return self.integer_function(depth, r.choice(kinds))
        if choice < 0.38:
            return self.ternary(r.choice(kinds), depth)
        if choice < 0.46:
            e = self.integer(depth - 1, kinds)
            op = r.choice("-~+")
            text = e.at(91)
            return E(f"{op}{text}", promote(e.type), 1, 90)
        if choice < 0.52:
            return self.condition(depth - 1)
        a, b = self.integer(depth - 1, kinds), self.integer(depth - 1, kinds)
        kind = common(a.type, b.type)
        op = r.choice(("+", "-", "*", "&", "|", "^", "<<", ">>", "/", "%", "+", "*"))
        level = {"*": 80, "/": 80, "%": 80, "+": 70, "-": 70, "<<": 60, ">>": 60}
        level = level.get(op) or {"&": 40, "^": 35, "|": 30}[op]
        if op in ("<<", ">>"):
            kind = promote(a.type)
            amount = f"{b.at(71)} & {width(a.type) - 1}"
            return E(f"{a.at(60)} {op} ({amount})", kind, 1, 60)
        if op in ("/", "%"):
            # Positive, and of a type that keeps the sum so.
            b = E(f"({b.at(71)} & 15) + 1", promote(b.type), 1, 70)
            kind = common(a.type, b.type)
            return E(f"{a.at(80)} {op} ({b.text})", kind, 1, 80)
        if level <= 40 and r.random() < 0.7:  # mixed bit operations read badly
            return E(f"{a.at(71)} {op} {b.at(71)}", kind, 1, level)
        return E(f"{a.at(level)} {op} {b.at(level + 1)}", kind, 1, level)

    def integer_function(self, depth, kind):
        r = self.r
        kind = "int" if kind == "bool" else kind
        narrow = SCALARS[kind][1] <= 32  # some functions have no wider form
        a, b = (self.cast(self.integer(depth - 1), kind) for _ in "ab")
        function = r.choice(
            ("min", "max", "abs", "clamp", "popcount", "clz", "ctz", "rotate")
            + ("mulhi", "select", "extract_bits", "addsat", "subsat", "own", "own")
        )
        a, b = (self.cast_to_exactly(e, kind) for e in (a, b))
        if function == "own":
            return self.own_call(depth, (kind,)) or self.call("min", [a, b], kind)
        if function in ("min", "max") or narrow and function in ("addsat", "subsat"):
            return self.call(function, [a, b], kind)
        if function == "mulhi" and narrow:
            return self.call(function, [a, b], kind)
        if function == "clamp":
            low = E(f"{kind}({r.randrange(40)})", kind)
            high = E(f"{kind}({r.randrange(40, 120)})", kind)
            return self.call(function, [a, low, high], kind)
        if function == "rotate" and narrow:
            return self.call(function, [a, E(f"{kind}({r.randrange(8)})", kind)], kind)
        if function == "select":
            return self.call(function, [a, b, self.truth(depth - 1)], kind)
        if function == "extract_bits" and SCALARS[kind][1] == 32:
            offset, bits = r.randrange(16), r.randrange(1, 16)
            extra = [E(f"uint({x})", "uint") for x in (offset, bits)]
            return self.call(function, [a, *extra], kind)
        if function in ("popcount", "clz", "ctz"):
            return self.call(function, [a], kind)
        return self.call("abs", [a], kind)

    def cast_to_exactly(self, e, kind):
        return e if e.type == kind else E(f"{kind}({e.text})", kind)

    def any_scalar(self, depth):
        if self.r.random() < 0.3:
            return self.floating(self.r.choice(FLOATS), depth)
        return self.integer(depth)

    def ternary(self, kind, depth):
        c = self.condition(depth - 1)
        a, b = self.scalar(kind, depth - 1), self.scalar(kind, depth - 1)
        a, b = (e if e.type == kind else E(f"{kind}({e.text})", kind) for e in (a, b))
        text = f"{c.at(11)} ? {a.at(11)} : {b.at(11)}"
        # char and its like are not promoted where both sides are equal
        return E(text, kind, 1, 10, max(a.reach, b.reach), max(a.fraction, b.fraction))

    def truth(self, depth):
        c = self.condition(depth)
        return c if c.type == "bool" else E(f"bool({c.text})", "bool")

    def condition(self, depth):
        r = self.r
        choice = r.random()
        if depth <= 0 or choice < 0.1:
            return self.leaf("bool", depth=depth)
        if choice < 0.2:
            e = self.condition(depth - 1)
            return E(f"!{e.at(91)}", "bool", 1, 90)
        if choice < 0.4:
            op, level = r.choice((("&&", 25), ("||", 20)))
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            keep = 26 if op == "||" and r.random() < 0.5 else 30
            keep = level + 1 if keep == 26 and op == "||" else keep
            return E(f"{a.at(keep)} {op} {b.at(keep)}", "bool", 1, level)
        if choice < 0.45:
            n = r.choice((2, 3, 4))
            kind = r.choice(("int", "uint", "float", "half"))
            a, b = self.vector(kind, n, depth - 1), self.vector(kind, n, depth - 1)
            op = r.choice(("<", ">=", "==", "!="))
            name = f"{kind}{n}"
            text = f"{r.choice(('all', 'any'))}({name}({a.text}) {op} {name}({b.text}))"
            return E(text, "bool")
        op = r.choice(("<", ">", "<=", ">=", "==", "!="))
        level = 45 if op in ("==", "!=") else 50
        if r.random() < 0.3:
            kind = r.choice(FLOATS)
            a, b = self.floating(kind, depth - 1), self.floating(kind, depth - 1)
        else:
            a, b = self.integer(depth - 1), self.integer(depth - 1)
        return E(f"{a.at(level + 6)} {op} {b.at(level + 6)}", "bool", 1, level)

    def floating(self, kind, depth, n=1):
        """Of exactly this float type; n > 1 a vector."""
        r = self.r
        choice = r.random()
        if depth <= 0 or choice < 0.15:
            return self.leaf(kind, n, depth)
        if choice < 0.25 and n == 1:
            return self.cast_or_leaf(kind, depth)
        if choice < 0.32 and n == 1:
            return self.ternary(kind, depth)
        if choice < 0.38 and n == 1:
            return self.own_call(depth, (kind,)) or self.leaf(kind, n, depth)
        if choice < 0.44:
            e = self.floating(kind, depth - 1, n)
            return E(f"-{e.at(91)}", kind, n, 90, e.reach, e.fraction)
        a, b = self.floating(kind, depth - 1, n), self.floating(kind, depth - 1, n)
        if choice < 0.62:
            return self.float_function(kind, a, b, n, depth)
        if choice < 0.68:
            divisor = r.choice((2, 4))
            limit = FRACTION[kind] - (1 if divisor == 2 else 2)
            if a.fraction > limit:
                a = self.settled(a)
            name = f"{kind}({divisor})"
            fraction = a.fraction + (1 if divisor == 2 else 2)
            return E(f"{a.at(80)} / {name}", kind, n, 80, a.reach, fraction)
        op = r.choice("++--**")
        if op == "*":
            reach, fraction = a.reach * b.reach, a.fraction + b.fraction
        else:
            reach, fraction = a.reach + b.reach, max(a.fraction, b.fraction)
        if not self.fits(kind, reach, fraction):
            a, b = self.settled(a), self.settled(b)
            if op == "*":
                reach, fraction = a.reach * b.reach, a.fraction + b.fraction
            else:
                reach, fraction = a.reach + b.reach, max(a.fraction, b.fraction)
        level = 80 if op == "*" else 70
        text = f"{a.at(level)} {op} {b.at(level + 1)}"
        return E(text, kind, n, level, reach * 1.01, fraction)

    def fits(self, kind, reach, fraction):
        if fraction > FRACTION[kind] or reach * 1.01 > REACH[kind]:
            return False
        return kind != "float" or reach * 2**fraction < 2**23

    def cast_or_leaf(self, kind, depth):
        e = self.any_scalar(depth - 1)
        return self.cast(e, kind) if e.type != kind else e

    def float_function(self, kind, a, b, n, depth):
        r = self.r
        reach, fraction = max(a.reach, b.reach), max(a.fraction, b.fraction)
        choices = ["min", "max", "abs", "floor", "ceil", "trunc", "rint", "clamp"]
        choices += ["select"] if n == 1 else []
        function = r.choice([*choices, "sign", "fma"])
        name = f"{kind}{n}" if n > 1 else kind
        if function in ("min", "max"):
            return self.call(function, [a, b], kind, n, reach, fraction)
        if function == "select":
            arguments = [a, b, self.truth(depth - 1)]
            return self.call(function, arguments, kind, n, reach, fraction)
        if function == "clamp":
            low = E(f"{name}({-r.randrange(4)})", kind)
            high = E(f"{name}({r.randrange(1, 9)})", kind)
            return self.call(function, [a, low, high], kind, n, 8, a.fraction)
        if function == "fma" and kind == "float":
            a, b = self.settled(a), self.settled(b)
            c = self.settled(self.floating(kind, 0, n))
            reach = a.reach * b.reach + c.reach
            return self.call(function, [a, b, c], kind, n, reach, 4)
        if function == "sign":
            return self.call(function, [a], kind, n, 1, 0)
        if function in ("floor", "ceil", "trunc", "rint"):
            return self.call(function, [a], kind, n, a.reach + 1, 0)
        return self.call("abs", [a], kind, n, a.reach, a.fraction)

    def scalar(self, kind, depth):
        if is_float(kind):
            return self.floating(kind, depth)
        e = self.integer(depth)
        return e if e.type == kind else self.cast(e, kind)

    def construct(self, kind, n, depth):
        r = self.r
        if r.random() < 0.25:
            parts = [1]
        else:
            parts, left = [], n
            while left:
                k = r.choice([k for k in (1, 1, 2, 3) if k <= left and k < n])
                parts.append(k)
                left -= k
        texts, reach, fraction = [], 0, 0
        for k in parts:
            e = self.vector(kind, k, depth) if k > 1 else self.scalar(kind, depth)
            if not is_float(kind) and e.type != kind:
                e = self.cast(e, kind)
            reach, fraction = max(reach, e.reach), max(fraction, e.fraction)
            texts.append(e.text if e.level > 5 else f"({e.text})")
        return E(f"{kind}{n}({', '.join(texts)})", kind, n, 100, reach, fraction)

    def vector(self, kind, n, depth):
        r = self.r
        choice = r.random()
        if depth <= 0 or choice < 0.2:
            return self.leaf(kind, n, depth)
        if choice < 0.4:
            return self.construct(kind, n, depth - 1)
        if choice < 0.55:  # a swizzle of a variable
            found = [
                (v, s)
                for v in self.variables()
                if v.type == kind and v.kind == "scalar" and v.n > 1
                for s in SWIZZLES[v.n]
                if len(s) == n
            ]
            if found:
                v, swizzle = r.choice(found)
                return self.bounded(f"{v.name}.{swizzle}", kind, n)
        if choice < 0.65:
            other = r.choice([t for t in SCALARS if t != "bool"])
            if kind != "bool" and other != kind:
                e = self.vector(other, n, depth - 1)
                return self.cast(e, kind)
        if is_float(kind):
            return self.floating(kind, depth, n)
        if kind == "bool":
            return self.construct(kind, n, depth - 1)
        a, b = self.vector(kind, n, depth - 1), self.vector(kind, n, depth - 1)
        op = r.choice(("+", "-", "*", "&", "|", "^", "<<", ">>", "min", "max"))
        name = f"{kind}{n}"
        if op in ("min", "max"):
            plain = [E(f"{name}({e.text})", kind, n) for e in (a, b)]
            return self.call(op, plain, kind, n)
        if op in ("<<", ">>"):
            by = r.randrange(1, SCALARS[kind][1])
            return E(f"{a.at(91)} {op} {kind}({by})", kind, n, 60)
        level = {"*": 80, "+": 70, "-": 70}.get(op, 40)
        if r.random() < 0.25:
            b = self.cast_to_exactly(self.scalar(kind, depth - 1), kind)
            b = E(f"{kind}({b.text})", kind)
        return E(f"{a.at(91)} {op} {b.at(91)}", kind, n, level if level > 40 else 29)

    def own_call(self, depth, kinds):
        """Of a function in the header."""
        found = [f for f in self.functions if f["returns"] in kinds]
        if not found:
            return None
        f = self.r.choice(found)
        arguments = []
        for kind in f["takes"]:
            e = self.scalar(kind, depth - 1)
            e = self.settled(e) if is_float(kind) else e
            arguments.append(e if e.type == kind else E(f"{kind}({e.text})", kind))
        text = f"{f['name']}({', '.join(a.text for a in arguments)})"
        return self.bounded(text, f["returns"])
