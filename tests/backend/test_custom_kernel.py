"""mx.fast.metal_kernel, from MSL to results, against NumPy."""

import mlx.core as mx
import numpy as np
import pytest
from custom import run

from mlx_vulkan import native


def metal(source, inputs=("x",), outputs=("y",), **more):
    return mx.fast.metal_kernel(
        name="kernel",
        input_names=list(inputs),
        output_names=list(outputs),
        source=source,
        **more,
    )


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
def test_elementwise_rounds_in_its_dtype(gpu, dtype):
    k = metal(
        """
        uint i = thread_position_in_grid.x;
        T a = x[i], b = y[i];
        z[i] = a * b + T(0.1f) * (a > b ? a : b);
        """,
        ["x", "y"],
        ["z"],
    )
    x, y = mx.random.normal((2, 77)).astype(dtype)
    z = run(k, [x, y], (77,), dtype, template=[("T", dtype)])
    tenth = mx.array(0.1).astype(dtype)
    want = x * y + tenth * mx.maximum(x, y)
    # float32 may be contracted: either product stays unrounded (2^-24 of it), and so
    # the sum may round to its neighbour.
    products = mx.abs(x * y) + mx.abs(tenth * mx.maximum(x, y))
    bound = 2.0**-24 * products + 2.0**-23 * mx.abs(want)
    bound = bound if dtype == mx.float32 else 0 * x
    assert mx.all(mx.abs(z - want) <= bound)


@pytest.mark.parametrize("dtype", [mx.int8, mx.uint16, mx.int64, mx.uint32, mx.bool_])
def test_integers(gpu, dtype):
    k = metal(
        "uint i = thread_position_in_grid.x;z[i] = static_cast<T>(x[i] & y[i]) ^ T(1);",
        ["x", "y"],
        ["z"],
    )
    x, y = (mx.random.randint(0, 100, (2, 50))).astype(dtype)
    z = run(k, [x, y], (50,), dtype, template=[("T", dtype)])
    assert mx.array_equal(z, (x & y) ^ mx.array(1, dtype))


def test_strided_inputs_by_elem_to_loc(gpu):
    k = metal(
        """
        uint elem = thread_position_in_grid.x;
        auto loc = elem_to_loc(int64_t(elem), x_shape, x_strides, x_ndim);
        y[elem] = x[loc] + c;
        """,
        ["x", "c"],
        ensure_row_contiguous=False,
    )
    base = mx.random.normal((6, 5, 8))
    for x in (base.transpose(2, 0, 1), base[1:, 2:, 3:], base[::2, ::-1]):
        y = run(k, [x, mx.array(2.0)], x.shape, mx.float32)
        assert mx.array_equal(y, x + 2)


def test_templates_structs_and_helpers_of_the_header(gpu):
    k = metal(
        """
        uint i = thread_position_in_grid.x;
        Pair<T> p = {x[i], T(N)};
        y[i] = FLAG ? combine<T, N>(p) : T(-1);
        """,
        header="""
        template <typename T> struct Pair { T a; T b; };
        template <typename T, int N>
        T combine(const thread Pair<T>& p) {
          T sum = 0;
          #pragma unroll
          for (int i = 0; i < N; ++i) { sum += p.a * p.b; }
          return sum;
        }
        """,
    )
    x = mx.arange(40, dtype=mx.float16)
    template = [("T", mx.float16), ("N", 3), ("FLAG", True)]
    assert mx.array_equal(run(k, [x], (40,), mx.float16, template=template), x * 9)
    template[2] = ("FLAG", False)
    y = run(k, [x], (40,), mx.float16, template=template)
    assert mx.array_equal(y, mx.full((40,), -1, mx.float16))


