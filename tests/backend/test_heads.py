"""A step's norms, turns and cache writes as one dispatch (runtime/rewrite_rope.cpp)
have the bits of the kernels that it takes the place of, which are compared with
float64 in mlx_vulkan.cases.norm."""

import json
from pathlib import Path

import mlx.core as mx
import pytest
from processes import output_of

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
