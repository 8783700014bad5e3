"""The share of right answers on questions that the policy was not trained on, at any temperature."""

import asyncio
from collections.abc import Sequence
from math import isfinite

from hira.agents.run_context import together
from hira.evaluation.rewards.answers import RolloutScore
from hira.evaluation.statistics import cohens_d
from hira.trainers.metrics import Means
from hira.trainers.rollouts import Problem, Rollouts, ScoredRollout

ACCURACY = "accuracy"


async def take_exam(rollouts: Rollouts, attempts: int = 1) -> list[RolloutScore]:
    """Ask every problem `attempts` times, with the same seeds in each exam, and score the answers. Infrastructure
    failures are left out."""
    gate = asyncio.Semaphore(rollouts.config.concurrency)
    asked = [(one, at) for one in rollouts.problems for at in range(attempts)]
    done: list[ScoredRollout] = []

    async def ask(problem: Problem, at: int) -> None:
        async with gate:
            done.append(await rollouts.play(problem, 0, at, exam=True))

    said = f"of {len(asked)} answers of the exam at temperature {rollouts.temperature:g}"
    with rollouts.report_progress(lambda: f"{len(done)} {said}"):
        await together([ask(problem, at) for problem, at in asked])
    return [one.score for one in done if one.attempt.status != "infra_failed"]


def summarise_scores(scores: Sequence[RolloutScore], name: str) -> dict[str, float | None]:
    """Return the mean accuracy as `NAME`, and the mean of each part as `NAME/PART`, over the scores that have it. The
    accuracy of an answer is the reward's part of that name, else the reward itself.

    If scores have a `margin`, that of a preferred report over another, `NAME/d` is its effect size: the paired Cohen's
    d (rubrics paper, eq. 7), None without spread.
    """
    means = Means()
    for score in scores:
        means.add(name, score.parts.get(ACCURACY, score.value))
        for part, value in score.parts.items():
            means.add(f"{name}/{part}", value)
    margins = [score.parts["margin"] for score in scores if "margin" in score.parts]
    effect = {f"{name}/d": d if isfinite(d := cohens_d(margins)) else None} if len(margins) > 1 else {}
    return {name: None, **means.values, **effect}
