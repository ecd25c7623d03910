"""Confidence intervals of ratios of times."""

import functools
import math
import statistics

CONFIDENCE = 0.99


def ratio_interval(a: list[float], b: list[float]) -> tuple[float, float] | None:
    """The interval that contains the ratio of the means of b and a with CONFIDENCE, by
    Welch's t interval of the logarithms; None if a side has one sample, or a zero."""
    if min(len(a), len(b)) < 2 or min(*a, *b) <= 0:
        return None
    sides = [[math.log(value) for value in side] for side in (a, b)]
    errors = [statistics.variance(side) / len(side) for side in sides]
    middle = statistics.fmean(sides[1]) - statistics.fmean(sides[0])
    half = 0.0
    if sum(errors) > 0:
        freedom = sum(errors) ** 2 / sum(
            error**2 / (len(side) - 1) for error, side in zip(errors, sides)
        )
        half = quantile(round(freedom, 1)) * math.sqrt(sum(errors))
    return math.exp(middle - half), math.exp(middle + half)


@functools.cache
def quantile(freedom: float) -> float:
    """Student's t for which P(|T| < t) is CONFIDENCE, by bisection."""
    low, high = 0.0, 1.0
    while inside(high, freedom) < CONFIDENCE:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        if inside(middle, freedom) < CONFIDENCE:
            low = middle
        else:
            high = middle
    return high


def inside(t: float, freedom: float) -> float:
    """The probability that |T| < t. With T = sqrt(freedom) tan(x) the density is a
    power of a cosine, which Simpson's rule integrates well."""
    end, steps = math.atan(t / math.sqrt(freedom)), 200
    factor = math.exp(
        math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    ) / math.sqrt(math.pi)
    total = 0.0
    for i in range(steps + 1):
        weight = 1 if i in (0, steps) else 4 if i % 2 else 2
        total += weight * math.cos(end * i / steps) ** (freedom - 1)
    return 2 * factor * total * end / steps / 3
