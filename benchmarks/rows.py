"""Times products of quantized weights with 1 to 512 rows, beside the device's limits.

    python benchmarks/rows.py [NAME ...] [--rows 1,2,4] [--json FILE] [--plot FILE.png]
    python benchmarks/rows.py --draw BEFORE.json AFTER.json --plot FILE.png

The shapes are those of Qwen3-8B (a decode step of so many streams) and of the experts
of Qwen3-30B-A3B (so many tokens, 8 of 128 experts each, called as mlx-lm does), 4-bit,
groups of 128, bfloat16. Single products are independent of each other and rotate
among more weights than a cache holds; in the two layers each product depends on the one
before. Sizes are measured in turn, in a random order. Where fewer rows take more than
5 % longer than more rows, the report says so.
"""

import argparse
import itertools
import random
import sys
import time

import mlx.core as mx
import mlx.nn as nn

from mlx_vulkan import arguments, cases
from mlx_vulkan.bench import ops, report

GROUP, BITS, EXPERTS, EACH = 128, 4, 128, 8
HOW = dict(transpose=True, group_size=GROUP, bits=BITS)
ROWS = (*range(1, 17), 24, 32, 48, 64, 65, 80, 96, 128, 160, 192, 256, 320, 384, 448)
ROWS = (*ROWS, 512)
ROTATED = 200e6  # bytes of weights; the largest cache of a GPU has about half
SLACK = 0.05


def normal(*shape):
    return mx.random.normal(shape).astype(mx.bfloat16)


