"""Streams, events and fences: CPU and GPU in any order, on any thread.

MLX_VK_TEST_FULL=1 runs the long counts.
"""

import functools
import os
import pathlib
import threading
import time

import mlx.core as mx
import numpy as np
import pytest
from processes import python

FULL = os.environ.get("MLX_VK_TEST_FULL") == "1"
HERE = pathlib.Path(__file__).resolve().parent


def run(code, limit=600, **environment):
    """Runs Python code on the same device in a process of its own, for `limit`
    seconds at most."""
    return python("-c", code, limit=limit, folder=HERE, **environment)


@functools.cache
def busy_size(stream):
    """Items of which a CPU stream's sort takes some milliseconds: few where the
    CPU reads device memory (the unified model on a discrete GPU)."""
    n, spent = 625, 0.0
    while n < 40_000 and spent < 3e-3:
        n *= 2
        x = mx.random.normal((n,), stream=stream)
        mx.eval(x)
        begun = time.perf_counter()
        mx.eval(mx.sort(x, stream=stream))
        spent = time.perf_counter() - begun
    return n


def keep_busy(stream):
    """Work that holds up whatever this CPU stream is given next."""
    x = mx.random.normal((busy_size(stream),), stream=stream)
    mx.async_eval(mx.sort(x, stream=stream))


OPS = [
    (mx.add, np.add),
    (mx.subtract, np.subtract),
    (mx.multiply, np.multiply),
    (mx.maximum, np.maximum),
]


def mirror_chains(count, seed=0):
    """GPU->CPU->GPU chains whose links may or may not be donated."""
    rng = np.random.default_rng(seed)
    gpu, cpu = mx.default_stream(mx.gpu), mx.new_stream(mx.cpu)
    for i in range(count):
        n = int(rng.choice([1, 7, 255, 1000, 5000, 100_000]))
        want = rng.integers(-1000, 1000, n).astype(np.int32)
        x = mx.array(want)
        kept = []
        if i % 3 == 0:
            keep_busy(cpu)
        for link in range(int(rng.integers(2, 7))):
            f, g = OPS[int(rng.integers(len(OPS)))]
            k = int(rng.integers(1, 9))
            x = f(x, mx.array(k, mx.int32), stream=cpu if link % 2 else gpu)
            want = g(want, np.int32(k))
            if rng.random() < 0.3:  # a second reference forbids donation
                kept.append((x, want))
            if rng.random() < 0.2:
                mx.async_eval(x)
        if rng.random() < 0.5:
            mx.eval(x)
        else:
            mx.async_eval(x)
        np.testing.assert_array_equal(np.array(x), want, f"chain {i}")
        for a, w in kept:
            np.testing.assert_array_equal(np.array(a), w, f"chain {i}, kept link")


@pytest.mark.parametrize("memory", ["unified", "discrete"])
def test_mirror_chains(gpu, memory):
    count = 1000 if FULL else 200
    result = run(
        f"import test_streams; test_streams.mirror_chains({count})",
        MLX_VK_MEMORY=memory,
    )
    assert result.returncode == 0, result.stderr


def dropped_results(count):
    """Arrays that nobody keeps, of batches held for a busy CPU stream, while
    another GPU stream and the host take arrays of their size."""
    cpu, other = mx.new_stream(mx.cpu), mx.new_stream(mx.gpu)
    for i in range(count):
        n = (300, 3000, 30_000)[i % 3]
        keep_busy(cpu)
        slow = mx.add(mx.full((n,), i, stream=cpu), 1, stream=cpu)
        mx.async_eval(*(slow * k for k in range(8)))
        del slow
        theirs = [mx.full((n,), 1000 * k + i, stream=other) for k in range(8)]
        mx.async_eval(theirs)
        ours = [mx.array(np.full(n, -k, np.int32)) for k in range(8)]
        mx.synchronize()
        for k in range(8):
            assert (np.array(theirs[k]) == 1000 * k + i).all(), (i, k)
            assert (np.array(ours[k]) == -k).all(), (i, k)


