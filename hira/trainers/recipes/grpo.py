"""GRPO: every role is compared with itself, over conversations that began with the same words."""

from hira.evaluation.rewards.reward import Reward
from hira.trainers.credit import grpo
from hira.trainers.recipes.recipe import Recipe


def _as_it_is(accuracy: Reward) -> Reward:
    return accuracy


RECIPE = Recipe("grpo", "react", grpo, _as_it_is)
