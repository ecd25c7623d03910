"""Attention and its gradient, convolutions, transforms, the gated delta rule."""

import numpy as np

from .oracles import butterflies, gated_delta, qkv
from .row import FEW, ONE, Bound, Fixed, Row
from .values import arrays, normal

MATRIX = ("contiguous", "transposed", "sliced", "offset", "negative", "donated")


def attend(mask=None):
    def fn(mx, q, k, v, *more):
        given = more[0] if mask == "array" else mask
        return mx.fast.scaled_dot_product_attention(
            q,
            k,
            v,
            scale=q.shape[-1] ** -0.5,
            mask=None if mask == "sinks" else given,
            sinks=more[0] if mask == "sinks" else None,
        )

    return fn


def scores(dim):
    """Scores of `dim` products move a probability by their error; a matrix unit
    takes probabilities in the storage dtype; values of variance one."""
    return Bound(ulps=64, steps=3, terms=dim, size=1)


def row(name, shapes, mask=None, more=None, **options):
    def make(rng, dtype):
        found = [normal(rng, s, dtype) for s in shapes]
        return found + (more(rng, dtype, shapes) if more else [])

    dim = shapes[0][-1]
    return Row(name, make, attend(mask), bound=scores(dim), slow=True, **options)


def bool_mask(rng, dtype, shapes):
    seen = rng.random((*shapes[0][:3], shapes[1][2])) < 0.5
    # A row that sees nothing at all is not defined alike on every backend.
    seen[..., 0] = True
    return [Fixed(seen)]


def float_mask(rng, dtype, shapes):
    return [normal(rng, (shapes[0][0], 1, shapes[0][2], shapes[1][2]), dtype)]


def sink_logits(rng, dtype, shapes):
    return [normal(rng, (shapes[0][1],), dtype)]


attention = []
# Decode, a few queries, a prompt over several tiles.
for queries, keys in [(1, 37), (1, 1030), (5, 33), (33, 70), (130, 200)]:
    shapes = qkv(2, 4, 2, queries, keys, 64)
    tag = f"{queries}x{keys}"
    attention += [
        row(f"plain_{tag}", shapes, layouts=MATRIX),
        row(f"causal_{tag}", shapes, "causal", layouts=FEW),
        row(f"bool_{tag}", shapes, "array", bool_mask, layouts=FEW),
        row(f"added_{tag}", shapes, "array", float_mask, layouts=FEW),
        row(f"sinks_{tag}", shapes, "sinks", sink_logits, layouts=FEW),
    ]
for dim, value_dim in [(32, 32), (80, 80), (128, 128), (192, 128), (256, 256)]:
    for queries in (1, 17):
        shapes = qkv(1, 8, 1, queries, 40, dim, value_dim)
        attention.append(row(f"head_{dim}_{value_dim}_{queries}", shapes, layouts=ONE))
for queries, keys in [(9, 9), (10, 5), (64, 64), (65, 129)]:
    shapes = qkv(1, 2, 1, queries, keys, 64)
    attention.append(row(f"edges_{queries}x{keys}", shapes, "causal", layouts=ONE))
attention += [
    # Keys split over workgroups, on software devices too (their loops are short).
    row("decode_20011", qkv(1, 2, 1, 1, 20011, 64), layouts=ONE),
    row("decode_sinks", qkv(1, 2, 1, 1, 20011, 64), "sinks", sink_logits, layouts=ONE),
    row("decode_8192", qkv(1, 8, 2, 1, 8192, 128), layouts=ONE, big=True),
    row("prompt_1025", qkv(1, 4, 2, 1025, 1025, 128), "causal", layouts=ONE, big=True),
]


def backward(mask):
    def fn(mx, q, k, v, g):
        return mx.vjp(lambda *a: attend(mask)(mx, *a), [q, k, v], [g])[1]

    return fn


# A key's gradient sums over the queries of its group of heads.
attention_vjp = []
for b, h, kv, queries, keys, dim in [
    (2, 4, 2, 5, 9, 32),
    (1, 6, 2, 33, 70, 64),
    (1, 4, 1, 65, 129, 32),
    (2, 2, 2, 40, 33, 128),
]:
    shapes = qkv(b, h, kv, queries, keys, dim)
    shapes = (*shapes, (b, h, queries, dim))
    terms = queries * h // kv
    for mask in (None, "causal") if queries <= keys else (None,):
        attention_vjp.append(
            Row(
                f"{mask or 'plain'}_{queries}x{keys}x{dim}",
                arrays(*shapes),
                backward(mask),
                bound=Bound(
                    ulps=64, steps=4, terms=4 * (terms + dim), size=2 * terms**0.5
                ),
                layouts=FEW,
                slow=True,
            )
        )


def convolve(**options):
    return lambda mx, x, w: mx.conv_general(x, w, **options)


