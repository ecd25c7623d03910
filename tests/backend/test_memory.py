"""The memory API: exact accounting, limits, the cache, flat use over time."""

import gc
import os
import subprocess
import sys

import mlx.core as mx
import numpy as np
import pytest

MIB = 1 << 20
needs_cache = pytest.mark.skipif(
    "guard" in os.environ.get("MLX_VK_DEBUG", ""), reason="guard caches nothing"
)


@pytest.fixture(autouse=True)
def clean():
    gc.collect()
    mx.synchronize()
    limit = mx.set_cache_limit(0)  # unlike clear_cache, keeps no small buffers
    mx.set_cache_limit(256 * MIB)
    yield
    mx.set_cache_limit(limit)
    gc.collect()
    mx.synchronize()
    mx.clear_cache()


def fresh(n, value=1.0):
    x = mx.full((n,), value, dtype=mx.float32)
    mx.eval(x)
    mx.synchronize()
    return x


def test_active_memory_is_exact():
    before = mx.get_active_memory()
    x = fresh(MIB)
    assert mx.get_active_memory() - before == 4 * MIB
    y = fresh(2 * MIB)
    assert mx.get_active_memory() - before == 12 * MIB
    del x
    mx.synchronize()
    assert mx.get_active_memory() - before == 8 * MIB
    del y
    mx.synchronize()
    assert mx.get_active_memory() == before


def test_intermediates_are_returned():
    x = fresh(MIB)
    before = mx.get_active_memory()
    y = mx.exp(mx.sin(x * 2) + mx.cos(x)) - x
    mx.eval(y)
    mx.synchronize()
    assert mx.get_active_memory() - before == 4 * MIB


def test_views_share_memory():
    x = fresh(MIB)
    before = mx.get_active_memory()
    views = [x[10:], mx.reshape(x, (1024, 1024)).T, mx.view(x, mx.int32)]
    mx.eval(views)
    mx.synchronize()
    assert mx.get_active_memory() == before


def test_peak_memory():
    x = fresh(MIB)
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    y = fresh(4 * MIB)
    del y
    mx.synchronize()
    assert mx.get_peak_memory() >= before + 16 * MIB
    assert mx.get_peak_memory() < before + 40 * MIB
    mx.reset_peak_memory()
    y = x + 1
    mx.eval(y)
    assert mx.get_peak_memory() <= before + 8 * MIB + 4096


@needs_cache
def test_freed_memory_is_cached_and_reused():
    assert mx.get_cache_memory() == 0
    x = fresh(MIB)
    del x
    mx.synchronize()
    small = 64 * 1024  # what the scalar took
    assert 4 * MIB <= mx.get_cache_memory() < 4 * MIB + small
    x = fresh(MIB)
    assert mx.get_cache_memory() < small
    del x
    mx.synchronize()
    mx.clear_cache()
    assert mx.get_cache_memory() == 0


RUNS_AHEAD = """
import sys
import time
import mlx.core as mx

x = mx.full((int(sys.argv[1]),), 1.0)
mx.eval(x, x + x)
for limit in (0, 4 * x.nbytes):
    mx.set_cache_limit(limit)
    before, most = mx.get_active_memory(), 50
    for _ in range(8):  # a busy host may miss all batches of some
        mx.reset_peak_memory()
        for _ in range(50):
            mx.async_eval(x + x)
        mx.synchronize()
        end = time.monotonic() + 10  # the last batch may retire a moment later
        while mx.get_active_memory() != before and time.monotonic() < end:
            time.sleep(0.001)
        assert mx.get_active_memory() == before
        most = min(most, (mx.get_peak_memory() - before) // x.nbytes)
        if most < 40:
            break
    print(most)
"""


