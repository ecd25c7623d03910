"""float64 on a GPU that has it, against NumPy: long doubles for the errors of functions
in units in the last place, values at the edges, layouts, and what runs on the CPU."""

import functools
import math

import mlx.core as mx
import numpy as np
import pytest
from processes import output_of

from mlx_vulkan import native

SIZES = (0, 1, 5, 257)
EDGES = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan]
    + [1.7976931348623157e308, -1e300, 2.2250738585072014e-308, 9007199254740993.0]
)


@functools.cache
def has_float64():
    try:
        return mx.array([1.0], mx.float64).abs().item() == 1
    except ValueError as e:
        assert "stream=mx.cpu" in str(e)
        return False


@pytest.fixture(autouse=True)
def float64(gpu):
    if not has_float64():
        pytest.skip("needs shaderFloat64")
    before = on_cpu()
    yield
    assert on_cpu() == before, "a kernel is missing"


def on_cpu():
    return native.counters()["fallbacks"]


def to_mx(x):
    return mx.array(x, dtype=mx.float64 if x.dtype == np.float64 else None)


def same(got, want):
    got, want = np.array(got), np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_array_equal(got, want)
    if want.dtype == np.float64:
        signs = np.where(np.isnan(want), False, [np.signbit(got), np.signbit(want)])
        np.testing.assert_array_equal(signs[0], signs[1])


def views(rng, gen):
    """NumPy arrays and the same values as MLX views: whole, of odd sizes, strided,
    transposed, reversed, broadcast."""
    for n in SIZES:
        x = gen(rng, n)
        yield x, to_mx(x)
    x = gen(rng, 7 * 9 * 5).reshape(7, 9, 5)
    a = to_mx(x)
    yield x[:, ::2], a[:, ::2]
    yield x.transpose(2, 0, 1), mx.transpose(a, (2, 0, 1))
    yield x[::-1, 1:], a[::-1, 1:]
    yield np.broadcast_to(x[:1], x.shape), mx.broadcast_to(a[:1], x.shape)


def normal(rng, n):
    return rng.standard_normal(n) * 10.0 ** rng.integers(-3, 4, n)


# ---- functions ---------------------------------------------------------------


def spread(rng, n, low, high):
    return rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(low, high, n)


def positive(rng, n):
    return np.abs(spread(rng, n, -307, 308))


def near_one(rng, n):
    return np.abs(1 + spread(rng, n, -16, 0))


def unit(rng, n):
    return np.concatenate([rng.uniform(-1, 1, n), 1 - np.abs(spread(rng, n, -15, 0))])


def angles(rng, n):
    return np.concatenate(
        [
            spread(rng, n, -20, 308),
            rng.uniform(-1e3, 1e3, n),
            spread(rng, n, 4, 8),
            np.arange(1, n) * (np.pi / 2),
        ]
    )


def moderate(rng, n):
    return np.concatenate([rng.uniform(-700, 700, n), spread(rng, n, -18, 1)])


def log_arguments(rng, n):
    return np.concatenate([positive(rng, n), near_one(rng, n)])


# name: arguments, error in units in the last place, reference
FUNCTIONS = {
    "arccos": (unit, 2, np.arccos),
    "arccosh": (lambda r, n: 1 + np.abs(spread(r, n, -12, 12)), 2, np.arccosh),
    "arcsin": (unit, 2, np.arcsin),
    "arcsinh": (moderate, 2, np.arcsinh),
    "arctan": (moderate, 2, np.arctan),
    "arctanh": (unit, 2, np.arctanh),
    "cos": (angles, 2, np.cos),
    "cosh": (moderate, 2, np.cosh),
    "erf": (lambda r, n: r.uniform(-6, 6, n), 3, np.vectorize(math.erf, [float])),
    "exp": (moderate, 2, np.exp),
    "expm1": (moderate, 2, np.expm1),
    "log": (log_arguments, 2, np.log),
    "log10": (log_arguments, 2, np.log10),
    "log1p": (lambda r, n: spread(r, n, -18, -0.01), 2, np.log1p),
    "log2": (log_arguments, 2, np.log2),
    "rsqrt": (positive, 2, lambda x: 1 / np.sqrt(x)),
    "sigmoid": (moderate, 2, lambda x: 1 / (1 + np.exp(-x))),
    "sin": (angles, 2, np.sin),
    "sinh": (moderate, 2, np.sinh),
    "sqrt": (positive, 1, np.sqrt),
    "tan": (angles, 2, np.tan),
    "tanh": (moderate, 2, np.tanh),
}


