"""SIMD-group functions of translated Metal kernels (common/msl_simd.glsl) against
NumPy: emulated in shared memory, as on a device with narrow subgroups, which runs
on any; and in subgroups, where the device has them of 32."""

import os

import mlx.core as mx
import numpy as np
import pytest

from mlx_vulkan.fast import vulkan_kernel

HEADER = """
#define MSL_SUBGROUP {subgroup}
#define MSL_THREADS (gl_WorkGroupSize.x * gl_WorkGroupSize.y)
#define MSL_SIMD
#define A ARGUMENTS
#include "common/msl.glsl"
#if MSL_EMULATED
#define CALL(f, x) msl_##f(on, x)
#define MOVE(f, x, d) msl_##f(on, x, d)
#define FILL(f, x, fill, d) msl_##f(on, x, fill, d)
#define ALONE(f) msl_##f(on)
#else
#define CALL(f, x) msl_##f(x)
#define MOVE(f, x, d) msl_##f(x, d)
#define FILL(f, x, fill, d) msl_##f(x, fill, d)
#define ALONE(f) msl_##f()
#endif
"""
REDUCE = ("sum", "product", "min", "max")
BITS = ("and", "or", "xor")
FUNCTIONS = {"sum": np.add, "product": np.multiply, "min": np.fmin, "max": np.fmax}
FUNCTIONS |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
DTYPES = {
    "float32": mx.float32,
    "int32": mx.int32,
    "uint32": mx.uint32,
    "int8": mx.int8,
    "uint16": mx.uint16,
}
MOVES = {  # name, argument -> the lane that lane l of n reads from; None: its own
    "shuffle_xor": (5, lambda l, n, d: l ^ d),
    "shuffle_up": (3, lambda l, n, d: l - d if l >= d else None),
    "shuffle_down": (7, lambda l, n, d: l + d if l + d < n else None),
    "shuffle_rotate_up": (9, lambda l, n, d: (l - d) % n),
    "shuffle_rotate_down": (1, lambda l, n, d: (l + d) % n),
    "broadcast": (2, lambda l, n, d: d),
    "shuffle": (1, lambda l, n, d: d),
}


def forms():
    """Subgroup sizes to run with: 8 stands for all narrow ones."""
    k = vulkan_kernel("width", [], ["y"], "store(y, 0, gl_SubgroupSize);")
    try:
        mx.eval(run(k, [], [(1,)], [mx.uint32], 64, subgroup_size=32))
        return [8, 32]
    except ValueError:
        return [8]


def run(kernel, inputs, shapes, dtypes, threads, groups=1, **more):
    return kernel(
        inputs=inputs,
        output_shapes=shapes,
        output_dtypes=dtypes,
        grid=(threads * groups, 1, 1),
        threadgroup=(threads, 1, 1),
        **more,
    )


def items(dtype, n):
    rng = np.random.default_rng(3)
    if np.issubdtype(dtype, np.floating):
        # Products of few powers of two, sums of few bits: exact in any order.
        return (2.0 ** rng.integers(-2, 3, n) * rng.choice([-1, 1], n)).astype(dtype)
    return rng.integers(-3 if dtype.startswith("int") else 0, 5, n).astype(dtype)


def test_narrow_and_wide_forms_compile(gpu):
    for subgroup in (32, 64):
        k = vulkan_kernel(
            "compiles",
            ["x"],
            ["y"],
            "float v = load(x, 0);"
            "store(y, 0, CALL(simd_sum, v) + CALL(quad_max, v)"
            " + CALL(simd_prefix_inclusive_sum, v) + MOVE(simd_shuffle_up, v, 1u));",
            header=HEADER.format(subgroup=subgroup),
        )
        mx.eval(run(k, [mx.ones((1,))], [(1,)], [mx.float32], 1))


SOME = [("float32", 64), ("float32", 45), ("int32", 7), ("int8", 45), ("uint16", 64)]
ALL = [(dtype, threads) for dtype in DTYPES for threads in (7, 32, 45, 64, 1024)]


