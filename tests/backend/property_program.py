"""Random programs of MLX operations: how one is drawn, printed and run.

A program is text: leaves, then steps such as `v3 = mx.softmax(v1, axis=-1)`.
What is printed is what ran, so that a failing example can be pasted into a file
beside this one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import mlx.core as mx
import numpy as np
from hypothesis import strategies as st

from mlx_vulkan import cases as table

MAX_SIZE = 150_000  # items of any array
OPS = {}  # family -> {name: f(builder) that emits steps}
VIEWS = ("transpose", "slice_", "broadcast_to", "expand_dims", "reshape", "moveaxis")
GENERATORS = {
    "normal": table.normal,
    "wide": table.wide,
    "special": table.special,
    "positive": table.positive,
    "small": table.uniform(0, 3),
}


def leaf(kind, seed, shape, dtype):
    """An evaluated contiguous array of values from a generator of mlx_vulkan.cases."""
    values = GENERATORS[kind](np.random.default_rng(seed), shape, dtype)
    return table.to_mx(mx, values, dtype)


@dataclasses.dataclass(frozen=True)
class Value:
    """What the frontend says of a name, before anything runs."""

    name: str
    shape: tuple
    dtype: str

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return int(np.prod(self.shape, dtype=np.int64))


@dataclasses.dataclass
class Step:
    """One operation: its source, and how its result is checked."""

    op: str
    source: str
    args: tuple  # names, in the order that the rule reads them
    outs: tuple  # Values
    rule: Callable  # f(step, environment) checks; see property_rules.py
    repeatable: bool = True  # the same bits each time it runs

    def __str__(self):
        shapes = ", ".join(f"{v.dtype}{list(v.shape)}" for v in self.outs)
        return f"{self.source}  # {shapes}"


@dataclasses.dataclass
class Plan:
    """How the whole program runs: by step, the stream (0 or 1), what follows it
    (nothing, async_eval or eval); the steps of one compiled function; whether
    leaves may be overwritten."""

    streams: tuple
    waits: tuple
    compiled: tuple | None
    temporary: bool


class NotApplicable(Exception):
    """The operation has no place in this program."""


@dataclasses.dataclass
class Program:
    leaves: list
    steps: list
    outputs: list  # names that live to the end
    plan: Plan

    def unrepeatable(self):
        """Names whose bits may differ from run to run."""
        names = set()
        for step in self.steps:
            if not step.repeatable or names & set(step.args):
                names |= {v.name for v in step.outs}
        return names

    def one_by_one(self):
        return [str(step) for step in (*self.leaves, *self.steps)]

    def at_once(self):
        """The program in one lazy graph (or a few, where it waits), nothing kept
        longer than needed."""
        plan, last = self.plan, {}
        for i, step in enumerate(self.steps):
            last.update(dict.fromkeys(step.args, i))
            last.update({v.name: i for v in step.outs if v.name not in last})
        keep = set(self.outputs)
        lines = []
        for step in self.leaves:
            name = step.outs[0].name
            if name not in last and name not in keep:
                continue
            lines.append(str(step))
            if plan.temporary:
                lines.append(f"{name} = as_temporary(mx, {name})")
            else:
                keep.add(name)
        first, end = plan.compiled or (0, 0)
        if first < end:
            # One statement, at the place of its first step.
            lines += self._function(first, end, last, keep)
        for i, step in enumerate(self.steps):
            if i == first and first < end:
                args, outs = self._edges(first, end, last, keep)
                call = f"mx.compile(part)({', '.join(args)})"
                lines += _on(plan.streams[i], f"{', '.join(outs)}, = {call}")
                done = [n for n in args if last[n] < end and n not in keep]
                lines += _drop(done)
            if first <= i < end:
                continue
            lines += _on(plan.streams[i], str(step))
            names = [v.name for v in step.outs]
            if plan.waits[i]:
                lines.append(f"mx.{plan.waits[i]}({', '.join(names)})")
            lines += _drop(
                n
                for n in dict.fromkeys((*step.args, *names))
                if last[n] == i and n not in keep
            )
        lines.append(f"mx.eval({', '.join(self.outputs)})")
        return lines

    def _edges(self, first, end, last, keep):
        inside = self.steps[first:end]
        made = [v.name for s in inside for v in s.outs]
        args = [n for s in inside for n in s.args if n not in made]
        outs = [n for n in made if last[n] >= end or n in keep]
        return list(dict.fromkeys(args)), outs

    def _function(self, first, end, last, keep):
        args, outs = self._edges(first, end, last, keep)
        body = [f"    {s}" for s in self.steps[first:end]]
        head = f"def part({', '.join(args)}):"
        return [head, *body, f"    return {', '.join(outs)},"]

    def __repr__(self):
        head = ["import mlx.core as mx", "from mlx_vulkan.cases import as_temporary"]
        head += ["from property_program import leaf", ""]
        head += ["second = mx.new_stream(mx.gpu)"] if any(self.plan.streams) else []
        return "\n".join(["<program", *head, *self.at_once(), ">"])

    def _repr_pretty_(self, printer, cycle):
        for line in repr(self).split("\n"):
            printer.text(line)
            printer.break_()


def _on(stream, line):
    return ["with mx.stream(second):", f"    {line}"] if stream else [line]


def _drop(names):
    names = ", ".join(names)
    return [f"del {names}"] if names else []


def run(lines, environment):
    exec(compile("\n".join(lines), "<program>", "exec"), environment)


def op(family, *names):
    """Registers a function that draws an operation: f(builder), or f(builder,
    name) for each of several names."""

    def add(f):
        for name in names:
            OPS.setdefault(family, {})[name] = lambda b, name=name: f(b, name)
        if not names:
            OPS.setdefault(family, {})[f.__name__] = f
        return f

    return add


class Builder:
    """A program in the making. Shapes and dtypes come from MLX's frontend, which
    builds the graph of zeros that nobody evaluates."""

    def __init__(self, draw):
        self.draw = draw
        self.leaves, self.steps, self.values = [], [], []
        self.shadow = {"mx": mx}
        self.count = 0
        self.pool = [self.choice(table.ALL), self.choice(table.FLOATS)]

    # Draws. Each shrinks towards its first choice.

    def choice(self, options):
        return self.draw(st.sampled_from(list(options)))

    def number(self, low, high):
        return self.draw(st.integers(low, high))

    def coin(self, n=2):
        """True once in n."""
        return self.number(0, n - 1) == n - 1

    def permutation(self, n):
        return tuple(self.draw(st.permutations(range(n))))

    def shape(self, low=0, high=4, nonempty=False):
        if self.coin(12):
            big = [(2049,), (70_001,), (65_537, 1), (3, 2049), (2049, 3), (257, 1, 130)]
            fits = [s for s in big if low <= len(s) <= high]
            if fits:
                return self.choice(fits)
        top = high if self.coin(8) else max(low, min(high, 3))
        ndim = self.number(low, top)
        sizes = [3, 1, 2, 5, 7, 8, 16, 33] + ([] if nonempty else [0])
        return tuple(self.choice(sizes) for _ in range(ndim))

    def axis(self, v):
        return self.number(-v.ndim, v.ndim - 1)

    # Values.

    def name(self):
        self.count += 1
        return f"v{self.count - 1}"

    def leaf(self, shape, dtype, kind=None):
        if kind is None:
            kinds = ["normal", "normal", "wide", "positive"]
            kinds += ["special"] * (dtype in table.FLOATS)
            kind = self.choice(kinds)
        name, seed = self.name(), self.number(0, 99)
        value = Value(name, shape, dtype)
        source = f'{name} = leaf("{kind}", {seed}, {shape}, "{dtype}")'
        self.leaves.append(Step("leaf", source, (), (value,), None))
        self.shadow[name] = mx.zeros(shape, getattr(mx, dtype.replace("bool", "bool_")))
        self.values.append(value)
        return value

    def emit(self, op, rule, source, *args, outs=1, repeatable=True):
        """Appends `<names> = <source>`, {0}, {1} in it being the arguments; or a
        source that assigns {out} itself."""
        names = [self.name() for _ in range(outs)]
        text = source.format(*[a.name for a in args], out=names[0])
        if "{out}" not in source:
            text = f"{', '.join(names)} = {text}"
        else:
            text = text.replace("\n", "; ")
        try:
            run([text], self.shadow)
        except (ValueError, IndexError) as e:
            raise NotApplicable(text) from e
        values = []
        for n in names:
            a = self.shadow[n]
            values.append(Value(n, tuple(a.shape), table.dtype_name(a)))
        if any(v.size > MAX_SIZE for v in values):
            raise NotApplicable(text)
        used = tuple(a.name for a in args)
        self.steps.append(Step(op, text, used, tuple(values), rule, repeatable))
        self.values += values
        return values[0] if outs == 1 else values

    def pick(self, dtypes=table.ALL, low=0, high=8, nonempty=False, also=None):
        """An operand: an earlier value or a new leaf, perhaps through views."""

        def fits(v):
            good = v.dtype in dtypes and low <= v.ndim <= high
            return good and not (nonempty and v.size == 0) and (not also or also(v))

        found = [v for v in reversed(self.values) if fits(v)]
        if found and not self.coin(5):
            v = self.choice(found[:6])
        else:
            near = [d for d in self.pool if d in dtypes] or list(dtypes)
            v = self.leaf(self.shape(low, min(high, 5), nonempty), self.choice(near))
            if not fits(v):
                raise NotApplicable("no such operand")
        return self.viewed(v, fits)

    def viewed(self, v, fits=lambda v: True):
        """The value, or a view of it that still fits."""
        for _ in range(self.choice([0, 0, 0, 1, 1, 2])):
            mark = len(self.steps), len(self.values)
            try:
                w = OPS["view"][self.choice(VIEWS)](self, v)
            except NotApplicable:
                continue
            if fits(w):
                v = w
            else:
                self.rewind(*mark)
        return v

    def rewind(self, steps, values):
        """Forgets what came after; leaves stay, since they cost nothing."""
        del self.steps[steps:]
        leaves = {s.outs[0].name for s in self.leaves}
        late = [v for v in self.values[values:] if v.name in leaves]
        self.values[values:] = late

    def beside(self, v):
        """A value of the same dtype that broadcasts against v."""

        def fits(w):
            pairs = zip(reversed(v.shape), reversed(w.shape))
            return all(a == b or 1 in (a, b) for a, b in pairs)

        same = [w for w in reversed(self.values) if w.dtype == v.dtype and fits(w)]
        if same and self.coin():
            return self.choice(same[:6])
        shape = v.shape[self.number(0, v.ndim) :] if self.coin() else v.shape
        if self.coin(4):
            shape = tuple(1 if self.coin() else n for n in shape)
        return self.viewed(self.leaf(shape, v.dtype), lambda w: w.shape == shape)


def finish(b, compiled):
    """The program that a builder holds, with the way it runs drawn; one in
    `compiled` has a compiled part."""
    n = len(b.steps)
    used = {a for s in b.steps for a in s.args}
    made = [v.name for s in b.steps for v in s.outs]
    outputs = [x for x in made if x not in used or b.coin(5)]
    streams = tuple(int(b.coin(3)) for _ in range(n)) if b.coin(4) else (0,) * n
    waits = ("",) * n
    if b.coin(4):
        waits = tuple(b.choice(["", "", "async_eval", "eval"]) for _ in range(n))
    part = None
    if n and b.coin(compiled):
        first = b.number(0, n - 1)
        part = (first, b.number(first + 1, n))
    plan = Plan(streams, waits, part, b.coin())
    return Program(b.leaves, b.steps, outputs, plan)
