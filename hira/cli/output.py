"""How an answer is printed: for a person, or as JSON."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from hira.agents.trajectory import Status
from hira.cli import ENDPOINT, INTERRUPTED, NO_EVIDENCE, OK, PARTIAL, explain
from hira.cli.shell import Shell, brief
from hira.core.errors import HiraError
from hira.evidence import Citation, Relevance, Source, find_unconfirmed, is_accepted
from hira.evidence.citations import SourcedClaim, locate
from hira.evidence.lexical_verifier import LexicalVerifier
from hira.evidence.verdicts import find_worst
from hira.evidence.verifiers import LONG
from hira.policies.names import OFFLINE
from hira.runtime.answer import Answer

CODES: dict[Status, int] = {
    "answered": OK,
    "unverified": NO_EVIDENCE,
    "insufficient_evidence": NO_EVIDENCE,
    "partial": PARTIAL,
    "interrupted": INTERRUPTED,
    "failed": ENDPOINT,
}
QUOTED = 200
"""Characters of a passage below its source."""
CLOSE = 1 / 3
"""The share of a question's words, rare ones weighing more, that the sentence shown with a refusal has."""


class Output(Protocol):
    """Prints the answer of a command, and writes it to a file."""

    @property
    def shell(self) -> Shell: ...
    def tell(self, answer: Answer) -> None: ...
    def write(self, answer: Answer, path: Path) -> None: ...


def print_answer(answer: Answer, out: Output, settings: Mapping[str, Any], *, again: str = "") -> int:
    """Print an answer, and what is wrong with it.

    `settings` are those of its run; `again` says how to resume one that its budget ended.
    """
    out.tell(answer)
    shell = out.shell
    if answer.status in ("unverified", "insufficient_evidence"):
        searched = any(settings.get(name) for name in ("docs", "search", "search_keys", "searxng_url"))
        explain(what_is_missing(answer, searched=searched), shell)
    elif answer.status != "answered":
        first, *_ = answer.error.splitlines() or [f"the run was {answer.status}"]
        where = "" if not answer.text or "results so far" in first else "this answer uses the results so far"
        explain(HiraError(first, where=where, fix=again), shell)
    if answer.output_type and not answer.rollout.has_output and answer.status in ("answered", "unverified"):
        offline = "--model NAME connects one (hira doctor)"
        fix = offline if answer.model == OFFLINE else "use a stronger model, or a simpler schema"
        explain(HiraError(answer.rollout.output_error, fix=fix), shell)
        return NO_EVIDENCE
    return CODES[answer.status]


def what_is_missing(answer: Answer, *, searched: bool) -> HiraError:
    """Explain why an answer is not accepted, and what would help. If the user `searched`, the advice does not suggest
    it."""
    by_source = {citation.source: citation for citation in answer.citations if citation.verdict.denies}
    where = ""
    unchecked = any(not citation.verdict.rank for citation in answer.citations)
    if answer.rollout.workflow == "direct":
        why = "nothing was read"
        fix = "this workflow reads no sources; use one that does, such as --workflow hira"
    elif any(finding.expert == "multimodal" for finding in answer.rollout.findings):
        why, fix = "no source supports it", "name a model that can see and hear (--model), or ask more precisely"
    elif not answer.sources:
        elsewhere = "name documents (--docs) or a web search (--search)"
        named = "ask in other words, or search elsewhere" if searched else elsewhere
        repair = "repair what could not be read, or " if answer.rollout.unread else ""
        why, fix = "nothing was read that could support it", f"{repair}{named}"
    elif by_source:
        why = f"{', '.join(f'[{source}]' for source in by_source)} contradicts a claim in the answer"
        fix = "compare the marked claims with their sources"
    elif unchecked:
        why, fix = "its claims could not be checked", "see the notices above; --verify lexical needs no model"
    elif answer.status == "insufficient_evidence":
        why, where = "what was read does not hold the answer", find_closest(answer.rollout.question, answer.sources)
        more = "other documents or a web search that hold" if searched else "documents (--docs) that hold"
        fix = f"name {more} it, or ask more precisely"
    elif answer.rollout.lacking and is_accepted(answer.citations):
        why = f"nothing supported speaks of: {', '.join(answer.rollout.lacking)}"
        fix = "read the quoted sources, or ask in their words"
    elif answer.rollout.answers in (Relevance.PARTLY, Relevance.NO) and is_accepted(answer.citations):
        part = answer.rollout.answers is Relevance.PARTLY
        why = "it answers only a part of the question" if part else "it does not answer the question"
        fix = "ask more precisely, or one thing at a time"
    else:
        claim = find_unconfirmed(answer.citations)
        why = f"no source supports “{brief(claim.claim, QUOTED)}”" if claim else "it makes no claim to check"
        fix = "compare the marked claims with the sources, or ask more precisely"
    outcome = "not enough evidence" if answer.status == "insufficient_evidence" else "the answer is not verified"
    if unread := answer.rollout.unread:
        more = f" (and {len(unread) - 1} more: hira doctor --docs PATH lists them)" if len(unread) > 1 else ""
        where = "; ".join(filter(None, [f"not read: {brief(unread[0], QUOTED)}{more}", where]))
    return HiraError(f"{outcome}: {why}", where=where, fix=fix)


def find_closest(question: str, sources: Sequence[Source]) -> str:
    """Return the sentence of the sources that has most words of the question, with its place; empty if none has a
    third of their weight."""
    (judged,) = LexicalVerifier().judge([SourcedClaim(question, tuple(sources))])
    if judged.score < CLOSE or not judged.quote:
        return ""
    source = next(source for source in sources if source.id == judged.source)
    place = f", {place}" if (place := source.find_place(judged.quote)) else ""
    return f"closest: “{brief(judged.quote, QUOTED)}” ({source.location}{place})"


def text(answer: Answer) -> str:
    """Return the answer with its unverified claims flagged, followed by its sources with the passages that decide."""
    quoted = [citation.source for citation in answer.citations if citation.quote]
    shown = dict.fromkeys([*answer.cited, *(answer.source(source_id) for source_id in quoted)])
    is_report = len({citation.claim for citation in answer.citations}) >= LONG  # its sources are listed alone
    lines: list[str] = []
    for source in shown:
        citations = [citation for citation in answer.citations if citation.source == source.id]
        lines.append(f"{format_source(source, answer.citations)}{_format_worst(citations)}")
        quotes = dict.fromkeys(citation.quote for citation in citations if citation.quote and not is_report)
        lines += [f"     “{brief(quote, QUOTED)}”" for quote in quotes]
    return "\n".join([answer.flagged, *([""] if lines else []), *lines])


def format_source(source: Source, citations: Sequence[Citation] = ()) -> str:
    """Format a source on one line: its id, its title, its location, and where in it the cited passages are."""
    title = " ".join(source.title.split()) or source.location
    return f"[{source.id}] {title} — {locate(source, citations)}"


def _format_worst(citations: Sequence[Citation]) -> str:
    """Format the worst verdict on the claims that cite a source; without such claims, say that hira chose it."""
    worst = find_worst(citation.verdict for citation in citations if not citation.attributed)
    if worst is not None:
        return f" ({worst})"
    return (
        f" ({find_worst(citation.verdict for citation in citations)}; the closest source, not cited by the answer)"
        if citations
        else ""
    )


def as_json(answer: Answer) -> str:
    return json.dumps(answer.json(), ensure_ascii=False, indent=2, default=str)
