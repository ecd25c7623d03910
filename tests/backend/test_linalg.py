"""mx.linalg on GPU streams, float32 and float64: residuals and orthogonality in NumPy's
long doubles, within 10 n eps of the matrices' sizes (Frobenius norms; Higham, Accuracy
and Stability of Numerical Algorithms, has the bounds)."""

import itertools
import os
import pathlib
import shutil

import mlx.core as mx
import numpy as np
import pytest
from processes import output_of

from mlx_vulkan.cases import linalg as products

ROOT = pathlib.Path(__file__).resolve().parents[2]
FULL = os.environ.get("MLX_VK_TEST_FULL") == "1"
SIZES = (1, 2, 3, 16, 31, 32, 33, 64, 65, 200)
FEW = (1, 2, 3, 31, 32, 33, 64, 65)
KINDS = ("random", "rank", "graded", "zero", "ill")
norm = np.linalg.norm


class Real:
    """The type under test."""

    numpy = np.float32
    eps = 2.0**-23


@pytest.fixture(autouse=True, params=["float32", "float64"])
def real(request, gpu):
    if request.param == "float64":
        try:
            mx.zeros(1, mx.float64)
        except ValueError:
            pytest.skip("needs shaderFloat64")
    Real.numpy = np.dtype(request.param).type
    Real.eps = 2.0 * np.finfo(Real.numpy).epsneg


def on_gpu(x):
    assert x.dtype == Real.numpy
    return mx.array(x, mx.float64 if x.dtype == np.float64 else mx.float32)


def wide(x):
    """In doubles if products of long ones would take seconds: what those round is a
    twentieth of the bound."""
    x = np.array(x)
    return x.astype(np.float64 if x.shape[-2:] > (200,) else np.longdouble)


def narrow(x):
    return np.array(x).astype(np.float64)


def adjoint(x):
    return np.swapaxes(x, -1, -2)


