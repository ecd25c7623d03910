"""A step's norms, turns and cache writes as one dispatch (runtime/rewrite_rope.cpp)
have the bits of the kernels that it takes the place of, which are compared with
float64 in mlx_vulkan.cases.norm."""

import json
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from processes import output_of

from mlx_vulkan import native

SCRIPT = Path(__file__).parent / "heads.py"


def run(**environment):
    done = output_of(SCRIPT, **environment)
    assert "joined kernel" not in done.stderr, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def plain():
    found = run(MLX_VK_DISABLE="fuse")
    assert not any(joined for _, joined in found.values())
    return found


@pytest.mark.parametrize("memory", ["unified", "discrete"])
def test_same_bits(plain, memory):
    debug = "shuffle" if memory == "discrete" else ""
    found = run(MLX_VK_MEMORY=memory, MLX_VK_DEBUG=debug)
    assert found.keys() == plain.keys()
    software = "llvmpipe" in mx.device_info(mx.gpu)["device_name"]
    for name, (bits, joined) in found.items():
        # Two turns and two copies, and two norms, are one dispatch.
        parts = 4 if "('', " in name else 6
        too_many = software and name.startswith("many rows")
        assert joined == (0 if too_many else parts - 1), name
        assert bits == plain[name][0], name


@pytest.mark.parametrize("dims", [2, 6, 8])
@pytest.mark.parametrize("dtype", [mx.float16, mx.bfloat16, mx.float32])
def test_copies_of_other_types_keep_their_bits(dtype, dims):
    """Records have no type of a copy's items: integers, which may be NaNs of the
    heads' type, join a rotation if they are as long as its items."""
    rng = np.random.default_rng(dims)
    integer = np.uint16 if dtype.size == 2 else np.uint32
    bits = rng.integers(0, 1 << 8 * dtype.size, (2, 6, dims), integer)
    bits[:, :3] |= integer(0x7FC07FC0 >> (32 - 8 * dtype.size))  # NaNs of every type
    heads = mx.array(rng.normal(size=(1, 8, 1, dims)), dtype)
    new = mx.array(bits)
    kept = mx.zeros((2, 9, dims), new.dtype)
    mx.eval(heads, kept, new)
    before = native.counters()["rewrites_rope"]
    turned = mx.fast.rope(heads, dims, traditional=False, base=1e4, scale=1, offset=3)
    kept[:, 2:8] = new
    mx.eval(kept, turned)
    assert native.counters()["rewrites_rope"] == before + 1
    assert np.array_equal(np.array(kept)[:, 2:8], bits)
