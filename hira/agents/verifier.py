"""How a run has its answer checked: by words alone, by a model that reads the sources, or by a plug-in.

Words confirm copies. Every other claim goes to the model, if it has passed an exam (`hira.agents.exam`).
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Literal

from pydantic import Field, JsonValue, create_model

from hira.agents.record import Reply, ask_for_record
from hira.agents.run_context import RunContext
from hira.core.bm25 import BM25
from hira.core.errors import DialectError, EndpointError, Stop
from hira.core.messages import Filled, user
from hira.core.prompts import Prompt
from hira.core.sanitize import fence, sanitize
from hira.core.worker import run_apart
from hira.evidence import (
    Citation,
    Judgement,
    LexicalVerifier,
    Relevance,
    Source,
    SourcedClaim,
    Verdict,
    Verifier,
    citations_of,
    find_lacking,
    verify_answer,
)
from hira.evidence.citations import PackedClaims, pack_claims, unpack_claims
from hira.evidence.copies import holds_values
from hira.evidence.lexical_verifier import flat, is_bare, is_calculation, is_echo, name_source
from hira.journal import CallSpec
from hira.journal.decoding import validate
from hira.journal.encoding import digest_of_tool

PROMPT = Prompt(__file__, "verifier")
ROLE = "verifier"
BATCH = 12
"""Claims of one call: their excerpts stay below 6,000 tokens, their verdicts below 2,000."""
CALLS = 5
"""Calls for one answer: claims of a long report beyond them keep their verdicts by words."""
REPLY = 150
"""Tokens of a reply for each of its claims: a sentence that is quoted, and the verdict."""
SECONDS = 240.0
"""All calls for one answer. Where a slow machine needs longer, the claims that are left stay `unchecked`."""
EXCERPTS = 3
EXCERPT = 600
"""Characters of an excerpt, about four sentences."""
SHORTEST_QUOTE = 8
Ruling = Literal[Verdict.SUPPORTED, Verdict.CONTRADICTED, Verdict.UNSUPPORTED]


class ClaimVerdict(Reply):
    number: int
    quote: str = ""
    verdict: Ruling


class AnswerVerdicts(Reply):
    claims: list[ClaimVerdict]
    answers: Relevance


@cache
def shape_of(count: int) -> type[AnswerVerdicts]:
    """Return the model of a record with this many verdicts. A small model keeps counting unless the number is fixed."""
    exactly: dict[str, JsonValue] = {"minItems": count, "maxItems": count}
    field = (list[ClaimVerdict], Field(min_length=1, json_schema_extra=exactly))
    return create_model("AnswerVerdicts", __base__=AnswerVerdicts, claims=field)


@dataclass(frozen=True, slots=True)
class Ruled:
    """A model's reply about some claims: a judgement of each, and how far they answer the question. `model` is the
    name that the endpoint reports."""

    judged: list[Judgement]
    answers: Relevance
    model: str


async def ask_model(
    context: RunContext, role: str, claims: Sequence[SourcedClaim], question: str, answer: str
) -> Ruled:
    """Ask a role about claims and about the answer that they come from.

    A claim that the model finds supported without quoting a source that bears it out is `unsupported`. Raises `Stop`,
    `DialectError` or `EndpointError`.
    """
    conversation = context.conversation(role, reply=REPLY * (len(claims) + 1))
    sampling = replace(conversation.config.sampling, temperature=0.0)
    conversation.config = replace(conversation.config, sampling=sampling)
    listed = "\n".join(f"{number}. {sanitize(claim.text)}" for number, claim in enumerate(claims, 1))
    packed = pack_claims(claims)
    excerpts = Filled(await run_apart(packed.size, excerpts_packed, packed, question))
    prompt = PROMPT.fill(excerpts=excerpts, question=sanitize(question), answer=sanitize(answer), claims=Filled(listed))
    reply = await ask_for_record(conversation, user(prompt), shape_of(len(claims)))
    rulings = {ruling.number: ruling for ruling in reversed(reply.claims)}
    judged = await asyncio.to_thread(_judge_all, claims, rulings)
    return Ruled(judged, reply.answers, conversation.trajectory.turns[-1].completion.model)


@dataclass(slots=True)
class ModelVerifier:
    """Asks a role about every claim that is not a copy, a dozen in one call, and about the answer as a whole. Nothing
    is asked if all claims are copies that speak of every word of the question.

    The role has to pass an exam first, unless the run context says otherwise; without it, and when the budget is used
    up, the verdicts by words count. If the model fails, copies stay supported, and the other claims are `unchecked`.
    `answers` is what the model says of the answer, None if it says nothing that counts.
    """

    context: RunContext
    role: str = ROLE
    name: str = "model"
    answers: Relevance | None = None

    async def verify(self, claims: Sequence[SourcedClaim], question: str) -> list[Judgement]:
        self.answers = None
        judged = await LexicalVerifier().verify(claims, question)
        until = asyncio.get_running_loop().time() + SECONDS
        doubted = [place for place, judgement in enumerate(judged) if not judgement.verdict.holds]
        settled = not doubted and not find_lacking(citations_of(claims, judged, self.name), question)
        if settled or not await self._passes_exam():
            return judged
        doubted = doubted or [0]  # for the verdict on the whole answer
        answer = "\n".join(claim.text for claim in claims)
        for begin in range(0, min(len(doubted), BATCH * CALLS), BATCH):
            chunk = doubted[begin : begin + BATCH]
            try:
                async with asyncio.timeout_at(until):
                    ruled = await ask_model(self.context, self.role, [claims[at] for at in chunk], question, answer)
            except Stop:
                self.context.note("the budget had no call left for the verifier: words alone checked the other claims")
                return judged
            except (DialectError, EndpointError, TimeoutError) as error:
                why = f"no verdict within {SECONDS:g} seconds" if isinstance(error, TimeoutError) else error.what
                unchecked = Judgement(Verdict.UNCHECKED, reason=f"the verifier failed: {why}")
                for place in chunk:
                    judged[place] = judged[place] if judged[place].verdict.holds else unchecked
                continue
            if not await self._passes_exam(ruled.model):
                return await LexicalVerifier().verify(claims, question)
            self.answers = self.answers or ruled.answers
            for place, judgement in zip(chunk, ruled.judged, strict=True):
                if not judged[place].verdict.holds:
                    missing = () if judgement.verdict.rank > Verdict.UNSUPPORTED.rank else judged[place].missing
                    near = judgement if judgement.quote else replace(judged[place], by=judgement.by)
                    judged[place] = replace(near, verdict=judgement.verdict, score=judgement.score, missing=missing)
        return judged

    async def _passes_exam(self, reported: str = "") -> bool:
        """Return whether the verdicts of the role count. An exam was passed by the model that the endpoint `reported`
        then."""
        if not self.context.exam:
            return True
        from hira.agents.exam import pass_exam  # the exam asks by this module

        return await pass_exam(self.context, self.role, reported)


def _judge_all(claims: Sequence[SourcedClaim], rulings: Mapping[int, ClaimVerdict]) -> list[Judgement]:
    return [_judge(claim, rulings.get(number)) for number, claim in enumerate(claims, 1)]


def _judge(claim: SourcedClaim, ruling: ClaimVerdict | None) -> Judgement:
    """Return the model's verdict. `supported` counts where the quotation is in a source and holds the names and
    numbers of the claim, and a calculation is supported by a computation or a tool alone."""
    if ruling is None or ruling.verdict is Verdict.UNSUPPORTED:
        return Judgement(Verdict.UNSUPPORTED, by="model")
    quote = flat(ruling.quote).strip("\"'. …")
    holder = next((source for source in readable(claim) if quote in flat(source.evidence)), None)
    unsupported = Judgement(Verdict.UNSUPPORTED, 0.0, ruling.quote.strip() if holder else "", by="model")
    if holder is None or len(quote) < min(SHORTEST_QUOTE, len(flat(holder.evidence))):
        return unsupported
    if holder.kind == "computation" and is_echo(ruling.quote, holder.call):
        return unsupported
    if ruling.verdict.holds:
        calculated = is_calculation(claim.text) and holder.kind not in ("computation", "tool")
        if calculated or not holds_values(claim.text, quote, holder.evidence, f"{name_source(holder)}\n{holder.call}"):
            return replace(unsupported, source=holder.id)
    return Judgement(ruling.verdict, float(ruling.verdict.holds), ruling.quote.strip(), holder.id, "model")


def readable(claim: SourcedClaim) -> Sequence[Source]:
    """The sources of a claim first, and for a bare answer all others too: its question may need them."""
    return tuple(dict.fromkeys([*claim.sources, *(claim.read if is_bare(claim.text) else ())]))


def excerpts_of(claims: Sequence[SourcedClaim], question: str = "") -> Filled:
    """The parts of the sources that are closest to the claims, each once, in the order of the sources."""
    parts: dict[str, tuple[Source, list[str], BM25]] = {}
    wanted: dict[str, set[int]] = {}
    for claim in claims:
        ranked: list[tuple[float, str, int]] = []
        sources = readable(claim)
        query = f"{claim.text} {question}" if len(sources) > len(claim.sources) else claim.text
        for source in sources:
            if source.id not in parts:
                cut = cut_text(source.evidence)
                parts[source.id] = source, cut, BM25(cut)
            scores = parts[source.id][2].scores(query)
            ranked += [(score, source.id, place) for place, score in enumerate(scores)]
        for _, source_id, place in sorted(ranked, key=lambda rated: -rated[0])[:EXCERPTS]:
            wanted.setdefault(source_id, set()).add(place)
    shown: list[str] = []
    for source_id, places in wanted.items():
        source, cut, _ = parts[source_id]
        head = " ".join(f"{source.title}: {source.call}".split())[:EXCERPT].rstrip(": ")
        text = "\n…\n".join(cut[place] for place in sorted(places))
        shown.append(fence(f"[{source_id}] {head}", text))
    return Filled("\n\n".join(shown))


def excerpts_packed(packed: PackedClaims, question: str) -> str:
    """`excerpts_of` where the claims come from another process."""
    return str(excerpts_of(unpack_claims(packed), question))


def cut_text(text: str) -> list[str]:
    """The text in pieces of about `EXCERPT` characters that end with a sentence or a line where they can."""
    pieces: list[str] = []
    begin = 0
    while begin < len(text):
        end = begin + EXCERPT
        if end < len(text):
            stop = max(text.rfind(sign, begin + EXCERPT // 2, end) for sign in (". ", "\n", "。"))
            end = stop + 1 if stop > 0 else end
        pieces.append(text[begin:end].strip())
        begin = end
    return [piece for piece in pieces if piece]


@dataclass(frozen=True, slots=True)
class RecordedVerifier:
    """A plug-in whose judgements the journal keeps, so that a replay needs neither the plug-in nor its weights."""

    verifier: Verifier
    context: RunContext

    @property
    def name(self) -> str:
        return self.verifier.name

    async def verify(self, claims: Sequence[SourcedClaim], question: str) -> Sequence[Judgement]:
        values: Mapping[str, Any] = {
            "question": question,
            "claims": [[claim.text, *(_identify(source) for source in claim.sources)] for claim in claims],
        }
        spec = CallSpec("tool", ROLE, digest_of_tool(ROLE, values), self.name, lambda: values)
        judge, decode = partial(self.verifier.verify, claims, question), partial(validate, list[Judgement])
        return await self.context.call_recorded(spec, judge, list, decode)


def _identify(source: Source) -> str:
    """A source's id with a digest of its text: another run's source of this id is another."""
    return f"{source.id} {hashlib.sha256(source.text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


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
    return await context.once(f"check with {len(run.sources)} sources: {run.answer}", partial(_check_answer, context))


async def _check_answer(context: RunContext) -> CheckedAnswer:
    run = context.rollout
    by_model = ModelVerifier(context) if context.verify == "model" and not run.failure else None
    plugged = RecordedVerifier(context.verifier, context) if context.verifier else None
    verifier: Verifier = plugged or by_model or LexicalVerifier()  # a failed endpoint is not asked again
    citations, reasons = await verify_answer(run.answer, run.sources, run.question, verifier)
    if by_model and by_model.answers and not plugged:
        return CheckedAnswer(citations, reasons, by_model.answers)
    lacking = find_lacking(citations, run.question)
    held = any(citation.verdict.holds for citation in citations)
    return CheckedAnswer(citations, reasons, (Relevance.NO if lacking else Relevance.YES) if held else None, lacking)
