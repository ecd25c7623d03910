"""How the result of one step is checked, given the values that it really read.

Every operation is compared with its definition on the very inputs that the
device had, so errors of earlier steps do not add up and each bound is that of
one operation. With u = 2^-24, half a unit of float32 relative to 1:

    |got - want| <= B + u_T (|want| + B) + tiny_T

B is what float32 arithmetic may lose, from the operation's own analysis (its
place is beside the operation, in property_ops.py); u_T is the rounding to the
result's dtype; tiny_T its subnormals, which a device may flush. Where B is
infinite (a partial sum may overflow) nothing is said.
"""

from __future__ import annotations

import mlx.core as mx
import numpy as np

from mlx_vulkan import cases as table

U = 2.0**-24
TINY = 2.0**-126
UNIT = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
FLOOR = {"float32": TINY, "float16": 2.0**-25, "bfloat16": TINY}
TOP = {"float32": 3.4028234663852886e38, "float16": 65504.0}
TOP["bfloat16"] = 3.3895313892515355e38
MAX = TOP["float32"]
for name in (UNIT, FLOOR, TOP):
    name["complex64"] = name["float32"]


class Run:
    """The arrays of a program that ran step by step, and their values."""

    def __init__(self, environment):
        self.environment = environment
        self._values = {}

    def array(self, name):
        return self.environment[name]

    def value(self, name):
        if name not in self._values:
            self._values[name] = table.to_numpy(mx, self.environment[name])
        return self._values[name]


def subnormals(x):
    """Where float32 counts a number as zero on some devices."""
    if x.dtype.kind not in "fc":
        return np.zeros(x.shape, bool)
    return (x != 0) & (np.abs(x) < TINY)


def flushed(values):
    return [np.where(subnormals(x), 0, x).astype(x.dtype) for x in values]


def near(got, want, bound, dtype):
    """Where got is within the bound of want."""
    with np.errstate(all="ignore"):
        bound = np.broadcast_to(np.nan_to_num(bound, nan=0.0, posinf=np.inf), got.shape)
        size = np.abs(want)
        unit = UNIT[dtype]
        limit = bound + unit * (size + bound) + FLOOR[dtype]
        ok = np.abs(got - want) <= limit
        ok |= (got == want) | np.isinf(bound)
        if got.dtype.kind == "c":
            return ok | ~np.isfinite(want) & ~np.isfinite(got)
        ok |= np.isnan(got) & np.isnan(want)
        over = size + limit >= TOP[dtype] * (1 + unit)
        return ok | np.isinf(got) & over & (np.sign(got) == np.sign(want))


def report(step, run, got, want, ok, extra=""):
    if ok.all():
        return
    at = tuple(int(i) for i in np.argwhere(~ok)[0])
    shapes = [f"{a}: {run.value(a).dtype}{run.value(a).shape}" for a in step.args]
    raise AssertionError(
        f"{step}\n{int((~ok).sum())} of {ok.size} items are wrong, first at {at}: "
        f"got {got[at]!r}, want {want[at]!r}{extra}. Arguments: {', '.join(shapes)}"
    )


def outputs_of(step, run):
    got = [run.value(v.name) for v in step.outs]
    for v, g in zip(step.outs, got):
        real = table.dtype_name(run.array(v.name))
        assert (g.shape, real) == (v.shape, v.dtype), f"{step}: is {real}{g.shape}"
    return got


def same(got, want):
    equal = got == want
    if got.dtype.kind in "fc":
        equal |= np.isnan(got) & np.isnan(want)
    return equal


def exact(step, run):
    """Equal to MLX's CPU in the same dtypes."""
    got = outputs_of(step, run)

    def on_cpu(values):
        environment = {"mx": mx}
        with mx.stream(mx.cpu):
            for name, x in zip(step.args, values):
                dtype = table.dtype_name(run.array(name))
                environment[name] = table.to_mx(mx, x, dtype)
            exec(step.source, environment)
            return [table.to_numpy(mx, environment[v.name]) for v in step.outs]

    values = [run.value(a) for a in step.args]
    small = any(subnormals(x).any() for x in values)
    tries = [on_cpu(values)] + ([on_cpu(flushed(values))] if small else [])
    for i, g in enumerate(got):
        ok = np.any([same(g, t[i]) for t in tries], axis=0)
        report(step, run, g, tries[0][i], ok)


def exactly(oracle):
    """Equal to oracle(*values): for what MLX's CPU defines otherwise for NaN."""

    def rule(step, run):
        (got,) = outputs_of(step, run)
        values = [run.value(a) for a in step.args]
        ok = np.zeros(got.shape, bool)
        for v in (values, flushed(values)):
            want = oracle(*v)
            ok |= same(got, want)
        report(step, run, got, want, ok)

    return rule


def constant(value):
    """All items are this value."""

    def rule(step, run):
        (got,) = outputs_of(step, run)
        report(step, run, got, np.full_like(got, value), got == value)

    return rule


def close(oracle, bound, finite=False):
    """Near oracle(*values) in float64, by bound(want, *values). finite: says
    nothing where an input is not, for what mixes all items of an array."""

    def rule(step, run):
        (got,) = outputs_of(step, run)
        dtype = step.outs[0].dtype
        values = [run.value(a) for a in step.args]
        if finite and not all(np.isfinite(x).all() for x in values):
            return
        small = any(subnormals(x).any() for x in values)
        ok = np.zeros(got.shape, bool)
        for v in [values] + ([flushed(values)] if small else []):
            v = [x.astype(np.float64) if x.dtype.kind in "iub" else x for x in v]
            with np.errstate(all="ignore"):
                want = np.asarray(oracle(*v))
                b = np.asarray(bound(want, *v))
            assert want.shape == got.shape, f"{step}: want the shape {want.shape}"
            ok |= near(got, want, b, dtype)
        with np.errstate(all="ignore"):
            extra = (
                f", bound {float(np.broadcast_to(b, ok.shape)[~ok][0]):.3g}"
                if (not ok.all())
                else ""
            )
        report(step, run, got, want, ok, extra)

    return rule


def units(k):
    """k units in the last place of float32, before rounding to the dtype."""
    return lambda want, *args: 2 * k * U * np.abs(want)


def rounded(want, *args):
    """Computed exactly, or in float32 with one correct rounding."""
    return U * np.abs(want)


def overflows(total, bound):
    """Infinite where partial results may leave the range of float32."""
    return np.where(total < MAX, bound, np.inf)


def bits(x):
    """Values for comparison to the bit; all NaN are one."""
    if x.dtype.kind == "c":
        x = np.stack([x.real, x.imag])
    if x.dtype.kind == "f":
        x = np.where(np.isnan(x), np.nan, x).view(np.uint64)
    return x
