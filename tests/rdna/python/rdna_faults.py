"""A pytest plugin: a test fails if the emulator reports a fault of the process
while it runs, even if its values are right."""

import os
from pathlib import Path

import pytest

REPORT = Path(os.environ["RDNA_REPORT"])


def faults() -> str:
    file = REPORT / str(os.getpid())
    return file.read_text("utf-8") if file.exists() else ""


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    before = len(faults())
    result = yield
    if found := faults()[before:]:
        pytest.fail(found, pytrace=False)
    return result
