"""Limits of known GPUs, from their vendors' data sheets.

For each chip, by the name that its Vulkan driver gives: memory bandwidth in GB/s,
float32 TFLOP/s, and TFLOP/s of 16-bit products with float32 sums, dense, by matrix
units where the chip has them. Boost clocks, as the vendors state them. Chips whose
bandwidth depends on the machine's memory are left out.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Chip:
    name: str  # a regular expression for the whole name, without the driver's suffix
    memory: float
    f32: float
    half: float
    source: str


HOPPER = "NVIDIA H100 and H200 data sheets"
AMPERE = "NVIDIA A100 data sheet"
ADA = "NVIDIA Ada GPU architecture white paper and product pages"
GA102 = "NVIDIA Ampere GA102 GPU architecture white paper"
BLACKWELL = "NVIDIA RTX Blackwell GPU architecture white paper"
AMD = "AMD's product page"
INTEL = "Intel's product specifications (peak INT8 TOPS / 2)"
APPLE = "Apple's announcement"

CHIPS = (
    Chip(r"NVIDIA H200 NVL", 4800, 60, 835, HOPPER),
    Chip(r"NVIDIA H200", 4800, 67, 989, HOPPER),
    Chip(r"NVIDIA H100 NVL", 3900, 60, 835, HOPPER),
    Chip(r"NVIDIA H100 PCIe", 2000, 51, 756, HOPPER),
    Chip(r"NVIDIA H100( 80GB HBM3| SXM.*)", 3350, 67, 989, HOPPER),
    Chip(r"NVIDIA A100-SXM4-80GB", 2039, 19.5, 312, AMPERE),
    Chip(r"NVIDIA A100 80GB PCIe", 1935, 19.5, 312, AMPERE),
    Chip(r"NVIDIA A100-(SXM4|PCIE)-40GB", 1555, 19.5, 312, AMPERE),
    Chip(r"NVIDIA L40S", 864, 91.6, 362, "NVIDIA L40S data sheet"),
    Chip(r"NVIDIA L4", 300, 30.3, 121, "NVIDIA L4 data sheet"),
    Chip(r"NVIDIA A10", 600, 31.2, 125, "NVIDIA A10 data sheet"),
    Chip(r"NVIDIA GeForce RTX 5090", 1792, 104.8, 209.5, BLACKWELL),
    Chip(r"NVIDIA GeForce RTX 5080", 960, 56.3, 112.6, BLACKWELL),
    Chip(r"NVIDIA GeForce RTX 4090", 1008, 82.6, 165.2, ADA),
    Chip(r"NVIDIA GeForce RTX 4080", 717, 48.7, 97.5, ADA),
    Chip(r"NVIDIA GeForce RTX 4070 Ti", 504, 40.1, 80.2, ADA),
    Chip(r"NVIDIA GeForce RTX 4070", 504, 29.1, 58.3, ADA),
    Chip(r"NVIDIA GeForce RTX 4060 Ti", 288, 22.1, 44.1, ADA),
    Chip(r"NVIDIA GeForce RTX 4060", 272, 15.1, 30.2, ADA),
    Chip(r"NVIDIA GeForce RTX 3090", 936, 35.6, 71, GA102),
    Chip(r"NVIDIA GeForce RTX 3080", 760, 29.8, 59.5, GA102),
    Chip(r"NVIDIA GeForce RTX 3070", 448, 20.3, 40.6, GA102),
    Chip(r"AMD Instinct MI300X", 5300, 163.4, 1307, "AMD Instinct MI300X data sheet"),
    Chip(r"AMD Radeon RX 9070 XT", 640, 48.7, 195, AMD),
    Chip(r"AMD Radeon RX 9070", 640, 36.1, 145, AMD),
    Chip(r"AMD Radeon RX 7900 XTX", 960, 61.4, 122.8, AMD),
    Chip(r"AMD Radeon RX 7900 XT", 800, 51.5, 103, AMD),
    Chip(r"AMD Radeon RX 7900 GRE", 576, 46.0, 92.0, AMD),
    Chip(r"AMD Radeon RX 7800 XT", 624, 37.3, 74.7, AMD),
    Chip(r"AMD Radeon RX 7700 XT", 432, 35.2, 70.3, AMD),
    Chip(r"AMD Radeon RX 7600", 288, 21.8, 43.5, AMD),
    Chip(r"AMD Radeon RX 6900 XT", 512, 23.0, 46.1, AMD),
    Chip(r"AMD Radeon RX 6800 XT", 512, 20.7, 41.5, AMD),
    Chip(r"AMD Radeon RX 6700 XT", 384, 13.2, 26.4, AMD),
    Chip(
        r"(AMD )?Radeon 8060S( Graphics)?",
        256,
        29.7,
        59.4,
        "AMD's product page (40 CUs at 2.9 GHz, 256 bits of LPDDR5X-8000)",
    ),
    Chip(r"Intel\(R\) Arc\(tm\) A770 Graphics", 560, 17.2, 131, INTEL),
    Chip(r"Intel\(R\) Arc\(tm\) A750 Graphics", 512, 14.7, 114.5, INTEL),
    Chip(r"Intel\(R\) Arc\(tm\) B580 Graphics", 456, 13.7, 116.5, INTEL),
    Chip(r"Intel\(R\) Arc\(tm\) B570 Graphics", 380, 11.5, 101.5, INTEL),
    # Half-precision arithmetic runs at the rate of float32.
    Chip(r"Apple M1 Ultra", 800, 20.8, 20.8, "twice Apple's figures for M1 Max"),
    Chip(r"Apple M1 Max", 400, 10.4, 10.4, APPLE),
    Chip(r"Apple M1 Pro", 200, 5.2, 5.2, APPLE),
    Chip(r"Apple M1", 68, 2.6, 2.6, APPLE),
    Chip(r"Apple M2", 100, 3.6, 3.6, APPLE),
)


def find(name: str) -> Chip | None:
    """The chip of a Vulkan device, whose driver may add a suffix in parentheses, as
    in "AMD Radeon RX 7900 XTX (RADV NAVI31)"."""
    bare = re.sub(r" \((?!R\)|TM\)|tm\))[^()]*\)$", "", name.strip())
    return next((c for c in CHIPS if re.fullmatch(c.name, bare, re.IGNORECASE)), None)
