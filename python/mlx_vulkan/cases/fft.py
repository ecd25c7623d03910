"""Fourier transforms: lengths of every kind, axes, real ones and inverses."""

import math

import numpy as np

from . import Case, arrays

# Errors are relative to the largest item; the sums are of unit variance.
CLOSE = dict(
    rtol={"float32": 1e-5, "complex64": 1e-5},
    atol={"float32": 2e-6, "complex64": 2e-6},
)
FEW = ("contiguous", "transposed", "negative", "offset")
REAL_INPUT = ("rfft", "rfft2", "rfftn")


def case(op, shape, name=None, layouts=("contiguous", "stepped"), bench=None, **args):
    kind = ("float32",) if op in REAL_INPUT else ("complex64",)
    # Orthonormal, so that the result is of unit variance too.
    args = {**args, "norm": "ortho"}

    def inputs(shape):
        return arrays(shape)

    return Case(
        f"{op}_{name or 'x'.join(map(str, shape))}",
        inputs(shape),
        lambda mx, x: getattr(mx.fft, op)(x, **args),
        lambda x: getattr(np.fft, op)(x, **args),
        dtypes=kind,
        layouts=layouts,
        bench=bench and inputs(bench),
        flops=lambda x: 5 * math.prod(x) * math.log2(x[-1]),
        tags=("fft",),
        **CLOSE,
    )


CASES = [
    # One, powers of two, small factors, primes; a line and several in a group.
    *[case("fft", (3, n)) for n in (1, 2, 3, 4, 5, 8, 12, 31, 97, 100, 243, 360)],
    *[case("fft", (1, n)) for n in (1024, 2048, 1536, 2023)],
    case("fft", (70, 64), layouts=None, bench=(4096, 1024)),
    case("fft", (300, 8)),
    # More than a workgroup holds: two passes, three, and large primes.
    case("fft", (2, 4096)),
    case("fft", (2, 6000)),
    case("fft", (1, 1 << 16), layouts=("contiguous",)),
    case("fft", (1, 47 * 53 * 59), layouts=("contiguous",)),
    case("fft", (2, 257)),
    case("fft", (1, 2 * 4099), layouts=("contiguous",)),
    *[case("fft", (3, n)) for n in (16, 49, 128, 256, 512, 729)],
    case("ifft", (3, 8192), layouts=("contiguous",)),
    case("ifft", (1, 1 << 21), layouts=("contiguous",)),
    case("ifft", (2, 360)),
    case("ifft", (2, 5000)),
    case("ifft", (2, 521)),
    case("fft", (9, 30, 5), "axis", FEW, axis=1),
    case("ifft", (3, 4100, 3), "axis", axis=1),
    case("fft", (3, 521, 3), "axis_prime", axis=1),
    *[case("rfft", (3, n)) for n in (1, 2, 7, 64, 100, 3000, 523)],
    case("rfft", (7, 20, 3), "axis", FEW, axis=1),
    # Halves of real axes in several passes, of an odd length too.
    case("rfft", (2, 3125)),
    case("irfft", (2, 1563), "odd_passes", n=3125),
    case("rfft", (2, 1 << 13)),
    case("rfft", (2, 2048, 3), "axis_passes", axis=1),
    case("irfft", (2, 1 + (1 << 13))),
    case("irfft", (2, 1025, 3), "axis_passes", axis=1),
    case("irfft", (1, 1 + (1 << 20)), layouts=("contiguous",)),
    *[case("irfft", (3, n)) for n in (2, 5, 33, 51, 2049)],
    case("irfft", (3, 27), "odd", n=53),
    case("irfft", (2, 262), "odd_prime", n=523),
    case("irfft", (7, 20, 3), "axis", FEW, axis=1),
    case("fft2", (3, 12, 10), layouts=FEW),
    case("fftn", (5, 6, 7), layouts=FEW),
    case("ifftn", (5, 6, 7), "axes", FEW, axes=(2, 0)),
    case("rfftn", (5, 6, 7), layouts=FEW),
    case("rfftn", (5, 6, 7), "axes", FEW, axes=(2, 0)),
    case("irfftn", (5, 6, 7), "axes", FEW, axes=(2, 0)),
    case("irfftn", (5, 6, 4), layouts=FEW),
    case("irfft2", (2, 5, 9), layouts=FEW),
]
