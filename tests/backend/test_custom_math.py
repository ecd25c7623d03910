"""MSL's functions of numbers (common/msl_math.glsl) through mx.fast.metal_kernel,
against NumPy."""

import math

import mlx.core as mx
import numpy as np
import pytest

UNARY = {  # function -> NumPy's, the range
    "acos": (np.arccos, -1, 1),
    "acosh": (np.arccosh, 1, 50),
    "asin": (np.arcsin, -1, 1),
    "asinh": (np.arcsinh, -50, 50),
    "atan": (np.arctan, -50, 50),
    "atanh": (np.arctanh, -1, 1),
    "ceil": (np.ceil, -9, 9),
    "cos": (np.cos, -50, 50),
    "cosh": (np.cosh, -9, 9),
    "cospi": (lambda x: np.cos(np.pi * x), -9, 9),
    "erf": (np.vectorize(math.erf), -3, 3),
    "exp": (np.exp, -50, 50),
    "exp10": (lambda x: 10.0**x, -9, 9),
    "exp2": (np.exp2, -50, 50),
    "expm1": (np.expm1, -9, 9),
    "fabs": (np.abs, -9, 9),
    "floor": (np.floor, -9, 9),
    "fract": (lambda x: x - np.floor(x), -9, 9),
    "log": (np.log, 0, 50),
    "log10": (np.log10, 0, 50),
    "log1p": (np.log1p, -1, 50),
    "log2": (np.log2, 0, 50),
    "rint": (np.rint, -9, 9),
    "round": (lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), -9, 9),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0, 50),
    "saturate": (lambda x: np.clip(x, 0, 1), -2, 2),
    "sign": (np.sign, -2, 2),
    "sin": (np.sin, -50, 50),
    "sinh": (np.sinh, -9, 9),
    "sinpi": (lambda x: np.sin(np.pi * x), -9, 9),
    "sqrt": (np.sqrt, 0, 50),
    "tan": (np.tan, -50, 50),
    "tanh": (np.tanh, -9, 9),
    "tanpi": (lambda x: np.tan(np.pi * x), -9, 9),
    "trunc": (np.trunc, -9, 9),
}
BINARY = {
    "atan2": np.arctan2,
    "copysign": np.copysign,
    "fdim": lambda x, y: np.maximum(x - y, 0),
    "fmax": np.fmax,
    "fmin": np.fmin,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "powr": lambda x, y: np.abs(x) ** y,
    "max": np.fmax,
    "min": np.fmin,
    "precise::divide": np.divide,
}


def run(source, inputs, rows, n, dtype):
    names = ["a", "b", "c"][: len(inputs)]
    kernel = mx.fast.metal_kernel(
        name="math", input_names=names, output_names=["y"], source=source
    )
    y = kernel(
        inputs=[mx.array(x) for x in inputs],
        output_shapes=[(rows, n)],
        output_dtypes=[dtype],
        grid=(n, 1, 1),
        threadgroup=(32, 1, 1),
    )[0]
    return np.array(y)


def close(got, want, name):
    # 4 units in the last place, of 1 near the zeros of circular functions.
    circular = name.rstrip("pi") in ("sin", "cos", "tan")
    scale = np.maximum(np.abs(want), 1) if circular else np.abs(want)
    bad = ~(np.abs(got - want) <= 4 * 2.0**-23 * scale + 1e-37)
    assert not bad.any(), (name, got[bad][:3], want[bad][:3])


def test_unary(gpu):
    n = 64
    rng = np.random.default_rng(5)
    x = np.empty((len(UNARY), n), np.float32)
    for row, (name, (_, low, high)) in zip(x, UNARY.items()):
        row[:] = rng.uniform(low, high, n)
        row[:4] = [low, high, 0.5 * (low + high), low + 0.75 * (high - low)]
        if name == "tanpi":  # near its poles no two agree
            row[:] = rng.integers(-9, 9, n) + rng.uniform(-0.4, 0.4, n)
    lines = [
        f"y[{r * n} + i] = metal::{name}(a[{r * n} + i]);"
        for r, name in enumerate(UNARY)
    ]
    source = "uint i = thread_position_in_grid.x;\n" + "\n".join(lines)
    y = run(source, [x], len(UNARY), n, mx.float32)
    with np.errstate(all="ignore"):
        for got, row, (name, (function, _, _)) in zip(y, x, UNARY.items()):
            want = function(row.astype(np.float64))
            finite = np.isfinite(want)
            assert np.array_equal(np.isfinite(got), finite), name
            close(got[finite], want[finite], name)


