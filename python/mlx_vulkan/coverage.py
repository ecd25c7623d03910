"""Try every primitive of MLX with every dtype on this device.

A probe is a call of MLX's Python API with small arrays. It counts as native if
its graph contains the primitive and the device evaluates it with
MLX_VK_FALLBACK=deny. Takes about a minute.
"""

import json
import os
import re
import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from . import native
from .arguments import note
from .layout import WIDTH

EXAMPLES = """
mlx-vulkan coverage
mlx-vulkan coverage --markdown > coverage.md
"""
EXIT = "Exit status: 1 if a primitive is missing that MLX has on Metal."

DTYPES = (
    *("bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32"),
    *("int64", "float16", "bfloat16", "float32", "float64", "complex64"),
)
HEADS = ("bool", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64")
HEADS += ("f16", "bf16", "f32", "f64", "c64")
SIGNS = {"native": "✓", "cpu": "cpu", "missing": "✗", "refused": "", "other": "–"}
LEGEND = (
    "✓ native: one of this backend's kernels (or only a view); cpu: MLX supports it "
    "on the CPU only; ✗ missing: this backend fails, or decomposes what MLX's Metal "
    "backend runs as one kernel; –: MLX uses other primitives for this type; empty: "
    "MLX rejects the type on every device"
)


def unary() -> dict:
    """Primitive -> a probe of one array: a function of mx and a maker of arrays."""
    names = {
        **{n: n.lower() for n in ("Abs", "Ceil", "Cos", "Cosh", "Erf", "Exp")},
        **{n: n.lower() for n in ("Expm1", "Floor", "Log1p", "Negative")},
        **{n: n.lower() for n in ("Sigmoid", "Sign", "Sin", "Sinh", "Sqrt")},
        **{n: n.lower() for n in ("Square", "Tan", "Tanh", "Real", "Imag", "Log")},
        **{f"Arc{n}": f"arc{n.lower()}" for n in ("Cos", "Cosh", "Sin", "Sinh")},
        **{f"Arc{n}": f"arc{n.lower()}" for n in ("Tan", "Tanh")},
        "BitwiseInvert": "bitwise_invert",
        "Conjugate": "conjugate",
        "ErfInv": "erfinv",
        "LogicalNot": "logical_not",
        "Round": "round",
        "Contiguous": "contiguous",
    }
    return {
        primitive: lambda mx, a, name=name: getattr(mx, name)(a(4, 5))
        for primitive, name in names.items()
    }


def binary() -> dict:
    names = {
        **{n: n.lower() for n in ("Add", "Divide", "Equal", "Greater", "Less")},
        **{n: n.lower() for n in ("Maximum", "Minimum", "Multiply", "Power")},
        **{n: n.lower() for n in ("Remainder", "Subtract", "LogAddExp", "DivMod")},
        "ArcTan2": "arctan2",
        "BitwiseBinary": "bitwise_and",
        "FloorDivide": "floor_divide",
        "GreaterEqual": "greater_equal",
        "LessEqual": "less_equal",
        "LogicalAnd": "logical_and",
        "LogicalOr": "logical_or",
        "NotEqual": "not_equal",
    }
    return {
        primitive: lambda mx, a, name=name: getattr(mx, name)(a(4, 5), a(4, 5))
        for primitive, name in names.items()
    }


def shapes() -> dict:
    """Views, copies, indexing."""
    return {
        "Arange": lambda mx, a: mx.arange(8, dtype=a.dtype),
        "AsStrided": lambda mx, a: mx.as_strided(a(4, 6), (3, 2), (6, 2)),
        "AsType": lambda mx, a: a(4, 5).astype(
            mx.int32 if a.dtype != mx.int32 else mx.float32
        ),
        "Broadcast": lambda mx, a: mx.broadcast_to(a(1, 5), (4, 5)),
        "Concatenate": lambda mx, a: mx.concatenate([a(4, 5), a(4, 3)], axis=1),
        "DynamicSlice": lambda mx, a: mx.slice(
            a(4, 5), mx.array([1, 2]), (0, 1), (2, 2)
        ),
        "DynamicSliceUpdate": lambda mx, a: mx.slice_update(
            a(4, 5), a(2, 2), mx.array([1, 2]), (0, 1)
        ),
        "ExpandDims": lambda mx, a: mx.expand_dims(a(4, 5), 1),
        "Flatten": lambda mx, a: mx.flatten(a(4, 5)),
        "Full": lambda mx, a: mx.full((4, 5), 1, dtype=a.dtype),
        "Gather": lambda mx, a: a(4, 5)[mx.array([2, 0])],
        "GatherAxis": lambda mx, a: mx.take_along_axis(
            a(4, 5), mx.zeros((4, 2), mx.int32), axis=1
        ),
        "MaskedScatter": masked,
        "NumberOfElements": number_of_elements,
        "Pad": lambda mx, a: mx.pad(a(4, 5), 1),
        "Reshape": lambda mx, a: mx.reshape(a(4, 6).T, (8, 3)),
        "Scatter": lambda mx, a: a(4, 5).at[mx.array([2, 0])].add(a(2, 5)),
        "ScatterAxis": lambda mx, a: mx.put_along_axis(
            a(4, 5), mx.zeros((4, 1), mx.int32), a(4, 1), axis=1
        ),
        "Select": lambda mx, a: mx.where(mx.array([True, False]), a(2), a(2)),
        "Slice": lambda mx, a: a(4, 5)[1:3, ::2],
        "SliceUpdate": updated,
        "Split": lambda mx, a: mx.split(a(4, 6), 2, axis=1),
        "Squeeze": lambda mx, a: mx.squeeze(a(4, 1, 5)),
        "Transpose": lambda mx, a: mx.transpose(a(4, 5)),
        "Unflatten": lambda mx, a: mx.unflatten(a(4, 6), 1, (2, 3)),
        "View": lambda mx, a: a(4, 8).view(mx.uint8 if a.dtype.size > 1 else mx.int8),
    }


def updated(mx, a):
    x = a(4, 5)
    x[1:3, 1:3] = a(2, 2)
    return x


def masked(mx, a):
    x = a(4, 5)
    x[mx.arange(20).reshape(4, 5) > 9] = a(10)
    return x


def number_of_elements(mx, a):
    found = []

    def shapeless(x):
        found.append(1)
        return mx.mean(x, axis=0)

    return mx.compile(shapeless, shapeless=True)(a(4, 5))


def reductions() -> dict:
    return {
        "ArgPartition": lambda mx, a: mx.argpartition(a(4, 9), 3),
        "ArgReduce": lambda mx, a: mx.argmax(a(4, 9), axis=1),
        "ArgSort": lambda mx, a: mx.argsort(a(4, 9)),
        "LogSumExp": lambda mx, a: mx.logsumexp(a(4, 9), axis=1),
        "Partition": lambda mx, a: mx.partition(a(4, 9), 3),
        "Reduce": lambda mx, a: mx.sum(a(4, 9), axis=1),
        "Scan": lambda mx, a: mx.cumsum(a(4, 9), axis=1),
        "SearchSorted": lambda mx, a: mx.searchsorted(a(9), a(4)),
        "Softmax": lambda mx, a: mx.softmax(a(4, 9), axis=1),
        "Sort": lambda mx, a: mx.sort(a(4, 9)),
    }


def products() -> dict:
    return {
        "AddMM": lambda mx, a: mx.addmm(a(4, 6), a(4, 5), a(5, 6)),
        "BlockMaskedMM": lambda mx, a: mx.block_masked_mm(
            a(64, 64), a(64, 64), 32, mx.ones((2, 2), mx.bool_)
        ),
        "Convolution": lambda mx, a: mx.conv2d(a(1, 8, 8, 4), a(6, 3, 3, 4)),
        "GatherMM": lambda mx, a: mx.gather_mm(
            a(3, 4, 8), a(3, 8, 5), None, mx.array([2, 0, 1])
        ),
        "Matmul": lambda mx, a: a(4, 5) @ a(5, 6),
        "SegmentedMM": lambda mx, a: mx.segmented_mm(
            a(4, 16), a(16, 5), mx.array([[0, 8], [8, 16]])
        ),
        "GatherQMM": lambda mx, a: mx.gather_qmm(
            a(3, 1, 64),
            *mx.quantize(a(3, 64, 64)),
            rhs_indices=mx.array([2, 0, 1]),
        ),
        "QuantizedMatmul": lambda mx, a: mx.quantized_matmul(
            a(4, 64), *mx.quantize(a(64, 64))
        ),
        "QQMatmul": lambda mx, a: mx.qqmm(a(32, 64), a(32, 64), mode="nvfp4"),
        "GatherQQMM": lambda mx, a: (
            mx.gather_qqmm(a(2, 32, 64), a(2, 32, 64))
            if mx.issubdtype(a.dtype, mx.floating)
            else mx.qqmm(a(32, 64), a(32, 64))
        ),  # rejects types that gather_qqmm does not check
        "Quantize": lambda mx, a: mx.quantize(a(64, 64)),
        "FFT": lambda mx, a: mx.fft.fft(a(4, 16)),
        "Hadamard": lambda mx, a: mx.hadamard_transform(a(4, 16)),
        "Cholesky": lambda mx, a: mx.linalg.cholesky(positive(mx, a)),
        "Eig": lambda mx, a: mx.linalg.eig(positive(mx, a)),
        "Eigh": lambda mx, a: mx.linalg.eigh(positive(mx, a)),
        "Inverse": lambda mx, a: mx.linalg.inv(positive(mx, a)),
        "LUF": lambda mx, a: mx.linalg.lu(positive(mx, a)),
        "QRF": lambda mx, a: mx.linalg.qr(positive(mx, a)),
        "SVD": lambda mx, a: mx.linalg.svd(positive(mx, a)),
    }


def positive(mx, a):
    return (mx.eye(4) * 4).astype(a.dtype)


def gradient(mx, function, *arguments):
    """All gradients of a backward pass."""
    ones = mx.ones_like(function(*arguments))
    outputs, gradients = mx.vjp(function, list(arguments), [ones])
    return [*outputs, *gradients]


def fast() -> dict:
    def attention(mx, q, k, v):
        return mx.fast.scaled_dot_product_attention(q, k, v, scale=0.125)

    def delta(mx, a):
        return mx.fast.gated_delta_update(
            *(a(1, 4, 2, 32), a(1, 4, 2, 32), a(1, 4, 2, 32)),
            *(mx.sigmoid(a(1, 4, 2)), mx.sigmoid(a(1, 4, 2))),
            initial_state=mx.zeros((1, 2, 32, 32)),
        )

    return {
        "RMSNorm": lambda mx, a: mx.fast.rms_norm(a(4, 64), a(64), 1e-5),
        "RMSNormVJP": lambda mx, a: gradient(
            mx, lambda x, w: mx.fast.rms_norm(x, w, 1e-5), a(4, 64), a(64)
        ),
        "LayerNorm": lambda mx, a: mx.fast.layer_norm(a(4, 64), a(64), a(64), 1e-5),
        "LayerNormVJP": lambda mx, a: gradient(
            mx,
            lambda x, w, b: mx.fast.layer_norm(x, w, b, 1e-5),
            *(a(4, 64), a(64), a(64)),
        ),
        "RoPE": lambda mx, a: mx.fast.rope(
            a(1, 2, 4, 64), 64, traditional=False, base=1e4, scale=1.0, offset=0
        ),
        "ScaledDotProductAttention": lambda mx, a: attention(
            mx, *(a(1, 2, 8, 64) for _ in "qkv")
        ),
        "ScaledDotProductAttentionVJP": lambda mx, a: gradient(
            mx, lambda q, k, v: attention(mx, q, k, v), *(a(1, 2, 8, 64) for _ in "qkv")
        ),
        "ConvertFP8": lambda mx, a: mx.to_fp8(a(4, 8)),
        "GatedDeltaUpdate": delta,
        "CrossEntropy": lambda mx, a: mx.fast.cross_entropy(
            a(4, 64), mx.zeros((4,), mx.int32)
        ),
        "CrossEntropyVJP": lambda mx, a: gradient(
            mx,
            lambda x: mx.fast.cross_entropy(x, mx.zeros((4,), mx.int32)),
            a(4, 64),
        ),
    }


def other() -> dict:
    def compiled(mx, a):
        return mx.compile(lambda x: (x + x) * x)(a(4, 5))

    return {
        "Compiled": compiled,
        "Depends": lambda mx, a: mx.depends([a(4, 5)], [a(4, 5)]),
        "RandomBits": lambda mx, a: (
            mx.random.uniform(shape=(4, 5), dtype=a.dtype)
            if mx.issubdtype(a.dtype, mx.inexact)
            else mx.random.randint(0, 2, (4, 5), a.dtype)
        ),
    }


FAMILIES = {
    "One array": unary,
    "Two arrays": binary,
    "Shapes, views, indexing": shapes,
    "Reductions, sorts, scans": reductions,
    "Products, transforms, linear algebra": products,
    "Fused": fast,
    "Others": other,
}


def probes() -> dict:
    """{family: {primitive: probe}} for the primitives of this MLX, found by the names
    of types in its library."""
    text = native.library_path().read_bytes()
    types = set(re.findall(rb"N3mlx4core(?:4fast)?(\d+\w+)E\0", text))
    return {
        family: {
            primitive: probe
            for primitive, probe in sorted(all_probes().items())
            if f"{len(primitive)}{primitive}".encode() in types
        }
        for family, all_probes in FAMILIES.items()
    }


class Maker:
    """a(4, 5): an array of small values of the dtype under test."""

    def __init__(self, mx, dtype):
        self.mx, self.dtype = mx, dtype

    def __call__(self, *shape):
        size = 1
        for n in shape:
            size *= n
        mx = self.mx
        values = (mx.arange(size, stream=mx.cpu) % 7).reshape(shape)
        if mx.issubdtype(self.dtype, mx.inexact):
            values = values / 8
        else:
            values = values % 2
        values = values.astype(self.dtype)
        mx.eval(values)  # which keeps it out of the graph
        return values


def primitives_of(mx, probe, maker) -> set[str]:
    """Names of the primitives in the graph of a call."""
    names = set()

    def see(node):
        if node.get("type") == "primitive":
            names.add(node["name"])

    mx.export_function(see, lambda: flat(mx, probe(mx, maker)))
    return names


def flat(mx, outputs):
    if isinstance(outputs, mx.array):
        return [outputs]
    return [x for x in outputs if isinstance(x, mx.array)]


def attempt(mx, probe, dtype, device) -> str | None:
    """The error of a probe, or None."""
    before = mx.default_device()
    mx.set_default_device(device)
    try:
        mx.eval(flat(mx, probe(mx, Maker(mx, dtype))))
        return None
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    finally:
        mx.set_default_device(before)


class Cpu:
    """MLX's CPU backend in a process of its own: in MLX without mlx/error.h, an
    exception in a task ends the process."""

    def __init__(self):
        self.start()

    def start(self) -> None:
        spawn = get_context("spawn")
        self.pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=die_quietly)
        self.pool.submit(int).result()  # throws if no process starts

    def attempt(self, *probe: str) -> str | None:
        try:
            return self.pool.submit(attempt_on_cpu, *probe).result()
        except BrokenProcessPool:
            self.start()
            return "MLX ends the process"


