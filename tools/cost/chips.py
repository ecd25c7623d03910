"""Constants of the chips that the cost tier estimates for, with their sources.

`Core` describes a compute unit of one architecture: AMD's CU, Intel's Xe core or
dual subslice, Apple's core, Qualcomm's SP, NVIDIA's SM. A pipe is what instructions
wait for each other in; its cycles are of one instruction of a subgroup. Pipes of a
SIMD are one of `simds`, the others are shared by the whole core.
"""

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Core:
    simds: int
    width: int  # lanes of a SIMD that one cycle takes
    pipes: dict[str, str]  # of a SIMD: class of instructions -> pipe
    slow: dict[str, float] = field(default_factory=dict)  # cycles relative to width
    matrix_rate: float = 0  # multiply-adds a cycle and SIMD, of 16-bit items
    shared_bytes: int = 128  # of shared memory, a cycle
    cache_bytes: int = 64  # of loads and stores, a cycle
    issue: bool = False  # whether a SIMD issues one instruction a cycle in all
    source: str = ""


# A SIMD of AMD's has one VALU, which matrix instructions use too. "one": scalar
# instructions and waits have ports of their own.
AMD = {
    "float": "valu",
    "fma": "valu",
    "int": "valu",
    "slow": "valu",
    "math": "valu",
    "matrix": "valu",
}
# Float, integer (with mathematics) and matrix instructions of different threads
# issue together.
INTEL = {
    "float": "float",
    "fma": "float",
    "int": "int",
    "slow": "int",
    "math": "int",
    "matrix": "matrix",
}
# Xe-LP has one pipe for both, and one for mathematics.
XE_LP_PIPES = {
    "float": "alu",
    "fma": "alu",
    "int": "alu",
    "slow": "alu",
    "math": "math",
    "matrix": "alu",
}
# One instruction a cycle; logic, mathematics and matrices have pipes of their own.
NVIDIA = {
    "float": "float",
    "fma": "float",
    "int": "int",
    "slow": "int",
    "math": "math",
    "matrix": "matrix",
}
ONE = {name: "alu" for name in ("float", "fma", "int", "slow", "math", "matrix")}

GCN = Core(
    4,
    16,
    AMD,
    {"math": 4, "slow": 4},
    source="AMD, GCN3 and Vega ISA guides: four SIMDs of 16 lanes a CU",
)
RDNA2 = Core(
    2,
    32,
    AMD,
    {"math": 4, "slow": 4},
    source="AMD, RDNA whitepaper: two SIMDs of 32 lanes a CU, quarter-rate "
    "transcendentals, 128 bytes of LDS a cycle",
)
RDNA3 = Core(
    2,
    32,
    AMD,
    {"math": 4, "slow": 4},
    matrix_rate=128,
    source="AMD GPUOpen, WMMA on RDNA3: 512 FLOPs a cycle and CU, 32 cycles for "
    "16 x 16 x 16; two instructions at once (wave64 or VOPD) are not counted on",
)
RDNA4 = Core(
    2,
    32,
    AMD,
    {"math": 4, "slow": 4},
    matrix_rate=256,
    source="AMD GPUOpen, Matrix Cores of RDNA4: 1,024 FLOPs a cycle and CU",
)
XE_LP = Core(
    16,
    8,
    XE_LP_PIPES,
    {"math": 4, "slow": 2},
    source="Intel, oneAPI GPU Optimization Guide, Xe-LP: 16 EUs of 8 lanes a "
    "dual subslice, 128 bytes of shared memory a cycle",
)
XE_HPG = Core(
    16,
    8,
    INTEL,
    {"math": 4, "slow": 2},
    matrix_rate=64,
    source="Intel, Xe-HPG: 16 vector engines of 8 lanes, 128 FP16 operations a "
    "cycle and matrix engine",
)
XE2 = Core(
    8,
    16,
    INTEL,
    {"math": 4, "slow": 2},
    matrix_rate=128,
    source="Intel, Xe2: 8 vector engines of 16 lanes, 2,048 FP16 operations a "
    "cycle and Xe core",
)
APPLE = Core(
    4,
    32,
    ONE,
    {"math": 4, "slow": 4},
    source="philipturner/metal-benchmarks: four SIMDs of 32 lanes a core, an "
    "instruction a cycle",
)
ADRENO = Core(
    2,
    128,
    ONE,
    {"math": 4, "slow": 4},
    source="Mesa, freedreno: two micro-processors an SP; their width is a guess",
)
HOPPER = Core(
    4,
    32,
    NVIDIA,
    {"int": 2, "math": 8, "slow": 4},
    matrix_rate=256,
    cache_bytes=64,
    issue=True,
    source="NVIDIA, CUDA C++ Programming Guide, arithmetic throughput; mma.sync "
    "of benchmarks/matrix_units on an H200",
)


