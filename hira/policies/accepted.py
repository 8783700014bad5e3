"""What an endpoint takes of a request, learned from what it refuses. The request is then sent again without that."""

import re
from collections.abc import Mapping
from typing import Any, Literal

from hira.core.dataclasses import dataclass, replace
from hira.core.patterns import compile_lazily
from hira.policies.failures import OVERFLOW, codes_in, message_in, number

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
"""What an endpoint may refuse of the messages themselves; named beside the optional fields of a request."""
OPTIONAL = (
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "reasoning_effort",
    "stop",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "reasoning",
    "include",
    "store",
    "stream_options",
    "tool_choice",
)


@dataclass(frozen=True, slots=True)
class Accepted:
    """What is known of an endpoint's taste. `without` are body fields it has refused; `stops` is how many it takes,
    `longest` how many tokens a reply may have."""

    without: frozenset[str] = frozenset()
    longest: int | None = None
    stops: int = 64
    length: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"


BY_OPENAI = Accepted(length="max_completion_tokens", stops=4)


def without(accepted: Accepted, field: str, stops: int) -> Accepted:
    """The taste of an endpoint that has refused this field; `stops` is how many stop strings were sent."""
    if field == "max_tokens" and accepted.length == "max_tokens":
        return replace(accepted, length="max_completion_tokens")
    if field == "stop" and stops > BY_OPENAI.stops:
        return replace(accepted, stops=BY_OPENAI.stops)
    return replace(accepted, without=accepted.without | {field})


def refused_field(status: int, body: Any, sent: Mapping[str, Any]) -> str:
    """The optional field of the request that this response refuses; empty if it refuses none."""
    told = f"{codes_in(body)} {message_in(body)}"
    if OVERFLOW.search(told):
        return ""
    schema_statuses = {400, 404, 422, 500, 501}
    constrained = next((name for name in ("response_format", "text") if name in sent), "")
    if constrained and status in schema_statuses and (status == 501 or _SCHEMA.search(told)):
        return constrained
    if status in {400, 422, 500} and (turns := refused_turns(told, sent)):
        return turns
    if status not in {400, 422} or not _REFUSED.search(told):
        return ""
    named = [name for name in OPTIONAL if name in sent and re.search(rf"\b{name}\b", told)]
    return "" if not named else named[-1] if "cannot both be" in told else named[0]


def refused_turns(told: str, sent: Mapping[str, Any]) -> str:
    """`SYSTEM` or `ALTERNATE` where the response refuses the roles of the request's messages; empty if it does not."""
    roles = [message["role"] for message in sent.get("messages", ())]
    if "system" in roles and _SYSTEM.search(told) and _REFUSED.search(told):
        return SYSTEM
    return ALTERNATE if _ALTERNATE.search(told) and len(roles) > 1 else ""


def longest_reply(status: int, body: Any, sent: Mapping[str, Any]) -> tuple[int, bool]:
    """How many tokens a reply may have by this response, if it refuses the number that was sent; 0 if it does not.
    And whether that holds for every prompt: what one prompt leaves of the window is no measure for another.
    """
    said = message_in(body)
    lengths = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    asked = next((sent[name] for name in lengths if name in sent), 0)
    if (
        status not in {400, 422}
        or not asked
        or not re.search(r"\bmax_(?:completion_|output_)?tokens\b", f"{codes_in(body)} {said}")
    ):
        return 0, False
    if room := _ROOM.search(said):
        left = int(room[1]) - int(room[2])
        return left if 0 < left < asked else 0, False
    if OVERFLOW.search(said) or not _REPLY_TOO_LONG.search(said):
        return 0, False
    named = [number(one) for one in re.findall(r"\d[\d,_]*", said)]
    return max((one for one in named if 1 < one < asked), default=0), True
