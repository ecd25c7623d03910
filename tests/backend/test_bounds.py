"""Indices have bounds: a read outside gives 0, a write outside is dropped, a
negative index counts from the end, once. Random calls with hostile indices among
valid ones, against NumPy; arrays beside them keep their bytes.

MLX_VK_TEST_EXAMPLES=n makes n calls of all kinds together instead of a few,
MLX_VK_TEST_SEED another series. The process is one for all: a wild address ends it.
"""

import os

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from processes import python

EXAMPLES = int(os.environ.get("MLX_VK_TEST_EXAMPLES", 0))
SEED = int(os.environ.get("MLX_VK_TEST_SEED", 0))

KINDS = {}
INDEX_TYPES = (np.int32, np.uint32, np.int64, np.uint64, np.int8, np.uint8, np.int16)


def kind(f):
    KINDS[f.__name__] = f
    return f


def hostile(rng, n, dtype):
    """An index outside of n items."""
    info = np.iinfo(dtype)
    far = [n, n + 1, 7 * n, 2**31 - 1, 2**31, 2**32, 2**32 + 1, 2**40, 2**62]
    far += [2**63, 2**64 - 1, info.max]
    if info.min < 0:
        far += [-n - 1, -2 * n, -(2**31), -(2**32), -(2**63), info.min]
    fits = [k for k in far if info.min <= k <= info.max and not -n <= k < n]
    return fits[rng.integers(len(fits))]


def draw(rng, n, size, dtype, distinct=False):
    """`size` indices, some of them hostile. The valid ones of `distinct` name
    different items."""
    info = np.iinfo(dtype)
    valid = rng.permutation(n) if distinct else rng.integers(0, n, size)
    k = []
    for i in range(size):
        at = int(valid[i]) if i < len(valid) else n
        if at >= n or at > info.max or rng.random() < 0.4:
            at = hostile(rng, n, dtype)
        elif info.min <= at - n and info.min < 0 and rng.random() < 0.3:
            at -= n
        k.append(at)
    return np.array(k, dtype=object).astype(dtype)


def resolve(k, n):
    """Where an index leads, and whether it is inside."""
    k = np.asarray(k).astype(object)
    k = np.where(k < 0, k + n, k)
    inside = np.array((k >= 0) & (k < n), dtype=bool)
    return np.where(inside, k, 0).astype(np.int64), inside


def index_type(rng, n):
    fits = [t for t in INDEX_TYPES if np.iinfo(t).max >= n]
    return fits[rng.integers(len(fits))]


def items(rng, shape, dtype=None):
    dtype = dtype or rng.choice([np.float32, np.int32, np.float16, np.uint8])
    return rng.integers(1, 100, shape).astype(dtype)


def equal(y, expected):
    mx.eval(y)
    assert np.array_equal(np.array(y), expected)


def close(y, expected):
    """64 products of numbers of about 1 at most: summed in float32 in any order;
    with float16 the weights are rounded, and so is the sum."""
    bound = 64 * 64 * 2**-23
    if y.dtype == mx.float16:
        bound += 64 * 3 * 2**-11
    y = np.array(y.astype(mx.float32))
    np.testing.assert_allclose(y, expected, rtol=0, atol=bound)


@kind
def take(rng):
    shape = tuple(rng.integers(1, 40, rng.integers(1, 4)))
    axis = int(rng.integers(len(shape)))
    x = items(rng, shape)
    n = shape[axis]
    k = draw(rng, n, int(rng.integers(1, 300)), index_type(rng, n))
    at, inside = resolve(k, n)
    expected = np.take(x, at, axis=axis)
    keep = np.expand_dims(inside, tuple(d for d in range(x.ndim) if d != axis))
    equal(
        mx.take(mx.array(x), mx.array(k), axis=axis),
        np.where(keep, expected, 0).astype(x.dtype),
    )


