"""Claims held against sources: exact passages first, then names, numbers and polarity, then the other words.

No model takes part. The verdict of a claim that cites several sources is that of all of them together.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hira.evidence.computed import printed, repeated
from hira.evidence.holding import SHORT, Match, Outcome, hold
from hira.evidence.marks import claims
from hira.evidence.meeting import places, slot, weighty
from hira.evidence.page import Page, terms
from hira.evidence.source import Source, Sources
from hira.evidence.statement import Statement, Token, statement
from hira.relevance import words

Verdict = Literal["supported", "contradicted", "not found", "unchecked"]

MANY = 10
"""An answer of so many cited claims may have one in as many that is not found."""
_VERDICTS: Mapping[Outcome, Verdict] = {"held": "supported", "against": "contradicted", "apart": "not found"}
_SHOWN = 100
_QUOTE = re.compile(r"[\"“«「]([^\"”»」]{8,})[\"”»」]")
_YES_NO = re.compile(
    r"^(yes\b|no\b(?![. ]?\d)|不是|是的?(?=[，。,]|$)|否|没有(?=[，。,]|$)|对(?=[，。,]|$))[\s,.:;–—，。]*",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"\s*[;；]\s*|\s*,\s*(?:and|but|while|whereas|although|which|who)\s+|\s+(?:and|but|while|whereas)\s+|\s*，\s*|,\s+",
    re.IGNORECASE,
)
_ASKS = re.compile(r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would)\b|吗|是否", re.IGNORECASE)
_END = r"\s*(?:$|[.!?。！？;；|\"”)\]])"
_BOUNDARY = r"(?:^|[.!?。！？:：;；|\n\"“(*#>•])\s*[\[\"“(*_-]*$"


@dataclass(frozen=True, slots=True)
class Citation:
    """One claim of the answer and the source it cites; `quote` is the passage of the source nearest to the claim."""

    source: str
    claim: str
    quote: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class _Found:
    """What one source says to a claim."""

    verdict: Verdict
    quote: str


def verify(text: str, sources: Sources, question: str = "") -> list[Citation]:
    """Hold every cited claim of the answer against the stored text of its sources; each source is read once.

    The question's own words are no evidence: a bare answer ("Jakarta [s1]") is looked for beside them.
    """
    pages: dict[str, Page] = {}
    found: list[Citation] = []
    for claim, ids in claims(text):
        read = [sources.read[one] for one in ids if one in sources]
        for source in read:
            if source.id not in pages:
                pages[source.id] = Page(source)
        found += _together(claim, [pages[source.id] for source in read], question)
    return found


def check(claim: str, source: Source, question: str = "") -> Citation:
    """One claim against one source."""
    return _together(claim, [Page(source)], question)[0]


def accepted(citations: Sequence[Citation]) -> bool:
    """Whether the answer rests on evidence: a claim is supported, none is contradicted, and none is left unfound.

    One claim in ten may be, so that a long answer is not lost for a single sentence.
    """
    verdicts = {citation.verdict for citation in citations}
    made = {citation.claim for citation in citations}
    lost = {citation.claim for citation in citations if citation.verdict == "not found"}
    return "supported" in verdicts and "contradicted" not in verdicts and len(lost) * MANY <= len(made)


def doubts(citations: Sequence[Citation]) -> list[str]:
    """What a person should know of claims that do not hold: how many hold, and each that does not, with its source."""
    made = dict.fromkeys(citation.claim for citation in citations)
    wrong = [one for one in citations if one.verdict in ("contradicted", "not found")]
    left = len(made) - len({one.claim for one in wrong})
    head = f"{left} of {len(made)} cited claims hold"
    return [f"{head}; {one.verdict} in [{one.source}]: {shortened(one.claim)}" for one in wrong]


def shortened(text: str) -> str:
    """The beginning of a sentence, to point at it."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN].rsplit(' ', 1)[0]} …"


