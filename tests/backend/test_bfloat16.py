"""Rounding to bfloat16 wherever kernels do it: to nearest even, by bits, and NaN
stays NaN with what it carries. NaN among four items, or in a row, takes another
way than numbers alone."""

import mlx.core as mx
import numpy as np
import pytest

from mlx_vulkan.fast import vulkan_kernel

LOWER = [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF]
VALUES = np.array([u << 16 | low for low in LOWER for u in range(1 << 16)], np.uint32)


def rounded(bits):
    up = bits + np.uint32(0x7FFF) + (bits >> 16 & 1)
    nan = bits & 0x7FFFFFFF > 0x7F800000
    return (np.where(nan, bits | 0x400000, up) >> 16).astype(np.uint16)


def inputs(order, n=len(VALUES)):
    """All kinds side by side, or NaN far from all but its own kind."""
    if order == "mixed":
        return np.random.default_rng(0).permutation(VALUES)[:n]
    return VALUES[:n]


def check(y, bits, arithmetic=False):
    """`arithmetic`: y is -x. Devices may then make NaN another, and subnormal
    numbers zero."""
    got = np.array(y.view(mx.uint16))
    want = rounded(bits) ^ np.uint16(0x8000 * arithmetic)
    right = got == want
    if arithmetic:
        right |= (got & 0x7FFF > 0x7F80) & (want & 0x7FFF > 0x7F80)
        right |= (want & 0x7F80 == 0) & (got & 0x7FFF == 0)
    wrong = np.flatnonzero(~right)
    assert not wrong.size, [
        f"{bits[i]:08x}: {got[i]:04x} {want[i]:04x}" for i in wrong[:8]
    ]


@pytest.mark.parametrize("order", ["mixed", "sorted"])
@pytest.mark.parametrize("short", [0, 3])
def test_cast_and_fused(order, short):
    bits = inputs(order, len(VALUES) - short)
    x = mx.array(bits).view(mx.float32)
    check(x.astype(mx.bfloat16), bits)
    # Stored by the first; rounded before it is stored by the second.
    fused = mx.compile(lambda x: (x.astype(mx.bfloat16), -x.astype(mx.bfloat16)))
    for form in x, mx.concatenate([x, x]).reshape(2, -1).T[:, 0]:
        y, z = fused(form)
        check(y, bits)
        check(z, bits, arithmetic=True)


@pytest.mark.parametrize("order", ["mixed", "sorted"])
def test_four_at_once(order):
    k = vulkan_kernel(
        "fours",
        ["x"],
        ["y", "z"],
        """
        uint i = 4 * thread_position_in_grid.x;
        vec4 v = vec4(load(x, i), load(x, i + 1), load(x, i + 2), load(x, i + 3));
        uvec2 w = pack4_bf16(v);
        uvec4 r = floatBitsToUint(round_to_bf16(v));
        for (uint k = 0; k < 4; ++k) {
          store(y, i + k, uint16_t((w[k / 2] >> (k % 2 * 16)) & 0xffffu));
          store(z, i + k, r[k]);
        }
        """,
    )
    bits = inputs(order)
    n = len(bits)
    y, z = k(
        inputs=[mx.array(bits).view(mx.float32)],
        output_shapes=[(n,), (n,)],
        output_dtypes=[mx.uint16, mx.uint32],
        grid=(n // 4, 1, 1),
        threadgroup=(256, 1, 1),
    )
    check(y, bits)
    np.testing.assert_array_equal(np.array(z), rounded(bits).astype(np.uint32) << 16)


@pytest.mark.parametrize("bad", ["nan", "inf"])
@pytest.mark.parametrize("layer", [False, True])
@pytest.mark.parametrize("n", [96, 515, 4096, 40000])
def test_norms(bad, layer, n):
    """What is no number is seen where it is, and changes nothing elsewhere."""
    key = mx.random.key(n)
    x, w, b = (
        mx.random.normal(shape, key=k).astype(mx.bfloat16)
        for shape, k in zip([(6, n), (n,), (n,)], mx.random.split(key, 3))
    )

    def norm(x, w, b):
        y = mx.fast.layer_norm(x, w, b, 1e-5) if layer else mx.fast.rms_norm(x, w, 1e-5)
        return np.array(y.view(mx.uint16)), np.array(mx.isnan(y))

    want, none = norm(x, w, b)
    assert not none.any()
    x[2, n - 1] = float(bad)
    w[n // 2] = float(bad)
    w[3] = -float(bad)
    b[7] = float(bad)
    got, nan = norm(x, w, b)
    assert nan[2].all() or (bad == "inf" and not layer)
    for row in (0, 1, 3, 4, 5):
        touched = [n // 2, 3] + [7] * layer
        assert nan[row, touched].all() or bad == "inf"
        np.testing.assert_array_equal(
            np.delete(got[row], touched), np.delete(want[row], touched)
        )
