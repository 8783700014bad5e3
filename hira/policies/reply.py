"""Parses replies of the chat API into completions. Servers differ in the place of reasoning, the form of calls, whether
a stop string is kept, stripped or named, and whether the beginning of a continued message is repeated."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from uuid import uuid4

from hira.core.errors import BadReply
from hira.core.messages import ToolCall
from hira.core.policy import Completion, Finish, Request, Tokens, Usage, cut_at_stop
from hira.core.tokens import count, read_count
from hira.policies.chat import TURN_ENDS
from hira.policies.failures import EmptyReply, gist, read_dict, read_list, read_string
from hira.policies.repetition import find_repetition

N = TypeVar("N", int, float)
_FINISH: Mapping[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "calls",
    "function_call": "calls",
    "content_filter": "filtered",
    "refusal": "filtered",
    "safety": "filtered",
    "recitation": "filtered",
    "blocklist": "filtered",
    "prohibited_content": "filtered",
}
REPEATS_ITSELF = "the reply only repeated itself; it is cut after the first repetition"
ECHOES = "the model repeats its prompt; the repetition is removed from the reply"
UNENDED = "the endpoint does not report how its replies end: hira cannot detect a reply that was cut off"
_ECHO = 200
"""Characters from which on a message that a reply begins with is an echo."""
_REASONING = ("reasoning", "reasoning_content", "thinking")
_BROKE_OFF = frozenset({"error", "abort", "aborted", "cancelled", "canceled"})
_SUSPECT_BYTES = 6000
_SUSPECT_TOKENS = 2000
_BYTES_A_TOKEN = 7  # of what was read; English has four or five, so half of it left unread is seen


@dataclass(slots=True)
class ReplyParts:
    """A reply as it comes together, whole or in pieces; fields as the server names them."""

    text: str = ""
    reasoning: str = ""
    calls: list[dict[str, str]] = field(default_factory=list)
    finish: str | None = None
    stop: Any = None
    usage: Mapping[str, Any] | None = None
    model: str = ""
    refusal: str = ""
    sent: int = 0
    """In bytes."""
    pieces: int = 0
    """Pieces of a stream that held some text."""
    items: list[dict[str, Any]] = field(default_factory=list)
    """Items of the Responses API."""
    cut: str = ""
    """Why hira ended the reply."""
    dropped: str = ""
    """The rest of the reply beyond its text."""
    prompt_ids: list[int] = field(default_factory=list)
    sampled_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


def parts_of(reply: Any) -> ReplyParts:
    """Read a whole reply. `BadReply` if it is no completion."""
    choices = reply.get("choices") if isinstance(reply, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        explanation = gist(read_string(reply.get("message"))) if isinstance(reply, dict) else ""
        what = f"the endpoint's reply contains no choices{explanation and f': {explanation}'}"
        raise BadReply(what, retryable=True)
    usage = reply.get("usage") if isinstance(reply.get("usage"), dict) else None
    parts, choice = ReplyParts(model=read_string(reply.get("model")), usage=usage), choices[0]
    parts.text, parts.reasoning, _ = add_choice(parts, reply, choice, whole=True)
    parts.finish = choice.get("finish_reason")
    if parts.stop is None and isinstance(verbose := reply.get("__verbose"), dict):
        parts.stop = verbose.get("stopping_word") or None
    return parts


def add_choice(
    parts: ReplyParts, reply: Mapping[str, Any], choice: Mapping[str, Any], *, whole: bool = False
) -> tuple[str, str, str]:
    """Take in the choice of a reply or of a chunk; the text, reasoning and arguments of calls that it brought."""
    parts.finish = choice.get("finish_reason") or parts.finish
    parts.stop = choice.get("stop_reason") or choice.get("matched_stop") or parts.stop  # vLLM and SGLang name it
    _add_tokens(parts, reply, choice)
    message = choice.get("message" if whole else "delta")
    if isinstance(message, dict) and len(message) == 1 and type(text := message.get("content")) is str:
        return text, "", ""  # as nearly all chunks are
    message = message if isinstance(message, dict) else choice.get("message")
    if not isinstance(message, dict):
        return *content_of(choice.get("text")), ""
    written = "".join(_add_call(parts, call, whole=whole) for call in message.get("tool_calls") or ())
    old_call = message.get("function_call")  # as it was written before there could be several
    if isinstance(old_call, dict) and not (whole and parts.calls):
        _add_call(parts, {"index": 0, "function": old_call})
    parts.refusal += read_string(message.get("refusal"))
    text, thought = content_of(message.get("content"))
    thought = thought or next((said for name in _REASONING if (said := read_string(message.get(name)))), "")
    return text, thought, written


def _add_tokens(parts: ReplyParts, reply: Mapping[str, Any], choice: Mapping[str, Any]) -> None:
    """Take in token ids and log-probabilities, as vLLM returns them for `return_token_ids` and `logprobs`."""
    if not parts.prompt_ids and (prompt := reply.get("prompt_token_ids") or choice.get("prompt_token_ids")):
        parts.prompt_ids = _numbers(prompt, int)
    if not (choice.get("token_ids") or choice.get("logprobs")):
        return
    parts.sampled_ids += _numbers(choice.get("token_ids"), int)
    logprobs = read_dict(choice.get("logprobs"))
    entries = [entry.get("logprob") for entry in read_list(logprobs.get("content")) if isinstance(entry, dict)]
    parts.logprobs += _numbers(entries or logprobs.get("token_logprobs"), float)


def _numbers(value: Any, kind: type[N]) -> list[N]:
    """Return a list of numbers; [] for anything else, even one that has one other thing in it."""
    kinds = (int,) if kind is int else (int, float)
    if not isinstance(value, list) or not all(type(number) in kinds for number in value):
        return []
    return [kind(number) for number in value]


def content_of(content: Any) -> tuple[str, str]:
    """Text and reasoning of a content field, which some servers write as a list of parts."""
    if not isinstance(content, list):
        return read_string(content), ""
    parts = [part for part in content if isinstance(part, dict)]
    text = "".join(read_string(part.get("text")) for part in parts)
    thought = "".join(content_of(part["thinking"])[0] for part in parts if "thinking" in part)
    return text, thought


def _add_call(parts: ReplyParts, call: Any, *, whole: bool = False) -> str:
    """Take in a tool call or a piece of one, and return what it adds to the arguments. Pieces belong together by index,
    else by id, else with the last call."""
    if not isinstance(call, dict):
        return ""
    function = read_dict(call.get("function"))
    ident, index, name = read_string(call.get("id")), call.get("index"), read_string(function.get("name"))
    arguments = function.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    entry = None if whole else _find_begun_call(parts, ident, index, name)
    if entry is None:
        entry = {"id": ident, "index": str(len(parts.calls) if index is None else index), "name": "", "arguments": ""}
        parts.calls.append(entry)
    elif ident and arguments and (name, arguments) == (entry["name"], entry["arguments"]):
        return ""  # the whole call, once more
    if name != entry["name"] and not entry["arguments"]:  # some servers send it in pieces, some repeat it each time
        entry["name"] += name
    entry["arguments"] += arguments or ""
    return arguments or ""


def _find_begun_call(parts: ReplyParts, ident: str, index: Any, name: str) -> dict[str, str] | None:
    """The call that a piece continues, None if it begins a new one."""
    if ident:
        for entry in parts.calls:
            if entry["id"] == ident and (index is None or entry["index"] == str(index) or not name):
                return entry
    if index is not None:
        for entry in reversed(parts.calls):
            if entry["index"] == str(index):
                # some servers give every call the index 0; a new id with a name then begins a new call
                return None if ident and name and entry["id"] else entry
        return None
    return parts.calls[-1] if parts.calls and not (ident or name) else None


def completion_of(parts: ReplyParts, request: Request) -> Completion:
    """The completion that these parts make. `EmptyReply` if it says nothing and calls nothing."""
    trim_repetition(parts)
    text = parts.text
    if request.continues and (begun := request.messages[-1].text) and text.startswith(begun):
        text = text[len(begun) :]
    spoken = without_echo(text, request)
    parts.dropped += text[: len(text) - len(spoken)]
    text, echoes = spoken, (ECHOES,) if spoken != text else ()
    calls = _read_calls(parts)
    ended = str(parts.finish).lower()
    if ended in _BROKE_OFF:
        raise BadReply(f"the endpoint ended the reply early: {ended}", retryable=True)
    finish = _FINISH.get(ended, "stop")
    if not text and parts.refusal:
        text, finish = parts.refusal, "filtered"
    if finish in ("stop", "calls"):
        finish = "calls" if calls else "stop"
    named = parts.stop if isinstance(parts.stop, str) and parts.stop in request.stop else None
    usage = _usage(parts.usage) or Usage(
        1, sum(count(message.text) for message in request.messages), count_spoken_tokens(parts)
    )
    tokens = None  # unless the endpoint has returned all of them, each with its log-probability
    if parts.prompt_ids and parts.sampled_ids and len(parts.sampled_ids) == len(parts.logprobs):
        tokens = Tokens(tuple(parts.prompt_ids), tuple(parts.sampled_ids), tuple(parts.logprobs))
    text = text.removesuffix(TURN_ENDS)
    completion = Completion(text, parts.reasoning, calls, finish, named, usage, parts.model, tokens, echoes)
    completion = cut_at_stop(completion, request.stop)
    if parts.cut:  # it would be cut again
        return replace(completion, notes=(*echoes, parts.cut))
    if not text.strip() and not calls and completion.stop is None and _says_nothing(completion, request):
        raise EmptyReply(completion)
    return completion


def without_echo(text: str, request: Request) -> str:
    """Return the reply without the prompt, if it begins by repeating that: a base model does, and its words prove
    nothing. Short messages may be repeated."""
    rest, echoes = text.lstrip(), False
    if len(rest) < _ECHO:
        return text
    for message in request.messages:
        prompt_text = message.text.strip()
        # the model may repeat its own words
        begins = message.role != "assistant" and min(len(prompt_text), len(rest)) >= _ECHO
        if not prompt_text or not (echoes or begins):
            continue
        if rest.startswith(prompt_text):
            rest, echoes = rest[len(prompt_text) :].lstrip(), True
        elif prompt_text.startswith(rest.rstrip()):
            rest, echoes = "", True
    return rest if echoes else text


def _says_nothing(completion: Completion, request: Request) -> bool:
    """Return whether a reply without text is worth another request. Reasoning that ran out of length is, even if the
    endpoint does not show it. Reasoning that ended is not if there are stop strings: one of them may have ended a call
    in it."""
    if completion.finish == "length":
        return bool(completion.reasoning or (completion.usage.completion_tokens and not completion.text))
    return completion.finish == "stop" and not request.continues and not (completion.reasoning and request.stop)


def _read_calls(parts: ReplyParts) -> tuple[ToolCall, ...]:
    calls: dict[str, ToolCall] = {}
    for entry in parts.calls:
        if not entry["name"]:
            raise BadReply("the endpoint sent a tool call without a name", retryable=True)
        ident = entry["id"] if entry["id"] and entry["id"] not in calls else f"call{uuid4().hex[:9]}"
        calls[ident] = ToolCall(ident, entry["name"], entry["arguments"])
    return tuple(calls.values())


def _usage(usage: Mapping[str, Any] | None) -> Usage | None:
    """Return the server's token counts; None without any."""
    if not usage or not (read_count(usage.get("prompt_tokens")) or read_count(usage.get("completion_tokens"))):
        return None
    cached = read_dict(usage.get("prompt_tokens_details")).get("cached_tokens") or usage.get("prompt_cache_hit_tokens")
    cost = usage.get("cost")
    if not isinstance(cost, float) or not math.isfinite(cost):
        cost = read_count(cost) if isinstance(cost, int) else None
    prompt, completion = read_count(usage.get("prompt_tokens")), read_count(usage.get("completion_tokens"))
    return Usage(1, prompt, completion, read_count(cached), cost)


