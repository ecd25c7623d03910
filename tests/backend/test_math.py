"""Errors of the float32 functions in units in the last place, against float64,
over all binades, and their values at the edges."""

import functools
import math

import mlx.core as mx
import numpy as np
import pytest

from mlx_vulkan import cases as table

TINY = np.float64(np.finfo(np.float32).tiny)


def bit_patterns(n, seed=0):
    """Every kind of float32: random bits, small integers, edges."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2**32, n, dtype=np.uint64).astype(np.uint32).view(np.float32)
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan, 3.4e38]
    near = rng.normal(size=n // 4) * rng.choice([0.01, 1.0, 10.0, 100.0], n // 4)
    thousands = rng.uniform(-1e4, 1e4, n // 8)
    return np.concatenate(
        [x, near.astype(np.float32), thousands.astype(np.float32), edges],
        dtype=np.float32,
    )


def ulps(got, want):
    """Distance in units of the last place of float32. Subnormal results may be
    flushed; both infinite or both NaN is no distance."""
    got = got.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        as_float = want.astype(np.float32)
        _, exponent = np.frexp(want)
        unit = np.ldexp(1.0, np.maximum(exponent - 24, -149))
        error = np.abs(got - want) / unit
    overflow = np.isinf(as_float) & (np.isinf(got) | (np.abs(got) > 3.4e38))
    same = np.isnan(want) & np.isnan(got)
    signs = np.signbit(got) == np.signbit(want)
    error = np.where(same | (overflow & signs), 0.0, error)
    flushed = (np.abs(want) < TINY) & (np.abs(got) <= TINY)
    return np.where(flushed, 0.0, np.where(np.isnan(error), np.inf, error))


@functools.cache
def keeps_subnormals():
    return table.keeps_subnormals(mx)


def check(name, limit, got, want, *args):
    error = ulps(got, want)
    if not keeps_subnormals():
        # Factors of such numbers, if not they themselves, count as zero there.
        small = [(np.abs(a) < 16 * TINY) & (a != 0) for a in args]
        error = np.where(np.any(small, axis=0), 0, error)
    i = int(np.argmax(error))
    at = ", ".join(f"{a[i]:.9g}" for a in args)
    assert error[i] <= limit, (
        f"{name}({at}) is {error[i]:.2f} units off: {got[i]:.9g}, not {want[i]:.12g}"
    )


def erfinv(a):
    """In float64: an estimate and Newton's steps."""
    out = np.empty_like(a)
    for i, x in enumerate(a):
        s = abs(x)
        if not s < 1:
            out[i] = math.copysign(math.inf, x) if s == 1 else math.nan
            continue
        w = -math.log((1 - s) * (1 + s)) if s else 0.0
        y = s * 0.8862 * (1 + 0.26 * w) if w < 5 else math.sqrt(w - math.log(w) / 2)
        for _ in range(60):
            miss = (1 - s) - math.erfc(y) if s > 0.5 else math.erf(y) - s
            step = miss / (2 / math.sqrt(math.pi) * math.exp(-y * y))
            y -= step / (1 + y * step)
            if abs(step) <= 1e-15 * y:
                break
        out[i] = math.copysign(y, x)
    return out


def rsqrt(x):
    return 1 / np.sqrt(x)


UNARY = [
    ("exp", np.exp, 2),
    ("expm1", np.expm1, 2),
    ("log", np.log, 2),
    ("log2", np.log2, 2),
    ("log10", np.log10, 2),
    ("log1p", np.log1p, 2),
    ("sin", np.sin, 2),
    ("cos", np.cos, 2),
    ("tan", np.tan, 4),
    ("sinh", np.sinh, 3),
    ("cosh", np.cosh, 3),
    ("tanh", np.tanh, 3),
    ("arcsin", np.arcsin, 2),
    ("arccos", np.arccos, 2),
    ("arctan", np.arctan, 3),
    ("arcsinh", np.arcsinh, 3),
    ("arccosh", np.arccosh, 3),
    ("arctanh", np.arctanh, 3),
    ("sqrt", np.sqrt, 1),
    ("rsqrt", rsqrt, 1),
    ("erf", np.vectorize(math.erf, otypes=[np.float64]), 2),
    ("erfinv", erfinv, 4),
    ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), None),
]


@pytest.mark.parametrize("name, oracle, limit", UNARY, ids=[u[0] for u in UNARY])
def test_unary(name, oracle, limit):
    slow = name.startswith("erf")
    x = bit_patterns(4000 if slow else 400_000)
    if name == "erfinv":
        x = np.concatenate([x, np.random.default_rng(1).uniform(-1, 1, 4000)])
        x = x.astype(np.float32)
    got = np.array(getattr(mx, name)(mx.array(x)))
    with np.errstate(all="ignore"):
        want = oracle(x.astype(np.float64))
    if limit is None:  # 1 - y cancels for large x: an absolute error
        np.testing.assert_allclose(got, want, rtol=4e-7, atol=1.2e-7)
    else:
        check(name, limit, got, want, x)


@pytest.mark.parametrize("name, oracle", [("sqrt", np.sqrt), ("rsqrt", rsqrt)])
def test_roots_of_subnormals(name, oracle):
    """Second moments of an optimizer get that small: also where the driver
    flushes subnormals, the root is right."""
    x = np.array([1e-45, -1e-45, 1e-40, 1.1e-38, -1e-39, 1.2e-38], np.float32)
    got = np.array(getattr(mx, name)(mx.array(x)))
    with np.errstate(all="ignore"):
        want = oracle(x.astype(np.float64))
    np.testing.assert_allclose(got, want, rtol=2.4e-7)  # 2 units


