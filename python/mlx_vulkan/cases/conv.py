"""Convolutions: one to three axes, strides, paddings, dilations, groups."""

import itertools

import numpy as np

from . import FLOATS, Case, arrays

# A sum of products of unit variance.
CLOSE = dict(
    rtol={"float32": 2e-5, "float16": 4e-3, "bfloat16": 2e-2},
    atol={"float32": 5e-5, "float16": 2e-2, "bfloat16": 1.5e-1},
)
FEW = ("contiguous", "swapped", "rows_padded", "offset", "negative")


def convolve(x, w, stride, lo, hi, w_dilation, x_dilation, flip):
    """The definition, tap by tap, in float64."""
    groups = x.shape[-1] // max(w.shape[-1], 1) or 1
    spread = [d * (s - 1) + 1 if s else 0 for d, s in zip(x_dilation, x.shape[1:])]
    padded = np.zeros((x.shape[0], *np.add(spread, np.add(lo, hi)), x.shape[-1]))
    inner = tuple(slice(p, p + s, d) for p, s, d in zip(lo, spread, x_dilation))
    padded[(slice(None), *inner)] = x
    taps = w.shape[1:-1]
    reach = [d * (t - 1) + 1 for d, t in zip(w_dilation, taps)]
    sizes = [(p - r) // s + 1 for p, r, s in zip(padded.shape[1:], reach, stride)]
    out = np.zeros((x.shape[0], *sizes, w.shape[0]))
    per_in, per_out = w.shape[-1], w.shape[0] // groups
    for k in itertools.product(*map(range, taps)):
        at = tuple(
            slice(i * d, i * d + (n - 1) * s + 1, s)
            for i, d, n, s in zip(k, w_dilation, sizes, stride)
        )
        item = padded[(slice(None), *at)]
        tap = tuple(t - 1 - i for t, i in zip(taps, k)) if flip else k
        for g in range(groups):
            a = item[..., g * per_in : (g + 1) * per_in]
            b = w[(slice(g * per_out, (g + 1) * per_out), *tap)]
            out[..., g * per_out : (g + 1) * per_out] += a @ b.T
    return out


def flops(x, w, stride):
    """Operations of a convolution with `same` padding, except for the stride."""
    places = x[0] * np.prod([-(-n // s) for n, s in zip(x[1:-1], stride)])
    return 2 * float(places * np.prod(w))


def case(name, x, w, dtypes=FLOATS, layouts=FEW, bench=None, tags=("conv",), **options):
    axes = len(x) - 2

    def each(key, default):
        v = options.get(key, default)
        return list(v) if isinstance(v, tuple) else [v] * axes

    stride, lo = each("stride", 1), each("padding", 0)
    hi = each("padding_hi", tuple(lo))
    wd, xd = each("w_dilation", 1), each("x_dilation", 1)
    flip = options.get("flip", False)

    return Case(
        name,
        arrays(x, w),
        lambda mx, x, w: mx.conv_general(
            x,
            w,
            stride=stride,
            padding=(lo, hi),
            kernel_dilation=wd,
            input_dilation=xd,
            groups=x.shape[-1] // max(w.shape[-1], 1) or 1,
            flip=flip,
        ),
        lambda x, w: convolve(x, w, stride, lo, hi, wd, xd, flip),
        dtypes,
        layouts=layouts,
        bench=bench and arrays(*bench),
        flops=lambda x, w: flops(x, w, stride),
        tags=tags,
        **CLOSE,
    )


CASES = [
    case("conv1d", (2, 11, 3), (5, 3, 3), layouts=None),
    case("conv1d_one", (1, 1, 1), (1, 1, 1)),
    case("conv1d_stride", (2, 23, 8), (6, 4, 8), stride=3, padding=2),
    case("conv1d_hi", (2, 10, 4), (3, 3, 4), padding=0, padding_hi=3),
    case("conv1d_dilated", (1, 19, 4), (3, 3, 4), w_dilation=3, padding=4),
    case("conv1d_spread", (2, 7, 3), (4, 4, 3), x_dilation=3, padding=2),
    case("conv1d_flip", (2, 9, 4), (3, 4, 4), flip=True, padding=1, stride=2),
    case("conv1d_groups", (2, 9, 12), (8, 3, 3), padding=1),
    case("conv1d_outside", (1, 2, 2), (2, 2, 2), padding=5),
    case("conv1d_empty", (0, 9, 4), (3, 3, 4), layouts=("contiguous",)),
    case("conv1d_no_channels", (2, 9, 0), (3, 3, 0), layouts=("contiguous",)),
    # One channel a group: a step of decoding, and runs with a tail.
    case("conv1d_decode", (3, 4, 33), (33, 4, 1), layouts=None),
    case("conv1d_depthwise", (2, 29, 12), (12, 4, 1), layouts=None),
    case(
        "conv1d_depthwise_all",
        (2, 29, 6),
        (12, 5, 1),
        stride=2,
        padding=3,
        w_dilation=2,
        flip=True,
    ),
    case(
        "conv1d_depthwise_spread",
        (2, 9, 6),
        (6, 3, 1),
        x_dilation=2,
        padding=2,
    ),
    case("conv2d", (2, 7, 9, 3), (4, 3, 5, 3), padding=(1, 2), layouts=None),
    case("conv2d_fours", (1, 6, 5, 8), (3, 3, 2, 8), stride=(2, 1), padding=1),
    case(
        "conv2d_all",
        (2, 9, 11, 4),
        (6, 3, 2, 2),
        stride=(2, 3),
        padding=(3, 1),
        padding_hi=(1, 4),
        w_dilation=(2, 1),
        x_dilation=(1, 2),
        flip=True,
    ),
    case("conv2d_depthwise", (2, 6, 7, 5), (5, 3, 3, 1), padding=1),
    # Four channels at a time, more than a workgroup's 64, runs with tails.
    case("conv2d_channels", (2, 6, 7, 68), (68, 3, 3, 1), padding=1),
    case("conv2d_channels_wide", (1, 9, 10, 8), (8, 2, 7, 1), padding=(0, 4)),
    case(
        "conv2d_channels_all",
        (2, 9, 11, 12),
        (12, 3, 5, 1),
        stride=(2, 1),
        padding=(3, 1),
        padding_hi=(1, 4),
        w_dilation=(1, 2),
        flip=True,
    ),
    case("conv2d_grid", (1, 65, 67, 1), (2, 3, 3, 1), layouts=("contiguous",)),
    case("conv3d", (2, 5, 6, 7, 3), (4, 2, 3, 2, 3), padding=1, layouts=None),
    case(
        "conv3d_all",
        (1, 6, 5, 7, 4),
        (3, 2, 3, 2, 4),
        stride=(2, 1, 2),
        padding=(1, 2, 0),
        w_dilation=(1, 2, 1),
        x_dilation=(2, 1, 2),
        flip=True,
    ),
    # Enough work for a product of matrices.
    case("conv1d_product", (2, 130, 32), (48, 5, 32), padding=2),
    case("conv2d_product_groups", (2, 19, 17, 32), (48, 3, 3, 16), padding=1),
    case(
        "conv2d_product_all",
        (2, 23, 19, 12),
        (34, 3, 2, 6),
        stride=(2, 3),
        padding=(3, 1),
        padding_hi=(1, 4),
        w_dilation=(2, 1),
        x_dilation=(3, 2),
    ),
    case("conv2d_pointwise", (2, 17, 19, 48), (40, 1, 1, 48)),
    case("conv2d_product", (1, 33, 31, 9), (32, 3, 3, 9), padding=1, stride=(1, 2)),
    case(
        "conv2d_product_flip",
        (2, 21, 20, 16),
        (24, 3, 2, 16),
        padding=(2, 1),
        w_dilation=(2, 1),
        x_dilation=(1, 2),
        flip=True,
    ),
    case("conv3d_product", (1, 9, 10, 11, 8), (17, 3, 3, 3, 8), padding=1),
]

# The table checks a small shape; the benchmark times the large one.
for name, x, w, options in [
    ("decode", (1, 4, 4096), (4096, 4, 1), {}),
    ("prefill", (1, 1027, 4096), (4096, 4, 1), {}),
    ("3x3", (1, 64, 64, 128), (128, 3, 3, 128), dict(padding=1)),
    ("stem", (1, 224, 224, 3), (64, 7, 7, 3), dict(padding=3, stride=2)),
]:
    small = tuple(min(n, 7) for n in x), tuple(min(n, 7) for n in w)
    CASES.append(
        case(f"conv_bench_{name}", *small, bench=(x, w), layouts=FEW[:1], **options)
    )
