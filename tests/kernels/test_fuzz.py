"""Random kernels on the device against the same text compiled with g++.

MLX_VK_TEST_FUZZ=N runs N bodies; MLX_VK_TEST_FUZZ_SEED the first seed. What a
seed fails with is found again and made smaller by `run.py --reduce SEED`.
"""

import os

import pytest
from run import check, on_cpu
from statements import program

COUNT = int(os.environ.get("MLX_VK_TEST_FUZZ", "40"))
FIRST = int(os.environ.get("MLX_VK_TEST_FUZZ_SEED", "0"))
BATCH = 20  # bodies that g++ compiles at once
STATEMENTS = 10


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, BATCH))
def test_bodies(first):
    problems = check(
        [program(seed, STATEMENTS) for seed in range(first, first + BATCH)]
    )
    assert not problems, "\n".join(f"{s}: {why[:600]}" for s, why in problems.items())


def test_programs_have_no_undefined_behaviour():
    """What g++'s sanitizer would see."""
    flags = ("-O0", "-fsanitize=undefined", "-fno-sanitize-recover")
    results = on_cpu([program(seed, STATEMENTS) for seed in range(4)], flags)
    assert all(output.any() for output in results[0])
