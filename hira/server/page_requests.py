"""The requests of the page: begin, list, follow, stop and resume runs."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from hira.agents.trajectory import FINAL
from hira.core.events import RunEnded, TurnEnded, TurnText, record
from hira.journal.records import Entry
from hira.runtime.answer import Answer
from hira.runtime.resuming import continue_run
from hira.runtime.session import APPROVAL, HANDED, TOOL_APPROVAL
from hira.server.keys import RejectedRequest
from hira.server.messages import check_length
from hira.server.outside import Deltas, without_folders
from hira.server.records import (
    find_entry,
    find_kept,
    find_previous,
    read_journal,
    read_response,
    replay_answer,
)
from hira.server.runs import AT_ONCE, GOES_ON, SHAPE, ApprovalQueue, NewRun, WatchedRun, decide_in_queue
from hira.server.state import AppState, body_of
from hira.server.wire import STILL, as_refusal, describe_failure, sse

LISTED = 200


class _Begun(BaseModel):
    """The page's request for a run. Strict, so that unknown fields are refused."""

    model_config = ConfigDict(strict=True)
    question: str
    workflow: str | None = None
    approve: bool | None = None
    follows: str | None = None


async def begin(state: AppState, request: Request) -> Response:
    """Begin a run for the page. It continues when the page is closed."""
    client = state.client(request)
    try:
        run_request = _Begun.model_validate_json(await body_of(request, state.bodies))
    except ValidationError:
        raise RejectedRequest(400, 'write {"question": "…", "workflow": "auto", "approve": false}') from None
    question = run_request.question.strip()
    if not question:
        raise RejectedRequest(400, "the question is empty")
    check_length(len(question))
    workflow = run_request.workflow or next(iter(state.runs.sessions))
    state.runs.session(workflow)
    earlier = await read_response(state, client, run_request.follows, "follows") if run_request.follows else None
    new = NewRun(question, approve=run_request.approve or False, attended=True, earlier=earlier)
    watched = state.runs.begin(client, workflow, new)
    return JSONResponse(watched.describe(), 201)


async def list_runs(state: AppState, request: Request) -> Response:
    """List the client's runs, newest first, of this server and of the journal; forget those that were deleted there."""
    client, journal = state.client(request), state.session.journal
    entries = await read_journal(journal.runs, LISTED, client.mark) if journal else []
    runs = {entry.id: _line(state, entry) for entry in entries if entry.question}
    ended = {name for name, watched in state.runs.known.items() if client.owns(name) and watched.recorded}
    await asyncio.gather(*(find_kept(state, client, name) for name in ended - {entry.id for entry in entries}))
    runs |= {name: watched.describe() for name, watched in state.runs.known.items() if client.owns(name)}
    return JSONResponse({"runs": sorted(runs.values(), key=lambda run: run["began"], reverse=True)})


async def one_run(state: AppState, request: Request) -> Response:
    """Return a run with its answer and the texts of its sources. A run of the journal is replayed, without any call."""
    client, name = state.client(request), request.path_params["run"]
    watched = await find_kept(state, client, name)
    if watched is None:
        entry, journal = await find_entry(state, client, name)
        answer = await replay_answer(state, entry, journal)
        error = without_folders(entry.error.partition("\n")[0])
        return JSONResponse(state.scrub({**_describe_answer(answer), **_line(state, entry), "error": error}))
    if watched.failure:
        return JSONResponse({**watched.describe(), "answer": None, "error": as_refusal(watched.failure).message})
    answered = _describe_answer(watched.run.answer) if watched.ended else {"answer": None}
    return JSONResponse(state.scrub({**watched.describe(), "error": "", **answered}))


def _describe_answer(answer: Answer) -> dict[str, Any]:
    """Describe an answer, with the texts of its sources and, for each citation, the words that its source lacks."""
    texts = {source.id: source.text for source in answer.sources}
    values = {**answer.json(), "answer": answer.flagged, "error": describe_failure(answer)}
    for described, citation in zip(values["citations"], answer.citations, strict=True):
        described["why"] = citation.explain()
    return {"answer": values, "texts": texts, "status": answer.status}


async def events(state: AppState, request: Request) -> Response:
    """Stream the run's events, beginning with number `from`: first the past ones, then new ones as they come."""
    client, name = state.client(request), request.path_params["run"]
    first = request.query_params.get("from", "0")
    start = int(first) if first.isdecimal() and len(first) < 10 else 0
    if watched := await find_kept(state, client, name):
        stream = _live(state, watched, start)
    else:
        entry, journal = await find_entry(state, client, name)
        stream = _past(state, await read_journal(journal.events, entry.id), start, _line(state, entry))
    return StreamingResponse(stream, media_type="text/event-stream", headers={"cache-control": "no-cache"})


async def _live(state: AppState, watched: WatchedRun, start: int) -> AsyncIterator[bytes]:
    async for news in watched.follow(start):
        yield b"".join(_write_event(state, record(event)) for event in news) or STILL
    yield sse({"event": "Ended", **watched.describe()})


