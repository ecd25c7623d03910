"""Rates of a device: bandwidth, dispatches, products, waits."""

import functools
import time

from ..bench import measure
from ..cases import is_software
from .check import Check

SECONDS = 0.3


def fact(value: float, unit: str) -> dict:
    return {"value": round(value, 3), "unit": unit}


def vector(mx):
    """64 million floats, beyond any cache; less on a software device."""
    x = mx.random.uniform(shape=((1 << 22) if is_software(mx) else (1 << 26),))
    mx.eval(x)
    return x


def copy(mx):
    x = vector(mx)
    seconds = measure(lambda: x + 1.0, SECONDS)
    return fact(2 * x.nbytes / seconds / 1e9, "GB/s")


def read(mx):
    x = vector(mx)
    return fact(x.nbytes / measure(lambda: mx.max(x), SECONDS) / 1e9, "GB/s")


def dispatch(mx):
    """A dispatch in a chain, each waiting for the one before."""
    count = 1000

    def chain():
        x = mx.zeros((64,))
        for _ in range(count):
            x = x + 1.0
        return x

    return fact(measure(chain, SECONDS) / count * 1e6, "us each")


def wait(mx):
    """From the call of eval to its return, the median of many."""
    x = mx.zeros((64,))
    times = []
    for _ in range(200):
        y = x + 1.0
        started = time.perf_counter()
        mx.eval(y)
        times.append(time.perf_counter() - started)
    return fact(sorted(times)[len(times) // 2] * 1e6, "us")


def product(mx, dtype):
    n = 512 if is_software(mx) else 4096
    a = mx.random.normal((n, n)).astype(getattr(mx, dtype))
    mx.eval(a)
    return fact(2 * n**3 / measure(lambda: a @ a, SECONDS) / 1e12, "TFLOP/s")


def quantized(mx):
    rows, columns = (1024, 1024) if is_software(mx) else (16384, 8192)
    w = mx.random.normal((rows, columns)).astype(mx.bfloat16)
    x = mx.random.normal((1, columns)).astype(mx.bfloat16)
    parts = mx.quantize(w, group_size=64, bits=4)
    mx.eval(x, parts)
    seconds = measure(
        lambda: mx.quantized_matmul(x, *parts, group_size=64, bits=4), SECONDS
    )
    return fact(sum(p.nbytes for p in parts) / seconds / 1e9, "GB/s")


def on_gpu(function, seed: int) -> dict:
    import mlx.core as mx

    found = function(mx)
    mx.clear_cache()
    return found


WHAT = {
    "copy-f32": copy,
    "read-f32": read,
    "dispatch": dispatch,
    "eval-wait": wait,
    "product-f32": functools.partial(product, dtype="float32"),
    "product-f16": functools.partial(product, dtype="float16"),
    "product-bf16": functools.partial(product, dtype="bfloat16"),
    "quantized-vector-4bit": quantized,
}
CHECKS = [
    Check("measure", name, work=functools.partial(on_gpu, f))
    for name, f in WHAT.items()
]
