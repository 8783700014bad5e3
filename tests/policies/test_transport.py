"""HTTP for many calls at once."""

import asyncio
import gc
import ssl
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from hira.policies.transport import StreamTransport, ssl_context, transport_for

CERTIFICATE = Path(__file__).with_name("localhost.pem")
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


async def read_request(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")), 0
    )
    return head, await reader.readexactly(length)


class Server:
    """What happened at the server: connections so far, connections open, requests."""

    def __init__(self):
        self.made = 0
        self.open = 0
        self.requests = []
        self.url = ""


@asynccontextmanager
async def serving(handler, *, tls=None, host="127.0.0.1"):
    seen = Server()
    tasks = set()

    async def connected(reader, writer):
        tasks.add(asyncio.current_task())
        seen.made += 1
        seen.open += 1
        try:
            while True:
                seen.requests.append(await read_request(reader))
                if await handler(writer, reader) == "close":
                    break
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            seen.open -= 1
            writer.close()

    server = await asyncio.start_server(connected, host, 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    seen.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/"
    try:
        yield seen
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def client(**more):
    transport = StreamTransport()
    async with httpx.AsyncClient(transport=transport, trust_env=False, **more) as made:
        yield made
    await transport.aclose()
    await asyncio.sleep(0)
    gc.collect()  # an unclosed socket would warn here, and a warning fails the test


async def until(condition, seconds=0.5):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


async def ok(writer, reader):
    writer.write(OK)


async def test_a_large_body_arrives_whole_both_ways():
    async def echo(writer, reader):
        body = seen.requests[-1][1]
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    body = bytes(range(256)) * 20_000
    async with serving(echo) as seen, client() as http:
        assert (await http.post(seen.url, content=body)).content == body
        assert (await http.post(seen.url, content=body)).content == body
        assert seen.made == 1


async def test_a_slow_reader_holds_the_server_back():
    async def pour(writer, reader):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 40000000\r\n\r\n")
        for _ in range(400):
            writer.write(b"x" * 100_000)
            await writer.drain()
            poured.append(1)

    poured = []
    async with serving(pour) as server, client() as http, http.stream("GET", server.url) as response:
        await asyncio.sleep(0.2)
        assert len(poured) < 200
        assert sum([len(piece) async for piece in response.aiter_bytes()]) == 40_000_000


async def test_a_chunked_body_is_put_together_and_the_connection_kept():
    async def chunked(writer, reader):
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await asyncio.sleep(0.01)
        writer.write(b"4;x=y\r\ndefg\r\n0\r\n\r\n")

    async with serving(chunked) as server, client() as http:
        assert [(await http.get(server.url)).text for _ in range(2)] == ["abcdefg"] * 2
        assert server.made == 1


async def test_a_connection_that_the_server_closed_while_idle_is_replaced():
    async def once(writer, reader):
        writer.write(OK)
        return "close"

    async with serving(once) as server, client() as http:
        for _ in range(3):
            assert (await http.post(server.url, content=b"x")).text == "ok"
        assert server.made == 3


async def test_a_request_into_a_connection_just_dying_is_sent_once_more():
    async def second_dies(writer, reader):
        if server.made == 1 and len(server.requests) == 2:
            return "close"
        writer.write(OK)
        return None

    async with serving(second_dies) as server, client() as http:
        for _ in range(2):
            assert (await http.post(server.url, content=b"x")).text == "ok"
        assert (server.made, len(server.requests)) == (2, 3)


async def test_a_fresh_connection_that_dies_is_not_tried_again():
    async def dies(writer, reader):
        return "close"

    async with serving(dies) as server, client() as http:
        with pytest.raises(httpx.RemoteProtocolError):
            await http.post(server.url, content=b"x")
        assert server.made == 1


async def test_what_a_server_says_unasked_closes_the_idle_connection():
    async def more(writer, reader):
        writer.write(OK)
        await writer.drain()
        await asyncio.sleep(0.02)
        writer.write(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")

    async with serving(more) as server, client() as http:
        assert (await http.get(server.url)).status_code == 200
        await until(lambda: server.open == 0)
        assert (await http.get(server.url)).status_code == 200


async def test_a_cancelled_request_is_gone_at_the_server_within_half_a_second():
    async def never(writer, reader):
        await reader.read()
        raise ConnectionError

    async with serving(never) as server, client() as http:
        asked = asyncio.ensure_future(http.get(server.url))
        await until(lambda: server.requests)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        await until(lambda: server.open == 0)


@pytest.fixture
def trusted(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    ssl_context.cache_clear()
    yield
    ssl_context.cache_clear()


def tls():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


async def test_tls_is_spoken_and_kept_alive(trusted):
    async with serving(ok, tls=tls()) as server, client() as http:
        for _ in range(3):
            assert (await http.get(server.url)).text == "ok"
        assert server.made == 1


async def test_a_certificate_that_nobody_vouches_for_is_refused():
    ssl_context.cache_clear()
    async with serving(ok, tls=tls()) as server, client() as http:
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            await http.get(server.url)
        assert server.requests == []


async def test_a_proxy_from_the_environment_is_used_but_never_for_this_machine(monkeypatch):
    async def proxied(writer, reader):
        writer.write(OK)

    async with serving(proxied) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "inside.example")
        assert isinstance(transport_for("http://127.0.0.1:8000/v1"), StreamTransport)
        assert isinstance(transport_for("http://inside.example/v1"), StreamTransport)
        async with httpx.AsyncClient(transport=transport_for("http://outside.example/v1"), trust_env=False) as http:
            assert (await http.get("http://outside.example/v1/models")).text == "ok"
        assert proxy.requests[0][0].startswith(b"GET http://outside.example/v1/models ")