def check_ulps(got, want, args, limit):
    got, args = np.array(got), [np.asarray(a) for a in args]
    assert got.dtype == np.float64
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float64)
        error = np.abs(got - want) / np.spacing(np.abs(rounded)).astype(want.dtype)
    plain = np.isfinite(rounded) & (rounded != 0) & ~small(rounded)
    edge = ~plain & ~small(rounded)
    same(got[edge], rounded[edge])
    error = np.where(plain, error, 0)
    i = int(np.argmax(error))
    assert error[i] <= limit, ([a[i] for a in args], got[i], rounded[i], error[i])


def small(x):
    return (x != 0) & (np.abs(x) <= 2.3e-308)  # subnormal, which devices may flush


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    arguments, limit, reference = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    x = arguments(rng, 400)
    with np.errstate(all="ignore"):
        x = np.concatenate([x, EDGES])
        want = reference(x if name == "erf" else x.astype(np.longdouble))
        check_ulps(getattr(mx, name)(to_mx(x)), want, [x], limit)


def test_erfinv():
    x = np.random.default_rng(0).uniform(-1, 1, 400)
    x = np.concatenate([x, 1 - 10.0 ** -np.arange(1, 16)])
    y = np.array(mx.erfinv(to_mx(x)))
    # erfc keeps what erf(y) loses near 1.
    back = np.array([math.copysign(math.erfc(abs(v)), v) for v in y])
    slope = 2 / math.sqrt(math.pi) * np.exp(-y * y)
    miss = np.abs(np.abs(back) - (1 - np.abs(x))) / slope
    assert np.all(miss <= 8 * np.spacing(np.abs(y)) + np.spacing(1 - np.abs(x)) / slope)
    same(
        mx.erfinv(to_mx(np.array([0.0, 1, -1, 2]))),
        np.array([0, np.inf, -np.inf, np.nan]),
    )


def test_power():
    rng = np.random.default_rng(0)
    x = np.concatenate([positive(rng, 300), rng.uniform(0, 30, 300)])
    y = np.concatenate([rng.uniform(-1, 1, 300), rng.uniform(-60, 60, 300)])
    want = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    check_ulps(mx.power(to_mx(x), to_mx(y)), want, [x, y], 2)
    n = np.arange(1, 40, dtype=np.float64)
    same(mx.power(to_mx(n), mx.array(9.0, mx.float64)), n**9)


# NumPy's name by MLX's, all of two operands
BINARY = {
    "add": "add",
    "arctan2": "arctan2",
    "divide": "divide",
    "equal": "equal",
    "floor_divide": None,
    "greater": "greater",
    "less_equal": "less_equal",
    "logaddexp": "logaddexp",
    "maximum": "maximum",
    "minimum": "minimum",
    "multiply": "multiply",
    "not_equal": "not_equal",
    "power": "power",
    "remainder": "remainder",
    "subtract": "subtract",
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_edges(name):
    x, y = (a.ravel() for a in np.meshgrid(EDGES, EDGES))
    with np.errstate(all="ignore"):
        want = np.floor(x / y) if not BINARY[name] else getattr(np, name)(x, y)
        got = np.array(getattr(mx, name)(to_mx(x), to_mx(y)))
    if name == "remainder":  # NumPy: NaN of a finite number and an infinite one
        keep = np.isfinite(y)
        got, want = got[keep], want[keep]
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    real = ~np.isnan(want) & ~(small(want) if want.dtype == np.float64 else False)
    np.testing.assert_allclose(got[real], want[real], rtol=5e-16, atol=0)


def test_layouts():
    rng = np.random.default_rng(1)
    for x, a in views(rng, normal):
        same(a * a + a, x * x + x)
        same(mx.where(a > 0, a, -a), np.where(x > 0, x, -x))
        same(mx.square(a) >= 1, np.square(x) >= 1)
        same(mx.round(a), np.round(x))
        same(mx.sign(a), np.sign(x))
        for f in (mx.floor, mx.ceil, mx.abs, mx.negative):
            same(f(a), getattr(np, f.__name__)(x))


def test_fused():
    @mx.compile
    def f(x, y):
        return mx.where(x < y, mx.sqrt(x * x + y * y), x - y * 0.1) * mx.array(
            0.1, mx.float64
        )

    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((2, 37, 11))
    want = np.where(x < y, np.sqrt(x * x + y * y), x - y * 0.1) * 0.1
    got = np.array(f(to_mx(x), to_mx(y)))
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-16)
    same(f(to_mx(x)[::2], to_mx(y)[::2]), got[::2])


