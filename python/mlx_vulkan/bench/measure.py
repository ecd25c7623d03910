"""Times calls of a function in batches whose size adapts."""

import time


def measure(function, seconds: float) -> float:
    """Seconds per call, of the fastest of several batches of calls."""
    return min(samples(function, seconds))


def samples(function, seconds: float) -> list[float]:
    """Seconds per call of `function`, which returns arrays, in each of several batches
    of calls. The batches take `seconds` together; those of the first half determine
    their size and count only if there are no others."""
    import mlx.core as mx

    # Several calls at once may choose another kernel than one; both are compiled here.
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