def pairs(kind, n=300_000):
    rng = np.random.default_rng(7)
    if kind == "bits":
        return bit_patterns(n, 1), bit_patterns(n, 2)
    if kind == "near":
        a = rng.uniform(-8, 8, n).astype(np.float32)
        return a, rng.uniform(-8, 8, n).astype(np.float32)
    if kind == "integers":
        a = rng.integers(-30, 30, n).astype(np.float32)
        return a, rng.integers(-12, 13, n).astype(np.float32)
    a = (1 + rng.uniform(-1, 1, n) * 2.0 ** rng.uniform(-20, 0, n)).astype(np.float32)
    return a, (rng.uniform(-1, 1, n) * 2.0 ** rng.uniform(0, 20, n)).astype(np.float32)


@pytest.mark.parametrize("kind", ["bits", "near", "integers", "near_one"])
def test_power(kind):
    a, b = pairs(kind)
    got = np.array(mx.power(mx.array(a), mx.array(b)))
    with np.errstate(all="ignore"):
        want = np.power(a.astype(np.float64), b.astype(np.float64))
    check("power", 2, got, want, a, b)
    if kind == "integers":  # what is exact stays exact
        exact = (want == np.round(want)) & (np.abs(want) < 2**24)
        np.testing.assert_array_equal(got[exact], want[exact])


@pytest.mark.parametrize("kind", ["bits", "near", "integers"])
def test_arctan2(kind):
    a, b = pairs(kind)
    got = np.array(mx.arctan2(mx.array(a), mx.array(b)))
    want = np.arctan2(a.astype(np.float64), b.astype(np.float64))
    check("arctan2", 4, got, want, a, b)


@pytest.mark.parametrize("kind", ["bits", "near", "integers"])
def test_remainder(kind):
    a, b = pairs(kind)
    b = np.where(b == 0, np.float32(1), b)
    finite = np.isfinite(a) & np.isfinite(b) & (np.abs(a) > TINY)
    # A remainder has the units of b, 2^-24 of it, which may be flushed.
    least = TINY if keeps_subnormals() else TINY * 2**24
    a, b = (v[finite & (np.abs(b) > least)] for v in (a, b))
    got = np.array(mx.remainder(mx.array(a), mx.array(b)))
    want = np.fmod(a, b)
    wrong = (want != 0) & ((want < 0) != (b < 0))
    want = np.where(wrong, want + b, want)
    check("remainder", 0, got, want.astype(np.float64), a, b)


def test_floor_divide():
    rng = np.random.default_rng(3)
    b = (rng.integers(1, 200, 200_000) * 0.1).astype(np.float32)
    a = (b * rng.integers(-500, 500, b.size)).astype(np.float32)
    got = np.array(mx.array(a) // mx.array(b))
    np.testing.assert_array_equal(got, np.floor(a / b))


def test_power_at_the_edges():
    values = [0.0, -0.0, 1, -1, 2, -2, 3, 0.5, -0.5, 2.5, np.inf, -np.inf, np.nan]
    values += [1e30, -1e30, 1e-30, 16777216.0, 8388609.0]
    a, b = (v.reshape(-1) for v in np.meshgrid(values, values))
    a, b = a.astype(np.float32), b.astype(np.float32)
    got = np.array(mx.power(mx.array(a), mx.array(b)))
    with np.errstate(all="ignore"):
        want = np.power(a, b)
    np.testing.assert_allclose(got, want, rtol=3e-7, atol=1.2e-38)
    zero = want == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


def test_complex_quotients_are_rounded_once():
    """With one part of the divisor 0, or one 3/4 of the other, Smith's method is
    exact up to the last division, which is then IEEE's. MLX's own tests want
    (-8 - 14i) / (-3 - 4i) to be 3.2 + 0.4i."""
    rng = np.random.default_rng(7)
    a = rng.integers(-999, 1000, (2, 5000)).astype(np.float32)
    d = rng.integers(1, 1000, 5000).astype(np.float32)
    z = (a[0] + 1j * a[1]).astype(np.complex64)
    for w, by in ((d + 0j, 1), (1j * d, -1j), ((3 + 4j) * d, 3 - 4j)):
        got = np.array(mx.array(z) / mx.array(w.astype(np.complex64)))
        n = z.astype(np.complex128) * by  # exact
        unit = d.astype(np.float64) * (25 if by == 3 - 4j else 1)
        np.testing.assert_array_equal(got.real, (n.real / unit).astype(np.float32))
        np.testing.assert_array_equal(got.imag, (n.imag / unit).astype(np.float32))


COMPLEX = ["exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"]
COMPLEX += ["arcsin", "arccos", "arctan", "arccosh", "arcsinh", "arctanh", "square"]


@pytest.mark.parametrize("name", COMPLEX)
def test_complex(name):
    rng = np.random.default_rng(5)
    scale = rng.choice([0.01, 1.0, 5.0], 4096)
    z = (rng.normal(size=4096) * scale + 1j * rng.normal(size=4096) * scale).astype(
        np.complex64
    )
    got = np.array(getattr(mx, name)(mx.array(z)))
    want = getattr(np, name)(z.astype(np.complex128))
    np.testing.assert_allclose(got, want, rtol=4e-6)