def _write_event(state: AppState, fields: Mapping[str, Any]) -> bytes:
    """Write a recorded event for the page. The answer with its sources takes a separate request."""
    is_end = fields.get("event") == RunEnded.__name__
    return sse(state.scrub({name: value for name, value in fields.items() if not (is_end and name == "answer")}))


async def _past(
    state: AppState, recorded: Sequence[Mapping[str, Any]], start: int, line: Mapping[str, Any]
) -> AsyncIterator[bytes]:
    """Yield recorded events, with pieces of text joined as for a live run. Another version may have recorded unknown
    events: of pieces of text, only the fields that join them are read; all other events are sent unchanged."""
    whole, events = Deltas(state.runs.hidden), list[Mapping[str, Any]]()
    for fields in recorded:
        kind, conversation = fields.get("event"), str(fields.get("conversation", ""))
        if kind == TurnText.__name__:
            text, reasoning = str(fields.get("text", "")), bool(fields.get("reasoning"))
            role, at = str(fields.get("role", "")), fields.get("at", 0.0)
            events += map(record, whole.text(TurnText(conversation, text, reasoning, role, at=at)))
            continue
        if kind == TurnEnded.__name__:
            events += map(record, whole.rest(conversation))
        events.append(fields)
    for begin in range(start, len(events), AT_ONCE):
        yield b"".join(_write_event(state, event) for event in events[begin : begin + AT_ONCE])
        await asyncio.sleep(0)
    yield sse({"event": "Ended", **line})


async def stop(state: AppState, request: Request) -> Response:
    """Answer now, from the results so far."""
    watched = state.runs.of(state.client(request), request.path_params["run"])
    watched.run.stop()
    return JSONResponse(watched.describe())


async def approve(state: AppState, request: Request) -> Response:
    """Decide on subtasks that wait: `text` changes one, `rejected` gives the reason against it."""
    watched = state.runs.of(state.client(request), request.path_params["run"])
    try:
        decisions = json.loads(await body_of(request, state.bodies))["decisions"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise RejectedRequest(400, SHAPE) from None
    if not isinstance(decisions, list) or not decisions:
        raise RejectedRequest(400, SHAPE)
    if watched.queue is None:
        raise RejectedRequest(409, f"run {watched.run.id!r} does not ask for approval", "conflict")
    watched.queue.decide(decisions)
    return JSONResponse(watched.describe())


async def resume(state: AppState, request: Request) -> Response:
    """Resume a run of the journal that ended early."""
    client, name = state.client(request), request.path_params["run"]
    async with state.runs.resuming:  # pressed twice, or in two tabs, it resumes once
        if name in state.runs.known and not state.runs.known[name].ended:
            return JSONResponse(state.runs.of(client, name).describe())
        entry, journal = await find_entry(state, client, name)
        if entry.alive:
            raise RejectedRequest(409, f"run {name!r} is running in another process", "conflict")
        if entry.state in FINAL:
            raise RejectedRequest(409, f"run {name!r} already has its answer", "conflict")
        if lacking := _lacking(state, entry):
            what = f"run {name!r} was started by a program, with its own {', '.join(lacking)}; resume it there"
            raise RejectedRequest(409, what, "conflict")
        owner = replace(state.runs.session(entry.workflow), shared=client.allowance)
        instructions = str(entry.settings.get("instructions") or "")
        foreign = entry.files or instructions != owner.settings.instructions
        if foreign and owner.settings.origin("journal").endswith(".toml"):  # the journal may have come with the folder
            what = f"run {name!r} has files or instructions of its own; resume it in a terminal: hira resume {name}"
            raise RejectedRequest(409, what, "conflict")
        owner = owner.with_instructions(instructions)
        handed = entry.settings.get(HANDED, ())
        queue = ApprovalQueue(client) if APPROVAL in handed or TOOL_APPROVAL in handed else None
        owner = decide_in_queue(owner, queue, subtasks=APPROVAL in handed)
        client.check_budget()  # before the run is claimed
        run = await continue_run(owner, owner, journal, entry)
        return JSONResponse(state.runs.start(client, run, entry.workflow, queue).describe(), 201)


def _line(state: AppState, entry: Entry) -> dict[str, Any]:
    """Describe a run of the journal for a list."""
    status = entry.state
    values = {"id": entry.id, "question": entry.question, "workflow": entry.workflow, "began": entry.began}
    values["follows"] = find_previous(entry)
    return {**values, "status": status, "resumable": status in GOES_ON and not _lacking(state, entry)}


def _lacking(state: AppState, entry: Entry) -> list[str]:
    """List the parts of a program that the run used and that this server does not have."""
    here = (*state.session.handed, APPROVAL, TOOL_APPROVAL)
    return [name for name in entry.settings.get(HANDED, ()) if name not in here]
