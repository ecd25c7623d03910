"""Random bodies of mx.fast.metal_kernel; program(seed) is always the same."""

from dataclasses import dataclass, field

from expressions import (
    ITEMS,
    LIMIT,
    SCALARS,
    SLOTS,
    SWIZZLES,
    THREADS,
    Generator,
    common,
    is_float,
)

BUILTINS = {
    "thread_position_in_grid.x": "uint",
    "thread_position_in_threadgroup.x": "uint",
    "thread_index_in_simdgroup": "uint",
    "simdgroup_index_in_threadgroup": "uint",
    "threads_per_threadgroup.x": "uint",
}
# Templates that bodies call; K, OP: a number, an operator.
LIBRARY = {
    "total": """template <typename T>
T total(const device T* p, int n) {
  T sum = T(0);
  for (int i = 0; i < n; ++i, ++p) {
    sum = T(sum OP *p);
  }
  return sum;
}""",
    "power": """template <typename T, int N>
inline T power(T x) {
  T r = T(1);
  for (int i = 0; i < N; i++) {
    r *= x;
  }
  return r;
}""",
    "exchange": """template <typename T>
void exchange(thread T& a, thread T& b) {
  T kept = a;
  a = b;
  b = kept;
}""",
    "shift_all": """template <typename T, int N>
void shift_all(thread T* p, T by) {
  for (int i = 0; i < N; ++i) {
    p[i] = T(p[i] OP by);
  }
}""",
    "Pair": """template <typename A, typename B = int>
struct Pair {
  A first;
  B second;
  A mixed(int k) const {
    return A(first OP A(second + k));
  }
};""",
    "pick": """template <int K>
int pick(int a, int b, int c) {
  if (K == 0) {
    return a;
  }
  return K == 1 ? b : c;
}""",
}


@dataclass
class Program:
    seed: int
    inputs: list[str]  # types of in0, in1 ...
    outputs: list[str]
    header: str = ""
    setup: str = ""
    statements: list[str] = field(default_factory=list)
    end: str = ""

    @property
    def body(self):
        return "\n".join([self.setup, *self.statements, self.end]) + "\n"


