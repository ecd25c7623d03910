"""mlx_vulkan.fast.vulkan_kernel, and what it shares with mx.fast.metal_kernel:
arguments, grids, errors, the graph."""

import mlx.core as mx
import numpy as np
import pytest
from custom import run
from processes import output_of

from mlx_vulkan.fast import vulkan_kernel

POSITION = """
    uvec3 p = thread_position_in_grid, n = threads_per_grid;
    uint i = p.x + n.x * (p.y + n.y * p.z);
"""


def elementwise(body, inputs=("x",), **more):
    source = "uint i = thread_position_in_grid.x;\n" + body
    return vulkan_kernel("elementwise", list(inputs), ["y"], source, **more)


@pytest.mark.parametrize(
    "dtype", [mx.float32, mx.float16, mx.bfloat16, mx.int8, mx.uint64, mx.bool_]
)
def test_dtypes(gpu, dtype):
    k = elementwise("store(y, i, T(load(x, i)));")
    x = (mx.arange(70) % 5).astype(dtype)
    y = run(k, [x], (70,), dtype, template=[("T", dtype)])
    assert mx.array_equal(x, y)


def test_strided_inputs_and_offsets(gpu):
    base = mx.random.normal((6, 5, 8))
    views = {
        "transposed": base.transpose(2, 0, 1),
        "offset": base[1:, 2:, 3:],
        "step": base[::2, ::-1, 1::3],
        "broadcast": mx.broadcast_to(base[0, :1], (4, 3, 8)),
        "scalar": base[2, 1, 3],
    }
    copied = elementwise("store(y, i, load(x, i));")
    strided = elementwise(
        "store(y, i, load(x, x_loc(i)));", ensure_row_contiguous=False
    )
    shapes = elementwise(
        "store(y, i, i == 0 ? x_shape(1) : i == 1 ? x_ndim : int(x_strides(0)));",
        ensure_row_contiguous=False,
    )
    for name, x in views.items():
        for k in (copied, strided):
            y = run(k, [x], x.shape or (1,), mx.float32)
            assert mx.array_equal(y.reshape(x.shape), x), name
    y = run(shapes, [views["transposed"]], (3,), mx.int32)
    assert y.tolist() == [6, 3, 1]


@pytest.mark.parametrize(
    "grid, threadgroup",
    [
        ((1, 1, 1), (256, 1, 1)),
        ((100, 1, 1), (32, 1, 1)),
        ((7, 5, 3), (4, 2, 2)),
        ((3, 70001, 1), (2, 1, 1)),
        ((70001, 1, 2), (1, 1, 1)),
    ],
)
def test_grids_are_exact(gpu, grid, threadgroup):
    k = vulkan_kernel("grid", [], ["y"], POSITION + "atomic_add(y, i, 1);")
    n = int(np.prod(grid))
    y = run(k, [], (n + 9,), mx.int32, grid, threadgroup, init_value=0)
    assert (np.array(y)[:n] == 1).all() and (np.array(y)[n:] == 0).all()


def test_edges_have_smaller_workgroups(gpu):
    source = POSITION + (
        "uvec3 t = threads_per_threadgroup, g = threadgroups_per_grid;"
        "uvec3 d = dispatch_threads_per_threadgroup;"
        "store(y, i, int(t.x + 10 * t.y + 100 * d.x + 1000 * g.x + 10000 * g.y));"
    )
    y = run(
        vulkan_kernel("edges", [], ["y"], source),
        [],
        (3, 5),
        mx.int32,
        (5, 3, 1),
        (4, 2, 1),
    )
    want = [
        [22400 + (4 if x < 4 else 1) + (20 if y < 2 else 10) for x in range(5)]
        for y in range(3)
    ]
    assert y.tolist() == want


def test_barriers_at_the_edges(gpu):
    k = elementwise(
        """
        uint t = thread_index_in_threadgroup, n = threads_per_threadgroup.x;
        tile[t] = load(x, i);
        barrier();
        store(y, i, tile[n - 1 - t]);
        """,
        header="shared float tile[gl_WorkGroupSize.x];",
    )
    x = mx.arange(43, dtype=mx.float32)
    y = run(k, [x], (43,), mx.float32, threadgroup=(16, 1, 1)).tolist()
    assert y == [*range(15, -1, -1), *range(31, 15, -1), *range(42, 31, -1)]


