"""How a run has its answer checked: by words alone, by a model that reads the sources, or by a plug-in."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Literal

from pydantic import Field, JsonValue, create_model

from hira.agents.record import Reply, ask_for_record
from hira.agents.run_context import RunContext
from hira.core.bm25 import BM25, words
from hira.core.errors import DialectError, EndpointError, Stop
from hira.core.messages import Filled, user
from hira.core.prompts import Prompt
from hira.core.sanitize import clean, sanitize
from hira.core.worker import run_apart
from hira.evidence import Citation, Judgement, LexicalVerifier, Source, SourcedClaim, Verifier, verify_answer
from hira.evidence.citations import PackedClaims, pack_claims, unpack_claims
from hira.evidence.lexical import BARE
from hira.evidence.lexical_verifier import flat, is_echo
from hira.journal import CallSpec
from hira.journal.encoding import digest_of_tool

PROMPT = Prompt(__file__, "verifier")
ROLE = "verifier"
DOUBT = 0.75
"""Claims with a lower score by words go to the model. On the dev halves of WiCE and ExpertQA people find five of six
claims above it supported, and six of ten of those that words reject in the answers of ExpertQA."""
BATCH = 12
"""Claims of one call: their excerpts stay below 6,000 tokens, their verdicts below 2,000."""
CALLS = 5
"""Calls for one answer: the doubtful claims of a long report beyond them keep their verdicts by words."""
REPLY = 150
"""Tokens of a reply for each of its claims: a sentence that is quoted, and the verdict."""
SECONDS = 240.0
"""All calls for one answer. Where a slow machine needs longer, the claims that are left stay `unchecked`."""
EXCERPTS = 3
EXCERPT = 600
"""Characters of an excerpt, about four sentences."""
SHORTEST_QUOTE = 8


class ClaimVerdict(Reply):
    number: int
    quote: str = ""
    verdict: Literal["supported", "contradicted", "unsupported"]


@cache
def shape_of(count: int) -> type[Any]:
    """Return the model of a record with this many verdicts. A small model keeps counting unless the number is fixed."""
    exactly: dict[str, JsonValue] = {"minItems": count, "maxItems": count}
    return create_model(
        "ClaimVerdicts", __base__=Reply, claims=(list[ClaimVerdict], Field(min_length=1, json_schema_extra=exactly))
    )


@dataclass(slots=True)
class ModelVerifier:
    """Asks a role about the claims that the lexical check is not sure of, or about `every` one, a dozen in one call.

    The passage that the model quotes must occur in a source of the claim; otherwise the lexical verdict stays. It also
    stays when the budget is used up. If the model fails, lexically supported claims stay supported, and the others are
    `unchecked`.
    """

    context: RunContext
    role: str = ROLE
    every: bool = False
    name: str = "model"

    async def verify(self, claims: Sequence[SourcedClaim], question: str) -> list[Judgement]:
        found = await LexicalVerifier().verify(claims, question)
        doubted = [at for at, one in enumerate(found) if self.every or is_doubted(one)]
        until = asyncio.get_running_loop().time() + SECONDS
        for begin in range(0, min(len(doubted), BATCH * CALLS), BATCH):
            chunk = doubted[begin : begin + BATCH]
            some = [claims[at] for at in chunk]
            for at, one in zip(chunk, await self._ask(some, [found[at] for at in chunk], question, until), strict=True):
                found[at] = one
        return found

    async def _ask(
        self, claims: Sequence[SourcedClaim], lexical: Sequence[Judgement], question: str, until: float
    ) -> list[Judgement]:
        conversation = self.context.conversation(self.role, reply=REPLY * (len(claims) + 1))
        sampling = replace(conversation.config.sampling, temperature=0.0)
        conversation.config = replace(conversation.config, sampling=sampling)
        listed = "\n".join(f"{number}. {sanitize(one.text)}" for number, one in enumerate(claims, 1))
        packed = pack_claims(claims)
        excerpts = Filled(await run_apart(packed.size, excerpts_packed, packed, question))
        prompt = PROMPT.fill(excerpts=excerpts, question=sanitize(question), claims=Filled(listed))
        try:
            async with asyncio.timeout_at(until):
                reply = await ask_for_record(conversation, user(prompt), shape_of(len(claims)))
        except Stop:
            self.context.note("the budget had no call left for the verifier: the claims were compared by words alone")
            return list(lexical)
        except (DialectError, EndpointError, TimeoutError) as error:
            why = f"no verdict within {SECONDS:g} seconds" if isinstance(error, TimeoutError) else error.what
            reason = f"the verifier failed: {why}"
            unchecked = Judgement("unchecked", reason=reason)
            return [replace(one, reason=reason) if one.verdict == "supported" else unchecked for one in lexical]
        return await asyncio.to_thread(_judgements, claims, reply.claims, lexical)


def is_doubted(one: Judgement) -> bool:
    """Return whether a lexical verdict needs a second opinion."""
    return one.verdict != "supported" or one.score < DOUBT


def _judgements(
    claims: Sequence[SourcedClaim], replied: Sequence[ClaimVerdict], lexical: Sequence[Judgement]
) -> list[Judgement]:
    given = {one.number: one for one in reversed(replied)}
    return [_judgement(claim, given.get(number), lexical[number - 1]) for number, claim in enumerate(claims, 1)]


def _judgement(claim: SourcedClaim, given: ClaimVerdict | None, lexical: Judgement) -> Judgement:
    """The model's verdict, or the one by words where the model gave none or quotes what no source says."""
    if given is None:
        return lexical
    if given.verdict == "unsupported":
        return Judgement("unsupported", 0.0, lexical.quote, lexical.source, "model")
    quote = flat(given.quote).strip("\"'. …")
    holder = next((one for one in readable(claim) if quote in flat(one.evidence)), None)
    if holder is None or len(quote) < min(SHORTEST_QUOTE, len(flat(holder.evidence))):
        return lexical
    if holder.kind == "computation" and is_echo(given.quote, holder.call):
        return lexical
    return Judgement(given.verdict, float(given.verdict == "supported"), given.quote.strip(), holder.id, "model")


