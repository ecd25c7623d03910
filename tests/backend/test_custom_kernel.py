"""mx.fast.metal_kernel, from MSL to results, against NumPy."""

import mlx.core as mx
import numpy as np
import pytest
from custom import run


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


@pytest.mark.parametrize(
    "source, message",
    [
        ("\n  float a = b;", r"\[metal_kernel\] kernel: line 2 of the body: .*`b`"),
        ("float a = x[0]", "line 1 of the body"),
        ("simdgroup_float8x8 m;", "line 1 of the body"),
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


def test_gpu_streams_only(gpu):
    with pytest.raises(ValueError, match="Only supports the GPU"):
        run(metal("y[0] = 1;"), [mx.ones((4,))], (4,), mx.float32, stream=mx.cpu)