def test_attributes_at_the_edges(gpu):
    k = metal(
        """
        uint3 p = thread_position_in_grid, n = threads_per_grid;
        uint i = p.x + n.x * (p.y + n.y * p.z);
        y[i * 5] = threads_per_threadgroup.x;
        y[i * 5 + 1] = dispatch_threads_per_threadgroup.y;
        y[i * 5 + 2] = threadgroup_position_in_grid.x;
        y[i * 5 + 3] = thread_index_in_threadgroup;
        y[i * 5 + 4] = threadgroups_per_grid.x * 10 + simdgroups_per_threadgroup;
    """,
        [],
    )
    y = np.array(run(k, [], (3, 10, 5), mx.int32, (10, 3, 1), (4, 2, 1)))
    for row in range(3):
        for x in range(10):
            wide = 4 if x < 8 else 2
            index = x % 4 + wide * (row % 2)
            assert y[row, x].tolist() == [wide, 2, x // 4, index, 31]


@pytest.mark.parametrize("threads", [8, 32, 40, 96])
def test_reductions_in_threadgroup_memory(gpu, threads):
    k = metal(
        """
        threadgroup float parts[32];
        uint t = thread_position_in_threadgroup.x, g = threadgroup_position_in_grid.x;
        float s = 0;
        for (uint i = t; i < n; i += threads_per_threadgroup.x) { s += x[g * n + i]; }
        s = simd_sum(s);
        if (thread_index_in_simdgroup == 0) {
          parts[simdgroup_index_in_threadgroup] = s;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (simdgroup_index_in_threadgroup == 0) {
          uint lane = thread_index_in_simdgroup;
          s = lane < simdgroups_per_threadgroup ? parts[lane] : 0.0f;
          s = simd_sum(s);
          if (lane == 0) { y[g] = s; }
        }
    """,
        ["x", "n"],
    )
    x = mx.random.randint(-9, 9, (5, 201)).astype(mx.float32)  # sums are exact
    y = run(
        k, [x, mx.array(201)], (5,), mx.float32, (5 * threads, 1, 1), (threads, 1, 1)
    )
    assert mx.array_equal(y, x.sum(1))


def test_collectives_in_loops_and_branches(gpu):
    k = metal("""
        uint i = thread_position_in_grid.x, lane = thread_index_in_simdgroup;
        int total = 0;
        for (int k = 0; k < int(simd_max(x[i])); ++k) {
          if (simd_any(x[i] > k + 3)) { total += simd_sum(k); }
          else { total += simd_shuffle_xor(int(lane), 1); break; }
        }
        y[i] = total;
    """)
    x = mx.arange(64) % 13
    y = run(k, [x], (64,), mx.int32, threadgroup=(64, 1, 1)).tolist()
    want = []
    for lane in range(64):
        total = sum(32 * k for k in range(9)) + (lane % 32 ^ 1)
        want.append(total)
    assert y == want


@pytest.mark.parametrize("dtype", [mx.float32, mx.int32, mx.uint32])
def test_atomic_outputs(gpu, dtype):
    k = metal(
        "uint i = thread_position_in_grid.x;"
        "atomic_fetch_add_explicit(&y[i % 3], T(i % 2), memory_order_relaxed);",
        [],
        atomic_outputs=True,
    )
    y = run(k, [], (3,), dtype, (99, 1, 1), template=[("T", dtype)], init_value=5)
    assert y.tolist() == [21, 22, 21]


def test_threadgroup_atomics_and_many_outputs(gpu):
    k = metal(
        """
        threadgroup atomic_uint count;
        uint t = thread_position_in_threadgroup.x;
        if (t == 0) { atomic_store_explicit(&count, 0u, memory_order_relaxed); }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        uint before = atomic_fetch_add_explicit(&count, 1u, memory_order_relaxed);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        seen[thread_position_in_grid.x] = before;
        total[threadgroup_position_in_grid.x] =
            atomic_load_explicit(&count, memory_order_relaxed);
        """,
        [],
        ["seen", "total"],
    )
    seen, total = k(
        inputs=[],
        output_shapes=[(70,), (3,)],
        output_dtypes=[mx.uint32, mx.uint32],
        grid=(70, 1, 1),
        threadgroup=(32, 1, 1),
    )
    assert total.tolist() == [32, 32, 6]
    assert sorted(seen[:32].tolist()) == list(range(32))


MATRICES = """
  constexpr int inner = 24;  // three products of 8
  uint g = simdgroup_index_in_threadgroup;
  threadgroup T tile[2 * 8 * 11];
  simdgroup_matrix<float, 8, 8> sum(1.0f);
  for (int k = 0; k < inner; k += 8) {
    simdgroup_matrix<T, 8, 8> left, right;
    simdgroup_load(left, x + g * 8 * inner, inner, ulong2(k, 0));
    simdgroup_load(right, y + g * 8 * inner, inner, ulong2(k, 0), true);
    simdgroup_store(right, tile + g * 88, 11);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_load(right, tile + g * 88, 11);
    simdgroup_multiply_accumulate(sum, left, right, sum);
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (int i = 0; i < 2; ++i) {
    // Where a thread's two items are.
    short quad = thread_index_in_simdgroup / 4;
    short row = (quad & 4) + thread_index_in_simdgroup / 2 % 4;
    short column = (quad & 2) * 2 + thread_index_in_simdgroup % 2 * 2;
    sum.thread_elements()[i] += 100 * row + column + i;
  }
  simdgroup_store(sum, z + g * 64);
"""


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
def test_simdgroup_matrices(gpu, dtype):
    k = metal(MATRICES, ["x", "y"], ["z"])
    x, y = mx.random.randint(-8, 9, (2, 2, 8, 24))  # so that sums are exact
    inputs, template = [v.astype(dtype) for v in (x, y)], [("T", dtype)]
    z = run(k, inputs, (2, 8, 8), mx.float32, (64, 1, 1), (64, 1, 1), template=template)
    x, y = (np.array(v, np.float64) for v in (x, y))
    items = 100 * np.arange(8)[:, None] + np.arange(8)
    assert np.array_equal(np.array(z), 1 + x @ y.transpose(0, 2, 1) + items)


@pytest.mark.parametrize("dtype", [mx.int8, mx.uint8, mx.int16, mx.uint16])
def test_bits_of_bytes_and_shorts(gpu, dtype):
    """Loaded with their signs, which other uses want, and not to be counted."""
    bits = 8 * dtype.size
    k = metal(
        f"""
        uint i = thread_position_in_grid.x;
        auto own = x[i], first = x[3];
        using U = {"uchar" if bits == 8 else "ushort"};
        y[8 * i] = popcount(U(own));
        y[8 * i + 1] = own;
        y[8 * i + 2] = popcount(U(first)) - own;
        y[8 * i + 3] = popcount(uint(U(x[5])));
        y[8 * i + 4] = clz(U(own));
        y[8 * i + 5] = ctz(U(own));
        y[8 * i + 6] = popcount(x[7]) + first;
        y[8 * i + 7] = popcount(ulong(U(own)));
        """
    )
    values = np.random.default_rng(0).integers(0, 2**bits, 256)
    values[:8] = 2**bits - 1 - np.arange(8)
    x = mx.array(values).astype(dtype)
    y = np.array(run(k, [x], (256, 8), mx.int32, (256, 1, 1)))
    signed = np.array(x).astype(np.int32)
    count = np.array([int(v).bit_count() for v in values])
    ends = [f"{v:0{bits}b}" for v in values]
    want = [count, signed, count[3] - signed, np.full(256, count[5])]
    want += [[len(s) - len(s.lstrip("0")) for s in ends]]
    want += [[len(s) - len(s.rstrip("0")) for s in ends]]
    want += [np.full(256, count[7]) + signed[3], count]
    assert np.array_equal(y, np.stack(want, 1))


@pytest.mark.parametrize(
    "source, message",
    [
        ("\n  float a = b;", r"\] kernel: line 2 of the body, column 13: .*`b`"),
        ("float a = x[0]", "line 1 of the body"),
        ("simdgroup_float8x8 m(y);", "line 1 of the body"),
    ],
)
def test_errors_name_the_line(gpu, source, message):
    with pytest.raises(RuntimeError, match=message):
        mx.eval(run(metal(source), [mx.ones((4,))], (4,), mx.float32))


def test_threadgroups_of_more_than_the_device_has(gpu):
    k = metal("y[0] = 1;")
    with pytest.raises(
        ValueError, match=r"kernel: a threadgroup of 4096 x 1 x 1 .* allows"
    ):
        mx.eval(run(k, [mx.ones((4,))], (4,), mx.float32, (4096, 1, 1), (4096, 1, 1)))


def called(source="y[0] = 1;", shape=(4,), **more):
    """The results of a kernel that has y and, with no other names, x."""
    given = {"name": "bad", "input_names": ["x"], "header": ""}
    given |= {k: v for k, v in more.items() if k in given}
    rest = {"inputs": [mx.ones((4,))], "grid": (4, 1, 1), "threadgroup": (4, 1, 1)}
    rest |= {k: v for k, v in more.items() if k not in given}
    kernel = mx.fast.metal_kernel(output_names=["y"], source=source, **given)
    results = kernel(output_shapes=[shape], output_dtypes=[mx.float32], **rest)
    mx.eval(results)
    return results[0]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"shape": (2, -4)}, r"an output of the shape \(2,-4\) has a negative size"),
        ({"name": "a\nb"}, "must not have quotes, backslashes or line breaks"),
        ({"input_names": ["y"]}, "`y` is given twice"),
        ({"input_names": ["\u00e4"]}, "the input `\u00e4` needs a name of letters"),
        ({"template": [("T", mx.float32), ("T", 3)]}, "`T` is given twice"),
        ({"template": [("x", 3)]}, "`x` is given twice"),
        ({"template": [("a b", 3)]}, "template argument `a b` needs a name"),
        ({"source": "y[0] = T(x[0]);"}, r"line 1 .*there is no function `T\(float\)`"),
        ({"source": "y[0] = 1;\0"}, r"`y\[0\] = 1; `: .* character"),
        ({"source": "y[0] = " + "\u00e4" * 300}, "There is a character"),
        ({"grid": (2**31 - 1,) * 3}, "more than one call may have: 2.44 threads"),
        ({"grid": (2**31 - 1, 2**31 - 1, 1)}, "more than one call may have"),
        ({"grid": (1, 4096, 1), "threadgroup": (1, 4096, 1)}, "has 4096; .* allows"),
    ],
)
def test_bad_calls_are_refused_by_a_sentence(gpu, change, message):
    with pytest.raises((ValueError, RuntimeError), match=message):
        called(**change)
    assert mx.sum(mx.ones((3,))).item() == 3


