"""The verifier that needs no model: each claim is compared with the sentences of its sources."""

import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from hira.core.concurrency import run_apart
from hira.core.patterns import compile_lazily
from hira.core.sources import Source
from hira.evidence.citations import Judgement, PackedClaims, SourcedClaim, pack_claims, unpack_claims
from hira.evidence.claims import read_polarity
from hira.evidence.copies import check_words
from hira.evidence.passages import Passages, is_denied
from hira.evidence.questions import asks_yes_no
from hira.evidence.verdicts import Verdict

LEXICAL_SECONDS = 30.0
"""Far more than the check of an answer takes; only a hostile source needs that long."""
_CALCULATION = compile_lazily(r"\d\s*(?:[-+*×÷/^−]|\*\*)\s*[\d(]|=\s*[-−]?\d")
_OPERATION = compile_lazily(r"\d\s*(?:[-+*×÷/^−]|\*\*)\s*[\d(]")
_DATE = compile_lazily(r"\b\d{1,4}([-/.])\d{1,2}\1\d{1,4}\b|\b\d{4}\s*[-–/]\s*\d{2,4}\b")
_log = logging.getLogger("hira.evidence")


@dataclass(eq=False)
class LexicalVerifier:
    """Confirms copies, without blocking the event loop. Claims after `seconds` are `unchecked`."""

    seconds: float = LEXICAL_SECONDS
    name = "lexical"

    async def verify(self, claims: Sequence[SourcedClaim], question: str) -> list[Judgement]:
        packed = pack_claims(claims)
        return await run_apart(packed.size, judge_packed, packed, question, self.seconds)

    def judge(self, claims: Sequence[SourcedClaim], question: str = "") -> list[Judgement]:
        """Do the same as `verify`, in synchronous code."""
        until = time.monotonic() + self.seconds
        texts: dict[str, Passages] = {}
        judged: list[Judgement] = []
        for claim in claims:
            if time.monotonic() > until:
                reason = f"the check took more than {self.seconds:g} seconds"
                judged.append(Judgement(Verdict.UNCHECKED, reason=reason))
                continue
            try:
                judged.append(_find_best(claim, texts, question))
            except Exception as error:  # noqa: BLE001 - no source may cost the answer
                _log.info("the check of a claim failed", exc_info=True)
                reason = f"the check failed: {type(error).__name__}: {error}"
                judged.append(Judgement(Verdict.UNCHECKED, reason=reason))
        return judged


def judge_packed(packed: PackedClaims, question: str, seconds: float) -> list[Judgement]:
    """Call `LexicalVerifier.judge` with claims from another process."""
    return LexicalVerifier(seconds).judge(unpack_claims(packed), question)


def name_source(source: Source) -> str:
    """Return the title of a source and the name of its file, on which its sentences lean."""
    return f"{source.title}\n{PurePath(source.location).stem if source.kind == 'file' else ''}"


def _find_best(claim: SourcedClaim, texts: dict[str, Passages], question: str) -> Judgement:
    """Return the judgement of the most informative source. Each is split and indexed at its first use."""
    best = Judgement(Verdict.UNSUPPORTED)
    for source in claim.sources:
        if source.id not in texts:
            texts[source.id] = Passages(source.evidence)
        judged = _judge(claim, source, texts[source.id], question)
        if not best.source or (judged.verdict.rank, judged.score) > (best.verdict.rank, best.score):
            best = judged
        if best.verdict.holds:
            break
    return best


def is_calculation(claim: str) -> bool:
    """Return whether a claim states what a computation gives ("23 * 17 = 391"), which no text can support."""
    return bool(_CALCULATION.search(_DATE.sub("", claim)))


def _judge(claim: SourcedClaim, source: Source, passages: Passages, question: str) -> Judgement:
    record = source.call if source.kind in ("computation", "tool") else None
    agrees, rest = read_polarity(claim.text)
    said = rest if rest and agrees is not None and asks_yes_no(question) else claim.text
    judged = check_words(said, passages, question=question, context=name_source(source), record=record)
    if said != claim.text and judged.verdict.holds and agrees == (is_denied(rest) != is_denied(question)):
        missing = (claim.text[: -len(rest)].strip(" ,.!"),)
        judged = replace(judged, verdict=Verdict.UNSUPPORTED, score=0.0, missing=missing)
    if judged.verdict.holds and record is not None:
        from hira.evidence.records import find_fault, find_other_subject  # few sources are calls

        if is_calculation(claim.text) and not _has_sum(claim.text, source.call):
            judged = replace(judged, verdict=Verdict.UNSUPPORTED, score=0.0)
        elif reason := find_fault(claim.text, judged.quote, source, question, claim.read):
            judged = replace(judged, verdict=Verdict.UNCHECKED, score=0.0, reason=reason)
        elif source.kind == "tool" and (lacking := find_other_subject(claim.text, question, source)):
            judged = replace(judged, lacking=lacking)
    return replace(judged, source=source.id)


def _has_sum(claim: str, program: str) -> bool:
    """Return whether a program has the whole expression of a claim such as "23 * 17 = 391"."""
    expression = claim.partition("=")[0]
    if not _OPERATION.search(expression):
        return True
    wanted, there = ("".join(text.replace("×", "*").split()) for text in (expression, program))
    wanted = wanted.lstrip("".join(char for char in wanted if not (char.isdigit() or char in "(-.")))
    return bool(wanted) and bool(re.search(rf"(?<![\w.]){re.escape(wanted)}(?![\w.*/+-])", there))


def flat(text: str) -> str:
    """Return a text in the form in which quotations are compared: lower case, straight quotes and single spaces."""
    return " ".join(text.translate(_STRAIGHT).casefold().split())


_STRAIGHT = str.maketrans("’‘“”„«»–—", '\'\'"""""--')
