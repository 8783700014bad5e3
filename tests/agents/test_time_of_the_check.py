"""The check of an answer ends with the seconds of its run."""

import asyncio
from collections.abc import Sequence

from hira.agents.role import RunOptions
from hira.agents.verifier import check_answer
from hira.core.budget import Budget
from hira.evidence import Judgement, Source, SourcedClaim, Verdict
from hira.testing import ScriptedPolicy, make_context


class Endless:
    name = "endless"

    async def verify(self, claims: Sequence[SourcedClaim], question: str) -> Sequence[Judgement]:
        del claims, question
        await asyncio.Event().wait()
        return ()


async def test_claims_are_unchecked_once_the_time_of_the_run_is_over() -> None:
    context = make_context(ScriptedPolicy([]), budget=Budget(seconds=0.01), options=RunOptions(verifier=Endless()))
    context.read(Source("lamp.txt", "Lamps", "The lamp costs 5 euros."))
    context.rollout.answer = "The lamp costs 5 euros [s1]."
    async with asyncio.timeout(60):
        checked = await check_answer(context)
    assert [citation.verdict for citation in checked.citations] == [Verdict.UNCHECKED]
    assert checked.reasons == ["verifier 'endless' failed: no verdict within 1 seconds"]