def test_arrays_without_items_may_be_touched(gpu):
    """As Metal has it: what a kernel reads and writes there is nobody's."""
    source = "y[thread_position_in_grid.x] = x[thread_position_in_grid.x];"
    empty = mx.zeros((0, 3))
    assert called(source, shape=(0,)).shape == (0,)
    assert called(source, inputs=[empty]).tolist() == [0, 0, 0, 0]
    assert called(source, shape=(2, 0), inputs=[empty]).shape == (2, 0)


def test_names_that_only_the_text_needs(gpu):
    assert called(name="my kernel \u00e4(1)")[0].item() == 1
    assert called("// gr\u00f6\u00dfer\n y[0] = 2; /* \u6f22 */")[0].item() == 2


def test_threads_on_the_last_axis(gpu):
    source = "y[thread_position_in_threadgroup.z] = 3;"
    y = called(source, shape=(64,), grid=(1, 1, 64), threadgroup=(1, 1, 64))
    assert y.tolist() == [3] * 64


@pytest.mark.parametrize("own", ["", "threadgroup float last[8];"])
def test_one_translation_for_all_grids(gpu, own):
    k = metal(own + "uint i = thread_position_in_grid.x; y[i] = x[i] + 1;")
    before = native.counters()["translations"]
    for threads in (8, 5):
        for n in (16, 19, 11):  # smaller inputs have another text
            y = run(k, [mx.arange(n)], (n,), mx.int32, threadgroup=(threads, 1, 1))
            assert mx.array_equal(y, mx.arange(1, n + 1))
    assert native.counters()["translations"] == before + 1


