"""Figures over many questions: intervals, several tries, paired comparisons. Pure; a seed fixes the draws."""

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

DRAWS = 2_000
_SIGNINGS = 10_000
"""Random changes of sign of a permutation test."""
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Interval:
    value: float
    low: float
    high: float


def wilson(right: int, total: int) -> Interval:
    """Return a share with Wilson's score interval, which is valid for small numbers and at 0 and 1."""
    if total == 0:
        return Interval(0.0, 0.0, 1.0)
    share, z = right / total, 1.96
    centre = share + z * z / (2 * total)
    half = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    whole = 1 + z * z / total
    return Interval(share, max(0.0, (centre - half) / whole), min(1.0, (centre + half) / whole))


def bootstrap(
    values: Sequence[float], figure: Callable[[Sequence[float]], float] = fmean, *, draws: int = DRAWS, seed: int = 0
) -> Interval:
    """Return a figure with its 95 % interval by the percentile bootstrap."""
    drawn = random.Random(seed)
    drawn_figures = sorted(figure(drawn.choices(values, k=len(values))) for _ in range(draws))
    return Interval(figure(values), drawn_figures[int(0.025 * draws)], drawn_figures[int(0.975 * draws)])


def pass_at(right: int, tries: int, k: int) -> float:
    """Return the chance that at least one of `k` tries is right, estimated without bias from `tries` of which `right`
    were: 1 - C(tries - right, k) / C(tries, k). Raises `ValueError` for more than `tries`."""
    if not 0 < k <= tries:
        raise ValueError(f"pass@{k} needs at least {k} tries, there are {tries}")
    return 1.0 - math.comb(tries - right, k) / math.comb(tries, k)


def majority(answers: Sequence[str]) -> str:
    """Return the most frequent answer; of several, the first. Empty answers do not vote."""
    votes = Counter(answer for answer in answers if answer)
    return max(votes, key=votes.__getitem__, default="")


def cohens_d(differences: Sequence[float]) -> float:
    """Return the paired effect size: the mean difference over its standard deviation (n - 1). Infinite without spread,
    also if differences differ by rounding alone."""
    centre, spread = fmean(differences), stdev(differences) if len(differences) > 1 else 0.0
    if spread <= ROUNDING * abs(centre):
        return 0.0 if centre == 0 else math.copysign(math.inf, centre)
    return centre / spread


def mcnemar(better: int, worse: int) -> float:
    """Return the two-sided exact p-value of this split of `better + worse` flipped questions."""
    flipped = better + worse
    tail = sum(math.comb(flipped, index) for index in range(min(better, worse) + 1))
    return min(1.0, 2 * tail / (1 << flipped))


def permutation_p_value(differences: Sequence[float]) -> float:
    """Return the two-sided p-value of a mean difference by random changes of sign, for scores other than yes or no."""
    seen, drawn = abs(math.fsum(differences)), random.Random(0)
    reached = 0
    for _ in range(_SIGNINGS):
        signs = drawn.getrandbits(len(differences))
        signed = (-value if signs >> index & 1 else value for index, value in enumerate(differences))
        reached += abs(math.fsum(signed)) >= seen - 1e-12
    return (reached + 1) / (_SIGNINGS + 1)
