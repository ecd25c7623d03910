"""Fused graphs (mx.compile): the same bits with and without fusion, on every
dtype and layout, and no kernel mistaken for another."""

import contextlib
import threading

import mlx.core as mx
import numpy as np
import pytest

from mlx_vulkan import cases as table


@contextlib.contextmanager
def no_compile():
    mx.disable_compile()
    try:
        yield
    finally:
        mx.enable_compile()


def swiglu(a, b, c):
    return mx.sigmoid(a) * a * b + c


def mixed(a, b, c):
    """Integers, bools and two outputs of different widths."""
    m = mx.maximum(a, b)
    keep = (m > c) | mx.isnan(a)
    return mx.where(keep, m, -c), keep, (a * b).astype(mx.float32)


def gelu(a, b, c):
    t = a * 0.5 * (1 + mx.erf(a / 1.4142135623730951))
    return t + mx.tanh(b) * mx.exp(-mx.abs(c))


def arithmetic(a, b, c):
    return (a + b) * c - mx.square(a), mx.minimum(mx.abs(b), mx.abs(c))


GRAPHS = [
    (swiglu, table.FLOATS),
    (mixed, table.FLOATS),
    (gelu, table.FLOATS),
    (arithmetic, table.INTS + table.FLOATS + table.COMPLEX),
]
PAIRS = [(f, d) for f, dtypes in GRAPHS for d in dtypes]
LAYOUTS = (*table.LAYOUTS, "mixed")
SHAPES = {
    "same": [(3, 5, 37)] * 3,
    "broadcast": [(3, 5, 37), (37,), ()],
    "outer": [(5, 1), (1, 33), (5, 33)],
    "long": [(70001,)] * 3,
    "six": [(2, 1, 3, 2, 3, 2), (1, 2, 3, 1, 3, 2), (2, 2, 1, 2, 1, 2)],
    "none": [(0, 4)] * 3,
    "one": [(1,)] * 3,
}


@pytest.mark.parametrize("f, dtype", PAIRS, ids=[f"{f.__name__}-{d}" for f, d in PAIRS])
@pytest.mark.parametrize("shape", SHAPES)
def test_fusion_changes_no_bit(f, dtype, shape):
    gen = table.special if dtype in table.FLOATS else table.normal
    case = table.Case(shape, table.arrays(*SHAPES[shape], gen=gen), None, None)
    bound = table.bind(case, dtype)
    fused = mx.compile(f)
    for layout in LAYOUTS if shape in ("same", "outer") else ("contiguous",):
        placed = table.place(mx, bound, layout)
        if placed is None:
            continue
        inputs, _ = placed
        with no_compile():
            want = table.outputs(f(*inputs))
            mx.eval(want)
        got = table.outputs(fused(*inputs))
        mx.eval(got)
        for i, (g, w) in enumerate(zip(got, want)):
            note = f"{layout}, output {i}"
            assert g.dtype == w.dtype and g.shape == w.shape, note
            np.testing.assert_array_equal(
                table.to_numpy(mx, g), table.to_numpy(mx, w), note
            )


@pytest.mark.parametrize("f, dtype", PAIRS, ids=[f"{f.__name__}-{d}" for f, d in PAIRS])
def test_donation_changes_no_bit(f, dtype):
    case = table.Case("d", table.arrays((5, 33), (5, 33), (33,)), None, None)
    inputs, _ = table.place(mx, table.bind(case, dtype), "contiguous")
    fused = mx.compile(f)
    kept = table.outputs(fused(*inputs))
    mx.eval(kept)
    donated = table.outputs(fused(*[table.as_temporary(mx, a) for a in inputs]))
    mx.eval(donated)
    for k, d in zip(kept, donated):
        assert table.bits(mx, k) == table.bits(mx, d)


def test_constants_that_print_alike():
    """MLX names a graph by its constants printed one after the other: 1, 23 and
    12, 3 share a name."""
    x = mx.arange(5, dtype=mx.float32)
    for a, b in ((1.0, 23.0), (12.0, 3.0), (123.0, 0.0), (1.0, 23.0)):
        got = mx.compile(lambda v, a=a, b=b: (v + a) * b)(x)
        np.testing.assert_array_equal(np.array(got), (np.arange(5) + a) * b)