def _together(claim: str, pages: Sequence[Page], question: str) -> list[Citation]:
    """The claim against each source; where none holds it alone, its clauses against all of them together."""
    alone = [_single(claim, page, question) for page in pages]
    verdicts = {one.verdict for one in alone}
    if "supported" not in verdicts and (len(pages) > 1 or "not found" in verdicts):
        parts = _clauses(claim)
        if len(parts) > 1 and all(
            any(_single(part, page, question).verdict == "supported" for page in pages) for part in parts
        ):
            return [Citation(page.source.id, claim, _quotes(parts, page, question), "supported") for page in pages]
        if len(pages) > 1 and _pooled(claim, pages, question):
            return [Citation(p.source.id, claim, one.quote, "supported") for p, one in zip(pages, alone, strict=True)]
    lift = "supported" in verdicts
    return [
        Citation(page.source.id, claim, one.quote, "supported" if lift and one.verdict == "not found" else one.verdict)
        for page, one in zip(pages, alone, strict=True)
    ]


def _quotes(parts: Sequence[str], page: Page, question: str) -> str:
    found = [_single(part, page, question) for part in parts]
    return " … ".join(dict.fromkeys(one.quote for one in found if one.verdict == "supported")) or found[0].quote


def _single(claim: str, page: Page, question: str) -> _Found:
    """One claim against one source."""
    source = page.source
    quoted = [_flat(one) for one in _QUOTE.findall(claim)]
    evidence = page.flat
    if any(one not in evidence for one in quoted):
        return _Found("not found", _nearest(statement(claim), page, question))
    if whole := verbatim(claim, page):
        computed = source.kind == "computation" and repeated(whole, source.program)
        return _Found("unchecked" if computed else "supported", whole)
    if source.kind == "computation":
        return _computation(claim, page, question)
    if (answer := _YES_NO.match(claim)) and _ASKS.search(question):
        return _yes_or_no(claim, answer, page, question)
    return _read(statement(claim), page, question)


def _flat(text: str) -> str:
    return " ".join(text.replace("’", "'").lower().split())


def verbatim(claim: str, page: Page) -> str:
    """The claim as it stands in the source, from the beginning of a sentence to its end; empty if it does not."""
    flat = _flat(claim)
    if len(words(claim)) < 3 or (at := page.flat.find(flat)) < 0:
        return ""
    while at >= 0:
        end = at + len(flat)
        begins = at in page.edges or re.search(_BOUNDARY, page.flat[max(0, at - 12) : at])
        if begins and (end + 1 in page.edges or re.match(_END, page.flat[end : end + 8])):
            return page.passage(flat)
        at = page.flat.find(flat, at + 1)
    return ""


def _read(claim: Statement, page: Page, question: str) -> _Found:
    tokens = weighty(claim)
    if not tokens:
        return _Found("unchecked", "")
    asked = statement(question) if question else None
    beside = asked.keys if asked else frozenset()
    answer = asked if asked and _bare(claim) else None
    matches = _matches(claim, tokens, page, question, first=answer is None)
    if not matches:
        return _Found("not found", "")
    ranked = sorted(matches, key=lambda one: _rank(one, page, beside), reverse=True)
    best = next(
        (one for one in ranked if answer and one.outcome == "held" and _answers(claim, answer, one, page)), ranked[0]
    )
    quote = page.sentences[best.at]
    if best.outcome == "held" and answer and not _answers(claim, answer, best, page):
        return _Found("not found", quote)
    return _Found(_VERDICTS[best.outcome], quote)


def _matches(claim: Statement, tokens: Sequence[Token], page: Page, question: str, *, first: bool) -> list[Match]:
    """The sentences near a claim held against it; `first`: only until one holds all of it."""
    found: list[Match] = []
    for at in page.near(terms(claim.text), terms(question)):
        found.append(hold(claim, tokens, page, at))
        if first and found[-1].outcome == "held" and not found[-1].missing:
            break
    return found


def _rank(match: Match, page: Page, beside: frozenset[str]) -> tuple[int, float, int, int]:
    order = {"held": 2, "against": 1, "apart": 0}[match.outcome]
    sentence = page.statement(match.at)
    return order, match.held, len(beside & sentence.keys), -len(sentence.text)


def _bare(claim: Statement) -> bool:
    """Whether a claim is no statement but an answer of a few words."""
    return len(claim.tokens) <= SHORT and not claim.has_verb


