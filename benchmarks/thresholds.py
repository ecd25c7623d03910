"""Times operations of sizes around a threshold of src/policy/policy.h.

    python benchmarks/thresholds.py quant.few_rows [more] [--json FILE]
    python benchmarks/thresholds.py --list

One row per size: microseconds per call in a stream of calls. A threshold is right
where the times of two values of it cross: build the library with the other value,
or set a hook of MLX_VK_TEST, and compare both with `mlx-vulkan bench compare`.
"""

import argparse
import sys

import mlx.core as mx

from mlx_vulkan.bench import report
from mlx_vulkan.bench.measure import samples

F32 = mx.float32


def normal(*shape, dtype=mx.bfloat16):
    return mx.random.normal(shape).astype(dtype)


def quantized(m=1, n=4096, k=4096, group=128, bits=4, plain=False, dtype=mx.bfloat16):
    """`plain`: w is not transposed."""
    x, w = normal(m, k, dtype=dtype), normal(*((k, n) if plain else (n, k)))
    w = mx.quantize(w.astype(dtype), group_size=group, bits=bits)
    mx.eval(x, w)
    return lambda: mx.quantized_matmul(
        x, *w, transpose=not plain, group_size=group, bits=bits
    )


def experts(each=8, count=32, n=768, k=2048, codes=True):
    """`each` rows of x for each of `count` experts, sorted."""
    x, w = normal(each * count, 1, k), normal(count, n, k)
    rows = dict(rhs_indices=mx.repeat(mx.arange(count), each), sorted_indices=True)
    if not codes:
        mx.eval(x, w, rows)
        return lambda: mx.gather_mm(x, w.swapaxes(1, 2), **rows)
    w = mx.quantize(w, group_size=128, bits=4)
    mx.eval(x, w, rows)
    return lambda: mx.gather_qmm(x, *w, group_size=128, bits=4, **rows)


def matrices(m=1, n=4096, k=4096, apart=False, dtype=mx.bfloat16):
    """`apart`: items of k are not neighbours in b."""
    a = normal(m, k, dtype=dtype)
    b = normal(k, n, dtype=dtype) if apart else normal(n, k, dtype=dtype).T
    mx.eval(a, b)
    return lambda: a @ b


def attention(keys=1024, queries=1, batch=1, heads=32, kv_heads=8, dim=128):
    q = normal(batch, heads, queries, dim)
    k, v = (normal(batch, kv_heads, keys, dim) for _ in range(2))
    mx.eval(q, k, v)
    more = dict(scale=0.1, mask="causal" if queries > 1 else None)
    return lambda: mx.fast.scaled_dot_product_attention(q, k, v, **more)


def sweep(make, axis, *sizes, **fixed):
    """Calls of what `make` returns for each size of the argument `axis`."""
    return [(f"{axis}={size}", lambda n=size: make(**{axis: n}, **fixed))
            for size in sizes]  # fmt: skip


