"""MATPO's reward: 0.9 times whether the answer is right, 0.1 times how well planner and workers wrote their calls."""

from dataclasses import dataclass, replace
from typing import Literal

from hira.agents.trajectory import Rollout
from hira.evaluation.rewards.format import form
from hira.evaluation.rewards.reward import Reward, Score


@dataclass(frozen=True, slots=True)
class WithFormat:
    """(1 - share) · accuracy + share · format, format = (planner's + workers') / 2 (MATPO, "Reward Function").

    `variant="paper"` gives no format to a planner without a call; `"released"` does what MATPO's published code does,
    where such a planner has written all its calls well. Both give workers that there are none of nothing.
    """

    accuracy: Reward
    share: float = 0.1
    variant: Literal["paper", "released"] = "paper"
    planner: str = "planner"

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> Score:
        score = await self.accuracy(rollout, references)
        direct = 1.0 if self.variant == "released" else 0.0
        planners, workers = form(rollout, planner=self.planner, direct=direct)
        parts = {**score.parts, "format/planner": planners, "format/workers": workers}
        if score.value is None:
            return replace(score, parts=parts)
        return replace(score, value=(1 - self.share) * score.value + self.share * (planners + workers) / 2, parts=parts)