@kind
def two_indices(rng):
    a, b, c = (int(v) for v in rng.integers(1, 30, 3))
    x = items(rng, (a, b, c))
    size = int(rng.integers(1, 100))
    dtype = index_type(rng, 30)
    i, j = draw(rng, a, size, dtype), draw(rng, b, size, dtype)
    (p, p_in), (q, q_in) = resolve(i, a), resolve(j, b)
    expected = np.where((p_in & q_in)[:, None], x[p, q], 0).astype(x.dtype)
    equal(mx.array(x)[mx.array(i), mx.array(j)], expected)


@kind
def take_along_axis(rng):
    rows, n, m = (int(v) for v in rng.integers(1, 40, 3))
    x = items(rng, (rows, n))
    k = draw(rng, n, rows * m, index_type(rng, n)).reshape(rows, m)
    at, inside = resolve(k, n)
    expected = np.where(inside, np.take_along_axis(x, at, 1), 0).astype(x.dtype)
    equal(mx.take_along_axis(mx.array(x), mx.array(k), axis=1), expected)


@kind
def embedding(rng):
    n, dims = int(rng.integers(1, 60)), 64
    layer = nn.Embedding(n, dims)
    k = draw(rng, n, 20, np.int32)
    at, inside = resolve(k, n)
    equal(layer(mx.array(k)), np.where(inside[:, None], np.array(layer.weight)[at], 0))


@kind
def quantized_embedding(rng):
    n = int(rng.integers(1, 60))
    layer = nn.QuantizedEmbedding(n, 64)
    k = draw(rng, n, 20, np.int32)
    at, inside = resolve(k, n)
    whole = mx.dequantize(layer.weight, layer.scales, layer.biases)
    equal(layer(mx.array(k)), np.where(inside[:, None], np.array(whole)[at], 0))


@kind
def nan_index(rng):
    n = int(rng.integers(1, 60))
    x = items(rng, n, np.float32)
    values = rng.choice([np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0], 30)
    k = mx.array(values.astype(np.float32)).astype(mx.int32)
    at, inside = resolve(np.array(k), n)
    equal(mx.take(mx.array(x), k), np.where(inside, x[at], 0))


@kind
def assign(rng):
    n, width = int(rng.integers(1, 60)), int(rng.integers(1, 9))
    x = items(rng, (n, width))
    k = draw(rng, n, int(rng.integers(1, 80)), index_type(rng, 80), distinct=True)
    at, inside = resolve(k, n)
    # Those that meet write the same.
    v = (np.arange(n)[at][:, None] + np.zeros((1, width), int)).astype(x.dtype)
    y = mx.array(x)
    y[mx.array(k)] = mx.array(v)
    x[at[inside]] = v[inside]
    equal(y, x)


@kind
def reduce_at(rng):
    how = rng.choice(["add", "maximum", "minimum", "multiply"])
    n, width = int(rng.integers(1, 60)), int(rng.integers(1, 9))
    dtype = rng.choice([np.float32, np.int32, np.float16])
    x = items(rng, (n, width), dtype)
    size = int(rng.integers(1, 60))
    k = draw(rng, n, size, index_type(rng, n))
    v = (
        items(rng, (size, width), dtype) % 2 + 1
        if how == "multiply"
        else items(rng, (size, width), dtype) % 8
    )
    if how == "multiply":  # few factors, whose product stays small
        k, v = k[:6], v[:6]
    v = v.astype(dtype)
    at, inside = resolve(k, n)
    y = getattr(mx.array(x).at[mx.array(k)], how)(mx.array(v))
    getattr(np, how).at(x, at[inside], v[inside])
    equal(y, x)


@kind
def put_along_axis(rng):
    rows, n = (int(v) for v in rng.integers(1, 40, 2))
    x = items(rng, (rows, n))
    dtype = index_type(rng, 40)
    m = int(rng.integers(1, n + 1))
    k = np.stack([draw(rng, n, m, dtype, distinct=True) for _ in range(rows)])
    at, inside = resolve(k, n)
    v = at.astype(x.dtype)
    y = mx.put_along_axis(mx.array(x), mx.array(k), mx.array(v), axis=1)
    row = np.broadcast_to(np.arange(rows)[:, None], k.shape)
    x[row[inside], at[inside]] = v[inside]
    equal(y, x)


