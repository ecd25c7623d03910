"""eval and async_eval of graphs of one GPU stream, whose walk is ours
(src/overrides/eval.cpp), and of those that it leaves to MLX."""

import gc
import json
import threading
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from processes import output_of

GPU = mx.gpu


def ints(n, seed):
    rng = np.random.default_rng(seed)
    return rng.integers(-9, 10, n).astype(np.int32)


def random_graph(seed, nodes=300):
    """Arrays of 8 items of a graph with many readers, siblings and views, and the
    same in NumPy."""
    rng = np.random.default_rng(seed)
    base = [ints(8, seed + k) for k in range(3)]
    xs, ys = [mx.array(b) for b in base], list(base)
    for _ in range(nodes):
        i, j = (int(k) for k in rng.integers(0, len(xs), 2))
        kind = rng.integers(0, 5)
        if kind == 0:
            x, y = mx.maximum(xs[i], xs[j]), np.maximum(ys[i], ys[j])
        elif kind == 1:
            x, y = xs[i] - xs[j], ys[i] - ys[j]
        elif kind == 2:  # siblings, of which one may have no reader
            q, r = mx.divmod(xs[i], mx.array(3))
            xs.append(r)
            ys.append(ys[i] % 3)
            x, y = q, ys[i] // 3
        elif kind == 3:  # a view
            x, y = xs[i][::-1], ys[i][::-1]
        else:  # twice the same input
            x, y = xs[i] + xs[i], ys[i] + ys[i]
        xs.append(x)
        ys.append(y)
    keep = rng.permutation(len(xs))[: rng.integers(1, 9)]
    return [xs[k] for k in keep], [ys[k] for k in keep]


BOTH = pytest.mark.parametrize("evaluate", [mx.async_eval, mx.eval])


@BOTH
@pytest.mark.parametrize("seed", range(6))
def test_random_graphs(seed, evaluate):
    xs, ys = random_graph(seed * 100)
    evaluate(xs)
    for x, y in zip(xs, ys):
        assert np.array_equal(np.array(x), y)


@BOTH
def test_what_the_graph_shares_is_evaluated_once(evaluate):
    """Two evaluations that share arrays, and a third of what both have made."""
    a = mx.array(ints(8, 0)) * 2
    b, c = a + 1, a * 3
    mx.async_eval(b)
    evaluate(c, b)
    d = b + c + a
    evaluate(d)
    evaluate(d)  # nothing to do
    want = ints(8, 0) * 2
    assert np.array_equal(np.array(d), (want + 1) + want * 3 + want)


ORDERS = [(1, 40), (19, 5), (21, 5), (70, 6), (301, 4)]


def branches(wide, deep, first=GPU):
    """As many, of several depths and kernels, whose order so tells them apart, of
    what `first` has made."""
    rng = np.random.default_rng(wide)
    x = mx.ones((8,), stream=first)
    kinds = [
        mx.sin,
        mx.cos,
        mx.exp,
        mx.square,
        mx.sigmoid,
        mx.erf,
        mx.negative,
        mx.tanh,
    ]
    parts = []
    for _ in range(wide):
        y = x
        for k in rng.integers(0, len(kinds), rng.integers(1, deep + 1)):
            y = kinds[k](y)
        parts.append(y)
    return mx.concatenate(parts)


def kernels_in_order(evaluate, trace):
    program = f"""
import mlx.core as mx
from test_async_eval import ORDERS, branches
for wide, deep in ORDERS:
    {evaluate}
    mx.synchronize()
"""
    output_of(
        "-c",
        program,
        folder=Path(__file__).parent,
        MLX_VK_PROFILE=str(trace),
        MLX_VK_DISABLE="levels,fuse",
    )
    events = json.loads(trace.read_text())["traceEvents"]
    kernels = [e for e in events if e["ph"] == "X" and e["name"].startswith("unary{")]
    return [e["name"] for e in sorted(kernels, key=lambda e: e["ts"])]


def test_order_is_that_of_mlx(tmp_path):
    """Beyond a width MLX goes down a branch at a time."""
    ours = kernels_in_order("mx.eval(branches(wide, deep))", tmp_path / "ours.json")
    # With an array of the CPU's the whole is MLX's.
    evaluate = "mx.eval(branches(wide, deep, mx.cpu))"
    mlx = kernels_in_order(evaluate, tmp_path / "mlx.json")
    assert len(ours) > sum(wide for wide, _ in ORDERS)
    assert ours == mlx


@BOTH
def test_deep_graph(evaluate):
    x = mx.zeros((4,), dtype=mx.int32)
    for _ in range(20_000):
        x = x + 1
    evaluate(x)
    assert x.tolist() == [20_000] * 4


@BOTH
def test_other_streams(evaluate):
    """Made by a CPU stream and another GPU stream, in the graph or before it."""
    cpu, other = mx.new_stream(mx.cpu), mx.new_stream(GPU)
    base = ints(1000, 5)
    for before in (False, True):
        a = mx.sort(mx.array(base), stream=cpu)
        b = mx.multiply(mx.array(base), 3, stream=other)
        if before:
            mx.async_eval(a)
            mx.async_eval(b)
        c = mx.add(a, b, stream=GPU)
        d = c * 2
        evaluate(c, d)
        want = np.sort(base) + base * 3
        assert np.array_equal(np.array(c), want)
        assert np.array_equal(np.array(d), want * 2)


