"""Verifiers: claims with their sources in, verdicts out. `LexicalVerifier` needs no model.

A verifier is any object with a `name` and `async verify(claims, question)`. The one that asks a model is
`hira.agents.model_verifier`; adapters for MiniCheck and LettuceDetect are beside this module.
"""

import ast
import asyncio
import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

from hira.errors import HiraError
from hira.evidence.citations import Citation
from hira.evidence.claims import claims
from hira.evidence.lexical import Passages, score_claim
from hira.evidence.source import Source, Sources
from hira.evidence.verdict import Verdict
from hira.relevance import words

SECONDS = 300.0
"""A verifier that takes longer is given up: models on one processor judge a dozen claims in two minutes."""
LEXICAL_SECONDS = 30.0
"""Far above what an answer takes by words alone; only a hostile source gets there."""
CANDIDATES = 5
"""Sources that an uncited claim is held against: those that share the most of its rare words."""
LONG = 10
"""An answer with so many claims is a report: it has no main claim, and half of its claims have to be supported."""
LONGEST_QUOTE = 1_000
_LOOSE = re.IGNORECASE | re.MULTILINE
_log = logging.getLogger("hira.evidence")


@dataclass(frozen=True, slots=True)
class SourcedClaim:
    """A claim and the sources that it is held against: those that the answer cites for it, or `attributed` ones."""

    text: str
    sources: tuple[Source, ...]
    attributed: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a verifier says of one claim.

    `score` is between 0 and 1, the confidence that the claim is supported. `quote` is the passage that decided and
    `source` the id of the source that holds it, empty if there is none. `reason` says why a claim is `unchecked`.
    """

    verdict: Verdict
    score: float = 0.0
    quote: str = ""
    source: str = ""
    by: str = ""
    reason: str = ""


@runtime_checkable
class Verifier(Protocol):
    """Judges claims by their sources. `name` is shown as `by` where a judgement names none."""

    @property
    def name(self) -> str: ...

    async def verify(self, claims: Sequence[SourcedClaim], question: str) -> Sequence[Judgement]:
        """One judgement for each claim, in their order."""
        ...


class LexicalVerifier:
    """Compares words, numbers and names, in a thread. Claims after `seconds` are `unchecked`."""

    name = "lexical"

    def __init__(self, seconds: float = LEXICAL_SECONDS) -> None:
        self.seconds = seconds

    async def verify(self, claims: Sequence[SourcedClaim], question: str) -> list[Judgement]:
        return await asyncio.to_thread(self.judge, claims, question)

    def judge(self, claims: Sequence[SourcedClaim], question: str = "") -> list[Judgement]:
        """`verify` for code that is not async."""
        until = time.monotonic() + self.seconds
        texts: dict[str, _Text] = {}
        found: list[Judgement] = []
        for claim in claims:
            if time.monotonic() > until:
                found.append(Judgement("unchecked", reason=f"the check took more than {self.seconds:g} seconds"))
                continue
            read = [texts.setdefault(one.id, _Text(one)) for one in claim.sources]
            try:
                found.append(_best(claim, read, question))
            except Exception as error:  # noqa: BLE001 - no text that was read may cost the answer
                _log.exception("the check of a claim failed")
                found.append(Judgement("unchecked", reason=f"the check failed: {type(error).__name__}: {error}"))
        return found


class _Text:
    """A source, split and indexed at its first use."""

    def __init__(self, source: Source) -> None:
        self.source = source

    @cached_property
    def passages(self) -> Passages:
        return Passages(self.source.evidence)

    @property
    def context(self) -> str:
        return f"{self.source.title}\n{self.source.call}"


_ORDER: Sequence[Verdict] = ("unchecked", "unsupported", "contradicted", "supported")


def _best(claim: SourcedClaim, read: Sequence[_Text], question: str) -> Judgement:
    """The judgement of the source that says most about the claim, or of all cited sources together."""
    alone = [_judge(claim.text, one.passages, one.source, question, one.context) for one in read]
    best = max(alone, key=lambda one: (_ORDER.index(one.verdict), one.score), default=Judgement("unsupported"))
    if best.verdict == "unsupported" and len(read) > 1 and not claim.attributed:
        every = Passages("\n\n".join(one.source.evidence for one in read))
        together = _judge(
            claim.text, every, replace(read[0].source, id=""), question, "\n".join(one.context for one in read)
        )
        best = together if together.verdict == "supported" else best
    return best


def _judge(claim: str, passages: Passages, source: Source, question: str, context: str) -> Judgement:
    if quote := find_quote(claim, source.evidence):
        return _unless_echo(Judgement("supported", 1.0, quote, source.id, "quote"), source)
    if source.call:  # made for the question: a bare figure in what came back answers it
        question, context = "", f"{context}\n{question}"
    score = score_claim(claim, passages, question=question, context=context)
    return _unless_echo(Judgement(score.verdict, score.score, score.quote, source.id, "lexical"), source)


def _unless_echo(one: Judgement, source: Source) -> Judgement:
    if one.verdict == "supported" and source.kind == "computation" and is_echo(one.quote, source.call):
        return replace(one, verdict="unchecked", score=0.0, reason="a program only printed what it was written with")
    return one


def is_echo(line: str, program: str) -> bool:
    """Whether a line of output only repeats strings and numbers that the program was written with.

    What a program chose is no echo: an element of a collection, or a line of a text, of which others were not printed.
    """
    try:
        nodes = list(ast.walk(ast.parse(program)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    written = [node for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float)]
    groups = [str(one.value).splitlines() for one in written]
    literals = {text.strip() for group in groups for text in group}
    groups = [group for group in groups if len(group) > 1]
    for node in nodes:
        if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            groups.append([str(one.value) for one in ast.walk(node) if isinstance(one, ast.Constant)])
    chosen = {text for group in groups if any(text not in line for text in group) for text in group}
    for text in sorted(literals - chosen, key=len, reverse=True):
        line = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", " ", line) if text else line
    return not re.search(r"\w", line)


def find_quote(claim: str, text: str) -> str:
    """The claim as it stands in the text, between two marks of punctuation; empty if it does not."""
    if len(words(claim)) < 2 or len(claim) > LONGEST_QUOTE:
        return ""
    spelled = r"\s+".join(map(re.escape, claim.split()))
    found = re.search(
        rf"(?:^|[.!?:;,…。！？：；，\"“(*>|-])[^\S\n]*({spelled})(?=\s*(?:$|[.!?:;,…。！？：；，\"”)*|]))", text, _LOOSE
    )
    return found[1] if found else ""


def flat(text: str) -> str:
    """A text as quotations are compared: in small letters, with straight quotes and single blanks."""
    return " ".join(text.translate(_STRAIGHT).casefold().split())


_STRAIGHT = str.maketrans("’‘“”„«»–—", '\'\'"""""--')


