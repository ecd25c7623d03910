"""Custom kernels: the example of docs/custom-kernels.md, checked and timed.

    python benchmarks/custom_kernel.py [--rows 512] [--width 64] [--repeat 10]

L1 distances of all pairs of rows, which no matrix product computes: in MLX
operations, and as one kernel in Metal's language and in GLSL.
"""

import argparse
import time

import mlx.core as mx
import numpy as np

from mlx_vulkan.fast import vulkan_kernel


def in_operations(a, b):
    return mx.abs(a[:, None] - b[None]).sum(-1)


metal = mx.fast.metal_kernel(
    name="l1_distances",
    input_names=["a", "b"],
    output_names=["d"],
    source="""
        uint j = thread_position_in_grid.x, i = thread_position_in_grid.y;
        int width = a_shape[1];
        float sum = 0;
        for (int k = 0; k < width; ++k) {
          sum += metal::abs(float(a[i * width + k]) - float(b[j * width + k]));
        }
        d[i * b_shape[0] + j] = T(sum);
    """,
)

vulkan = vulkan_kernel(
    name="l1_distances",
    input_names=["a", "b"],
    output_names=["d"],
    source="""
        uint j = thread_position_in_grid.x, i = thread_position_in_grid.y;
        int width = a_shape(1);
        float sum = 0;
        for (int k = 0; k < width; ++k) {
          sum += abs(load(a, i * width + k) - load(b, j * width + k));
        }
        store(d, i * b_shape(0) + j, sum);
    """,
)


def in_one_kernel(kernel, a, b):
    return kernel(
        inputs=[a, b],
        template=[("T", a.dtype)],
        output_shapes=[(len(a), len(b))],
        output_dtypes=[a.dtype],
        grid=(len(b), len(a), 1),
        threadgroup=(32, 4, 1),
    )[0]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--repeat", type=int, default=10)
    args = parser.parse_args()
    a, b = mx.random.normal((2, args.rows, args.width))
    exact = np.abs(
        np.array(a, np.float64)[:, None] - np.array(b, np.float64)[None]
    ).sum(-1)
    # Each of `width` additions rounds by 2^-24 of what the sum is at most, and so
    # does each difference of what it is.
    bound = args.width * 2.0**-23 * exact.max()
    forms = {
        "MLX operations": in_operations,
        "mx.compile": mx.compile(in_operations),
        "metal_kernel": lambda a, b: in_one_kernel(metal, a, b),
        "vulkan_kernel": lambda a, b: in_one_kernel(vulkan, a, b),
    }
    print(f"{args.rows} x {args.rows} rows of {args.width}, {mx.default_device()}")
    for name, form in forms.items():
        error = np.abs(np.array(form(a, b)) - exact).max()
        assert error <= bound, (name, error, bound)
        times = []
        for _ in range(args.repeat):
            start = time.perf_counter()
            mx.eval(form(a, b))
            times.append(time.perf_counter() - start)
        print(f"{name:15} {1e3 * min(times):9.3f} ms, error {error:.1e}")


if __name__ == "__main__":
    main()
