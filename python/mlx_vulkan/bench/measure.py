"""How often to run something, and for how long, to know its time."""

import time


def measure(function, seconds: float) -> float:
    """Seconds per call: batches of growing size, the best batch counts."""
    return min(samples(function, seconds))


def samples(function, seconds: float) -> list[float]:
    """Seconds per call of `function`, which returns arrays, in each of several
    batches of calls, back to back, that take `seconds` together. Those of the
    first half find the size of a batch and do not count, unless there are no
    others."""
    import mlx.core as mx

    # Several at once may run as another kernel than one alone, compiled now.
    for calls in (1, 4, 1):
        mx.eval([function() for _ in range(calls)])
    found = []
    begun = time.perf_counter()
    while (now := time.perf_counter()) < begun + seconds or not found:
        mx.eval([function() for _ in range(calls)])
        spent = time.perf_counter() - now
        found.append((now, spent / calls))
        if spent < seconds / 20:
            calls *= 2
    late = [s for when, s in found if when > begun + seconds / 2]
    return late or [found[-1][1]]
