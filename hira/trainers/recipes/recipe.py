"""What a recipe is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hira.agents.run_context import RoleConfig
from hira.core.errors import UsageError
from hira.evaluation.rewards.reward import Reward
from hira.trainers.configuration import RewardConfig
from hira.trainers.group import Credited
from hira.workflows import BuiltIn

Data = Literal["answers", "pairs", "queries"]


@dataclass(frozen=True, slots=True)
class Judges:
    """The models that a reward asks, None where none is named, and how the reward is configured."""

    part: RewardConfig
    judge: RoleConfig | None = None
    generator: RoleConfig | None = None

    def named(self, recipe: str) -> RoleConfig:
        """The judge. Raises `UsageError` if none is named."""
        if self.judge is None:
            fix = 'write judge = "MODEL" below [reward], judge_url beside it for an endpoint'
            raise UsageError(f"the recipe {recipe!r} asks a judge", fix=fix)
        return self.judge


@dataclass(frozen=True, slots=True)
class Recipe:
    """`workflow` is run unless another is named; `roles` are trained, None for all; `paid` makes of a reward for right
    answers the one of the recipe, which a judge gives by the `criteria` of the paper; `credit` divides it among the
    rows, with options of its own.

    A recipe with `judged` has a reward of its own in place of one for right answers, and one with `own` a workflow that
    nobody asks but the trainer. With `staged` groups are made of the outputs of each step (`hira.trainers.agentic`).
    `data` is what it trains on: questions with answers, preferences, or queries alone.
    """

    name: str
    workflow: str
    credit: Callable[..., Credited]
    paid: Callable[[Reward], Reward]
    roles: frozenset[str] | None = None
    judged: Callable[[Judges], Reward] | None = None
    own: Callable[[], BuiltIn] | None = None
    data: Data = "answers"
    criteria: str = "hira"
    staged: bool = False