def bind_claims(text: str, sources: Sources) -> list[SourcedClaim]:
    """The claims of an answer with the sources that each cites; an uncited one with the sources closest to it."""
    found: list[SourcedClaim] = []
    index: dict[str, set[str]] = {}
    for claim in claims(text):
        named = tuple(sources.read[one] for one in claim.sources if one in sources)
        if not named and not index:
            for source in sources.read.values():
                for word in set(words(f"{source.title} {source.call} {source.evidence}")):
                    index.setdefault(word, set()).add(source.id)
        if named or sources.read:
            found.append(SourcedClaim(claim.text, named or _closest(claim.text, sources, index), attributed=not named))
    return found


def _closest(claim: str, sources: Sources, index: dict[str, set[str]]) -> tuple[Source, ...]:
    scores = dict.fromkeys(sources.read, 0.0)
    for word in set(words(claim)):
        holders = index.get(word, set())
        for one in holders:
            scores[one] += 1 / len(holders)
    ranked = sorted(scores, key=lambda one: -scores[one])[:CANDIDATES]
    return tuple(sources.read[one] for one in ranked)


def citations_of(bound: Sequence[SourcedClaim], judged: Sequence[Judgement], name: str) -> list[Citation]:
    """One citation for each claim and source that the answer cites; one for an attributed claim."""
    found: list[Citation] = []
    for claim, one in zip(bound, judged, strict=True):
        best = next((source for source in claim.sources if source.id == one.source), claim.sources[0])
        for source in [best] if claim.attributed else claim.sources:
            quote = one.quote if source.id == best.id else ""
            by = one.by or name
            found.append(Citation(source.id, claim.text, quote, one.verdict, round(one.score, 4), by, claim.attributed))
    return found


