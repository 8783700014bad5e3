"""The chat API's wire, on the way out: a request as the dict that is sent, and which of its fields, tools and media the
endpoint refuses."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import Any, Literal

from hira.core.errors import EndpointError, MediaRefused, ToolsRefused, UsageError
from hira.core.messages import Message
from hira.core.patterns import compile_lazily
from hira.core.policy import Request
from hira.policies.failures import OVERFLOW, codes_in, message_in, number, tools_refused
from hira.policies.names import Continuation

_REFUSED = compile_lazily(
    r"unsupported|not supported|not? support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed|extra"
    r"|not implemented|deprecated|no longer|invalid (?:parameter|argument|field)|array too long|cannot both be",
    re.IGNORECASE,
)
_REPLY_TOO_LONG = compile_lazily(
    r"too large|valid range|less than or equal|at most|must be <=|exceeds? the|maximum", re.IGNORECASE
)
_ROOM = compile_lazily(
    r"maximum context length is (\d+).{0,60}?(?:has|with|contains) (?:at least )?(\d+) input", re.IGNORECASE
)
_SYSTEM = compile_lazily(
    r"system\W{0,3}(?:role|message|instruction)|role\W.{0,40}\bsystem\b|developer instruction", re.IGNORECASE
)
_ALTERNATE = compile_lazily(r"roles must alternate|must alternate between", re.IGNORECASE)
_SCHEMA = compile_lazily(r"response_format|json_schema|json schema|schema|grammar|structured|guided", re.IGNORECASE)
SYSTEM, ALTERNATE = "system messages", "messages of one role in a row"
"""Properties of the messages that an endpoint may refuse, listed together with the optional fields of a request."""
PROMPT_CACHE_KEY = "prompt_cache_key"
OPTIONAL = (
    *("temperature", "top_p", "top_k", "seed", "reasoning_effort", "stop"),
    *("max_tokens", "max_completion_tokens", "max_output_tokens"),
    *("reasoning", "include", "store", "stream_options", "tool_choice", PROMPT_CACHE_KEY),
)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The known limits of an endpoint. `without` are body fields that it has refused; `stops` is the most stop strings,
    `longest` the most tokens of a reply."""

    without: frozenset[str] = frozenset()
    longest: int | None = None
    stops: int = 64
    length: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"


BY_OPENAI = Accepted(length="max_completion_tokens", stops=4)


def without(accepted: Accepted, field: str, stops: int) -> Accepted:
    """The limits of an endpoint that has also refused this field; `stops` is the number of stop strings sent."""
    if field == "max_tokens" and accepted.length == "max_tokens":
        return replace(accepted, length="max_completion_tokens")
    if field == "stop" and stops > BY_OPENAI.stops:
        return replace(accepted, stops=BY_OPENAI.stops)
    return replace(accepted, without=accepted.without | {field})


def find_refused_field(status: int, body: Any, sent: Mapping[str, Any]) -> str:
    """The optional field that this response refuses; `SYSTEM` or `ALTERNATE` for the messages; empty for none."""
    text = f"{codes_in(body)} {message_in(body)}"
    if OVERFLOW.search(text):
        return ""
    constrained = next((name for name in ("response_format", "text") if name in sent), "")
    if constrained and (status == 501 or (status in {400, 404, 422, 500} and _SCHEMA.search(text))):
        return constrained
    roles = [message["role"] for message in sent.get("messages", ())] if status in {400, 422, 500} else []
    if "system" in roles and _SYSTEM.search(text) and _REFUSED.search(text):
        return SYSTEM
    if len(roles) > 1 and _ALTERNATE.search(text):
        return ALTERNATE
    if status not in {400, 422} or not _REFUSED.search(text):
        return ""
    named = [name for name in OPTIONAL if name in sent and re.search(rf"\b{name}\b", text)]
    return "" if not named else named[-1] if "cannot both be" in text else named[0]


def longest_reply(status: int, body: Any, sent: Mapping[str, Any]) -> tuple[int, bool]:
    """The most tokens of a reply if this response refuses the number that was sent, otherwise 0; and whether that limit
    holds for every prompt, and not only for the room that this one leaves in the window."""
    message = message_in(body)
    lengths = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    limit = next((sent[name] for name in lengths if name in sent), 0)
    named = re.search(r"\bmax_(?:completion_|output_)?tokens\b", f"{codes_in(body)} {message}")
    if status not in {400, 422} or not limit or not named:
        return 0, False
    if room := _ROOM.search(message):
        left = int(room[1]) - int(room[2])
        return left if 0 < left < limit else 0, False
    if OVERFLOW.search(message) or not _REPLY_TOO_LONG.search(message):
        return 0, False
    counts = [number(digits) for digits in re.findall(r"\d[\d,_]*", message)]
    return max((count for count in counts if 1 < count < limit), default=0), True


TOOLS = "tools"
MEDIA = {"image": "pictures", "audio": "sounds", "video": "videos"}