@pytest.mark.parametrize(
    "dtype",
    [mx.float32, mx.float16, mx.bfloat16, mx.int32, mx.uint32, mx.int8, mx.uint16],
)
def test_atomics(gpu, dtype):
    k = elementwise(
        "atomic_add(y, i % 3, T_x(1)); atomic_max(y, 3, load(x, i));"
        "atomic_min(y, 4, load(x, i)); atomic_exchange(y, 5, T_x(7));",
        atomic_outputs=True,
    )
    x = (mx.arange(99) % 50).astype(dtype)
    y = run(k, [x], (7,), dtype, (99, 1, 1), init_value=2)
    assert y.tolist() == [35, 35, 35, 49, 0, 7, 2]


def test_empty(gpu):
    k = elementwise("store(y, i, load(x, i));")
    assert run(k, [mx.zeros((0,))], (0,), mx.float32, (0, 1, 1)).shape == (0,)
    y = run(k, [mx.zeros((0,))], (3,), mx.float32, (0, 1, 1), init_value=4)
    assert y.tolist() == [4, 4, 4]


def test_in_the_graph(gpu, tmp_path):
    k = elementwise("store(y, i, load(x, i) * N);")

    def f(x):
        x = x * 2
        return run(k, [x], x.shape, x.dtype, template=[("N", 3)]) + 1

    x = mx.arange(10, dtype=mx.float32)
    assert mx.array_equal(f(x), 6 * x + 1)
    assert mx.array_equal(mx.compile(f)(x), 6 * x + 1)
    path = str(tmp_path / "f.mlxfn")
    mx.export_function(path, f, x)
    assert mx.array_equal(mx.import_function(path)(x)[0], 6 * x + 1)
    with mx.stream(mx.cpu):
        host = mx.exp(x)
    assert mx.array_equal(f(host), 6 * host + 1)
    with pytest.raises(ValueError, match="[Nn]ot implemented"):
        mx.vmap(f)(mx.ones((2, 3)))


def test_same_name_other_source(gpu):
    x = mx.ones((4,))
    ys = [
        run(elementwise(f"store(y, i, {n}.0);"), [x], (4,), mx.float32) for n in (1, 2)
    ]
    mx.eval(ys)
    assert [y[0].item() for y in ys] == [1, 2]


@pytest.mark.parametrize(
    "change, message",
    [
        (
            {"source": "\n foo = 3;"},
            r"\[vulkan_kernel\] bad: .*\n.*source of bad:2: 'foo'",
        ),
        ({"header": "\n\nint f() { return a; }"}, "header of bad:3: 'a'"),
        ({"source": "uint n = gl_NumWorkGroups.x;"}, "Use threadgroups_per_grid"),
        ({"header": '#include "../../etc/passwd"'}, "does not compile"),
        ({"header": '#include "/etc/passwd"'}, "does not compile"),
        ({"input_names": ["out"]}, "`out` is a word of GLSL"),
        ({"input_names": ["y"]}, "`y` is given twice"),
        (
            {"threadgroup": (4096, 1, 1), "grid": (4096, 1, 1)},
            "has 4096; .* allows [0-9]+",
        ),
        ({"threadgroup": (0, 1, 1)}, r"threadgroup \(0, 1, 1\) has less than 1"),
        ({"grid": (-1, 1, 1)}, r"grid \(-1, 1, 1\)"),
        ({"grid": (2**31 - 1, 2**31 - 1, 8)}, "more than one call may have"),
        ({"subgroup_size": 33}, "not a power of two"),
        ({"subgroup_size": "x"}, "subgroup_size='x' is not a power of two"),
        ({"input_names": ["\u00e4"]}, "the input `\u00e4` needs a name of letters"),
        (
            {
                "header": "layout(set = 0, binding = 0) buffer B { float x; } b;",
                "source": "store(y, 0, b.x);",
            },
            "a binding, which nothing would be bound to",
        ),
        ({"subgroup_size": 1}, "cannot be had on"),
        (
            {"header": "shared float a[1 << 20];", "source": "a[0] = 1.0;"},
            "shared memory",
        ),
        ({"inputs": []}, "Expected `inputs` to have size 1 but got size 0"),
    ],
)
def test_errors(gpu, change, message):
    made = {"input_names": ["x"], "source": "store(y, 0, 1.0);", "header": ""}
    made |= {k: v for k, v in change.items() if k in made}
    called = {"inputs": [mx.ones((4,))], "grid": (64, 1, 1), "threadgroup": (64, 1, 1)}
    called |= {k: v for k, v in change.items() if k not in made}
    with pytest.raises((ValueError, RuntimeError), match=message):
        k = vulkan_kernel("bad", output_names=["y"], **made)
        mx.eval(k(output_shapes=[(4,)], output_dtypes=[mx.float32], **called))
    # The stream goes on.
    assert mx.sum(mx.ones((3,))).item() == 3