def test_gpu_streams_only(gpu):
    with pytest.raises(ValueError, match="Only supports the GPU"):
        run(metal("y[0] = 1;"), [mx.ones((4,))], (4,), mx.float32, stream=mx.cpu)


COUNTING = (
    "int n = 0; for (int k = 0; k < x[0]; ++k) { n += (k ^ x[1]) & 1; } y[0] = n;"
)


@pytest.mark.parametrize("turns", [60_000, 70_000, 1_000_000])
def test_loops_are_whole_or_named(gpu, turns):
    """llvmpipe ends them after 65,535 turns."""
    k = metal("\n" + COUNTING)
    y = run(k, [mx.array([turns, 0], mx.int32)], (1,), mx.int32)
    try:
        assert y.item() == turns // 2
    except RuntimeError as e:
        assert turns > 65_000 and "(line 2 of the body) turn more than" in str(e)
    # The next kernel is not concerned.
    assert run(k, [mx.array([8, 0], mx.int32)], (1,), mx.int32).item() == 4


def test_loops_of_all_threads_of_a_subgroup_count(gpu):
    """No thread's own loop is that long, but they turn one after the other."""
    k = metal(
        """
        uint i = thread_position_in_grid.x;
        int n = 0;
        for (uint row = 0; row < 8; ++row) {
          int turns = row == i % 8 ? x[0] : 1;
          for (int k = 0; k < turns; ++k) { n += (k ^ x[1]) & 1; }
          if (n < 0) { return; }
        }
        y[i] = n;
        return;
        """
    )
    for turns in (100, 20_000):
        y = run(k, [mx.array([turns, 0], mx.int32)], (8,), mx.int32)
        try:
            assert y.tolist() == [turns // 2] * 8
        except RuntimeError as e:
            assert turns > 65_535 // 8
            assert "(line 4 of the body, line 6 of the body)" in str(e)
