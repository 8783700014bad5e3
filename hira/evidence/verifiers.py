"""The check of an answer: its claims and their sources go to a verifier, and the judgements become citations.

A verifier is any object with a `name` and `async verify(claims, question)`. `LexicalVerifier` needs no model; the one
that asks a model is in `hira.agents.model_verifier`, adapters for published fact checkers in `hira.evidence.adapters`.
"""

import asyncio
import logging
import re
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from hira.core.bm25 import words
from hira.core.concurrency import run_apart
from hira.core.errors import HiraError
from hira.core.patterns import compile_lazily
from hira.core.sources import Source, Sources
from hira.evidence.citations import Citation, Judgement, PackedClaims, SourcedClaim, pack_claims, unpack_claims
from hira.evidence.claims import claims
from hira.evidence.passages import read_words
from hira.evidence.verdicts import Verdict

SECONDS = 300.0
"""A slower verifier is abandoned: models on one processor judge a dozen claims in two minutes."""
CANDIDATES = 5
"""The number of sources that an uncited claim is compared with: those that share the most of its rare words."""
_SEVERAL = compile_lazily(r"\band\b|[,;，、；]|[?？]\s*\w", re.IGNORECASE)
LONG = 10
"""An answer with at least this number of claims is a report."""
_log = logging.getLogger("hira.evidence")


@runtime_checkable
class Verifier(Protocol):
    """Judges claims by their sources. Citations show `name` as `by` if a judgement names no verifier."""

    @property
    def name(self) -> str: ...

    async def verify(self, claims: Sequence[SourcedClaim], question: str) -> Sequence[Judgement]:
        """Return one judgement for each claim, in their order."""
        ...


def bind_claims(text: str, sources: Sources) -> list[SourcedClaim]:
    """Return the claims of an answer with the sources that each cites; an uncited one with the closest sources."""
    sourced_claims: list[SourcedClaim] = []
    index: dict[str, set[str]] = {}
    for claim in claims(text):
        named = tuple(sources.read[source] for source in claim.sources if source in sources)
        if not named and not index:
            for source in sources.read.values():
                for word in set(words(f"{source.title} {source.call} {source.evidence}")):
                    index.setdefault(word, set()).add(source.id)
        if named or sources.read:
            chosen = named or _closest(claim.text, sources, index)
            sourced_claims.append(SourcedClaim(claim.text, chosen, not named, tuple(sources.read.values())))
    return sourced_claims


def bind_packed(text: str, read: list[Source]) -> list[tuple[str, list[int], bool, list[int]]]:
    """Call `bind_claims` with sources from another process; the claims refer to them by their position in the list."""
    return pack_claims(bind_claims(text, Sources({source.id: source for source in read})), read).claims


def _closest(claim: str, sources: Sources, index: dict[str, set[str]]) -> tuple[Source, ...]:
    scores = dict.fromkeys(sources.read, 0.0)
    for word in set(words(claim)):
        holders = index.get(word, set())
        for holder in holders:
            scores[holder] += 1 / len(holders)
    ranked = sorted(scores, key=lambda holder: -scores[holder])[:CANDIDATES]
    return tuple(sources.read[holder] for holder in ranked)


def citations_of(bound: Sequence[SourcedClaim], judged: Sequence[Judgement], name: str) -> list[Citation]:
    """Return one citation for each claim and source that the answer cites, and one for each attributed claim."""
    citations: list[Citation] = []
    for claim, judgement in zip(bound, judged, strict=True):
        best = next((source for source in claim.sources if source.id == judgement.source), claim.sources[0])
        for source in [best] if claim.attributed else claim.sources:
            quote = judgement.quote if source.id == best.id else ""
            checked = (judgement.verdict, round(judgement.score, 4), judgement.by or name, claim.attributed)
            words_left = (judgement.missing, judgement.lacking)
            citations.append(Citation(source.id, claim.text, quote, *checked, *words_left, source.find_place(quote)))
    return citations