@pytest.mark.parametrize(
    "dtype, threads", ALL if os.environ.get("MLX_VK_TEST_FULL") == "1" else SOME
)
def test_collectives(gpu, dtype, threads):
    numbers = REDUCE + (BITS if dtype != "float32" else ())
    calls = [("simd", f, None) for f in numbers] + [("quad", f, None) for f in numbers]
    calls += [
        (group, f"prefix_{kind}_{f}", None)
        for group in ("simd", "quad")
        for kind in ("inclusive", "exclusive")
        for f in ("sum", "product")
    ]
    moves = [("simd", m, MOVES[m][0]) for m in MOVES]
    moves += [("quad", m, MOVES[m][0] % 4) for m in MOVES]
    # What an inactive lane would have is not defined: all are active for moves.
    groups = 2
    n = threads * groups
    x = items(dtype, n)
    active = np.ones(n, bool)
    active[::3] = False
    active[4:8] = False  # a whole quad-group
    lines = ["T v = load(x, i); bool on = load(a, i);"]
    for row, (group, f, _) in enumerate(calls):
        call = f"CALL({group}_{f}, v)"
        # In subgroups an inactive lane takes no part.
        lines.append(
            "#if MSL_EMULATED\n"
            f"store(y, {row * n} + i, {call});\n#else\n"
            f"if (on) store(y, {row * n} + i, {call});\n#endif"
        )
    lines.append("on = true;")
    for row, (group, f, argument) in enumerate(moves, len(calls)):
        lines.append(f"store(y, {row * n} + i, MOVE({group}_{f}, v, {argument}u));")
    rows = len(calls) + len(moves)
    source = "uint i = thread_position_in_grid.x;\n" + "\n".join(lines)

    for subgroup in forms():
        k = vulkan_kernel(
            f"collectives_{subgroup}",
            ["x", "a"],
            ["y"],
            source,
            header=HEADER.format(subgroup=subgroup),
        )
        y = run(
            k,
            [mx.array(x), mx.array(active)],
            [(rows, n)],
            [DTYPES[dtype]],
            threads,
            groups,
            template=[("T", DTYPES[dtype])],
            subgroup_size=32 if subgroup == 32 else None,
        )[0]
        y = np.array(y)
        for row, (group, f, argument) in enumerate(calls + moves):
            width = 32 if group == "simd" else 4
            for g in range(groups):
                for base in range(0, threads, width):
                    lanes = np.arange(base, min(base + width, threads)) + g * threads
                    got = y[row, lanes]
                    on = active[lanes]
                    with np.errstate(over="ignore"):
                        want, where = expected(
                            f, argument, x[lanes], on, width, x.dtype
                        )
                    where = where & on if argument is None else where
                    assert np.array_equal(got[where], want[where]), (f, group, lanes)


def expected(f, argument, x, on, width, dtype):
    """Values of the lanes of one group, and where they are defined."""
    n = len(x)
    if argument is not None:
        source = [MOVES[f][1](lane, width, argument) for lane in range(n)]
        own = [lane if s is None else s for lane, s in zip(range(n), source)]
        there = np.array([s < n for s in own])
        return x[[s if s < n else 0 for s in own]], there
    function = FUNCTIONS[f.split("_")[-1]]
    if not f.startswith("prefix"):
        mine = x[on]
        value = function.reduce(mine, dtype=dtype) if len(mine) else x[0]
        return np.full(n, value, dtype), np.full(n, bool(len(mine)))
    neutral = dtype.type(0 if f.endswith("sum") else 1)
    y = np.where(on, x, neutral)
    inclusive = function.accumulate(y, dtype=dtype)
    if "inclusive" in f:
        return inclusive, np.ones(n, bool)
    return np.concatenate([[neutral], inclusive[:-1]]), np.ones(n, bool)


def test_emulated_sums_add_as_apple_gpus(gpu):
    """Pairs, then fours, eights, sixteens: the bits that shuffles written out give."""
    threads = 77
    x = np.random.default_rng(5).standard_normal(threads).astype(np.float32)
    source = "uint i = thread_position_in_grid.x; bool on = true; float v = load(x, i);"
    k = vulkan_kernel(
        "sum_order",
        ["x"],
        ["y"],
        f"{source} store(y, i, CALL(simd_sum, v)); store(y, {threads}u + i, "
        "CALL(quad_sum, v));",
        header=HEADER.format(subgroup=8),
    )
    y = run(k, [mx.array(x)], [(2, threads)], [mx.float32], threads)[0]
    padded = np.zeros(96, np.float32)
    padded[:threads] = x
    for row, size in enumerate((32, 4)):
        sums = padded
        while len(sums) > 96 // size:
            sums = sums[::2] + sums[1::2]
        np.testing.assert_array_equal(y[row], np.repeat(sums, size)[:threads])


