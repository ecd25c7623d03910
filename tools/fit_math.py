#!/usr/bin/env python3
"""Derives the polynomial coefficients of src/kernels/common/math.glsl and, with names
that end in 64, of math64.glsl, which are rounded to float64 all at once.

Each fit is a weighted Remez exchange in 60-digit arithmetic: the error is
equalised relative to the weight, coefficients are then rounded to float32, either
all at once or from the lowest power up with the rest refitted after every
rounding, whichever errs less. Needs mpmath.

    python tools/fit_math.py [name...]
"""

import struct
import sys

from mpmath import mp, mpf

mp.dps = 50


def to_float(x):
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def chebyshev(a, b, n):
    return [
        (a + b) / 2 + (b - a) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * n))
        for k in range(n - 1, -1, -1)
    ]


def remez(f, weight, a, b, powers, rounds=8):
    """Coefficients c minimising max |weight * (sum c_i x^p_i - f)|."""
    n = len(powers)
    points = chebyshev(a, b, n + 1)
    grid = chebyshev(a, b, 40 * (n + 1))
    values = [f(x) for x in grid]
    weights = [weight(x) for x in grid]
    for _ in range(rounds):
        m = mp.matrix(n + 1, n + 1)
        rhs = mp.matrix(n + 1, 1)
        for i, x in enumerate(points):
            for j, p in enumerate(powers):
                m[i, j] = x**p
            m[i, n] = (-1) ** i / weight(x)
            rhs[i] = f(x)
        c = mp.lu_solve(m, rhs)
        error = [
            w * (sum(c[j] * x**p for j, p in enumerate(powers)) - v)
            for x, v, w in zip(grid, values, weights)
        ]
        # One extremum of each run of equal sign, then the n + 1 best in a row.
        runs = []
        for i, e in enumerate(error):
            if runs and (error[runs[-1]] > 0) == (e > 0):
                if abs(e) > abs(error[runs[-1]]):
                    runs[-1] = i
            else:
                runs.append(i)
        if len(runs) < n + 1:
            break
        best = max(
            range(len(runs) - n),
            key=lambda s: min(abs(error[i]) for i in runs[s : s + n + 1]),
        )
        points = [grid[i] for i in runs[best : best + n + 1]]
    return [c[j] for j in range(n)], max(abs(e) for e in error)


def fit(f, weight, a, b, powers):
    a, b = mpf(a), mpf(b)
    # Floored: a weight of zero would make the exchange singular.
    floor = max(weight(x) for x in chebyshev(a, b, 64)) / 1000
    weight = (lambda w: lambda x: max(w(x), floor))(weight)
    grid = chebyshev(a, b, 400)
    values = [(x, f(x), weight(x)) for x in grid]

    def error_of(c):
        return max(
            abs(w * (sum(k * x**p for k, p in zip(c, powers)) - v))
            for x, v, w in values
        )

    fixed = []
    for k in range(len(powers)):

        def g(x):
            return f(x) - sum(c * x**p for c, p in zip(fixed, powers))

        c, _ = remez(g, weight, a, b, powers[k:])
        if k == 0:
            plain = [to_float(x) for x in c]
        fixed.append(to_float(c[0]))
    best = min(plain, fixed, key=error_of)
    return best, error_of(best)


def near(f, taylor):
    """f, with its value at 0 given where the formula divides by zero."""
    return lambda x: mpf(taylor) if abs(x) < mpf(10) ** -18 else f(x)