async def verify_answer(
    text: str, sources: Sources, question: str, verifier: Verifier, *, seconds: float = SECONDS
) -> tuple[list[Citation], list[str]]:
    """Check the claims of an answer. Returns the citations, and the reasons why claims are unchecked.

    A verifier that raises, takes longer than `seconds` or returns something else than a judgement for each claim leaves
    every claim `unchecked`.
    """
    try:
        bound = await asyncio.to_thread(bind_claims, text, sources)
    except Exception as error:  # noqa: BLE001 - no text may cost the answer
        _log.exception("the claims of the answer could not be read")
        return [], [f"the claims of the answer could not be read: {type(error).__name__}: {error}"]
    try:
        async with asyncio.timeout(seconds):
            judged = list(await verifier.verify(bound, question)) if bound else []
        _check_judgements(judged, bound)
    except Exception as error:  # noqa: BLE001 - a verifier is somebody's code, and may not cost the answer
        _log.exception("the verifier failed")
        slow = isinstance(error, TimeoutError)
        why = f"no verdict within {seconds:g} seconds" if slow else f"{type(error).__name__}: {error}"
        reason = f"verifier {verifier.name!r} failed: {why}"
        judged = [Judgement("unchecked", reason=reason)] * len(bound)
    citations = citations_of(bound, judged, verifier.name)
    return citations, list(dict.fromkeys(one.reason for one in judged if one.reason))


def _check_judgements(judged: Sequence[object], bound: Sequence[SourcedClaim]) -> None:
    """Raise `HiraError` unless a verifier returned one well-formed judgement for each claim."""
    wrong = [
        one for one in judged if not (isinstance(one, Judgement) and one.verdict in _ORDER and 0 <= one.score <= 1)
    ]
    if wrong or len(judged) != len(bound):
        what = f"{len(judged)} judgements for {len(bound)} claims" if not wrong else f"no judgement: {wrong[0]!r:.80}"
        raise HiraError(what, fix="return one hira.evidence.Judgement a claim, in their order")


def verify(text: str, sources: Sources, question: str = "") -> list[Citation]:
    """The citations of an answer, checked by words alone, for code that is not async."""
    bound = bind_claims(text, sources)
    return citations_of(bound, LexicalVerifier().judge(bound, question), LexicalVerifier.name)


def check(claim: str, source: Source, question: str = "") -> Citation:
    """Check one claim against one source by words alone."""
    bound = [SourcedClaim(claim, (source,))]
    return citations_of(bound, LexicalVerifier().judge(bound, question), LexicalVerifier.name)[0]


def is_accepted(citations: Sequence[Citation]) -> bool:
    """Whether an answer rests on its sources: its main claim is supported, and none is contradicted.

    The main claim is the first one that cites a source or has two content words ("It depends." has one). An answer of
    `LONG` claims or more has no main claim; half of them have to be supported.
    """
    verdicts = {one.claim: one.verdict for one in citations}
    held = sum(verdict == "supported" for verdict in verdicts.values())
    if not held or "contradicted" in verdicts.values():
        return False
    if len(verdicts) >= LONG:
        return held * 2 >= len(verdicts)
    main = next((one for one in citations if not one.attributed or len(words(one.claim)) > 1), citations[0])
    return main.verdict == "supported"
