"""`hira-train demo --recipe marsrl`."""

from hira.rewards.accuracy import ByWords
from hira.rewards.match import exact
from hira.rewards.reward import Reward
from hira.trainers.demo.marsrl import world
from hira.trainers.demo.marsrl.exam import Alone, by_role
from hira.trainers.demo.marsrl.lessons import OPTIONS, WORKFLOW, settings_of, shifted, taught
from hira.trainers.demo.recipe import Asked, DemoRecipe, Sizes
from hira.trainers.masking import masking
from hira.trainers.recipes.marsrl import RECIPE
from hira.trainers.rollouts import Problem
from hira.trainers.stages import Stages

ASKED = 3


def problems(seed: int) -> list[Problem]:
    return world.problems(seed, held_out=False)


def held_out(seed: int) -> list[Problem]:
    return world.problems(seed, held_out=True)


def reward() -> Reward:
    return ByWords(exact)


def exam() -> Reward:
    return by_role


def asked(seed: int) -> list[Asked]:
    """Questions that were asked in training by nobody."""
    return [Asked(("ask", one.question), f"known answer: {one.references[0]}") for one in held_out(seed)[:ASKED]]


MARSRL = DemoRecipe(
    name="marsrl",
    about="MarsRL GRPO",
    recipe=RECIPE,
    workflow=WORKFLOW,
    options=OPTIONS,
    settings=settings_of,
    taught=taught,
    varied=shifted,
    problems=problems,
    held_out=held_out,
    reward=reward,
    exam=exam,
    examining=Alone(WORKFLOW),
    asked=asked,
    credit=masking(RECIPE.credit),
    stages=Stages(search=False),
    sizes=Sizes(lessons=1, learning=180, updates=20, questions=6, attempts=8, exam=2),
    small=Sizes(lessons=1, learning=12, updates=2, questions=2, attempts=3, exam=1),
)
