"""Checks that go wrong on purpose, to see that the self-test notices: only
`--only hook/...` runs them."""

import os
import signal
import time

from .check import Check, WrongValues


def stall(seed: int) -> dict:
    while True:
        time.sleep(60)


def crash(seed: int) -> dict:
    os.kill(os.getpid(), signal.SIGSEGV)
    return {}


def wrong(seed: int) -> dict:
    raise WrongValues(f"wrong on purpose, with the seed {seed}")


def throw(seed: int) -> dict:
    raise RuntimeError("thrown on purpose")


def fine(seed: int) -> dict:
    return {}


CHECKS = [Check("hook", f.__name__, work=f) for f in (stall, crash, wrong, throw, fine)]
