"""Time one append to a KV cache at several cache lengths.

    python benchmarks/kv_append.py
    python benchmarks/kv_append.py --lengths 256 32768 --heads 8 --dim 128

An append writes one position of keys and values in place, so its time must not
depend on the length. Each figure is the median of `--repeats` runs of
`--steps` appends that depend on each other, in microseconds an append.
"""

import argparse
import statistics
import time

import mlx.core as mx
from mlx_lm.models.cache import KVCache, QuantizedKVCache, RotatingKVCache

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--lengths", type=int, nargs="+", default=[256, 32768])
parser.add_argument("--heads", type=int, default=8)
parser.add_argument("--dim", type=int, default=128)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--repeats", type=int, default=9)


def slices(length, item):
    """SliceUpdate at positions known when the graph is built."""
    keys = mx.zeros((1, item.shape[1], length, item.shape[3]), item.dtype)
    for i in range(10**9):
        at = i % length
        keys[..., at : at + 1, :] = item
        yield keys


def dynamic(length, item):
    """DynamicSliceUpdate at positions that the GPU computes."""
    keys = mx.zeros((1, item.shape[1], length, item.shape[3]), item.dtype)
    at = mx.array([0])
    for _ in range(10**9):
        keys = mx.slice_update(keys, item, at, axes=(2,))
        at = (at + 1) % length
        yield keys


def cached(make):
    def run(length, item):
        cache = make(length)
        full = mx.broadcast_to(item, (1, item.shape[1], length, item.shape[3]))
        cache.update_and_fetch(full, full)
        while True:
            yield cache.update_and_fetch(item, item)

    return run


# A KVCache grows by a copy every 256 appends, by design: room for all of them
# is made first, so that the appends alone are timed.
def plain(length):
    cache = KVCache()
    cache.step = length + 100_000
    return cache


def quantized(length):
    cache = QuantizedKVCache(group_size=64, bits=8)
    cache.step = length + 100_000
    return cache


KINDS = {
    "slice_update": slices,
    "dynamic_slice_update": dynamic,
    "KVCache": cached(plain),
    "QuantizedKVCache": cached(quantized),
    "RotatingKVCache": cached(lambda n: RotatingKVCache(max_size=n)),
}


def measure(appends, steps, repeats):
    times = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        for _ in range(steps):
            last = next(appends)
        mx.eval(last)
        times.append((time.perf_counter() - begin) / steps * 1e6)
    return statistics.median(times[1:])


def main():
    args = parser.parse_args()
    item = mx.random.normal((1, args.heads, 1, args.dim)).astype(mx.bfloat16)
    mx.eval(item)
    print(f"{'kind':22}" + "".join(f"{n:>12}" for n in args.lengths) + "   us")
    for name, make in KINDS.items():
        row = [measure(make(n, item), args.steps, args.repeats) for n in args.lengths]
        print(f"{name:22}" + "".join(f"{t:12.2f}" for t in row))


if __name__ == "__main__":
    main()
