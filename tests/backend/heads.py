"""What a decode step does to heads, for test_heads.py: prints a hash and the
joined records of each case."""

import hashlib
import itertools
import json
import os

import mlx.core as mx
import numpy as np

from mlx_vulkan import native

FORMS = {
    # B, L, heads of q, of k, D, turned dims
    "decode": (1, 1, 16, 8, 128, 128),
    "gemma": (1, 1, 4, 1, 256, 256),
    "partial": (1, 1, 6, 3, 80, 32),
    "odd": (1, 1, 3, 3, 13, 6),
    "long": (1, 1, 2, 2, 520, 512),
    "rows": (1, 3, 8, 2, 64, 64),
    "batch": (3, 1, 8, 2, 64, 64),
    "batch rows": (2, 5, 5, 2, 36, 20),
    "many rows": (1, 70, 8, 4, 160, 160),
}
DTYPES = {"f32": mx.float32, "f16": mx.float16, "bf16": mx.bfloat16}


def special(x):
    """The first head with what kernels may mistake."""
    x.reshape(-1)[:7] = [0, -0.0, 1e-7, np.inf, -np.inf, np.nan, 6e4]
    return x


def step(form, dtype, norm, traditional, freqs, fresh, seed):
    B, L, N, K, D, dims = form
    rng = np.random.default_rng(seed)

    def array(*shape):
        x = rng.normal(size=shape).astype(np.float32)
        return mx.array(special(x) if len(shape) > 2 else x).astype(dtype)

    q, k, v = (array(B, L, n * D) for n in (N, K, K))
    keys, values = (array(B, K, L + 6, D) for _ in range(2))
    weights = [array(D) if norm == "weight" else None for _ in range(2)]
    offset = mx.array(rng.integers(0, 5000, B).astype(np.int32)) if B > 1 else 4097
    turn = dict(traditional=traditional, scale=0.5, offset=offset, base=1e4)
    if freqs:
        freqs = (1 + 99 * rng.random(dims // 2)).astype(np.float32)
        turn |= dict(base=None, freqs=mx.array(freqs))
    mx.eval(q, k, v, keys, values, weights, turn.get("freqs", q))
    if fresh:  # so that norm and turn are in place
        q, k, v = -q, -k, -v

    def heads(x, n):
        return x.reshape(B, L, n, D)

    q, k, v = heads(q, N), heads(k, K), heads(v, K)
    if norm:
        q, k = (mx.fast.rms_norm(x, w, 1e-6) for x, w in zip((q, k), weights))
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
    q, k = (mx.fast.rope(x, dims, **turn) for x in (q, k))
    keys[..., 3 : 3 + L, :] = k
    values[..., 3 : 3 + L, :] = v
    mx.eval(q, keys, values)
    bits = hashlib.sha256()
    for x in (q, k, keys, values):
        wide = np.array(x.astype(mx.float32))
        bits.update(np.where(np.isnan(wide), np.float32(np.nan), wide).tobytes())
    return bits.hexdigest()


def main():
    mx.set_default_device(mx.gpu)
    found = {}
    norms, flags = ("", "plain", "weight"), (False, True)
    kinds = list(itertools.product(norms, flags, flags, flags))
    for i, (name, dtype) in enumerate(itertools.product(FORMS, DTYPES)):
        # Two of the kinds, or all.
        for j, kind in enumerate(kinds):
            if os.environ.get("MLX_VK_TEST_FULL") or (5 * i + j) % 12 == 0:
                before = native.counters()["rewrites_rope"]
                bits = step(FORMS[name], DTYPES[dtype], *kind, seed=i)
                joined = native.counters()["rewrites_rope"] - before
                found[f"{name} {dtype} {kind}"] = [bits, joined]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
