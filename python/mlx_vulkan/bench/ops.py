"""Time operations, and compare them with the limits of the device.

The limits come from the vendor's data sheet if the chip is known. Otherwise they are
the highest rates that an operation reached in this run, called "measured".
"""

import functools
import math
from dataclasses import dataclass

from .. import arguments, native
from ..arguments import Failed
from . import chips, report
from .measure import samples

EXAMPLES = """
mlx-vulkan bench ops --filter matmul
mlx-vulkan bench ops --json ops.json --plot ops.png
"""


@dataclass
class Operation:
    """Made when it is its turn, since the inputs of all need not fit."""

    family: str
    name: str
    make: object  # (mx, scale) -> function, bytes, operations


def array(mx, *shape, dtype="float32"):
    x = mx.random.normal(shape).astype(getattr(mx, dtype))
    mx.eval(x)
    return x


def side(scale: int, full: int) -> int:
    """A length of `full` on a GPU, less on a software device."""
    return max(8, full // scale)


# `work`, where there is no better count: operations an item, whatever each costs.
def elementwise(function, dtype, writes=1.0, work=1):
    def make(mx, scale):
        x = array(mx, side(scale, 8192), side(scale, 8192), dtype=dtype)
        return lambda: function(mx, x), (1 + writes) * x.nbytes, work * x.size

    return make


def cast(mx, x):
    return x.astype(mx.bfloat16)


def transposed(mx, x):
    return mx.contiguous(x.T)


def reduction(function):
    def make(mx, scale):
        x = array(mx, side(scale, 8192), side(scale, 8192))
        return lambda: function(mx, x), x.nbytes, x.size

    return make


def norm(layer):
    def make(mx, scale):
        x = array(mx, side(scale, 8192), side(scale, 4096), dtype="bfloat16")
        w = array(mx, x.shape[1], dtype="bfloat16")
        if layer:
            return lambda: mx.fast.layer_norm(x, w, w, 1e-5), 2 * x.nbytes, 7 * x.size
        return lambda: mx.fast.rms_norm(x, w, 1e-5), 2 * x.nbytes, 4 * x.size

    return make


def product(dtype, rows=None):
    def make(mx, scale):
        n = side(scale, 4096)
        m = rows or n
        a, b = array(mx, m, n, dtype=dtype), array(mx, n, n, dtype=dtype)
        moved = a.nbytes + b.nbytes + m * n * a.itemsize
        return lambda: a @ b.T, moved, 2 * m * n * n

    return make


def quantized(rows, bits):
    def make(mx, scale):
        n = side(scale, 8192)
        x = array(mx, rows, n, dtype="bfloat16")
        w = mx.quantize(array(mx, n, n, dtype="bfloat16"), group_size=64, bits=bits)
        mx.eval(w)
        product = functools.partial(mx.quantized_matmul, group_size=64, bits=bits)
        moved = sum(p.nbytes for p in w) + 2 * x.nbytes
        return lambda: product(x, *w), moved, 2 * rows * n * n

    return make


def attention(queries, keys):
    def make(mx, scale):
        q_len, k_len = (side(scale, n) if n > 1 else 1 for n in (queries, keys))
        q = array(mx, 1, 32, q_len, 128, dtype="bfloat16")
        k, v = (array(mx, 1, 8, k_len, 128, dtype="bfloat16") for _ in "kv")
        sdpa = functools.partial(
            mx.fast.scaled_dot_product_attention,
            scale=128**-0.5,
            mask="causal" if q_len > 1 else None,
        )
        moved = 2 * q.nbytes + k.nbytes + v.nbytes
        share = 0.5 if q_len > 1 else 1
        return lambda: sdpa(q, k, v), moved, share * 4 * 32 * q_len * k_len * 128

    return make


def convolution(mx, scale):
    n = side(scale, 128)
    x = array(mx, 8, n, n, 64, dtype="bfloat16")
    w = array(mx, 128, 3, 3, 64, dtype="bfloat16")
    moved = x.nbytes + w.nbytes + 8 * n * n * 128 * 2
    flops = 2 * 8 * n * n * 128 * 9 * 64
    return lambda: mx.conv2d(x, w, padding=1), moved, flops


def fourier(mx, scale):
    n = 1 << (18 if scale == 1 else 12)
    x = array(mx, 64, n).astype(mx.complex64)
    mx.eval(x)
    return lambda: mx.fft.fft(x), 2 * x.nbytes, 5 * 64 * n * math.log2(n)


def gather(mx, scale):
    x = array(mx, side(scale, 16384), 1024)
    i = mx.random.randint(0, x.shape[0], (x.shape[0],))
    mx.eval(i)
    return lambda: x[i], 2 * x.nbytes, x.size  # one that is moved counts as one


def sort(mx, scale):
    x = array(mx, 1 << (22 if scale == 1 else 14))
    return lambda: mx.sort(x), 2 * x.nbytes, x.size * math.log2(x.size)


OPERATIONS = [
    Operation("elementwise", "add f32", elementwise(lambda mx, x: x + x, "float32")),
    Operation(
        "elementwise", "exp f32", elementwise(lambda mx, x: mx.exp(x), "float32")
    ),
    Operation("elementwise", "cast f32 bf16", elementwise(cast, "float32", 0.5)),
    Operation(
        "elementwise", "transposed copy bf16", elementwise(transposed, "bfloat16")
    ),
    Operation(
        "rows",
        "softmax bf16",
        elementwise(lambda mx, x: mx.softmax(x, -1), "bfloat16", work=5),
    ),
    Operation(
        "rows", "cumsum f32", elementwise(lambda mx, x: mx.cumsum(x, -1), "float32")
    ),
    Operation("rows", "sum of all f32", reduction(lambda mx, x: x.sum())),
    Operation("rows", "sum of rows f32", reduction(lambda mx, x: x.sum(-1))),
    Operation("rows", "sum of columns f32", reduction(lambda mx, x: x.sum(0))),
    Operation("rows", "argmax f32", reduction(lambda mx, x: mx.argmax(x, -1))),
    Operation("rows", "rms_norm bf16", norm(layer=False)),
    Operation("rows", "layer_norm bf16", norm(layer=True)),
    Operation("index", "gather rows f32", gather),
    Operation("index", "sort f32", sort),
    Operation("products", "matmul f32", product("float32")),
    Operation("products", "matmul f16", product("float16")),
    Operation("products", "matmul bf16", product("bfloat16")),
    Operation("products", "matvec bf16", product("bfloat16", rows=1)),
    Operation("quantized", "quantized matvec 4-bit", quantized(1, 4)),
    Operation("quantized", "quantized matvec 8-bit", quantized(1, 8)),
    Operation("quantized", "quantized matmul 4-bit, 16 rows", quantized(16, 4)),
    Operation("quantized", "quantized matmul 4-bit, 512 rows", quantized(512, 4)),
    Operation(
        "attention, convolution, FFT",
        "attention of a prompt bf16",
        attention(4096, 4096),
    ),
    Operation(
        "attention, convolution, FFT", "attention of a token bf16", attention(1, 16384)
    ),
    Operation("attention, convolution, FFT", "conv2d 3x3 bf16", convolution),
    Operation("attention, convolution, FFT", "fft c64", fourier),
]


# Families whose products of 16-bit types run on matrix units.
MATRIX_FAMILIES = ("products", "quantized", "attention, convolution, FFT")


def peak_of(operation: Operation) -> str:
    """The limit of an operation's arithmetic."""
    narrow = not operation.name.endswith(("f32", "c64"))
    matrix = operation.family in MATRIX_FAMILIES
    return report.HALF if matrix and narrow else report.F32


def add_arguments(parser) -> None:
    seconds = arguments.at_least(0, float)
    parser.add_argument(
        "--seconds",
        type=seconds,
        default=0.5,
        metavar="S",
        help="time for each operation (default: %(default)s)",
    )
    parser.add_argument(
        "--filter",
        default="",
        metavar="TEXT",
        help="run only operations whose names contain this text (default: all)",
    )
    parser.add_argument(
        "--small",
        action="store_true",
        help="use small arrays (default on software devices)",
    )
    report.add_arguments(parser)


def limits_of(mx, name: str, seconds: float, scale: int) -> tuple[dict, str]:
    """The device's limits, and where they are from."""
    if chip := chips.find(name):
        limits = {report.MEMORY: chip.memory, report.HALF: chip.half}
        return {**limits, report.F32: chip.f32}, chip.source
    x = array(mx, side(scale, 8192), side(scale, 8192))
    copied = min(samples(lambda: x + 1.0, seconds))
    limits = {report.MEMORY: 2 * x.nbytes / copied / 1e9}
    n = side(scale, 4096)
    for limit, dtype in ((report.HALF, "bfloat16"), (report.F32, "float32")):
        a = array(mx, n, n, dtype=dtype)
        fastest = min(samples(functools.partial(mx.matmul, a, a), seconds))
        limits[limit] = 2 * n**3 / fastest / 1e12
    return limits, report.MEASURED


def raise_limits(limits: dict, rows: list[report.Row]) -> None:
    """Measured limits are the most that any operation reached."""
    for row in rows:
        bandwidth, rate = row.rates()
        limits[row.peak] = max(limits[row.peak], rate)
        limits[report.MEMORY] = max(limits[report.MEMORY], bandwidth)


def run(args) -> int:
    import mlx.core as mx

    native.require_device()
    mx.set_default_device(mx.gpu)
    mx.random.seed(0)
    architecture = str(mx.device_info(mx.gpu).get("architecture", ""))
    scale = 16 if args.small or architecture.endswith("cpu") else 1
    chosen = [op for op in OPERATIONS if args.filter in op.name]
    if not chosen:
        raise Failed(f"No operation's name contains {args.filter!r}.", 2)
    from rich.console import Console
    from rich.progress import track

    rows = []
    console = Console(stderr=True)
    head = report.about()
    limits, source = limits_of(mx, head["device"], args.seconds, scale)
    hidden = not console.is_terminal
    for op in track(chosen, "timing", console=console, transient=True, disable=hidden):
        function, moved, flops = op.make(mx, scale)
        times = [s * 1e6 for s in samples(function, args.seconds)]
        row = report.Row(op.name, "us", times, op.family, moved, flops)
        row.peak = peak_of(op)
        rows.append(row)
        del function
        mx.clear_cache()
    if source == report.MEASURED:
        raise_limits(limits, rows)
    short = [r for r in rows if r.name in ("add f32", "matmul bf16")] or rows[:2]
    return report.finish(args, rows, limits, short, head | {"limits_source": source})