def _answers(claim: Statement, asked: Statement, best: Match, page: Page) -> bool:
    """Whether a bare answer stands where the source speaks of what was asked, and not in another's place."""
    both = statement(f"{question_of(asked)} {claim.text}")
    fuller = hold(both, weighty(both), page, best.at)
    if fuller.outcome == "against" and not fuller.missing:
        return False
    if _of_other(claim, asked, page.statement(best.at)):
        return False
    elsewhere = [one for one in fuller.missing if slot(one) and not one.lead and set(terms(one.text)) <= page.keys]
    return not elsewhere and bool(asked.keys & (page.statement(best.at).keys | page.keys))


def _of_other(claim: Statement, asked: Statement, own: Statement) -> bool:
    """Whether a word of the question stands in pieces of a passage that have another number than the one answered."""
    answered = {piece for one in claim.tokens if one.quantity for piece in places(one, own)}
    figures = [one for one in own.tokens if one.quantity and not one.quantity.year]
    for token in weighty(asked) if answered else ():
        pieces = set(places(token, own))
        if pieces and not pieces & answered and pieces <= {one.piece for one in figures}:
            return True
    return False


def question_of(asked: Statement) -> str:
    return re.sub(
        r"^(?:what|which|who|where|when|how (?:many|much)?)\b|\?$", "", asked.text, flags=re.IGNORECASE
    ).strip()


def _yes_or_no(claim: str, answer: re.Match[str], page: Page, question: str) -> _Found:
    """ "Yes" and "No" say the question's statement: held against the source as far as words allow, else unchecked."""
    denied = answer[1].lower() in ("no", "不是", "否", "没有")
    rest = claim[answer.end() :]
    told = _read(statement(question.rstrip("?？吗")), page, "")
    if rest and len(words(rest)) >= 2:
        return _read(statement(rest), page, question)
    outcome = {"supported": not denied, "contradicted": denied}.get(told.verdict)
    if outcome is None:
        return _Found("unchecked", told.quote)
    return _Found("supported" if outcome else "contradicted", told.quote)


def _computation(claim: str, page: Page, question: str) -> _Found:
    source = page.source
    made = statement(claim)
    missing, line = printed(made, source.evidence, source.program, question)
    if missing or not line:
        return _Found("not found", line or source.evidence.strip().splitlines()[0] if source.evidence.strip() else "")
    return _Found("unchecked" if repeated(line, source.program) else "supported", line)


def _clauses(claim: str) -> list[str]:
    """The clauses of a claim; one without a subject of its own keeps the first one's name."""
    parts: list[str] = []
    waiting = ""
    for part in _CLAUSE.split(claim):
        waiting = f"{waiting}, {part}" if waiting else part
        made = statement(waiting)
        if len(made.tokens) >= 2 and (
            made.has_verb or made.text[:1].islower() or any(one.quantity for one in made.tokens)
        ):
            parts.append(waiting)
            waiting = ""
    if waiting and parts:
        parts[-1] = f"{parts[-1]}, {waiting}"
    if len(parts) < 2:
        return [claim]
    lead = statement(parts[0])
    subject = " ".join(one.text for one in lead.tokens if one.sort == "name" and one.key in lead.subject)
    return [parts[0], *(part if statement(part).subject else f"{subject} {part}".strip() for part in parts[1:])]


def _pooled(claim: str, pages: Sequence[Page], question: str) -> bool:
    """Whether the best passages of several sources hold all of a claim between them, none saying the opposite."""
    made = statement(claim)
    tokens = weighty(made)
    left = set(tokens)
    for page in pages:
        matches = [hold(made, tokens, page, at) for at in page.near(terms(claim), terms(question))]
        if not matches:
            continue
        best = max(matches, key=lambda one: one.held)
        if best.held == 0 or best.outcome == "against":
            return False
        left &= set(best.missing)
    return not left


def _nearest(claim: Statement, page: Page, question: str) -> str:
    near = page.near(terms(claim.text), terms(question), 1)
    return page.sentences[near[0]] if near else ""
