"""Kernels with a planted fault, and right ones beside them, for test_faults.py.

planted.py NAME runs one in a workgroup of 256 invocations and prints its result.
"""

import sys

import mlx.core as mx

from mlx_vulkan.fast import vulkan_kernel

# name: (header, body); x has 256 floats, i is the invocation's.
KERNELS = {
    "right": (
        "shared float s[256];",
        "s[i] = load(x, i); barrier(); store(y, i, s[255 - i]);",
    ),
    "shared_outside": (
        "shared float s[256];",
        "s[i + uint(load(x, 0)) * 4096] = 1.0; barrier(); store(y, i, s[i]);",
    ),
    "memory_outside": ("", "store(y, i, load(x, i + (uint(load(x, 0)) << 28)));"),
    "shared_race": (
        "shared float s[256];",
        "s[i] = load(x, i); store(y, i, s[255 - i]);",
    ),
    # Waves write bytes of the same words: no race ...
    "bytes_apart": (
        "shared uint8_t s[256];",
        "uint p = i % 64 * 4 + i / 64; s[p] = uint8_t(load(x, i)); barrier();"
        "store(y, i, float(s[p]));",
    ),
    # ... and the same byte: one.
    "bytes_race": (
        "shared uint8_t s[256];",
        "s[i % 64] = uint8_t(load(x, i)); barrier(); store(y, i, float(s[i % 64]));",
    ),
    "halves_race": (
        "shared uint16_t s[256];",
        "s[i % 64] = uint16_t(load(x, i)); barrier(); store(y, i, float(s[i % 64]));",
    ),
    "no_barrier_for_some": (
        "shared float s[256];",
        "s[i] = load(x, i); if (i < 64) { return; } barrier();store(y, i, s[255 - i]);",
    ),
    "two_barriers": (
        "shared float s[256];",
        "s[i] = load(x, i); if (i < 64) { barrier(); s[i] += 1.0; }"
        "else { barrier(); s[i] += 2.0; } store(y, i, s[i]);",
    ),
    "endless": ("", "while (load(x, 0) > 0.0) { atomic_add(y, i, 1.0); }"),
    # Waits for a wave that starts later or earlier: ends, since waves take turns.
    "wave_waits": (
        "shared uint turn;",
        "if (i == 0) { atomicExchange(turn, 0); } barrier();"
        "uint wave = 3 - i / 64; while (atomicCompSwap(turn, 9, 9) < wave) {}"
        "if (i % 64 == 0) { atomicAdd(turn, 1); } store(y, i, float(wave));",
    ),
    "unwritten": (
        "shared float s[512];",
        "s[i] = load(x, i); barrier(); store(y, i, s[i + uint(load(x, 255))]);",
    ),
    # Numbers waves of 64 in their order.
    "order": (
        "shared uint next;",
        "if (i == 0) { next = 0; } barrier(); uint n = 0;"
        "if (i % 64 == 0) { n = atomicAdd(next, 1); } store(y, i, float(n));",
    ),
}


def kernel(name: str) -> mx.array:
    header, body = KERNELS[name]
    source = "uint i = thread_index_in_threadgroup;" + body
    run = vulkan_kernel(name, ["x"], ["y"], source, header)
    return run(
        inputs=[mx.arange(1, 257).astype(mx.float32)],
        output_shapes=[(256,)],
        output_dtypes=[mx.float32],
        grid=(256, 1, 1),
        threadgroup=(256, 1, 1),
    )[0]


def chain() -> mx.array:
    """Dispatches of which each needs the one before (MLX_VK_TEST=drop_barrier)."""
    x = mx.arange(4096).astype(mx.float32)
    mx.eval(x)
    return mx.cumsum(mx.sort(x * 2 + 1))[::512]


if __name__ == "__main__":
    name = sys.argv[1]
    print("result", (chain() if name == "chain" else kernel(name)).tolist())