def test_a_transformation_keeps_its_graph():
    """What a gradient goes through stays when it is evaluated underway."""

    def f(x):
        y = x * x
        mx.eval(y)
        return (y * x).sum()

    x = mx.array([1.0, -2.0, 3.0])
    g = mx.grad(f)(x)
    mx.async_eval(g)
    assert np.allclose(np.array(g), 3 * np.array([1.0, 4.0, 9.0]))

    def not_allowed(x):
        y = x * x
        mx.async_eval(y)
        return y.sum()

    with pytest.raises(ValueError, match="async_eval"):
        mx.grad(not_allowed)(x)


def broken():
    """An array whose primitive throws while it is encoded: more axes than kernels
    have."""
    x = mx.arange(2**18).reshape((2,) * 18)
    return mx.transpose(x, tuple(range(0, 18, 2)) + tuple(range(1, 18, 2))) + x


@BOTH
def test_a_primitive_that_throws(evaluate):
    """The rest of a failed graph can be evaluated, and says what it was."""
    a = mx.array(ints(8, 1)) + 1
    bad = broken()
    good = a * 2
    with pytest.raises(ValueError, match="dimensions"):
        evaluate(good, bad.sum() + good)
    assert np.array_equal(np.array(good), (ints(8, 1) + 1) * 2)
    with pytest.raises(ValueError, match="dimensions"):
        evaluate(bad)
    more = good + a
    evaluate(more)
    assert np.array_equal(np.array(more), (ints(8, 1) + 1) * 3)


@BOTH
def test_without_a_primitive(evaluate):
    """What a compiled function has kept of its trace."""
    kept = []

    @mx.compile
    def f(x):
        kept.append(x + 1)
        return x * 2

    f(mx.array([1.0])).item()
    with pytest.raises((RuntimeError, ValueError), match="eval"):
        evaluate(kept[0])
    a = mx.array([2.0]) * 2
    with pytest.raises((RuntimeError, ValueError), match="eval"):
        evaluate(a * 3, a + kept[0])
    assert f(mx.array([4.0])).item() == 8.0
    assert (a * 3).item() == 12.0  # readers were counted, to no effect


def test_eval_waits():
    """For all of its outputs, of which others made some."""
    n = 1 << 20
    x = mx.array(np.arange(n, dtype=np.float32))
    for k in range(4):
        other = mx.new_stream(GPU)
        early = mx.cumsum(x, stream=other)
        mx.async_eval(early)
        late = mx.sqrt(mx.cumsum(x * k)) + early
        mx.eval(late, early, x)
        want = np.cumsum(np.arange(n, dtype=np.float64))
        # Of positive items, every partial sum is off by at most a rounding per sum on
        # its way: 1,024 steps of a team with 1,024 items, and a tree in each.
        most = (1024 + 20) * 2.0**-24
        assert np.allclose(np.array(early), want, rtol=most, atol=0)
        want += np.sqrt(want * k)
        assert np.allclose(np.array(late), want, rtol=most + 2.0**-23, atol=0)


def test_threads_walk_at_once():
    """Each with a stream and graphs of its own, long enough for several batches."""
    failed = []

    def work(seed):
        try:
            with mx.stream(mx.new_stream(GPU)):
                for k in range(4):
                    xs, ys = random_graph(seed * 10 + k, nodes=400)
                    (mx.eval if k % 2 else mx.async_eval)(xs)
                    for x, y in zip(xs, ys):
                        assert np.array_equal(np.array(x), y)
        except Exception as e:
            failed.append(e)

    threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


def test_a_kernel_that_fails_while_waited_for():
    """What the device or the compiler finds reaches the caller of eval."""
    kernel = mx.fast.metal_kernel(
        name="no_such_thing",
        input_names=["x"],
        output_names=["y"],
        source="y[thread_position_in_grid.x] = no_such_function(x[0]);",
    )
    x = mx.array(ints(8, 3)) + 1

    def broken_sum():
        (y,) = kernel(
            inputs=[x],
            grid=(8, 1, 1),
            threadgroup=(8, 1, 1),
            output_shapes=[(8,)],
            output_dtypes=[mx.int32],
        )
        return y.sum()

    for _ in range(2):
        with pytest.raises(Exception, match="no_such"):
            mx.eval(broken_sum(), x * 2)
        assert np.array_equal(np.array(x), ints(8, 3) + 1)


@BOTH
def test_a_primitive_that_throws_after_several_batches(evaluate):
    """What was submitted before it counts, and nothing is held on to."""
    mx.synchronize()
    before = mx.get_active_memory()
    for _ in range(3):
        x = mx.array(ints(1000, 2))
        halfway = x
        for _ in range(300):
            halfway = halfway + 1
        last = halfway
        for _ in range(300):
            last = mx.maximum(last * 1, x)
        bad = broken()
        with pytest.raises(ValueError, match="dimensions"):
            evaluate(last + bad.sum(), halfway)
        assert np.array_equal(np.array(halfway), ints(1000, 2) + 300)
        assert np.array_equal(np.array(last), ints(1000, 2) + 300)
        del x, halfway, last, bad
        gc.collect()
    mx.synchronize()
    assert mx.get_active_memory() <= before + 64 * 1024


def test_who_loses_interest():
    """Outputs that go before they are made, of streams that go on: as when an answer
    is cut off."""
    streams = [mx.new_stream(GPU) for _ in range(2)]
    mx.synchronize()
    before = mx.get_active_memory()
    kept = mx.array(ints(1000, 4))
    for k in range(20):
        with mx.stream(streams[k % 2]):
            x = kept
            for _ in range(150 if k % 3 else 10):
                x = mx.sin(x) + kept
            mx.async_eval(x)
        del x
    with mx.stream(streams[0]):
        assert (kept * 2 - kept).tolist() == ints(1000, 4).tolist()
    del kept
    for s in streams:
        mx.synchronize(s)
    assert mx.get_active_memory() <= before + 64 * 1024
