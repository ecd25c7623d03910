"""Arrays beyond 2^32 bytes and items, where the device has the memory.

x[i, j] = (7 i + 3 j) mod 61 - 30, exact in every dtype, so that the rows around each
boundary of 32 bits can be computed by NumPy alone.
"""

import fcntl
import pathlib
import tempfile

import mlx.core as mx
import numpy as np
import pytest

COLUMNS = 8192
ROWS = (1 << 32) // COLUMNS + 1029  # beyond 2^32 items
GIB = 1 << 30


@pytest.fixture(autouse=True)
def room():
    info = mx.device_info(mx.gpu)
    if info["max_buffer_length"] < 20 * GIB or info["memory_size"] < 100 * GIB:
        pytest.skip("needs a GPU of 100 GiB and arrays of 20 GiB")
    # One at a time, whatever runs beside: each takes some 50 GiB.
    with open(pathlib.Path(tempfile.gettempdir()) / "mlx-vk-large-arrays", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mx.clear_cache()
        yield
        mx.clear_cache()


def probes(rows, columns, itemsize):
    """Rows at both ends and beside 2^31 and 2^32 bytes and items."""
    edges = [0, rows - 1]
    for bits in (31, 32):
        for items in (1 << bits, (1 << bits) // itemsize):
            at = items // columns
            edges += [at - 1, at, at + 1]
    return sorted({e for e in edges if 0 <= e < rows})


def expected(rows, columns=COLUMNS):
    i = np.asarray(rows, np.int64)[:, None]
    return (7 * i + 3 * np.arange(columns)[None]) % 61 - 30.0


def large(dtype, rows=ROWS, columns=COLUMNS):
    i = (mx.arange(rows) * 7 % 61).astype(dtype)[:, None]
    j = (mx.arange(columns) * 3 % 61).astype(dtype)[None]
    x = i + j
    x = mx.where(x > 60, x - 61, x) - 30
    mx.eval(x)
    return x


def rows_of(x, rows):
    x = mx.concatenate([x[r : r + 1] for r in rows])
    return np.array(x.astype(mx.float32) if x.dtype != mx.bool_ else x, np.float64)


def agrees(y, want, rows, tolerance=0.0):
    got = rows_of(y, rows)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


DTYPES = [mx.bfloat16, mx.int8]


@pytest.mark.parametrize("dtype", DTYPES)
def test_elementwise_and_copies(dtype):
    x = large(dtype)
    at = probes(ROWS, COLUMNS, dtype.size)
    want = expected(at)
    agrees(x, want, at)
    agrees(mx.abs(x), np.abs(want), at)
    agrees(mx.contiguous(x[:, ::-1]), want[:, ::-1], at)
    agrees(mx.contiguous(x[::-1])[::-1], want, at)
    agrees(x > 3, want > 3, at)
    agrees(mx.concatenate([x[: ROWS // 2], x[ROWS // 2 :]]), want, at)
    flat = mx.contiguous(x.T)
    mx.eval(flat)
    del x
    agrees(flat.T, want, at)


def test_wider_and_narrower():
    x = large(mx.int8)
    at = probes(ROWS, COLUMNS, 4)
    y = x.astype(mx.float32)
    agrees(y, expected(at), at)
    agrees((y * 2).astype(mx.int8), expected(at) * 2, at)


def test_fill_and_update():
    x = mx.full((ROWS, COLUMNS), 3, mx.int8)
    at = probes(ROWS, COLUMNS, 1)
    x[at[-1], 5:9] = 7
    x[at[1] : at[1] + 1] = mx.zeros((1, COLUMNS), mx.int8)
    want = np.full((len(at), COLUMNS), 3.0)
    want[-1, 5:9] = 7
    want[1] = 0
    agrees(x, want, at)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions(dtype):
    x = large(dtype)
    at = probes(ROWS, COLUMNS, dtype.size)
    want = expected(at)
    agrees(mx.max(x, axis=1)[:, None], want.max(1)[:, None], at)
    if dtype == mx.int8:
        agrees(mx.sum(x, axis=1)[:, None], want.sum(1)[:, None], at)
    agrees(mx.argmax(x, axis=1)[:, None], want.argmax(1)[:, None], at)
    columns = mx.min(x, axis=0)
    assert np.array(columns.astype(mx.float32)).tolist() == [-30.0] * COLUMNS
    assert mx.max(x).item() == 30
    x[at[-1], 17] = 99
    assert mx.max(x).item() == 99
    assert mx.argmax(x.reshape(-1, COLUMNS), axis=0)[17].item() == at[-1]
    assert mx.max(x, axis=0)[17].item() == 99


def test_rows_of_a_network():
    x = large(mx.bfloat16)
    at = probes(ROWS, COLUMNS, 2)
    want = expected(at)
    e = np.exp(want - want.max(1, keepdims=True))
    agrees(mx.softmax(x, axis=-1), e / e.sum(1, keepdims=True), at, 2**-8)
    lse = want.max(1, keepdims=True) + np.log(e.sum(1, keepdims=True))
    agrees(mx.logsumexp(x, axis=-1, keepdims=True), lse, at, 2**-8)
    rms = want / np.sqrt((want**2).mean(1, keepdims=True) + 1e-5)
    agrees(mx.fast.rms_norm(x, mx.ones(COLUMNS, mx.bfloat16), 1e-5), rms, at, 2**-7)
    c = want - want.mean(1, keepdims=True)
    norm = c / np.sqrt((c**2).mean(1, keepdims=True) + 1e-5)
    agrees(mx.fast.layer_norm(x, None, None, 1e-5), norm, at, 2**-6)
    agrees(mx.sort(x, axis=-1), np.sort(want, axis=1), at)


def test_scans():
    x = large(mx.int8)
    at = probes(ROWS, COLUMNS, 1)
    agrees(mx.cummax(x, axis=1), np.maximum.accumulate(expected(at), axis=1), at)


def test_gather_and_scatter():
    x = large(mx.bfloat16)
    at = probes(ROWS, COLUMNS, 2)
    want = expected(at)
    rows = mx.array(at)
    got = mx.take(x, rows, axis=0)
    np.testing.assert_array_equal(np.array(got.astype(mx.float32)), want)
    columns = mx.full((ROWS, 1), 11, mx.int32)
    agrees(mx.take_along_axis(x, columns, axis=1), want[:, 11:12], at)
    y = x.at[rows].add(mx.ones((len(at), COLUMNS), mx.bfloat16))
    del x
    agrees(y, want + 1, at)


def test_products():
    k = 64
    rows = (1 << 32) // 4096 + 5
    a = large(mx.bfloat16, rows, k)
    b = mx.array(expected(range(4096), k) / 32).astype(mx.bfloat16)
    at = probes(rows, 4096, 2)
    want = expected(at, k) @ (expected(range(4096), k) / 32).T
    agrees(a @ b.T, want, at, 0.26)  # half a unit of 64 and more in bf16
    w, s, z = mx.quantize(b, group_size=64, bits=8)
    d = np.array(mx.dequantize(w, s, z, group_size=64, bits=8).astype(mx.float32))
    y = mx.quantized_matmul(a, w, s, z, transpose=True, group_size=64, bits=8)
    agrees(y, expected(at, k) @ d.T.astype(np.float64), at, 0.26)


def test_products_of_large_operands():
    x = large(mx.bfloat16)
    at = probes(ROWS, COLUMNS, 2)
    want = expected(at)
    w = np.zeros((COLUMNS, 64))
    w[np.arange(64) * 100, np.arange(64)] = 1
    v = mx.array(w).astype(mx.bfloat16)
    agrees(x @ v, want @ w, at)
    agrees((x @ v[:, :1]), (want @ w)[:, :1], at)
    one = mx.zeros((ROWS,), mx.bfloat16)
    one[at[-1]] = 1
    got = np.array((one[None] @ x).astype(mx.float32))
    np.testing.assert_array_equal(got, want[-1:])


def test_quantized_weights():
    """Codes beyond 2^32 items, in 2 GiB and more, and their dequantized form."""
    x = large(mx.bfloat16)
    at = probes(ROWS, COLUMNS, 2)
    w, s, z = mx.quantize(x, group_size=64, bits=8)
    del x
    y = mx.dequantize(w, s, z, group_size=64, bits=8)
    step = 60 / 255
    agrees(y, expected(at), at, step)
    one = np.zeros((1, COLUMNS))
    one[0, 77] = 1
    v = mx.array(one).astype(mx.bfloat16)
    p = mx.quantized_matmul(v, w, s, z, transpose=True, group_size=64, bits=8)
    agrees(p.T, expected(at)[:, 77:78], at, step)


def test_attention_over_a_large_cache():
    heads, keys, dim = 8, (1 << 32) // (8 * 128) + 300, 128
    k = mx.zeros((1, heads, keys, dim), mx.bfloat16)
    v = mx.zeros((1, heads, keys, dim), mx.bfloat16)
    k[0, -1, -1, 0] = 1
    v[0, -1, -1, 3] = 2
    for length in (1, 40):
        q = mx.zeros((1, heads, length, dim), mx.bfloat16)
        q[0, -1, :, 0] = 1
        y = mx.fast.scaled_dot_product_attention(q, k, v, scale=100.0)
        got = np.array(y.astype(mx.float32))
        want = np.zeros_like(got)
        want[0, -1, :, 3] = 2
        np.testing.assert_allclose(got, want, atol=2**-7)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_attention_over_strides_beyond_32_bits(axis):
    """Of batches, heads or keys; one query, and several."""
    apart, dim = (1 << 25) + 1, 64
    shape = [2 if d == axis else 1 for d in range(3)]
    base = mx.zeros((*shape, apart, dim), mx.bfloat16)
    base[-1, -1, -1, 0, 1] = 3
    k = base[..., 0, :]
    for length in (1, 40):
        q = mx.zeros((shape[0], shape[1], length, dim), mx.bfloat16)
        y = mx.fast.scaled_dot_product_attention(q, k, k, scale=1.0)
        # Of two keys the mean.
        want = np.zeros(y.shape)
        want[(slice(-1, None),) * 2 + (slice(None), 1)] = 1.5 if axis == 2 else 3
        np.testing.assert_array_equal(np.array(y.astype(mx.float32)), want)


def test_loss_of_large_logits():
    import mlx.nn as nn

    rows, classes = 32768 + 77, 151936
    x = large(mx.bfloat16, rows, classes)
    targets = mx.arange(rows) % classes
    at = probes(rows, classes, 2)
    want = expected(at, classes)
    top = want.max(1)
    lse = top + np.log(np.exp(want - top[:, None]).sum(1))
    loss = lse - want[np.arange(len(at)), np.array(at) % classes]
    got = nn.losses.cross_entropy(x, targets)[:, None]
    agrees(got, loss[:, None], at, 2**-6)
    grad = mx.grad(lambda x: nn.losses.cross_entropy(x, targets).sum())(x)
    p = np.exp(want - lse[:, None])
    p[np.arange(len(at)), np.array(at) % classes] -= 1
    agrees(grad, p, at, 2**-7)


def test_random_and_compiled():
    x = mx.random.bernoulli(0.5, (ROWS, COLUMNS), key=mx.random.key(3))
    sums = [mx.sum(x[r]).item() for r in (0, ROWS // 2, ROWS - 1)]
    assert all(abs(n - COLUMNS / 2) < 5 * COLUMNS**0.5 / 2 for n in sums)
    assert not np.array_equal(np.array(x[0]), np.array(x[-1]))
    x = x.astype(mx.int8)
    y = mx.compile(lambda x: mx.where(x > 0, x * 2, x + 1))(x)
    for r in probes(ROWS, COLUMNS, 1):
        a, b = np.array(x[r]), np.array(y[r])
        np.testing.assert_array_equal(b, np.where(a > 0, a * 2, a + 1))


def test_rope_and_transforms():
    heads, length, dim = 32, (1 << 32) // (32 * 128) + 100, 128
    x = mx.zeros((1, heads, length, dim), mx.bfloat16)
    x[0, -1, -1, 0] = 1
    y = mx.fast.rope(x, dim, traditional=False, base=10000.0, scale=1.0, offset=0)
    got = np.array(y[0, -1, -1].astype(mx.float32))
    angle = length - 1.0
    assert abs(got[0] - np.cos(angle)) < 0.05 and abs(got[64] - np.sin(angle)) < 0.05
    del x, y
    rows = (1 << 29) // 1024 + 3  # of complex64: 2^32 bytes
    z = mx.fft.fft(mx.ones((rows, 1024)))
    want = np.zeros((2, 1024))
    want[:, 0] = 1024
    agrees(mx.abs(z), want, [0, rows - 1], 1e-3)
