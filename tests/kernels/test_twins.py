"""Custom kernels of mlx-lm, and of mlx-vlm where it is installed, against
operations of MLX, on the device."""

import fnmatch

import mlx.core as mx
import numpy as np
import pytest
import twins
import twins_vlm
from conftest import CALLED, HERE
from twins import bound

TWINS = twins.TWINS | (twins_vlm.TWINS if twins_vlm.AVAILABLE else {})


@pytest.mark.parametrize(
    "name, dtype", [(name, t) for name, (_, _, types) in TWINS.items() for t in types]
)
def test_twin(name, dtype):
    function, kernels, _ = TWINS[name]
    mx.random.seed(3)
    CALLED.clear()
    got, want, roundings = function(getattr(mx, dtype))
    mx.eval(got, want)
    for kernel in kernels:
        assert fnmatch.filter(CALLED, kernel), f"ran {CALLED}"
    for i, (x, y) in enumerate(zip(got, want)):
        assert x.shape == y.shape
        if not mx.issubdtype(x.dtype, mx.floating):
            assert mx.array_equal(x, y), f"output {i}"
            continue
        kind = x.dtype
        x, y = (np.array(v.astype(mx.float32)).astype(np.float64) for v in (x, y))
        worst = np.abs(x - y).max()
        limit = bound(y, kind, roundings)
        assert worst <= limit, f"output {i}: off by {worst:.3g}, bound {limit:.3g}"


def test_every_kernel_has_a_twin(extracted):
    """Or a line in without_twin_mlx_vlm.txt; those of mlx-lm all have one."""
    twins_of = [k for _, kernels, _ in TWINS.values() for k in kernels]
    lines = (HERE / "without_twin_mlx_vlm.txt").read_text().splitlines()
    listed = [line for line in lines if line and not line.startswith("#")]
    for package, patterns in (
        ("mlx_lm", twins_of),
        ("mlx_vlm", twins_of + listed),
    ):
        names = {k["name"] for k in extracted if k["package"] == package}
        bare = [n for n in names if not any(fnmatch.fnmatch(n, p) for p in patterns)]
        assert not bare, f"{package}: {sorted(bare)}"
        if package == "mlx_vlm" and names:
            assert [p for p in listed if not fnmatch.filter(names, p)] == []
