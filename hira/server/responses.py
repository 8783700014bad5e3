"""The formats of `/v1/responses`: requests, answers and progress."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from pydantic import BaseModel, Field

from hira.agents.trajectory import FINAL
from hira.core.policy import Usage
from hira.runtime.answer import Answer
from hira.server.keys import RejectedRequest
from hira.server.messages import AnswerForm, Count, Spoken, read_form, read_request, reject_fields
from hira.server.wire import about, content_of, find_marks, pieces, sse

PREFIX = "resp_"
LOGPROBS = "message.output_text.logprobs"
ELSEWHERE = {
    "background": "hira answers in the same request; remove it, and set stream to see the progress",
    "conversation": "hira keeps no conversations of this kind; use previous_response_id",
    "prompt": "hira has no stored prompts; write instructions and input",
    "top_logprobs": "hira has no log-probabilities: several calls make an answer; remove it",
}
"""Parts of the API that hira does not have, each with what to do."""
PLAIN = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
"""The parts of a message that are text, each with the field that holds it."""


class InputItem(BaseModel):
    """One item of the input: a message, or another item of an earlier response."""

    type: str | None = None
    role: str | None = None
    content: str | list[dict[str, Any]] | None = None
    arguments: str | None = None


class TextForm(BaseModel):
    format: dict[str, Any] | None = None


class ResponsesRequest(BaseModel):
    """A request. Fields that hira decides by its own settings, such as the temperature, are not read."""

    model: str = Field(min_length=1)
    input: str | list[InputItem]
    instructions: str | None = None
    previous_response_id: str | None = None
    store: bool | None = None
    stream: bool | None = None
    max_output_tokens: Count | None = None
    text: TextForm | None = None
    tools: list[Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    background: bool | None = None
    conversation: Any = None
    prompt: Any = None
    top_logprobs: Any = None
    include: list[str] | None = None
    metadata: dict[str, Any] | None = None


def read_response_request(body: bytes) -> ResponsesRequest:
    """Parse the request. Raises `RejectedRequest` for its faults, and for features that hira lacks."""
    request = read_request(body, ResponsesRequest)
    reject_fields(request, ELSEWHERE)
    if LOGPROBS in (request.include or ()):
        what = f"{LOGPROBS!r}: {ELSEWHERE['top_logprobs']}"
        raise RejectedRequest(400, what, "unsupported_value", field="include")
    return request


def read_answer_form(request: ResponsesRequest) -> AnswerForm:
    """Return the form of the answer. Raises `RejectedRequest` for one that hira does not write."""
    form = (request.text.format if request.text else None) or {}
    return read_form(form, form.get("schema"), "text.format", request.tools or (), request.tool_choice)


def messages_of(request: ResponsesRequest) -> list[Spoken]:
    """The input as messages of the chat API. The reasoning of an earlier response, and what the client did with a typed
    answer, are left out. Raises `RejectedRequest` for items that are not messages."""
    if isinstance(request.input, str):
        return [Spoken(role="user", content=request.input)]
    messages = []
    for item in request.input:
        if item.type == "function_call":
            messages.append(Spoken(role="assistant", content=item.arguments))
        elif item.type in (None, "message"):
            if item.role not in ("user", "assistant", "system", "developer"):
                what = f"the role {str(item.role)[:40]!r} is not one of user, assistant, system and developer"
                raise RejectedRequest(400, what, field="input")
            content = [_part(part) for part in item.content] if isinstance(item.content, list) else item.content
            messages.append(Spoken(role=item.role, content=content))  # type: ignore[arg-type]
        elif item.type not in ("reasoning", "function_call_output"):
            what = f"items of the type {item.type[:40]!r} are not supported; send messages"
            raise RejectedRequest(400, what, "unsupported_value", field="input")
    return messages


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(part.get("type"))
    if kind in PLAIN:
        return {"type": "text", "text": part.get(PLAIN[kind])}
    if kind == "input_image":
        return {"type": kind, kind: {"url": part.get("image_url")}}
    return {**part, kind: part.get(kind) or part}  # the part itself holds a file's data


class ResponseWriter:
    """One response, whole or event by event, with the run's course as reasoning (`thoughts`). `redact` masks private
    values; a `tool` takes the answer."""

    def __init__(self, run: str, request: ResponsesRequest, made: int, redact: Any, tool: str = "") -> None:
        self.run = run
        self.request = request
        self.made = made
        self.thoughts = ""
        self._tool = tool
        self._redact = redact
        self._numbers = count()
        self._in_reasoning = {"item_id": f"rs_{run}", "output_index": 0, "summary_index": 0}

    def whole(self, answer: Answer) -> dict[str, Any]:
        output = [self._reasoning()] if self.thoughts else []
        ended = self._redact({**self.head(status_of(answer)), "usage": usage(answer.rollout.usage)})
        if ended["status"] == "incomplete":
            ended["incomplete_details"] = {"reason": "max_output_tokens"}
        return {**ended, "output": [*output, self._message(answer)], "hira": self._redact(about(answer))}

    def failed(self, refused: RejectedRequest) -> dict[str, Any]:
        code = {400: "invalid_prompt", 429: "rate_limit_exceeded"}.get(refused.status, "server_error")
        return {**self.head("failed"), "error": {"code": code, "message": refused.message}}

    def begin(self) -> bytes:
        head = self.head("in_progress")
        return self._event("response.created", response=head) + self._event("response.in_progress", response=head)

    def think(self, text: str) -> bytes:
        begun = b""
        if not self.thoughts:
            item = {**self._reasoning(), "summary": [], "status": "in_progress"}
            part = {"type": "summary_text", "text": ""}
            begun = self._event("response.output_item.added", output_index=0, item=item)
            begun += self._event("response.reasoning_summary_part.added", **self._in_reasoning, part=part)
        self.thoughts += text
        return begun + self._event("response.reasoning_summary_text.delta", **self._in_reasoning, delta=text)

    def end(self, result: Answer | RejectedRequest) -> Iterator[bytes]:
        """The end of the reasoning, then the answer piece by piece with its citations, or the failure."""
        if self.thoughts:
            item = self._reasoning()
            yield self._event("response.reasoning_summary_text.done", **self._in_reasoning, text=self.thoughts)
            yield self._event("response.reasoning_summary_part.done", **self._in_reasoning, part=item["summary"][0])
            yield self._event("response.output_item.done", output_index=0, item=item)
        if isinstance(result, RejectedRequest):
            yield self._event("response.failed", response=self.failed(result))
            return
        item, place = self._message(result), 1 if self.thoughts else 0
        yield from (self._write_call if item["type"] == "function_call" else self._write_message)(item, place)
        yield self._event("response.output_item.done", output_index=place, item=item)
        yield self._event(f"response.{status_of(result)}", response=self.whole(result))

    def _write_call(self, item: Mapping[str, Any], place: int) -> Iterator[bytes]:
        where, kind = {"item_id": item["id"], "output_index": place}, "response.function_call_arguments"
        begun = {**item, "status": "in_progress", "arguments": ""}
        yield self._event("response.output_item.added", output_index=place, item=begun)
        for piece in pieces(item["arguments"]):
            yield self._event(f"{kind}.delta", **where, delta=piece)
        yield self._event(f"{kind}.done", **where, name=item["name"], arguments=item["arguments"])

    def _write_message(self, item: Mapping[str, Any], place: int) -> Iterator[bytes]:
        (part,) = item["content"]
        field = "text" if part["type"] == "output_text" else "refusal"
        where = {"item_id": item["id"], "output_index": place, "content_index": 0}
        empty = {**part, field: "", **({"annotations": []} if field == "text" else {})}
        begun = {**item, "status": "in_progress", "content": []}
        more: dict[str, Any] = {"logprobs": []} if field == "text" else {}
        yield self._event("response.output_item.added", output_index=place, item=begun)
        yield self._event("response.content_part.added", **where, part=empty)
        for piece in pieces(part[field]):
            yield self._event(f"response.{part['type']}.delta", **where, delta=piece, **more)
        for index, annotation in enumerate(part.get("annotations", ())):
            added = {"annotation_index": index, "annotation": annotation}
            yield self._event("response.output_text.annotation.added", **where, **added)
        yield self._event(f"response.{part['type']}.done", **where, **{field: part[field]}, **more)
        yield self._event("response.content_part.done", **where, part=part)

    def _event(self, kind: str, **fields: Any) -> bytes:
        return f"event: {kind}\n".encode() + sse({"type": kind, "sequence_number": next(self._numbers), **fields})

    def _reasoning(self) -> dict[str, Any]:
        summary = [{"type": "summary_text", "text": self.thoughts}]
        return {"id": f"rs_{self.run}", "type": "reasoning", "status": "completed", "summary": summary}

    def _message(self, answer: Answer) -> dict[str, Any]:
        text = self._redact(answer.text)
        content = self._redact(content_of(answer, text))
        if self._tool and content["content"] is not None:
            call = {"call_id": f"call_{self.run}", "name": self._tool, "arguments": content["content"]}
            return {"id": f"fc_{self.run}", "type": "function_call", "status": "completed", **call}
        marks = [] if answer.output_type else self._redact(annotations(answer, text))
        part: dict[str, Any] = {"type": "refusal", "refusal": content["refusal"]}
        if content["content"] is not None:
            part = {"type": "output_text", "text": content["content"], "annotations": marks, "logprobs": []}
        head = {"id": f"msg_{self.run}", "type": "message", "role": "assistant"}
        return {**head, "status": status_of(answer), "content": [part]}

    def head(self, status: str) -> dict[str, Any]:
        """The response without its output, such as that of a run that is still in progress."""
        request = self.request
        form = request.text.format if request.text else None
        return {
            "id": f"{PREFIX}{self.run}",
            "object": "response",
            "created_at": self.made,
            "status": status,
            "model": request.model,
            "instructions": request.instructions,
            "previous_response_id": request.previous_response_id,
            "store": request.store is not False,
            "metadata": request.metadata or {},
            "text": {"format": form or {"type": "text"}},
            "tools": [],
            "tool_choice": "auto",
            "parallel_tool_calls": False,
            "error": None,
            "incomplete_details": None,
            "usage": None,
            "output": [],
        }


def status_of(answer: Answer) -> str:
    """`incomplete` for an answer that a budget, a person or a failure ended early."""
    return "incomplete" if answer.status not in FINAL else "completed"


def usage(spent: Usage) -> dict[str, Any]:
    """Format the usage of all roles. hira counts reasoning as output, and does not count writes to caches."""
    return {
        "input_tokens": spent.prompt_tokens,
        "input_tokens_details": {"cached_tokens": spent.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": spent.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": spent.tokens,
    }


def annotations(answer: Answer, text: str) -> list[dict[str, Any]]:
    """The citations: of a web page by its address, of other sources by name, id and, if known, place."""
    entries: list[dict[str, Any]] = []
    for start, end, source, place in find_marks(answer, text):
        title = source.title or source.location
        if source.location.startswith(("http://", "https://")):
            span = {"start_index": start, "end_index": end}
            entries.append({"type": "url_citation", "url": source.location, "title": title, **span})
        else:
            name = source.location.rpartition("/")[2] if source.kind == "file" else title
            where = {"place": place} if place else {}
            entries.append({"type": "file_citation", "file_id": source.id, "filename": name, "index": end, **where})
    return entries
