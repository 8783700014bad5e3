"""How a run has its answer checked: by words alone, by a model that reads the sources, or by a plug-in.

Words confirm copies. Every other claim goes to the model, if it has passed an exam (`hira.agents.exam`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hira.agents.run_context import RunContext
from hira.core.concurrency import contain
from hira.core.policy import VERIFIER
from hira.evidence import (
    Citation,
    Judgement,
    Relevance,
    SourcedClaim,
    Verifier,
    drop_unknown,
    find_lacking,
    verify_answer,
)
from hira.evidence.verifiers import SECONDS
from hira.journal import CallSpec
from hira.journal.encoding import digest_of_tool, digest_text, validate

LEAST = 1.0
"""Seconds that the check may take even if the run has none left."""


@dataclass(frozen=True, slots=True)
class RecordedVerifier:
    """A plug-in whose judgements the journal keeps, so that a replay needs neither the plug-in nor its weights."""

    verifier: Verifier
    context: RunContext

    @property
    def name(self) -> str:
        return self.verifier.name

    async def verify(self, claims: Sequence[SourcedClaim], question: str) -> Sequence[Judgement]:
        # another run's source of the same id is another
        named = [[f"{source.id} {digest_text(source.text)}" for source in claim.sources] for claim in claims]
        stated = [[claim.text, *sources] for claim, sources in zip(claims, named, strict=True)]
        values: Mapping[str, Any] = {"question": question, "claims": stated}
        spec = CallSpec("tool", VERIFIER, digest_of_tool(VERIFIER, values), self.name, lambda: values)
        judge, decode = partial(self.verifier.verify, claims, question), partial(validate, list[Judgement])
        with contain("it"):
            return await self.context.log.call(spec, judge, list, decode)


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """The citations of an answer, the reasons why some are unchecked, and whether the answer answers the question;
    `lacking` are words of the question that no supporting source has."""

    citations: list[Citation]
    reasons: list[str]
    answers: Relevance | None
    lacking: tuple[str, ...] = ()


async def check_answer(context: RunContext) -> CheckedAnswer:
    """Check the run's answer with the run's verifier, once for each text and its sources. The model that verifies says
    whether it answers the question; without one, the words of the question do."""
    run = context.rollout
    run.answer, _ = drop_unknown(run.answer, run.sources)
    return await context.once(f"check with {len(run.sources)} sources: {run.answer}", partial(_check_answer, context))


async def _check_answer(context: RunContext) -> CheckedAnswer:
    run = context.rollout
    by_model = None
    verifier: Verifier
    if context.options.verifier:
        verifier = RecordedVerifier(context.options.verifier, context)
    elif context.options.verify == "model" and not run.failure:  # a failed endpoint is not asked again
        from hira.agents.model_verifier import ModelVerifier

        verifier = by_model = ModelVerifier(context)
    else:
        from hira.evidence.lexical_verifier import LexicalVerifier  # the answer comes first

        verifier = LexicalVerifier()
    left = context.budget.remaining_seconds(last=True)
    seconds = SECONDS if left is None else round(min(SECONDS, max(left, LEAST)), 1)
    citations, reasons = await verify_answer(run.answer, run.sources, run.question, verifier, seconds=seconds)
    if by_model and by_model.answers:
        return CheckedAnswer(citations, reasons, by_model.answers)
    lacking = find_lacking(citations, run.question)
    held = any(citation.verdict.holds for citation in citations)
    return CheckedAnswer(citations, reasons, (Relevance.NO if lacking else Relevance.YES) if held else None, lacking)
