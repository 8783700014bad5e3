"""The formats of `/v1/chat/completions`: requests, answers and progress."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import BaseModel, Field

from hira.agents.trajectory import FINAL
from hira.core.policy import Usage
from hira.evidence.citations import find_page
from hira.runtime.answer import Answer
from hira.server.keys import RejectedRequest
from hira.server.messages import AnswerForm, Count, Spoken, read_form, read_request, reject_fields
from hira.server.wire import about, content_of, find_marks, pieces

LACKING = {
    "logprobs": "hira has no log-probabilities: several calls make an answer; remove it",
    "top_logprobs": "hira has no log-probabilities: several calls make an answer; remove it",
    "audio": "hira answers in text; remove it",
}
"""Parts of an answer that hira does not have, each with what to do."""
Stop = Annotated[str, Field(min_length=1)]


class StreamOptions(BaseModel):
    include_usage: bool | None = None


class ChatRequest(BaseModel):
    """A chat completion request. Fields that hira decides by its settings, such as the temperature, are not read."""

    model: str = Field(min_length=1)
    messages: list[Spoken] = Field(min_length=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    stop: Stop | list[Stop] | None = None
    logprobs: Any = None
    top_logprobs: Any = None
    audio: Any = None
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    tool_choice: str | dict[str, Any] | None = None
    response_format: dict[str, Any] | None = None

    def cut(self, answer: Answer, text: str) -> str:
        """Return the text up to the first stop string. A typed answer stays whole."""
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        places = [text.find(stop) for stop in stops if not answer.output_type]
        return text[: min((place for place in places if place >= 0), default=len(text))]


def read_chat(body: bytes) -> ChatRequest:
    """Parse the request. Raises `RejectedRequest` for its faults, and for features that hira lacks."""
    request = read_request(body, ChatRequest)
    if request.n not in (None, 1):
        raise RejectedRequest(400, "hira gives one answer; remove it", "unsupported_value", field="n")
    reject_fields(request, LACKING)
    return request


def read_answer_form(request: ChatRequest) -> AnswerForm:
    """Return the form of the answer. Raises `RejectedRequest` for one that hira does not write."""
    form = request.response_format or {}
    described = form.get("json_schema")
    schema = described.get("schema") if isinstance(described, dict) else None
    tools = request.tools or request.functions or ()
    return read_form(form, schema, "response_format.json_schema", tools, request.tool_choice)


def completion(answer: Answer, text: str, model: str, reasoning: str, made: int, tool: str) -> dict[str, Any]:
    """Format the whole answer, with this text, as one chat completion; as a call of the tool if there is one."""
    message: dict[str, Any] = {"role": "assistant", **content_of(answer, text)}
    if tool and message["content"] is not None:
        function = {"name": tool, "arguments": message["content"]}
        message["tool_calls"] = [{"id": f"call_{answer.rollout.run}", "type": "function", "function": function}]
        message["content"] = None
    if reasoning:
        message["reasoning_content"] = reasoning
    message["annotations"] = [] if answer.output_type else annotations(answer, text)
    return {
        "id": f"chatcmpl-{answer.rollout.run}",
        "object": "chat.completion",
        "created": made,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish(answer, tool), "logprobs": None}],
        "usage": usage(answer.rollout.usage),
        "hira": about(answer),
    }


def chunk(run: str, model: str, made: int, delta: Mapping[str, Any], ending: str | None = None) -> dict[str, Any]:
    """A piece of a streamed answer."""
    choice = {"index": 0, "delta": dict(delta), "finish_reason": ending, "logprobs": None}
    head = {"id": f"chatcmpl-{run}", "object": "chat.completion.chunk", "created": made, "model": model}
    return {**head, "choices": [choice]}


def split_message(run: str, content: Mapping[str, str | None], tool: str) -> Iterator[dict[str, Any]]:
    """Yield the pieces of the answer: of its text or its refusal, or of a call of the tool that takes it."""
    for name, text in content.items():
        if text and tool and name == "content":
            function = {"name": tool, "arguments": ""}
            yield {"tool_calls": [{"index": 0, "id": f"call_{run}", "type": "function", "function": function}]}
            for piece in pieces(text):
                yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}
        else:
            yield from ({name: piece} for piece in pieces(text or ""))


def finish(answer: Answer, tool: str) -> str:
    """`length` for an answer that a budget, a person or a failure ended early."""
    if answer.status not in FINAL:
        return "length"
    return "tool_calls" if tool and answer.rollout.has_output else "stop"


def usage(spent: Usage) -> dict[str, Any]:
    """Format the usage of all roles."""
    return {
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
        "total_tokens": spent.tokens,
        "prompt_tokens_details": {"cached_tokens": spent.cached_tokens},
    }


def annotations(answer: Answer, text: str) -> list[dict[str, Any]]:
    """The citations as the chat API has them; documents have a file URL by their name, with the page."""
    entries = []
    for start, end, source, place in find_marks(answer, text):
        url = source.location
        if not url.startswith(("http://", "https://")):
            page = find_page(place)
            url = f"file:{quote(url)}" + (f"#page={page}" if page else "")
        title = ", ".join(filter(None, (source.title or source.location, place)))
        citation = {"url": url, "title": title, "start_index": start, "end_index": end}
        entries.append({"type": "url_citation", "url_citation": citation})
    return entries
