"""A verifier that asks a model about every claim that is no copy."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hira.agents.exam import pass_exam
from hira.agents.ruling import SECONDS, ask_model
from hira.agents.run_context import RunContext
from hira.core.errors import DialectError, EndpointError, OutOfBudget, Stop
from hira.core.policy import VERIFIER
from hira.evidence import Judgement, LexicalVerifier, Relevance, SourcedClaim, Verdict, citations_of, find_lacking
from hira.journal import NotRecorded

BATCH = 12
"""Claims of one call: their excerpts stay below 6,000 tokens, their verdicts below 2,000."""
CALLS = 5
"""Calls for one answer: claims of a long report beyond them keep their verdicts by words."""


@dataclass(slots=True)
class ModelVerifier:
    """Asks a model about every claim that is not a copy, a dozen in one call, and about the answer as a whole. Nothing
    is asked if all claims are copies that speak of every word of the question.

    The model has to pass an exam first, unless the run context says otherwise; without it, and when the budget is used
    up, the verdicts by words count. If the model fails, copies stay supported, and the other claims are `unchecked`.
    `answers` is what the model says of the answer, None if it says nothing that counts.
    """

    context: RunContext
    role: str = VERIFIER
    name: str = "model"
    answers: Relevance | None = None

    async def verify(self, claims: Sequence[SourcedClaim], question: str) -> list[Judgement]:
        self.answers = None
        judged = await LexicalVerifier().verify(claims, question)
        until = asyncio.get_running_loop().time() + SECONDS
        doubted = [place for place, judgement in enumerate(judged) if not judgement.verdict.holds]
        settled = not doubted and not find_lacking(citations_of(claims, judged, self.name), question)
        if settled or not await pass_exam(self.context):
            return judged
        doubted = doubted or [0]  # for the verdict on the whole answer
        answer = "\n".join(claim.text for claim in claims)
        for begin in range(0, min(len(doubted), BATCH * CALLS), BATCH):
            chunk = doubted[begin : begin + BATCH]
            try:
                async with asyncio.timeout_at(until):
                    ruled = await ask_model(
                        self.context, self.role, [claims[index] for index in chunk], question, answer
                    )
            except (Stop, NotRecorded) as stop:  # a replay has no budget: the run's did not pay for the call
                if isinstance(stop, OutOfBudget):
                    self.context.note(f"{stop.what}: words alone checked the other claims")
                return judged
            except (DialectError, EndpointError, TimeoutError) as error:
                why = f"no verdict within {SECONDS:g} seconds" if isinstance(error, TimeoutError) else error.what
                unchecked = Judgement(Verdict.UNCHECKED, reason=f"the verifier failed: {why}")
                for place in chunk:
                    judged[place] = judged[place] if judged[place].verdict.holds else unchecked
                continue
            if not await pass_exam(self.context, ruled.model):
                return await LexicalVerifier().verify(claims, question)
            self.answers = self.answers or ruled.answers
            for place, judgement in zip(chunk, ruled.judged, strict=True):
                if not judged[place].verdict.holds:
                    missing = () if judgement.verdict.rank > Verdict.UNSUPPORTED.rank else judged[place].missing
                    near = judgement if judgement.quote else replace(judged[place], by=judgement.by)
                    judged[place] = replace(near, verdict=judgement.verdict, score=judgement.score, missing=missing)
        return judged
