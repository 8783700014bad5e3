"""The chat API's wire, on the way out: a request as the dict that is sent."""

from collections.abc import Sequence
from typing import Any, Literal

from hira.core.errors import UsageError
from hira.core.messages import Message
from hira.core.policy import Request
from hira.policies.accepted import ALTERNATE, SYSTEM, Accepted

Continuation = Literal["none", "continue_final_message", "prefix", "completions"]
TURN_ENDS = "<|im_end|>"


def body_of(
    request: Request, model: str, *, continuation: Continuation = "none", stream: bool = False, accepted: Accepted
) -> dict[str, Any]:
    """The request as it goes over the wire; fields the endpoint has refused are left out."""
    body: dict[str, Any] = {"model": model}
    sampling, stops = request.sampling, list(request.stop)
    if request.continues and continuation == "completions":
        body["prompt"] = _chatml(request.messages)
        stops.insert(0, TURN_ENDS)
    else:
        body["messages"] = messages = convert_messages(request.messages, accepted)
        if request.continues:
            messages[-1] = _continue_message(body, messages[-1], continuation)
        if request.tools:
            body["tools"] = list(request.tools)
            if request.choose == "none":
                body["tool_choice"] = "none"
    optional = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        accepted.length: least(sampling.max_tokens, accepted.longest),
        "seed": sampling.seed,
        "reasoning_effort": sampling.reasoning_effort,
        "stop": stops[: accepted.stops] or None,
    }
    body |= {name: value for name, value in optional.items() if value is not None}
    if request.schema is not None:
        schema = {"name": "reply", "schema": request.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    for name in accepted.without:
        body.pop(name, None)
    return body


def convert_messages(messages: Sequence[Message], accepted: Accepted) -> list[dict[str, Any]]:
    """Convert the messages for the endpoint. If it takes no system message, its text goes into the first user message;
    if it refuses consecutive messages of one role, they are joined."""
    wires = [message.wire for message in messages]
    if SYSTEM in accepted.without:
        wires = [one | {"role": "user"} if one["role"] == "system" else one for one in wires]
    if not {SYSTEM, ALTERNATE} & accepted.without:
        return wires
    joined: list[dict[str, Any]] = []
    for one in wires:
        last = joined[-1] if joined else {}
        if one.keys() == last.keys() == {"role", "content"} and one["role"] == last["role"]:
            joined[-1] = one | {"content": _join_contents(last["content"], one["content"])}
        else:
            joined.append(one)
    return joined


def _join_contents(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    parts = [[{"type": "text", "text": one}] if isinstance(one, str) else one for one in (first, second)]
    return [*parts[0], *parts[1]]


def least(asked: int | None, longest: int | None) -> int | None:
    """The smaller of two limits, of which either may be missing."""
    return asked if asked is None or longest is None else min(asked, longest)


def _continue_message(body: dict[str, Any], last: dict[str, Any], continuation: Continuation) -> dict[str, Any]:
    if continuation == "continue_final_message":
        body |= {"add_generation_prompt": False, "continue_final_message": True}
        return last
    if continuation == "prefix":
        return last | {"prefix": True}
    raise UsageError(
        "this run continues the model's own message, which this endpoint is not configured for",
        fix="set its continuation to continue_final_message, prefix or completions, or run with continuation 'turns'",
    )


def _chatml(messages: Sequence[Message]) -> str:
    """The messages in ChatML, the last turn left open."""
    text = "".join(f"<|im_start|>{message.role}\n{message.text}{TURN_ENDS}\n" for message in messages[:-1])
    return f"{text}<|im_start|>assistant\n{messages[-1].text}"