def count_spoken_tokens(parts: ReplyParts) -> int:
    """About how many tokens the model has written."""
    spoken = parts.reasoning + parts.text + parts.dropped
    return count(spoken + "".join(entry["arguments"] for entry in parts.calls))


def trim_repetition(parts: ReplyParts) -> None:
    """Keep of a reply that ran out of length, or was cut, the first time of what its end only repeats."""
    if parts.cut not in ("", REPEATS_ITSELF) or _FINISH.get(parts.finish or "") != "length":
        return
    for name in ("reasoning", "text"):
        text = getattr(parts, name)
        if (end := find_repetition(text)) is not None:
            setattr(parts, name, text[:end])
            parts.cut, parts.dropped = REPEATS_ITSELF, parts.dropped + text[end:]
    for entry in parts.calls:
        if (end := find_repetition(entry["arguments"])) is not None:
            parts.cut, parts.dropped = REPEATS_ITSELF, parts.dropped + entry["arguments"][end:]
            entry["arguments"] = entry["arguments"][:end]
    if parts.cut and parts.text.strip():
        parts.finish = "stop"  # the rest only repeats


def notice_cut_prompt(parts: ReplyParts, request: Request) -> str:
    """Return a notice if the server's count shows that it has not read the whole prompt; empty otherwise."""
    read = read_count((parts.usage or {}).get("prompt_tokens"))
    if not read or parts.sent < max(_SUSPECT_BYTES, _BYTES_A_TOKEN * read):  # spares the counting
        return ""
    ours = sum(count(message.text) for message in request.messages)
    if ours <= _SUSPECT_TOKENS or read >= ours / 2:
        return ""
    return f"the server seems to cut prompts: it read {read:,} of about {ours:,} tokens (Ollama: raise num_ctx)"
