"""Outputs that take over an input's memory: nothing may be read after it was
written over, and nothing that is still needed may be given away. Every row of
mlx_vulkan.cases is checked donated as well; here are the shapes of reuse."""

import pathlib

import mlx.core as mx
import numpy as np
import pytest
from processes import output_of


def temporary(values):
    """A GPU array that only the caller refers to."""
    return mx.concatenate([mx.array(values[:1]), mx.array(values[1:])])


def check(got, want):
    np.testing.assert_allclose(np.array(got), want, rtol=1e-5, atol=1e-5)


@pytest.fixture
def x():
    rng = np.random.default_rng(0)
    return rng.normal(size=(33, 65)).astype(np.float32)


def updates_in_place():
    """Arrays that the host made, of which the GPU writes a part."""
    n = 20_000  # beyond the arrays that are mapped in every model
    rows = mx.array([0, 77, n - 1])
    mask = np.zeros(n, bool)
    mask[[3, 300]] = True

    def scatter(a):
        a[rows] = 5
        return a

    def piece(a):
        a[5:90:3] = 6
        return a

    def masked(a):
        a[mx.array(mask)] = mx.array([7, 8], a.dtype)
        return a

    updates = {
        "scatter": scatter,
        "slice": piece,
        "masked": masked,
        "scatter_axis": lambda a: mx.put_along_axis(a, rows, mx.array(9, a.dtype), 0),
        "dynamic_slice": lambda a: mx.slice_update(
            a, mx.zeros((4,), a.dtype), mx.array([50]), (0,)
        ),
        "add": lambda a: a.at[rows].add(10),
    }
    for name, update in updates.items():
        want = np.arange(n, dtype=np.int32)
        with mx.stream(mx.cpu):
            expected = np.array(update(mx.array(want)))
        for viewed in (False, True):
            a = mx.array(want)
            if viewed:
                np.array(a)
            held = [a]
            del a
            got = np.array(update(held.pop()))
            np.testing.assert_array_equal(got, expected, f"{name}, {viewed}")
        # What the GPU made, the host has read, and the GPU then updates.
        a = mx.array(want) * 1
        np.array(a)
        held = [a]
        del a
        got = np.array(update(held.pop()))
        np.testing.assert_array_equal(got, expected, f"{name}, of the GPU")


@pytest.mark.parametrize(
    "model",
    [
        {"MLX_VK_MEMORY": "discrete"},
        {"MLX_VK_MEMORY": "uncached"},
        {"MLX_VK_DEBUG": "noncoherent", "MLX_VK_TEST": "small_buffer=0"},
    ],
    ids=lambda model: "-".join(model.values()),
)
def test_updates_in_place(gpu, model):
    code = "import test_donation as t; t.updates_in_place()"
    output_of("-c", code, folder=pathlib.Path(__file__).resolve().parent, **model)


def test_both_operands_are_the_same_array(x):
    check((lambda t: t * t)(temporary(x)), x * x)
    check(
        (lambda t: t + mx.flip(t, 0) if hasattr(mx, "flip") else t + t[::-1])(
            temporary(x)
        ),
        x + x[::-1],
    )
    check((lambda t: t[:, :33] @ t[:33, :33])(temporary(x)), x[:, :33] @ x[:33, :33])


def test_broadcast_operand_is_not_overwritten(x):
    row = x[:1]
    check(temporary(x) + mx.array(row), x + row)
    check(temporary(row) + mx.array(x), row + x)
    column = x[:, :1]
    check(
        mx.broadcast_to(temporary(column), x.shape) * 2,
        np.broadcast_to(column * 2, x.shape),
    )


def test_transposed_input(x):
    check(mx.exp(temporary(x).T), np.exp(x.T))
    t = temporary(x)
    check(t.T - mx.array(x.T), np.zeros_like(x.T))


def test_view_keeps_the_buffer(x):
    t = temporary(x)
    tail = t[5:]
    y = mx.negative(t)
    del t
    mx.eval(y)
    check(tail, x[5:])
    check(y, -x)


def test_softmax_norms_and_scans_in_place(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    check(mx.softmax(temporary(x), axis=-1), e / e.sum(-1, keepdims=True))
    check(mx.cumsum(temporary(x), axis=0), np.cumsum(x, 0))
    check(
        mx.cumsum(temporary(x), axis=1, reverse=True), np.cumsum(x[:, ::-1], 1)[:, ::-1]
    )
    check(mx.sort(temporary(x), axis=0), np.sort(x, 0))
    mean = (x * x).mean(-1, keepdims=True)
    ones = mx.ones((65,))
    check(mx.fast.rms_norm(temporary(x), ones, 1e-5), x / np.sqrt(mean + 1e-5))


def test_other_types_of_the_same_size(x):
    bits = x.view(np.int32)
    check(mx.view(temporary(x), mx.int32) & 1, bits & 1)
    assert ((temporary(x) > 0) == mx.array(x > 0)).all().item()
    t = temporary(bits)
    check(t.astype(mx.float32), bits.astype(np.float32))


def test_slice_update_in_place(x):
    want = x.copy()
    t = temporary(x)
    for i in range(10):
        t[i : i + 3, i::7] = float(i)
        want[i : i + 3, i::7] = i
    check(t, want)
    # Overlap: the update comes from the array itself.
    t = temporary(x)
    t[1:] = t[:-1]
    want = x.copy()
    want[1:] = x[:-1]
    check(t, want)


def test_kept_reference_forbids_donation(x):
    t = temporary(x)
    mx.eval(t)
    y = t + 1
    z = mx.tanh(y) * y
    mx.eval(z)
    check(t, x)
    check(y, x + 1)
    check(z, np.tanh(x + 1) * (x + 1))


def test_gradients_reuse_nothing_they_need(x):
    def loss(w):
        h = mx.maximum(mx.array(x) @ w, 0)
        return mx.sum(mx.softmax(h, axis=-1) * h)

    w = np.random.default_rng(1).normal(size=(65, 20)).astype(np.float32)
    grad = np.array(mx.grad(loss)(mx.array(w)))
    a, b = x.astype(np.float64), w.astype(np.float64)
    h = np.maximum(a @ b, 0)
    p = np.exp(h - h.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    mean = (p * h).sum(-1, keepdims=True)
    want = a.T @ (p * (1 + h - mean) * (h > 0))
    # An item of h is off by 65 roundings of |x| |w|, which changes the probabilities
    # of its row by a factor of twice that, and h and the mean by itself; some 40
    # roundings follow, and one for each row that is summed.
    off = 65 * 2.0**-24 * (abs(a) @ abs(b)).max(-1, keepdims=True)
    size = p * (1 + h + mean)
    bound = abs(a).T @ (size * (4 * off + (40 + len(x)) * 2.0**-24) + 2 * p * off)
    assert (abs(grad - want) <= bound).all()