def test_constants_keep_their_bits():
    x = mx.zeros((3,))
    # Where float32 subnormals are flushed, a sum and a maximum that are 1e-45 may
    # both be 0: an operation of arithmetic, fused or not, may take and give zeros
    # for them. What no arithmetic touches keeps its bits everywhere.
    flushed = () if table.keeps_subnormals(mx) else (0,)
    for value in (0.1, 1e-45, 3.4028235e38, float("inf"), -float("inf"), 1 / 3):
        want = np.float32(value)
        allowed = (want, *flushed) if want == np.float32(1e-45) else (want,)
        got = np.array(mx.compile(lambda v, k=value: mx.maximum(v * 0 + k, k))(x))
        assert np.isin(got, allowed).all(), value
        got = mx.compile(lambda v, k=value: (mx.where(v == 0, k, v), v + 1))(x)[0]
        assert (np.array(got).view(np.uint32) == want.view(np.uint32)).all(), value
    got = np.array(mx.compile(lambda v: v + float("nan"))(x))
    assert np.isnan(got).all()
    big = mx.compile(lambda v: v + (2**53 + 1))(mx.zeros((2,), mx.int64))
    assert big.tolist() == [2**53 + 1] * 2


WITH_A_CONSTANT = {
    "greater": lambda x, k: x > k,
    "greater_equal": lambda x, k: x >= k,
    "less": lambda x, k: x < k,
    "less_equal": lambda x, k: x <= k,
    "equal": lambda x, k: x == k,
    "maximum": mx.maximum,
    "minimum": mx.minimum,
    "abs": lambda x, k: mx.abs(x) + k,
    "sign": lambda x, k: mx.sign(x) + k,
    "floor_divide": lambda x, k: x // k,
    "remainder": lambda x, k: x % k,
    "power": lambda x, k: mx.power(k, x),
}


@pytest.mark.parametrize("name", WITH_A_CONSTANT)
def test_widened_integers_meet_constants(name):
    """Mesa 22.3 compares them wrongly if the kernel lets it."""
    f = WITH_A_CONSTANT[name]
    for narrow, wide in ((mx.int32, mx.int64), (mx.uint32, mx.uint64)):
        x = (mx.arange(64) - (20 if wide == mx.int64 else 0)).astype(narrow)
        for k in (7, 26, -3 if wide == mx.int64 else 2**40):
            k = mx.array(k, wide)
            want = f(x.astype(wide), k)
            got = mx.compile(lambda x, k=k, to=wide: f(x.astype(to), k))(x)
            assert got.tolist() == want.tolist(), (name, wide, k)


def test_a_product_rounds_before_its_sum():
    """a * b - round(a * b) is what an fma would leave: 0 without one."""
    rng = np.random.default_rng(4)
    a, b = (mx.array(rng.normal(size=4096).astype(np.float32)) for _ in range(2))
    with no_compile():
        product = a * b
        mx.eval(product)
    minus, plus = mx.compile(lambda a, b, p: (a * b - p, p + (-a) * b))(a, b, product)
    np.testing.assert_array_equal(np.array(minus), 0)
    np.testing.assert_array_equal(np.array(plus), 0)


UNARY = ["erf", "erfinv", "exp", "expm1", "log", "log10", "log1p", "log2", "rsqrt"]
UNARY += ["sigmoid", "sin", "sqrt", "square", "cos", "cosh", "sinh", "tan", "tanh"]
UNARY += ["arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh"]
COMPLEX_TOO = [f for f in UNARY if f not in ("erf", "erfinv", "expm1", "sigmoid")]
BINARY = ["divide", "power", "logaddexp", "arctan2", "remainder", "floor_divide"]