def test_casts():
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.uniform(-100, 100, 300), [0.0, -0.0, 1e-310, 300.7]])
    a = to_mx(x)
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.float32, np.float16):
        # As MLX's CPU, which rounds to float32 first.
        want = x.astype(np.float32) if dtype == np.float16 else x
        same(a[:300].astype(DTYPES[dtype]), want[:300].astype(dtype))
    for dtype in (np.uint8, np.uint16, np.uint32, np.uint64):
        same(mx.abs(a[:300]).astype(DTYPES[dtype]), np.abs(x[:300]).astype(dtype))
    same(a.astype(mx.bool_), x.astype(bool))
    same(a.astype(mx.complex64), x.astype(np.complex64))
    for dtype in DTYPES:
        y = rng.integers(0, 100, 33).astype(dtype)
        same(mx.array(y).astype(mx.float64), y.astype(np.float64))
    big = np.array([2**63 - 1, -(2**63), 2**53 + 1], np.int64)
    same(mx.array(big).astype(mx.float64), big.astype(np.float64))


DTYPES = {
    np.int8: mx.int8,
    np.int16: mx.int16,
    np.int32: mx.int32,
    np.int64: mx.int64,
    np.uint8: mx.uint8,
    np.uint16: mx.uint16,
    np.uint32: mx.uint32,
    np.uint64: mx.uint64,
    np.float16: mx.float16,
    np.float32: mx.float32,
}


def test_creation():
    same(mx.arange(0, 10, 0.1, dtype=mx.float64), np.arange(100) * 0.1)
    same(mx.full((5,), mx.array(0.1, mx.float64)), np.full(5, 0.1))
    same(mx.zeros((0, 3), mx.float64), np.zeros((0, 3)))
    np.testing.assert_allclose(
        np.array(mx.linspace(0, 1, 11, dtype=mx.float64)),
        np.linspace(0, 1, 11),
        rtol=1e-15,
    )


# ---- rows and order ----------------------------------------------------------


def test_reductions():
    rng = np.random.default_rng(4)
    for shape in ((3,), (1, 1), (5, 700), (300, 40), (2, 3, 90_000)):
        x = rng.standard_normal(shape)
        a = to_mx(x)
        for axis in (None, 0, -1):
            same(mx.max(a, axis=axis), np.max(x, axis=axis))
            same(mx.min(a, axis=axis), np.min(x, axis=axis))
            same(mx.argmax(a, axis=axis), np.argmax(x, axis=axis).astype(np.uint32))
            n = x.size if axis is None else x.shape[axis]
            error = np.abs(np.array(mx.sum(a, axis=axis)) - np.sum(x, axis=axis))
            assert np.all(error <= n * 2.0**-53 * np.sum(np.abs(x), axis=axis))
    y = 1 + 1e-3 * rng.standard_normal((50, 60))
    np.testing.assert_allclose(
        np.array(mx.prod(to_mx(y), axis=0)), np.prod(y, axis=0), rtol=1e-14
    )
    np.testing.assert_allclose(
        np.array(mx.var(to_mx(y), axis=1)), np.var(y, axis=1), rtol=1e-11
    )
    same(mx.any(to_mx(EDGES)), np.any(EDGES))
    same(mx.all(to_mx(EDGES)), np.all(EDGES))
    same(mx.max(to_mx(EDGES)), np.float64(np.nan))


def test_scans():
    rng = np.random.default_rng(5)
    for shape in ((1, 7), (3, 700), (2, 40_000)):
        x = rng.standard_normal(shape)
        got = np.array(mx.cumsum(to_mx(x), axis=1))
        bound = shape[1] * 2.0**-53 * np.cumsum(np.abs(x), axis=1)
        assert np.all(np.abs(got - np.cumsum(x, axis=1)) <= bound)
        same(mx.cummax(to_mx(x), axis=1), np.maximum.accumulate(x, axis=1))
        same(mx.cummin(to_mx(x), axis=0), np.minimum.accumulate(x, axis=0))
    x = rng.standard_normal(500)
    want = np.logaddexp.accumulate(x)
    np.testing.assert_allclose(np.array(mx.logcumsumexp(to_mx(x))), want, rtol=1e-14)


