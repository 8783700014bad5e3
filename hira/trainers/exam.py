"""How often the policy is right on questions that it was not trained on, at any temperature."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite

from hira.agents.run_context import RunContext, together
from hira.agents.trajectory import Rollout
from hira.evaluation.rewards.answers import Reward, Score
from hira.evaluation.statistics import cohens_d
from hira.trainers.calls import OpenCalls, SeededPolicy, seed_of
from hira.trainers.configuration import RolloutConfig
from hira.trainers.metrics import Means
from hira.trainers.records import print_progress
from hira.trainers.rollouts import OpenContext, Problem, status_of
from hira.workflows.workflow import Workflow, rollout

ACCURACY = "accuracy"


@dataclass(frozen=True, slots=True)
class Exam:
    """Asks every problem `attempts` times at a `temperature`. `day`, in seconds since the epoch, is taken for today.

    `config` gives deadlines and how many are asked at once."""

    context: OpenContext
    workflow: Workflow
    problems: Sequence[Problem]
    reward: Reward
    config: RolloutConfig = field(default=RolloutConfig(), kw_only=True)
    attempts: int = field(default=1, kw_only=True)
    temperature: float = field(default=1.0, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    day: float | None = field(default=None, kw_only=True)
    tell: Callable[[str], None] = field(default=lambda _: None, kw_only=True)

    async def score(self, number: int = 0) -> list[Score]:
        """What each answer was worth. What the infrastructure broke is left out.

        The same `number` asks with the same seeds.
        """
        gate = asyncio.Semaphore(self.config.concurrency)
        asked = [(one, at) for one in self.problems for at in range(self.attempts)]
        done: list[Score | None] = []

        async def counted(problem: Problem, at: int) -> Score | None:
            done.append(await self._one(problem, at, number, gate))
            return done[-1]

        said = f"of {len(asked)} answers of the exam at temperature {self.temperature:g}"
        with print_progress(self.config.heartbeat_seconds, self.tell, lambda: f"{len(done)} {said}"):
            scores = await together([counted(problem, at) for problem, at in asked])
        return [score for score in scores if score is not None]

    async def _one(self, problem: Problem, attempt: int, number: int, gate: asyncio.Semaphore) -> Score | None:
        run = f"exam{number}-{problem.id}-{attempt}"
        async with gate, self.context(run, problem, lambda _: None) as context:
            self._prepare(context, run, seed_of(self.seed, "exam", number, problem.id, attempt))
            record: Rollout = await rollout(self.workflow, problem.question, context)
        if status_of(record) == "infra_failed":
            return None
        return await self.reward(record, problem.references)

    def _prepare(self, context: RunContext, run: str, seed: int) -> None:
        if self.day is not None:
            context.rollout.began = self.day
        context.cast = {
            role: replace(
                part,
                policy=SeededPolicy(part.policy, run, seed_of(seed, role), self.config.call_seconds, OpenCalls()),
                sampling=replace(part.sampling, temperature=self.temperature, top_p=1.0, top_k=None),
            )
            for role, part in context.cast.items()
        }


def accuracy_of(score: Score) -> float | None:
    """How right an answer was: the reward's accuracy where it tells one, else the reward itself."""
    return score.parts.get(ACCURACY, score.value)


def summarise_scores(scores: Sequence[Score], name: str) -> dict[str, float | None]:
    """The mean of how right they were as `NAME`, and of each part as `NAME/PART`, over the scores that have it.

    Where scores have a `margin`, that of a preferred report over another, `NAME/d` is its effect size: the paired
    Cohen's d (rubrics paper, eq. 7), None without spread.
    """
    means = Means()
    for score in scores:
        means.add(name, accuracy_of(score))
        for part, value in score.parts.items():
            means.add(f"{name}/{part}", value)
    margins = [score.parts["margin"] for score in scores if "margin" in score.parts]
    effect = {f"{name}/d": d if isfinite(d := cohens_d(margins)) else None} if len(margins) > 1 else {}
    return {name: None, **means.values, **effect}
