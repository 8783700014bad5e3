"""Rubric generators (rubrics paper, section 3.3): several rubrics for each query are compared with one another, and
paid for ordering two reports as people did, for their quality, and for being rubrics at all.

GSPO is the same with `train.ratio="sequence"` (section 4.4). Paper, Table 3: 32 queries, 8 rubrics each, lr 1e-6 for
all weights, no KL, clip 0.2, replies of 8,192 tokens."""

from hira.agents.rubrics.writer import WRITER
from hira.evaluation.rewards.hybrid import Hybrid, Weights
from hira.evaluation.rewards.reward import Reward
from hira.trainers.credit import grpo
from hira.trainers.recipes.recipe import Judges, Recipe
from hira.workflows.rubric import RubricWriting


def _as_it_is(accuracy: Reward) -> Reward:
    return accuracy


def hybrid(judges: Judges) -> Reward:
    part = judges.part
    return Hybrid(judges.named("rubric"), Weights(part.preference, part.quality, part.judge_scale))


RECIPE = Recipe(
    "rubric", "direct", grpo, _as_it_is, frozenset({WRITER}), judged=hybrid, own=RubricWriting, data="pairs"
)
