"""Long dispatches run in parts, to the same bits (MLX_VK_MAX_MS_PER_SUBMISSION).

The limit is per process: a child runs every case under one so low that each
takes several parts, this process runs them whole.
"""

import functools
import hashlib
import json
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from processes import output_of

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
    return y, flags, mx.random.uniform(shape=(1_000_001,), key=mx.random.key(3))


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


def digests(case) -> list[str]:
    found = case()
    found = list(found) if isinstance(found, tuple) else [found]
    mx.eval(found)
    return [hashlib.sha256(np.array(a).tobytes()).hexdigest() for a in found]


def main():
    """The child: each case's results, and how often its dispatches were split."""
    from mlx_vulkan import native

    found = {}
    for case in CASES:
        before = native.counters()["splits"]
        bits = digests(case)
        splits = native.counters()["splits"] - before
        found[case.__name__] = {"digests": bits, "splits": splits}
    print(json.dumps({"found": found, "counters": native.counters()}))


@pytest.fixture(scope="module")
def whole():
    return functools.cache(digests)


@pytest.fixture(scope="module", params=["unified", "discrete"])
def in_parts(request):
    software = "llvmpipe" in request.config.mlxvk_name
    result = output_of(
        "-c",
        "import mlx.core as mx; mx.set_default_device(mx.gpu); "
        "import test_work; test_work.main()",
        folder=Path(__file__).parent,
        MLX_VK_MEMORY=request.param,
        MLX_VK_MAX_MS_PER_SUBMISSION=str(SOFTWARE_MS if software else GPU_MS),
    )
    child = json.loads(result.stdout)
    assert child["counters"]["submissions"] > child["counters"]["batches"]
    return child["found"], software


@pytest.mark.parametrize("run", CASES, ids=lambda c: c.__name__)
def test_parts_are_as_good_as_the_whole(gpu, in_parts, whole, run):
    found, software = in_parts
    # What a GPU is assumed to reach varies, and with it what is split there.
    assert found[run.__name__]["splits"] > 0 or not software
    assert found[run.__name__]["digests"] == whole(run)