LN2 = mp.log(2)
# name: (f, weight, a, b, degree); the weight makes the error relative to the
# whole function, in units of 2^-24.
U = mpf(2) ** 24
FITS = {
    # (e^x - 1 - x) / x^2
    "exp": (
        near(lambda x: (mp.expm1(x) - x) / x**2, 0.5),
        lambda x: U * x**2 / mp.exp(x),
        -LN2 / 2 * 1.01,
        LN2 / 2 * 1.01,
        5,
    ),
    # (e^x - 1 - x) / x^2, relative to e^x - 1
    "expm1": (
        near(lambda x: (mp.expm1(x) - x) / x**2, 0.5),
        lambda x: U * abs(x) * (x / mp.expm1(x) if x else 1),
        -LN2 / 2 * 1.01,
        LN2 / 2 * 1.01,
        6,
    ),
    # (2^x - 1) / x
    "exp2": (
        near(lambda x: mp.expm1(x * LN2) / x, LN2),
        lambda x: U * abs(x) + U / 256,
        -0.503,
        0.503,
        6,
    ),
    # (log(1 + x) - x + x^2 / 2) / x^3, relative to log(1 + x)
    "log": (
        near(lambda x: (mp.log1p(x) - x + x**2 / 2) / x**3, mpf(1) / 3),
        lambda x: U * x**2 * (x / mp.log1p(x) if x else 1),
        mp.sqrt(0.5) - 1.002,
        mp.sqrt(2) - 0.998,
        8,
    ),
    # x = z^2: (sin(z) - z) / z^3 and (cos(z) - 1 + z^2 / 2) / z^4
    "sin": (
        near(lambda x: (mp.sin(mp.sqrt(x)) / mp.sqrt(x) - 1) / x, -mpf(1) / 6),
        lambda x: U * x,
        mpf(10) ** -12,
        (mp.pi / 4 * 1.01) ** 2,
        3,
    ),
    "cos": (
        near(lambda x: (mp.cos(mp.sqrt(x)) - 1 + x / 2) / x**2, mpf(1) / 24),
        lambda x: U * x**2,
        mpf(10) ** -12,
        (mp.pi / 4 * 1.01) ** 2,
        3,
    ),
    # x = z^2: (asin(z) - z) / z^3 for |z| <= 1/2
    "asin": (
        near(lambda x: (mp.asin(mp.sqrt(x)) / mp.sqrt(x) - 1) / x, mpf(1) / 6),
        lambda x: U * x,
        mpf(10) ** -12,
        0.2501,
        5,
    ),
    # x = z^2: (atan(z) - z) / z^3 for |z| <= 1
    "atan": (
        near(lambda x: (mp.atan(mp.sqrt(x)) / mp.sqrt(x) - 1) / x, -mpf(1) / 3),
        lambda x: U * x / (mp.atan(mp.sqrt(x)) / mp.sqrt(x)),
        mpf(10) ** -12,
        1,
        9,
    ),
    # x = z^2: (tanh(z) - z) / z^3 for |z| <= 0.55
    "tanh": (
        near(lambda x: (mp.tanh(mp.sqrt(x)) / mp.sqrt(x) - 1) / x, -mpf(1) / 3),
        lambda x: U * x,
        mpf(10) ** -12,
        0.31,
        4,
    ),
    # x = z^2: (sinh(z) - z) / z^3 for |z| <= 1
    "sinh": (
        near(lambda x: (mp.sinh(mp.sqrt(x)) / mp.sqrt(x) - 1) / x, mpf(1) / 6),
        lambda x: U * x,
        mpf(10) ** -12,
        1.01,
        3,
    ),
    # x = z^2: (asinh(z) - z) / z^3 for |z| <= 1/2
    "asinh": (
        near(lambda x: (mp.asinh(mp.sqrt(x)) / mp.sqrt(x) - 1) / x, -mpf(1) / 6),
        lambda x: U * x,
        mpf(10) ** -12,
        0.2501,
        6,
    ),
    # x = z^2: (atanh(z) - z) / z^3 for |z| <= 0.5
    "atanh": (
        near(lambda x: (mp.atanh(mp.sqrt(x)) / mp.sqrt(x) - 1) / x, mpf(1) / 3),
        lambda x: U * x,
        mpf(10) ** -12,
        0.2501,
        7,
    ),
    # x = z^2: erf(z) / z - 1 for |z| <= 0.93; 2/sqrt(pi) - 1 leads
    "erf": (
        near(
            lambda x: mp.erf(mp.sqrt(x)) / mp.sqrt(x) - 1,
            2 / mp.sqrt(mp.pi) - 1,
        ),
        lambda x: U,
        mpf(10) ** -12,
        mpf("0.93") ** 2,
        6,
    ),
    # log(erfc(z)) + z^2 in z - 2.4 for 0.92 <= z <= 3.95
    "erfc": (
        lambda x: mp.log(mp.erfc(x + mpf("2.4"))) + (x + mpf("2.4")) ** 2,
        lambda x: U * mp.erfc(x + mpf("2.4")),
        mpf("0.92") - mpf("2.4"),
        mpf("3.95") - mpf("2.4"),
        7,
    ),
    # erfinv(z) / z - 1 in w - 2.2, w = -log(1 - z^2) <= 5
    "erfinv_mid": (
        lambda x: (
            (lambda z: mp.erfinv(z) / z)(mp.sqrt(-mp.expm1(-(x + mpf("2.2"))))) - 1
        ),
        lambda x: U,
        mpf("1e-9") - mpf("2.2"),
        mpf("4.82") - mpf("2.2"),
        9,
    ),
    # erfinv(z) - 2 in sqrt(w) - 3, 5 <= w <= 17
    "erfinv_tail": (
        lambda x: mp.erfinv(mp.sqrt(-mp.expm1(-((x + 3) ** 2)))) - 2,
        lambda x: U / mp.erfinv(mp.sqrt(-mp.expm1(-((x + 3) ** 2)))),
        mp.sqrt(mpf("4.75")) - 3,
        mp.sqrt(mpf("16.8")) - 3,
        7,
    ),
    # x = s^2: (atanh(s) / s - 1) / x for |s| <= 0.072 (log of pow)
    "pow_log": (
        near(lambda x: (mp.atanh(mp.sqrt(x)) / mp.sqrt(x) - 1) / x, mpf(1) / 3),
        lambda x: 1024 * U * x,
        mpf(10) ** -12,
        mpf("0.073") ** 2,
        2,
    ),
}


