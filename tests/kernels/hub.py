"""A pytest plugin for packages' own tests: one that wants a model from a hub, and
does not find it on the disk, is skipped and says so. More of them than --hub-skips
fail, with the names of all."""

import pytest

skipped = []


def pytest_addoption(parser):
    text = "how many tests may want a model that is not on the disk"
    parser.addoption("--hub-skips", type=int, default=0, help=text)


def wants_hub(error):
    """Whether it, or what it was raised from, is huggingface_hub's."""
    while error is not None:
        if type(error).__name__ == "LocalEntryNotFoundError":
            return True
        error = error.__cause__ or error.__context__
    return False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.excinfo and report.failed and wants_hub(call.excinfo.value):
        skipped.append(item.nodeid)
        allowed = item.config.getoption("--hub-skips")
        if len(skipped) > allowed:
            names = ", ".join(skipped)
            report.longrepr = (
                f"More than {allowed} tests want a model from a hub: {names}"
            )
        else:
            report.outcome = "skipped"
            report.longrepr = (str(item.path), 0, "wants a model from a hub")
    return report
