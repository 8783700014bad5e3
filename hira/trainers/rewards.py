"""Rewards for recipes of your own: a function of a rollout, the gain over plain RAG, and a judge that ranks a group.

A function gets the rollout and the reference answers of its question, and returns a number, a `RolloutScore`, or None
for a rollout that cannot be scored. It may be a coroutine function.
"""

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import isawaitable
from random import Random
from typing import Any

from pydantic import BaseModel

from hira.agents.run_context import RoleConfig, RunContext
from hira.agents.trajectory import Rollout
from hira.core.concurrency import SingleFlight
from hira.core.errors import HiraError, Stop
from hira.core.policy import Policy
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.evaluation.rewards.answer_judge import ask_judge
from hira.evaluation.rewards.answers import ByWords, Reward, RolloutScore, close_reward, collect_notices
from hira.evaluation.rewards.match import extract_answer
from hira.evidence import Verdict
from hira.runtime.registry import make_workflow
from hira.runtime.session import Session
from hira.trainers.calls import seed_of, set_training_sampling, status_of
from hira.workflows.workflow import rollout as run_workflow

ScoreValue = RolloutScore | float | None
ScoreFunction = Callable[[Rollout, tuple[str, ...]], ScoreValue | Awaitable[ScoreValue]]
RANK = Prompt(__file__, "rank")


@dataclass(frozen=True, slots=True)
class ByFunction:
    function: ScoreFunction

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> RolloutScore:
        reward = self.function(rollout, references)
        value = await reward if isawaitable(reward) else reward
        if value is None or isinstance(value, RolloutScore):
            return value or RolloutScore(None, why="the reward has no value")
        if not isinstance(value, int | float):
            raise TypeError(f"it returned {value!r}, which is not a number")
        return RolloutScore(float(value))

    async def open(self, session: Session, untrained: Policy) -> None:
        await open_reward(self.function, session, untrained)

    async def aclose(self) -> None:
        await close_reward(self.function)  # type: ignore[arg-type]


async def open_reward(reward: Any, session: Session, untrained: Policy) -> None:
    """Give a reward that runs workflows the session of the rollouts, and the policy without adapters."""
    if (opening := getattr(reward, "open", None)) is not None:
        await opening(session, untrained)


def check_score(score: RolloutScore, where: str) -> RolloutScore:
    """Return the score. Raises `HiraError` if one of its numbers is not finite: it would reach every row of the
    group."""
    numbers: dict[str, float | None] = {"": score.value}
    for kind, values in (("part", score.parts), ("conversation", score.conversations)):
        numbers |= {f" for the {kind} {name!r}": value for name, value in values.items()}
    for which, value in numbers.items():
        if value is not None and not math.isfinite(value):
            fix = "correct the reward function, then resume with --resume; return None for an unscored rollout"
            raise HiraError(f"the reward returned {value}{which}", where=where, fix=fix)
    return score


def score_citations(rollout: Rollout, references: tuple[str, ...] = ()) -> RolloutScore:
    """Return the share of the answer's claims that a source supports; a claim that a source contradicts takes one away.
    A refusal, a failed run and an answer without claims earn 0. No reference is needed.

    >>> Recipe("rag", reward=score_citations)
    """
    del references
    by_claim: dict[str, list[Verdict]] = {}
    for citation in rollout.citations:
        by_claim.setdefault(citation.claim, []).append(citation.verdict)
    claims = len(by_claim)
    unheld = [verdicts for verdicts in by_claim.values() if not any(verdict.holds for verdict in verdicts)]
    held, denied = claims - len(unheld), sum(any(verdict.denies for verdict in verdicts) for verdicts in unheld)
    parts = {"claims": claims, Verdict.SUPPORTED.value: held, Verdict.CONTRADICTED.value: denied}
    share = max(0.0, (held - denied) / claims) if claims else 0.0
    return RolloutScore(share, {name: float(count) for name, count in parts.items()})