CONVOLUTIONS = [
    ("1d", (2, 11, 3), (5, 3, 3), {}),
    ("1d_stride", (2, 23, 8), (6, 4, 8), dict(stride=3, padding=2)),
    ("1d_dilated", (1, 19, 4), (3, 3, 4), dict(kernel_dilation=3, padding=4)),
    ("1d_groups", (2, 9, 12), (8, 3, 3), dict(padding=1, groups=4)),
    ("1d_depthwise", (2, 29, 12), (12, 4, 1), dict(padding=3, groups=12)),
    ("1d_decode", (3, 4, 33), (33, 4, 1), dict(groups=33)),
    ("1d_product", (2, 130, 32), (48, 5, 32), dict(padding=2)),
    ("2d", (2, 7, 9, 3), (4, 3, 5, 3), dict(padding=(1, 2))),
    ("2d_flip", (2, 9, 11, 4), (6, 3, 2, 2),
     dict(stride=(2, 3), padding=(3, 1), input_dilation=(1, 2), groups=2, flip=True)),
    ("2d_depthwise", (2, 16, 17, 5), (5, 3, 3, 1), dict(padding=1, groups=5)),
    ("2d_product", (1, 33, 31, 9), (32, 3, 3, 9), dict(padding=1, stride=(1, 2))),
    ("2d_pointwise", (2, 17, 19, 48), (40, 1, 1, 48), {}),
    ("3d", (2, 5, 6, 7, 3), (4, 2, 3, 2, 3), dict(padding=1)),
    ("3d_product", (1, 9, 10, 11, 8), (17, 3, 3, 3, 8), dict(padding=1)),
]  # fmt: skip


def taps(w):
    return int(np.prod(w[1:]))


def conv_rows():
    for name, x, w, options in CONVOLUTIONS:
        k = taps(w)
        close = Bound(ulps=4, steps=2, terms=k, size=k**0.5)
        # MLX's CPU has no float64 of dilated convolutions.
        yield Row(name, arrays(x, w), convolve(**options), bound=close, want="single")


def conv_vjp_rows():
    for name, x, w, options in CONVOLUTIONS:
        if "dilation" in "".join(options) or "flip" in options:
            continue
        # A weight's gradient sums over every position of the batch.
        k = int(np.prod(x[:-1])) + w[0] * taps(w)

        def fn(mx, x, w, options=options):
            def y(x, w):
                return mx.conv_general(x, w, **options)

            return mx.grad(lambda x, w: mx.square(y(x, w)).sum(), argnums=(0, 1))(x, w)

        # Twice the results of the convolution, of deviation sqrt(taps), are summed.
        size = 2 * taps(w) ** 0.5
        close = Bound(ulps=4, steps=3, terms=size * k, size=size * k**0.5)
        yield Row(name, arrays(x, w), fn, ("float32",), close, "single", layouts=FEW)


def transform(op, **options):
    return lambda mx, x: getattr(mx.fft, op)(x, norm="ortho", **options)


def np_transform(op, **options):
    return lambda x: getattr(np.fft, op)(x, norm="ortho", **options)


# Powers of two, small factors, primes; in one workgroup, in two passes, three.
FFTS = [
    *[("fft", (3, n), {}) for n in (2, 8, 12, 31, 97, 100, 360, 1024, 2023)],
    *[("fft", (2, n), {}) for n in (4096, 6000, 257, 8198, 1 << 16)],
    *[("ifft", (2, n), {}) for n in (360, 5000, 521)],
    *[("rfft", (3, n), {}) for n in (7, 64, 3000, 523)],
    *[("irfft", (3, n), {}) for n in (5, 33, 2049)],
    ("fft", (9, 30, 5), dict(axis=1)),
    ("fft2", (3, 12, 10), {}),
    ("fftn", (5, 6, 7), {}),
    ("irfftn", (5, 6, 7), {}),
]


def fft_rows():
    for op, shape, options in FFTS:
        yield Row(
            f"{op}_{'x'.join(map(str, shape))}",
            arrays(shape),
            transform(op, **options),
            ("float32",) if op == "rfft" else ("complex64",),
            # Orthonormal: log2(n) turns, each of a few units, of variance one;
            # a prime goes through a convolution of four times the length.
            Bound(ulps=48, size=1),
            np_transform(op, **options),
        )


hadamard = [
    Row(
        f"{rows}x{n}",
        arrays((rows, n)),
        lambda mx, x: mx.hadamard_transform(x),
        # Long rows are stored between two passes.
        bound=Bound(ulps=32, steps=3, size=1),
        want=butterflies if n & (n - 1) == 0 else "single",
    )
    for rows, n in [(5, 64), (33, 1024), (3, 8192), (3, 12), (2, 28 * 128)]
]


def delta_row(name, B, T, Hk, Hv, Dk, Dv):
    def make(rng, dtype):
        k = rng.normal(size=(B, T, Hk, Dk))
        return [
            normal(rng, (B, T, Hk, Dk), dtype),
            k / np.linalg.norm(k, axis=-1, keepdims=True),
            normal(rng, (B, T, Hv, Dv), dtype),
            rng.uniform(0.3, 1, (B, T, Hv)),
            rng.uniform(0, 1, (B, T, Hv)),
            Fixed(rng.normal(size=(B, Hv, Dv, Dk)).astype(np.float32)),
        ]

    def fn(mx, q, k, v, g, beta, s):
        return mx.fast.gated_delta_update(q, k, v, g, beta, initial_state=s)

    bound = Bound(ulps=16, steps=2, terms=T * Dk, size=Dk**0.5)
    return Row(name, make, fn, bound=bound, want=gated_delta, layouts=FEW)


FAMILIES = {
    "attention": attention,
    "attention_vjp": attention_vjp,
    "conv": list(conv_rows()),
    "conv_vjp": list(conv_vjp_rows()),
    "fft": list(fft_rows()),
    "hadamard": hadamard,
    "gated_delta": [
        delta_row("decode", 2, 1, 2, 4, 128, 128),
        delta_row("prompt", 2, 19, 1, 2, 128, 33),
    ],
}