@needs_cache
def test_running_ahead_of_the_device_reuses_memory(request):
    """An allocation takes what running work is about to free before new memory.

    In a process of its own, as blocks of earlier tests have room for many arrays.
    """
    # Small enough to take seconds on lavapipe with validation.
    items = 4 << 20 if "llvmpipe" in request.config.mlxvk_name else 16 << 20
    done = subprocess.run(
        [sys.executable, "-c", RUNS_AHEAD, str(items)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    # All 50 without it, each time. 10 ms of work, as long as estimates go, are 24 on
    # an H200; a busy host misses a batch of 7 now and then.
    assert all(int(most) < 40 for most in done.stdout.split()), done.stdout


@needs_cache
def test_cache_limit():
    assert mx.set_cache_limit(0) == 256 * MIB
    x = fresh(MIB)
    del x
    mx.synchronize()
    assert mx.get_cache_memory() == 0
    mx.set_cache_limit(6 * MIB)
    xs = [fresh(MIB) for _ in range(4)]
    del xs
    mx.synchronize()
    assert 0 < mx.get_cache_memory() <= 6 * MIB
    mx.set_cache_limit(0)
    assert mx.get_cache_memory() == 0


def test_memory_limit_is_soft():
    old = mx.set_memory_limit(8 * MIB)
    try:
        assert mx.set_memory_limit(8 * MIB) == 8 * MIB
        x = fresh(MIB)
        for _ in range(20):
            x = mx.exp(mx.negative(x)) + fresh(MIB)
        mx.eval(x)
        assert np.isfinite(np.array(x[:10])).all()
    finally:
        mx.set_memory_limit(old)


def test_many_small_arrays(gpu):
    """More arrays than a device allows allocations."""
    before = mx.get_active_memory()
    xs = [mx.array([i, i + 1]) + 1 for i in range(10_000)]
    mx.eval(xs)
    assert xs[-1].tolist() == [10_000, 10_001]
    del xs
    gc.collect()
    mx.synchronize()
    assert mx.get_active_memory() == before


def test_zero_size():
    before = mx.get_active_memory()
    x = mx.zeros((0, 5)) + 1
    mx.eval(x)
    mx.synchronize()
    assert x.shape == (0, 5) and mx.get_active_memory() == before
    assert mx.sum(x).item() == 0
    assert mx.concatenate([x, mx.ones((1, 5))]).tolist() == [[1] * 5]


def test_allocation_beyond_the_heap(gpu):
    elements = mx.device_info(gpu)["memory_size"] // 4
    for _ in range(2):
        with pytest.raises(Exception, match="[0-9]"):
            mx.eval(mx.full((elements * 4,), 1.0))
        x = mx.arange(1000) * 2
        assert mx.sum(x).item() == 999_000


def test_array_beyond_the_largest_buffer(gpu):
    """The error says what the limit is and what to do."""
    limit = mx.device_info(gpu)["max_buffer_length"]
    rows = limit // (4 * 1024) + 1
    with pytest.raises(Exception, match=r"largest single array is .*mx\.split"):
        mx.eval(mx.full((rows, 1024), 1.0))
    assert mx.sum(mx.arange(10)).item() == 45


def test_host_and_device_take_turns():
    """Each sees what the other wrote last, whoever made the array."""
    n = 3000  # more than a small array
    made = mx.array(np.arange(n, dtype=np.float32))
    computed = mx.arange(n, dtype=mx.float32) + 0
    for x in (made, computed):
        for turn in range(1, 4):
            view = np.array(x, copy=False)
            view += turn
            del view
            y = x * 2
            assert np.array_equal(np.array(y), 2 * np.array(x))
            on_cpu = mx.add(y, 1, stream=mx.cpu)
            back = on_cpu - 1
            assert np.array_equal(np.array(back), np.array(y))
    assert np.array_equal(np.array(made), np.arange(n, dtype=np.float32) + 6)
    assert np.array_equal(np.array(computed), np.array(made))


def test_rotating_cache_stays_flat():
    """A key-value cache written in place: no growth over many steps."""
    heads, length, dim = 2, 64, 16
    cache = mx.zeros((1, heads, length, dim))
    total = mx.zeros(())
    mx.eval(cache, total)
    levels = []
    for step in range(400):
        row = mx.full((1, heads, 1, dim), float(step))
        cache[..., step % length : step % length + 1, :] = row
        total = total + mx.max(cache)
        mx.eval(cache, total)
        if step % 50 == 49:
            mx.synchronize()
            levels.append((mx.get_active_memory(), mx.get_cache_memory()))
    # All buffers have the sizes of this loop's arrays: no others were kept.
    assert len({active for active, _ in levels}) == 1, levels
    # A row and a cache more of each of two batches that retire late.
    assert levels[-1][1] <= levels[1][1] + 3 * cache.nbytes, levels
    assert total.item() == sum(range(400))


def test_growing_cache_does_not_hoard():
    """Ever longer requests must not leave behind what nothing can reuse."""
    mx.set_cache_limit(32 * MIB)
    for n in range(1, 60):
        x = mx.random.normal((n * 16384,))
        mx.eval(x * 2 + 1)
        del x
    mx.synchronize()
    assert mx.get_cache_memory() <= 32 * MIB


def test_cache_being_read_is_updated_in_place():
    """As decoding does it: the next step is encoded while one is running."""
    cache = mx.zeros((64, MIB), mx.float32)
    busy = mx.random.normal((512, 512))
    mx.eval(cache, busy)
    mx.synchronize()
    mx.reset_peak_memory()
    before = mx.get_active_memory()
    for _ in range(8):
        busy = busy @ busy * 1e-3
    mx.async_eval(busy)
    sums = []
    for i in range(6):
        cache[:, i] = i + 1
        sums.append(cache[:, :8].sum())
        mx.async_eval(sums[-1])
    assert [s.item() for s in sums] == [64 * n * (n + 1) / 2 for n in range(1, 7)]
    assert mx.get_peak_memory() - before < 64 * MIB


@needs_cache
@pytest.mark.parametrize("n", [300, 30_000])
def test_uploads_use_memory_again(n):
    """A batch of data a step: what the last one had serves the next."""
    weight = mx.ones((n,))
    mx.eval(weight)
    levels = []
    for step in range(60):
        data = mx.array(np.full((n,), step, np.float32))
        assert mx.sum(data * weight).item() == step * n
        if step % 20 == 19:
            mx.synchronize()
            levels.append(mx.get_cache_memory())
    # One buffer more or less, as the batches happen to retire.
    assert levels[-1] <= levels[0] + 2 * weight.nbytes, levels
