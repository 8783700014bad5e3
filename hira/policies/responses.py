"""The wire of the Responses API. Nothing is stored at the endpoint: the whole conversation is sent each time, and a
turn that called tools goes back as the items that the endpoint wrote, its encrypted reasoning among them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hira.core.errors import BadReply, UsageError
from hira.core.policy import Request
from hira.policies.chat import Accepted, convert_messages, least
from hira.policies.failures import failure_in, read_dict, read_list, read_string
from hira.policies.reply import ReplyParts

PATH = "/responses"
SHORTEST_REPLY = 16
"""Tokens: a lower limit is refused."""
ONLY_HERE = re.compile(r"\bv1/responses\b|\bResponses API\b", re.IGNORECASE)
"""A refusal of the chat API with these words means that this model has only the Responses API."""
_REMEMBERED = 1_000
_THOUGHT = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


class Turns:
    """Turns that called tools, as the endpoint wrote them, by the ids of their calls. The oldest are forgotten."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, ...], list[dict[str, Any]]] = {}

    def keep(self, items: Sequence[dict[str, Any]]) -> None:
        if calls := tuple(str(item.get("call_id")) for item in items if item.get("type") == "function_call"):
            self._items[calls] = list(items)
            while len(self._items) > _REMEMBERED:
                del self._items[next(iter(self._items))]

    def of(self, calls: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
        return self._items.get(tuple(str(call["id"]) for call in calls))


def responses_body(
    request: Request, model: str, turns: Turns, *, stream: bool = False, accepted: Accepted
) -> dict[str, Any]:
    """The request as it goes over the wire. The API has no stop strings, no seed and no top-k."""
    if request.continues:
        what = "this run continues the model's own message, which the Responses API cannot do"
        raise UsageError(what, fix='set continuation = "turns", or api = "chat"')
    sampling = request.sampling
    longest = least(sampling.max_tokens, accepted.longest)
    body: dict[str, Any] = {
        "model": model,
        "input": [item for wire in convert_messages(request.messages, accepted) for item in _items(wire, turns)],
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_output_tokens": longest and max(longest, SHORTEST_REPLY),
        "reasoning": {"effort": sampling.reasoning_effort} if sampling.reasoning_effort else None,
    }
    if request.tools:
        body["tools"] = [{"type": "function", "strict": False, **tool["function"]} for tool in request.tools]
        body["tool_choice"] = "none" if request.choose == "none" else None
    if request.schema is not None:
        body["text"] = {"format": {"type": "json_schema", "name": "reply", "schema": request.schema}}
    if stream:
        body["stream"] = True
    return {name: value for name, value in body.items() if value is not None and name not in accepted.without}


def _items(wire: Mapping[str, Any], turns: Turns) -> list[dict[str, Any]]:
    content = wire["content"]
    if wire["role"] == "tool":
        return [{"type": "function_call_output", "call_id": wire["tool_call_id"], "output": content}]
    calls = wire.get("tool_calls") or ()
    if calls and (written := turns.of(calls)):
        return written
    if not isinstance(content, str):
        content = [_part(part) for part in content]
    messages = [{"role": wire["role"], "content": content}] if content or not calls else []
    return [*messages, *({"type": "function_call", "call_id": call["id"], **call["function"]} for call in calls)]


def _part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    if part["type"] == "text":
        return {"type": "input_text", "text": part["text"]}
    if part["type"] == "image_url":
        return {"type": "input_image", "image_url": part["image_url"]["url"]}
    return part


def parts_of_response(reply: Any) -> ReplyParts:
    """Read a whole reply. `BadReply` if it is no response."""
    items = reply.get("output") if isinstance(reply, dict) else None
    if not isinstance(items, list):
        raise BadReply("the endpoint's reply contains no output", retryable=True)
    parts = ReplyParts(model=read_string(reply.get("model")), usage=_usage(reply.get("usage")))
    parts.items = [item for item in items if isinstance(item, dict)]
    for item in parts.items:
        kind = item.get("type")
        if kind == "message":
            parts.text += _texts(item.get("content"))
            parts.refusal += _texts(item.get("content"), "refusal")
        elif kind == "reasoning":
            parts.reasoning += _texts(item.get("summary")) + _texts(item.get("content"))
        elif kind == "function_call":
            names = {"id": "call_id", "name": "name", "arguments": "arguments"}
            call = {ours: read_string(item.get(theirs)) for ours, theirs in names.items()}
            parts.calls.append({"index": str(len(parts.calls)), **call})
    status = reply.get("status")
    parts.finish = "stop" if status in (None, "completed") else str(status)
    if status == "incomplete":
        reason = read_string(read_dict(reply.get("incomplete_details")).get("reason"))
        parts.finish = "content_filter" if reason == "content_filter" else "length"
    return parts


def take_event(parts: ReplyParts, event: dict[str, Any]) -> tuple[str, str, str]:
    """Take one event of a stream in; the text, the reasoning and the arguments of calls that it brought."""
    kind, delta = event.get("type"), read_string(event.get("delta"))
    if kind == "response.output_text.delta":
        return delta, "", ""
    if kind in _THOUGHT:
        return "", delta, ""
    if kind == "response.function_call_arguments.delta":
        return "", "", delta
    if kind not in _ENDS:
        return "", "", ""
    reply = event.get("response")
    if error := failure_in(reply):
        raise error
    whole = parts_of_response(reply)
    for name in ("calls", "finish", "usage", "model", "refusal", "items"):
        setattr(parts, name, getattr(whole, name))
    return "", "", ""


def _usage(usage: Any) -> dict[str, Any] | None:
    """The usage by the names of the chat API."""
    if not isinstance(usage, dict):
        return None
    return {
        **usage,
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "prompt_tokens_details": usage.get("input_tokens_details"),
    }


def _texts(content: Any, name: str = "text") -> str:
    return "".join(read_string(part.get(name)) for part in read_list(content) if isinstance(part, dict))
