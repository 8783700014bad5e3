"""How often the policy is right on questions that it was not trained on, at any temperature."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hira.rewards.reward import Reward
from hira.team import Team, together
from hira.trainers.rollouts import OpenTeam, Problem, status_of
from hira.trainers.seeding import Seeded, Underway, seed_of
from hira.trajectory import Rollout
from hira.workflows.workflow import Workflow, rollout

ACCURACY = "accuracy"


@dataclass(frozen=True, slots=True)
class Exam:
    """Asks every problem `attempts` times at a `temperature`. `day`, in seconds since the epoch, is taken for today."""

    team: OpenTeam
    workflow: Workflow
    problems: Sequence[Problem]
    reward: Reward
    attempts: int = 1
    temperature: float = 1.0
    seed: int = 0
    seconds: float = 600.0
    concurrency: int = 256
    day: float | None = None

    async def taken(self, number: int = 0) -> list[float]:
        """How right each answer was: the reward's accuracy where it tells one, else the reward itself.

        What the infrastructure broke is left out. The same `number` asks with the same seeds.
        """
        gate = asyncio.Semaphore(self.concurrency)
        asked = [(one, at) for one in self.problems for at in range(self.attempts)]
        scores = await together([self._one(problem, at, number, gate) for problem, at in asked])
        return [score for score in scores if score is not None]

    async def _one(self, problem: Problem, attempt: int, number: int, gate: asyncio.Semaphore) -> float | None:
        run = f"exam{number}-{problem.id}-{attempt}"
        async with gate, self.team(run, problem, lambda _: None) as team:
            self._prepare(team, run, seed_of(self.seed, "exam", number, problem.id, attempt))
            record: Rollout = await rollout(self.workflow, problem.question, team)
        if status_of(record) == "infra_failed":
            return None
        score = await self.reward(record, problem.references)
        return score.parts.get(ACCURACY, score.value)

    def _prepare(self, team: Team, run: str, seed: int) -> None:
        if self.day is not None:
            team.rollout.began = self.day
        team.cast = {
            role: replace(
                part,
                policy=Seeded(part.policy, run, seed_of(seed, role), self.seconds, Underway()),
                sampling=replace(part.sampling, temperature=self.temperature, top_p=1.0, top_k=None),
            )
            for role, part in team.cast.items()
        }
