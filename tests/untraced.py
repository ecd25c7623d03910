"""A model's own Python in place of its traced steps."""

import contextlib


@contextlib.contextmanager
def untraced(model):
    cls = type(model)
    traced = cls.__call__
    cls.__call__ = traced.__wrapped__
    try:
        yield
    finally:
        cls.__call__ = traced