def test_verbose_prints_the_shader(gpu, capfd):
    k = elementwise("store(y, i, 5.0); // mine")
    run(k, [mx.ones((1,))], (1,), mx.float32, verbose=True)
    text = capfd.readouterr().out
    assert "#version" not in text and "// mine" in text and "local_size_x = 32," in text


def test_one_shader_for_any_grid(gpu, capfd):
    """Else a kernel would be compiled for each length of a sequence."""
    k = elementwise("store(y, i, float(i));")
    texts = set()
    for n in (1, 31, 33, 64):
        y = run(k, [mx.ones((1,))], (n,), mx.float32, verbose=True)
        assert mx.array_equal(y, mx.arange(n))
        texts.add(capfd.readouterr().out)
    assert len(texts) == 1


METAL = """
import mlx.core as mx, numpy as np
assert mx.metal.is_available()
x = mx.arange(6, dtype=mx.float32)
assert np.array_equal(np.array(x), np.arange(6)) and x.tolist()[5] == 5
assert np.array_equal(np.array(mx.array(np.arange(6.0))), np.arange(6))
assert np.array_equal(np.array(mx.asarray(np.arange(6.0))), np.arange(6))
assert np.array_equal(np.from_dlpack(x), np.arange(6))
assert x.__dlpack_device__() == (1, 0)
assert bytes(memoryview(x)) == np.arange(6, dtype=np.float32).tobytes()
try:
    mx.metal.start_capture("a.gputrace")
except RuntimeError as e:
    print(e)
else:
    raise AssertionError
mx.metal.stop_capture()
assert mx.metal.device_info()["memory_size"] > 0
old = mx.set_wired_limit(1 << 20)
mx.metal.set_wired_limit(old)
mx.metal.get_cache_memory(), mx.metal.get_peak_memory(), mx.metal.clear_cache()
"""


def test_metal_is_available_if_asked_for(gpu):
    assert not mx.metal.is_available()
    result = output_of("-c", METAL, MLX_VK_METAL_KERNELS="1")
    assert "MLX_VK_PROFILE" in result.stdout


DOUBLES = '''
import mlx.core as mx
from mlx_vulkan.fast import vulkan_kernel

source = """
    uint i = thread_position_in_grid.x;
    store(y, i, float(double(load(x, i)) / 3));
"""
k = vulkan_kernel("thirds", ["x"], ["y"], source)
(y,) = k(
    inputs=[mx.ones(3)],
    grid=(3, 1, 1),
    threadgroup=(3, 1, 1),
    output_shapes=[(3,)],
    output_dtypes=[mx.float32],
)
try:
    print(y.tolist())
except RuntimeError as e:
    print(e)
'''


def test_what_a_device_lacks_is_refused(gpu):
    lacking = output_of("-c", DOUBLES, MLX_VK_DISABLE="float64")
    assert "Float64 of SPIR-V" in lacking.stdout
    # Devices have doubles or say the same.
    usual = output_of("-c", DOUBLES).stdout
    assert "0.33333" in usual or "Float64 of SPIR-V" in usual
