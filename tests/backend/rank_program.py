"""A rank of test_distributed.py: rank_program.py WHAT. Fails by an exception;
what a test wants to see is printed."""

import os
import signal
import sys
import threading
import time

import mlx.core as mx
import numpy as np

from mlx_vulkan import native

GROUP = mx.distributed.init(strict=True, backend="ring")
RANK, RANKS = GROUP.rank(), GROUP.size()

FLOATS = {mx.float32: 2.0**-23, mx.float16: 2.0**-10, mx.bfloat16: 2.0**-7}
INTEGERS = (mx.int8, mx.uint8, mx.int16, mx.uint16, mx.int32, mx.uint32, mx.int64)
INTEGERS += (mx.uint64,)
# Packs hold 60, 30, 15 or 7 items of 1, 2, 4 or 8 bytes, tiles 32 packs, and a
# slot of a software device 24 tiles.
SIZES = (0, 1, 2, 5, 12, 13, 4096, 100_003)
PIECE = {1: 46_080, 2: 23_040, 4: 11_520, 8: 5_376}


def say(*words) -> None:
    # One write, so that lines of ranks do not mix.
    sys.stdout.write(" ".join(str(w) for w in words) + "\n")
    sys.stdout.flush()


def inputs(size: int, dtype, seed: int) -> list[mx.array]:
    """Those of all ranks."""
    rng = np.random.default_rng([seed, size])
    values = rng.integers(0, 40, (RANKS, size))
    if dtype in FLOATS:
        values = rng.standard_normal((RANKS, size)) * 30
    elif dtype == mx.bool_:
        values = values < 10
    elif dtype == mx.complex64:
        values = values + 1j * values[:, ::-1]
    return [mx.array(v).astype(dtype) for v in values]


def exact(x: mx.array) -> np.ndarray:
    if x.dtype in FLOATS:
        return np.array(x.astype(mx.float32)).astype(np.float64)
    return np.array(x)


def oracle(operation: str, all_x: list[mx.array]) -> np.ndarray:
    x = np.stack([exact(x) for x in all_x])
    if operation == "max":
        return x.max(0)
    if operation == "min":
        return x.min(0)
    wide = x.sum(0, dtype=x.dtype if x.dtype.kind in "fc" else None)
    return wide if x.dtype == bool else wide.astype(x.dtype)


def check_reduced(operation: str, y: mx.array, all_x: list[mx.array]) -> None:
    want = oracle(operation, all_x)
    got = exact(y)
    assert got.shape == want.shape, (got.shape, want.shape)
    if y.dtype in FLOATS and operation == "sum":
        # Sums in float32, in the ranks' order, and one rounding to the dtype:
        # relative to what is summed.
        scale = np.stack([np.abs(exact(x)) for x in all_x]).sum(0)
        eps = FLOATS[y.dtype] + RANKS * 2.0**-23
        assert (np.abs(got - want) <= eps * scale).all(), (operation, y.dtype, y.size)
    elif y.dtype == mx.complex64:
        np.testing.assert_allclose(got, want, rtol=1e-6)
    else:
        np.testing.assert_array_equal(got, want.astype(got.dtype))


def check_same_on_all(y: mx.array) -> None:
    """By the ring, on the CPU."""
    bits = mx.contiguous(y).view(mx.uint8).reshape(1, -1)
    every = mx.distributed.all_gather(bits, group=GROUP, stream=mx.cpu)
    assert bool(mx.all(every == every[:1]).item()), (y.dtype, y.shape)


REDUCE = {
    "sum": mx.distributed.all_sum,
    "max": mx.distributed.all_max,
    "min": mx.distributed.all_min,
}


def reductions() -> None:
    for seed, dtype in enumerate((*FLOATS, *INTEGERS, mx.bool_, mx.complex64)):
        for size in SIZES:
            all_x = inputs(size, dtype, seed)
            y = mx.distributed.all_sum(all_x[RANK], group=GROUP)
            if size:
                check_reduced("sum", y, all_x)
                check_same_on_all(y)
            if size not in (1, 13, 4096) or dtype == mx.complex64:
                continue
            for operation in ("max", "min"):
                y = REDUCE[operation](all_x[RANK], group=GROUP)
                check_reduced(operation, y, all_x)
    empty = mx.distributed.all_sum(mx.zeros((3, 0)), group=GROUP)
    assert empty.shape == (3, 0) and empty.size == 0
    nan = mx.array([1.0, float("nan"), float("inf"), -0.0])
    y = mx.distributed.all_sum(nan if RANK == 0 else mx.zeros(4), group=GROUP)
    np.testing.assert_array_equal(np.array(y), np.array(nan))
    for reduce in (mx.distributed.all_max, mx.distributed.all_min):
        y = np.array(reduce(nan if RANK == 0 else mx.zeros(4), group=GROUP))
        assert np.isnan(y[1]) and not np.isnan(y[[0, 2, 3]]).any()
    say("state", native.report()["distributed"])


