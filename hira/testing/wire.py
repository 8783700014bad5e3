"""Completions as an OpenAI-compatible server writes them, and requests as it reads them."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from hira.core.messages import assistant, read_message
from hira.core.policy import Completion, Request, Sampling

StopStyle = Literal["strip", "keep", "name"]

_FINISH = {"stop": "stop", "length": "length", "calls": "tool_calls", "filtered": "content_filter"}
_PIECES = re.compile(r"\S+\s*|\s+")


def request_of(body: Mapping[str, Any]) -> Request:
    """The request that hira sent, as far as the wire tells; `conversation` is the model's name."""
    schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
    messages = body.get("messages") or [{"role": "user", "content": body.get("prompt", "")}]
    named = {name: body.get(name) for name in ("temperature", "top_p", "top_k", "seed", "reasoning_effort")}
    return Request(
        tuple(map(read_message, messages)),
        Sampling(**named, max_tokens=body.get("max_tokens", body.get("max_completion_tokens"))),
        tuple(body.get("stop") or ()),
        tuple(body.get("tools") or ()),
        schema,
        choose="none" if body.get("tool_choice") == "none" else "auto",
        continues=messages[-1]["role"] == "assistant",
        conversation=body.get("model", ""),
    )


def reply_of(completion: Completion, model: str, stops: StopStyle) -> dict[str, Any]:
    """The whole reply, as a plain request gets it."""
    message = {**assistant(completion.text, completion.calls).wire}
    if completion.reasoning:
        message["reasoning_content"] = completion.reasoning
    if completion.calls:
        message["content"] = completion.text or None
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
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


def as_completion(reply: Mapping[str, Any]) -> dict[str, Any]:
    """A chat reply in the shape of the older completions API."""
    choice = reply["choices"][0]
    old = {key: value for key, value in choice.items() if key != "message"} | {"text": choice["message"]["content"]}
    return {**reply, "object": "text_completion", "choices": [old]}


_STATUS = {"length": "max_output_tokens", "content_filter": "content_filter"}


def chat_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same request as a client of the chat API would have written it."""
    messages: list[dict[str, Any]] = []
    for item in body["input"]:
        kind = item.get("type", "message")
        if kind == "function_call":
            function = {"name": item["name"], "arguments": item["arguments"]}
            call = {"id": item["call_id"], "type": "function", "function": function}
            if messages and messages[-1]["role"] == "assistant":
                messages[-1].setdefault("tool_calls", []).append(call)
            else:
                messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        elif kind == "function_call_output":
            messages.append({"role": "tool", "content": item["output"], "tool_call_id": item["call_id"]})
        elif kind == "message":
            content = item["content"]
            if not isinstance(content, str):
                content = [
                    {"type": "image_url", "image_url": {"url": part["image_url"]}}
                    if part["type"] == "input_image"
                    else part | ({"type": "text"} if "text" in part else {})
                    for part in content
                ]
            messages.append({"role": item["role"], "content": content})
    chat = {name: body[name] for name in ("model", "temperature", "top_p", "tool_choice", "stream") if name in body}
    chat |= {"messages": messages, "max_tokens": body.get("max_output_tokens")}
    functions = [
        {name: value for name, value in tool.items() if name not in ("type", "strict")}
        for tool in body.get("tools") or ()
    ]
    chat["tools"] = [{"type": "function", "function": function} for function in functions]
    chat["reasoning_effort"] = (body.get("reasoning") or {}).get("effort")
    if form := (body.get("text") or {}).get("format"):
        chat["response_format"] = {"type": "json_schema", "json_schema": {"schema": form.get("schema")}}
    return chat


def response_of(reply: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chat reply as a response; `encrypted_content` shows a test that reasoning was sent back."""
    choice = reply["choices"][0]
    message, output = choice["message"], []
    if thought := message.get("reasoning_content"):
        summary = [{"type": "summary_text", "text": thought}]
        sealed = b64encode(thought.encode()).decode()
        output.append({"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": sealed})
    if message.get("content"):
        text = {"type": "output_text", "text": message["content"], "annotations": []}
        output.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]})
    for index, call in enumerate(message.get("tool_calls") or ()):
        written = {"id": f"fc_{index}", "call_id": call["id"], "status": "completed", **call["function"]}
        output.append({"type": "function_call", **written})
    usage = reply["usage"]
    reason = _STATUS.get(choice["finish_reason"], "")
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "error": None,
        "model": reply["model"],
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "output_tokens": usage["completion_tokens"],
            "total_tokens": usage["total_tokens"],
            "input_tokens_details": usage["prompt_tokens_details"],
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def events_of(response: Mapping[str, Any]) -> Iterator[bytes]:
    """The same response in pieces, as a streaming request gets it."""
    number = 0

    def event(kind: str, **more: Any) -> bytes:
        nonlocal number
        number += 1
        data = json.dumps({"type": kind, "sequence_number": number - 1, **more}, ensure_ascii=False)
        return f"event: {kind}\ndata: {data}\n\n".encode()

    yield event("response.created", response={**response, "status": "in_progress", "output": [], "usage": None})
    for index, item in enumerate(response["output"]):
        yield event("response.output_item.added", output_index=index, item={**item, "status": "in_progress"})
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            for piece in pieces_of(item["content"][0]["text"]):
                yield event("response.output_text.delta", **place, content_index=0, delta=piece, logprobs=[])
        elif item["type"] == "reasoning":
            for piece in pieces_of(item["summary"][0]["text"]):
                yield event("response.reasoning_summary_text.delta", **place, summary_index=0, delta=piece)
        else:
            for piece in pieces_of(item["arguments"]):
                yield event("response.function_call_arguments.delta", **place, delta=piece)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event(f"response.{response['status']}", response=response)
