"""mx.fast.metal_kernel: pointers that move between arrays, and the rules of float
operations, against NumPy."""

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


@pytest.mark.parametrize("n", [8, 64, 512])
def test_stockham_fft_swaps_its_buffers(gpu, n):
    """Each step reads one array and writes the other."""
    k = metal(
        """
        threadgroup float2 first[N];
        threadgroup float2 second[N];
        uint i = thread_position_in_threadgroup.x;
        uint row = thread_position_in_grid.y;
        threadgroup float2* from = first;
        threadgroup float2* to = second;
        for (uint k = i; k < N; k += N / 2) {
          from[k] = float2(x[(row * N + k) * 2], x[(row * N + k) * 2 + 1]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint half_size = 1; half_size < N; half_size *= 2) {
          uint j = i % half_size;
          float angle = -M_PI_F * float(j) / float(half_size);
          float2 a = from[i], b = from[i + N / 2];
          float2 w = float2(metal::cos(angle), metal::sin(angle));
          b = float2(b.x * w.x - b.y * w.y, b.x * w.y + b.y * w.x);
          uint place = (i / half_size) * 2 * half_size + j;
          to[place] = a + b;
          to[place + half_size] = a - b;
          threadgroup_barrier(mem_flags::mem_threadgroup);
          threadgroup float2* kept = from;
          from = to;
          to = kept;
        }
        for (uint k = i; k < N; k += N / 2) {
          y[(row * N + k) * 2] = from[k].x;
          y[(row * N + k) * 2 + 1] = from[k].y;
        }
        """
    )
    x = np.random.default_rng(n).standard_normal((3, n, 2)).astype(np.float32)
    y = k(
        inputs=[mx.array(x)],
        template=[("N", n)],
        grid=(n // 2, 3, 1),
        threadgroup=(n // 2, 1, 1),
        output_shapes=[x.shape],
        output_dtypes=[mx.float32],
    )[0]
    want = np.fft.fft(x[..., 0].astype(np.float64) + 1j * x[..., 1])
    got = np.array(y)[..., 0] + 1j * np.array(y)[..., 1]
    # Each of log2(n) steps rounds a product and a sum, and its factor has 2 ulp.
    bound = 8 * np.log2(n) * 2.0**-24 * np.linalg.norm(want, axis=-1)
    assert np.all(np.linalg.norm(got - want, axis=-1) <= bound)


POINTERS = {
    "if and else": """
        threadgroup int a[32]; threadgroup int b[32];
        a[i] = v; b[i] = 10 * v;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        threadgroup int* p;
        if (v % 2 == 0) { p = a; } else { p = b + 1; }
        result = p[i % 4];
    """,
    "?:, of a part": """
        threadgroup int a[32]; threadgroup int b[32];
        a[i] = v; b[i] = 10 * v;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const threadgroup int* p = v % 2 == 0 ? a : &b[1];
        result = p[i % 4];
    """,
    "a function that is given either": """
        threadgroup int a[32]; threadgroup int b[32];
        a[i] = v; b[i] = 10 * v;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        result = v % 2 == 0 ? at(a, i % 4) : at(b, i % 4 + 1);
    """,
    "a function that swaps": """
        threadgroup int a[32]; threadgroup int b[32];
        threadgroup int* p = a; threadgroup int* q = b + 1;
        a[i] = v; b[i] = 10 * v;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (v % 2 == 1) { swap_pointers(p, q); }
        result = (p == a) == (v % 2 == 0) ? p[i % 4] : -1;
    """,
    "an array of pointers": """
        threadgroup int a[32]; threadgroup int b[32];
        a[i] = v; b[i] = 10 * v;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        threadgroup int* both[2] = {a, b};
        both[1] += 1;
        result = both[v % 2][i % 4];
    """,
    "the fields of a struct": """
        threadgroup int a[32]; threadgroup int b[32];
        a[i] = v; b[i] = 10 * v;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        Pair pair = {a, b};
        if (v % 2 == 1) { pair.flip(); pair.now += 1; }
        result = pair.now[i % 4];
    """,
    "thread memory": """
        int a[4] = {0, 1, 2, 3}; int b[5] = {0, 10};
        for (int k = 2; k < 5; ++k) { b[k] = 10 * k; }
        thread int* p = a; thread int* q = b + 1;
        if (v % 2 == 1) { thread int* kept = p; p = q; q = kept; }
        result = p[i % 4] + 0 * q[0];
    """,
    "single variables": """
        int a = int(i % 4), b = 10 * (int(i % 4) + 1);
        thread int* p = &a;
        if (v % 2 == 1) { p = &b; }
        *p += 0;
        result = *p;
    """,
    "a null pointer": """
        threadgroup int a[32]; threadgroup int b[32];
        a[i] = v; b[i] = 10 * v;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        threadgroup int* p = nullptr;
        for (int k = 0; k < 2; ++k) {
          if (k == 1 && !p) { p = b + 1; }
          if (v % 2 == 0 && p == nullptr) { p = a; }
        }
        result = p != nullptr ? p[i % 4] : -1;
    """,
    "halves, by other widths": """
        threadgroup half a[34]; threadgroup half b[66];
        a[i] = half(v); b[i] = half(10 * v);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        threadgroup half* p = v % 2 == 0 ? a : b;
        threadgroup half4* whole = (threadgroup half4*)p;
        result = int(whole[0][i % 4]) + (v % 2 ? 10 : 0);
    """,
}


@pytest.mark.parametrize("way", POINTERS)
def test_pointers_move_between_arrays(gpu, way):
    k = metal(
        "uint i = thread_position_in_threadgroup.x; int v = x[i]; int result = 0;"
        + POINTERS[way]
        + "y[i] = result;",
        header="""
        int at(const threadgroup int* p, uint k) { return p[k]; }
        void swap_pointers(threadgroup int*& p, threadgroup int*& q) {
          threadgroup int* kept = p; p = q; q = kept;
        }
        struct Pair {
          threadgroup int* now;
          threadgroup int* next;
          void flip() { threadgroup int* kept = now; now = next; next = kept; }
        };
        """,
    )
    x = np.arange(32)
    want = np.where(x % 2 == 0, x % 4, 10 * (x % 4 + 1))
    y = run(k, [mx.array(x, mx.int32)], (32,), mx.int32)
    assert np.array_equal(np.array(y), want)


def test_pointers_to_what_cannot_be_one_array_are_refused(gpu):
    k = metal(
        """
        struct Both { int a[4]; int b[4]; };
        Both both;
        thread int* p = both.a;
        if (x[0] > 0) { p = both.b; }
        y[0] = p[0];
        """
    )
    with pytest.raises(RuntimeError, match="line 5 of the body.*arrays of the same"):
        mx.eval(run(k, [mx.array([1.0])], (1,), mx.int32))


MIXTURE = """
    uint column = thread_position_in_grid.x, row = thread_position_in_grid.y;
    #pragma clang fp contract({rule})
    float sum = 0;
    for (int e = 0; e < EXPERTS; ++e) {{
      int expert = chosen[row * EXPERTS + e];
      float part = 0;
      for (int k = 0; k < WIDTH; ++k) {{
        part += x[row * WIDTH + k] * w[(expert * WIDTH + k) * COLUMNS + column];
      }}
      sum += part * weights[row * EXPERTS + e];
    }}
    y[row * COLUMNS + column] = sum;
"""


def test_a_mixture_of_experts_without_contraction(gpu):
    """Its bits are those of products and sums that round one by one."""
    rng = np.random.default_rng(7)
    rows, width, columns, experts = 9, 64, 48, 3
    x = rng.standard_normal((rows, width)).astype(np.float32)
    w = rng.standard_normal((8, width, columns)).astype(np.float32)
    chosen = rng.integers(0, 8, (rows, experts)).astype(np.int32)
    weights = rng.random((rows, experts)).astype(np.float32)
    k = metal(MIXTURE.format(rule="off"), ["x", "w", "chosen", "weights"])
    y = run(
        k,
        [mx.array(a) for a in (x, w, chosen, weights)],
        (rows, columns),
        mx.float32,
        grid=(columns, rows, 1),
        template=[("EXPERTS", experts), ("WIDTH", width), ("COLUMNS", columns)],
    )
    want = np.zeros((rows, columns), np.float32)
    for e in range(experts):
        part = np.zeros((rows, columns), np.float32)
        for i in range(width):
            part += x[:, i, None] * w[chosen[:, e], i]
        want += part * weights[:, e, None]
    assert np.array_equal(np.array(y), want)


def test_a_rotation_without_contraction_is_that_of_rope(gpu):
    """mx.fast.rope does not contract either."""
    dims, rows = 64, 40
    k = metal(
        """
        uint d = thread_position_in_grid.x, row = thread_position_in_grid.y;
        #pragma METAL fp contract(off)
        float inverse = metal::exp2(-float(d) / float(HALF) * base[0]);
        float angle = float(row) * inverse;
        float c = metal::cos(angle), s = metal::sin(angle);
        float a = x[row * 2 * HALF + d], b = x[row * 2 * HALF + HALF + d];
        y[row * 2 * HALF + d] = a * c - b * s;
        y[row * 2 * HALF + HALF + d] = a * s + b * c;
        """,
        ["x", "base"],
    )
    x = mx.random.normal((1, 1, rows, dims))
    y = run(
        k,
        [x, mx.array([np.log2(10000.0)])],
        x.shape,
        mx.float32,
        grid=(dims // 2, rows, 1),
        template=[("HALF", dims // 2)],
    )
    want = mx.fast.rope(x, dims, traditional=False, base=10000.0, scale=1.0, offset=0)
    # Angles of up to 39 turns have 24 bits, of a power that has 22 or more.
    assert mx.max(mx.abs(y - want)).item() <= 40 * 2.0**-20


def test_arrays_in_structs_in_arrays(gpu):
    k = metal(
        """
        struct Inner { int a[4]; };
        struct Outer { int n; Inner in; int b[3]; };
        Outer all[2];
        uint i = thread_position_in_grid.x;
        for (int k = 0; k < 2; ++k) {
          for (int j = 0; j < 4; ++j) { all[k].in.a[j] = 10 * k + j; }
          for (int j = 0; j < 3; ++j) { all[k].b[j] = 0; }
        }
        all[i % 2].in.a[2] += 5;
        set(all[i % 2].b, 7);
        Outer one = all[0], two = all[1];
        thread Outer* p = i % 2 ? &two : &one;
        p->b[0] += 100;
        y[i] = all[0].in.a[2] + 100 * all[1].in.a[2] + 10000 * all[0].b[1] +
            100000 * p->b[0] + x[0];
        """,
        header="void set(thread int* p, int v) { p[0] = v; p[1] = v; }",
    )
    y = run(k, [mx.array([0], mx.int32)], (4,), mx.int32)
    even, odd = 7 + 1200 + 70_000 + 10_700_000, 2 + 1700 + 10_700_000
    assert y.tolist() == [even, odd, even, odd]
