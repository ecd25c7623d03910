"""Operations whose kernels mutants.py plants faults in.

operations.py NAME runs one on the GPU twice, compares it with MLX's CPU and prints
"right" or "wrong".
"""

import sys

import mlx.core as mx
import numpy as np


def normal(*shape, dtype=mx.float32):
    values = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    return mx.array(values).astype(dtype)


def attention(queries, keys, size, dtype=mx.float16):
    q, k = normal(1, 4, queries, size, dtype=dtype), normal(1, 4, keys, size)
    k = k.astype(dtype)
    return lambda: mx.fast.scaled_dot_product_attention(q, k, k, scale=0.1)


def product(m, n, k, dtype):
    a, b = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype)
    return lambda: a @ b


def quantized(m, dtype=mx.float32):
    w = normal(256, 256, dtype=dtype)
    w, scales, biases = mx.quantize(w, 64, 4, stream=mx.cpu)
    x = normal(m, 256, dtype=dtype)
    return lambda: mx.quantized_matmul(x, w, scales, biases, True, 64, 4)


def scatter():
    mask = mx.array(np.random.default_rng(2).random(5000) > 0.5)
    x, y = normal(5000), normal(5000) + 9

    def run():
        z = x + 0
        z[mask] = y
        return z

    return run


def chain():
    x = normal(4096)
    return lambda: mx.cumsum(mx.sort(x * 2 + 1)) - mx.softmax(x * 3)


# mx.fast's norms with a weight run one kernel.
OPERATIONS = {
    "prefill": lambda: attention(33, 70, 64, mx.float32),
    "prefill_matrices": lambda: attention(70, 70, 64),
    "scan": lambda: (lambda x: lambda: mx.cumsum(x))(normal(5000)),
    "long_sort": lambda: (lambda x: lambda: mx.sort(x))(normal(20000)),
    "norm": lambda: (lambda x, w: lambda: mx.fast.rms_norm(x, w, 1e-5))(
        normal(3, 4096), normal(4096)
    ),
    "axpy": lambda: product(1, 320, 512, mx.float32),
    "matmul": lambda: product(1024, 1024, 33, mx.float32),
    "matmul_matrices": lambda: product(128, 128, 128, mx.float16),
    "fft": lambda: (lambda x: lambda: mx.abs(mx.fft.fft(x)))(normal(4, 1024)),
    "columns": lambda: (lambda x: lambda: mx.sum(x, 0))(normal(700, 33)),
    "hadamard": lambda: (lambda x: lambda: mx.hadamard_transform(x))(normal(3, 1024)),
    "quantized": lambda: quantized(70, mx.float16),
    "quantized_few": lambda: quantized(32, mx.float16),
    "quantized_row": lambda: quantized(1),
    "scatter": scatter,
    "chain": chain,
}


def main(name: str) -> None:
    mx.set_default_device(mx.gpu)
    operation = OPERATIONS[name]()
    with mx.stream(mx.cpu):
        want = np.array(operation().astype(mx.float32))
    for _ in range(2):
        got = np.array(operation().astype(mx.float32))
        close = np.allclose(got, want, rtol=2e-2, atol=2e-2 * np.abs(want).max())
        if not close:
            print("wrong")
            return
    print("right")


if __name__ == "__main__":
    main(sys.argv[1])
