"""Rewards become advantages: the part that all schemes share."""

import math
from collections.abc import Sequence
from typing import Literal

Scale = Literal["group", "batch", "none"]
FLOOR = 1e-3
"""Under this deviation a group has no signal: dividing by it would make noise of rounding errors."""


def deviation(rewards: Sequence[float]) -> float:
    """The standard deviation of the population (ddof 0)."""
    mean = sum(rewards) / len(rewards)
    return math.sqrt(sum((reward - mean) ** 2 for reward in rewards) / len(rewards))


def advantages(
    rewards: Sequence[float], *, baseline: Sequence[float] | None = None, by: float | None = None, floor: float = FLOOR
) -> list[float] | None:
    """(r - μ) / σ for each reward; None if the group has no signal: fewer than two rewards, or σ under the floor.

    μ and σ are those of `baseline` where it is given, else of the rewards; `by` is divided by in place of σ.

    >>> advantages([1, 0, 0, 1])
    [1.0, -1.0, -1.0, 1.0]
    >>> advantages([1, 0], by=1.0)
    [0.5, -0.5]
    """
    compared = rewards if baseline is None else baseline
    if len(compared) < 2 or (spread := deviation(compared)) < floor:
        return None
    mean = sum(compared) / len(compared)
    return [(reward - mean) / (spread if by is None else by) for reward in rewards]


def divisor(scale: Scale, rewards: Sequence[float], floor: float = FLOOR) -> float | None:
    """What advantages are divided by in all groups alike: 1 for `none` (Dr. GRPO), the deviation over the whole batch
    for `batch`; None for `group`, where each group has its own."""
    if scale == "group":
        return None
    if scale == "none" or not rewards:
        return 1.0
    return max(deviation(rewards), floor)