def matrix(kind, rows, cols, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((rows, cols))
    if kind == "rank":
        rank = min(3, rows, cols)
        a = a[:, :rank] @ rng.standard_normal((rank, cols))
    elif kind == "graded":
        a = a * 10.0 ** -np.linspace(0, 20, cols)
    elif kind == "zero":
        a *= 0
    elif kind == "ill":  # condition 1e12, in float32 1e6
        values = 10.0 ** -np.linspace(0, 12 if Real.numpy == np.float64 else 6, rows)
        a = np.linalg.qr(rng.standard_normal((rows, rows)))[0] * values @ a
    return a.astype(Real.numpy)


def definite(n, batch=()):
    rng = np.random.default_rng(n)
    a = rng.standard_normal((*batch, n, n))
    return (a @ adjoint(a) + n * np.eye(n)).astype(Real.numpy)


def close(got, want, n, size):
    """The norm of the difference is within 10 n eps of `size`."""
    assert np.isfinite(got).all()
    assert norm(got - want) <= 10 * n * Real.eps * size


def orthogonal(q):
    close(adjoint(q) @ q, np.eye(q.shape[-1]), max(q.shape), 1)


def check_cholesky(a, upper):
    factor = wide(mx.linalg.cholesky(on_gpu(a), upper=upper))
    a = wide(a)
    assert (factor == (np.triu(factor) if upper else np.tril(factor))).all()
    product = adjoint(factor) @ factor if upper else factor @ adjoint(factor)
    close(product, a, a.shape[-1], norm(a))


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("n", SIZES)
def test_cholesky(n, upper):
    check_cholesky(definite(n), upper)


@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_reads_one_triangle(upper):
    a = definite(40)
    half = np.triu(a) if upper else np.tril(a)
    got = mx.linalg.cholesky(on_gpu(half), upper=upper)
    want = mx.linalg.cholesky(on_gpu(a), upper=upper)
    assert mx.array_equal(got, want)


def hardly_definite(n):
    """A = D H D, H with ones on its diagonal: any Cholesky factorization of it ends if
    H's least eigenvalue exceeds n g / (1 - g), g = k u / (1 - k u), u = eps / 2, with
    k = n + 1 roundings of an item (Demmel; Higham, theorem 10.7). A division and a
    square root, which Vulkan lets be off by 2.5 and 5 units in the last place, are
    taken for 20 more. D grades the matrix: its condition is at least 1e12."""
    k = (n + 21) * Real.eps / 2
    least = n * k / (1 - 2 * k)
    rng = np.random.default_rng(n)
    q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    h = (q * np.geomspace(1, 2 * least, n)) @ q.T
    scales = 10.0 ** -np.linspace(0, 6, n)[rng.permutation(n)]
    d = scales / np.sqrt(np.diag(h))
    a = (np.tril(h) + np.tril(h, -1).T) * d * d[:, None]
    a = a.astype(Real.numpy)
    d = np.sqrt(np.diag(narrow(a)))
    assert np.linalg.eigvalsh(narrow(a) / d / d[:, None])[0] > least
    return a, d


@pytest.mark.parametrize("n", SIZES)
def test_cholesky_of_ill_conditioned(n):
    a, d = hardly_definite(n)
    assert n == 1 or np.linalg.cond(narrow(a)) > 1e12
    factor = wide(mx.linalg.cholesky(on_gpu(a)))
    error = np.abs(factor @ factor.T - wide(a)) / d / d[:, None]
    assert error.max() <= 10 * n * Real.eps  # theorem 10.5


@pytest.mark.parametrize("n", [3, 40, 100])
def test_cholesky_of_semidefinite(n):
    # The rank is 2 without rounding, so that the other pivots are zero.
    a = np.tril(np.random.default_rng(n).integers(1, 9, (n, 2)))
    a[[0, 1], [0, 1]] = 1
    check_cholesky(Real.numpy(a @ a.T), False)
    check_cholesky(np.zeros((n, n), Real.numpy), True)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("n", [3, 40, 100])
def test_cholesky_of_indefinite(n, upper):
    """NaN, also where a pivot is zero and what is below it is not."""
    negative = np.diag([1.0] * (n - 1) + [-1.0])
    swapped = np.eye(n)
    swapped[[0, n - 1]] = swapped[[n - 1, 0]]
    late = np.ones((n, n))
    late[-1, -2] = late[-2, -1] = 2
    late[-1, -1] = 9
    for a in (negative, swapped, late):
        factor = mx.linalg.cholesky(on_gpu(Real.numpy(a)), upper=upper)
        assert mx.isnan(factor).any()


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("n", SIZES)
def test_triangular(n, upper):
    a = matrix("random", n, n) / n + 2 * np.eye(n, dtype=Real.numpy)
    a = np.triu(a) if upper else np.tril(a)
    x = wide(mx.linalg.tri_inv(on_gpu(a), upper=upper))
    close(wide(a) @ x, np.eye(n), n, norm(a) * norm(x))
    b = matrix("random", n, 5, 1)
    y = wide(mx.linalg.solve_triangular(on_gpu(a), on_gpu(b), upper=upper))
    close(wide(a) @ y, b, n, norm(a) * norm(x) * norm(b))
    check = wide(mx.linalg.cholesky_inv(on_gpu(a), upper=upper))
    close(check, x @ adjoint(x) if upper else adjoint(x) @ x, n, norm(x) ** 2)


def check_lu(a):
    p, lower, upper = mx.linalg.lu(on_gpu(a))
    p, lower, upper = np.array(p), wide(lower), wide(upper)
    assert np.abs(lower).max() <= 1
    product = np.take_along_axis(lower, p[..., None].astype(np.int64), -2) @ upper
    close(product, a, max(a.shape[-2:]), norm(wide(a)))
    factors, pivots = mx.linalg.lu_factor(on_gpu(a))
    rows = min(a.shape[-2:])
    assert (np.array(pivots) >= np.arange(rows)).all()
    assert (np.triu(wide(factors))[..., :rows, :] == upper).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", SIZES)
def test_lu(n, kind):
    check_lu(matrix(kind, n, n))


TALL = [(300, 65), (600, 33), (1100, 40), (2100, 33), (4500, 33), (9000, 40)]


@pytest.mark.parametrize("shape", [(1, 7), (7, 1), (40, 100), (100, 40), *TALL])
def test_lu_of_rectangles(shape):
    a = matrix("random", *shape)
    check_lu(a)
    pivots = mx.linalg.lu_factor(on_gpu(a))[1]
    with mx.stream(mx.cpu):
        assert mx.array_equal(pivots, mx.linalg.lu_factor(on_gpu(a))[1])


@pytest.mark.parametrize("kind", ["rank", "graded", "zero"])
@pytest.mark.parametrize("rows", [600, 4200])
def test_lu_of_tall_singular_ones(kind, rows):
    check_lu(matrix(kind, rows, 40))


@pytest.mark.parametrize("shape", [(130, 70), (600, 40), (1100, 33), (4301, 33)])
def test_lu_of_batches(shape):
    """Each of any strides as alone, also beside one that is not finite."""
    a = np.stack([matrix("random", *shape, seed) for seed in range(3)])
    a[1, 5, 2] = np.nan
    for x in (
        on_gpu(a),
        on_gpu(adjoint(a).copy()).swapaxes(-1, -2),
        on_gpu(np.repeat(a, 2, axis=1))[:, ::2],
    ):
        for i in (0, 2):
            for got, alone in zip(mx.linalg.lu_factor(x), mx.linalg.lu_factor(x[i])):
                assert mx.array_equal(got[i], alone)


@pytest.mark.parametrize("kind", ["random", "ill"])
@pytest.mark.parametrize("n", SIZES)
def test_inverse_and_solve(n, kind):
    a = matrix(kind, n, n)
    x = wide(mx.linalg.inv(on_gpu(a)))
    close(wide(a) @ x, np.eye(n), n, norm(a) * norm(x))
    condition = norm(a) * norm(x)
    for b in (matrix("random", n, 3, 1), matrix("random", n, 1, 2)[:, 0]):
        y = wide(mx.linalg.solve(on_gpu(a), on_gpu(b)))
        close(wide(a) @ y, b, n, condition * norm(b))
    if n < 4 and kind == "ill":
        return  # MLX's formula is not stable
    sign, logarithm = mx.linalg.slogdet(on_gpu(a))
    want = np.linalg.slogdet(narrow(a))
    # The factors are those of a + e with |e| <= 10 n eps |a|: whose determinant has
    # the sign of a's if |e / a| < 1.
    error = 10 * n * Real.eps * condition
    assert sign.item() == want[0] or error >= 1
    assert abs(logarithm.item() - want[1]) <= error


def check_qr(a):
    q, r = map(wide, mx.linalg.qr(on_gpu(a)))
    assert (r == np.triu(r)).all()
    close(q @ r, a, max(a.shape[-2:]), norm(wide(a)))
    orthogonal(q)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", SIZES)
def test_qr(n, kind):
    check_qr(matrix(kind, n, n))


SHAPES = [(1, 7), (7, 1), (20, 40), (40, 20), (100, 40), (300, 65), (5, 500)]
TALL = [(1100, 40), (4000, 40), (4500, 40)]  # fewer columns at once; in parts


@pytest.mark.parametrize("shape", SHAPES + TALL)
def test_qr_of_rectangles(shape):
    check_qr(matrix("random", *shape))


def test_many_rows_in_a_batch():
    a = np.stack([matrix("random", 4500, 7, seed) for seed in (1, 2)])
    a[1, :, 3] = a[1, :, 2]
    check_qr(a)
    values = wide(mx.linalg.svd(on_gpu(a), compute_uv=False))
    want = np.linalg.svd(narrow(a), compute_uv=False)
    close(values, want, 4500, norm(want))


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_no_overflow(scale):
    a = matrix("random", 40, 20) * Real.numpy(scale)
    check_qr(a)
    check_svd(a)


def check_eigh(a, triangle):
    half = np.tril(a) if triangle == "L" else np.triu(a)
    values, vectors = map(wide, mx.linalg.eigh(on_gpu(half), triangle))
    n = a.shape[-1]
    a = wide(a)
    close(values, np.linalg.eigvalsh(narrow(a)), n, norm(a))
    close(a @ vectors, vectors * values[..., None, :], n, norm(a))
    orthogonal(vectors)
    alone = mx.linalg.eigvalsh(on_gpu(half), triangle)
    close(wide(alone), values, n, norm(a))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", FEW)
def test_eigh(n, kind):
    a = matrix(kind, n, n)
    check_eigh(a + a.T, "LU"[n % 2])


SPREADS = (0, 1e-12, 1e-6, 1e-3)


@pytest.mark.parametrize(
    "each, spread", [*itertools.product((5, 8, 16), SPREADS), (30, 1e-6)]
)
def test_clusters(each, spread):
    n = 4 * each
    rng = np.random.default_rng(n)
    q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    values = np.repeat([3.0, -3.0, 1.0, -1.0], each)
    values += spread * rng.standard_normal(n)
    a = (q * values) @ q.T
    check_eigh(((a + a.T) / 2).astype(Real.numpy), "L")
    v, _ = np.linalg.qr(rng.standard_normal((n, n)))
    check_svd(((q * values) @ v.T).astype(Real.numpy))


def hard(kind, n):
    """Symmetric matrices that are hard for reductions and for divide and conquer."""
    rng = np.random.default_rng(n)
    i = np.arange(n)
    random = rng.standard_normal((n, n))
    q, _ = np.linalg.qr(random)
    beside = np.diag(np.ones(n - 1), 1)
    beside += beside.T
    values = np.repeat([3.0, -3.0, 1.0, -1.0], -(-n // 4))[:n]
    grades = 10.0 ** -np.linspace(0, 20, n)
    a = {
        "random": random,
        "identity": np.eye(n),
        "zero": np.zeros((n, n)),
        "ones": np.ones((n, n)),
        "rank 3": random[:, :3] @ random[:, :3].T,
        "half": random[:, ::2] @ random[:, ::2].T,
        "repeated": (q * values) @ q.T,
        "cluster": (q * (values + 1e-6 * random[0])) @ q.T,
        "graded": (q * grades) @ q.T,
        "columns": random * grades,
        "diagonal": np.diag(random[0]),
        "pairs": np.kron(np.eye(n // 2 + 1), [[0, 1], [1, 0]])[:n, :n],
        "toeplitz": 2 * np.eye(n) - beside,
        "wilkinson": np.diag(np.abs(i - n // 2)) + beside,
        "glued": np.diag(np.abs(i % 21 - 10))
        + np.where((i % 21 == 20) & (i[:, None] == i + 1), 1e-4, np.tril(beside)),
        "tiny": 1e-30 * random,
        "huge": 1e30 * random,
        "few": np.diag(random[0]) + 1e-9 * random,
    }[kind]
    a = a.astype(Real.numpy)
    return np.tril(a) + np.tril(a, -1).T


HARD = (
    "random identity zero ones half repeated cluster graded columns diagonal pairs "
    "toeplitz wilkinson glued tiny huge few"
).split() + ["rank 3"]
EDGE = 65  # Policy::tridiagonal_columns


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("n", [EDGE + 35, 225])
def test_large_symmetric(kind, n):
    check_eigh(hard(kind, n), "LU"[len(kind) % 2])


@pytest.mark.parametrize("n", [EDGE - 1, EDGE, EDGE + 1, 128, 129, 191, 321])
def test_sizes_of_blocks(n):
    check_eigh(hard("random", n), "L")
    check_eigh(hard("glued", n), "U")


def test_large_symmetric_batches():
    """Any strides; beside one that is not finite, which gives nothing finite."""
    n = 170
    a = np.stack([hard("random", n), hard("cluster", n), hard("toeplitz", n)])
    bad = np.concatenate([a, a[:1]])
    bad[-1, 150, 3] = np.inf
    bad[-1, 40, 40] = np.nan
    for x in (
        on_gpu(bad),
        on_gpu(bad[::-1].copy())[::-1],
        on_gpu(np.repeat(bad, 2, axis=-1))[..., ::2],
        on_gpu(bad)[:, None].swapaxes(0, 1),
    ):
        values, vectors = (narrow(y).reshape(4, n, -1) for y in mx.linalg.eigh(x))
        alone = narrow(mx.linalg.eigvalsh(x)).reshape(4, n, 1)
        for y in (values, vectors, alone):
            assert np.isnan(y[3]).all()
        for i in range(3):
            size = norm(narrow(a[i]))
            close(values[i], alone[i], n, size)
            close(narrow(a[i]) @ vectors[i], vectors[i] * values[i].T, n, size)
            orthogonal(vectors[i])
    values, vectors = mx.linalg.eigh(on_gpu(a[:0]))
    assert values.shape == (0, n) and vectors.shape == (0, n, n)
    mx.eval(values, vectors)


def check_svd(a):
    u, s, vt = map(wide, mx.linalg.svd(on_gpu(a)))
    n, k = max(a.shape[-2:]), min(a.shape[-2:])
    a = wide(a)
    close(s, np.linalg.svd(narrow(a), compute_uv=False), n, norm(a))
    close((u[..., :k] * s[..., None, :]) @ vt[..., :k, :], a, n, norm(a))
    orthogonal(u)
    orthogonal(adjoint(vt))
    alone = mx.linalg.svd(on_gpu(a.astype(Real.numpy)), compute_uv=False)
    close(wide(alone), s, n, norm(a))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", FEW)
def test_svd(n, kind):
    check_svd(matrix(kind, n, n))


@pytest.mark.parametrize("kind", KINDS)
def test_svd_by_eigenvalues(kind):
    if not FULL:
        pytest.skip("takes seconds on a software device")
    check_svd(matrix(kind, 420, 400))
    a = matrix(kind, 400, 400)
    a[3, 5] = np.nan
    assert not np.isfinite(np.array(mx.linalg.svd(on_gpu(a), compute_uv=False))).any()


@pytest.mark.parametrize("kind", ["random", "rank"])
@pytest.mark.parametrize("shape", SHAPES + [(200, 50), (90, 210)])
def test_svd_of_rectangles(shape, kind):
    check_svd(matrix(kind, *shape))


@pytest.mark.parametrize("kind", ["random", "graded"])
def test_several_blocks(kind):
    a = matrix(kind, 100, 100)
    check_eigh(a + a.T, "L")
    check_svd(a)


@pytest.mark.parametrize("kind", ["random", "rank", "zero"])
@pytest.mark.parametrize("shape", [(1, 1), (12, 30), (70, 20), (40, 40)])
def test_pinv(shape, kind):
    a = matrix(kind, *shape)
    x = wide(mx.linalg.pinv(on_gpu(a)))
    a = wide(a)
    n, size = max(shape), norm(a) * norm(x)
    close(a @ x @ a, a, n, size * norm(a))
    close(x @ a @ x, x, n, size * norm(x))
    close(adjoint(a @ x), a @ x, n, size)
    close(adjoint(x @ a), x @ a, n, size)


@pytest.mark.parametrize("order", [2, -2, "nuc"])
def test_norms_of_singular_values(order):
    a = np.stack([matrix("random", 12, 30), matrix("rank", 12, 30)])
    for axes in ((1, 2), (2, 1), (0, 2), (-3, -1)):
        got = np.array(mx.linalg.norm(on_gpu(a), order, axes, True))
        want = norm(narrow(a), order, axes, True)
        assert got.shape == want.shape
        assert np.abs(got - want).max() <= 300 * Real.eps * norm(a)
    a[1, 3, 4] = np.nan
    got = np.array(mx.linalg.norm(on_gpu(a), order, (1, 2)))
    assert np.isfinite(got[0]) and np.isnan(got[1])


def large(name, n):
    a = matrix("ill" if name == "inverse" else "random", n, n)
    if name == "cholesky":
        check_cholesky(definite(n), True)
        check_cholesky(definite(n), False)
    elif name == "triangular":
        test_triangular(n, False)
        test_triangular(n, True)
    elif name == "inverse":
        test_inverse_and_solve(n, "ill")
    elif name == "eigh":
        check_eigh(a + a.T, "L")
    else:
        {"lu": check_lu, "qr": check_qr, "svd": check_svd}[name](a)


LARGE = ("cholesky", "triangular", "lu", "inverse", "qr", "eigh", "svd")


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("n", [512, 1024, 2048])
def test_large(name, n):
    if n > 512 and not FULL:
        pytest.skip("takes seconds to minutes on a software device")
    large(name, n)


def one_by_one(function, a):
    parts = [function(x) for x in a.reshape(-1, *a.shape[-2:])]
    return [np.stack([np.array(p[i]) for p in parts]) for i in range(len(parts[0]))]


CALLS = {
    "cholesky": lambda x: (mx.linalg.cholesky(x),),
    "inv": lambda x: (mx.linalg.inv(x),),
    "lu": mx.linalg.lu,
    "qr": mx.linalg.qr,
    "eigh": mx.linalg.eigh,
    "svd": mx.linalg.svd,
}


LAID_OUT = CALLS | {
    "solve": lambda x: (mx.linalg.solve(x, x[..., :3]),),
    "solve_triangular": lambda x: (mx.linalg.solve_triangular(x, x[..., :3]),),
    "tri_inv": lambda x: (mx.linalg.tri_inv(x),),
    "cholesky_inv": lambda x: (mx.linalg.cholesky_inv(x),),
    "lu_factor": mx.linalg.lu_factor,
    "pinv": lambda x: (mx.linalg.pinv(x),),
    "nuc": lambda x: (mx.linalg.norm(x, "nuc", (-2, -1)),),
}


@pytest.mark.parametrize("name", LAID_OUT)
@pytest.mark.parametrize("n", [5, 40])
def test_batches_and_strides(name, n):
    """Each matrix of a batch, of any strides, gives what it gives alone."""
    function = LAID_OUT[name]
    a = definite(n, (2, 3))
    want = one_by_one(lambda x: function(on_gpu(x)), a)
    layouts = {
        "batch": on_gpu(a),
        "swapped": on_gpu(a.swapaxes(0, 1)).swapaxes(0, 1),
        "transposed": on_gpu(adjoint(a)).swapaxes(-1, -2),
        "strided": on_gpu(np.repeat(a, 2, axis=-1))[..., ::2],
        "offset": on_gpu(np.pad(a, [(0, 0), (0, 0), (2, 1), (1, 2)]))[..., 2:-1, 1:-2],
    }
    for x in layouts.values():
        for got, alone in zip(function(x), want):
            got = np.array(got).reshape(alone.shape)
            assert norm(got - alone) <= 10 * n * Real.eps * max(norm(alone), 1)
    empty = function(on_gpu(a[:0, 0]))
    assert all(x.shape[0] == 0 for x in empty)
    mx.eval(empty)


def test_batch_of_several_blocks():
    a = definite(70, (2,))
    want = one_by_one(lambda x: mx.linalg.eigh(on_gpu(x)), a)
    for got, alone in zip(mx.linalg.eigh(on_gpu(a)), want):
        assert norm(np.array(got) - alone) <= 700 * Real.eps * norm(alone)


def test_batch_of_one():
    a = definite(5, (1, 1))
    for function in LAID_OUT.values():
        for got, alone in zip(function(on_gpu(a)), function(on_gpu(a[0, 0]))):
            assert got.shape == (1, 1, *alone.shape)
            assert mx.array_equal(got[0, 0], alone)


# What gives a definite matrix again.
PRODUCTS = {
    "cholesky": lambda x: mx.linalg.cholesky(x) @ mx.linalg.cholesky(x, upper=True),
    "inv": lambda x: x @ mx.linalg.inv(x) @ x,
    "lu": lambda x: products.lu_product(mx, x),
    "qr": lambda x: products.qr_products(mx, x)[0],
    "eigh": lambda x: products.eigen_product(mx, x)[0],
    "svd": lambda x: products.svd_product(mx, x),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("count", [4000, 100_000])
def test_tiny_ones(name, count):
    if count > 4000 and not FULL:
        pytest.skip("takes minutes on a software device")
    a = definite(4, (count,))
    got = wide(PRODUCTS[name](on_gpu(a)))
    error = np.sqrt(np.sum((got - wide(a)) ** 2, axis=(-2, -1)))
    size = np.sqrt(np.sum(wide(a) ** 2, axis=(-2, -1)))
    # The condition of the inverse's matrices is below 40.
    assert np.all(error <= 40 * Real.eps * size * (40 if name == "inv" else 1))


def test_many():
    a = definite(8, (3000,))
    x = wide(mx.linalg.inv(on_gpu(a)))
    close(wide(a) @ x, np.broadcast_to(np.eye(8), x.shape), 8, 100 * norm(a) * norm(x))
    s = wide(mx.linalg.svd(on_gpu(a), compute_uv=False))
    close(s, np.linalg.svd(narrow(a), compute_uv=False), 8, norm(a))


@pytest.mark.parametrize("name", ["eigvalsh", "lu", "qr"])
def test_more_than_a_grid_axis(name, request):
    """65,535 workgroups make an axis of a grid; what is folded is rounded up."""
    if name != "eigvalsh" and "llvmpipe" in request.config.mlxvk_name:
        pytest.skip("takes half a minute on a software device")
    count = 65_600
    a = on_gpu(Real.numpy(np.arange(count) % 7 + 1)[:, None, None])
    if name == "eigvalsh":
        got = mx.linalg.eigvalsh(a)[..., None]
    else:
        left, right = getattr(mx.linalg, name)(a)[-2:]
        got = left @ right
    assert mx.abs(got - a).max().item() <= 70 * Real.eps


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("item", [np.nan, np.inf])
@pytest.mark.parametrize("n", [6, 70])
def test_items_that_are_not_finite(name, item, n):
    a = definite(n)
    a[n // 2, n // 2] = item
    results = CALLS[name](on_gpu(a))  # ends
    if not (name == "inv" and item == np.inf):  # 1 / inf is 0
        assert any(not np.isfinite(np.array(x)).all() for x in results)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("n", [6, 70])
def test_neighbour_that_is_not_finite(name, n):
    a = definite(n, (3,))
    a[1, 0, 0] = np.nan
    got = CALLS[name](on_gpu(a))
    for i in (0, 2):
        for x, alone in zip(got, CALLS[name](on_gpu(a[i]))):
            alone = np.array(alone)
            assert norm(np.array(x[i]) - alone) <= 10 * n * Real.eps * norm(alone)


# Sweeps end after two; the second matrix of a batch needs none.
UNCONVERGED = """
import mlx.core as mx, numpy as np
for dtype in (TYPES):
    for n in (20, 40, 70):
        a = np.random.default_rng(n).standard_normal((n, n))
        x = mx.array(np.stack([a + a.T, np.diag(np.arange(n) + 1.0)]), dtype)
        results = [mx.linalg.svd(x, compute_uv=False), *mx.linalg.svd(x)]
        if n < 65: # rotations alone
            results += [mx.linalg.eigvalsh(x), *mx.linalg.eigh(x)]
        for y in results:
            assert mx.all(mx.isnan(y[0])) and not mx.any(mx.isnan(y[1])), n
        assert mx.allclose(mx.sort(results[0][1]), mx.arange(n) + 1.0)
"""


def test_too_many_sweeps(tmp_path):
    kernels = tmp_path / "kernels"
    shutil.copytree(ROOT / "src" / "kernels", kernels)
    for name, old in (("jacobi.comp", "SWEEPS = 30"), ("linalg.h", "MOST_SWEEPS 32")):
        path = kernels / "linalg" / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, old[:-2] + "2"))
    script = UNCONVERGED.replace("TYPES", f"mx.{Real.numpy.__name__},")
    output_of("-c", script, MLX_VK_KERNEL_PATH=str(kernels))


# Kernels for 16 KiB of shared memory, which all devices have.
LITTLE_SHARED_MEMORY = """
import sys
sys.path.insert(0, FOLDER)
import test_linalg as t
from mlx_vulkan import native
t.Real.numpy, t.Real.eps = t.np.dtype(TYPE).type, EPS
for n in (20, 40, 70):
    a = t.definite(n, (2,))
    for name, product in t.PRODUCTS.items():
        size = t.norm(a) * (n if name == "inv" else 1)
        t.close(t.wide(product(t.on_gpu(a))), a, n, size)
t.check_qr(t.matrix("random", 300, 65))
t.check_svd(t.matrix("random", 300, 65))
assert native.counters()["fallbacks"] == 0
"""


def test_little_shared_memory():
    script = LITTLE_SHARED_MEMORY.replace("TYPE", repr(Real.numpy.__name__))
    script = script.replace("FOLDER", repr(str(ROOT / "tests" / "backend")))
    script = script.replace("EPS", str(Real.eps))
    output_of("-c", script, MLX_VK_DISABLE="shared", MLX_VK_TEST="plans=least")


def test_singular():
    inverse = mx.linalg.inv(on_gpu(np.zeros((3, 3), Real.numpy)))
    assert not np.isfinite(np.array(inverse)).all()


def test_compiled_and_vmapped():
    a = on_gpu(definite(6, (4,)))
    want = mx.linalg.inv(a)
    assert mx.allclose(mx.compile(mx.linalg.inv)(a), want)
    assert mx.allclose(mx.vmap(mx.linalg.inv)(a), want)
    values, vectors = mx.vmap(mx.linalg.eigh)(a)
    again = (vectors * values[:, None]) @ vectors.swapaxes(-1, -2)
    assert mx.allclose(again, a, atol=1e-4)


GRADIENTS = {
    "solve": lambda x: mx.linalg.solve(on_gpu(definite(3)), x),
    "solve_triangular": lambda x: mx.linalg.solve_triangular(on_gpu(definite(3)), x),
    "det": mx.linalg.det,
    "slogdet": lambda x: mx.linalg.slogdet(x)[1],
    "cross": lambda x: mx.linalg.cross(x, x * x),
    "norm": mx.linalg.norm,
    "fro": lambda x: mx.linalg.norm(x, "fro"),
    "1": lambda x: mx.linalg.norm(x, 1),
    "inf": lambda x: mx.linalg.norm(x, float("inf"), axis=0),
    "3": lambda x: mx.linalg.norm(x, 3, axis=1),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    """All that MLX defines: as on its CPU, and in float64 beside differences."""
    a = definite(3) / 3

    def loss(x):
        y = GRADIENTS[name](x)
        return mx.sum(y * y * y)

    got = narrow(mx.grad(loss)(on_gpu(a)))
    with mx.stream(mx.cpu):
        want = narrow(mx.grad(loss)(on_gpu(a)))
    assert norm(got - want) <= 100 * Real.eps * max(norm(want), 1)
    if Real.numpy == np.float64:
        way = np.random.default_rng(1).standard_normal(a.shape)
        step = 1e-5
        change = loss(on_gpu(a + step * way)) - loss(on_gpu(a - step * way))
        difference = abs(change.item() / (2 * step) - np.sum(got * way))
        assert difference <= 1e-7 * max(norm(got), 1)


BATCHED = {
    "solve": lambda a, x: mx.linalg.solve(a, x),
    "solve_triangular": lambda a, x: mx.linalg.solve_triangular(a, x),
    "det": lambda a, x: mx.linalg.det(x),
    "slogdet": lambda a, x: mx.linalg.slogdet(x)[1],
}


@pytest.mark.parametrize("name", BATCHED)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_gradients_of_batches(name, count):
    """Of matrices whose rows and columns are swapped in memory: as those of each."""
    a, x = definite(3, (count,)) / 3, definite(3, (count,)) / 2

    def slope(a, x):
        return narrow(mx.grad(lambda x: mx.sum(BATCHED[name](a, x) ** 3))(x))

    got = slope(*[on_gpu(adjoint(m).copy()).swapaxes(-1, -2) for m in (a, x)])
    assert got.shape == x.shape
    for i in range(count):
        alone = slope(on_gpu(a[i]), on_gpu(x[i]))
        assert norm(got[i] - alone) <= 100 * Real.eps * max(norm(alone), 1)


NO_GRADIENTS = {
    **CALLS,
    "tri_inv": lambda x: (mx.linalg.tri_inv(x),),
    "pinv": lambda x: (mx.linalg.pinv(x),),
    "nuc": lambda x: (mx.linalg.norm(x, "nuc"),),
}


@pytest.mark.parametrize("name", NO_GRADIENTS)
def test_no_gradients(name):
    """What MLX refuses has its error, on the CPU and here."""

    def error():
        with pytest.raises(ValueError) as e:
            mx.grad(lambda x: mx.sum(NO_GRADIENTS[name](x)[-1]))(on_gpu(definite(3)))
        return str(e.value)

    here = error()
    with mx.stream(mx.cpu):
        assert here == error()