def weights(n: int, k: int, *count: int) -> tuple:
    """Random codes and scales with which products are as large as their inputs."""
    codes = mx.random.randint(0, 2**32 - 1, (*count, n, k // 8), dtype=mx.uint32)
    scales = mx.random.uniform(0.5, 1.5, (*count, n, k // GROUP)) / (4.6 * k**0.5)
    made = (codes, scales.astype(mx.bfloat16), (-7.5 * scales).astype(mx.bfloat16))
    mx.eval(made)
    return made


def code_bytes(n: int, k: int) -> float:
    return n * k * BITS / 8 + n * k / GROUP * 4


def repeated(call):
    """A function that evaluates so many independent calls."""

    def run(calls: int):
        mx.eval([call() for _ in range(calls)])

    return run


def product(n: int, k: int):
    """A function of the rows that returns one of so many calls, and a call's bytes and
    operations."""
    copies = max(2, int(ROTATED / code_bytes(n, k)))
    turn = itertools.cycle([weights(n, k) for _ in range(copies)])

    def at(rows: int):
        # Products of the same rows would be joined.
        inputs = [normal(rows, k) for _ in range(16)]
        mx.eval(inputs)
        x = itertools.cycle(inputs)

        def call():
            return mx.quantized_matmul(next(x), *next(turn), **HOW)

        return repeated(call), code_bytes(n, k) + 2 * rows * (n + k), 2 * rows * n * k

    return at


def chosen_experts(tokens: int) -> mx.array:
    return mx.argsort(mx.random.uniform(shape=(tokens, EXPERTS)), -1)[:, :EACH]


def distinct(ids: list) -> float:
    """The mean number of experts that a call needs."""
    return sum(len(set(i.reshape(-1).tolist())) for i in ids) / len(ids)


def expert_products(n: int, k: int, down: bool = False):
    """Like product(), of the experts of so many tokens; `down`: each pair of a token
    and an expert has a row of x."""
    copies = max(2, int(ROTATED / code_bytes(n, k) / EXPERTS))
    made = [weights(n, k, EXPERTS) for _ in range(copies)]

    def at(tokens: int):
        in_order = tokens * EACH >= 64  # where mlx-lm sorts
        ids = [chosen_experts(tokens) for _ in range(8)]
        shape = (tokens, EACH if down else 1, 1, k)
        if in_order:
            ids = [mx.sort(i.reshape(-1)) for i in ids]
            shape = (tokens * EACH, 1, k)
        x = normal(*shape)
        mx.eval(x, ids)
        turn = itertools.cycle(itertools.product(ids, made))
        more = dict(sorted_indices=in_order, **HOW)

        def call():
            index, w = next(turn)
            return mx.gather_qmm(x, *w, rhs_indices=index, **more)

        moved = distinct(ids) * code_bytes(n, k) + 2 * (x.size + tokens * EACH * n)
        return repeated(call), moved, 2 * tokens * EACH * n * k

    return at


def layer(width: int, kv: int, inner: int):
    """Like product(), of the seven products of a layer, without what is between."""
    shapes = [(width, width), (kv, width), (kv, width), (width, width)]
    shapes += [(inner, width), (inner, width), (width, inner)]
    turn = itertools.cycle([[weights(*s) for s in shapes] for _ in range(3)])

    def at(rows: int):
        x = normal(rows, width)
        mx.eval(x)

        def run(calls: int):
            y, outputs = x, []
            for _ in range(calls):
                q, k, v, o, gate, up, down = next(turn)
                heads, *rest = (mx.quantized_matmul(y, *w, **HOW) for w in (q, k, v))
                y = mx.quantized_matmul(heads, *o, **HOW)
                rest.append(mx.quantized_matmul(y, *up, **HOW))
                y = mx.quantized_matmul(y, *gate, **HOW)
                y = mx.quantized_matmul(y, *down, **HOW)
                outputs += rest
            mx.eval(y, outputs)

        moved = sum(code_bytes(*s) + 2 * rows * sum(s) for s in shapes)
        return run, moved, sum(2 * rows * n * k for n, k in shapes)

    return at


def layer_of_experts(width: int, inner: int):
    """Like product(), of mlx-lm's module of a layer's experts and their sum."""
    from mlx_lm.models.switch_layers import SwitchGLU

    made = []
    for _ in range(2):
        module = SwitchGLU(width, inner, EXPERTS)
        module.set_dtype(mx.bfloat16)
        nn.quantize(module, group_size=GROUP, bits=BITS)
        mx.eval(module.parameters())
        made.append(module)

    def at(tokens: int):
        ids = [chosen_experts(tokens) for _ in range(8)]
        x, shares = normal(1, tokens, width), mx.full((1, tokens, EACH, 1), 1 / EACH)
        shares = shares.astype(mx.bfloat16)
        ids = [i[None] for i in ids]
        mx.eval(x, shares, ids)
        turn = itertools.cycle(itertools.product(ids, made))

        def run(calls: int):
            y = x
            for _ in range(calls):
                index, module = next(turn)
                y = (module(y, index) * shares).sum(-2)
            mx.eval(y)

        pairs = tokens * EACH
        moved = 3 * distinct(ids) * code_bytes(inner, width)
        moved += 2 * (2 * tokens * width + 4 * pairs * inner)
        return run, moved, 6 * pairs * inner * width

    return at


def series(scale: int) -> dict:
    """Functions that make each, by name; sizes are divided by `scale`, but to no less
    than one group."""

    def size(full: int) -> int:
        return max(GROUP, full // scale // GROUP * GROUP)

    d, kv, inner, moe, expert = map(size, (4096, 1024, 12288, 2048, 768))
    return {
        f"8B k, v ({kv} x {d})": lambda: product(kv, d),
        f"8B q, o ({d} x {d})": lambda: product(d, d),
        f"8B gate, up ({inner} x {d})": lambda: product(inner, d),
        f"8B down ({d} x {inner})": lambda: product(d, inner),
        f"30B-A3B gate, up ({expert} x {moe})": lambda: expert_products(expert, moe),
        f"30B-A3B down ({moe} x {expert})": lambda: expert_products(moe, expert, True),
        "8B products of a layer": lambda: layer(d, kv, inner),
        "30B-A3B experts of a layer": lambda: layer_of_experts(moe, expert),
    }


def timed(run, calls: int) -> float:
    begun = time.perf_counter()
    run(calls)
    return time.perf_counter() - begun


def measure(name: str, make, args) -> list[report.Row]:
    at, cells, rows = make(), {}, []
    for count in args.rows:
        run, moved, flops = at(count)
        facts = {"series": name, "rows": count}
        row = report.Row(f"{name}: {count}", "us", [], name, moved, flops, facts=facts)
        row.peak = report.HALF
        rows.append(row)
        calls = 1
        # Twice: the first time may compile.
        while min(timed(run, calls), timed(run, calls)) < args.seconds:
            if calls == 4096:
                break
            calls *= 2
        cells[count] = row, run, calls
    rng = random.Random(0)
    for _ in range(args.rounds):
        for count in rng.sample(args.rows, len(args.rows)):
            row, run, calls = cells[count]
            row.values.append(timed(run, calls) / calls * 1e6)
    return rows


def slower_with_fewer(rows: list[report.Row]) -> list[tuple]:
    """Pairs of rows of a series of which the one of fewer rows takes longer."""
    found = []
    for i, row in enumerate(rows[:-1]):
        least = min(rows[i + 1 :], key=lambda later: later.median)
        if row.median > (1 + SLACK) * least.median:
            found.append((row, least))
    return found


def by_series(rows: list[report.Row]) -> dict[str, list[report.Row]]:
    groups = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    for group in groups.values():
        group.sort(key=lambda row: row.facts["rows"])
    return groups


def judge(rows: list[report.Row]) -> None:
    for name, group in by_series(rows).items():
        found = slower_with_fewer(group)
        for row, least in found:
            print(
                f"NOT MONOTONE {name}: {row.facts['rows']} rows take "
                f"{row.median:.1f} us, {least.facts['rows']} take {least.median:.1f}"
            )
        if not found:
            print(f"monotone within {100 * SLACK:.0f} %: {name}")


def draw(path: str, results: dict, limits: dict, title: str) -> None:
    """A part for each series: times of each of `results`, and the limits."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    first = by_series(next(iter(results.values())))
    high = -(-len(first) // 4)
    figure, axes = pyplot.subplots(
        high, min(4, len(first)), figsize=(16, 1 + 3.8 * high), squeeze=False
    )
    for ax, (name, group) in zip(axes.flat, first.items()):
        x = [row.facts["rows"] for row in group]
        for label, rows in results.items():
            mine = by_series(rows).get(name, [])
            times = [row.median for row in mine]
            ax.plot([r.facts["rows"] for r in mine], times, "o-", ms=3, label=label)
        memory = [row.bytes / limits[report.MEMORY] / 1e3 for row in group]
        units = [row.flops / limits[report.HALF] / 1e6 for row in group]
        ax.plot(x, memory, "k--", lw=0.8, label="memory's limit")
        ax.plot(x, units, "k:", lw=0.8, label="units' limit")
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        ax.set_ylim(bottom=min(memory) / 2)
        ax.set_title(name, fontsize=9, loc="left")
        ax.set_xlabel("rows", fontsize=8)
        ax.set_ylabel("us", fontsize=8)
        ax.tick_params(which="both", labelsize=7)
        ax.grid(True, which="major", lw=0.3)
        ax.legend(fontsize=6)
    for ax in axes.flat[len(first) :]:
        ax.set_axis_off()
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    pyplot.close(figure)


def title_of(head: dict, limits: dict) -> str:
    described = report.describe(head, limits)
    return f"{head['device']}, {head['driver']}, {head['commit']}\n{described}"


def draw_again(args) -> int:
    loaded = {name: report.load(name) for name in args.draw}
    rows = {name.removesuffix(".json"): loaded[name][1] for name in args.draw}
    for name in rows:
        print(name)
        judge(rows[name])
    head = loaded[args.draw[0]][0]
    if args.plot:
        draw(args.plot, rows, head["limits"], title_of(head, head["limits"]))
    return 0


def limits_of(args, device: str, small: bool) -> tuple[dict, str]:
    if args.limits:
        memory, half = args.limits
        return {report.MEMORY: memory, report.HALF: half}, "given"
    limits, source = ops.limits_of(mx, device, 0.3, 16 if small else 1)
    return {name: limits[name] for name in (report.MEMORY, report.HALF)}, source


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of names")
    numbers = arguments.several(arguments.at_least(1))
    parser.add_argument("--rows", type=numbers, default=list(ROWS), metavar="N,...")
    parser.add_argument("--seconds", type=float, default=0.01, help="of a measurement")
    parser.add_argument("--rounds", type=int, default=7, help="measurements of a size")
    parser.add_argument("--small", action="store_true", help="an eighth of the sizes")
    parser.add_argument(
        "--limits",
        nargs=2,
        type=float,
        metavar=("GB/s", "TFLOP/s"),
        help="instead of the data sheet's or measured ones",
    )
    parser.add_argument("--draw", nargs="+", metavar="FILE", help="JSON of other runs")
    report.add_arguments(parser)
    return parser.parse_args()


def main() -> int:
    args = parse()
    if args.draw:
        return draw_again(args)
    if not mx.is_available(mx.gpu):
        sys.exit("mx.gpu is not available. MLX_VK_DEVICE=cpu picks software.")
    mx.random.seed(0)
    args.rows = sorted(set(args.rows))
    small = args.small or cases.is_software(mx)
    makers = series(8 if small else 1)
    wanted = args.names or [""]
    chosen = [name for name in makers if any(part in name for part in wanted)]
    if not chosen:
        sys.exit(f"No name has {' or '.join(wanted)}: {'; '.join(makers)}")
    head, rows = report.about(False), []
    limits, head["limits_source"] = limits_of(args, head["device"], small)
    for name in chosen:
        rows += measure(name, makers[name], args)
        mx.clear_cache()
    picture, args.plot = args.plot, None
    status = report.finish(args, rows, limits, rows[:2], head)
    judge(rows)
    if picture:
        draw(picture, {"measured": rows}, limits, title_of(head, limits))
    return status


if __name__ == "__main__":
    sys.exit(main())
