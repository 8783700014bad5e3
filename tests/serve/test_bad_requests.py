"""Malformed requests: each gets an error in OpenAI's format, and the server keeps running."""

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from serving import Served, get, post, served
from starlette.requests import Request

from hira.runtime.settings import Settings
from hira.server.connections import TimedConnection
from hira.server.keys import RejectedRequest
from hira.server.state import LARGEST, MOST, SMALL, body_of

QUESTION = {"role": "user", "content": "How high is the tower of Alta?"}
ASKED = {"model": "direct", "messages": [QUESTION]}
CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("bad")
    (folder / "alta.txt").write_text("The tower of Alta is 31 metres high.\n", encoding="utf-8")
    docs = (folder / "alta.txt",)
    with served(Settings(model="offline", docs=docs, journal=folder / "journal.sqlite")) as one:
        yield one
        assert post(f"{one.url}{CHAT}", json=ASKED).status_code == 200, "it went down meanwhile"


def refused(reply: httpx.Response, status: int, says: str) -> None:
    assert reply.status_code == status, reply.text
    error = reply.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert says in error["message"]


def said(*parts: Any) -> list[Any]:
    return [{"role": "user", "content": list(parts)}]


TEXT = {"type": "text", "text": "x"}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"model": None}, "model: "),
    ({"messages": []}, "messages: "),
    ({"messages": [{"role": "user", "content": 1}]}, "messages.0"),
    ({"messages": said({"type": "text", "text": None})}, "must contain a text"),
    ({"messages": said(PICTURE)}, "a user message with text is missing"),
    ({"messages": [{"role": "assistant", "content": "x"}]}, "a user message with text is missing"),
    ({"messages": said(TEXT, {"type": "video"})}, "data: URI"),
    ({"messages": said(TEXT, {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}})}, "data: URI"),
    ({"messages": said(TEXT, {"type": "input_audio", "input_audio": {"data": "!"}})}, "not base64"),
    ({"messages": [{"role": "user", "content": "tower " * 70_000}]}, "are more than 400,000"),
    ({"stream": "perhaps"}, "stream: "),
    ({"stream_options": {"include_usage": "perhaps"}}, "stream_options"),
    ({"n": 2}, "n: "),
    ({"stop": {}}, "stop"),
    ({"stop": ["\n", ""]}, "stop"),
    ({"logprobs": True, "top_logprobs": 5}, "logprobs: hira has no log-probabilities"),
    ({"logprobs": 3}, "logprobs: hira has no log-probabilities"),
    ({"modalities": ["text", "audio"], "audio": {"voice": "alloy"}}, "audio: hira answers in text"),
    *(({"max_tokens": value}, "max_tokens: ") for value in (-4, 0, 2.5, "many")),
    ({"max_completion_tokens": -4}, "max_completion_tokens: "),
    ({"tools": [{}]}, "tools: "),
    ({"tool_choice": "required"}, "tool"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema: "),
]


def test_a_field_that_cannot_be_read_is_named(server: Served) -> None:
    for changed, says in WRONG:
        reply = post(f"{server.url}{CHAT}", json={**ASKED, **changed})
        refused(reply, 400, says)
        at_fault = reply.json()["error"]["param"] or "messages"  # a text that is too long may lie in several fields
        assert at_fault.partition(".")[0] in changed


def test_a_body_that_is_no_request_is_refused(server: Served) -> None:
    for body in (b"", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"model":"direct","messages":"\\ud800'):
        for path in (CHAT, "/api/runs"):
            reply = post(f"{server.url}{path}", content=body, headers={"content-type": "application/json"})
            refused(reply, 400, "")


def test_what_is_unusual_and_harmless_is_answered(server: Served) -> None:
    for more in (
        {"max_tokens": 1, "temperature": "x", "logprobs": False, "top_logprobs": 0, "stop": [], "user": 1},
        {"messages": [QUESTION, {"role": "assistant", "content": "The tower"}]},
        {"messages": [QUESTION, {"role": "assistant", "tool_calls": []}, {"role": "tool", "content": "31"}]},
        {"messages": said(TEXT, PICTURE)},
        {"messages": [{"role": "user", "content": f"m{at}"} for at in range(10_000)]},
        {"stream_options": {"include_usage": None}, "tools": [], "functions": [], "response_format": {}},
    ):
        reply = post(f"{server.url}{CHAT}", json={**ASKED, **more}, timeout=60)
        assert reply.status_code == 200, reply.text
        assert reply.json()["choices"][0]["message"]["content"]


def test_only_who_calls_the_server_by_its_name_and_sends_json_may_ask(server: Served) -> None:
    for headers, status in (
        ({"host": "evil.example"}, 403),
        ({"host": ""}, 403),
        ({"host": "LOCALHOST:80"}, 200),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "Application/JSON; charset=utf-8"}, 200),
        ({"authorization": f"Bearer {'x' * 5_000}"}, 200),
    ):
        sent = {"content-type": "application/json", **headers}
        reply = post(f"{server.url}{CHAT}", content=json.dumps(ASKED).encode(), headers=sent)
        assert reply.status_code == status
        assert ("error" in reply.json()) == (status != 200)


