"""Expected results of operations, in NumPy."""

import numpy as np


def update(op, spot):
    """x with `spot` updated by u; `spot` may be a function of the indices."""

    def fn(mx, x, u, *i):
        where = spot(*i) if callable(spot) else spot
        if op != "set":
            return getattr(x.at[where], op)(u)
        # Not x itself: x[...] = u would change the caller's array.
        x = mx.array(x)
        x[where] = u
        return x

    return fn


def np_masked(x, u, mask):
    x = x.copy()
    x[mask] = u
    return x


def np_sort(x, axis):
    return np.sort(x, axis, kind="stable")


def np_argsort(x, axis):
    return np.argsort(x, axis, kind="stable").astype(np.uint32)


def np_softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def np_logsumexp(x):
    top = np.max(x, axis=-1)
    safe = np.where(np.isinf(top), 0, top)
    total = np.log(np.sum(np.exp(x - safe[..., None]), axis=-1)) + safe
    return np.where(np.isinf(top), top, total)


def np_cross_entropy(x, t):
    picked = np.take_along_axis(x, (t % x.shape[-1])[..., None], -1)[..., 0]
    return np_logsumexp(x) - picked


def np_cross_entropy_vjp(x, t, g):
    onehot = np.arange(x.shape[-1]) == (t % x.shape[-1])[..., None]
    return g.astype(np.float64)[..., None] * (np_softmax(x) - onehot)


def butterflies(x):
    """The Hadamard transform of rows of a power of two."""
    n = x.shape[-1]
    y, h = x.reshape(-1, n), 1
    while h < n:
        y = y.reshape(-1, n // (2 * h), 2, h)
        y = np.stack([y[:, :, 0] + y[:, :, 1], y[:, :, 0] - y[:, :, 1]], 2)
        h *= 2
    return y.reshape(x.shape) / np.sqrt(n)


def gated_delta(q, k, v, g, beta, s):
    """The gated delta rule; g is a gate a head, or one for each of its columns."""
    repeat = v.shape[2] // q.shape[2]
    q, k = (np.repeat(x, repeat, 2) for x in (q, k))
    if g.ndim == 3:
        g = g[..., None]
    s, out = s.astype(np.float64), np.zeros(v.shape)
    for t in range(q.shape[1]):
        s = s * g[:, t, :, None, :]
        delta = v[:, t] - np.einsum("bhvk,bhk->bhv", s, k[:, t])
        delta = delta * beta[:, t][..., None]
        s = s + delta[..., None] * k[:, t][:, :, None, :]
        out[:, t] = np.einsum("bhvk,bhk->bhv", s, q[:, t])
    return out, s


def gated_delta_vjp(q, k, v, g, beta, s, cotan, ds):
    """The gradients of all six, from the cotangents of the output and the state."""
    shape, repeat = q.shape, v.shape[2] // q.shape[2]
    q, k = (np.repeat(x, repeat, 2) for x in (q, k))
    gates = g[..., None] if g.ndim == 3 else g
    states = [s.astype(np.float64)]
    for t in range(shape[1]):
        one = slice(t, t + 1)
        step = [x[:, one] for x in (q, k, v, g, beta)]
        states.append(gated_delta(*step, states[-1])[1])
    dq, dk, dv = (np.zeros(x.shape) for x in (q, k, v))
    dg, dbeta, ds = np.zeros(g.shape), np.zeros(beta.shape), ds.astype(np.float64)
    for t in reversed(range(shape[1])):
        kt, before = k[:, t][:, :, None], states[t]
        gate, b = gates[:, t, :, None, :], beta[:, t][..., None]
        a = before * gate
        error = v[:, t] - np.einsum("bhvk,bhk->bhv", a, k[:, t])
        dq[:, t] = np.einsum("bhvk,bhv->bhk", states[t + 1], cotan[:, t])
        ds = ds + cotan[:, t][..., None] * q[:, t][:, :, None]
        ddelta = np.einsum("bhvk,bhk->bhv", ds, k[:, t])
        dv[:, t], dbeta[:, t] = ddelta * b, (ddelta * error).sum(-1)
        dk[:, t] = np.einsum("bhvk,bhv->bhk", ds, error * b)
        dk[:, t] -= np.einsum("bhvk,bhv->bhk", a, dv[:, t])
        da = ds - dv[:, t][..., None] * kt
        each = (da * before).sum(2)
        dg[:, t] = each if g.ndim == 4 else each.sum(-1)
        ds = da * gate
    grouped = (*shape[:3], repeat, shape[3])
    return dq.reshape(grouped).sum(3), dk.reshape(grouped).sum(3), dv, dg, dbeta, ds


def qkv(b, heads, kv_heads, queries, keys, dim, value_dim=None):
    """The shapes of attention's operands."""
    return (
        (b, heads, queries, dim),
        (b, kv_heads, keys, dim),
        (b, kv_heads, keys, value_dim or dim),
    )
