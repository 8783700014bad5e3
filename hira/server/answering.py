"""Answers the questions of both APIs, whole or as a stream; a client that disconnects ends its run."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from hira.agents.history import Earlier
from hira.server import chat, responses
from hira.server.keys import RejectedRequest
from hira.server.messages import read_question, write_attachments
from hira.server.records import (
    find_earlier,
    find_entry,
    find_kept,
    find_previous,
    read_journal,
    read_response,
    replay_answer,
)
from hira.server.runs import NewRun, WatchedRun
from hira.server.state import STOPPING, AppState, body_of
from hira.server.wire import STILL, about, as_refusal, content_of, describe_progress, error_of, sse


async def complete_chat(state: AppState, request: Request) -> Response:
    """One chat completion, whole or as a stream."""
    client = state.client(request)
    chat_request = chat.read_chat(await body_of(request, state.bodies))
    form = chat.read_answer_form(chat_request)
    question = read_question(chat_request.messages, "messages")
    state.runs.session(chat_request.model)
    earlier = await find_earlier(state, client, question.before)
    files = await write_attachments(chat_request.messages, "messages", state.folder)
    new = NewRun(question.text, files, output=form.output, earlier=earlier, instructions=question.instructions)
    watched = state.runs.begin(client, chat_request.model, new)
    made = int(time.time())
    if chat_request.stream:
        return RunStream(watched, _stream_chat(state, watched, chat_request, made, form.tool))
    await _wait(watched, request.receive)
    reasoning = "".join(map(describe_progress, watched.events))
    answer = watched.run.answer
    text = chat_request.cut(answer, state.scrub(answer.text))
    reply = chat.completion(answer, text, chat_request.model, reasoning, made, form.tool)
    return JSONResponse(state.scrub(reply))


async def create_response(state: AppState, request: Request) -> Response:
    """One response, whole or as a stream."""
    client = state.client(request)
    response_request = responses.read_response_request(await body_of(request, state.bodies))
    form = responses.read_answer_form(response_request)
    messages = responses.messages_of(response_request)
    question = read_question(messages, "input", len(response_request.instructions or ""))
    state.runs.session(response_request.model)
    if response_request.previous_response_id is None:
        earlier = await find_earlier(state, client, question.before)
    else:
        earlier = await read_response(state, client, response_request.previous_response_id)
        if question.before:
            earlier = Earlier.of_messages((*earlier.messages, *question.before), earlier)
    files = await write_attachments(messages, "input", state.folder)
    instructions = "\n\n".join(filter(None, (response_request.instructions, question.instructions)))
    store = response_request.store is not False
    new = NewRun(question.text, files, output=form.output, earlier=earlier, instructions=instructions, store=store)
    watched = state.runs.begin(client, response_request.model, new)
    writer = responses.ResponseWriter(watched.run.id, response_request, int(time.time()), state.scrub, form.tool)
    if response_request.stream:
        return RunStream(watched, _stream_response(state, watched, writer))
    await _wait(watched, request.receive)
    writer.thoughts = state.scrub("".join(map(describe_progress, watched.events)))
    return JSONResponse(writer.whole(watched.run.answer))


async def retrieve_response(state: AppState, request: Request) -> Response:
    """One stored response, without its reasoning."""
    client, name = state.client(request), request.path_params["response"].removeprefix(responses.PREFIX)
    watched = await find_kept(state, client, name)
    if watched:
        question, workflow, made, earlier = watched.run.question, watched.workflow, watched.began, watched.run.earlier
        previous = earlier.run if earlier else ""
    else:
        entry, journal = await find_entry(state, client, name)
        question, workflow, made, previous = entry.question, entry.workflow, entry.began, find_previous(entry)
    made_from = responses.ResponsesRequest(
        model=workflow, input=question, previous_response_id=f"{responses.PREFIX}{previous}" if previous else None
    )
    writer = responses.ResponseWriter(name, made_from, int(made), state.scrub)
    if watched and not watched.ended:
        return JSONResponse(writer.head("in_progress"))
    if watched and watched.failure:
        return JSONResponse(writer.failed(as_refusal(watched.failure)))
    answer = watched.run.answer if watched else await replay_answer(state, entry, journal)
    return JSONResponse(writer.whole(answer))


async def delete_response(state: AppState, request: Request) -> Response:
    """Delete a stored response: its run disappears from the journal and from the page."""
    client, name = state.client(request), request.path_params["response"]
    run = name.removeprefix(responses.PREFIX)
    watched = await find_kept(state, client, run)
    if watched and not watched.ended:
        raise RejectedRequest(409, f"the response {name[:80]!r} is in progress; stop it first", "conflict")
    if watched is None or watched.recorded:
        _, journal = await find_entry(state, client, run)
        await read_journal(journal.delete, [run])
    state.runs.forget(run)
    return JSONResponse({"id": name, "object": "response", "deleted": True})


async def _wait(watched: WatchedRun, receive: Receive) -> None:
    """Return when the run has its answer. Raises the run's failure, and ends the run when the client disconnects."""
    assert watched.task is not None  # noqa: S101 - begin() has made it
    gone = asyncio.ensure_future(_wait_until_gone(receive))
    try:
        await asyncio.wait((watched.task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not watched.task.done():
            raise ClientDisconnect
    finally:
        gone.cancel()
        watched.leave()
    if watched.failure:
        raise as_refusal(watched.failure)


async def _wait_until_gone(receive: Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


class RunStream(StreamingResponse):
    """The stream of a run to its client, who ends the run by disconnecting, even before the first piece."""

    def __init__(self, watched: WatchedRun, stream: AsyncGenerator[bytes, None]) -> None:
        super().__init__(stream, media_type="text/event-stream", headers={"cache-control": "no-cache"})
        self.watched = watched
        self.stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        gone = asyncio.ensure_future(_wait_until_gone(receive))
        gone.add_done_callback(lambda _: self.watched.leave())
        try:
            async with aclosing(self.stream) as stream:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                async for part in stream:
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except asyncio.CancelledError:  # the server ends
            last = sse(error_of(STOPPING))
            await send({"type": "http.response.body", "body": last, "more_body": False})
        except OSError:
            pass  # some servers raise it when the client has disconnected
        finally:
            gone.cancel()
            self.watched.leave()


async def _stream_chat(
    state: AppState, watched: WatchedRun, request: chat.ChatRequest, made: int, tool: str
) -> AsyncGenerator[bytes, None]:
    """Stream the run's progress as reasoning, then the answer, which is sent only after its citations are checked."""
    chunk = partial(chat.chunk, watched.run.id, request.model, made)
    yield sse(chunk({"role": "assistant", "content": ""}))
    async for news in watched.follow():
        if thought := "".join(map(describe_progress, news)):
            yield sse(chunk({"reasoning_content": state.scrub(thought)}))
        elif not news:
            yield STILL
    if watched.failure:
        yield sse(error_of(as_refusal(watched.failure)))
    else:
        answer = watched.run.answer
        text = request.cut(answer, state.scrub(answer.text))
        for delta in chat.split_message(watched.run.id, content_of(answer, text), tool):
            yield sse(chunk(delta))
        marked = [] if answer.output_type else chat.annotations(answer, text)
        ending = chunk({"annotations": marked}, chat.finish(answer, tool))
        yield sse(state.scrub({**ending, "hira": about(answer)}))
        if request.stream_options and request.stream_options.include_usage:
            yield sse({**chunk({}), "choices": [], "usage": chat.usage(answer.rollout.usage)})
    yield sse("[DONE]")


async def _stream_response(
    state: AppState, watched: WatchedRun, writer: responses.ResponseWriter
) -> AsyncGenerator[bytes, None]:
    """The run's progress as a summary of reasoning, then the answer, once its citations are checked."""
    yield writer.begin()
    async for news in watched.follow():
        if thought := state.scrub("".join(map(describe_progress, news))):
            yield writer.think(thought)
        elif not news:
            yield STILL
    for part in writer.end(as_refusal(watched.failure) if watched.failure else watched.run.answer):
        yield part
