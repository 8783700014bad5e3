"""How an answer is printed: for a person, or as JSON."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from hira.agents.trajectory import Status
from hira.cli import ENDPOINT, INTERRUPTED, NO_EVIDENCE, OK, PARTIAL
from hira.cli.shell import QUOTED, Shell, brief
from hira.core.errors import HiraError
from hira.evidence import Citation, Source
from hira.evidence.citations import locate
from hira.evidence.verdicts import ALARM, Verdict
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


class Output(Protocol):
    """Prints the answer of a command, and writes it to its file if it has one."""

    @property
    def shell(self) -> Shell: ...
    def tell(self, answer: Answer) -> None: ...
    def write(self, answer: Answer) -> None: ...


def print_answer(answer: Answer, out: Output, settings: Mapping[str, Any], *, again: str = "") -> int:
    """Print an answer of a run with these `settings`, and what is wrong with it; `again` says how to resume the run."""
    out.tell(answer)
    shell = out.shell
    if answer.status in ("unverified", "insufficient_evidence"):
        searched = any(settings.get(name) for name in ("docs", "search", "search_keys", "searxng_url"))
        from hira.cli.missing import what_is_missing  # accepted answers lack nothing

        shell.explain(what_is_missing(answer, searched=searched))
    elif answer.status != "answered":
        first, *advice = answer.error.splitlines() or [f"the run was {answer.status}"]
        where = "this answer uses the results so far"
        if not answer.text:
            nothing = "there is no answer yet" if answer.sources else "nothing was read or written yet"
            where = f"{nothing}; raise the limit" if answer.status == "partial" else nothing
        advice += [again] if again else []
        shell.explain(HiraError(first.partition("; answering")[0], where=where, fix="; ".join(advice)))
    elif settings.get("verify") == "off" and not settings.get("verifier"):
        shell.remark("the answer was not checked (--verify off)")
    if answer.output_type and not answer.rollout.has_output and answer.status in ("answered", "unverified"):
        offline = "--model NAME connects one (hira doctor)"
        fix = offline if answer.model == OFFLINE else "use a stronger model, or a simpler schema"
        shell.explain(HiraError(answer.rollout.output_error, fix=fix))
        return NO_EVIDENCE
    return CODES[answer.status]


def text(answer: Answer, folder: Path = Path()) -> str:
    """Return the answer with its unverified claims flagged, followed by its sources with the passages that decide."""
    quoted = [citation.source for citation in answer.citations if citation.quote]
    shown = dict.fromkeys([*answer.cited, *(answer.source(source_id) for source_id in quoted)])
    is_report = len({citation.claim for citation in answer.citations}) >= LONG  # its sources are listed alone
    lines: list[str] = []
    for source in shown:
        citations = [citation for citation in answer.citations if citation.source == source.id]
        cited = [citation for citation in citations if not citation.attributed]
        worst = max((citation.verdict for citation in cited or citations), key=ALARM.index, default=None)
        found = f"; {describe_origin(worst)}" if worst and not cited else ""
        verdict = f" ({worst}{found})" if worst else ""
        lines.append(f"{format_source(source, answer.citations, folder)}{verdict}")
        quotes = dict.fromkeys(citation.quote for citation in citations if citation.quote and not is_report)
        lines += [f"     “{brief(quote, QUOTED)}”" for quote in quotes]
    return "\n".join([answer.flagged, *([""] if lines else []), *lines])


def format_source(source: Source, citations: Sequence[Citation] = (), folder: Path = Path()) -> str:
    """Format a source on one line: its id, its title, its location below `folder`, and the places of its passages."""
    place = " ".join(locate(source, citations).split()).removeprefix(f"{folder}/")  # names may have line breaks
    return f"[{source.id}] {' '.join(source.title.split()) or place} — {place}"


def describe_origin(verdict: Verdict) -> str:
    """Say that hira found the source of a claim without a mark; without support, it is only the closest."""
    return "found by hira" if verdict.holds else "the closest source that hira found"
