"""Faults of endpoints, by name. `Endpoint(faults=[…])` serves one a request."""

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from hira.testing.server import Exchange
from hira.testing.wire import event

FOREVER = 3600.0
Act = Callable[[Exchange], Awaitable[None]]
Alter = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Fault:
    """`act` answers the request itself; `alter` changes the good reply `OK 42`. Neither: the good reply."""

    act: Act | None = None
    alter: Alter | None = None


def refuses(status: int, body: Any = None, *, kind: str = "application/json", **headers: str) -> Fault:
    """A whole response with this status; the body is text, bytes or JSON."""
    if body is None:
        body = {"error": {"message": f"status {status} on request", "type": "scripted"}}
    raw = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Fault(lambda exchange: exchange.send(status, raw, kind, **headers))


def error(message: str, kind: str = "", code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """An error object as OpenAI writes it."""
    return {"error": {"message": message, "type": kind, "code": code, "param": param}}


def says(**message: Any) -> Fault:
    """The good reply with these fields of its message changed."""

    def alter(reply: dict[str, Any]) -> dict[str, Any]:
        choice = reply["choices"][0]
        return reply | {"choices": [choice | {"message": choice["message"] | message}]}

    return Fault(alter=alter)


def ends(finish: str | None) -> Fault:
    return Fault(alter=lambda reply: reply | {"choices": [reply["choices"][0] | {"finish_reason": finish}]})


def calls(*written: Mapping[str, Any]) -> Fault:
    """The good reply with these tool calls in place of its text."""
    return says(content=None, tool_calls=list(written))


def streams(*events: Any, done: bool = True) -> Fault:
    """A streamed reply of these events: bytes as they are, anything else as JSON."""
    raw = [piece if isinstance(piece, bytes) else event(piece) for piece in events]
    return Fault(lambda exchange: exchange.stream([*raw, *([b"data: [DONE]\n\n"] if done else [])]))


def delta(content: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": content, **more}, "finish_reason": finish}]}


async def _after_a_date(exchange: Exchange, seconds: float) -> None:
    # a date has whole seconds: one more, so that rounding never takes the wait away
    until = datetime.now(UTC) + timedelta(seconds=seconds + 1)
    await exchange.json(429, error("too many requests"), retry_after=format_datetime(until, usegmt=True))


async def _reset_after_head(exchange: Exchange) -> None:
    exchange.transport.write(b"HTTP/1.1 200 OK\r\n")
    await asyncio.sleep(0.02)
    await exchange.reset()


async def _half(exchange: Exchange) -> None:
    exchange.transport.write(b'HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{"choices": [{"mess')
    exchange.transport.close()


async def _other_host(exchange: Exchange) -> None:
    port = exchange.transport.get_extra_info("sockname")[1]
    await exchange.send(307, b"", location=f"http://localhost:{port}/v1/chat/completions")


async def _trickle(exchange: Exchange) -> None:
    exchange.transport.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n")
    while True:
        exchange.transport.write(b" ")
        await asyncio.sleep(0.02)


async def _stall(exchange: Exchange) -> None:
    await exchange.begin()
    for word in ("one ", "two ", "three "):
        await exchange.chunk(_event(word))
    await asyncio.sleep(FOREVER)


def flows(pieces: Callable[[], Iterable[bytes]], pause: float) -> Fault:
    """A streamed response of these pieces, with a pause in seconds after each."""
    return Fault(lambda exchange: exchange.stream(pieces(), pause))


def _event(text: str) -> bytes:
    return event(delta(text))


def _numbers() -> Iterable[bytes]:
    for count in itertools.count(step=30_000):
        yield _event(" ".join(map(str, range(count, count + 30_000))) + " ")


def _extra(reply: dict[str, Any]) -> dict[str, Any]:
    choice = reply["choices"][0]
    other = choice | {"index": 1, "message": {"role": "assistant", "content": "another"}}
    return reply | {"choices": [choice, other, other]}


def _function(name: str, arguments: Any) -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


_GOOD = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "OK 42"}, "finish_reason": "stop"}]}
_OVERFLOW = "This model's maximum context length is 4096 tokens. However, your messages resulted in 9000 tokens."
_LENGTH = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
_SCHEMA = "'response_format' of type 'json_schema' is not supported"
_HTML = "<!doctype html><html><head><title>Sign in</title></head><body><h1>Please sign in</h1></body></html>"