def pieces() -> None:
    """Sizes around the ends of pieces, of each size of items."""
    for dtype in (mx.int8, mx.bfloat16, mx.float32, mx.int64, mx.complex64):
        piece = PIECE[dtype.size]
        around = [n * piece + by for n in (1, 2, 3, 4, 5) for by in (-1, 0, 1)]
        for size in (*around, piece // 24 + 1, 7 * piece // 2):
            all_x = inputs(size, dtype, 8)
            y = mx.distributed.all_sum(all_x[RANK], group=GROUP)
            check_reduced("sum", y, all_x)
            check_same_on_all(y)
        for size in (piece + 1, 3 * piece):
            all_x = inputs(size, dtype, 9)
            y = mx.distributed.all_gather(all_x[RANK], group=GROUP)
            want = np.concatenate([exact(x) for x in all_x])
            np.testing.assert_array_equal(exact(y), want)
            parts = [x.reshape(RANKS, size) for x in inputs(RANKS * size, dtype, 9)]
            y = mx.distributed.sum_scatter(parts[RANK], group=GROUP)
            check_reduced("sum", y, [x[RANK : RANK + 1] for x in parts])


def repeated() -> None:
    """sys.argv[2] times arrays of several pieces, among small ones, other work
    and messages, on two streams, with ranks late in turn."""
    rng = np.random.default_rng(12)
    other = mx.new_stream(mx.gpu)
    total = RANKS * (RANKS + 1) // 2
    waiting = []
    for _ in range(int(sys.argv[2])):
        size = int(rng.integers(1, 9 * PIECE[4]))
        stream = other if rng.integers(4) == 0 else mx.default_stream(mx.gpu)
        x = mx.arange(size, dtype=mx.int32, stream=stream) * (RANK + 1)
        y = mx.distributed.all_sum(x, group=GROUP, stream=stream)
        if rng.integers(3) == 0:
            y = mx.distributed.all_max(y, group=GROUP, stream=stream)
        waiting.append((y, size))
        if rng.integers(4) == 0:
            one = mx.distributed.all_sum(mx.array([RANK]), group=GROUP)
            waiting.append((one * 0, 1))
        mx.async_eval(y)
        if rng.integers(20) == RANK:
            time.sleep(0.003)
        if len(waiting) > rng.integers(1, 9):
            for y, size in waiting:
                np.testing.assert_array_equal(np.array(y), np.arange(size) * total)
            waiting.clear()


def layouts() -> None:
    """Strided, sliced, broadcast and donated inputs."""
    base = [
        mx.arange(6000, dtype=mx.float32).reshape(60, 100) * (r + 1)
        for r in range(RANKS)
    ]
    views = {
        "transposed": lambda x: x.T,
        "sliced": lambda x: x[3:, 1:50],
        "offset": lambda x: x.reshape(-1)[7:],
        "strided": lambda x: x[::2, ::3],
        "broadcast": lambda x: mx.broadcast_to(x[:1, :1], (5, 9)),
        "halves": lambda x: x.astype(mx.bfloat16).reshape(-1)[1:],
    }
    for name, view in views.items():
        y = mx.distributed.all_sum(view(base[RANK]), group=GROUP)
        check_reduced("sum", y, [view(x) for x in base])
        z = mx.distributed.all_gather(view(base[RANK]), group=GROUP)
        want = np.concatenate([exact(view(x)) for x in base])
        np.testing.assert_array_equal(exact(z), want, err_msg=name)
    y = mx.distributed.all_sum(base[RANK] + 1, group=GROUP)  # donated
    check_reduced("sum", y, [x + 1 for x in base])


def others() -> None:
    """Gather, scatter, send and receive."""
    for dtype in (mx.float32, mx.bfloat16, mx.int8, mx.int64, mx.bool_):
        for size in SIZES:
            all_x = inputs(size, dtype, 5)
            y = mx.distributed.all_gather(all_x[RANK], group=GROUP)
            want = np.concatenate([exact(x) for x in all_x])
            np.testing.assert_array_equal(exact(y), want)
    one = mx.distributed.all_gather(mx.array(float(RANK)), group=GROUP)
    np.testing.assert_array_equal(np.array(one), np.arange(RANKS))
    for dtype in (mx.float32, mx.bfloat16, mx.int32):
        for size in (1, 5, 13, 30_001):
            all_x = [x.reshape(RANKS, size) for x in inputs(RANKS * size, dtype, 6)]
            y = mx.distributed.sum_scatter(all_x[RANK], group=GROUP)
            check_reduced("sum", y, [x[RANK : RANK + 1] for x in all_x])
    for dtype in (mx.float32, mx.int8):
        for size in (1, 13, 100_003):
            all_x = inputs(size, dtype, 7)
            right, left = (RANK + 1) % RANKS, (RANK - 1) % RANKS
            # One after the other, and what is sent is usable.
            for round in range(RANKS):
                if round == RANK:
                    x = mx.distributed.send(all_x[RANK], right, group=GROUP)
                    np.testing.assert_array_equal(exact(x), exact(all_x[RANK]))
                elif round == left:
                    y = mx.distributed.recv_like(all_x[left], left, group=GROUP)
                    np.testing.assert_array_equal(exact(y), exact(all_x[left]))
    # All at once: a slot takes it.
    x = mx.full((100,), RANK)
    sent = mx.distributed.send(x, (RANK + 1) % RANKS, group=GROUP)
    mx.async_eval(sent)
    came = mx.distributed.recv((100,), x.dtype, (RANK - 1) % RANKS, group=GROUP)
    assert bool(mx.all(came == (RANK - 1) % RANKS).item())
    in_turns()


def in_turns() -> None:
    """Messages between two ranks on streams in turns; one waits for the CPU."""
    slow = mx.random.uniform(shape=(200_000,))
    mx.eval(slow)
    streams = [mx.new_stream(mx.gpu) for _ in range(2)]
    arrived = []
    for k in range(8):
        with mx.stream(streams[k % 2]):
            if RANK == 0:
                x = mx.full((4096,), float(k))
                if k % 2 == 0:
                    x = x + 0 * mx.sort(slow + k, stream=mx.cpu)[0]
                mx.async_eval(mx.distributed.send(x, 1, group=GROUP))
            elif RANK == 1:
                y = mx.distributed.recv((4096,), mx.float32, 0, group=GROUP)
                mx.async_eval(y)
                arrived.append(y)
    for k, y in enumerate(arrived):
        np.testing.assert_array_equal(exact(y), np.full(4096, k))


def flight() -> None:
    """Many in flight, among other work, on two streams and the CPU's."""
    x = mx.full((1000,), float(RANK + 1))
    total = sum(range(1, RANKS + 1))
    for _ in range(150):
        x = mx.distributed.all_sum(x, group=GROUP) / RANKS
        x = x * 1.0
    mx.async_eval(x)
    other = mx.new_stream(mx.gpu)
    parts = []
    for k in range(20):
        stream = other if k % 2 else mx.default_stream(mx.gpu)
        y = mx.full((3000,), float(RANK + k), stream=stream)
        parts.append(mx.distributed.all_sum(y, group=GROUP, stream=stream))
        if k % 5 == 0:
            z = mx.distributed.all_sum(mx.ones(10), group=GROUP, stream=mx.cpu)
            parts.append(z * 0 + sum(range(RANKS)) + k * RANKS)
    mx.eval(x, parts)
    np.testing.assert_allclose(np.array(x), total / RANKS, rtol=1e-5)
    values = {float(p[0].item()) - sum(range(RANKS)) for p in parts}
    assert values <= {float(k * RANKS) for k in range(20)}, values
    # Of two streams in one eval: the second's waits for what the first has
    # encoded, and the first's is encoded next.
    y = mx.full((100,), float(RANK))
    y = mx.add(y, y)
    one = mx.add(y, y, stream=other)
    one = mx.distributed.all_sum(one, group=GROUP, stream=other)
    two = mx.distributed.all_sum(mx.multiply(y, y), group=GROUP)
    mx.eval(two, one)
    assert one[0].item() == 4 * sum(range(RANKS))
    assert two[0].item() == 4 * sum(r * r for r in range(RANKS))
    # The host goes on with what a collective gave, ranks in different steps.
    y = mx.array(0.0)
    for k in range(30):
        if k % RANKS == RANK:
            time.sleep(0.002)
        y = mx.distributed.all_sum(y + 1, group=GROUP) / RANKS
        assert y.item() == k + 1


def random() -> None:
    """sys.argv[2] collectives, with seeds that all ranks have."""
    rng = np.random.default_rng(11)
    count = int(sys.argv[2])
    waiting = []
    dtypes = (*FLOATS, mx.int8, mx.int32, mx.uint16, mx.int64)
    for k in range(count):
        dtype = dtypes[rng.integers(len(dtypes))]
        size = int(min(2 ** rng.uniform(0, 16), 50_000))
        operation = ("sum", "max", "min", "gather", "scatter")[rng.integers(5)]
        if operation == "scatter":
            all_x = [x.reshape(RANKS, size) for x in inputs(size * RANKS, dtype, k)]
            y = mx.distributed.sum_scatter(all_x[RANK], group=GROUP)
        elif operation == "gather":
            all_x = inputs(size, dtype, k)
            y = mx.distributed.all_gather(all_x[RANK], group=GROUP)
        else:
            all_x = inputs(size, dtype, k)
            y = REDUCE[operation](all_x[RANK], group=GROUP)
        mx.async_eval(y)
        waiting.append((operation, y, all_x))
        if len(waiting) > rng.integers(1, 12):
            for operation, y, all_x in waiting:
                if operation == "gather":
                    want = np.concatenate([exact(x) for x in all_x])
                    np.testing.assert_array_equal(exact(y), want)
                elif operation == "scatter":
                    mine = [x[RANK : RANK + 1] for x in all_x]
                    check_reduced("sum", y, mine)
                else:
                    check_reduced(operation, y, all_x)
            waiting.clear()


def failure(work) -> None:
    try:
        work()
    except (RuntimeError, ValueError) as e:
        say("error", RANK, str(e).replace("\n", " "))
        return
    raise AssertionError("this should have failed")


def late() -> None:
    if RANK == RANKS - 1:
        time.sleep(3)
    y = mx.distributed.all_sum(mx.ones(5), group=GROUP)
    assert y[0].item() == RANKS
    say("waited", RANK)


def killed() -> None:
    y = mx.distributed.all_sum(mx.ones(5), group=GROUP)
    mx.eval(y)
    if RANK == RANKS - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.monotonic()
    failure(lambda: mx.eval(mx.distributed.all_sum(mx.ones(5), group=GROUP)))
    assert time.monotonic() - begun < 20
    failure(lambda: mx.eval(mx.distributed.all_sum(mx.ones(5), group=GROUP)))
    # What was computed before can be saved.
    np.testing.assert_array_equal(np.array(y), RANKS)


def killed_between() -> None:
    """While pieces of many arrays are under way."""
    x = mx.ones(9 * PIECE[4])
    mx.eval(mx.distributed.all_sum(x, group=GROUP))
    if RANK == RANKS - 1:
        end = [os.getpid(), signal.SIGKILL]
        threading.Timer(float(sys.argv[2]), os.kill, end).start()

    def sums() -> None:
        begun = time.monotonic()
        while time.monotonic() - begun < 20:
            y = x
            for _ in range(100):
                y = mx.distributed.all_sum(y, group=GROUP) / RANKS
            mx.eval(y)

    failure(sums)
    np.testing.assert_array_equal(np.array(x), 1)


def differ() -> None:
    """Shapes that do not fit."""
    x = mx.ones(5 + RANK % 2)
    failure(lambda: mx.eval(mx.distributed.all_sum(x, group=GROUP)))


def differ_in_pieces() -> None:
    """The same number of pieces in all, of the same size."""
    if RANK == 0:
        mx.eval(mx.distributed.all_sum(mx.ones(2 * PIECE[4]), group=GROUP))
        x = mx.ones(PIECE[4])
    else:
        x = mx.ones(3 * PIECE[4])
    failure(lambda: mx.eval(mx.distributed.all_sum(x, group=GROUP)))


def differ_in_messages() -> None:
    """Sent: one and a half channels, then a half; asked for: one, then a half."""
    half = 64 * 1024 // 4 // 2
    if RANK == 0:
        mx.eval(mx.distributed.send(mx.ones(3 * half), 1, group=GROUP))
        mx.eval(mx.distributed.send(mx.ones(half), 1, group=GROUP))
        return
    y = mx.distributed.recv((2 * half,), mx.float32, 0, group=GROUP)
    failure(lambda: mx.eval(y))


def bad() -> None:
    for work in (
        lambda: GROUP.split(0),
        lambda: mx.distributed.send(mx.ones(3), RANKS, group=GROUP),
        lambda: mx.distributed.sum_scatter(mx.ones(RANKS + 1), group=GROUP),
    ):
        failure(work)
    x = mx.arange(3, dtype=mx.float64) / 7  # which the CPU sums
    y = mx.distributed.all_sum(x, group=GROUP)
    np.testing.assert_array_equal(np.array(y), RANKS * np.array(x))
    late()


if __name__ == "__main__":
    if not sys.argv[1].startswith(("killed", "differ")):
        # Others may be at a last one.
        globals()[sys.argv[1]]()
        mx.eval(mx.distributed.all_sum(mx.ones(1), group=GROUP))
    else:
        globals()[sys.argv[1]]()
    say("done", RANK)
