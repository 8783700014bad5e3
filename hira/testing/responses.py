"""The Responses API as a server writes it, and requests of it in the shape of the chat API."""

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any

from hira.testing.wire import pieces_of

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
            messages.append({"role": item["role"], "content": item["content"]})
    chat = {name: body[name] for name in ("model", "temperature", "top_p", "tool_choice", "stream") if name in body}
    chat |= {"messages": messages, "max_tokens": body.get("max_output_tokens")}
    chat["tools"] = [
        {
            "type": "function",
            "function": {name: value for name, value in tool.items() if name not in ("type", "strict")},
        }
        for tool in body.get("tools") or ()
    ]
    chat["reasoning_effort"] = (body.get("reasoning") or {}).get("effort")
    if form := (body.get("text") or {}).get("format"):
        chat["response_format"] = {"type": "json_schema", "json_schema": {"schema": form.get("schema")}}
    return chat


def response_of(reply: Mapping[str, Any]) -> dict[str, Any]:
    """The response that says what a reply of the chat API says. Reasoning comes with content that stands for an
    encrypted one, by which a test can see that it was sent back."""
    choice = reply["choices"][0]
    message, output = choice["message"], []
    if thought := message.get("reasoning_content"):
        summary = [{"type": "summary_text", "text": thought}]
        sealed = b64encode(thought.encode()).decode()
        output.append({"type": "reasoning", "id": "rs_1", "summary": summary, "encrypted_content": sealed})
    if message.get("content"):
        text = {"type": "output_text", "text": message["content"], "annotations": []}
        output.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]})
    for at, call in enumerate(message.get("tool_calls") or ()):
        output.append(
            {
                "type": "function_call",
                "id": f"fc_{at}",
                "call_id": call["id"],
                "status": "completed",
                **call["function"],
            }
        )
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
    for at, item in enumerate(response["output"]):
        yield event("response.output_item.added", output_index=at, item={**item, "status": "in_progress"})
        place = {"item_id": item["id"], "output_index": at}
        if item["type"] == "message":
            for piece in pieces_of(item["content"][0]["text"]):
                yield event("response.output_text.delta", **place, content_index=0, delta=piece, logprobs=[])
        elif item["type"] == "reasoning":
            for piece in pieces_of(item["summary"][0]["text"]):
                yield event("response.reasoning_summary_text.delta", **place, summary_index=0, delta=piece)
        else:
            for piece in pieces_of(item["arguments"]):
                yield event("response.function_call_arguments.delta", **place, delta=piece)
        yield event("response.output_item.done", output_index=at, item=item)
    yield event(f"response.{response['status']}", response=response)
