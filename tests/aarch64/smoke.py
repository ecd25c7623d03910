"""A few operations of each family against NumPy; smoke.sh runs it on arm64.

Not `mlx-vulkan selftest`, which has its cases run by processes of their own: those
qemu-user starts only where the kernel knows of it (binfmt_misc).
"""

import platform

import mlx.core as mx
import numpy as np

assert platform.machine() == "aarch64"
assert mx.is_available(mx.gpu), "no Vulkan device"
mx.set_default_device(mx.gpu)
rng = np.random.default_rng(0)
x, y = rng.standard_normal((2, 33, 65)).astype(np.float32)


def near(name, got, want, bound=1e-5):
    got, want = np.array(got, np.float64), np.asarray(want, np.float64)
    worst = np.abs(got - want).max() / max(1, np.abs(want).max())
    assert got.shape == want.shape and worst <= bound, (name, worst)
    print(f"{name}: {worst:.1e}")


a, b = mx.array(x), mx.array(y)
near("elementwise", mx.exp(-a * a) + mx.sin(b), np.exp(-x * x) + np.sin(y))
near("compiled", mx.compile(lambda a, b: mx.tanh(a) * b)(a, b), np.tanh(x) * y)
near("sum", a.sum(0), x.astype(np.float64).sum(0))
near("product", a @ b.T, x.astype(np.float64) @ y.T)
near("sort", mx.sort(a, axis=-1), np.sort(x, axis=-1))
near("softmax", mx.softmax(a, axis=-1), np.exp(x) / np.exp(x).sum(-1, keepdims=True))
near("fft", mx.abs(mx.fft.fft(a)), np.abs(np.fft.fft(x)))
near("gather", a[mx.array([3, 1, 32])], x[[3, 1, 32]])
near("float16", a.astype(mx.float16) + 1, x.astype(np.float16) + np.float16(1), 0)
w = mx.array(rng.standard_normal((64, 128)).astype(np.float32))
q = mx.quantize(w, group_size=64, bits=4)
v = mx.array(rng.standard_normal((1, 128)).astype(np.float32))
near("quantized", mx.quantized_matmul(v, *q), np.array(v @ mx.dequantize(*q).T))
with mx.stream(mx.cpu):
    near("cpu", mx.linalg.inv(a[:, :33]) @ a[:, :33], np.eye(33), 1e-3)
kernel = mx.fast.metal_kernel(
    name="twice",
    input_names=["x"],
    output_names=["y"],
    source="uint i = thread_position_in_grid.x; y[i] = 2 * simd_sum(x[i]);",
)
(z,) = kernel(
    inputs=[mx.ones(64)],
    grid=(64, 1, 1),
    threadgroup=(64, 1, 1),
    output_shapes=[(64,)],
    output_dtypes=[mx.float32],
)
near("metal_kernel", z, np.full(64, 64.0), 0)
