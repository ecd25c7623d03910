"""Factorizations, inverses and eigenvalues of batches, one block and several."""

import numpy as np

from . import Case

FEW = ("contiguous", "rows_padded", "offset")
# 84 and 252 units in the last place.
CLOSE = dict(
    dtypes=("float32", "float64"),
    rtol={"float32": 1e-5, "float64": 1.9e-14},
    atol={"float32": 3e-5, "float64": 5.6e-14},
)


def definite(rows):
    def make(rng, dtype):
        a = rng.standard_normal((2, rows, rows)) / np.sqrt(rows)
        return [a @ a.swapaxes(-1, -2) + np.eye(rows)]

    return make


def plain(rows, cols=None):
    return lambda rng, dtype: [rng.standard_normal((2, rows, cols or rows))]


def lu_product(mx, x):
    rows, lower, upper = mx.linalg.lu(x)
    return mx.take_along_axis(lower, rows[..., None], -2) @ upper


def qr_products(mx, x):
    q, r = mx.linalg.qr(x)
    return q @ r, q.swapaxes(-1, -2) @ q


def with_eye(x):
    n = x.shape[-1]
    return x, np.broadcast_to(np.eye(n), (len(x), n, n))


def eigen_product(mx, x):
    values, vectors = mx.linalg.eigh(x)
    product = (vectors * values[..., None, :]) @ vectors.swapaxes(-1, -2)
    return product, mx.linalg.eigvalsh(x)


def svd_product(mx, x):
    u, s, vt = mx.linalg.svd(x)
    return (u * s[..., None, :]) @ vt


ROWS = [
    ("cholesky", definite, lambda mx, x: mx.linalg.cholesky(x), np.linalg.cholesky),
    ("inv", definite, lambda mx, x: mx.linalg.inv(x), np.linalg.inv),
    (
        "tri_inv",
        definite,
        lambda mx, x: mx.linalg.tri_inv(x),
        lambda x: np.linalg.inv(np.tril(x)),
    ),
    ("lu", plain, lu_product, lambda x: x),
    ("qr", plain, qr_products, with_eye),
    ("eigh", definite, eigen_product, lambda x: (x, np.linalg.eigvalsh(x))),
    ("svd", plain, svd_product, lambda x: x),
]
CASES = [
    Case(
        f"{name}_{n}",
        make(n),
        fn,
        oracle,
        **CLOSE,
        layouts=FEW,
        tags=("linalg",),
    )
    for name, make, fn, oracle in ROWS
    for n in (7, 50, 70, 200)
    if n < 70 or name == "eigh" or (name == "svd" and n == 70)
]
# Panels in more shared memory, and in none; LU's with more rows per invocation.
CASES += [
    Case(
        f"{name}_{rows}x{cols}",
        plain(rows, cols),
        fn,
        oracle,
        **CLOSE,
        layouts=("contiguous",),
        tags=("linalg",),
    )
    for name, fn, oracle, shapes in (
        ("lu", lu_product, lambda x: x, [(100, 40), (200, 40), (300, 40)]),
        ("lu", lu_product, lambda x: x, [(600 << i, 9) for i in range(5)]),
        ("qr", qr_products, with_eye, [(100, 40), (300, 40)]),
    )
    for rows, cols in shapes
]