def die_quietly() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def attempt_on_cpu(family: str, primitive: str, dtype: str) -> str | None:
    import mlx.core as mx

    probe = FAMILIES[family]()[primitive]
    return attempt(mx, probe, getattr(mx, dtype), mx.cpu)


def judge(mx, cpu: Cpu, family, primitive, probe, name) -> tuple[str, str]:
    """One of SIGNS, and the error if there was one."""
    dtype = getattr(mx, name)
    error = attempt(mx, probe, dtype, mx.gpu)
    if error is None:
        try:
            names = primitives_of(mx, probe, Maker(mx, dtype))
        except Exception:  # some primitives cannot be exported
            return "native", ""
        seen = not names or any(n.startswith(primitive) for n in names)
        return ("native" if seen else "other"), ", ".join(sorted(names))
    on_cpu = cpu.attempt(family, primitive, name)
    if on_cpu is not None:
        return "refused", on_cpu
    # Messages of MLX and of src/backend/fallback.cpp.
    words = ("float64 is not supported", "has no Vulkan kernel")
    return ("cpu" if any(w in error for w in words) else "missing"), error


def probe_all() -> dict:
    """{family: {primitive: {dtype: [status, error]}}}"""
    os.environ["MLX_VK_FALLBACK"] = "deny"
    import mlx.core as mx

    native.require_device()
    mx.set_default_device(mx.gpu)
    cpu = Cpu()
    todo = [
        (family, primitive, probe)
        for family, row in probes().items()
        for primitive, probe in row.items()
    ]
    found = {family: {} for family in FAMILIES}
    for family, primitive, probe in tracked(todo):
        found[family][primitive] = {
            head: judge(mx, cpu, family, primitive, probe, name)
            for head, name in zip(HEADS, DTYPES)
        }
    return found


