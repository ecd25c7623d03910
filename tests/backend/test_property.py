"""Random programs of MLX operations on the backend.

Each program is run twice. Step by step, every result is compared with the
operation's definition on the inputs it really had (property_rules.py). Then the
whole at once, lazily, with intermediates that may be overwritten, on one stream
or two, in part compiled, waiting in the middle or not: that must give the same
bits, which finds missing barriers, wrong donations and wrong fusions.

A failure prints a program that can be pasted into a file in this folder.
MLX_VK_TEST_EXAMPLES=n tries n programs of each family, from the seed that
`pytest --hypothesis-seed=` names; without it the few programs are fixed.
MLX_VK_TEST_LOG=file holds the program that is running, should it crash.
"""

import functools
import os
import pathlib
import random
import sys
import threading

import mlx.core as mx
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

import property_more  # noqa: F401 - registers operations
import property_ops  # noqa: F401
from mlx_vulkan import cases as table
from property_program import OPS, Builder, NotApplicable, finish, leaf, run
from property_rules import Run, bits

LOG = os.environ.get("MLX_VK_TEST_LOG")
EXAMPLES = os.environ.get("MLX_VK_TEST_EXAMPLES")
SETTINGS = settings(
    max_examples=int(EXAMPLES or 40),
    derandomize=EXAMPLES is None,
    database=None,
    deadline=None,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)


def add_step(b, family, name=None):
    """Draws one operation; nothing where it does not apply."""
    mark = len(b.steps), len(b.values)
    try:
        OPS[family][name or b.choice(OPS[family])](b)
        return True
    except NotApplicable:
        b.rewind(*mark)
        return False


@st.composite
def programs(draw, family, name=None):
    """Up to 8 operations, one of them of the family (or that very one)."""
    b = Builder(draw)
    others = [f for f in ("view", "elementwise", "reduce", "join", "index", "scan")]
    others += ["sort", "norm", "matmul"]
    # Long chains for fusion, more often compiled.
    chain = family == "elementwise" and b.coin()
    others = ["elementwise"] if chain else others
    before = b.number(0, 3)
    after = b.number(0, 4)
    for i in range(before + after + 1):
        if i == before:
            for _ in range(20):
                if add_step(b, family, name):
                    break
        else:
            add_step(b, b.choice(others))
    if not b.steps:
        b.emit("astype", None, "{0}.astype(mx.float32)", b.leaf((3,), "int32"))
        b.steps[-1].rule = property_ops.exact
    return finish(b, compiled=2 if chain else 4)


LONGEST = 120  # seconds; a program takes some 50 ms


@pytest.fixture
def check(request):
    """Checks a program. A hang would say nothing: where there is no end, names
    the program and ends the process."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def give_up(program):
        capture.suspend_global_capture()
        print(f"No end after {LONGEST} s:\n{program!r}", file=sys.stderr, flush=True)
        os._exit(1)

    def check_in_time(program):
        timer = threading.Timer(LONGEST, give_up, [program])
        timer.daemon = True
        timer.start()
        try:
            check_both(program)
        finally:
            timer.cancel()

    return check_in_time


def check_both(program):
    log(repr(program))
    names = {"mx": mx, "leaf": leaf, "as_temporary": table.as_temporary}
    steps = dict(names)
    for step in (*program.leaves, *program.steps):
        run([str(step)], steps)
        mx.eval([steps[v.name] for v in step.outs])
    one_by_one = Run(steps)
    for step in program.steps:
        log(f"{program!r}\nchecking {step}")
        step.rule(step, one_by_one)

    whole = {**names, "second": second_stream()}
    run(program.at_once(), whole)
    varying = program.unrepeatable()
    for name in program.outputs:
        if name not in varying:
            same_bits(program, one_by_one.value(name), whole[name], name)
    for step in program.leaves:
        name = step.outs[0].name
        if name in whole and not program.plan.temporary:
            same_bits(program, one_by_one.value(name), whole[name], f"input {name}")


def log(text):
    if LOG:
        pathlib.Path(LOG).write_text(text)


def same_bits(program, want, got, name):
    got = table.to_numpy(mx, got)
    assert got.shape == want.shape
    ok = bits(got) == bits(want)
    assert ok.all(), (
        f"{name} of the whole program has other bits than step by step, in "
        f"{(~ok).sum()} of {ok.size} items; the first are {got.reshape(-1)[:5]}, "
        f"step by step {want.reshape(-1)[:5]}"
    )


@functools.cache
def second_stream():
    return mx.new_stream(mx.default_device())


@pytest.mark.parametrize("family", OPS)
def test_programs(check, family):
    @SETTINGS
    @given(programs(family))
    def each(program):
        check(program)

    each()


NAMES = [(family, name) for family in OPS for name in OPS[family]]


@pytest.mark.parametrize("family, name", NAMES, ids=[name for _, name in NAMES])
def test_every_operation(check, family, name):
    """None is left out because its arguments never fit: the first program that
    has it passes too."""
    check(
        find(
            programs(family, name),
            lambda p: any(step.op == name for step in p.steps),
            settings=settings(SETTINGS, max_examples=200, phases=[Phase.generate]),
            random=random.Random(0),
        )
    )
