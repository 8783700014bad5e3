"""MARS: System 2 reasons, System 1 reads for it; each is compared with itself, and their objectives are added."""

from hira.evaluation.rewards.reward import Reward
from hira.trainers.credit import mars
from hira.trainers.recipes.recipe import Recipe


def _as_it_is(accuracy: Reward) -> Reward:
    """MARS pays for right answers alone."""
    return accuracy


RECIPE = Recipe("mars", "mars", mars, _as_it_is, frozenset({"system1", "system2"}), criteria="hle")
