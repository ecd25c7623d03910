"""Time operations, and compare them with the limits of the device.

Operations are rows of mlx_vulkan.cases, in floating-point types. The limits come from
the vendor's data sheet if the chip is known. Otherwise they are the highest rates that
an operation reached in this run, called "measured".
"""

import functools

from .. import arguments, cases, native
from ..arguments import Failed
from . import chips, report
from .measure import samples

EXAMPLES = """
mlx-vulkan bench ops --filter matmul
mlx-vulkan bench ops --json ops.json --plot ops.png
"""

# Families whose products of 16-bit types run on matrix units.
MATRIX_FAMILIES = ("matmul", "quantized_matmul", "sdpa", "conv")


def array(mx, *shape, dtype="float32"):
    x = mx.random.normal(shape).astype(getattr(mx, dtype))
    mx.eval(x)
    return x


def side(scale: int, full: int) -> int:
    """A length of `full` on a GPU, less on a software device."""
    return max(8, full // scale)


def dtypes_of(case: cases.Case) -> list[str]:
    return [d for d in case.dtypes if d in cases.FLOATS] or [case.dtypes[0]]


def name_of(case: cases.Case, dtype: str) -> str:
    return f"{case.name} {cases.SHORT.get(dtype, dtype)}"


def measure(mx, case: cases.Case, dtype: str, seconds: float, small: bool):
    """Microseconds a call, in a stream of calls."""
    inputs = case.inputs if small else case.bench
    placed, _ = cases.place(mx, cases.bind(case, dtype, inputs=inputs), "contiguous")

    def call():
        return cases.outputs(case.fn(mx, *placed))

    moved = sum(a.nbytes for a in [*placed, *call()])
    narrow = dtype in ("float16", "bfloat16")
    return report.Row(
        name_of(case, dtype),
        "us",
        [s * 1e6 for s in samples(call, seconds)],
        case.family,
        moved,
        case.flops(*[a.shape for a in placed]) if case.flops else 0,
        facts={"shapes": [list(a.shape) for a in placed]},
        peak=report.HALF if narrow and case.family in MATRIX_FAMILIES else report.F32,
    )


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
        help="run only rows whose names contain this text (default: all)",
    )
    parser.add_argument(
        "--small",
        action="store_true",
        help="use small arrays (default on software devices)",
    )
    report.add_arguments(parser)


def limits_of(mx, name: str, seconds: float, scale: int) -> tuple[dict, str]:
    """The device's limits and their source."""
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
    """Raises measured limits to the most that any operation reached."""
    for row in rows:
        bandwidth, rate = row.rates()
        limits[row.peak] = max(limits[row.peak], rate)
        limits[report.MEMORY] = max(limits[report.MEMORY], bandwidth)


def run(args) -> int:
    import mlx.core as mx

    native.require_device()
    mx.set_default_device(mx.gpu)
    mx.random.seed(0)
    small = args.small or cases.is_software(mx)
    chosen = [
        (case, dtype)
        for case in cases.load_cases()
        if case.bench
        for dtype in dtypes_of(case)
        if args.filter in name_of(case, dtype)
    ]
    if not chosen:
        raise Failed(f"No operation's name contains {args.filter!r}.", 2)
    from rich.console import Console
    from rich.progress import track

    rows = []
    console = Console(stderr=True)
    head = report.about()
    limits, source = limits_of(mx, head["device"], args.seconds, 16 if small else 1)
    hidden = not console.is_terminal
    for case, dtype in track(
        chosen, "timing", console=console, transient=True, disable=hidden
    ):
        rows.append(measure(mx, case, dtype, args.seconds, small))
        mx.clear_cache()
    if source == report.MEASURED:
        raise_limits(limits, rows)
    shown = ("add_same f32", "matmul_bench_square bf16")
    short = [r for r in rows if r.name in shown] or rows[:2]
    return report.finish(args, rows, limits, short, head | {"limits_source": source})
