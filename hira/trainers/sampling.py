"""Which outputs of one role the next one works on (MarsRL, section 3.4)."""

import random
from collections.abc import Sequence
from typing import Literal

from hira.evaluation.rewards.verdict import RIGHT

Strategy = Literal["random", "balanced", "adaptive"]


def picks(rewards: Sequence[float], strategy: Strategy, *, first: float, seed: int, most: int = 2) -> list[int]:
    """The places of at most `most` outputs, drawn without replacement; all of them where there are fewer.

        random    any
        balanced  as many of reward 1 as of reward 0, as far as there are; an odd one is any
        adaptive  those of the reward `first` before the others: 0 for a Verifier, which shall see wrong solutions,
                  1 for a Corrector, which shall see errors that are there

    Which of equal ones are taken hangs on the seed alone.
    """
    chance = random.Random(seed)  # noqa: S311 - a draw that can be repeated, no secret
    order = chance.sample(range(len(rewards)), len(rewards))
    if strategy == "adaptive":
        order.sort(key=lambda at: (rewards[at] >= RIGHT) != (first >= RIGHT))
    elif strategy == "balanced":
        order = _in_turns(order, rewards)
    return order[:most]


def _in_turns(order: Sequence[int], rewards: Sequence[float]) -> list[int]:
    """One of each kind after the other, beginning with that of the first; then what is left."""
    good, bad = ([at for at in order if (rewards[at] >= RIGHT) is kind] for kind in (True, False))
    both = min(len(good), len(bad))
    sides = (good, bad) if order and order[0] in good else (bad, good)
    return [at for pair in zip(*sides, strict=False) for at in pair] + good[both:] + bad[both:]
