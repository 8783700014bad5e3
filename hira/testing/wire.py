"""Completions as an OpenAI-compatible server writes them, and requests as it reads them."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from hira.core.messages import Message, ToolCall
from hira.core.policy import Completion, Request, Sampling

StopStyle = Literal["strip", "keep", "name"]

_FINISH = {"stop": "stop", "length": "length", "calls": "tool_calls", "filtered": "content_filter"}
_PIECES = re.compile(r"\S+\s*|\s+")


def request_of(body: Mapping[str, Any]) -> Request:
    """The request that hira sent, as far as the wire tells; `conversation` is the model's name."""
    schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
    messages = body.get("messages") or [{"role": "user", "content": body.get("prompt", "")}]
    return Request(
        tuple(_message(said) for said in messages),
        Sampling(
            temperature=body.get("temperature"),
            top_p=body.get("top_p"),
            top_k=body.get("top_k"),
            max_tokens=body.get("max_tokens", body.get("max_completion_tokens")),
            seed=body.get("seed"),
            reasoning_effort=body.get("reasoning_effort"),
        ),
        tuple(body.get("stop") or ()),
        tuple(body.get("tools") or ()),
        schema,
        choose="none" if body.get("tool_choice") == "none" else "auto",
        continues=messages[-1]["role"] == "assistant",
        conversation=body.get("model", ""),
    )


def reply_of(completion: Completion, model: str, stops: StopStyle) -> dict[str, Any]:
    """The whole reply, as a plain request gets it."""
    message: dict[str, Any] = {"role": "assistant", "content": completion.text or None}
    if completion.reasoning:
        message["reasoning_content"] = completion.reasoning
    if completion.calls:
        message["tool_calls"] = [_call(call) for call in completion.calls]
    else:
        message["content"] = completion.text
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": _FINISH[completion.finish]}
    if completion.stop is not None and stops == "keep":
        message["content"] = completion.text + completion.stop
    if completion.stop is not None and stops == "name":
        choice["stop_reason"] = completion.stop
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": completion.model or model,
        "choices": [choice],
        "usage": {
            "prompt_tokens": completion.usage.prompt_tokens,
            "completion_tokens": completion.usage.completion_tokens,
            "total_tokens": completion.usage.tokens,
            "prompt_tokens_details": {"cached_tokens": completion.usage.cached_tokens},
        },
    }


def chunks_of(reply: Mapping[str, Any], *, usage: bool) -> Iterator[dict[str, Any]]:
    """The same reply in pieces, as a streaming request gets it."""
    head = {key: reply[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    choice = reply["choices"][0]
    message = choice["message"]

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for name in ("reasoning_content", "content"):
        for piece in pieces_of(message.get(name) or ""):
            yield chunk({name: piece})
    for index, call in enumerate(message.get("tool_calls", ())):
        function, arguments = call["function"], call["function"]["arguments"]
        half = len(arguments) // 2
        yield chunk({"tool_calls": [call | {"index": index, "function": {"name": function["name"], "arguments": ""}}]})
        for part in (arguments[:half], arguments[half:]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    last = chunk({}, choice["finish_reason"])
    if "stop_reason" in choice:
        last["choices"][0]["stop_reason"] = choice["stop_reason"]
    yield last
    if usage:
        yield head | {"choices": [], "usage": reply["usage"]}


def pieces_of(text: str) -> list[str]:
    """The pieces in which a text streams: words, each with the spaces after it."""
    return _PIECES.findall(text)


def event(chunk: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


def as_completion(reply: Mapping[str, Any]) -> dict[str, Any]:
    """A chat reply in the shape of the older completions API."""
    choice = reply["choices"][0]
    old = {key: value for key, value in choice.items() if key != "message"} | {"text": choice["message"]["content"]}
    return {**reply, "object": "text_completion", "choices": [old]}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _message(said: Mapping[str, Any]) -> Message:
    content = said.get("content") or ""
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    calls = tuple(
        ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in said.get("tool_calls") or ()
    )
    return Message(said["role"], content, calls=calls, call_id=said.get("tool_call_id", ""))