def same_bits_or_nan(function, inputs):
    got = table.outputs(mx.compile(function)(*inputs))
    mx.eval(got)
    with no_compile():
        want = table.outputs(function(*inputs))
        mx.eval(want)
    for g, w in zip(got, want, strict=True):
        g, w = np.array(g), np.array(w)
        np.testing.assert_array_equal(g, w)
        zero = w == 0
        for part in (np.real, np.imag):
            np.testing.assert_array_equal(
                np.signbit(part(g)[zero]), np.signbit(part(w)[zero])
            )


def spread(dtype, seed=8, n=20_000):
    """Both signs, from 2^-20 to 2^6."""
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=(2, n)) * 2.0 ** rng.integers(-20, 6, (2, n))
    x = parts[0] + 1j * parts[1] if dtype == "complex64" else parts[0]
    return mx.array(x.astype(dtype))


@pytest.mark.parametrize(
    "name, dtype",
    [(f, "float32") for f in UNARY] + [(f, "complex64") for f in COMPLEX_TOO],
)
def test_functions_agree_fused(name, dtype):
    """Between products, which a driver might merge into the function."""
    f = getattr(mx, name)
    same_bits_or_nan(lambda a, b: f(a * b) * b + a, (spread(dtype), spread(dtype, 9)))


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_agree_fused(name):
    f = getattr(mx, name)
    a, b = spread("float32"), spread("float32", 9)
    same_bits_or_nan(lambda a, b: f(a * b, b) * b + a, (a, b))
    for k in (3.0, 0.7, -2.5, 1 / 3):
        same_bits_or_nan(lambda a, k=k: f(a, k), (a,))
        same_bits_or_nan(lambda a, k=k: f(k, a), (a,))


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_constants_agree_fused(name):
    f = getattr(mx, name)
    same_bits_or_nan(
        lambda a: tuple(f(mx.array(k)) * a for k in (0.3, 0.7, 0.9, 1.1, 2.3)),
        (spread("float32"),),
    )


def test_a_computed_constant():
    scale = mx.exp(mx.array(1.0))  # lives on the GPU
    mx.eval(scale)
    f = mx.compile(lambda v: (v + 1) * scale)
    for _ in range(3):
        got = np.array(f(mx.ones((4,))))
        np.testing.assert_allclose(got, 2 * np.e, rtol=1e-6)


def test_rounding_between_operations():
    """1 + 2^-9 is 1 in bfloat16, so the sum is exactly 0 when fused too."""
    x = mx.ones((8,), mx.bfloat16)
    got = mx.compile(lambda v: (v + 2.0**-9) - v)(x)
    assert got.tolist() == [0.0] * 8


def test_many_inputs_and_outputs():
    xs = [mx.full((3, 7), float(i)) for i in range(20)]

    def f(*args):
        total = args[0]
        for a in args[1:]:
            total = total + a
        return total, args[3] * 2, args[19] - total

    for got, want in zip(mx.compile(f)(*xs), f(*xs)):
        np.testing.assert_array_equal(np.array(got), np.array(want))
    slices = [mx.full((3, 14), float(i))[:, ::2] for i in range(20)]
    for got, want in zip(mx.compile(f)(*slices), f(*slices)):
        np.testing.assert_array_equal(np.array(got), np.array(want))


def test_shapeless_runs_on_new_shapes():
    f = mx.compile(lambda a, b: mx.exp(a) * b + 1, shapeless=True)
    for shape in ((4, 8), (1, 3), (300, 17), (2, 1)):
        a = mx.random.normal(shape)
        b = mx.random.normal((shape[0], 1))
        got = f(a, b)
        with no_compile():
            want = mx.exp(a) * b + 1
        np.testing.assert_array_equal(np.array(got), np.array(want))


def test_threads_compile_graphs_at_once(gpu):
    """Two to a graph, so that some meet at the same kernel."""
    x = np.arange(33, dtype=np.float32)
    failures = []

    def work(k):
        try:
            with mx.stream(mx.new_stream(mx.gpu)):
                got = mx.compile(lambda v: mx.abs(v * k - 7) + k)(mx.array(x))
                np.testing.assert_array_equal(np.array(got), np.abs(x * k - 7) + k)
        except Exception as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(i // 2 + 90,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures[0]