@pytest.mark.parametrize("memory", ["unified", "discrete"])
def test_dropped_results(gpu, memory):
    result = run(
        f"import test_streams; test_streams.dropped_results({200 if FULL else 40})",
        MLX_VK_MEMORY=memory,
    )
    assert result.returncode == 0, result.stderr


def views_across_streams():
    """A stream's batch that holds no more than a view, when another stream, or
    this one, already waits for it."""
    second = mx.new_stream(mx.gpu)
    x = mx.ones((5, 5))
    mx.eval(x)
    p = x.T
    y = mx.add(p, 1, stream=second) + 1
    assert y.tolist() == [[3.0] * 5] * 5
    q = x.T
    z = mx.add(q, q + 1, stream=second)
    assert z.tolist() == [[3.0] * 5] * 5


def test_views_across_streams(gpu):
    result = run("import test_streams; test_streams.views_across_streams()", limit=60)
    assert result.returncode == 0, result.stderr


def random_dag(rng, streams, nodes):
    """Random integer operations over random streams, against NumPy."""
    n = int(rng.choice([3, 300, 3000]))
    want = [rng.integers(-9, 9, n).astype(np.int32) for _ in range(3)]
    have = [mx.array(w) for w in want]
    for _ in range(nodes):
        f, g = OPS[int(rng.integers(len(OPS)))]
        a, b = rng.integers(max(0, len(have) - 8), len(have), 2)
        while have[a] is None or have[b] is None:
            a, b = rng.integers(0, len(have), 2)
        stream = streams[int(rng.integers(len(streams)))]
        have.append(f(have[a], have[b], stream=stream))
        want.append(g(want[a], want[b]))
        if rng.random() < 0.1:
            mx.async_eval(have[-1])
        if rng.random() < 0.3:  # dropping a reference lets others donate it
            have[int(rng.integers(3, len(have)))] = None
        if have[-1] is None:
            have[-1] = f(have[0], have[1], stream=stream)
            want[-1] = g(want[0], want[1])
    left = [(h, w) for h, w in zip(have, want) if h is not None]
    if rng.random() < 0.5:
        mx.eval([h for h, _ in left])
    else:
        mx.async_eval([h for h, _ in left])
    for h, w in left:
        np.testing.assert_array_equal(np.array(h), w)


def random_dags(count, cpu_streams):
    rng = np.random.default_rng(1)
    streams = [mx.new_stream(mx.gpu) for _ in range(3)]
    streams += [mx.new_stream(mx.cpu) for _ in range(cpu_streams)]
    for _ in range(count):
        random_dag(rng, streams, int(rng.integers(5, 60)))


@pytest.mark.parametrize("memory", ["unified", "discrete"])
@pytest.mark.parametrize("cpu_streams", [0, 2])
def test_random_dags(gpu, memory, cpu_streams):
    count = 500 if FULL else 60
    result = run(
        f"import test_streams; test_streams.random_dags({count}, {cpu_streams})",
        MLX_VK_MEMORY=memory,
    )
    assert result.returncode == 0, result.stderr


def test_ping_pong_between_streams(gpu):
    streams = [mx.new_stream(mx.gpu), mx.new_stream(mx.gpu)]
    count = 10_000 if FULL else 1000
    x = mx.zeros((100,), mx.int32)
    for i in range(count):
        x = mx.add(x, 1, stream=streams[i % 2])
        if i % 50 == 49:
            mx.async_eval(x)
    assert np.array(x).tolist() == [count] * 100


def test_ping_pong_with_cpu(gpu):
    cpu = mx.new_stream(mx.cpu)
    x = mx.zeros((5000,), mx.int32)
    for i in range(600 if FULL else 200):
        x = mx.add(x, 1, stream=cpu if i % 2 else mx.gpu)
        if i % 20 == 19:
            mx.async_eval(x)
    assert int(mx.min(x)) == int(mx.max(x)) == (600 if FULL else 200)