async def verify_answer(
    text: str, sources: Sources, question: str, verifier: Verifier, *, seconds: float = SECONDS
) -> tuple[list[Citation], list[str]]:
    """Check the claims of an answer. Return the citations, and the reasons why claims are unchecked.

    If a verifier raises, takes longer than `seconds` or does not return a judgement for each claim, every claim is
    `unchecked`.
    """
    try:
        read = list(sources.read.values())
        size = sum(len(source.text) for source in read)
        bound = unpack_claims(PackedClaims(read, await run_apart(size, bind_packed, text, read)))
    except Exception as error:  # noqa: BLE001 - no text may cost the answer
        _log.info("the claims of the answer could not be read", exc_info=True)
        return [], [f"the claims of the answer could not be read: {type(error).__name__}: {error}"]
    try:
        async with asyncio.timeout(seconds):
            judged = list(await verifier.verify(bound, question)) if bound else []
        wrong = [one for one in judged if not (isinstance(one, Judgement) and 0 <= one.score <= 1)]
        if wrong or len(judged) != len(bound):
            counts = f"{len(judged)} judgements for {len(bound)} claims"
            what = f"no judgement: {wrong[0]!r:.80}" if wrong else counts
            raise HiraError(what, fix="return one hira.evidence.Judgement a claim, in their order")
    except Exception as error:  # noqa: BLE001 - a verifier is somebody's code, and may not cost the answer
        _log.info("the verifier failed", exc_info=True)
        slow = isinstance(error, TimeoutError)
        why = f"no verdict within {seconds:g} seconds" if slow else f"{type(error).__name__}: {error}"
        reason = f"verifier {verifier.name!r} failed: {why}"
        judged = [Judgement(Verdict.UNCHECKED, reason=reason)] * len(bound)
    citations = citations_of(bound, judged, verifier.name)
    return citations, list(dict.fromkeys(judgement.reason for judgement in judged if judgement.reason))


def verify(text: str, sources: Sources, question: str = "") -> list[Citation]:
    """Return the citations of an answer, checked by words alone, in synchronous code."""
    return _cite_by_words(bind_claims(text, sources), question)


def check(claim: str, source: Source, question: str = "") -> Citation:
    """Check one claim against one source by words alone."""
    return _cite_by_words([SourcedClaim(claim, (source,))], question)[0]


def _cite_by_words(bound: Sequence[SourcedClaim], question: str) -> list[Citation]:
    from hira.evidence.lexical_verifier import LexicalVerifier

    return citations_of(bound, LexicalVerifier().judge(bound, question), LexicalVerifier.name)


def find_lacking(citations: Sequence[Citation], question: str) -> tuple[str, ...]:
    """Return the words of the question that no supported claim speaks of, alone or together with the supported claims
    that name the same thing. If the question asks about several things ("and", or a second question), all supported
    claims count together. An answer that holds may answer another question."""
    several = bool(_SEVERAL.search(question))
    held = [citation for citation in citations if citation.verdict.holds]
    names = [{word.key for word in read_words(citation.claim) if word.kind == "name"} for citation in held]
    lacking: list[list[str]] = []
    for citation, ours in zip(held, names, strict=True):
        others = [set(other.lacking) for other, theirs in zip(held, names, strict=True) if several or ours & theirs]
        lacking.append([word for word in citation.lacking if all(word in words for words in others)])
    fewest = min(map(len, lacking), default=0)
    return next((tuple(words) for words in lacking if len(words) == fewest), ())


def is_accepted(citations: Sequence[Citation]) -> bool:
    """Return whether the sources support an answer: no claim is contradicted or left unconfirmed.

    An answer of `LONG` claims or more is a report; one claim in `LONG` may be unconfirmed.
    """
    held, made = count_held(citations)
    if not held or any(citation.verdict.denies for citation in citations):
        return False
    return made - held <= made // LONG if made >= LONG else find_unconfirmed(citations) is None


def count_held(citations: Sequence[Citation]) -> tuple[int, int]:
    """Return how many claims of an answer are supported, and how many there are."""
    verdicts = {citation.claim: citation.verdict for citation in citations}
    return sum(verdict.holds for verdict in verdicts.values()), len(verdicts)


def find_unconfirmed(citations: Sequence[Citation]) -> Citation | None:
    """Return the first claim that keeps an answer that is no report from being accepted, None if the sources support
    it.

    The main claim comes first: the one that cites a source or has two content words ("It depends." has one).
    """
    main = next((one for one in citations if not one.attributed or len(words(one.claim)) > 1), None)
    others = (one for one in citations if main is None or one.claim != main.claim)
    return next((one for one in (main, *others) if one and not one.verdict.holds), None)
