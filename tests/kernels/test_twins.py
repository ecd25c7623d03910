"""Custom kernels of mlx-lm against operations of MLX, on the device."""

import mlx.core as mx
import numpy as np
import pytest
from conftest import CALLED
from twins import TWINS, bound

# Kernels of mlx-lm that no twin calls, and why.
WITHOUT = {}


@pytest.mark.parametrize(
    "name, dtype", [(name, t) for name, (_, _, types) in TWINS.items() for t in types]
)
def test_twin(name, dtype):
    function, kernels, _ = TWINS[name]
    mx.random.seed(3)
    CALLED.clear()
    got, want, roundings = function(getattr(mx, dtype))
    mx.eval(got, want)
    assert set(kernels) <= CALLED, f"ran {CALLED}"
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
    names = {k["name"] for k in extracted if k["package"] == "mlx_lm"}
    covered = {name for _, kernels, _ in TWINS.values() for name in kernels}
    assert names - covered == set(WITHOUT)
