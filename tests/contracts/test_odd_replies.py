"""Replies that no specification knows, through a whole question: asked for again, or told in three lines, in time."""

import asyncio
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from test_faults_end_to_end import ANSWER, EXPERT, PLANNER, asked, code, script

from hira.cli import ENDPOINT, NO_EVIDENCE, OK
from hira.testing import Endpoint
from hira.testing.faults import FOREVER, Exchange, Fault, calls, delta, ends, error, refuses, says, streams
from hira.workflows.baselines import Direct

pytestmark = pytest.mark.heavy(seconds=1)

GOOD: Mapping[str, Any] = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "OK 42"}, "finish_reason": "stop"}]
}
DEEP = "[" * 100_000


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "asean.txt").write_text("ASEAN was founded on 8 August 1967 in Bangkok.\n", encoding="utf-8")
    return tmp_path / "docs"


def redirects(status: int, location: str) -> Fault:
    return Fault(lambda exchange: exchange.send(status, b"", location=location))


def writes(raw: bytes, *, then_waits: bool = False) -> Fault:
    """These bytes in place of a response."""

    async def act(exchange: Exchange) -> None:
        exchange.transport.write(raw)
        if then_waits:
            await asyncio.sleep(FOREVER)
        exchange.transport.close()

    return Fault(act)


def replies(body: Any) -> Fault:
    return refuses(200, json.dumps(body))


def counts(usage: Any) -> Fault:
    return Fault(alter=lambda reply: reply | {"usage": usage})


def calls_subtask(arguments: Any) -> Fault:
    return calls({"id": "a", "type": "function", "function": {"name": "subtask", "arguments": arguments}})


