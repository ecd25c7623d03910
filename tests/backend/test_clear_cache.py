"""mx.clear_cache gives memory back by a thread of its own, and what it has taken
can be used again for a moment (src/runtime/memory_cache.h)."""

import os
import textwrap
import threading
import time

import mlx.core as mx
import numpy as np
import pytest
from processes import output_of, python

MIB = 1 << 20
# Programs of their own, as they look at the whole process.
PREAMBLE = """
import os, sys, time
import mlx.core as mx
MIB = 1 << 20
def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
def used(mib, value=1.0):
    x = mx.full((mib * MIB // 4,), value)
    mx.eval(x)
    mx.synchronize()
    return x
def leave(mib):
    x = used(mib)
    del x
    mx.synchronize()
    mx.clear_cache()
used(1)
"""


def program(text):
    return PREAMBLE + textwrap.dedent(text)


@pytest.fixture
def software(gpu):
    """A device whose memory is the process's own, so that it can be seen."""
    if "llvmpipe" not in mx.device_info(gpu)["device_name"]:
        pytest.skip("the memory of this device is not seen in the process")
    if "guard" in os.environ.get("MLX_VK_DEBUG", ""):
        pytest.skip("guard caches nothing")


def test_who_asks_is_told_the_truth(software):
    output_of(
        "-c",
        program("""
        before = resident()
        leave(300)
        assert mx.get_cache_memory() == 0
        assert resident() < before + 100 * MIB, (resident() - before) / MIB
        leave(300)
        mx.set_cache_limit(mx.set_cache_limit(0))
        assert resident() < before + 100 * MIB, (resident() - before) / MIB
        """),
    )


def test_memory_goes_back_by_itself(software):
    output_of(
        "-c",
        program("""
        before = resident()
        for _ in range(3):
            leave(300)
            end = time.monotonic() + 20
            while resident() > before + 100 * MIB:
                assert time.monotonic() < end, (resident() - before) / MIB
                time.sleep(0.01)
        """),
    )


def test_a_server_stays_flat(software):
    """Requests of changing length, with no time for memory to go back between."""
    output_of(
        "-c",
        program("""
        before = most = resident()
        for k in range(14): # no two of a size, 2.3 GiB in all
            x = used(64 + k * 16)
            most = max(most, resident())
            del x
            mx.clear_cache()
        assert most < before + 1200 * MIB, (most - before) / MIB
        assert mx.get_cache_memory() == 0 and mx.get_active_memory() < 8 * MIB
        """),
    )


def test_what_left_is_used_again(software):
    """Without being freed and taken anew: its pages are there already. Fewer faults
    than pages where the system has huge ones."""
    output_of(
        "-c",
        program("""
        import resource
        faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        start = faults()
        used(300) # of no block with others
        pages = faults() - start
        mx.clear_cache()
        start = faults()
        x = used(300, 2.0)
        assert faults() - start < pages // 2, (faults() - start, pages)
        assert x[:3].tolist() == [2.0] * 3 and x[-1].item() == 2.0
        """),
    )


def test_what_left_makes_room(software):
    """For what cannot use it, before the driver is asked for more."""
    output_of(
        "-c",
        program("""
        parts = [used(150), used(150, 2.0)]
        before = resident()
        del parts
        mx.clear_cache()
        x = mx.full((3 * MIB // 4,), 3.0)
        mx.async_eval(x)
        assert resident() < before - 100 * MIB, (resident() - before) / MIB
        assert x[-1].item() == 3.0
        """),
    )


def test_the_process_ends_with_memory_under_way():
    for wait in (0, 0.1):
        done = output_of("-c", program(f"leave(64); time.sleep({wait}); print('end')"))
        assert done.stdout.strip() == "end"


def test_a_forked_child_asks():
    """There the thread is not, and the driver cannot be used."""
    done = python(
        "-c",
        program("""
        leave(64)
        child = os.fork()
        if not child:
            mx.clear_cache()
            mx.get_cache_memory()
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        leave(64)
        assert mx.get_cache_memory() == 0
        """),
        limit=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_threads_clear_while_others_compute():
    stop = threading.Event()

    def clear():
        while not stop.is_set():
            mx.clear_cache()
            if mx.get_cache_memory() < 0:
                raise AssertionError
            time.sleep(0.002)

    threads = [threading.Thread(target=clear) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        base = np.arange(300_000, dtype=np.float32)
        x = mx.array(base)
        for k in range(60):
            y = (x + k) * 2 - x
            z = mx.concatenate([y, x])[::2]
            want = np.concatenate([base + 2 * k, base])[::2]
            assert np.array_equal(np.array(z), want)
    finally:
        stop.set()
        for t in threads:
            t.join()