def tracked(todo: list):
    """The probes, with a bar on stderr, or a line per family without a terminal."""
    from rich.console import Console
    from rich.progress import track

    console, last = Console(stderr=True), None
    if console.is_terminal:
        yield from track(todo, "trying primitives", console=console, transient=True)
        return
    for probe in todo:
        if probe[0] != last:
            last = probe[0]
            note(f"trying: {last}")
        yield probe


def markdown(found: dict) -> str:
    lines = [LEGEND + ".", ""]
    for family, rows in found.items():
        lines += [f"### {family}", "", "| | " + " | ".join(HEADS) + " |"]
        lines.append("|---" * (len(HEADS) + 1) + "|")
        for primitive, statuses in rows.items():
            signs = " | ".join(SIGNS[statuses[head][0]] for head in HEADS)
            lines.append(f"| {primitive} | {signs} |")
        lines.append("")
    return "\n".join(lines)


def show(found: dict) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    for family, rows in found.items():
        table = Table(title=family, title_justify="left", padding=(0, 0))
        table.add_column("", no_wrap=True)
        for head in HEADS:
            table.add_column(head, justify="center")
        for primitive, statuses in rows.items():
            table.add_row(primitive, *(SIGNS[statuses[h][0]] for h in HEADS))
        console.print(table)
    console.print(LEGEND)
    for rows in found.values():
        for primitive, statuses in rows.items():
            for head, (status, error) in statuses.items():
                if status == "missing":
                    console.print(f"✗ {primitive} {head}: {error}", markup=False)


def add_arguments(parser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--json", action="store_true", help="print JSON, with every error"
    )
    form.add_argument("--markdown", action="store_true", help="print Markdown tables")


def run(args) -> int:
    found = probe_all()
    if args.json:
        print(json.dumps(found, indent=1))
    elif args.markdown:
        print(markdown(found))
    else:
        show(found)
    statuses = [
        s for rows in found.values() for row in rows.values() for s in row.values()
    ]
    return 1 if any(status == "missing" for status, _ in statuses) else 0
