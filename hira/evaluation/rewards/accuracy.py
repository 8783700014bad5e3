"""Whether a rollout's answer is right, by words or by a judge, as a reward."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from hira.agents.run_context import RoleConfig, RunContext
from hira.agents.trajectory import Rollout
from hira.core.errors import Stop
from hira.core.events import Event, Events, Notice
from hira.evaluation.rewards.answer_judge import Judge, Verdict, equivalent
from hira.evaluation.rewards.match import contains, extract_answer
from hira.evaluation.rewards.reward import Score


@dataclass(frozen=True, slots=True)
class ByWords:
    """1 if the answer matches one of the references, else 0; `match` may also give a share, as F1 does."""

    match: Callable[[str, str], float] = contains

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> Score:
        answer = extract_answer(rollout.answer)
        right = max((float(self.match(answer, one)) for one in references), default=0.0) if answer else 0.0
        return Score(right, {"accuracy": right})


@dataclass(frozen=True, slots=True)
class ByJudge:
    """1 if the judge, any policy, finds the answer to be one of the references, else 0. A judge that fails leaves the
    rollout without a reward, and says why; one that is ended for being late says what it waited for, in a note."""

    part: RoleConfig
    judge: Judge = equivalent

    async def __call__(self, rollout: Rollout, references: tuple[str, ...]) -> Score:
        answer = extract_answer(rollout.answer)
        if not answer:
            return Score(0.0, {"accuracy": 0.0}, why="there is no answer")
        last: Verdict | None = None
        told: list[str] = []

        def heard(event: Event) -> None:
            if isinstance(event, Notice):
                told.append(event.text)

        for reference in references:
            conversation = RunContext({"*": self.part}, events=Events(heard)).conversation("judge")
            try:
                last = await self.judge(conversation, rollout.question, reference, answer)
            except Stop as stop:
                return Score(None, why=stop.what)
            except asyncio.CancelledError as ended:
                for one in told[-1:]:
                    ended.add_note(one)
                raise
            if last is None:
                return Score(None, why=(told or ["the judge failed"])[-1])
            if last.correct:
                break
        right = float(bool(last and last.correct))
        return Score(right, {"accuracy": right}, why=last.reason if last else "")

    async def aclose(self) -> None:
        await self.part.policy.aclose()