def test_consumer_before_producer_is_submitted(gpu):
    """The CPU waits on GPU work that is still being encoded."""
    cpu = mx.new_stream(mx.cpu)
    a = mx.ones((1000,))
    for _ in range(50):
        g = a
        for _ in range(5):
            g = g + 1
        c = mx.exp(-g, stream=cpu)
        h = c * 2
        mx.eval(h, g)
        np.testing.assert_allclose(np.array(h), 2 * np.exp(-6), rtol=1e-5)


def test_threads(gpu):
    failures = []

    def work(seed):
        try:
            rng = np.random.default_rng(seed)
            streams = [mx.new_stream(mx.gpu), mx.new_stream(mx.cpu)]
            for _ in range(10):
                random_dag(rng, streams, 30)
        except Exception as e:
            failures.append(e)

    for _ in range(3):
        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not failures, failures[0]


ERRORS_ON_THE_CPU = """
import contextlib
import mlx.core as mx
mx.set_default_device(mx.gpu)
for _ in range(3):
    bad = mx.linalg.inv(mx.zeros((3, 3)), stream=mx.cpu)
    after = bad + 1
    try:
        mx.eval(after)
    except Exception:
        print("thrown")
    # MLX's CPU stream keeps its error until it is asked for it.
    with contextlib.suppress(RuntimeError):
        mx.synchronize(mx.default_stream(mx.cpu))
    assert mx.sum(mx.ones((10,))).item() == 10
"""


def test_error_on_the_cpu_reaches_the_gpu():
    done = run(ERRORS_ON_THE_CPU)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["thrown"] * 3


MANY_ERRORS_ON_THE_CPU = """
import threading
import mlx.core as mx
mx.set_default_device(mx.gpu)
singular, eye = mx.zeros((2, 2)), mx.eye(2)
mx.eval(singular, eye)
thrown, right, ended = 0, 0, threading.Event()

def others():
    global right
    with mx.stream(mx.new_stream(mx.cpu)):
        while not ended.is_set():
            y = eye
            for _ in range(25):
                y = y @ eye + eye - eye
            assert mx.array_equal(y, eye).item()
            right += 1

thread = threading.Thread(target=others)
thread.start()
for i in range(1000):
    with mx.stream(mx.cpu):
        y = mx.linalg.inv(singular)
        for _ in range(5 + i % 23):
            y = y * mx.random.uniform(shape=(64, 64))[:2, :2]
    try:
        mx.eval(y)
    except RuntimeError:
        thrown += 1
ended.set()
thread.join()
for limit in (1, 1 << 30):  # of 1 byte: each eval waits for what is under way
    mx.set_memory_limit(limit)
    x = mx.zeros((1000,))
    for i in range(1000):
        x = mx.add(x, 1, stream=mx.cpu if i % 100 < 15 else mx.gpu)
    assert mx.all(x == 1000).item()
    x = mx.zeros((1000,))
    for _ in range(2000):
        x = x + 1
    assert mx.all(x == 2000).item()
assert right > 0
print(thrown)
"""


def test_many_errors_on_the_cpu():
    """MLX's CPU encoder counts a task before the enqueue that throws the
    stream's error, and never takes it back: evals waited for those for ever."""
    done = run(MANY_ERRORS_ON_THE_CPU, limit=100)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 500


def test_error_while_encoding(gpu):
    for _ in range(3):
        good = mx.arange(10) + 1
        with pytest.raises(Exception):
            mx.eval(good, mx.linalg.lu(mx.zeros((3, 0)))[0])
        assert mx.sum(mx.arange(10) + 1).item() == 55


