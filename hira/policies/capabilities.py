"""Finds out what an endpoint can do, with one or two tiny requests for each ability. For `hira doctor`."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

from hira.core.errors import EndpointError
from hira.core.messages import Media, assistant, user
from hira.core.policy import Request, Sampling
from hira.policies.names import Continuation
from hira.policies.openai import OpenAIPolicy
from hira.policies.reply import ReplyParts

Stops = Literal["stripped", "kept", "named", "ignored", "not shown"]

WAYS: tuple[Continuation, ...] = ("continue_final_message", "prefix", "completions")

_SAMPLING = Sampling(temperature=0.0, max_tokens=48, seed=1)
_COUNT = Request((user("Write the numbers from one to nine as words, in one line, and nothing else."),), _SAMPLING)
_TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
_RED = Media(
    "image",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAKElEQVR4nO3N"
    "sQ0AAAzCMP5/un0CNkuZ41wybXsHAAAAAAAAAAAAxR4yw/wuPL6QkAAAAABJRU5ErkJggg==",
)
"""A red square of 32 pixels."""
_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["answer"],
    "additionalProperties": False,
}


async def capabilities(model: str, base_url: str, api_key: str = "") -> Mapping[str, bool | str]:
    """Name of each capability → whether the endpoint has it, or how.

    `streaming`, `usage in stream`, `native tools`, `JSON schema` and `pictures` are yes or no. `stop string` is what
    the server does with one; `continuation` is the first way to continue a message that works. A failed check holds the
    error's first line; refused media are remembered for the runs of this process. A small model may fail to show what
    its server can do.
    """
    policy = OpenAIPolicy(model, base_url, api_key)
    checks: dict[str, Callable[[], Awaitable[bool | str]]] = {
        "streaming": lambda: _check_stream(policy, lambda parts: parts.pieces > 1),
        "usage in stream": lambda: _check_stream(policy, lambda parts: parts.usage is not None),
        "native tools": lambda: _calls(policy),
        "stop string": lambda: _stops(policy),
        "continuation": lambda: _continues(model, base_url, api_key),
        "JSON schema": lambda: _follows(policy),
        "pictures": lambda: _sees(policy),
    }
    results: dict[str, bool | str] = {}
    try:
        for name, check in checks.items():
            try:
                results[name] = await check()
            except EndpointError as error:
                results[name] = error.what
        return results
    finally:
        await policy.aclose()


async def _check_stream(policy: OpenAIPolicy, check: Callable[[ReplyParts], bool]) -> bool:
    return check(await policy.ask(_COUNT, stream=True))


async def _calls(policy: OpenAIPolicy) -> bool:
    request = Request((user("What is the weather in Bern? Use the tool."),), _SAMPLING, tools=(_TOOL,))
    return bool((await policy.ask(request)).calls)


async def _stops(policy: OpenAIPolicy) -> Stops:
    """Repeat a request with a stop string from the middle of its reply."""
    whole = (await policy.ask(_COUNT)).text
    stop = whole[len(whole) // 2 :][:3]
    if not stop.strip() or "\ufffd" in stop:
        return "not shown"
    parts = await policy.ask(Request(_COUNT.messages, _SAMPLING, stop=(stop,)))
    if parts.stop == stop:
        return "named"
    if parts.text.endswith(stop) and len(parts.text) < len(whole):
        return "kept"
    if stop in parts.text:
        return "ignored"
    return "stripped" if whole.startswith(parts.text) else "not shown"


async def _continues(model: str, base_url: str, api_key: str) -> Continuation | Literal["not shown"]:
    begun = Request((user("Say the alphabet."), assistant("a b c d e f g h")), _SAMPLING, continues=True)
    for way in WAYS:
        policy = OpenAIPolicy(model, base_url, api_key, continuation=way)
        try:
            text = (await policy.ask(begun)).text.removeprefix(begun.messages[-1].text)
        except EndpointError:
            continue
        finally:
            await policy.aclose()
        if text.strip(" ,\n").lower().startswith("i"):
            return way
    return "not shown"


async def _follows(policy: OpenAIPolicy) -> bool:
    request = Request((user("Is water wet? Answer in JSON."),), _SAMPLING, schema=_SCHEMA)
    text = (await policy.ask(request)).text
    try:
        reply = json.loads(text)
    except ValueError:
        return False
    return reply in ({"answer": "yes"}, {"answer": "no"}) and "response_format" not in policy.accepted.without


async def _sees(policy: OpenAIPolicy) -> bool:
    request = Request((user("Which colour has this picture? Answer with one word.", _RED),), _SAMPLING)
    return "red" in (await policy.complete(request)).text.lower()
