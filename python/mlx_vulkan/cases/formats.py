"""Quantized formats: their codes, weights in them, how close they come."""

import dataclasses

import numpy as np

from .values import Raw


@dataclasses.dataclass(frozen=True)
class Format:
    """A quantized format: mode, bits per weight, weights that share a scale."""

    mode: str
    bits: int
    group: int

    def __str__(self):
        affine = f"{self.bits}bit_g{self.group}"
        return affine if self.mode == "affine" else self.mode

    @property
    def arguments(self):
        return dict(group_size=self.group, bits=self.bits, mode=self.mode)


AFFINE = [Format("affine", b, g) for b in (1, 2, 3, 4, 5, 6, 8) for g in (32, 64, 128)]
USUAL = Format("affine", 4, 64)
MXFP4, MXFP8 = Format("mxfp4", 4, 32), Format("mxfp8", 8, 32)
NVFP4 = Format("nvfp4", 4, 16)
FORMATS = [*AFFINE, MXFP4, MXFP8, NVFP4]

# The numbers of each code: sign, exponent, mantissa.
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])
CODES = np.arange(128)
E4M3 = (1 + CODES % 8 / 8) * 2.0 ** (CODES // 8 - 7)
E4M3[:8] = np.arange(8) * 2.0**-9
E4M3[127] = np.nan
E4M3 = np.concatenate([E4M3, -E4M3])


@dataclasses.dataclass(frozen=True)
class Codes:
    """The numbers of a mode, its scales in weights(), and half the widest step between
    two of its numbers, for |x| <= 1: fp4 has steps of 2 in 6, so 1 in 6 of the largest
    value, whose scale is rounded too (a power of two: up to twice; e4m3: 1/16); fp8
    three bits of mantissa."""

    values: np.ndarray
    scales: tuple[int, int]
    step: float


CODES_OF = {
    "mxfp4": Codes(E2M1, (125, 128), 2 / 6),
    "mxfp8": Codes(E4M3, (127, 130), 1 / 16),
    "nvfp4": Codes(E2M1, (24, 40), 17 / 16 / 6),
}


def unpack(words, bits):
    """A row of codes is one little-endian bit stream."""
    stream = np.ascontiguousarray(words).view(np.uint8)
    stream = np.unpackbits(stream, axis=-1, bitorder="little")
    stream = stream.reshape(*words.shape[:-1], words.shape[-1] * 32 // bits, bits)
    return stream @ (1 << np.arange(bits))


def dequantized(f, words, scales, biases=None):
    """The weights in float64."""
    codes = unpack(words, f.bits)
    groups = codes.reshape(*codes.shape[:-1], codes.shape[-1] // f.group, f.group)
    if f.mode == "affine":
        w = scales[..., None] * groups + biases[..., None]
    else:
        nv = f.mode == "nvfp4"
        size = E4M3[scales] if nv else 2.0 ** (scales.astype(np.float64) - 127)
        w = size[..., None] * CODES_OF[f.mode].values[groups]
        if biases is not None:
            # nvfp4's global scale, one or one for each matrix; 2688 = 6 * 448.
            w = w * (biases / 2688.0).reshape(-1, *[1] * (w.ndim - 1))
    return w.reshape(codes.shape)


def weights(rng, f, shape):
    """Words, scales (and biases) of weights of up to about 3."""
    n = shape[-1]
    groups = (*shape[:-1], n // f.group)
    words = rng.integers(0, 2**32, (*shape[:-1], n * f.bits // 32), np.uint32)
    if f.mode == "affine":
        top = 2**f.bits - 1
        scales = rng.uniform(0.5, 1, groups) * 2 / top
        return [Raw(words), scales, scales * (0.1 - top / 2)]
    if f.bits == 8:
        # 1/16 to 1/2 with either sign: no NaN among them.
        codes = rng.integers(24, 48, (*shape[:-1], n), np.uint8)
        words = (codes | rng.integers(0, 2, codes.shape, np.uint8) << 7).view(np.uint32)
    low, high = CODES_OF[f.mode].scales
    return [Raw(words), Raw(rng.integers(low, high, groups, np.uint8))]


def exact(rng, f, shape, step=1.0):
    """Values that a format holds without loss: fp4 codes that reach the largest in
    each group, times a power of two and `step`; fp8 codes of a few binades."""
    if f.bits == 8:
        return E4M3[rng.integers(40, 64, shape)] * rng.choice([-1, 1], shape)
    values = CODES_OF[f.mode].values
    x = values[rng.integers(0, 16, shape)]
    x[..., :: f.group] = values.max()
    sizes = 2.0 ** rng.integers(-1, 2, (*shape[:-1], shape[-1] // f.group))
    return x * np.repeat(sizes, f.group, -1) * step


def grid_of(f):
    """Half the widest step between two numbers of the format, for |x| <= 1. Affine:
    zero and the larger edge are made exact, which moves the other edge by up to a
    step: a whole one."""
    if f.mode == "affine":
        return 2 / (2**f.bits - 1)
    return CODES_OF[f.mode].step