@pytest.mark.parametrize(
    "code",
    [
        # Work in flight on the main thread.
        "xs = [mx.random.normal((128, 128)) @ mx.ones((128, 128))"
        " for _ in range(30)]\nmx.async_eval(xs)",
        # On a thread that ends with it.
        "import threading\n"
        "def f():\n"
        "    with mx.stream(mx.new_stream(mx.gpu)):\n"
        "        mx.async_eval([mx.ones((128, 128)) @ mx.ones((128, 128))"
        " for _ in range(30)])\n"
        "t = threading.Thread(target=f); t.start(); t.join()",
        # Waiting for a CPU stream.
        "x = mx.sort(mx.random.normal((1000000,), stream=mx.cpu), stream=mx.cpu)\n"
        "mx.async_eval(x + 1)",
        # Graphs never evaluated, and arrays alive at exit.
        "a = mx.ones((1000,)); b = a + 1; mx.eval(a); import builtins\n"
        "builtins.keep = [a, b]",
        # Kernels that a driver still compiles, with what it made for earlier ones.
        "import os\nimport numpy as np\n"
        "r = np.random.default_rng(list(os.urandom(8)))\n"
        "def f(x):\n"
        "    a, b, c = (int(k) for k in r.integers(2, 9999, 3))\n"
        "    return mx.compile(lambda x: (x * a + b) ^ c)(x)\n"
        "x = mx.arange(1000)\nmx.eval(f(x))\n"
        "for _ in range(30):\n    x = f(mx.sort(x))\n    mx.async_eval(x)",
        # An exception ends the process.
        "mx.async_eval(mx.ones((128, 512)) @ mx.ones((512, 128)))\nraise SystemExit(0)",
    ],
    ids=["main", "thread", "cpu", "alive", "compiling", "exception"],
)
def test_exit_with_work_in_flight(gpu, code):
    for _ in range(3 if FULL else 1):
        result = run("import mlx.core as mx\n" + code)
        assert result.returncode == 0, result.stderr


def test_unknown_stream_throws(gpu):
    stream = []
    t = threading.Thread(target=lambda: stream.append(mx.new_stream(mx.gpu)))
    t.start()
    t.join()
    with pytest.raises(RuntimeError, match="Stream"):
        mx.eval(mx.add(mx.ones((3,)), 1, stream=stream[0]))
    assert (mx.ones((3,)) + 1).tolist() == [2, 2, 2]


def test_synchronize(gpu):
    stream = mx.new_stream(mx.gpu)
    for _ in range(100):
        x = mx.add(mx.ones((100,)), 1, stream=stream)
        mx.async_eval(x)
        mx.synchronize(stream)
        mx.synchronize()


def test_numpy_views_are_coherent(gpu):
    """A NumPy view of an array stays valid, and is the array."""
    x = mx.arange(5000) * 2
    mx.eval(x)
    view = np.array(x, copy=False)
    y = x + 1
    mx.eval(y)
    np.testing.assert_array_equal(view, np.arange(5000) * 2)
    np.testing.assert_array_equal(np.array(y), view + 1)
    del x
    mx.eval(y * 3)
    np.testing.assert_array_equal(view, np.arange(5000) * 2)


CHAIN = """
import mlx.core as mx
import numpy as np
mx.set_default_device(mx.gpu)
good = 0
for seed in range(12):
    x = np.random.default_rng(seed).integers(-9, 9, 3000).astype(np.int32)
    a = mx.array(x)
    mx.eval(a + 0)
    b = mx.cumsum(a)  # another kernel than the next one's
    c = mx.sort(b)  # reads what cumsum wrote
    d = mx.take(c, mx.abs(a))
    mx.eval(d)
    good += np.array_equal(np.array(d), np.sort(np.cumsum(x))[np.abs(x)])
print(good)
"""


def test_a_dropped_barrier_is_noticed(gpu):
    def good(**environment):
        done = run(CHAIN, MLX_VK_DEBUG="shuffle", **environment)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    assert good() == 12
    # The last ends a batch, for the next one and the host: tests/null has it.
    for barrier in (1, 2):
        assert good(MLX_VK_TEST=f"drop_barrier={barrier}") < 12