def starts_of(rng, shape, size):
    """Starts, and where they lead, or None if the slice is not inside."""
    dtype = index_type(rng, 40)
    k = np.array([draw(rng, n, 1, dtype)[0] for n in shape])
    at = [resolve(v, n) for v, n in zip(k, shape)]
    inside = all(ok and p + s <= n for (p, ok), s, n in zip(at, size, shape))
    where = tuple(slice(int(p), int(p) + s) for (p, _), s in zip(at, size))
    return k, where if inside else None


@kind
def slices(rng):
    shape = tuple(int(v) for v in rng.integers(1, 40, 2))
    size = tuple(int(rng.integers(1, max(2, n // 3 + 1))) for n in shape)
    x = items(rng, shape)
    k, where = starts_of(rng, shape, size)
    expected = np.zeros(size, x.dtype) if where is None else x[where]
    equal(mx.slice(mx.array(x), mx.array(k), (0, 1), size), expected)


@kind
def slice_update(rng):
    shape = tuple(int(v) for v in rng.integers(1, 40, 2))
    size = tuple(int(rng.integers(1, max(2, n // 3 + 1))) for n in shape)
    x = items(rng, shape)
    v = items(rng, size, x.dtype)
    k, where = starts_of(rng, shape, size)
    y = mx.slice_update(mx.array(x), mx.array(v), mx.array(k), (0, 1))
    if where is not None:
        x[where] = v
    equal(y, x)


@kind
def masked(rng):
    """A mask may have more places than there are values: the rest stay."""
    n = int(rng.integers(1, 300))
    x = items(rng, n)
    v = items(rng, int(rng.integers(1, n + 1)), x.dtype)
    mask = rng.random(n) < rng.choice([0.1, 0.5, 1.0])
    y = mx.array(x)
    y[mx.array(mask)] = mx.array(v)
    at = np.cumsum(mask) - 1
    put = v[np.clip(at, 0, len(v) - 1)]
    equal(y, np.where(mask & (at < len(v)), put, x))


def products(x, w, left, right):
    (p, p_in), (q, q_in) = resolve(left, len(x)), resolve(right, len(w))
    y = np.einsum("bmk,bkn->bmn", x[p].astype(np.float64), w[q].astype(np.float64))
    return np.where((p_in & q_in)[:, None, None], y, 0)


def rows_and_weights(rng):
    """x, w, and the left and right indices; without left ones each row of x has its
    own right index, in order."""
    dtype = rng.choice([np.float32, np.float16])
    w = rng.uniform(-1, 1, (int(rng.integers(1, 9)), 64, 64)).astype(dtype)
    rows = int(rng.choice([5, 30, 300]))
    right = draw(rng, len(w), rows, np.uint32)
    if rng.random() < 0.5:
        x = rng.uniform(-1, 1, (rows, 1, 64)).astype(dtype)
        return x, w, None, np.sort(right)
    m = int(rng.choice([1, 1, 3, 20]))
    x = rng.uniform(-1, 1, (int(rng.integers(1, 9)), m, 64)).astype(dtype)
    return x, w, draw(rng, len(x), rows, np.uint32), right


def gathered(x, w, left, right):
    left = np.arange(len(x)) if left is None else left
    return products(x, w, left, right)


def indices_of(left, right):
    given = {"lhs_indices": mx.array(left)} if left is not None else {}
    return {
        **given,
        "rhs_indices": mx.array(right),
        "sorted_indices": left is None,
    }


@kind
def gather_mm(rng):
    x, w, left, right = rows_and_weights(rng)
    y = mx.gather_mm(mx.array(x), mx.array(w), **indices_of(left, right))
    close(y, gathered(x, w, left, right))


@kind
def gather_qmm(rng):
    x, w, left, right = rows_and_weights(rng)
    form = {"group_size": 64, "bits": 4}
    transpose = bool(rng.integers(2))
    codes = mx.quantize(mx.array(w), **form)
    whole = np.array(mx.dequantize(*codes, **form))
    y = mx.gather_qmm(
        mx.array(x), *codes, transpose=transpose, **form, **indices_of(left, right)
    )
    whole = whole.transpose(0, 2, 1) if transpose else whole
    close(y, gathered(x, whole, left, right))


@kind
def cross_entropy(rng):
    rows, n = int(rng.integers(1, 20)), int(rng.integers(1, 80))
    x = rng.uniform(-2, 2, (rows, n)).astype(np.float32)
    k = draw(rng, n, rows, np.int32)
    at, inside = resolve(k, n)
    total = np.log(np.exp(x.astype(np.float64)).sum(1))
    expected = total - np.where(inside, x[np.arange(rows), at], 0)
    loss = nn.losses.cross_entropy
    close(loss(mx.array(x), mx.array(k)), expected)
    gradient = mx.grad(lambda v: loss(v, mx.array(k), reduction="sum"))(mx.array(x))
    one = np.zeros((rows, n))
    one[np.arange(rows)[inside], at[inside]] = 1
    close(gradient, np.exp(x.astype(np.float64) - total[:, None]) - one)


def bystanders():
    """Arrays of many sizes, so that some lie beside what a call makes."""
    arrays = [mx.full((n,), 7, dtype=mx.int32) for n in (1, 9, 60, 900, 9000)]
    mx.eval(arrays)
    return arrays


@pytest.mark.parametrize("name", KINDS)
def test_hostile_indices(name):
    count = max(1, EXAMPLES // len(KINDS)) if EXAMPLES else 8
    beside = []
    for i in range(count):
        if i % 200 == 0:
            beside.append(bystanders())
        rng = np.random.default_rng([SEED, list(KINDS).index(name), i])
        try:
            KINDS[name](rng)
        except AssertionError as e:
            raise AssertionError(f"{name}, seed {SEED}, number {i}") from e
    for arrays in beside:
        for a in arrays:
            assert (np.array(a) == 7).all()


EIGHT = """
import mlx.core as mx, mlx.nn as nn, numpy as np
far = mx.array([2**30])
beside = [mx.full((n,), 7, dtype=mx.int32) for n in (4, 100, 4096)]
mx.eval(beside)
def zero(y):
    mx.eval(y)
    assert not np.array(y).any(), y
zero(mx.take(mx.arange(1, 11), far))
zero(nn.Embedding(10, 16)(far))
zero(nn.QuantizedEmbedding(16, 64)(far))
zero(mx.take_along_axis(mx.arange(1, 11), far, axis=0))
a = mx.zeros(10, dtype=mx.int32)
a[far] = 1
zero(a)
zero(mx.put_along_axis(mx.zeros(10, dtype=mx.int32), far, mx.array(1), axis=0))
x, w = mx.ones((1, 1, 64)), mx.ones((2, 64, 64))
zero(mx.gather_qmm(x, *mx.quantize(w), rhs_indices=far, transpose=True))
zero(mx.gather_mm(x, w, rhs_indices=far))
for b in beside:
    assert (np.array(b) == 7).all()
print("whole")
"""


def test_calls_that_ended_the_process():
    """With red zones around each array, which the end of the process checks."""
    run = python("-c", EIGHT, limit=120, MLX_VK_DEBUG="guard")
    assert run.returncode == 0 and "whole" in run.stdout, run.stderr


REPORT = """
import mlx.core as mx, numpy as np
def error_of(make):
    try:
        y = make()
        mx.eval(y)
        mx.synchronize()
    except RuntimeError as e:
        return str(e)
    raise SystemExit(f"no error, but {y}")
def has(text, *parts):
    for p in parts:
        assert p in text, (p, text)
x = mx.arange(10)
mx.eval(x)
assert mx.take(x, mx.array([9, -10])).tolist() == [9, 0]
text = error_of(lambda: mx.take(x, mx.array([3, -11, 4])))
has(text, "MLX_VK_DEBUG=bounds", "Gather", "int32 (10)", "index -11", "position 1")
has(text, "10 items")
k = mx.array(np.array([1, 2, 2**63], np.uint64))
text = error_of(lambda: mx.take_along_axis(x, k, axis=0))
has(text, "GatherAxis", "index 9223372036854775808", "position 2")
text = error_of(lambda: x.at[mx.array([50])].add(1))
has(text, "Scatter", "index 50", "position 0")
text = error_of(lambda: mx.slice(x, mx.array([9]), (0,), (2,)))
has(text, "DynamicSlice", "index 9")
w = mx.quantize(mx.ones((2, 64, 64)))
k = mx.array([0, 2])
one = mx.ones((1, 1, 64))
text = error_of(lambda: mx.gather_qmm(one, *w, rhs_indices=k, transpose=True))
has(text, "GatherQMM", "index 2", "position 1", "2 items")
# The process goes on.
assert mx.take(x, mx.array([9, -10])).tolist() == [9, 0]
print("told")
"""


def test_debug_mode_names_the_index():
    run = python("-c", REPORT, limit=120, MLX_VK_DEBUG="bounds")
    assert run.returncode == 0 and "told" in run.stdout, run.stdout + run.stderr


METAL = """
def kernel(body, header=""):
    return mx.fast.metal_kernel(
        name="own", input_names=["a"], output_names=["y", "n"], source=body,
        header=header, atomic_outputs=False)
def call(f, a):
    return f(inputs=[a], grid=(64, 1, 1), threadgroup=(32, 1, 1),
             output_shapes=[(64,), (1,)], output_dtypes=[mx.float32, mx.int32])
a = mx.arange(64).astype(mx.float32)
mx.eval(a)
plain = "uint i = thread_position_in_grid.x;\\ny[i + PAST] = a[i];\\nn[0] = 1;"
fine = call(kernel(plain.replace("PAST", "0")), a)
assert (np.array(fine[0]) == np.arange(64)).all()
text = error_of(lambda: call(kernel(plain.replace("PAST", "1")), a))
has(text, "CustomKernel", "own", "line 2 of the body", "4 bytes at byte 256 of `y`")
has(text, "ends at byte 256")
# Nearer to `a` than to any array that lies before it and its padding.
text = error_of(lambda: call(kernel(plain.replace("a[i]", "a[int(i) - 16]")
                                    .replace("PAST", "0")), a))
has(text, "line 2 of the body", "of `a`")
# A vector, through a function of the header; an empty array.
header = "float4 four(device const float* p) {\\n"
header += "  return *(device const float4*)(p + 62);\\n}\\n"
body = "y[thread_position_in_grid.x] = four(a).x;\\nn[0] = 1;"
text = error_of(lambda: call(kernel(body, header), a))
has(text, "line 2 of the header", "16 bytes at byte 248 of `a`")
# Views: what their strides reach is theirs.
assert (np.array(call(kernel(plain.replace("PAST", "0")), a[::-1])[0])[0]) == 63
fine = call(kernel(plain.replace("PAST", "0")), a)
assert (np.array(fine[0]) == np.arange(64)).all()
print("told")
"""


def test_debug_mode_checks_metal_kernels():
    start = REPORT[: REPORT.index("x = mx.arange(10)")]
    # guard: no array lies right behind another, where an access would not be seen.
    run = python("-c", start + METAL, limit=120, MLX_VK_DEBUG="bounds,guard")
    assert run.returncode == 0 and "told" in run.stdout, run.stdout + run.stderr