_STATUSES = {
    "429": refuses(429, error("too many requests", "rate_limit")),
    "429-ra1": refuses(429, error("too many requests", "rate_limit"), retry_after="1"),
    "429-ra-ms": refuses(429, error("too many requests", "rate_limit"), retry_after_ms="300"),
    "429-ra-date": Fault(lambda exchange: _after_a_date(exchange, 2)),
    "429-ra-past": refuses(429, error("too many requests"), retry_after="Fri, 01 Jan 1999 00:00:00 GMT"),
    "429-ra-huge": refuses(429, error("daily limit reached"), retry_after="86400"),
    "429-quota": refuses(429, error("You exceeded your current quota", "insufficient_quota", "insufficient_quota")),
    "500": refuses(500),
    "502": refuses(502, "<html><body>Bad Gateway</body></html>", kind="text/html"),
    "503": refuses(503),
    "504": refuses(504),
    "529": refuses(529, error("overloaded", "overloaded_error")),
    "408": refuses(408),
    "400-bad": refuses(400, error("messages: field required", "invalid_request_error"), x_request_id="req_7"),
    "400-overflow": refuses(400, error(_OVERFLOW, "invalid_request_error", "context_length_exceeded", "messages")),
    "400-schema": refuses(400, error(_SCHEMA, param="response_format")),
    "400-max-tokens": refuses(400, error(_LENGTH, "invalid_request_error", "unsupported_parameter", "max_tokens")),
    "400-stream-options": refuses(400, error("Unknown parameter: 'stream_options'.", param="stream_options")),
    "401-key": Fault(
        lambda exchange: exchange.json(401, error(f"wrong key: {exchange.headers.get('authorization', '')}"))
    ),
    "401": refuses(401, error("Incorrect API key provided", "invalid_request_error", "invalid_api_key")),
    "403-html": refuses(403, "<html><head><title>Access denied by proxy</title></head></html>", kind="text/html"),
    "404-model": refuses(404, error("The model does not exist", "invalid_request_error", "model_not_found")),
    "400-no-tools": refuses(400, error("registry/tiny does not support tools", "invalid_request_error")),
    "400-no-images": refuses(400, error("image_url is only supported by certain models", "invalid_request_error")),
    "422": refuses(422, {"detail": [{"loc": ["body", "temperature"], "msg": "Extra inputs are not permitted"}]}),
    "307": refuses(307, "", location="/v1/chat/completions"),
    "307-host": Fault(_other_host),
}

_CONNECTIONS = {
    "reset-before": Fault(Exchange.reset),
    "reset-headers": Fault(_reset_after_head),
    "half-json": Fault(_half),
    "silent": Fault(lambda _: asyncio.sleep(FOREVER)),
    "slow-trickle": Fault(_trickle),
}

_REPLIES = {
    "ok": Fault(),
    "bad-json": refuses(200, '{"choices": [{"message": '),
    "html-200": refuses(200, _HTML, kind="text/html"),
    "error-200": refuses(200, error("model is loading", "server_error", "503")),
    "empty-body": refuses(200, b""),
    "null-choices": refuses(200, {"choices": None}),
    "null-content": says(content=None),
    "empty-content": says(content=""),
    "blank-content": says(content="\n\n  "),
    "finish-filter": ends("content_filter"),
    "finish-null": ends(None),
    "finish-length": ends("length"),
    "reasoning-only": says(content="", reasoning_content="let me think"),
    "model-echo": Fault(alter=lambda reply: reply | {"model": "another-model"}),
    "tool-bad-json": calls(_function("search", '{"q": ')),
    "tool-unknown": calls(_function("teleport", "{}")),
    "invalid-utf8": refuses(200, json.dumps(_GOOD).encode().replace(b"OK", b"OK\xff\xfe")),
    "bom": refuses(200, b"\xef\xbb\xbf" + json.dumps(_GOOD).encode()),
    "nan-json": refuses(200, json.dumps(_GOOD | {"score": float("nan")})),
    "no-usage": refuses(200, _GOOD),
    "extra-choices": Fault(alter=_extra),
    "other-reasoning": says(reasoning="let me think"),
}

_STREAMS = {
    "s-truncated": streams(delta("one "), delta("two "), delta("three"), done=False),
    "s-no-done": streams(delta("OK 42"), delta(None, "stop"), done=False),
    "s-bad-json": streams(delta("one "), b'data: {"choices": [{"del\n\n', delta("two", "stop")),
    "s-error-mid": streams(delta("one "), error("the engine died", "server_error", "500"), done=False),
    "s-null-delta": streams(
        {"choices": [{"index": 0, "delta": None}]}, {"choices": []}, delta(None), delta("OK 42"), delta(None, "stop")
    ),
    "s-never-end": flows(_numbers, 0.005),
    "s-circles": flows(lambda: map(_event, itertools.cycle(["Paris ", "is ", "the ", "capital. "])), 0.0005),
    "s-ping-only": flows(lambda: itertools.repeat(b": ping\n\n"), 0.02),
    "s-stall": Fault(_stall),
    "s-big-line": Fault(lambda exchange: exchange.stream([_event("x" * 20_000_000)])),
    "s-reasoning": streams(delta(None, reasoning="let me "), delta(None, reasoning="think"), delta("OK 42", "stop")),
}

FAULTS: Mapping[str, Fault] = _STATUSES | _CONNECTIONS | _REPLIES | _STREAMS