def test_votes_and_who_is_first(gpu):
    n = 40
    x = np.arange(n) % 5 == 1
    active = np.arange(n) % 4 != 0
    source = """
        uint i = thread_position_in_grid.x;
        bool on = load(a, i), v = load(x, i);
        uint ballot = 0u, any = 0u, all = 0u, mask = 0u, first = 0u, quad = 0u;
        #if !MSL_EMULATED
        if (on)
        #endif
        {
          ballot = CALL(simd_ballot, v);
          any = uint(CALL(simd_any, v));
          all = uint(CALL(simd_all, v));
          mask = ALONE(simd_active_threads_mask);
          first = uint(ALONE(simd_is_first));
          quad = CALL(quad_ballot, v);
        }
        store(y, i * 6, ballot);
        store(y, i * 6 + 1, any);
        store(y, i * 6 + 2, all);
        store(y, i * 6 + 3, mask);
        store(y, i * 6 + 4, first);
        store(y, i * 6 + 5, quad);
    """
    for subgroup in forms():
        k = vulkan_kernel(
            "votes", ["x", "a"], ["y"], source, header=HEADER.format(subgroup=subgroup)
        )
        y = run(
            k,
            [mx.array(x), mx.array(active)],
            [(n, 6)],
            [mx.uint32],
            n,
            subgroup_size=32 if subgroup == 32 else None,
        )[0]
        y = np.array(y)
        for i in np.flatnonzero(active):
            base, quad = i // 32 * 32, i // 4 * 4
            lanes = [j for j in range(base, min(base + 32, n)) if active[j]]
            votes = sum(1 << (j - base) for j in lanes if x[j])
            mask = sum(1 << (j - base) for j in lanes)
            in_quad = sum(1 << (j - quad) for j in lanes if x[j] and j // 4 == i // 4)
            want = [votes, votes != 0, votes == mask, mask, i == lanes[0], in_quad]
            assert y[i].tolist() == want, i


def test_shuffles_of_other_types(gpu):
    n = 37
    x = mx.arange(n)
    source = """
        uint i = thread_position_in_grid.x;
        int v = load(x, i);
        bool on = true;
        vec3 a = MOVE(simd_shuffle_down, vec3(v, v + 1, v + 2), 2u);
        int64_t b = MOVE(simd_shuffle_xor, (int64_t(v) << 40) - 1l, 1u);
        bool c = MOVE(simd_broadcast, v % 32 == 3, 3u);
        vec2 d = CALL(simd_sum, vec2(v, 1.0));
        int e = CALL(simd_broadcast_first, v);
        int8_t f = FILL(simd_shuffle_and_fill_up, int8_t(v), int8_t(-v), 2u);
        int g = FILL(simd_shuffle_and_fill_down, v, -v, 3u);
        store(y, i * 7, int64_t(a.x + 100.0 * a.z));
        store(y, i * 7 + 1, b);
        store(y, i * 7 + 2, int64_t(c));
        store(y, i * 7 + 3, int64_t(d.x + 1000.0 * d.y));
        store(y, i * 7 + 4, int64_t(e));
        store(y, i * 7 + 5, int64_t(f));
        store(y, i * 7 + 6, int64_t(g));
    """
    for subgroup in forms():
        k = vulkan_kernel(
            "others", ["x"], ["y"], source, header=HEADER.format(subgroup=subgroup)
        )
        size = 32 if subgroup == 32 else None
        y = run(k, [x], [(n, 7)], [mx.int64], n, subgroup_size=size)[0]
        y = np.array(y)
        for i in range(n):
            base, size = i // 32 * 32, min(32, n - i // 32 * 32)
            down = i + 2 if i % 32 + 2 < 32 else i
            other = base + (i % 32 ^ 1)
            up = i - 2 if i % 32 >= 2 else -(i + 30)
            fill = i + 3 if i % 32 + 3 < 32 else -(i + 3 - 32)
            want = [
                down + 100 * (down + 2) if down < n else None,
                (other << 40) - 1 if other < n else None,
                1,
                sum(range(base, base + size)) + 1000 * size,
                base,
                up if abs(up) < n else None,
                fill if fill < n else None,
            ]
            got = [g if w is not None else None for g, w in zip(y[i].tolist(), want)]
            assert got == want, i


def test_any_in_threadgroup(gpu):
    k = vulkan_kernel(
        "any",
        ["x"],
        ["y"],
        """
        uint i = thread_position_in_grid.x;
        int left = load(x, i), turns = 0;
        while (msl_any_in_threadgroup(left > 0)) {
          left--;
          turns++;
        }
        store(y, i, turns);
        """,
        header=HEADER.format(subgroup=8),
    )
    x = mx.arange(70) % 11 + 10 * (mx.arange(70) > 60)
    y = run(k, [x], [(70,)], [mx.int32], 35, groups=2)[0]
    x = np.array(x).reshape(2, 35)
    assert np.array_equal(np.array(y).reshape(2, 35), x.max(1)[:, None] + 0 * x)