def test_quotients_are_correctly_rounded(gpu):
    """As on a Mac: MLX compiles Metal's kernels without fast math."""
    n = 4096
    rng = np.random.default_rng(7)
    signs = rng.choice([-1, 1], (2, n))
    x, y = (signs * np.exp2(rng.uniform(-30, 30, (2, n)))).astype(np.float32)
    x[:4], y[2:6] = [0, np.inf, np.nan, 1], [0, np.inf, np.nan, 0]
    source = """
        uint i = thread_position_in_grid.x;
        float p = a[i], q = b[i];
        y[i] = p / q;
        y[4096 + i] = 1.0f / q;
        float2 v = float2(p, 1) / q;
        v /= 3.0f;
        y[8192 + i] = v.x;
        y[12288 + i] = half(p / 1e5f) / half(3);
        {
          #pragma clang fp contract(off)
          y[16384 + i] = q / p;
        }"""
    got = run(source, [x, y], 5, n, mx.float32)
    with np.errstate(all="ignore"):
        third = (x / np.float32(1e5)).astype(np.float16) / np.float16(3)
        want = [x / y, np.float32(1) / y, x / y / np.float32(3), third, y / x]
    for row, right in zip(got, want):
        assert np.array_equal(row, right.astype(np.float32), equal_nan=True)


def test_binary_and_ternary(gpu):
    n = 96
    rng = np.random.default_rng(6)
    x, y = rng.uniform(-9, 9, (2, n)).astype(np.float32)
    x[:3], y[3:6] = np.nan, np.nan
    lines = [
        f"y[{r * n} + i] = metal::{f}({'abs(p)' if f == 'powr' else 'p'}, q);"
        for r, f in enumerate(BINARY)
    ]
    rows = len(BINARY)
    lines += [
        f"y[{rows * n} + i] = metal::clamp(p, -1.0f, 2.0f);",
        f"y[{(rows + 1) * n} + i] = metal::select(p, q, p < q);",
        f"int e; y[{(rows + 2) * n} + i] = metal::frexp(p, e);",
        f"y[{(rows + 3) * n} + i] = metal::ldexp(q, 3) + e;",
        f"y[{(rows + 4) * n} + i] = metal::isnan(p) + 2 * metal::signbit(q);",
    ]
    source = (
        "uint i = thread_position_in_grid.x; float p = a[i], q = b[i];\n"
        + "\n".join(lines)
    )
    got = run(source, [x, y], rows + 5, n, mx.float32)
    p, q = x.astype(np.float64), y.astype(np.float64)
    numbers = np.arange(n) >= 6
    for r, (name, function) in enumerate(BINARY.items()):
        where = (
            numbers if name not in ("fmax", "fmin", "max", "min") else numbers | True
        )
        close(got[r][where], function(p, q)[where], name)
    some = got[:, numbers]
    p, q = p[numbers], q[numbers]
    assert np.array_equal(some[rows], np.clip(p, -1, 2))
    assert np.array_equal(some[rows + 1], np.where(p < q, q, p))
    assert np.array_equal(some[rows + 2], np.frexp(p)[0])
    close(some[rows + 3], q * 8 + np.frexp(p)[1], "ldexp")
    assert np.array_equal(got[rows + 4][:3] % 2, [1, 1, 1])
    assert np.array_equal(some[rows + 4], 2 * (q < 0))