_KINDS = {
    "image": compile_lazily(
        r"\b(?:image_url|input_image|images?|vision|multi-?modal)\b|content\[\]\.type", re.IGNORECASE
    ),
    "audio": compile_lazily(r"\b(?:input_audio|audio|sounds?|multi-?modal)\b|content\[\]\.type", re.IGNORECASE),
    "video": compile_lazily(r"\b(?:video_url|videos?|multi-?modal)\b|content\[\]\.type", re.IGNORECASE),
}
_NOT_TAKEN = compile_lazily(
    r"\bnot\b.{0,30}\b(?:support|accept|allow|enabled|available|a multi-?modal)|n't support|unsupported|unrecogni[sz]ed"
    r"|unknown (?:variant|type|part|content)|invalid (?:content type|part type)|supported values are|only supported by"
    r"|support(?:s|ed)? (?:only )?text|text[- ]only|at most 0|no endpoints? found|missing data required"
    r"|cannot (?:take|process|handle)|mmproj",
    re.IGNORECASE,
)
# faults of this one picture, not of all of them
_THIS_ONE = compile_lazily(
    r"too (?:large|big|small|long|many)|\b(?:decod|download|fetch|corrupt|dimension|pixel)"
    r"|base64|\bformats?\b|\bsize\b|\bmime",
    re.IGNORECASE,
)
_STATUSES = frozenset({0, 400, 404, 415, 422, 500, 501})


@cache
def refusals_of(base_url: str, model: str) -> set[str]:
    """Return the kinds that this model at this endpoint has refused: "tools", "image", "audio", "video"."""
    del base_url, model
    return set()


def kinds_of(request: Request) -> list[str]:
    return list(dict.fromkeys(media.kind for message in request.messages for media in message.media))


def no_media(status: int, message: str, kinds: Iterable[str]) -> str:
    """The first of these kinds of media that the endpoint never takes, by this failure; empty without one."""
    if status not in _STATUSES or _THIS_ONE.search(message) or not _NOT_TAKEN.search(message):
        return ""
    return next((kind for kind in kinds if _KINDS[kind].search(message)), "")


def learn_from_error(error: EndpointError, request: Request, known: set[str]) -> EndpointError:
    """Return the error, as `MediaRefused` if it means that. Keep in `known` what the endpoint refuses."""
    if isinstance(error, ToolsRefused) and request.tools:
        known.add(TOOLS)
    elif kind := no_media(error.status, error.what, kinds_of(request)):
        known.add(kind)
        return media_refused(kind, status=error.status, message=error.what)
    return error


def check(request: Request, known: set[str]) -> None:
    """Raise the refusal that the endpoint is known to give."""
    if request.tools and TOOLS in known:
        raise tools_refused("the endpoint takes no tool calls")
    for kind in kinds_of(request):
        if kind in known:
            raise media_refused(kind)


def media_refused(kind: str, *, where: str = "", status: int = 0, message: str = "") -> MediaRefused:
    what = f"the model takes no {MEDIA[kind]}" + (f" ({message})" if message else "")
    return MediaRefused(what, where=where, fix=f"use a model that takes {MEDIA[kind]} for the role look", status=status)


TURN_ENDS = "<|im_end|>"


def body_of(
    request: Request, model: str, *, continuation: Continuation = "none", stream: bool = False, accepted: Accepted
) -> dict[str, Any]:
    """The request as it goes over the wire; fields the endpoint has refused are left out."""
    body: dict[str, Any] = {"model": model}
    sampling, stops = request.sampling, list(request.stop)
    if request.continues and continuation == "completions":
        # ChatML, the last turn left open
        text = "".join(f"<|im_start|>{message.role}\n{message.text}{TURN_ENDS}\n" for message in request.messages[:-1])
        body["prompt"] = f"{text}<|im_start|>assistant\n{request.messages[-1].text}"
        stops.insert(0, TURN_ENDS)
    else:
        body["messages"] = messages = convert_messages(request.messages, accepted)
        if request.continues and continuation == "continue_final_message":
            body |= {"add_generation_prompt": False, "continue_final_message": True}
        elif request.continues and continuation == "prefix":
            messages[-1] = messages[-1] | {"prefix": True}
        elif request.continues:
            what = "this run continues the model's own message, which this endpoint is not configured for"
            fix = "set its continuation to continue_final_message, prefix or completions"
            raise UsageError(what, fix=f"{fix}, or run with continuation 'turns'")
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
        wires = [wire | {"role": "user"} if wire["role"] == "system" else wire for wire in wires]
    if not {SYSTEM, ALTERNATE} & accepted.without:
        return wires
    joined: list[dict[str, Any]] = []
    for wire in wires:
        last = joined[-1] if joined else {}
        if not wire.keys() == last.keys() == {"role", "content"} or wire["role"] != last["role"]:
            joined.append(wire)
            continue
        contents = (last["content"], wire["content"])
        if all(isinstance(content, str) for content in contents):
            joined[-1] = wire | {"content": "\n\n".join(contents)}
        else:
            parts = ([{"type": "text", "text": part}] if isinstance(part, str) else part for part in contents)
            joined[-1] = wire | {"content": [*chain(*parts)]}
    return joined


def least(wanted: int | None, longest: int | None) -> int | None:
    """The smaller of two limits; None if nothing is wanted."""
    return wanted if wanted is None or longest is None else min(wanted, longest)
