"""A model rules on claims: what it is shown of the sources, and which of its verdicts count."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hira.agents.record import Reply, ask_for_record, fix_count
from hira.agents.run_context import RunContext
from hira.core.bm25 import BM25
from hira.core.concurrency import run_apart
from hira.core.messages import Filled, user
from hira.core.prompts import Prompt
from hira.core.sanitize import fence, sanitize
from hira.evidence import Judgement, Relevance, Source, SourcedClaim, Verdict
from hira.evidence.citations import PackedClaims, pack_claims, unpack_claims
from hira.evidence.lexical_verifier import flat, is_calculation, name_source
from hira.evidence.passages import read_words
from hira.evidence.questions import BARE
from hira.evidence.quotations import holds_values
from hira.evidence.records import find_fault

PROMPT = Prompt(__file__, "verifier")
REPLY = 150
"""Tokens of a reply for each of its claims: a sentence that is quoted, and the verdict."""
SECONDS = 240.0
"""All calls for one answer. Where a slow machine needs longer, the claims that are left stay `unchecked`."""
EXCERPTS = 3
EXCERPT = 600
"""Characters of an excerpt, about four sentences."""
SHORTEST_QUOTE = 8
VERSION = 2
"""Raise it if the prompt, the verdicts or the exam's items change: every model then repeats the exam."""
Ruling = Literal[Verdict.SUPPORTED, Verdict.CONTRADICTED, Verdict.UNSUPPORTED]


class ClaimVerdict(Reply):
    number: int
    quote: str = ""
    verdict: Ruling


class AnswerVerdicts(Reply):
    claims: list[ClaimVerdict]
    answers: Relevance


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
    """Ask a role about claims and about the answer that they come from. A claim that the model finds supported without
    quoting a source that bears it out is `unsupported`. Raises `Stop`, `DialectError` or `EndpointError`."""
    conversation = context.conversation(role, reply=REPLY * (len(claims) + 1), temperature=0.0)
    listed = "\n".join(f"{number}. {sanitize(claim.text)}" for number, claim in enumerate(claims, 1))
    packed = pack_claims(claims)
    excerpts = Filled(await run_apart(packed.size, excerpts_of, packed, question))
    prompt = PROMPT.fill(excerpts=excerpts, question=sanitize(question), answer=sanitize(answer), claims=Filled(listed))
    reply = await ask_for_record(conversation, user(prompt), fix_count(AnswerVerdicts, "claims", len(claims), least=1))
    rulings = {ruling.number: ruling for ruling in reversed(reply.claims)}
    judged = await asyncio.to_thread(
        lambda: [_judge(claim, rulings.get(number), question) for number, claim in enumerate(claims, 1)]
    )
    return Ruled(judged, reply.answers, conversation.trajectory.turns[-1].completion.model)


def _judge(claim: SourcedClaim, ruling: ClaimVerdict | None, question: str) -> Judgement:
    """Return the model's verdict. `supported` counts where the quotation is in a source and holds the names and
    numbers of the claim; only a computation or a tool supports a calculation, by what it adds to its call."""
    if ruling is None or ruling.verdict is Verdict.UNSUPPORTED:
        return Judgement(Verdict.UNSUPPORTED, by="model")
    quote = flat(ruling.quote).strip("\"'. …")
    holder = next((source for source in readable(claim) if quote in flat(source.evidence)), None)
    unsupported = Judgement(Verdict.UNSUPPORTED, 0.0, ruling.quote.strip() if holder else "", by="model")
    if holder is None or len(quote) < min(SHORTEST_QUOTE, len(flat(holder.evidence))):
        return unsupported
    if find_fault(claim.text, ruling.quote, holder, question, claim.read):
        return unsupported
    if ruling.verdict.holds:
        calculated = is_calculation(claim.text) and holder.kind not in ("computation", "tool")
        if calculated or not holds_values(claim.text, quote, holder.evidence, f"{name_source(holder)}\n{holder.call}"):
            return replace(unsupported, source=holder.id)
    return Judgement(ruling.verdict, float(ruling.verdict.holds), ruling.quote.strip(), holder.id, "model")


def readable(claim: SourcedClaim) -> Sequence[Source]:
    """The sources of a claim first, and for a bare answer all others too: its question may need them."""
    bare = len(read_words(claim.text)) <= BARE  # it makes sense only together with its question
    return tuple(dict.fromkeys([*claim.sources, *(claim.read if bare else ())]))


def excerpts_of(packed: PackedClaims, question: str) -> str:
    """The parts of the sources that are closest to the claims, each once, in the order of the sources."""
    parts: dict[str, tuple[Source, list[str], BM25]] = {}
    wanted: dict[str, set[int]] = {}
    for claim in unpack_claims(packed):
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
    return "\n\n".join(shown)


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
