"""Rewards for answers: right answers by words or by a judge, calls that succeed (MATPO), the roles of MarsRL; and a
policy that limits concurrent calls."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from statistics import mean
from typing import Literal, Protocol

from hira.agents.run_context import RoleConfig, RunContext
from hira.agents.trajectory import Rollout, Trajectory
from hira.core.errors import Stop
from hira.core.events import Notice
from hira.core.policy import Completion, Policy, Request, Watch
from hira.core.window import check_concurrency
from hira.evaluation.rewards.answer_judge import JUDGES, Judge, Verdict
from hira.evaluation.rewards.match import best, contains, extract_answer


@dataclass(frozen=True, slots=True)
class RolloutScore:
    """The score of a rollout. `value` is None if it could not be judged: then it does not count, not even as 0. `parts`
    are its components, by name; `conversations` has rewards of single conversations, for roles that are paid
    separately; `why` is an explanation for readers of samples."""

    value: float | None
    parts: Mapping[str, float] = field(default_factory=dict)
    conversations: Mapping[str, float] = field(default_factory=dict)
    why: str = ""


class Reward(Protocol):
    """Scores a rollout against the reference answers of its question; each of them is right."""

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> RolloutScore: ...


def collect_notices(context: RunContext) -> list[str]:
    """Return a list that gets the text of each notice of the context."""
    notices: list[str] = []
    context.events.readers.append(lambda event: notices.append(event.text) if isinstance(event, Notice) else None)
    return notices


async def close_reward(reward: Reward | None) -> None:
    """Close the connections of a reward's judge, if it has one: they belong to the running event loop."""
    if (closing := getattr(reward, "aclose", None)) is not None:
        await closing()


@dataclass(frozen=True, slots=True)
class ByWords:
    """1 if the answer matches one of the references, else 0; `match` may also give a share, as F1 does."""

    match: Callable[[str, str], float] = contains

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> RolloutScore:
        answer = extract_answer(rollout.answer)
        right = best(self.match, answer, references) if answer else 0.0
        return RolloutScore(right, {"accuracy": right})


@dataclass(frozen=True, slots=True)
class ByJudge:
    """1 if the judge, any policy, accepts the answer for one of the references, else 0. A judge that fails leaves the
    rollout without a reward, and gives the reason; a cancelled one notes what it waited for."""

    config: RoleConfig
    judge: Judge = JUDGES["hira"]

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> RolloutScore:
        answer = extract_answer(rollout.answer)
        if not answer:
            return RolloutScore(0.0, {"accuracy": 0.0}, why="there is no answer")
        last: Verdict | None = None
        for reference in references:
            context = RunContext({"*": self.config})
            notices = collect_notices(context)
            try:
                last = await self.judge(context.conversation("judge"), rollout.question, reference, answer)
            except Stop as stop:
                return RolloutScore(None, why=stop.what)
            except asyncio.CancelledError as ended:
                for notice in notices[-1:]:
                    ended.add_note(notice)
                raise
            if last is None:
                return RolloutScore(None, why=(notices or ["the judge failed"])[-1])
            if last.correct:
                break
        right = float(bool(last and last.correct))
        return RolloutScore(right, {"accuracy": right}, why=last.reason if last else "")

    async def aclose(self) -> None:
        await self.config.policy.aclose()


def valid(trajectory: Trajectory, *, without: float = 0.0) -> float:
    """Return the share of a conversation's calls that succeeded: they were readable and permitted, and their tool did
    not fail. `without` is the share of a conversation without calls, by default 0: 1 would reward idleness."""
    written = trajectory.calls + trajectory.unreadable
    return (trajectory.calls - trajectory.failed) / written if written else without


def form(rollout: Rollout, *, planner: str = "planner", direct: float = 0.0) -> tuple[float, float]:
    """Return shares of valid calls: the planner's, and the mean over all other conversations, the workers'. `direct` is
    the share of a planner without any call; without workers theirs is 0. A single agent, without a planner, counts as
    both (MATPO, single-agent GRPO)."""
    planners, workers = [], []
    for trajectory in rollout.trajectories.values():
        if trajectory.role == planner:
            planners.append(valid(trajectory, without=direct))
        elif trajectory.turns:
            workers.append(valid(trajectory))
    share = mean(workers) if workers else 0.0
    return (mean(planners) if planners else share, share)


@dataclass(frozen=True, slots=True)
class WithFormat:
    """(1 - share) · accuracy + share · format, format = (planner's + workers') / 2 (MATPO, "Reward Function").
    `variant="paper"` gives no format to a planner without a call; `"released"` follows MATPO's published code, which
    gives such a planner full format."""

    accuracy: Reward
    share: float = 0.1
    variant: Literal["paper", "released"] = "paper"
    planner: str = "planner"

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> RolloutScore:
        score = await self.accuracy(rollout, references)
        direct = 1.0 if self.variant == "released" else 0.0
        planners, workers = form(rollout, planner=self.planner, direct=direct)
        parts = {**score.parts, "format/planner": planners, "format/workers": workers}
        if score.value is None:
            return replace(score, parts=parts)
        return replace(score, value=(1 - self.share) * score.value + self.share * (planners + workers) / 2, parts=parts)

    async def aclose(self) -> None:
        await close_reward(self.accuracy)


RIGHT = 0.5
"""The least reward of a right solution, where a reward is a share."""


def of_verdict(*, accepts: bool | None, right: bool) -> float:
    """Return the reward of a Verifier: 1 if its verdict is true of the solution, 0 if not or if unreadable (`accepts`
    None).

    >>> of_verdict(accepts=False, right=False), of_verdict(accepts=None, right=True)
    (1.0, 0.0)
    """
    return float(accepts is not None and accepts == right)


@dataclass(slots=True)
class Gated:
    """A policy with at most `most` calls at a time; the others wait. A group of rollouts ends at one time, and each
    report has twenty items to judge: without a gate thousands of calls arrive at once, and late ones time out."""

    policy: Policy
    most: int
    _gate: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        check_concurrency(self.most)
        self._gate = asyncio.Semaphore(self.most)

    @property
    def model(self) -> str:
        return self.policy.model

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        async with self._gate:
            return await self.policy.complete(request, watch)

    async def aclose(self) -> None:
        await self.policy.aclose()
