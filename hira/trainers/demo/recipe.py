"""A demo's recipe, the sizes of its run, and the rollouts of its teacher."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hira.agents.run_context import together
from hira.agents.trajectory import Rollout
from hira.core.policy import Policy
from hira.evaluation.rewards.answers import Reward
from hira.runtime.factory import open_session
from hira.runtime.settings import Settings
from hira.trainers.calls import seed_of
from hira.trainers.configuration import StageConfig
from hira.trainers.demo.tiny import SHAPE, TinyShape
from hira.trainers.recipes import Recipe
from hira.trainers.rollouts import Problem, open_contexts
from hira.workflows import BuiltIn
from hira.workflows.workflow import Workflow, rollout

if TYPE_CHECKING:
    from hira.trainers.sft import Changed


TINY = "tiny"
"""The base with random weights."""
DAY = 1_767_225_600.0  # 2026-01-01: the prompts are the same on every day


@dataclass(frozen=True, slots=True)
class DemoSizes:
    """The sizes of a demo: `demonstrations` of the teacher for each question, `learning` supervised steps, `updates` of
    `questions` x `attempts` rollouts, which replace groups without signal by other questions up to `refill` times. An
    exam asks every `thin`-th held-out question `exam` times."""

    demonstrations: int = 3
    learning: int = 180
    batch: int = 32
    learning_rate: float = 5e-3
    matrices: float = 0.02
    updates: int = 40
    questions: int = 8
    attempts: int = 8
    refill: int = 0
    rate: float = 1.5e-3
    rank: int = 8
    exam: int = 4
    thin: int = 1
    every: int = 0


MINIATURE = DemoSizes(demonstrations=1, learning=12, updates=2, questions=4, attempts=4, exam=1)
"""Runs every stage and teaches next to nothing."""


@dataclass(frozen=True, slots=True)
class Demonstrations:
    """The teacher's rollouts for the cold start, and a line about them."""

    rollouts: Sequence[Rollout]
    summary: str


@dataclass(frozen=True, slots=True)
class Command:
    """Arguments of `hira` that ask the trained model, without `--profile`, and a line to print after its answer."""

    command: tuple[str, ...]
    known: str = ""


@dataclass(frozen=True, slots=True)
class DemoRecipe:
    """One demo. Callables take the run's seed unless stated otherwise.

    `settings(folder)` are those of the runs. `teach(folder, seed, times)` writes the files that the runs need and plays
    the teacher's rollouts, `times` for each question. A `pretrained` model learns them as an adapter; a tiny one begins
    at random, with the `tokenizer` that is learned from them. `varied` makes another demonstration from one, and
    `dealt` repeats the demonstrations of a role.

    `recipe` names the trained roles and their credit. `problems` are for training, `held_out`
    for exams. `reward` also scores exams, unless there is an `exam`; exams run `examining` in place of `workflow`, and
    `examined` describes their accuracy. `workflow` runs with `options` unlike its defaults, which the profile keeps.
    `commands` ask the trained model at the end. `curves` names metrics of updates to draw, `figures` parts of exam
    scores to print, `sampled/PART` and `greedy/PART`; of several it prints the mean. `note` follows them.
    """

    name: str
    about: str
    recipe: Recipe
    workflow: BuiltIn
    settings: Callable[[Path], Settings]
    teach: Callable[[Path, int, int], Demonstrations]
    problems: Callable[[int], Sequence[Problem]]
    held_out: Callable[[int], Sequence[Problem]]
    reward: Callable[[], Reward]
    commands: Callable[[int], Sequence[Command]]
    tokenizer: Callable[[Sequence[Rollout]], Any] | None = None
    pretrained: bool = False
    dealt: Mapping[str, int] = field(default_factory=dict)
    exam: Callable[[int], Reward] | None = None
    examining: Workflow | None = None
    varied: "Callable[[Any], Changed] | None" = None
    options: Mapping[str, bool | int] = field(default_factory=dict)
    stages: StageConfig = field(default=StageConfig())
    shape: TinyShape = SHAPE
    sizes: DemoSizes = DemoSizes()
    small: DemoSizes = MINIATURE
    examined: str = "held-out questions right"
    curves: Mapping[str, str] = field(default_factory=lambda: {"right answers in training": "reward/accuracy"})
    figures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    note: str = ""


AT_ONCE = 16
Teaches = Callable[[random.Random, Problem], Policy]
"""Makes the teacher of one rollout, from the random numbers for its faults and from the problem."""


async def record_demonstrations(
    settings: Settings, workflow: Workflow, problems: Sequence[Problem], times: int, seed: int, teacher: Teaches
) -> list[Rollout]:
    """Return the teacher's rollouts: `times` per problem."""
    if not problems:
        return []
    stand_in = teacher(random.Random(seed), problems[0])  # noqa: S311
    context = await open_session(settings, policies={"*": stand_in}, workflow=workflow)
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(problem: Problem, number: int) -> Rollout:
        chance = random.Random(seed_of(seed, "teacher", problem.id, number))  # noqa: S311 - demonstrations of that seed
        policy = teacher(chance, problem)
        async with gate, open_contexts(context)(f"{problem.id}-{number}", problem, lambda _: None) as opened:
            opened.rollout.began = DAY
            opened.roles = {role: replace(config, policy=policy) for role, config in opened.roles.items()}
            return await rollout(workflow, problem.question, opened)

    try:
        return await together([one(problem, number) for problem in problems for number in range(times)])
    finally:
        await context.aclose()
