"""Softmax, logsumexp, norms, rotary embeddings, cross entropy, and gradients."""

import numpy as np

from . import FLOATS, Case, Raw, arrays, normal, uniform
from .oracles import (
    np_cross_entropy,
    np_cross_entropy_vjp,
    np_logsumexp,
    np_softmax,
)

CASES = []
ROWS = dict(
    rtol={"float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2},
    atol={"float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2},
)
LENGTHS = [1, 2, 3, 4, 7, 8, 17, 31, 33, 64, 65, 100, 128, 129]
LONG = [512, 576, 1000, 1024, 1025, 4096, 4097, 8192, 8200, 12345]


def np_rms(x, w=None, eps=1e-5):
    y = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
    return y if w is None else y * w


def np_layer(x, w=None, b=None, eps=1e-5):
    c = x - np.mean(x, axis=-1, keepdims=True)
    y = c / np.sqrt(np.mean(c * c, axis=-1, keepdims=True) + eps)
    y = y if w is None else y * w
    return y if b is None else y + b


for n in LENGTHS + LONG:
    rows = (2, 3) if n <= 1025 else (3,)
    dtypes = FLOATS if n in (8, 100, 576, 4096, 12345) else ("float32", "bfloat16")
    few = None if n in (7, 64, 576) else ("contiguous", "rows_padded", "offset")
    CASES += [
        Case(
            f"softmax_{n}",
            arrays((*rows, n)),
            lambda mx, x: [mx.softmax(x, axis=-1), mx.softmax(x, -1, precise=True)],
            lambda x: [np_softmax(x)] * 2,
            dtypes,
            layouts=few,
            tags=("softmax",),
            **ROWS,
        ),
        Case(
            f"logsumexp_{n}",
            arrays((*rows, n)),
            lambda mx, x: mx.logsumexp(x, axis=-1),
            np_logsumexp,
            dtypes,
            layouts=few,
            tags=("logsumexp",),
            **ROWS,
        ),
        Case(
            f"rms_norm_{n}",
            arrays((*rows, n), (n,)),
            lambda mx, x, w: mx.fast.rms_norm(x, w, 1e-5),
            np_rms,
            dtypes,
            layouts=few,
            tags=("norm",),
            **ROWS,
        ),
        Case(
            f"layer_norm_{n}",
            arrays((*rows, n), (n,), (n,)),
            lambda mx, x, w, b: mx.fast.layer_norm(x, w, b, 1e-5),
            np_layer,
            dtypes,
            layouts=few,
            bench=arrays((4096, n), (n,), (n,)) if n == 4096 else None,
            tags=("norm",),
            rtol=ROWS["rtol"],
            atol={"float32": 2e-5, "float16": 1e-2, "bfloat16": 6e-2},
        ),
    ]


def low_rows(rng, shape, dtype):
    """Rows padded with the lowest float or -Inf, and rows of these only."""
    x = np.array(normal(rng, shape, dtype))
    lowest = {"float32": -3.4028234663852886e38, "float16": -65504.0}
    low = lowest.get(dtype, -3.3895313892515355e38)
    x[0] = low
    x[1] = -np.inf
    x[2, : shape[1] // 2] = low
    x[3, 1:] = -np.inf
    x[4, 0] = np.inf
    x[5, -1] = np.nan
    return x


def infinite_rows(rng, shape, dtype):
    """NaN, +Inf and -Inf in one row, near and far from each other."""
    x = rng.normal(size=shape)
    x[0, 0], x[0, -1] = np.inf, np.nan
    x[1, 1], x[1, -1] = np.nan, np.inf
    x[2, 0] = x[2, -1] = np.inf
    x[3] = -np.inf
    x[3, -2] = np.nan
    x[4] = -np.inf
    x[5, 0], x[5, 2] = -np.inf, np.inf
    return x


def vocabulary(rng, dtype):
    x = rng.normal(size=(3, 49157)) * 4
    x[0, 12345] = 30
    x[1, :40000] = -np.inf
    return [x]


def transformed(name, fn, oracle, dtypes=FLOATS, shape=(4, 5, 6, 40), **how):
    """Rows reached through other axes: (B, T, H, D) seen as (B, H, T, D)."""
    return Case(
        name,
        arrays(shape),
        lambda mx, x: fn(mx, mx.swapaxes(x, 1, 2)),
        lambda x: oracle(np.swapaxes(x, 1, 2)),
        dtypes,
        layouts=("contiguous", "rows_padded", "negative"),
        **ROWS,
        **how,
    )


CASES += [
    Case(
        f"softmax_low_{n}",
        arrays((6, n), gen=low_rows),
        lambda mx, x: mx.softmax(x, axis=-1),
        np_softmax,
        FLOATS,
        layouts=("contiguous", "transposed"),
        tags=("softmax", "special"),
        **ROWS,
    )
    for n in (2, 33, 1024, 9001)
]
CASES += [
    Case(
        f"logsumexp_infinite_{n}",
        arrays((6, n), gen=infinite_rows),
        lambda mx, x: mx.logsumexp(x, axis=-1),
        np_logsumexp,
        FLOATS,
        layouts=("contiguous", "transposed"),
        tags=("logsumexp", "special"),
        **ROWS,
    )
    for n in (3, 33, 1024, 20001)
]
CASES += [
    Case(
        f"logsumexp_low_{n}",
        arrays((5, n), gen=lambda r, s, d: low_rows(r, (6, s[1]), d)[:5]),
        lambda mx, x: mx.logsumexp(x, axis=-1),
        np_logsumexp,
        FLOATS,
        layouts=("contiguous", "transposed"),
        tags=("logsumexp", "special"),
        **ROWS,
    )
    for n in (2, 33, 1024, 20001)
]
CASES += [
    Case(
        "softmax_big",
        arrays((64, 50257)),
        lambda mx, x: mx.softmax(x, axis=-1),
        np_softmax,
        FLOATS,
        layouts=("contiguous",),
        tags=("softmax",),
        rtol=ROWS["rtol"],
        atol=1e-6,
        big=True,
    ),
    Case(
        "softmax_vocabulary",
        vocabulary,
        lambda mx, x: mx.softmax(x, axis=-1),
        np_softmax,
        FLOATS,
        layouts=("contiguous",),
        bench=arrays((64, 151936)),
        tags=("softmax",),
        rtol=ROWS["rtol"],
        atol=1e-6,
    ),
    Case(
        "logsumexp_vocabulary",
        vocabulary,
        lambda mx, x: mx.logsumexp(x, axis=-1, keepdims=True),
        lambda x: np_logsumexp(x)[:, None],
        FLOATS,
        layouts=("contiguous", "rows_padded", "offset"),
        bench=arrays((1, 151936)),
        tags=("logsumexp",),
        **ROWS,
    ),
    Case(
        "softmax_many_rows",
        arrays((70001, 5)),
        lambda mx, x: mx.softmax(x, axis=-1),
        np_softmax,
        ("float32", "bfloat16"),
        layouts=("contiguous",),
        bench=arrays((32 * 1024, 1024)),
        tags=("softmax", "sizes"),
        **ROWS,
    ),
    Case(
        "softmax_other_axis",
        arrays((5, 37, 6)),
        lambda mx, x: [mx.softmax(x, axis=1), mx.softmax(x, axis=(0, 2))],
        lambda x: [
            np.moveaxis(np_softmax(np.moveaxis(x, 1, -1)), -1, 1),
            np.exp(x) / np.sum(np.exp(x), axis=(0, 2), keepdims=True),
        ],
        FLOATS,
        tags=("softmax",),
        **ROWS,
    ),
    Case(
        "rms_norm_no_weight",
        arrays((3, 4, 96)),
        lambda mx, x: mx.fast.rms_norm(x, None, 1e-3),
        lambda x: np_rms(x, eps=1e-3),
        FLOATS,
        tags=("norm",),
        **ROWS,
    ),
    Case(
        "layer_norm_parts",
        arrays((3, 4, 96), (96,), (96,)),
        lambda mx, x, w, b: [
            mx.fast.layer_norm(x, None, None, 1e-3),
            mx.fast.layer_norm(x, w, None, 1e-3),
            mx.fast.layer_norm(x, None, b, 1e-3),
        ],
        lambda x, w, b: [
            np_layer(x, eps=1e-3),
            np_layer(x, w, eps=1e-3),
            np_layer(x, b=b, eps=1e-3),
        ],
        FLOATS,
        tags=("norm",),
        rtol=ROWS["rtol"],
        atol={"float32": 2e-5, "float16": 1e-2, "bfloat16": 6e-2},
    ),
    Case(
        "layer_norm_far_mean",
        arrays((4, 300), gen=uniform(1000, 1001)),
        lambda mx, x: mx.fast.layer_norm(x, None, None, 1e-5),
        np_layer,
        ("float32",),
        rtol=1e-3,
        atol=2e-3,
        tags=("norm",),
    ),
    Case(
        "rms_norm_row_4096_bench",
        arrays((2, 4096), (4096,)),
        lambda mx, x, w: mx.fast.rms_norm(x, w, 1e-5),
        np_rms,
        FLOATS,
        layouts=("contiguous",),
        bench=arrays((4096, 4096), (4096,)),
        tags=("norm",),
        **ROWS,
    ),
    transformed("softmax_heads", lambda mx, x: mx.softmax(x, axis=-1), np_softmax),
    transformed(
        "rms_norm_heads", lambda mx, x: mx.fast.rms_norm(x, None, 1e-5), np_rms
    ),
    transformed(
        "layer_norm_heads",
        lambda mx, x: mx.fast.layer_norm(x, None, None, 1e-5),
        np_layer,
    ),
    transformed(
        "logsumexp_heads", lambda mx, x: mx.logsumexp(x, axis=-1), np_logsumexp
    ),
]


# Gradients, against the same mathematics in float64.


def sum_rows(x):
    return np.sum(x, axis=tuple(range(x.ndim - 1)))


def mean(x):
    return np.sum(x, axis=-1, keepdims=True) / max(x.shape[-1], 1)


def np_rms_vjp(x, w, g, eps=1e-5):
    n = 1 / np.sqrt(mean(x * x) + eps)
    wg = g * w
    gx = n * (wg - x * n * n * mean(wg * x))
    return gx, sum_rows(g * x * n)


def np_layer_vjp(x, w, b, g, eps=1e-5):
    c = x - mean(x)
    n = 1 / np.sqrt(mean(c * c) + eps)
    wg = g * w
    gx = wg - mean(wg)
    gx = n * (gx - c * n * n * mean(wg * c))
    return gx, sum_rows(g * c * n), sum_rows(g)


def rms_vjp(mx, x, w, g):
    return mx.vjp(lambda x, w: mx.fast.rms_norm(x, w, 1e-5), [x, w], [g])[1]


def layer_vjp(mx, x, w, b, g):
    return mx.vjp(lambda x, w, b: mx.fast.layer_norm(x, w, b, 1e-5), [x, w, b], [g])[1]


VJP = dict(
    rtol={"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2},
    atol={"float32": 1e-4, "float16": 4e-2, "bfloat16": 0.3},
)
SHAPES = [(5, 8), (3, 7, 33), (2, 576), (600, 64), (3, 1025), (2, 7000), (3, 9001)]
for shape in [*SHAPES, (0, 5), (2, 0)]:
    n = shape[-1]
    tag = "x".join(map(str, shape))
    layouts = None if n == 33 else ("contiguous", "transposed")
    CASES += [
        Case(
            f"rms_norm_vjp_{tag}",
            arrays(shape, (n,), shape),
            rms_vjp,
            np_rms_vjp,
            layouts=layouts,
            tags=("norm", "vjp"),
            **VJP,
        ),
        Case(
            f"layer_norm_vjp_{tag}",
            arrays(shape, (n,), (n,), shape),
            layer_vjp,
            np_layer_vjp,
            layouts=layouts,
            tags=("norm", "vjp"),
            **VJP,
        ),
    ]


# Rotary embeddings.


def np_rope(x, offset, dims, traditional, base=10000.0, scale=1.0, freqs=None):
    shape = x.shape
    x = x.reshape(shape[0], -1, *shape[-2:])
    half = dims // 2
    turn = freqs if freqs is not None else base ** (np.arange(half) / half)
    t = (np.arange(shape[-2]) + np.reshape(offset, (-1, 1))) * scale
    angle = t[:, None, :, None] / turn
    c, s = np.cos(angle), np.sin(angle)
    y = x.copy()
    if traditional:
        a, b = x[..., 0:dims:2], x[..., 1:dims:2]
        y[..., 0:dims:2], y[..., 1:dims:2] = a * c - b * s, a * s + b * c
    else:
        a, b = x[..., :half], x[..., half:dims]
        y[..., :half], y[..., half:dims] = a * c - b * s, a * s + b * c
    return y.reshape(shape)


def np_unrope(g, offset, dims):
    half = dims // 2
    t = (np.arange(g.shape[-2]) + offset)[:, None]
    angle = -t / 10000.0 ** (np.arange(half) / half)
    c, s = np.cos(angle), np.sin(angle)
    y = g.copy()
    a, b = g[..., :half], g[..., half:dims]
    y[..., :half], y[..., half:dims] = a * c - b * s, a * s + b * c
    return y


def rope_case(name, shape, dims, offset=0, dtypes=FLOATS, layouts=None, **o):
    offset = np.asarray(offset, np.int32)
    traditional = o.pop("traditional", False)
    freqs = o.pop("freqs", None)
    scale = o.pop("scale", 1.0)

    def fn(mx, x, offset, *freqs):
        return mx.fast.rope(
            x,
            dims,
            traditional=traditional,
            base=None if freqs else 10000.0,
            scale=scale,
            offset=offset,
            freqs=freqs[0] if freqs else None,
        )

    def inputs(rng, dtype):
        extra = [] if freqs is None else [Raw(freqs, layouts=True)]
        return [normal(rng, shape, dtype), Raw(offset, layouts=True), *extra]

    return Case(
        "rope_" + name,
        inputs,
        fn,
        lambda x, offset, *freqs: np_rope(
            x,
            offset.astype(np.float64),
            dims,
            traditional,
            scale=scale,
            freqs=freqs[0].astype(np.float64) if freqs else None,
        ),
        dtypes,
        layouts=layouts,
        tags=("rope",),
        rtol=ROWS["rtol"],
        # The angle's own rounding: position times 2^-24.
        atol={"float32": 2e-4, "float16": 3e-3, "bfloat16": 2e-2},
        **o,
    )


FREQS = (10.0 ** np.linspace(0, 3, 16)).astype(np.float32)
for traditional in (False, True):
    kind = dict(traditional=traditional)
    end = "_traditional" if traditional else ""
    CASES += [
        rope_case("4d" + end, (2, 3, 5, 32), 32, 7, **kind),
        rope_case("3d" + end, (4, 9, 16), 16, 3, **kind),
        rope_case("5d" + end, (2, 2, 3, 5, 8), 8, 1, **kind),
        rope_case("partial" + end, (2, 3, 5, 40), 24, 11, **kind),
        rope_case("odd" + end, (2, 3, 5, 13), 6, 2, **kind),
        rope_case("scaled" + end, (1, 2, 4, 32), 32, 100, scale=0.25, **kind),
        rope_case("freqs" + end, (2, 3, 5, 48), 32, 9, freqs=FREQS, **kind),
        rope_case("decode" + end, (1, 9, 1, 64), 64, 700, **kind),
        rope_case("batch" + end, (3, 4, 1, 64), 64, [5, 0, 99], **kind),
        rope_case("batch_long" + end, (3, 4, 6, 20), 20, [5, 0, 99], **kind),
        rope_case("one_offset" + end, (3, 4, 6, 20), 20, [5], **kind),
    ]
CASES += [
    rope_case("many", (1, 33, 300, 64), 64, layouts=("contiguous", "transposed")),
    rope_case(
        "prefill_bench",
        (1, 2, 8, 128),
        128,
        layouts=("contiguous",),
        bench=lambda rng, d: [
            normal(rng, (1, 32, 2048, 128), d),
            Raw(np.asarray(0, np.int32)),
        ],
    ),
    Case(
        "rope_far",
        arrays((1, 1, 3, 64)),
        lambda mx, x: mx.fast.rope(
            x, 64, traditional=False, base=1e6, scale=1.0, offset=100000
        ),
        lambda x: np_rope(x, 100000, 64, False, base=1e6),
        ("float32",),
        atol=0.05,
        tags=("rope",),
    ),
    # (B, T, H, D) as attention sees it, without a copy.
    Case(
        "rope_heads",
        arrays((2, 5, 3, 64)),
        lambda mx, x: mx.fast.rope(
            mx.swapaxes(x, 1, 2), 64, traditional=False, base=1e4, scale=1.0, offset=4
        ),
        lambda x: np_rope(np.swapaxes(x, 1, 2), 4, 64, False),
        rtol=ROWS["rtol"],
        atol=ROWS["atol"],
        tags=("rope",),
    ),
    Case(
        "rope_vjp",
        arrays((2, 3, 5, 32), (2, 3, 5, 32)),
        lambda mx, x, g: mx.vjp(
            lambda x: mx.fast.rope(
                x, 24, traditional=False, base=1e4, scale=1.0, offset=4
            ),
            [x],
            [g],
        )[1],
        # The transpose of a rotation turns back.
        lambda x, g: np_unrope(g, 4, 24),
        rtol=ROWS["rtol"],
        atol=ROWS["atol"],
        tags=("rope", "vjp"),
    ),
]


# Cross entropy: indices from either end.


def has_cross_entropy(mx):
    return hasattr(mx.fast, "cross_entropy")


def cross_entropy(mx, x, t):
    if has_cross_entropy(mx):
        return mx.fast.cross_entropy(x, t)
    import mlx.nn as nn

    return nn.losses.cross_entropy(x, t).astype(mx.float32)


CASES += [
    Case(
        f"cross_entropy_infinite_{n}",
        lambda rng, dtype, n=n: [
            infinite_rows(rng, (6, n), dtype),
            Raw(np.array([1, 2, 1, 0, 1, 1], np.int32) % n),
        ],
        cross_entropy,
        np_cross_entropy,
        tags=("cross_entropy", "special"),
        **ROWS,
    )
    for n in (3, 1000)
]
for n in (1, 5, 64, 1000, 5003):
    target = np.random.default_rng(n).integers(-n, n, (3, 4)).astype(np.int32)
    cotangent = np.random.default_rng(n).normal(size=(3, 4)).astype(np.float32)
    CASES += [
        Case(
            f"cross_entropy_{n}",
            lambda rng, dtype, n=n, t=target: [normal(rng, (3, 4, n), dtype), Raw(t)],
            cross_entropy,
            np_cross_entropy,
            layouts=("contiguous", "transposed", "rows_padded", "offset"),
            tags=("cross_entropy",),
            rtol=2e-5,
            atol=2e-5 if n < 2000 else 1e-4,
        ),
        Case(
            f"cross_entropy_vjp_{n}",
            lambda rng, dtype, n=n, t=target, g=cotangent: [
                normal(rng, (3, 4, n), dtype),
                Raw(t),
                Raw(g),
            ],
            lambda mx, x, t, g: mx.vjp(lambda x: cross_entropy(mx, x, t), [x], [g])[1],
            np_cross_entropy_vjp,
            layouts=("contiguous", "transposed", "rows_padded", "offset"),
            tags=("cross_entropy", "vjp"),
            **ROWS,
        ),
    ]
CASES.append(
    Case(
        "cross_entropy_no_rows",
        lambda rng, dtype: [normal(rng, (0, 4), dtype), Raw(np.zeros(0, np.int32))],
        cross_entropy,
        lambda x, t: np.zeros(0),
        layouts=("contiguous",),
        tags=("cross_entropy",),
        **ROWS,
    )
)
