"""The parts that both APIs share: the progress of a run, its answer, its failure, and server-sent events."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hira.core.errors import AccessDenied, ContextOverflow, EndpointError, HiraError, UsageError
from hira.core.events import (
    DocumentsRead,
    Event,
    Notice,
    Remembered,
    SourceRead,
    SubtaskAssigned,
    SubtaskDone,
    SubtaskIssued,
    ToolStarted,
)
from hira.evidence import Source, claims
from hira.evidence.citations import list_marks
from hira.runtime.answer import Answer
from hira.server.keys import RejectedRequest
from hira.server.outside import without_folders


def content_of(answer: Answer, text: str) -> dict[str, str | None]:
    """Return the text, or the JSON that the request asked for; without it, the text is sent as a refusal."""
    if answer.output_type is None:
        return {"content": text, "refusal": None}
    if not answer.rollout.has_output:
        return {"content": None, "refusal": text or answer.rollout.output_error}
    value = answer.output_type.dump(answer.output)
    return {"content": json.dumps(value, ensure_ascii=False), "refusal": None}


def about(answer: Answer) -> dict[str, Any]:
    """Return the fields of an answer that the chat API does not have."""
    values, record = answer.json(), answer.rollout
    return {
        "run_id": record.run,
        "status": answer.status,
        "error": describe_failure(answer),
        "workflow": record.workflow,
        "calls": record.usage.calls,
        "cost": record.usage.cost,
        **{name: values[name] for name in ("citations", "output_sources", "output_places") if name in values},
    }


class Mark(NamedTuple):
    """A part of a text, by characters, that cites a source, and where in it the cited passage is, if that is known."""

    start: int
    end: int
    source: Source
    place: str


def find_marks(answer: Answer, text: str) -> Iterator[Mark]:
    """Return the marks of a text, and its claims without a mark that hira attributed to a source."""
    read = answer.rollout.sources.read
    made = claims(text)
    places = {(citation.claim, citation.source): citation.place for citation in answer.citations}
    for start, mark in list_marks(text).items():
        for source_id in re.findall(r"s\d+", mark):
            if source := read.get(source_id):
                citing = [claim for claim in made if source_id in claim.sources]
                nearest = min(citing, key=lambda claim: abs(claim.end - start), default=None)
                place = places.get((nearest.text, source_id), "") if nearest else ""
                yield Mark(start, start + len(mark), source, place)
    holding = (citation for citation in answer.citations if citation.attributed and citation.verdict.holds)
    attributed = {(citation.claim, citation.source) for citation in holding}
    for claim in made:
        start = text.rfind(claim.text, 0, claim.end)
        for name in sorted(source for about, source in attributed if about == claim.text and source in read):
            begin = claim.end if start < 0 else start
            yield Mark(begin, claim.end, read[name], places[claim.text, name])


def describe_progress(event: Event) -> str:
    """Describe an event of the run as a line of reasoning; empty for events that a client need not know, such as pieces
    of replies (`TurnText`), which would show the answer before it is checked."""
    tell = PROGRESS.get(type(event))
    return f"{tell(event)}\n" if tell else ""


def _brief(text: str, most: int) -> str:
    return " ".join(text.split())[:most]


PROGRESS: Mapping[type[Event], Callable[[Any], str]] = {
    DocumentsRead: lambda event: f"Reading {event.what}: {event.done:,} of {event.total:,}",
    SubtaskIssued: lambda event: f"Subtask {event.subtask}: {event.text}",
    SubtaskAssigned: lambda event: f"→ {event.expert}" + (f": {event.reason}" if event.reason else ""),
    ToolStarted: lambda event: f"  {event.tool}({_brief(', '.join(map(str, event.arguments.values())), 120)})",
    SourceRead: lambda event: f"  read [{event.source}] {event.title or event.location}",
    SubtaskDone: lambda event: f"✓ {_brief(event.conclusion, 300)}",
    Remembered: lambda event: f"  remembered: {event.text}",
    Notice: lambda event: f"  ({event.text})",
}


def pieces(text: str, size: int = 48) -> Sequence[str]:
    """Split the answer for a stream. It is sent only after its citations are checked."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def as_refusal(error: HiraError | RejectedRequest) -> RejectedRequest:
    """Convert an error for a client, without this server's addresses and keys: it names only faults of the request."""
    if isinstance(error, RejectedRequest):
        return error
    if isinstance(error, UsageError):
        what = without_folders(f"{error.what}. {error.fix}".strip(". "))
        return RejectedRequest(400, what)
    if isinstance(error, ContextOverflow):
        return RejectedRequest(400, without_folders(error.what), "context_length_exceeded")
    if isinstance(error, AccessDenied):
        return RejectedRequest(502, "the model of this server refused its key", "upstream_denied", kind="api_error")
    what = without_folders(error.what)
    if isinstance(error, EndpointError):
        what = f"the model of this server: {what}"
    return RejectedRequest(502, what, kind="api_error")


def describe_failure(answer: Answer) -> str:
    """Describe, for a client, the failure that ended the run early."""
    return as_refusal(answer.rollout.failure).message if answer.rollout.failure else ""


def error_of(refused: RejectedRequest) -> dict[str, Any]:
    """Format an error as the OpenAI API does."""
    field, code = refused.field or None, refused.code or None
    return {"error": {"message": refused.message, "type": refused.kind, "param": field, "code": code}}


STILL = b": still at work\n\n"
"""A comment that keeps the connection of a stream alive."""


def sse(value: Mapping[str, Any] | str) -> bytes:
    """Format one server-sent event."""
    data = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return f"data: {data}\n\n".encode()