@dataclass(slots=True)
class GainOver:
    """A rollout's reward minus that of `workflow`, by default plain RAG, on the same question (s3, 2505.14146).

    The untrained model answers each question once, greedily, with the tools of the rollouts. Its reward is the same for
    all attempts at a question, so the advantages within a group do not change; metrics and exams show the gain. A gain
    under `least` counts as `least`: with 0, the attempts at a question that plain RAG answers all earn 0, and
    `rollouts.refill` asks another one instead.
    """

    accuracy: Reward = field(default_factory=ByWords)
    workflow: str = "rag"
    least: float = -1.0
    _session: Session | None = None
    _once: SingleFlight = field(default_factory=SingleFlight)

    async def open(self, session: Session, untrained: Policy) -> None:
        settings = session.settings.with_values({"workflow": self.workflow}, "the baseline")
        session = session.beside(make_workflow(settings))
        greedy = {}
        for role, config in session.roles.items():
            greedy[role] = replace(config, policy=untrained, sampling=set_training_sampling(config.sampling, 0.0))
        self._session, self._once = replace(session, roles=greedy), SingleFlight()
        await open_reward(self.accuracy, session, untrained)

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> RolloutScore:
        score = await self.accuracy(rollout, references)
        key = "\x1f".join((rollout.question, *references))
        ask = partial(self._baseline, rollout.question, references)
        baseline = await self._once(key, ask, lambda score: score.value is not None)
        if score.value is None or baseline.value is None:
            return replace(score, value=None, why=score.why or f"{self.workflow}: {baseline.why}")
        gain = max(self.least, score.value - baseline.value)
        return replace(score, value=gain, parts={**score.parts, "baseline": baseline.value, "gain": gain})

    async def _baseline(self, question: str, references: tuple[str, ...]) -> RolloutScore:
        if self._session is None:
            raise HiraError("the gain has no session", fix="call open() first, as a training run does")
        async with self._session.open_context(f"baseline-{seed_of(question)}", question, (), ()) as context:
            await run_workflow(self._session.workflow, question, context)
        status = status_of(context.rollout)
        if status == "infra_failed":
            return RolloutScore(None, why=context.rollout.error)
        return await self.accuracy(context.rollout, references) if status == "ok" else RolloutScore(0.0)

    async def aclose(self) -> None:
        await close_reward(self.accuracy)


class _Ranking(BaseModel):
    reason: str = ""
    order: list[int]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A reward without labels: `judge` orders the different answers of a group, the best earns 1 and the worst 0.

    It reads them twice, in a random order and in the reverse one, because judges prefer what comes first; an answer
    earns the mean of both places. Equal answers share a place, and attempts without an answer share the last. A single
    rollout, as in an exam, is compared with its references, and has no score without any.
    """

    judge: RoleConfig

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> RolloutScore:
        if references:
            return await ByWords()(rollout, references)
        return RolloutScore(None, why="a ranking needs a group of answers")

    async def score_group(self, rollouts: Sequence[Rollout]) -> list[RolloutScore]:
        """Return the score of each rollout; all without a value if the judge fails."""
        texts = [extract_answer(rollout.answer) for rollout in rollouts]
        answers = sorted({text for text in texts if text})
        Random(seed_of("rank", *texts)).shuffle(answers)  # noqa: S311 - repeatable, not secret
        if not answers or len({*texts}) == 1:
            return [RolloutScore(0.0, why="the answers of the group do not differ") for _ in rollouts]
        places, why = {"": float(len(answers)), answers[0]: 0.0}, ""
        if len(answers) > 1:
            context = RunContext({"*": self.judge})
            notices = collect_notices(context)
            try:
                orders = [await self._order(context, rollouts[0].question, pair) for pair in (answers, answers[::-1])]
            except Stop as stop:
                return [RolloutScore(None, why=stop.what) for _ in rollouts]
            rankings = [ranking for ranking in orders if ranking is not None]
            if len(rankings) < len(orders):
                return [RolloutScore(None, why=(notices or ["the judge failed"])[-1]) for _ in rollouts]
            places |= {text: sum(order[text] for order, _ in rankings) / len(rankings) for text in answers}
            why = rankings[0][1]
        worst = max(places[text] for text in texts)
        return [RolloutScore(1 - places[text] / worst, {"place": places[text]}, why=why) for text in texts]

    async def _order(
        self, context: RunContext, question: str, answers: Sequence[str]
    ) -> tuple[Mapping[str, int], str] | None:
        """Return the place of each answer, from 0, with the judge's reason; None if the judge fails."""
        listed = "\n\n".join(f"[Answer {number}]\n{text}" for number, text in enumerate(answers, 1))
        prompt = RANK.fill(question=sanitize(question), answers=sanitize(listed), many=str(len(answers)))
        numbers = list(range(1, len(answers) + 1))

        def find_fault(ranking: _Ranking) -> str:
            return "" if sorted(ranking.order) == numbers else f"`order` must have each of {numbers} exactly once"

        ranking = await ask_judge(context.conversation("judge"), prompt, _Ranking, wrong=find_fault)
        if ranking is None:
            return None
        return {answers[number - 1]: place for place, number in enumerate(ranking.order)}, ranking.reason

    async def aclose(self) -> None:
        await self.judge.policy.aclose()
