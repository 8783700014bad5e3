"""`hira-train demo --recipe rubric`: a model learns to write the rubrics by which people's preferences can be told.

The recipe is that of the rubrics paper (section 3.3): several rubrics for each query are compared with one another by
R = R_pref + R_llm + R_fmt. Both judges are programs (`hira.trainers.demo.rubric.judge`): no language model that can
judge runs on a CPU beside this one. Queries and reports are made up; prompts, JSON, scores and GRPO are the real ones.

Expected of held-out queries at temperature 1, stated after seeds 0 to 2 and before any other: valid rubrics ≥ 85 %;
of all pairs at least 15 points more in the right order, a rubric that is not valid counting as wrong; valid rubrics,
each tried on 100 pairs, order at least 2 points more of them; the judge's mark up by 0.5 of 4 or more; a larger Cohen's
d. What is learned is above all validity and the judge's mark; the order of valid rubrics rises by a few points (seed 1:
61 to 70 %, seed 2: 62 to 67 %), because naming what the reader wants, which the judge pays for, orders reports too.
"""

from dataclasses import dataclass, replace

from hira.agents.run_context import RoleConfig
from hira.agents.trajectory import Rollout
from hira.evaluation.rewards.hybrid import BEST
from hira.evaluation.rewards.reward import Reward, Score
from hira.trainers.configuration import RewardConfig
from hira.trainers.demo.recipe import Asked, DemoRecipe, Sizes
from hira.trainers.demo.rubric import world
from hira.trainers.demo.rubric.exam import Tried, tried_on
from hira.trainers.demo.rubric.judge import Judge
from hira.trainers.demo.rubric.lessons import (
    HELD_OUT,
    PAIRS,
    SHAPE,
    WORKFLOW,
    learn_tokenizer,
    renamed,
    settings_of,
    show,
)
from hira.trainers.recipes.recipe import Judges
from hira.trainers.recipes.rubric import RECIPE, hybrid
from hira.trainers.rollouts import Problem

ASKED = 2


def problems(seed: int) -> list[Problem]:
    return world.made(seed).problems(PAIRS, held_out=False)


def held_out(seed: int) -> list[Problem]:
    return world.made(seed).problems(HELD_OUT, held_out=True)


def reward() -> Reward:
    """The recipe's own, with the paper's weights."""
    return Shares(hybrid(Judges(RewardConfig(), RoleConfig(Judge()))))


@dataclass(frozen=True, slots=True)
class Shares:
    """A hybrid reward that also tells its parts as shares: `valid` is R_fmt + 1, `liked` is R_llm / 4, and `ordered`
    whether R_pref is 1, of valid rubrics only; `accuracy` is that of all."""

    inner: Reward

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> Score:
        score = await self.inner(rollout, references)
        told = dict(score.parts)
        if "format" in told:
            told["valid"] = 1 + told["format"]
        if "quality" in told:
            told["liked"] = told["quality"] / BEST
        if told.get("valid") and "accuracy" in told:
            told["ordered"] = told["accuracy"]
        return replace(score, parts=told)


def exam(seed: int) -> Reward:
    """The same, and how valid rubrics order many pairs."""
    return Tried(reward(), tried_on(world.made(seed)))


def asked(seed: int) -> list[Asked]:
    """Queries of readers about machines that nobody asked about in training."""
    here, found = world.made(seed), []
    for one in held_out(seed)[:: HELD_OUT * 5][:ASKED]:
        reader, machine, _ = one.id.split("-")
        cares = sorted(here.cares(reader, machine).items(), key=lambda care: -care[1])
        known = ", ".join(f"{name} {much}" for name, much in cares if much > 0)
        found.append(Asked(("rubric", one.question), f"what people care for here: {known}"))
    return found


RUBRIC = DemoRecipe(
    name="rubric",
    about="GRPO of a rubric generator",
    recipe=RECIPE,
    workflow=WORKFLOW,
    settings=settings_of,
    show=show,
    tokenizer=learn_tokenizer,
    varied=renamed,
    problems=problems,
    held_out=held_out,
    reward=reward,
    exam=exam,
    asked=asked,
    shape=SHAPE,
    sizes=Sizes(lessons=3, learning=150, updates=80, rate=3e-3),
    small=Sizes(lessons=1, learning=55, batch=12, updates=2, questions=2, attempts=4, exam=1, thin=4),
    examined="held-out pairs in the right order",
    curves={
        "pairs in the right order (R_pref is 1)": "reward/accuracy",
        "the judge's mark (R_llm, of 4)": "reward/liked",
        "valid rubrics (R_fmt is 0)": "reward/valid",
    },
    figures={
        "valid rubrics, temperature 1": ("sampled/valid",),
        "pairs that a valid rubric orders rightly, of 100, temperature 1": ("sampled/ordered",),
        "pairs that a valid rubric orders rightly, of 100, greedy": ("greedy/ordered",),
        "the judge's mark, of 4, temperature 1": ("sampled/liked",),
        "paired Cohen's d, temperature 1": ("sampled/d",),
        "paired Cohen's d, greedy": ("greedy/d",),
    },
    note="Learned above all: valid rubrics, and what the judge pays for. They order reports better by a few points.",
)