class Statements(Generator):
    def program(self, seed, count):
        r = self.r
        self.library = r.sample(list(LIBRARY), 4)
        # total() leaves the range of floats, the others' are integers too
        header = [self.settles()]
        header += [
            LIBRARY[name].replace("OP", r.choice("+-*^|") if True else "+")
            for name in self.library
        ]
        self.structs = []
        for _ in range(r.randrange(3)):
            header.append(self.structure())
        for _ in range(r.randrange(1, 4)):
            header.append(self.function())
        if r.random() < 0.5:
            header.insert(0, "#define TWICE(x) (2 * (x))")
            self.library.append("TWICE")
        if r.random() < 0.5:
            header.insert(0, "constant constexpr int LIMIT_OF_ALL = 7;")
            self.declare("LIMIT_OF_ALL", "int", const=True)
        self.in_body = True
        for name, kind in BUILTINS.items():
            self.declare(name, kind, const=True)
        for i, kind in enumerate(self.inputs):
            self.declare(f"in{i}", kind, length=ITEMS, kind="pointer", const=True)
        program = Program(seed, self.inputs, self.outputs, "\n\n".join(header))
        self.lines = []
        self.emit(f"threadgroup int shared_items[{THREADS}];")
        self.emit(f"threadgroup int shared_more[{THREADS}];")
        for i, kind in enumerate(self.outputs):
            own = f"out{i} + thread_position_in_grid.x * {SLOTS}"
            self.emit(f"device {kind}* o{i} = {own};")
            self.emit(f"for (int i = 0; i < {SLOTS}; ++i) {{")
            self.emit(f"  o{i}[i] = {kind}(0);")
            self.emit("}")
            self.declare(f"o{i}", kind, length=SLOTS, kind="pointer")
        program.setup = "\n".join(self.lines)
        for _ in range(count):
            self.lines = []
            self.statement(3)
            if self.lines:
                program.statements.append("\n".join(self.lines))
        self.lines = []
        for i, kind in enumerate(self.outputs):
            for j in range(0, SLOTS, 2):
                self.emit(f"o{i}[{j}] = {self.value(kind, 2)};")
        program.end = "\n".join(self.lines)
        return program

    # the header

    def settles(self):
        lines = []
        for kind, limit in LIMIT.items():
            for n in ("", 2, 3, 4):
                v = f"{kind}{n}"
                kept = f"metal::clamp(x, {v}(-{limit}.0f), {v}({limit}.0f))"
                scaled = f"metal::floor({kept} * {kind}(4))"
                lines.append(f"inline {v} settle({v} x) {{")
                lines.append(f"  return {scaled} * {kind}(0.25f);")
                lines.append("}")
        return "\n".join(lines)

    def structure(self):
        r = self.r
        name = self.name("S")
        fields = []
        for i in range(r.randrange(1, 5)):
            kind = r.choice(list(SCALARS))
            length = r.choice((0, 0, 0, 2, 4))
            n = r.choice((1, 1, 2, 4)) if not length else 1
            fields.append((f"f{i}", kind, n, length))
        self.structs.append((name, fields))
        lines = [f"struct {name} {{"]
        for field_name, kind, n, length in fields:
            extent = f"[{length}]" if length else ""
            lines.append(f"  {self.typename(kind, n)} {field_name}{extent};")
        return "\n".join([*lines, "};"])

    def typename(self, kind, n=1):
        return f"{kind}{n}" if n > 1 else kind

    def function(self):
        r = self.r
        name = self.name("f")
        takes = [r.choice(list(SCALARS)) for _ in range(r.randrange(1, 4))]
        returns = r.choice(list(SCALARS))
        self.scopes.append([])
        for i, kind in enumerate(takes):
            self.declare(f"a_{i}", kind)
        self.lines = []
        for _ in range(r.randrange(3)):
            self.statement(1)
        if r.random() < 0.3:
            self.emit(f"if ({self.condition(1).text}) {{")
            self.emit(f"  return {self.value(returns, 1)};")
            self.emit("}")
        self.emit(f"return {self.value(returns, 2)};")
        self.scopes.pop()
        parameters = ", ".join(f"{kind} a_{i}" for i, kind in enumerate(takes))
        prefix = r.choice(("", "inline ", "static inline "))
        text = f"{prefix}{returns} {name}({parameters}) {{\n"
        text += "\n".join(self.lines) + "\n}"
        self.functions.append({"name": name, "takes": takes, "returns": returns})
        return text

    # statements

    def value(self, kind, depth):
        """Text of what may be assigned to a variable of `kind`."""
        e = self.scalar(kind, depth)
        e = self.settled(e) if is_float(kind) else e
        return e.text

    def value_of(self, kind, n, depth):
        if n == 1:
            return self.value(kind, depth)
        e = self.vector(kind, n, depth)
        if e.type != kind:
            e = self.cast(e, kind)
        return (self.settled(e) if is_float(kind) else e).text

    def lvalue(self, kinds=None):
        """Text, type and items of something that can be assigned."""
        r = self.r
        found = [
            v
            for v in self.variables()
            if not v.const and v.kind != "struct" and (not kinds or v.type in kinds)
        ]
        if not found:
            return None
        v = r.choice(found)
        if v.kind in ("array", "pointer"):
            if v.kind == "pointer" and r.random() < 0.2:
                return f"*{v.name}", v.type, 1
            return f"{v.name}[{self.index(v.length)}]", v.type, 1
        if v.n > 1:
            choice = r.random()
            if choice < 0.3:
                return f"{v.name}.{'xyzw'[r.randrange(v.n)]}", v.type, 1
            if choice < 0.4:
                return f"{v.name}[{self.index(v.n)}]", v.type, 1
            if choice < 0.6:
                s = r.choice([s for s in SWIZZLES[v.n] if len(set(s)) == len(s)])
                return f"{v.name}.{s}", v.type, len(s)
        return v.name, v.type, v.n

    def statement(self, depth):
        r = self.r
        choices = ["declare", "declare", "assign", "assign", "assign", "compound"]
        choices += ["compound", "increment", "array", "reference"]
        if depth > 0:
            choices += ["branch", "branch", "loop", "switch", "scope"]
        if self.in_body:
            choices += ["struct", "pointer", "library", "walk", "lambda"]
            choices += ["swap", "swap", "exact"]
            if self.collectives:
                choices += ["collective", "collective", "share"]
        getattr(self, f"do_{r.choice(choices)}")(depth)

    def do_declare(self, depth):
        r = self.r
        kind = r.choice(list(SCALARS))
        n = r.choice((1, 1, 1, 2, 3, 4))
        name = self.name()
        const = r.random() < 0.15
        prefix = "const " if const else ""
        if n == 1 and r.random() < 0.25:
            e = self.any_scalar(3)
            e = self.settled(e) if is_float(e.type) else e
            self.emit(f"{prefix}auto {name} = {e.text};")
            self.declare(name, e.type, const=const)
            return
        value = self.value_of(kind, n, 3)
        spelled = self.typename(kind, n)
        if n > 1 and r.random() < 0.2:
            spelled = f"metal::vec<{kind}, {n}>"
        way = f"(({value}))" if n == 1 and r.random() < 0.1 else f" = {value}"
        self.emit(f"{prefix}{spelled} {name}{way};")
        self.declare(name, kind, n, const=const)

    def do_assign(self, depth):
        target = self.lvalue()
        if not target:
            return self.do_declare(depth)
        text, kind, n = target
        if n == 1 and not is_float(kind) and self.r.random() < 0.4:
            e = self.integer(3)  # converted by the assignment
            self.emit(f"{text} = {e.text};")
        else:
            self.emit(f"{text} = {self.value_of(kind, n, 3)};")

    def do_compound(self, depth):
        r = self.r
        target = self.lvalue([k for k in SCALARS if k != "bool"])
        if not target:
            return self.do_declare(depth)
        text, kind, n = target
        if is_float(kind):
            if "[" in text:  # whose index may read what changes
                return self.do_assign(depth)
            op = "+" if n > 1 and "." in text else r.choice("+-*")
            self.emit(f"{text} {op}= {self.value_of(kind, n, 2)};")
            self.emit(f"{text} = settle({text});")
        elif n > 1:
            op = "+" if "." in text else r.choice("+-*^")
            self.emit(f"{text} {op}= {self.value_of(kind, n, 2)};")
        else:
            op = r.choice(("+", "-", "*", "&", "|", "^", "<<", ">>", "/", "%"))
            e = self.integer(2)
            if op in ("<<", ">>"):
                e.text = f"{e.at(71)} & {max(SCALARS[kind][1], 32) - 1}"
            elif op in "/%":
                e.text = f"({e.at(71)} & 15) + 1"
            self.emit(f"{text} {op}= {e.text};")

    def do_increment(self, depth):
        target = self.lvalue([k for k in SCALARS if SCALARS[k][0] in "iu"])
        if not target or target[2] > 1:
            return self.do_declare(depth)
        text = target[0]
        text = f"({text})" if text.startswith("*") else text
        op = self.r.choice(("++", "--"))
        self.emit(f"{op}{text};" if self.r.random() < 0.5 else f"{text}{op};")

    def do_array(self, depth):
        r = self.r
        kind = r.choice(list(SCALARS))
        length = r.choice((2, 3, 4, 5, 8))
        name = self.name("a")
        if r.random() < 0.2:
            rows = r.choice((2, 3))
            self.emit(f"{kind} {name}[{rows}][{length}];")
            i, j = self.name("i"), self.name("i")
            self.emit(f"for (int {i} = 0; {i} < {rows}; ++{i})")
            self.emit(f"  for (int {j} = 0; {j} < {length}; ++{j})")
            self.emit(f"    {name}[{i}][{j}] = {kind}({i} + {j});")
            for k in range(rows):
                self.declare(f"{name}[{k}]", kind, length=length, kind="array")
            return
        values = []
        for _ in range(length):
            e = self.scalar(kind, 1)
            e = self.settled(e) if is_float(kind) else e
            values.append(f"{kind}({e.text})")
        self.emit(f"{kind} {name}[{length}] = {{{', '.join(values)}}};")
        self.declare(name, kind, length=length, kind="array")

    def do_reference(self, depth):
        found = [v for v in self.variables() if v.kind == "array" and not v.const]
        if not found:
            return self.do_array(depth)
        v = self.r.choice(found)
        name = self.name("r")
        self.emit(f"thread {v.type}& {name} = {v.name}[{self.index(v.length)}];")
        self.declare(name, v.type)

    def do_pointer(self, depth):
        r = self.r
        found = [
            v
            for v in self.variables()
            if v.kind in ("array", "pointer") and v.length > 1
        ]
        v = r.choice(found)
        space = "thread" if v.kind == "array" or v.name.startswith("p") else "device"
        if v.name.startswith("q"):
            space = "device"
        name = self.name("q" if space == "device" else "p")
        const = v.const or r.random() < 0.3
        offset = r.randrange(v.length)
        if v.length >= 4 and r.random() < 0.6:
            half = 1 << (v.length.bit_length() - 2)
            text, left = f"({self.index(half)})", v.length - half + 1
        else:
            text, left = str(offset), v.length - offset
        words = [*(["const"] if const else []), space]
        if r.random() < 0.3:
            words.reverse()
        value = f"{v.name} + {text}"
        if r.random() < 0.2:
            value = f"&{v.name}[{text}]"
        self.emit(f"{' '.join(words)} {v.type}* {name} = {value};")
        self.declare(name, v.type, length=left, kind="pointer", const=const)

    def do_swap(self, depth):
        """Pointers that move between two arrays."""
        r = self.r
        arrays = [
            v
            for v in self.variables()
            if v.kind == "array" and not v.const and "." not in v.name
        ]
        if not arrays:
            return self.do_array(depth)
        first = r.choice(arrays)
        second = r.choice([v for v in arrays if v.type == first.type])
        p, q, kept = self.name("p"), self.name("q"), self.name("p")
        kind, left = first.type, min(first.length, second.length)
        test = self.condition(2).text
        if r.random() < 0.4:
            self.emit(f"thread {kind}* {p} = {test} ? {first.name} : {second.name};")
        else:
            self.emit(f"thread {kind}* {p} = {first.name};")
            self.emit(f"thread {kind}* {q} = {second.name};")
            self.emit(f"if ({test}) {{")
            if r.random() < 0.5:
                self.emit(f"  thread {kind}* {kept} = {p};")
                self.emit(f"  {p} = {q};")
                self.emit(f"  {q} = {kept};")
            else:
                self.emit(f"  {p} = {q} + {left - 1} - {left - 1};")
            self.emit("}")
        self.declare(p, kind, length=left, kind="pointer")

    def do_exact(self, depth):
        """Bits of products and sums that must not become one operation. Zeros
        have no sign: lavapipe's products with a constant 0 lose it."""
        r = self.r
        name = self.name()
        x, y, z = (f"float({self.exactly('int', 1)} % 1000)" for _ in range(3))
        pragma = r.choice(
            (
                "clang fp contract(off)",
                "METAL fp contract(off)",
                "STDC FP_CONTRACT OFF",
                "clang fp reassociate(off) contract(off)",
            )
        )
        self.emit(f"uint {name} = 0;")
        self.emit("{")
        self.emit(f"#pragma {pragma}")
        self.emit(f"  float m = {x} * 0.37f + 1.1f;")
        self.emit(f"  m = m * {y} - {r.choice(('m * 0.71f', '1.3f'))} * {z};")
        self.emit("  m += 0.1f * m;")
        self.emit(f"  {name} = m == 0 ? 0u : as_type<uint>(m);")
        self.emit("}")
        self.declare(name, "uint")

    def do_walk(self, depth):
        """A pointer that moves in a loop."""
        r = self.r
        i = r.randrange(len(self.inputs))
        kind = self.inputs[i]
        name, total, k = self.name("q"), self.name("t"), self.name("i")
        sum_kind = "float" if is_float(kind) else common(kind, "int")
        step = r.randrange(1, 5)
        self.emit(f"const device {kind}* {name} = in{i} + ({self.index(128)});")
        self.emit(f"{sum_kind} {total} = {sum_kind}(0);")
        self.emit(f"for (int {k} = 0; {k} < {r.randrange(1, 8)}; ++{k}) {{")
        read = r.choice((f"*{name}", f"{name}[{step}]", f"*({name} + {k})"))
        self.emit(f"  {total} += {read};")
        self.emit("  " + r.choice((f"{name} += {step};", f"{name}++;", f"++{name};")))
        self.emit("}")
        if is_float(kind):
            self.emit(f"{total} = settle({total});")
        self.declare(total, sum_kind)

    def do_struct(self, depth):
        r = self.r
        if not self.structs:
            return self.do_declare(depth)
        struct, fields = r.choice(self.structs)
        name = self.name("s")
        values = []
        for _, kind, n, length in fields:
            one = [self.exactly(kind, n) for _ in range(length or 1)]
            values.append(f"{{{', '.join(one)}}}" if length else one[0])
        self.emit(f"{struct} {name} = {{{', '.join(values)}}};")
        if r.random() < 0.3:  # a copy, or through a pointer
            other = self.name("s")
            self.emit(f"{struct} {other} = {name};")
            name = other
        for field_name, kind, n, length in fields:
            whole = f"{name}.{field_name}"
            if length:
                self.declare(whole, kind, length=length, kind="array")
            else:
                self.declare(whole, kind, n)

    def exactly(self, kind, n):
        return f"{self.typename(kind, n)}({self.value_of(kind, n, 1)})"

    def do_library(self, depth):
        r = self.r
        name = r.choice(self.library)
        result = self.name()
        kind = r.choice(("int", "uint", "short", "long", "uchar"))
        if name == "total":
            found = [i for i, k in enumerate(self.inputs) if SCALARS[k][0] in "iu"]
            i = r.choice(found)
            kind = self.inputs[i]
            start = f"in{i} + ({self.index(128)})"
            self.emit(f"auto {result} = total({start}, {r.randrange(9)});")
        elif name == "power":
            call = f"power<{kind}, {r.randrange(5)}>({self.exactly(kind, 1)})"
            self.emit(f"{kind} {result} = {call};")
        elif name == "exchange":
            other = self.name()
            self.emit(f"{kind} {result} = {self.value(kind, 2)};")
            self.emit(f"{kind} {other} = {self.value(kind, 2)};")
            self.emit(f"exchange({result}, {other});")
            self.declare(other, kind)
        elif name == "shift_all":
            found = [
                v
                for v in self.variables()
                if v.kind == "array" and SCALARS[v.type][0] in "iu"
            ]
            if not found:
                return self.do_array(depth)
            v = r.choice(found)
            n = r.randrange(1, v.length + 1)
            self.emit(f"shift_all<{v.type}, {n}>({v.name}, {self.exactly(v.type, 1)});")
            return
        elif name == "Pair":
            pair = self.name("s")
            second = r.choice(("", ", short", ", uint"))
            b = second[2:] or "int"
            first, last = self.exactly(kind, 1), self.exactly(b, 1)
            self.emit(f"Pair<{kind}{second}> {pair} = {{{first}, {last}}};")
            k = self.exactly("int", 1)
            self.emit(f"{kind} {result} = {pair}.mixed({k});")
        elif name == "pick":
            kind = "int"
            three = ", ".join(self.exactly("int", 1) for _ in range(3))
            self.emit(f"int {result} = pick<{r.randrange(3)}>({three});")
        else:
            kind = "int"
            self.emit(f"int {result} = TWICE({self.exactly('int', 1)});")
        self.declare(result, kind)

    def do_lambda(self, depth):
        r = self.r
        name, result = self.name("g"), self.name()
        kind = r.choice(("int", "uint", "float"))
        self.scopes.append([])
        self.declare("x", "int")
        value = self.exactly(kind, 1)
        self.scopes.pop()
        self.emit(f"auto {name} = [&](int x) {{ return {value}; }};")
        call = f"{name}({self.exactly('int', 1)})"
        self.emit(f"{kind} {result} = {call};")
        self.declare(result, kind)

    # control

    def inside(self, statements, depth, uniform, loop=False):
        kept = self.uniform, self.loops
        self.uniform = min(self.uniform, uniform)
        self.loops = loop if loop is not None else self.loops
        self.block(statements, depth)
        self.uniform, self.loops = kept

    def uniform_condition(self):
        """Its text and over what it is uniform."""
        r = self.r
        if self.in_body and r.random() < 0.4:
            if r.random() < 0.5:
                return f"simdgroup_index_in_threadgroup == {r.randrange(2)}", 1
            return f"in0[{r.randrange(ITEMS)}] > {r.randrange(-9, 9)}", 2
        return self.condition(2).text, 0

    def do_branch(self, depth):
        r = self.r
        text, uniform = self.uniform_condition()
        self.emit(f"if ({text}) {{")
        self.inside(r.randrange(1, 4), depth - 1, uniform, None)
        if r.random() < 0.25:
            text, more = self.uniform_condition()
            uniform = min(uniform, more)
            self.emit(f"}} else if ({text}) {{")
            self.inside(r.randrange(1, 3), depth - 1, uniform, None)
        if r.random() < 0.5:
            self.emit("} else {")
            self.inside(r.randrange(1, 3), depth - 1, uniform, None)
        self.emit("}")

    def do_scope(self, depth):
        self.emit("{")
        if self.r.random() < 0.4:
            rule = self.r.choice(("off", "on", "fast"))
            self.emit(f"#pragma clang fp contract({rule})")
        self.inside(self.r.randrange(1, 4), depth - 1, self.uniform, None)
        self.emit("}")

    def jump(self, continues):
        r = self.r
        word = r.choice(("break", "continue")) if continues else "break"
        self.indent += 1
        self.emit(f"if ({self.condition(2).text}) {{")
        self.emit(f"  {word};")
        self.emit("}")
        self.indent -= 1

    def do_loop(self, depth):
        r = self.r
        i = self.name("i")
        kind = r.choice(("int", "int", "uint", "short", "uchar"))
        trips, uniform = str(r.randrange(1, 6)), 2
        if r.random() < 0.4:
            e = self.integer(2, ("int", "uint"))
            trips, uniform = f"{kind}({e.at(71)} & 7)", 0
        collectives = self.collectives
        jumps = r.random() < 0.4
        continues = jumps and r.random() < 0.5
        if continues:
            self.collectives = False  # converging again is then not by lines
        uniform = 0 if jumps else uniform
        form = r.random()
        statements = r.randrange(1, 4)
        if r.random() < 0.15:
            self.emit("#pragma unroll")
            form = 0.1
        self.scopes.append([])
        if form < 0.6:
            step = r.choice((f"++{i}", f"{i}++", f"{i} += 1", f"{i} += 2"))
            self.emit(f"for ({kind} {i} = 0; {i} < {trips}; {step}) {{")
            end = "}"
        elif form < 0.75:
            self.emit(f"for ({kind} {i} = {trips}; {i} > 0; {i}--) {{")
            end = "}"
        elif form < 0.9:
            self.emit(f"{kind} {i} = {trips};")
            self.emit(f"while ({i} > 0) {{")
            self.emit(f"  --{i};")
            end = "}"
        else:
            self.emit(f"{kind} {i} = {trips};")
            self.emit("do {")
            end = f"}} while ({i}-- > 1);"
            continues = False
            uniform = min(uniform, 2)
        self.declare(i, kind, const=True)
        self.inside(statements, depth - 1, uniform, True)
        if jumps:
            self.jump(continues)
            self.inside(r.randrange(1, 3), depth - 1, 0, True)
        self.emit(end)
        self.scopes.pop()
        self.collectives = collectives

    def do_switch(self, depth):
        r = self.r
        self.emit(f"switch ({self.integer(2, ('int', 'uint', 'short')).at(71)} & 3) {{")
        cases = r.sample(range(4), r.randrange(1, 4))
        self.indent += 1
        collectives, self.collectives = self.collectives, False
        for k in cases:
            self.emit(f"case {k}: {{")
            self.inside(r.randrange(1, 3), depth - 1, 0)
            self.emit("}")
            # the generator's own functions may not fall through the end
            if r.random() < 0.7 or k == cases[-1]:
                self.emit("break;")
        if r.random() < 0.6:
            self.emit("default:")
            self.scopes.append([])
            self.emit("{")
            self.inside(1, depth - 1, 0)
            self.emit("}")
            self.scopes.pop()
        self.collectives = collectives
        self.indent -= 1
        self.emit("}")

    # SIMD-groups and threadgroups

    def do_collective(self, depth):
        r = self.r
        name = self.name("c")
        choices = ["sum", "sum", "min", "max", "bits", "vote", "prefix"]
        if self.uniform:
            choices += ["shuffle", "shuffle", "edge", "quad"]
        choice = r.choice(choices)
        kind = r.choice(("int", "uint", "float"))
        if choice in ("bits", "vote"):
            kind = "uint" if choice == "bits" else "bool"
        value = self.exactly(kind, 1)
        if choice in ("sum", "min", "max"):
            call = f"simd_{choice}({value})"
        elif choice == "bits":
            call = f"simd_{r.choice(('and', 'or', 'xor'))}({value})"
        elif choice == "vote":
            call = f"simd_{r.choice(('any', 'all'))}({value})"
        elif choice == "prefix":
            call = f"simd_prefix_{r.choice(('exclusive', 'inclusive'))}_sum({value})"
        elif choice == "quad":
            call = r.choice(
                (f"quad_sum({value})", f"quad_shuffle_xor({value}, {r.randrange(4)})")
            )
        elif choice == "edge":
            up, by = r.random() < 0.5, r.choice((1, 2, 4, 8, 16))
            call = f"simd_shuffle_{'up' if up else 'down'}({value}, {by})"
            lane = "thread_index_in_simdgroup"
            outside = f"{lane} < {by}u" if up else f"{lane} + {by}u > 31u"
        else:
            lane = self.index(32, 2)
            call = r.choice(
                (
                    f"simd_shuffle({value}, ushort({lane}))",
                    f"simd_broadcast({value}, {r.randrange(32)})",
                    f"simd_shuffle_xor({value}, {r.choice((1, 2, 4, 8, 16, 31))})",
                )
            )
        self.emit(f"{kind} {name} = {call};")
        if choice == "edge":
            self.emit(f"if ({outside}) {{")
            self.emit(f"  {name} = {kind}(0);")
            self.emit("}")
        if kind == "float":
            self.emit(f"{name} = settle({name});")
        self.declare(name, kind)

    def do_share(self, depth):
        if self.uniform < 2:
            return self.do_collective(depth)
        r = self.r
        name = self.name("c")
        barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);"
        own = "thread_position_in_threadgroup.x"
        self.emit(f"shared_items[{own}] = {self.value('int', 2)};")
        moves = r.random() < 0.5
        if moves:
            self.emit(f"shared_more[{own}] = {self.value('int', 2)};")
        self.emit(barrier)
        other = r.choice((f"{own} ^ {r.randrange(THREADS)}u", self.index(THREADS, 2)))
        if moves:
            self.emit(f"threadgroup int* {name}_a = shared_items;")
            self.emit(f"threadgroup int* {name}_b = shared_more;")
            self.emit(f"for (int i = 0; i < ({self.index(4)}); ++i) {{")
            self.emit(f"  threadgroup int* kept = {name}_a;")
            self.emit(f"  {name}_a = {name}_b;")
            self.emit(f"  {name}_b = kept;")
            self.emit("}")
            self.emit(f"int {name} = {name}_a[{other}] ^ {name}_b[{own}];")
            self.emit(barrier)
            return self.declare(name, "int")
        self.emit(f"int {name} = shared_items[{other}];")
        if r.random() < 0.3:
            self.emit(f"threadgroup int* {name}_p = shared_items + 1;")
            self.emit(f"{name} += {name}_p[{self.index(32)}];")
        self.emit(barrier)
        self.declare(name, "int")


def program(seed, count=10, collectives=True):
    return Statements(seed, collectives).program(seed, count)