@dataclass(frozen=True)
class Hardware:
    """A product that has the chip."""

    name: str
    core: Core
    cores: int
    ghz: float
    gb_s: float  # of its memory, by the data sheet
    latency_ns: float = 400  # of a load from memory
    level_us: float = 3.0  # of a barrier and a dispatch that waits for it
    source: str = ""

    @property
    def tflops(self) -> float:
        """The products' limit: of matrix units where there are some, else FP32."""
        core = self.core
        a_cycle = core.simds * (core.matrix_rate or core.width)
        return 2e-3 * a_cycle * self.cores * self.ghz

    def __str__(self) -> str:
        kind = "16-bit matrices" if self.core.matrix_rate else "FP32"
        return (
            f"{self.name}, {self.cores} units, {self.ghz} GHz, {self.gb_s} GB/s, "
            f"{self.tflops:.1f} TFLOP/s of {kind}"
        )


# Units, boost clock and bandwidth are those of the product page. Latencies of loads
# are rounded from what chipsandcheese.com measures of the same or similar chips. A
# level's cost is 2.8 to 5 us in public reports of RDNA3 and 2.1 us on an H200
# (measured); elsewhere a guess.
HARDWARE = {
    "polaris10": Hardware("RX 580", GCN, 36, 1.34, 256, 500, source="AMD"),
    "vega10": Hardware("RX Vega 64", GCN, 64, 1.55, 484, 500, source="AMD"),
    "vangogh": Hardware("Steam Deck", RDNA2, 8, 1.6, 88, 500, source="Valve"),
    "navi21": Hardware("RX 6800", RDNA2, 60, 2.1, 512, 350, source="AMD"),
    "navi31": Hardware("RX 7900 XTX", RDNA3, 96, 2.5, 960, 350, source="AMD"),
    "navi33": Hardware("RX 7600", RDNA3, 32, 2.66, 288, 350, source="AMD"),
    "phoenix": Hardware("Radeon 780M", RDNA3, 12, 2.7, 90, 500, source="AMD"),
    "strix1": Hardware("Radeon 890M", RDNA3, 16, 2.9, 120, 500, source="AMD"),
    "gfx1151": Hardware("Radeon 8060S", RDNA3, 40, 2.9, 256, 500, source="AMD"),
    "gfx1200": Hardware("RX 9060 XT", RDNA4, 32, 3.13, 320, 350, source="AMD"),
    "gfx1201": Hardware("RX 9070 XT", RDNA4, 64, 2.97, 640, 350, source="AMD"),
    "tgl": Hardware("Iris Xe, 96 EUs", XE_LP, 6, 1.35, 68, 500, source="Intel"),
    "dg2": Hardware("Arc A770M", XE_HPG, 32, 1.65, 512, 500, source="Intel"),
    "lnl": Hardware("Arc 140V", XE2, 8, 2.05, 136, 500, source="Intel"),
    "bmg": Hardware("Arc B580", XE2, 20, 2.67, 456, 450, source="Intel"),
    "b570": Hardware("Arc B570", XE2, 18, 2.5, 380, 450, source="Intel"),
    "ptl": Hardware("Arc B390", XE2, 12, 2.5, 154, 500, source="Intel; Xe3 as Xe2"),
    "m1": Hardware("M1", APPLE, 8, 1.278, 68, 500, source="Apple"),
    "m2max": Hardware("M2 Max", APPLE, 38, 1.398, 400, 500, source="Apple"),
    "a740": Hardware("Adreno 740", ADRENO, 6, 0.68, 67, 600, source="Qualcomm"),
    # NVK's compiler, plans of an H200, f16: no driver shows NVIDIA's own code.
    "h200": Hardware(
        "H200", HOPPER, 132, 1.83, 4800, 450, 2.1, source="NVIDIA; clock: 490 TFLOP/s"
    ),
}

# With RADV_EXPERIMENTAL=bfloat16, by which RDNA3 has matrices of bf16 too.
BF16 = {f"{name}_bf16": name for name in ("navi31", "navi33", "phoenix", "gfx1151")}
for name, plain in BF16.items():
    HARDWARE[name] = replace(HARDWARE[plain], name=f"{HARDWARE[plain].name}, bf16")

# Threads of an Intel vector engine with 128 registers each, and shared memory of a
# core for drivers whose statistics do not account for it: Intel's and NVIDIA's
# programming guides, Mesa for the others.
THREADS = {"tgl": 7}
SHARED_KIB = {"ANV": 128, "NVK": 228, "Honeykrisp": 60, "Turnip": 32}