def of_root(f, first):
    """x = z^2: (f(z) / z - 1) / x, whose value at 0 is `first`."""
    return near(lambda x: (f(mp.sqrt(x)) / mp.sqrt(x) - 1) / x, first)


def erfinv_of(w):
    return mp.erfinv(mp.sqrt(-mp.expm1(-w)))


def erfinv_tail(middle):
    return lambda x: erfinv_of((x + middle) ** 2)


TINY, V = mpf(10) ** -20, mpf(2) ** 53
# As above, in units of 2^-53.
FITS64 = {
    "asin64": (of_root(mp.asin, mpf(1) / 6), lambda x: V * x, TINY, 0.2501, 12),
    # up to tan(pi / 8)
    "atan64": (of_root(mp.atan, -mpf(1) / 3), lambda x: V * x, TINY, 0.1717, 11),
    # erf(z) / z - 1, z <= 1
    "erf64": (
        near(lambda x: mp.erf(mp.sqrt(x)) / mp.sqrt(x) - 1, 2 / mp.sqrt(mp.pi) - 1),
        lambda x: V,
        TINY,
        1,
        13,
    ),
    # log(erfc(z)) + z^2 in z - 3.4, 1 <= z <= 5.95
    "erfc64": (
        lambda x: mp.log(mp.erfc(x + mpf("3.4"))) + (x + mpf("3.4")) ** 2,
        lambda x: V * mp.erfc(x + mpf("3.4")),
        mpf("0.99") - mpf("3.4"),
        mpf("5.95") - mpf("3.4"),
        19,
    ),
    # erfinv(z) / z - 1 in w - 3.125, w = -log(1 - z^2) <= 6.25
    "erfinv64_mid": (
        lambda x: (
            erfinv_of(x + mpf("3.125")) / mp.sqrt(-mp.expm1(-x - mpf("3.125"))) - 1
        ),
        lambda x: V,
        mpf("1e-18") - mpf("3.125"),
        mpf("3.126"),
        23,
    ),
    # erfinv(z) in sqrt(w) - 3.25, 2.5 to 4, and in sqrt(w) - 5, 4 to 6.01
    "erfinv64_tail": (erfinv_tail(3.25), lambda x: V / 3, -0.751, 0.751, 17),
    "erfinv64_end": (erfinv_tail(5), lambda x: V / 5, -1.001, 1.01, 16),
}


def fit64(f, weight, a, b, degree):
    c, error = remez(f, weight, mpf(a), mpf(b), list(range(degree + 1)))
    print(f"{mp.nstr(error, 3)} units")
    for v in c:
        print(f"  {float(v):.17g}")


def main():
    for name in sys.argv[1:] or [*FITS, *FITS64]:
        if name in FITS64:
            print(name, end=": ")
            fit64(*FITS64[name])
            continue
        f, weight, a, b, degree = FITS[name]
        c, error = fit(f, weight, a, b, list(range(degree + 1)))
        print(f"{name}: {mp.nstr(error, 3)} units")
        for v in c:
            bits = struct.unpack("I", struct.pack("f", float(v)))[0]
            print(f"  {float(v):.9g}  0x{bits:08x}")


main()