def readable(claim: SourcedClaim) -> Sequence[Source]:
    """The sources of a claim first, and for a bare answer all others too: its question may need them."""
    bare = len(words(claim.text)) <= BARE
    return tuple(dict.fromkeys([*claim.sources, *(claim.read if bare else ())]))


def excerpts_of(claims: Sequence[SourcedClaim], question: str = "") -> Filled:
    """The parts of the sources that are closest to the claims, each once, in the order of the sources."""
    parts: dict[str, tuple[Source, list[str], BM25]] = {}
    wanted: dict[str, set[int]] = {}
    for claim in claims:
        ranked: list[tuple[float, str, int]] = []
        sources = readable(claim)
        asked = f"{claim.text} {question}" if len(sources) > len(claim.sources) else claim.text
        for source in sources:
            if source.id not in parts:
                cut = cut_text(source.evidence)
                parts[source.id] = source, cut, BM25(cut)
            scores = parts[source.id][2].scores(asked)
            ranked += [(score, source.id, at) for at, score in enumerate(scores)]
        for _, source_id, at in sorted(ranked, key=lambda one: -one[0])[:EXCERPTS]:
            wanted.setdefault(source_id, set()).add(at)
    shown: list[str] = []
    for source_id, places in wanted.items():
        source, cut, _ = parts[source_id]
        head = " ".join(f"{source.title}: {source.call}".split())[:EXCERPT].rstrip(": ")
        text = "\n…\n".join(clean(cut[at]) for at in sorted(places))
        shown.append(f'[{source_id}] {clean(head)}\n"""\n{text}\n"""')
    return Filled("\n\n".join(shown))


def excerpts_packed(packed: PackedClaims, question: str) -> str:
    """`excerpts_of` where the claims come from another process."""
    return str(excerpts_of(unpack_claims(packed), question))


def cut_text(text: str) -> list[str]:
    """The text in pieces of about `EXCERPT` characters that end with a sentence or a line where they can."""
    found: list[str] = []
    at = 0
    while at < len(text):
        end = at + EXCERPT
        if end < len(text):
            stop = max(text.rfind(sign, at + EXCERPT // 2, end) for sign in (". ", "\n", "。"))
            end = stop + 1 if stop > 0 else end
        found.append(text[at:end].strip())
        at = end
    return [one for one in found if one]


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
            "claims": [[one.text, *(_identify(source) for source in one.sources)] for one in claims],
        }
        spec = CallSpec("tool", ROLE, digest_of_tool(ROLE, values), self.name, lambda: values)
        return await self.context.call_recorded(spec, lambda: self.verifier.verify(claims, question), _encode, _decode)


def _identify(source: Source) -> str:
    """A source's id with a digest of its text: another run's source of this id is another."""
    return f"{source.id} {hashlib.sha256(source.text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _encode(judged: Sequence[Judgement]) -> list[dict[str, Any]]:
    return [asdict(one) for one in judged]


def _decode(stored: Any) -> list[Judgement]:
    return [Judgement(**one) for one in stored]


async def check_answer(context: RunContext) -> tuple[list[Citation], list[str]]:
    """The citations of the run's answer as the run's verifier judges them, and the reasons why some are unchecked."""
    run, verify = context.rollout, context.verify
    verifier: Verifier = LexicalVerifier()
    if context.verifier:
        verifier = RecordedVerifier(context.verifier, context)
    elif verify == "model" and not run.failure:  # an endpoint that just failed is not asked again
        verifier = ModelVerifier(context)
    return await verify_answer(run.answer, run.sources, run.question, verifier)
