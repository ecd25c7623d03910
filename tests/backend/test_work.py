"""Long dispatches run in parts, to the same bits (MLX_VK_MAX_MS_PER_SUBMISSION).

The limit is per process: a child runs every case under one so low that each
takes several parts, this process runs them whole.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

# Of software's assumed rates (runtime/work.cpp) 2 MB or 4 MFLOP. Cases have some
# ten times as much. GPUs are faster by the factor at least.
SOFTWARE_MS, GPU_MS = 1, 0.02


def arrays(*shapes, dtype=np.float32):
    rng = np.random.default_rng(0)
    return [mx.array(rng.normal(size=s).astype(dtype)) for s in shapes]


def product():
    a, b = arrays((300, 320), (320, 500))
    return a @ b


def thin_product():
    x, w = arrays((1, 2000), (2000, 3000))
    return x @ w


def batched_product():
    a, b = arrays((9, 100, 64), (9, 64, 120))
    return mx.matmul(a, b)


def quantized_product():
    x, w = arrays((70, 512), (768, 512))
    return mx.quantized_matmul(x, *mx.quantize(w, 64, 4), True, 64, 4)


def sort():
    (x,) = arrays((3, 60_000))
    return mx.sort(x), mx.argsort(x)


def prefill():
    q, k, v = arrays((1, 4, 130, 64), (1, 2, 200, 64), (1, 2, 200, 64))
    return mx.fast.scaled_dot_product_attention(q, k, v, scale=0.1, mask="causal")


def decode():
    q, k, v = arrays((1, 8, 1, 64), (1, 8, 3000, 64), (1, 8, 3000, 64))
    return mx.fast.scaled_dot_product_attention(q, k, v, scale=0.1)


def reduce():
    (x,) = arrays((1500, 2000))
    return x.sum(), x.max(axis=0), x.sum(axis=1), x.argmax(axis=1)


def convolution():
    x, w = arrays((2, 40, 40, 16), (32, 3, 3, 16))
    y, k = arrays((2, 30_000, 64), (64, 5, 1))
    return mx.conv2d(x, w, padding=1), mx.conv1d(y, k, groups=64)


def scan():
    x, line = arrays((700, 3000), (1, 2_000_000))
    return mx.cumsum(x, axis=0), mx.cumsum(x, axis=1), mx.cumsum(line, axis=1)


def copy():
    (x,) = arrays((1500, 1700))
    return mx.contiguous(x.T), x[::-1, ::2] + 0, x.astype(mx.float16)


def normalize():
    x, w = arrays((1500, 1700), (1700,))
    return mx.softmax(x, axis=-1), mx.fast.rms_norm(x, w, 1e-5)


def elementwise():
    """Broadcast, in place, and so long that invocations loop (65,535 groups of
    256 with four items each)."""
    x, row = arrays((1500, 1700), (1700,))
    y = mx.exp(x) + row
    mx.eval(y)
    y = y * 3  # in y's memory
    mx.eval(y)
    y = y - 1
    long = mx.arange(17_000_000, dtype=mx.int32)
    flags = mx.logical_not((long % 2).view(mx.bool_))
    return y, flags, mx.random.bits((1_000_001,), key=mx.random.key(3))


def indices():
    x, updates = arrays((50_000, 64), (60_000, 64))
    i = mx.array(np.random.default_rng(1).integers(0, 50_000, 60_000))
    counts = mx.zeros((50_000, 64), dtype=mx.int32)
    counts = counts.at[i].add((updates * 100).astype(mx.int32))
    return x[i], counts, mx.searchsorted(mx.sort(x[:, 0]), updates)


def transforms():
    (x,) = arrays((500, 4096))
    return mx.fft.rfft(x).view(mx.float32), mx.hadamard_transform(x)


CASES = [
    product,
    thin_product,
    batched_product,
    quantized_product,
    sort,
    prefill,
    decode,
    reduce,
    convolution,
    scan,
    copy,
    normalize,
    elementwise,
    indices,
    transforms,
]


def results(case) -> list[np.ndarray]:
    found = case()
    found = list(found) if isinstance(found, tuple) else [found]
    mx.eval(found)
    return [np.array(a).reshape(-1).view(np.uint8) for a in found]


def main(folder: str):
    """The child: each case's results in a file, and how often it was split."""
    from mlx_vulkan import native

    splits = {}
    for case in CASES:
        before = native.counters()["splits"]
        np.savez(Path(folder) / case.__name__, *results(case))
        splits[case.__name__] = native.counters()["splits"] - before
    print(json.dumps({"splits": splits, **native.counters()}))


@pytest.fixture(scope="module", params=["unified", "discrete"])
def in_parts(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    software = "llvmpipe" in request.config.mlxvk_name
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            "import mlx.core as mx; mx.set_default_device(mx.gpu); "
            f"import test_work; test_work.main({str(folder)!r})",
        ],
        cwd=Path(__file__).parent,
        env={
            **os.environ,
            "MLX_VK_MEMORY": request.param,
            "MLX_VK_MAX_MS_PER_SUBMISSION": str(SOFTWARE_MS if software else GPU_MS),
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    counters = json.loads(result.stdout)
    assert counters["submissions"] > counters["batches"]
    return folder, counters["splits"], software


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__)
def test_parts_are_as_good_as_the_whole(gpu, in_parts, case):
    folder, splits, software = in_parts
    # What a GPU is assumed to reach varies, and with it what is split there.
    assert splits[case.__name__] > 0 or not software
    with np.load(folder / f"{case.__name__}.npz") as files:
        found = [files[f] for f in files.files]
    for f, expected in zip(found, results(case), strict=True):
        np.testing.assert_array_equal(f, expected)
