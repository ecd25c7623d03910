"""Kernels of packages that run as one of this backend's own."""

import re

import mlx.core as mx
import numpy as np
import pytest
from conftest import ROOT
from mlx_lm.models import gated_delta

KNOWN = (ROOT / "src" / "ops" / "custom" / "meaning.cpp").read_text()


def fingerprint(kernel):
    """As fingerprint() of src/ops/custom/meaning.cpp."""
    comments = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
    parts = (kernel["header"], kernel["source"])
    text = "\n".join(re.sub(r"[ \n\t]", "", comments.sub("", x)) for x in parts)
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"0x{value:016x}"


def test_gated_delta(extracted):
    """The table has each kernel of the packages that is one: all but those with a
    mask and those that give every step's state."""
    found = {}
    for kernel in extracted:
        name = kernel["name"]
        if re.fullmatch("gated_delta_step(?!.*(mask|states)).*", name):
            found[fingerprint(kernel)] = f"{kernel['package']}: {name}"
    assert len(found) >= 4
    missing = {f: name for f, name in found.items() if f not in KNOWN}
    assert not missing, f"add to src/ops/custom/meaning.cpp: {missing}"


def rule(steps, gates=(), key_dim=128, dtype=mx.float32):
    """Random operands in two batches; v is no row-contiguous array."""
    rng = np.random.default_rng(steps)
    B, Hk, Hv, Dv = 2, 1, 2, 24
    k = rng.normal(size=(B, steps, Hk, key_dim))
    k /= np.linalg.norm(k, axis=-1, keepdims=True)
    q, v = (rng.normal(size=(B, steps, *s)) for s in ((Hk, key_dim), (Hv, 2 * Dv)))
    g, beta = (rng.uniform(0.3, 1, (B, steps, Hv, *s)) for s in (gates, ()))
    state = rng.normal(size=(B, Hv, Dv, key_dim))
    q, k, v, g, beta, state = (
        mx.array(x.astype(np.float32)) for x in (q, k, v, g, beta, state)
    )
    q, k, v, beta = (x.astype(dtype) for x in (q, k, v, beta))
    return q, k, v[..., ::2], g, beta, state


def all_equal(a, b):
    return all(mx.array_equal(x, y) for x, y in zip(a, b))


@pytest.mark.parametrize("gates", [(), (128,)])
def test_gated_delta_has_the_bits_of_gated_delta_update(gates):
    operands = rule(19, gates)
    mine = gated_delta.gated_delta_kernel(*operands)
    *most, state = operands
    assert all_equal(mine, mx.fast.gated_delta_update(*most, initial_state=state))
    for kernel in ("unpacked", "xtree"):
        if not gates or kernel == "unpacked":
            other = getattr(gated_delta, f"gated_delta_kernel_{kernel}")
            assert all_equal(mine, other(*operands))


@pytest.mark.parametrize("dtype", [mx.float16, mx.bfloat16])
def test_gates_keep_their_type(dtype):
    """They are float32 beside narrower operands; the state shows what is lost."""
    operands = rule(40, dtype=dtype)
    _, state = gated_delta.gated_delta_kernel(*operands)
    wide = [x.astype(mx.float32) for x in operands]
    _, exact = gated_delta.gated_delta_ops(*wide)
    assert mx.abs(state - exact).max() <= 40 * 2**-23 * mx.abs(exact).max()


def test_steps_are_what_the_kernel_is_told():
    """T is an argument of the kernel's, whatever the arrays' shapes."""
    q, k, v, g, beta, state = (x[:1] for x in rule(24))
    v = mx.contiguous(v)
    kernel = gated_delta._gated_delta_kernel
    call = dict(
        template=[("InT", q.dtype), ("StT", state.dtype)]
        + [("Dk", 128), ("Dv", 24), ("Hk", 1), ("Hv", 2)],
        grid=(32, 24, 2),
        threadgroup=(32, 4, 1),
        output_shapes=[v.shape, state.shape],
        output_dtypes=[q.dtype, state.dtype],
    )
    y, s = kernel(inputs=[q, k, v, g, beta, state, 20], **call)
    parts = [x[:, :20] for x in (q, k, v, g, beta)]
    want = mx.fast.gated_delta_update(*parts, initial_state=state)
    assert all_equal((y[:, :20], s), want)
    _, s = kernel(inputs=[q, k, v, g, beta, state, 0], **call)
    assert mx.array_equal(s, state)