def test_a_page_of_another_site_is_allowed_nothing(server: Served) -> None:
    asks = {"origin": "https://evil.example", "access-control-request-method": "POST"}
    before = httpx.options(f"{server.url}{CHAT}", headers=asks)
    seen = get(f"{server.url}/api/runs", headers={"origin": "https://evil.example"})
    assert before.status_code == 405
    assert not [name for reply in (before, seen) for name in reply.headers if name.startswith("access-control")]


def test_a_path_leads_nowhere_but_to_what_is_served(server: Served) -> None:
    for path in (
        "/%2e%2e/%2e%2e/etc/passwd",
        "/page.js%00",
        "/keys.py",
        "/page/index.html",
        "/api/runs/..%2f..%2fetc",
        "/api/runs/%00",
        f"/api/runs/{'x' * 5_000}",
        "/api/runs/none/events",
        "/v1/models/..%2f..",
        f"/{'y' * 9_000}",
    ):
        reply = get(f"{server.url}{path}")
        refused(reply, 404, "")
        assert len(reply.text) < 500


def test_the_page_is_told_what_it_asked_wrongly(server: Served) -> None:
    for body in (
        {"question": 1},
        {"question": " "},
        {"question": "x", "workflow": 1},
        {"question": "x", "approve": "yes"},
        {"question": "x", "workflow": "direct", "approve": True},
        {"question": "x" * 400_001},
        {},
        [],
    ):
        refused(post(f"{server.url}/api/runs", json=body), 400, "")


def connected(server: Served, sent: bytes) -> socket.socket:
    made = socket.create_connection(("127.0.0.1", int(urlsplit(server.url).port or 0)), timeout=20)
    made.sendall(sent)
    return made


def head(*lines: str) -> bytes:
    told = ["POST /v1/chat/completions HTTP/1.1", "host: localhost", "content-type: application/json", *lines]
    return "\r\n".join([*told, "", ""]).encode()


def test_a_model_that_is_not_there_is_refused(server: Served) -> None:
    refused(post(f"{server.url}{CHAT}", json={**ASKED, "model": "gpt"}), 404, "does not exist")


def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes(server: Served) -> None:
    with connected(server, head(f"content-length: {100 * 2**20}") + b" ") as one:
        assert one.recv(1000).startswith(b"HTTP/1.1 413")


def test_a_request_with_two_lengths_is_answered_once_and_the_connection_closed(server: Served) -> None:
    smuggled = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
    for lengths in (
        ("content-length: 6", "transfer-encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 6"),
    ):
        with connected(server, head(*lengths) + b"0\r\n\r\n" + smuggled) as one:
            told = b""
            with suppress(ConnectionError):
                while part := one.recv(1000):
                    told += part
            assert told.startswith(b"HTTP/1.1 400")
            assert told.count(b"HTTP/1.1") == 1


def test_what_is_no_http_is_refused(server: Served) -> None:
    for sent in (
        b"\x00\x01\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 200_000 + b"\r\n\r\n",
        head("content-length: -5"),
        head("content-length: 5", "content-length: 7"),
        head("transfer-encoding: chunked") + b"ZZ\r\n",
    ):
        with connected(server, sent) as one:
            assert one.recv(1000).startswith(b"HTTP/1.1 400")


class Impatient(TimedConnection):
    header_seconds = 0.3
    most = 8