AN_EXPERT = (2, 3, 4, 8, 16, 17, 32, 64, 65, 96, 97, 128)
SWEEPS = {
    "quant.few_rows": sweep(quantized, "m", 3, 4, 5, 6, 8, n=4096),
    "quant.wide_outputs": sweep(quantized, "n", 4096, 8184, 8192, 12288, m=4),
    "quant.small_group_rows": sweep(quantized, "m", 8, 12, 16, 17, 24, group=32),
    "quant.fragments_k": sweep(quantized, "k", 512, 896, 1024, 2048, m=16),
    "quant.fragments_rows": sweep(quantized, "m", 24, 32, 33, 48, n=65536, k=2048),
    "quant.tall_weights": sweep(quantized, "n", 4096, 8191, 8192, 12288, m=48),
    "quant.least_tall_rows": sweep(quantized, "m", 48, 64, 65, 96),
    "quant.most_tall_rows": sweep(quantized, "m", 512, 1024, 2048, 4096),
    "quant.most_tall_byte_rows": sweep(quantized, "m", 128, 256, 257, 512, bits=8),
    "quant.tall_groups": sweep(quantized, "n", 1024, 4096, 12288, 16896, m=128),
    "quant.split_tall_k": sweep(quantized, "k", 512, 1024, 2048, 4096, m=128, n=1024),
    "quant.dot_row_k": sweep(quantized, "k", 128, 1024, 2048, 4096),
    "quant.most_dot_row_k": sweep(quantized, "k", 4096, 8192, 9216, 12288),
    "quant.matvec_groups": sweep(quantized, "n", 1024, 2048, 8192, 16384, m=4, k=2048),
    "quant.busy_subgroups": sweep(quantized, "n", 512, 1024, 4096, 16384, dtype=F32),
    "quant.shared_k": sweep(quantized, "k", 1024, 2048, 4096, 8192, n=512, dtype=F32),
    "quant.wide_rows": sweep(quantized, "m", 1, 2, 3, 5, n=12288),
    "quant.matvec_rows": sweep(quantized, "m", 6, 8, 9, 12, k=2048),
    "quant.packed_vector_rows": sweep(quantized, "m", 2, 4, 5, 8),
    "quant.vector_rows": sweep(quantized, "m", 6, 8, 9, 12, dtype=F32),
    "quant.plain_vector_rows": sweep(quantized, "m", 2, 4, 5, 8, plain=True),
    "quant.sorted_rows": sweep(experts, "each", 5, 7, 8, 16, count=2),
    "quant.sorted_expert_rows": sweep(experts, "each", *AN_EXPERT[:5]),
    "quant.few_expert_rows": sweep(experts, "each", 8, 16, 17, 32),
    "quant.flat_expert_rows": sweep(experts, "each", *AN_EXPERT[3:7]),
    "quant.tall_expert_rows": sweep(experts, "each", *AN_EXPERT[6:]),
    "quant.flat_rows": sweep(quantized, "m", 24, 32, 33, 48, plain=True),
    "quant.tall_rows": sweep(quantized, "m", 48, 64, 65, 96, n=12288, plain=True),
    "quant.dequantize_rows": sweep(quantized, "m", 96, 127, 128, 256, 767, 768, 1024),
    "quant.halves_dequantize_rows": sweep(quantized, "m", 64, 96, 127, 128, 191, 192),
    "quant.codes_dequantize_rows": sweep(quantized, "m", 256, 512, 767, 768, 2048),
    "quant.dequantize_mib": sweep(quantized, "n", 16384, 32768, 32896, 65536, m=512),
    "quant.compiled_weights": sweep(quantized, "n", 128, 248, 256, 512, k=1024),
    "quant.compiled_products": sweep(quantized, "n", 32, 64, 128, m=64, k=1024),
    "gemm.apart_vectors": sweep(matrices, "m", 3, 4, 5, 8, apart=True),
    "gemm.apart_rows": sweep(matrices, "n", 512, 1016, 1024, 4096, m=8, apart=True),
    "gemm.apart_k": sweep(matrices, "k", 128, 248, 256, 1024, m=8, apart=True),
    "gemm.least_few_rows": sweep(matrices, "m", 6, 8, 9, 12),
    "gemm.few_rows": sweep(matrices, "m", 32, 48, 64, 65, 96),
    "gemm.few_rows_k": sweep(matrices, "k", 256, 504, 512, 1024, m=32),
    "gemm.split_groups": sweep(matrices, "m", 128, 256, 512, 1024, n=1024),
    "gemm.split_parts": sweep(matrices, "k", 8192, 32768, 131072, m=128, n=128),
    "gemm.split_axpy_k": sweep(matrices, "k", 256, 512, 1024, 4096, n=256, apart=True),
    "gemm.split_dot_k": sweep(matrices, "k", 4096, 8192, 16384, 32768, n=64),
    "gemm.split_tile_k": sweep(matrices, "k", 256, 512, 1024, m=128, n=128, dtype=F32),
    "gemm.split_skinny_k": sweep(matrices, "k", 1024, 2048, 4096, 8192, m=32, n=1024),
    "gemm.split_matrices_k": sweep(matrices, "k", 512, 1024, 2048, 4096, m=96, n=128),
    "gemm.split_large_k": sweep(matrices, "k", 384, 768, 1536, 3072, m=256, n=1024),
    "gemm.wide_matrices_k": sweep(matrices, "k", 2, 3, 4, 8, m=1024, apart=True),
    "gemm.matrices_k": sweep(matrices, "k", 8, 15, 16, 32, m=48, apart=True),
    "gemm.sorted_rows": sweep(experts, "each", 5, 7, 8, 16, count=2, codes=False),
    "gemm.sorted_expert_rows": sweep(experts, "each", *AN_EXPERT[:5], codes=False),
    "gemm.flat_expert_rows": sweep(experts, "each", *AN_EXPERT[3:7], codes=False),
    "gemm.medium_expert_rows": sweep(experts, "each", *AN_EXPERT[7:], codes=False),
    "gemm.large_quarters": sweep(matrices, "m", 512, 1024, 1536, 2048, n=1024, k=1024),
    "attention.short_keys": sweep(attention, "keys", 128, 256, 257, 512, 1024),
    "attention.two_rows_keys": sweep(attention, "keys", 2048, 4096, 4097, 8192),
    "attention.split_groups": sweep(attention, "keys", 512, 1024, 4096, 16384, batch=8),
    "attention.cheap_splits": sweep(attention, "keys", 257, 512, 1024, 2048),
    "attention.most_splits": sweep(attention, "keys", 16384, 131072, kv_heads=1),
    "attention.halves_queries": sweep(attention, "queries", 16, 31, 32, 64, keys=4096),
    "attention.wide_head": sweep(attention, "dim", 64, 80, 96, 112, 128, queries=1024),
    "attention.wide_queries": sweep(attention, "queries", 16, 32, 64, 65, 128, 256),
}


def measure(name: str, seconds: float) -> list[report.Row]:
    return [
        report.Row(f"{name}: {size}", "us", [s * 1e6 for s in samples(make(), seconds)])
        for size, make in SWEEPS[name]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="all without one")
    parser.add_argument("--list", action="store_true", help="the names")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each row")
    report.add_arguments(parser)
    args = parser.parse_args()
    if args.list:
        print(*SWEEPS, sep="\n")
        return 0
    if unknown := sorted(set(args.names) - SWEEPS.keys()):
        sys.exit(f"No threshold is called {', '.join(unknown)}; --list has the names.")
    if not mx.is_available(mx.gpu):
        sys.exit("mx.gpu is not available. MLX_VK_DEVICE=cpu picks software.")
    names = args.names or list(SWEEPS)
    rows = [row for name in names for row in measure(name, args.seconds)]
    return report.finish(args, rows, {}, rows[:2], report.about(False))


if __name__ == "__main__":
    sys.exit(main())