@pytest.mark.parametrize("dtype", ["uint32", "int32", "uint8", "int16", "uint64"])
def test_integers(gpu, dtype):
    n, bits = 40, np.dtype(dtype).itemsize * 8
    info = np.iinfo(dtype)
    rng = np.random.default_rng(7)
    x = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    y = rng.integers(1, 9, n).astype(dtype)
    x[:3] = [0, info.max, 1]
    calls = ["popcount(a[i])", "clz(a[i])", "ctz(a[i])", "reverse_bits(a[i])"]
    calls += ["rotate(a[i], b[i])", "a[i] % b[i]", "a[i] / b[i]"]
    if bits == 32:
        calls += ["mulhi(a[i], b[i])", "addsat(a[i], b[i])", "subsat(a[i], b[i])"]
        calls += ["hadd(a[i], b[i])", "extract_bits(a[i], 3u, 5u)"]
    lines = [f"y[{r * n} + i] = {call};" for r, call in enumerate(calls)]
    source = "uint i = thread_position_in_grid.x;\n" + "\n".join(lines)
    got = run(source, [x, y], len(calls), n, getattr(mx, dtype))

    def wrapped(v):
        v &= (1 << bits) - 1
        return v - (1 << bits) if info.min < 0 and v >> (bits - 1) else v

    for i in range(n):
        a, b = int(x[i]), int(y[i])
        u = a & ((1 << bits) - 1)
        quotient = abs(a) // b * (1 if a >= 0 else -1)
        text = f"{u:0{bits}b}"
        want = [
            text.count("1"),
            bits - u.bit_length(),
            (u & -u).bit_length() - 1 if u else bits,
            wrapped(int(text[::-1], 2)),
            wrapped(u << b % bits | u >> (bits - b % bits)),
            a - quotient * b,
            quotient,
        ]
        if bits == 32:
            field = u >> 3 & 31
            signed = info.min < 0
            want += [
                a * b >> 32,
                min(a + b, info.max),
                max(a - b, info.min),
                (a + b) >> 1,
                field - 32 if signed and field > 15 else field,
            ]
        assert got[:, i].tolist() == want, (i, a, b)


@pytest.mark.parametrize("dtype", [np.uint64, np.int64])
def test_wide_quotients(gpu, dtype):
    n = 1 << 14
    rng = np.random.default_rng(3)

    def numbers():
        x = rng.integers(0, 1 << 64, n, np.uint64) >> rng.integers(0, 64, n, np.uint64)
        edges = [(1 << k) + d & (1 << 64) - 1 for k in range(65) for d in (-1, 0, 1)]
        edge = rng.choice(np.array(edges, np.uint64), n)
        return np.where(rng.random(n) < 0.3, edge, x).view(dtype)

    x, y = numbers(), numbers()
    y[(y == 0) | (y == np.array(-1).astype(dtype))] = 7  # no overflow
    source = "uint i = thread_position_in_grid.x;\n"
    source += f"y[i] = a[i] / b[i]; y[{n} + i] = a[i] % b[i];"
    q, r = run(source, [x, y], 2, n, getattr(mx, np.dtype(dtype).name))
    exact = x.astype(object), y.astype(object)
    expected = [
        abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(*exact)
    ]
    assert q.tolist() == expected
    assert r.tolist() == [a - b * c for a, b, c in zip(*exact, expected)]


def test_integers_beside_quotients(gpu):
    """NVIDIA's driver 580 has these wrong beside a 64-bit division of its own, and
    the negative of -128 as a byte anywhere."""
    n = 64
    x = np.arange(n, dtype=np.uint64) * 30 + 4
    shift = np.arange(n, dtype=np.uint64)
    source = f"""
      uint i = thread_position_in_grid.x;
      y[i] = int(a[5] / 13 + a[i] % (b[i] + 3));
      y[{n} + i] = int(1755 * (1 & a[i / 32]));
      y[{2 * n} + i] = int(ulong(a[0] != 0) & ((ulong(15) >> b[i]) ^ ulong(a[i] == 1)));
      char v = char(i << 5);
      y[{3 * n} + i] = int(abs(v));
      y[{4 * n} + i] = int(char(-v));
      y[{5 * n} + i] = int(short(-short(i << 14)));
    """
    got = run(source, [x, shift], 6, n, mx.int32)
    i = np.arange(n)
    assert got[0].tolist() == (x[5] // 13 + x % (shift + 3)).astype(int).tolist()
    assert not got[1].any()
    assert got[2].tolist() == ((15 >> i) & 1).tolist()
    byte = (i << 5).astype(np.int8).astype(int)
    assert got[3].tolist() == np.abs(byte).astype(np.int8).tolist()
    assert got[4].tolist() == (-byte).astype(np.int8).tolist()
    assert (
        got[5].tolist()
        == (-(i << 14).astype(np.int16).astype(int)).astype(np.int16).tolist()
    )
