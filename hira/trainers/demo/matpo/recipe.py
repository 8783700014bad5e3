"""`hira-train demo --recipe matpo`: a planner and its workers learn two-hop questions over documents."""

from hira.evaluation.rewards.accuracy import ByWords
from hira.evaluation.rewards.match import exact
from hira.evaluation.rewards.matpo import WithFormat
from hira.evaluation.rewards.reward import Reward
from hira.trainers.demo.matpo import world
from hira.trainers.demo.matpo.lessons import WORKFLOW, learn_tokenizer, settings_of, show
from hira.trainers.demo.matpo.names import renamed
from hira.trainers.demo.recipe import Asked, DemoRecipe
from hira.trainers.recipes.matpo import RECIPE
from hira.trainers.rollouts import Problem

ASKED = 3


def problems(seed: int) -> list[Problem]:
    return world.made(seed).problems(held_out=False)


def held_out(seed: int) -> list[Problem]:
    return world.made(seed).problems(held_out=True)


def reward() -> Reward:
    return WithFormat(ByWords(exact))


def asked(seed: int) -> list[Asked]:
    """Questions of people whom nobody asked about in training."""
    held = held_out(seed)
    return [
        Asked(("ask", one.question), f"known answer: {one.references[0]}")
        for one in held[:: max(1, len(held) // ASKED)][:ASKED]
    ]


MATPO = DemoRecipe(
    name="matpo",
    about="MATPO GRPO",
    recipe=RECIPE,
    workflow=WORKFLOW,
    options={"max_subtasks": WORKFLOW.max_subtasks, "worker_calls": WORKFLOW.worker_calls},
    settings=settings_of,
    show=show,
    tokenizer=learn_tokenizer,
    varied=renamed,
    problems=problems,
    held_out=held_out,
    reward=reward,
    asked=asked,
)