async def _open_after_the_end(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.chunk(b"data: " + json.dumps(delta("OK", "stop")).encode() + b"\n\n")
    await asyncio.sleep(FOREVER)


async def _breaks_off(exchange: Exchange) -> None:
    await exchange.begin()
    await exchange.chunk(b"data: " + json.dumps(delta("one ")).encode() + b"\n\n")
    await exchange.reset()


async def _nothing_for_ever(exchange: Exchange) -> None:
    await exchange.begin()
    while True:
        await exchange.chunk(b"data: " + json.dumps(delta("")).encode() + b"\n\n")
        await asyncio.sleep(0.02)


PAUSES = {said: refuses(429, error("slow"), retry_after=said) for said in ("abc", "-5", "inf", "nan", "1e400", "", "0")}
PASSING = {
    **{f"retry-after {said!r}": fault for said, fault in PAUSES.items()},
    "retry-after-ms inf": refuses(429, error("slow"), retry_after_ms="inf"),
    "425": refuses(425),
    "524": refuses(524, "<html><title>A timeout occurred</title></html>", kind="text/html"),
    "204": Fault(lambda exchange: exchange.send(204, b"")),
    "another path": redirects(307, "/v1/elsewhere/chat/completions"),
    "another path for good": redirects(308, "/v1/elsewhere/chat/completions"),
    "a list": replies([]),
    "a string": replies("hello"),
    "null": replies(None),
    "choices that are an object": replies({"choices": {}}),
    "a choice that is null": replies({"choices": [None]}),
    "a message that is null": replies({"choices": [{"message": None}]}),
    "a message that is a list": replies({"choices": [{"message": []}]}),
    "an error that is only a code": replies({"error": {"code": 429, "message": "slow"}}),
    "text that is a number": says(content=5),
    "a function that is null": calls({"id": "a", "type": "function", "function": None}),
    "a function that is a string": calls({"id": "a", "function": "search"}),
    "a name that is a number": calls({"id": "a", "function": {"name": 5, "arguments": "{}"}}),
    "arguments that are null": calls_subtask(None),
    "arguments that are a list": calls_subtask("[]"),
    "arguments that are nested": calls_subtask(DEEP),
    "arguments with a long number": calls_subtask('{"task": %s}' % ("9" * 5000)),
    "a reply that is nested": refuses(200, f'{{"choices": {DEEP}'),
    "a reply with a long number": refuses(200, '{"choices": [], "x": %s}' % ("9" * 5000)),
    "two replies in one": refuses(200, json.dumps(GOOD) * 2),
    "another encoding": refuses(200, json.dumps(GOOD).encode("utf-16")),
    "packed, it says": Fault(lambda exchange: exchange.send(200, b"not at all", content_encoding="gzip")),
    "broke off": ends("error"),
    "aborted": ends("abort"),
    "no HTTP": writes(b"SSH-2.0-OpenSSH_9\r\n"),
    "no status": writes(b"HTTP/1.1 abc x\r\n\r\n"),
    "an empty head": writes(b"HTTP/1.1 200 OK\r\n\r\n"),
    "two lengths": writes(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 5\r\n\r\n{}"),
    "a broken chunk": writes(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
    "a head without end": writes(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 2_000_000),
    "a head that stops": writes(b"HTTP/1.1 200 OK\r\nx: y\r\n", then_waits=True),
    "continue, and no more": writes(b"HTTP/1.1 100 Continue\r\n\r\n", then_waits=True),
}
STREAMED = {
    "reset in the middle": Fault(_breaks_off),
    "empty pieces for ever": Fault(_nothing_for_ever),
    "nothing at all": streams(done=False),
    "only the end": streams(),
    "a piece that is null": streams(None, delta("OK", "stop")),
    "a piece that is nested": streams(f"data: {DEEP}\n\n".encode()),
    "choices that are a string": streams({"choices": "x"}, delta("OK", "stop")),
    "too many requests": streams({"error": {"code": 429, "message": "slow"}}),
}
WHOLE = {
    "a byte order mark": streams(b"\xef\xbb\xbfdata: " + json.dumps(delta("OK", "stop")).encode() + b"\n\n"),
    "carriage returns": streams(b"data: " + json.dumps(delta("OK", "stop")).encode() + b"\r\n\r\n"),
    "another reply beside it": streams(
        {"choices": [{"index": 1, "delta": {"content": "NO"}, "finish_reason": None}]}, delta("OK", "stop")
    ),
    "no end of the connection": Fault(_open_after_the_end),
    "calls that are none": streams(delta("OK", tool_calls=[None]), delta("", "stop")),
    "a role that is unknown": streams(delta("OK", "stop", role="banana")),
}
TAKEN = {
    "usage without end": counts({"prompt_tokens": float("inf"), "completion_tokens": float("nan")}),
    "usage below nothing": counts({"prompt_tokens": -5, "completion_tokens": -1}),
    "usage beyond all": counts({"prompt_tokens": 10**400, "completion_tokens": 1, "cost": 10**400}),
    "usage in words": counts({"prompt_tokens": "5", "completion_tokens": "x"}),
    "details that are a list": counts({"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": [1]}),
    "usage that is a string": counts("x"),
    "a model that is a number": Fault(alter=lambda reply: reply | {"model": 5}),
    "a finish that is a list": Fault(alter=lambda reply: {"choices": [reply["choices"][0] | {"finish_reason": []}]}),
    "calls that are a string": Fault(
        alter=lambda reply: {"choices": [{"message": {"content": "OK 42", "tool_calls": "x"}, "finish_reason": "stop"}]}
    ),
    "a text completion": replies({"choices": [{"text": "OK 42", "finish_reason": "stop"}]}),
    "parts": says(content=[{"type": "text", "text": "OK 42"}, None, 5]),
    "packed": Fault(
        lambda exchange: exchange.send(200, gzip.compress(json.dumps(GOOD).encode()), content_encoding="gzip")
    ),
    "created": Fault(lambda exchange: exchange.send(201, json.dumps(GOOD).encode())),
}
ENDING = {
    "402": (refuses(402, error("pay first")), "no credit left"),
    "413": (refuses(413, "<html><title>Entity too large</title></html>", kind="text/html"), "Entity too large"),
    "a pause of ages": (refuses(429, error("slow"), retry_after="9" * 40), "accepts no requests until"),
    "no address": (redirects(307, "http://[::bad"), "which is not followed"),
    "another scheme": (redirects(307, "ftp://x/y"), "which is not followed"),
    "another port": (redirects(307, "http://127.0.0.1:1/v1"), "which is not followed"),
    "nowhere": (Fault(lambda exchange: exchange.send(302, b"")), "redirects to nowhere"),
    "a round": (redirects(307, "/v1/chat/completions"), "which is not followed"),
    "a refusal": (says(content=None, refusal="I cannot help with that."), "I cannot help with that"),
    "a filter of another name": (ends("SAFETY"), "a content filter kept its reply back"),
}


@pytest.mark.parametrize("fault", PASSING)
async def test_what_is_no_reply_is_asked_for_again(fault: str, docs: Path) -> None:
    with Endpoint(script(), faults=lambda number: PASSING[fault] if number == EXPERT else "") as endpoint:
        run, _ = await asked(endpoint.base_url, docs)
    assert (code(run), run.answer.text) == (OK, ANSWER)


@pytest.mark.parametrize("fault", [*PASSING][2::4])
async def test_what_is_no_reply_is_told_if_it_stays(fault: str, docs: Path) -> None:
    with Endpoint(script(), faults=lambda _: PASSING[fault]) as endpoint:
        run, _ = await asked(endpoint.base_url, docs)
        assert len(endpoint.calls) <= 8
    assert code(run) == ENDPOINT
    assert 1 < len(run.answer.error.splitlines()) <= 3


@pytest.mark.parametrize("fault", STREAMED)
async def test_a_stream_that_is_none_is_asked_for_again(fault: str, docs: Path) -> None:
    for where in (PLANNER, EXPERT):
        with Endpoint(script(), faults=lambda number, at=where: STREAMED[fault] if number == at else "") as endpoint:
            run, _ = await asked(endpoint.base_url, docs, stream=True)
        assert (code(run), run.answer.text) == (OK, ANSWER)


@pytest.mark.parametrize("fault", WHOLE)
async def test_a_stream_that_is_whole_is_taken_however_it_is_written(fault: str, docs: Path) -> None:
    with Endpoint(script(), faults=lambda number: WHOLE[fault] if number == PLANNER else "") as endpoint:
        run, _ = await asked(endpoint.base_url, docs, stream=True)
        assert len(endpoint.calls) == 1
    assert (code(run), run.answer.text) == (NO_EVIDENCE, "OK")


@pytest.mark.parametrize("fault", TAKEN)
async def test_a_reply_is_taken_whatever_stands_beside_it(fault: str, docs: Path) -> None:
    with Endpoint(script(), faults=lambda number: TAKEN[fault] if number == PLANNER else "") as endpoint:
        run, _ = await asked(endpoint.base_url, docs, workflow=Direct())
        assert len(endpoint.calls) == 1
    assert (code(run), run.answer.text) == (NO_EVIDENCE, "OK 42")
    assert 0 <= run.answer.rollout.usage.tokens <= 2 * 10**12


@pytest.mark.parametrize("fault", ENDING)
async def test_what_will_not_pass_is_told_at_once(fault: str, docs: Path) -> None:
    made, told = ENDING[fault]
    with Endpoint(script(), faults=lambda _: made) as endpoint:
        run, _ = await asked(endpoint.base_url, docs, workflow=Direct())
        assert len(endpoint.calls) == (5 if fault == "a round" else 1)
    assert code(run) == ENDPOINT
    assert told in run.answer.error
    assert 1 < len(run.answer.error.splitlines()) <= 3


async def test_a_redirect_is_followed_with_the_body_and_the_key_at_the_same_server_only(docs: Path) -> None:
    moved = redirects(307, "/v1/elsewhere/chat/completions")
    with Endpoint(script(), faults=lambda number: moved if number == PLANNER else "") as endpoint:
        await asked(endpoint.base_url, docs)
        first, second = endpoint.calls[:2]
    assert second.path == "/v1/elsewhere/chat/completions"
    assert (second.body, second.headers["authorization"]) == (first.body, "Bearer sk-test")
    with Endpoint(script()) as other:
        elsewhere = redirects(307, f"{other.base_url}/chat/completions")
        with Endpoint(script(), faults=lambda _: elsewhere) as endpoint:
            await asked(endpoint.base_url, docs)
        assert not other.requests