def test_order():
    rng = np.random.default_rng(6)
    for n in (1, 33, 1000, 5000):
        x = rng.standard_normal((2, n))
        x[0, :: max(n // 7, 1)] = np.nan
        a = to_mx(x)
        same(mx.sort(a), np.sort(x))
        same(mx.argsort(a), np.argsort(x, kind="stable").astype(np.uint32))
        same(mx.sort(a.T, axis=0), np.sort(x.T, axis=0))
    part = np.array(mx.partition(a, n // 2))
    same(part[:, n // 2], np.partition(x, n // 2)[:, n // 2])
    y = np.sort(rng.standard_normal(99))
    same(mx.searchsorted(to_mx(y), to_mx(x)), np.searchsorted(y, x).astype(np.uint32))


def test_indices():
    rng = np.random.default_rng(7)
    x = rng.standard_normal((30, 11))
    at = rng.integers(0, 30, 9)
    a, i = to_mx(x), mx.array(at.astype(np.int32))
    same(a[i], x[at])
    same(mx.take_along_axis(a, i[:, None], 0), np.take_along_axis(x, at[:, None], 0))
    y = x.copy()
    y[3:20:2, 1] = 7
    b = mx.array(a)
    b[3:20:2, 1] = mx.array(7.0, mx.float64)
    same(b, y)
    b[i] = b[i] + 1
    y[at] += 1
    same(b, y)
    same(mx.concatenate([a, b], axis=1), np.concatenate([x, y], axis=1))
    same(mx.pad(a, 2), np.pad(x, 2))


# ---- products ----------------------------------------------------------------


@pytest.mark.parametrize(
    "m, k, n", [(1, 1, 1), (1, 300, 40), (33, 65, 17), (70, 40, 130), (5, 9000, 6)]
)
def test_products(m, k, n):
    rng = np.random.default_rng(8)
    x, y, z = (rng.standard_normal(s) for s in ((2, m, k), (2, k, n), (2, m, n)))
    bound = k * 2.0**-52 * (np.abs(x) @ np.abs(y))
    for a, b in (
        (to_mx(x), to_mx(y)),
        (to_mx(x.transpose(0, 2, 1).copy()).swapaxes(1, 2), to_mx(y)),
        (to_mx(x), to_mx(y.transpose(0, 2, 1).copy()).swapaxes(1, 2)),
    ):
        assert np.all(np.abs(np.array(a @ b) - x @ y) <= bound)
    got = np.array(mx.addmm(to_mx(z), to_mx(x), to_mx(y), alpha=0.5, beta=2.0))
    want = 0.5 * (x @ y) + 2 * z
    assert np.all(
        np.abs(got - want) <= bound + 2.0**-51 * np.abs(z) + 2.0**-52 * np.abs(want)
    )


def test_norms_and_gradients():
    rng = np.random.default_rng(9)
    x = rng.standard_normal((6, 40))
    np.testing.assert_allclose(
        np.array(mx.linalg.norm(to_mx(x), axis=1)),
        np.linalg.norm(x, axis=1),
        rtol=1e-14,
    )
    got = mx.grad(lambda a: mx.sum(mx.sin(a) * mx.exp(a @ a.T)[0, 0]))(to_mx(x))
    e = np.exp((x @ x.T)[0, 0])
    want = np.cos(x) * e
    want[0] += 2 * x[0] * np.sum(np.sin(x)) * e
    np.testing.assert_allclose(
        np.array(got), want, rtol=1e-12, atol=1e-12 * np.abs(want).max()
    )


# ---- what has no kernel --------------------------------------------------------


def test_without_kernel():
    text = """
import mlx.core as mx, numpy as np
from mlx_vulkan import native
x = np.random.default_rng(0).standard_normal((5, 5))
a = mx.array(x, dtype=mx.float64)
y = mx.softmax(a * 2, axis=1) + 1      # between kernels, in the stream's order
with mx.stream(mx.cpu):
    assert mx.array_equal(y, mx.softmax(a * 2, axis=1) + 1)
s = mx.linalg.solve(a, mx.eye(5, dtype=mx.float64))
assert np.abs(np.array(s) @ x - np.eye(5)).max() < 1e-12
b = mx.zeros((3,), mx.float64).at[mx.array([1, 1])].add(mx.array([0.5, 2], mx.float64))
assert np.array(b).tolist() == [0, 2.5, 0]
ran = " ".join(f["signature"] for f in native.counters()["fallback_signatures"])
for name in ("Softmax", "Scatter Sum"):
    assert name + " on the CPU" in ran, ran
assert "LUF" not in ran, ran
try:
    mx.fast.rms_norm(a, None, 1e-5)
except ValueError as e:
    assert "float64" in str(e) and "stream=mx.cpu" in str(e), e
else:
    raise AssertionError("did not throw")
"""
    output_of("-c", text)
    output_of(
        "-c",
        "import mlx.core as mx\n"
        "a = mx.softmax(mx.ones((3,), mx.float64) * 2)\n"
        "try:\n    mx.eval(a)\n"
        "except RuntimeError as e:\n    assert 'float64' in str(e), e\n"
        "else:\n    raise AssertionError('did not throw')\n",
        MLX_VK_FALLBACK="deny",
    )