def test_headers_that_do_not_come_are_not_waited_for_for_ever() -> None:
    whole = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with served(Settings(model="offline"), connection=Impatient) as server:
        for before, sent in (
            (b"", b""),
            (b"", b"GET /v1/models HT"),
            (b"", b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: "),
            (whole, b"GET /healthz HT"),  # uvicorn itself would wait for ever
        ):
            with connected(server, before) as one:
                told = b""
                while before and not told.endswith(b"}"):
                    told += one.recv(1000)
                one.sendall(sent)
                assert drip(one, b"y" if sent else b"") < 4


def drip(one: socket.socket, drop: bytes) -> float:
    """Send drops until the server closes the connection, with nothing but a status, and return the seconds that
    took."""
    began = time.monotonic()
    one.settimeout(0.05)
    while time.monotonic() < began + 10:
        with suppress(TimeoutError):
            try:
                one.sendall(drop)
                assert one.recv(1000)[:12] in (b"", b"HTTP/1.1 408")
            except ConnectionError:
                pass
            break
    return time.monotonic() - began


def test_many_unfinished_requests_keep_nobody_out() -> None:
    class Patient(Impatient):
        header_seconds = 60.0

    with served(Settings(model="offline"), connection=Patient) as server, ExitStack() as stack:
        held = [stack.enter_context(connected(server, b"GET / HT")) for _ in range(20)]
        assert get(f"{server.url}/healthz", trust_env=False).status_code == 200
        held[0].settimeout(10)
        with suppress(ConnectionError):
            assert held[0].recv(12) in (b"", b"HTTP/1.1 503")


def test_many_bodies_that_do_not_come_keep_nobody_out() -> None:
    class Patient(Impatient):
        header_seconds = 60.0

    with served(Settings(model="offline"), connection=Patient) as server, ExitStack() as stack:
        held = [stack.enter_context(connected(server, head("content-length: 10") + b"{")) for _ in range(20)]
        assert post(f"{server.url}{CHAT}", json=ASKED, trust_env=False).status_code == 200
        more = [stack.enter_context(connected(server, b"")) for _ in range(8)]
        assert len(more) == Patient.most
        assert b"HTTP/1.1 503" in [read_reply(one) for one in held]


def read_reply(one: socket.socket) -> bytes:
    one.settimeout(0.3)
    with suppress(ConnectionError, TimeoutError):
        return one.recv(12)
    return b""


def test_headers_that_begin_and_do_not_end_get_a_408() -> None:
    with served(Settings(model="offline"), connection=Impatient) as server, connected(server, b"GET / HT") as one:
        assert one.recv(12) == b"HTTP/1.1 408"


async def test_a_body_that_does_not_come_is_not_waited_for_for_ever() -> None:
    async def receive() -> dict[str, Any]:
        await asyncio.sleep(60)
        raise AssertionError

    with pytest.raises(RejectedRequest, match="did not come within") as found:
        await body_of(Request({"type": "http", "method": "POST", "headers": []}, receive), {}, seconds=0.01)
    assert found.value.status == 408


async def test_large_bodies_have_a_bound_together_and_small_ones_are_always_read() -> None:
    bodies: dict[int, int] = {}

    async def send(size: int) -> tuple[Request, bytes]:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": bytes(size), "more_body": False}

        request = Request({"type": "http", "method": "POST", "headers": []}, receive)
        return request, await body_of(request, bodies)

    held = [await send(LARGEST) for _ in range(MOST // LARGEST)]
    with pytest.raises(RejectedRequest, match="hold 256 MB already") as found:
        await send(LARGEST)
    assert found.value.status == 503
    assert len((await send(SMALL))[1]) == SMALL
    del held


def test_a_server_forgets_the_bodies_of_requests_that_it_has_answered(server: Served) -> None:
    for _ in range(10):
        body = b'{"question": "' + b" " * (LARGEST - 100) + b'"}'
        refused(
            post(f"{server.url}/api/runs", content=body, headers={"content-type": "application/json"}), 400, "empty"
        )


def test_a_run_that_has_its_answer_is_not_gone_on_with(server: Served) -> None:
    reply = post(f"{server.url}{CHAT}", json={**ASKED, "model": "rag"}).json()
    place = f"{server.url}/api/runs/{reply['hira']['run_id']}"
    refused(post(f"{place}/resume", json={}), 409, "already has its answer")
    assert get(place).json()["answer"]["answer"] == reply["choices"][0]["message"]["content"]
