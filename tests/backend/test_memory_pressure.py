"""Arrays that do not fit: an error, and the process goes on with the memory it had."""

import gc
import threading
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from processes import output_of

ROUNDS = 20


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def some_weights():
    weights = [mx.random.normal((256, 256), key=mx.random.key(i)) for i in range(4)]
    mx.eval(weights)
    return weights


def too_large(x):
    """x[0, 0] plus a float32 array of 1.5 times the device's memory."""
    rows = mx.device_info(mx.gpu)["memory_size"] * 3 // 2 // 2**22
    return mx.zeros((rows, 2**20)) + x[0, 0]


def hidden(weights):
    x = mx.ones((8, 256))
    for w in weights:
        x = x @ w * 0.05
    return x


def graph(weights):
    """Products, an array that does not fit in the middle, and its consumer."""
    x = hidden(weights)
    return too_large(x).sum() + x.sum()


def evaluate(weights):
    mx.eval(graph(weights))


def evaluate_later(weights):
    y = graph(weights)
    mx.async_eval(y)
    mx.eval(y)


def read(weights):
    np.array(graph(weights))


def compiled(weights):
    mx.eval(mx.compile(graph)(weights))


def consumed_on_cpu(weights):
    x = hidden(weights)
    mx.eval(mx.add(too_large(x)[0, :4], 1, stream=mx.cpu))


def beside_others(weights):
    """Evaluates with arrays that fit, before it and after it."""
    small = hidden(weights)
    mx.eval(small + 1, graph(weights), small + 2)


def together(weights):
    """Each array fits. In all they are four times the memory, as a card lends a step
    up to 512 MiB of the host's."""
    items = mx.device_info(mx.gpu)["memory_size"] // 40 // 4
    parts = [mx.full((items,), float(i)) for i in range(160)]
    mx.eval(parts, hidden(weights))


def on_another_thread(weights):
    found = []

    def work():
        mx.set_default_device(mx.gpu)
        stream = mx.new_stream(mx.gpu)
        try:
            with mx.stream(stream):
                evaluate(weights)
        except RuntimeError as error:
            found.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    raise found[0]


def check(way, weights):
    expected = np.array(hidden(weights))
    for turn in range(ROUNDS):
        with pytest.raises(RuntimeError, match="Unable to allocate") as error:
            way(weights)
        message = str(error.value)
        del error
        assert mx.device_info(mx.gpu)["device_name"] in message
        # What can be done: free memory, or split what no device holds as one array.
        assert "Free arrays" in message or "Split it" in message
        if turn == 0:
            gc.collect()
            mx.synchronize()
            active, resident = mx.get_active_memory(), resident_mib()
        assert np.array_equal(np.array(hidden(weights)), expected)
    gc.collect()
    mx.synchronize()
    assert mx.get_active_memory() == active
    mx.clear_cache()
    assert mx.get_cache_memory() < 2**20
    assert resident_mib() < resident + 32


WAYS = (
    evaluate,
    evaluate_later,
    read,
    compiled,
    consumed_on_cpu,
    beside_others,
    on_another_thread,
)


@pytest.fixture(scope="module")
def weights():
    return some_weights()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_arrays_that_do_not_fit(way, weights):
    check(way, weights)


TOGETHER = """
import mlx.core as mx
from test_memory_pressure import check, some_weights, together

mx.set_default_device(mx.gpu)
check(together, some_weights())
"""


def test_arrays_that_do_not_fit_together():
    """On a card that seems to have 256 MiB: other processes find room meanwhile."""
    output_of("-c", TOGETHER, folder=Path(__file__).parent, MLX_VK_TEST="heap=256")


def test_evals_that_nobody_waits_for():
    """They wait for the device themselves where memory exceeds MLX's limit."""
    software = mx.device_info(mx.gpu)["architecture"] == "vulkan-cpu"
    x = mx.random.normal((128 if software else 1024, 1024))
    mx.eval(x)
    mx.synchronize()
    before = mx.get_active_memory()
    limit = mx.set_memory_limit(before + 16 * x.nbytes)
    try:
        mx.reset_peak_memory()
        for i in range(100):  # they take longer to sort than to ask for
            mx.async_eval(mx.sort(x + i))
        mx.synchronize()
        assert mx.get_peak_memory() < before + 32 * x.nbytes
    finally:
        mx.set_memory_limit(limit)
