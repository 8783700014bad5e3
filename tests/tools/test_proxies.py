"""Pages through a proxy: the way out is a tunnel to an address that was checked here, and to no other."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hira.core.errors import ToolError, UsageError
from hira.tools.addresses import Refused
from hira.tools.fetch import Fetcher
from hira.tools.proxies import read_proxy

PUBLIC = "93.184.215.14"
NAMES = {
    "pub.example.com": [PUBLIC],
    "inner.example.com": ["10.0.0.7"],
    "mixed.example.com": [PUBLIC, "127.0.0.1"],
    "six.example.com": ["2606:2800:21f:cb07:6820:80da:af6b:8b2c"],
}


class Way:
    """A proxy on this machine that leads every tunnel to a server of ours. `asked` are the heads of its requests."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.served: list[str] = []
        self.status = "200 Connection established"
        self.port = 0
        self.server_port = 0

    async def resolve(self, host: str, port: int) -> list[str]:
        return NAMES[host]

    def fetcher(self, proxy: str = "", **options) -> Fetcher:
        url = proxy or f"http://127.0.0.1:{self.port}"
        return Fetcher(resolve=self.resolve, proxies=lambda scheme, host: url, seconds=5.0, **options)

    async def tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(f"HTTP/1.1 {self.status}\r\nVia: 1.1 test\r\n\r\n".encode())
        if not self.status.startswith("200"):
            writer.close()
            return
        inner, outer = await asyncio.open_connection("127.0.0.1", self.server_port)

        async def pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65_536):
                sink.write(data)
                await sink.drain()
            sink.close()

        try:
            await asyncio.gather(pass_on(reader, outer), pass_on(inner, writer), return_exceptions=True)
        finally:
            outer.close()
            writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (first := await reader.read(1)) in {b"", b"\x16"}:  # gone, or the beginning of TLS, which is not spoken here
            writer.close()
            return
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode()
        self.served.append(head)
        to = head.split(" ")[1].partition("?to=")[2]
        if to:
            writer.write(f"HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n".encode())
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello")
        await writer.drain()
        writer.close()


@pytest_asyncio.fixture
async def way() -> AsyncIterator[Way]:
    made = Way()
    proxy = await asyncio.start_server(made.tunnel, "127.0.0.1", 0)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port, made.server_port = (one.sockets[0].getsockname()[1] for one in (proxy, server))
    yield made
    proxy.close()
    server.close()


async def test_the_proxy_is_asked_for_the_address_and_the_server_for_the_name(way: Way) -> None:
    got = await way.fetcher().get("http://pub.example.com/ok")
    assert got.text == "hello"
    assert way.asked[0].startswith(f"CONNECT {PUBLIC}:80 HTTP/1.1\r\nHost: {PUBLIC}:80\r\n")
    assert "Host: pub.example.com\r\n" in way.served[0]
    await way.fetcher().get("http://six.example.com/ok")
    assert way.asked[1].startswith("CONNECT [2606:2800:21f:cb07:6820:80da:af6b:8b2c]:80 ")


async def test_what_is_not_public_is_refused_before_the_proxy_is_asked(way: Way) -> None:
    hosts = ("10.0.0.1", "169.254.169.254", "inner.example.com", "mixed.example.com", "localhost")
    for host in hosts:
        with pytest.raises(Refused):
            await way.fetcher().get(f"http://{host}/")
    with pytest.raises(Refused, match="not a public address"):
        await way.fetcher().get("http://pub.example.com/?to=http://169.254.169.254/latest/")
    with pytest.raises(Refused, match="not public"):
        await way.fetcher().get("http://pub.example.com/?to=http://inner.example.com/")
    assert len(way.asked) == 2  # for the two first hops


async def test_the_certificate_is_checked_for_the_name_behind_the_tunnel(way: Way) -> None:
    """The server speaks no TLS, so the handshake fails: nothing is sent in the clear."""
    with pytest.raises(ToolError, match="cannot be opened"):
        await way.fetcher().get("https://pub.example.com/secret")
    assert way.asked[0].startswith(f"CONNECT {PUBLIC}:443 ")
    assert not any("secret" in head for head in way.served)


async def test_user_and_password_go_to_the_proxy_and_nowhere_else(way: Way) -> None:
    await way.fetcher(f"http://ida:p%40ss@127.0.0.1:{way.port}").get("http://pub.example.com/ok")
    assert "Proxy-Authorization: Basic aWRhOnBAc3M=\r\n" in way.asked[0]
    assert "uthorization" not in way.served[0]


@pytest.mark.parametrize("status", ["403 Forbidden", "nonsense"])
async def test_a_proxy_that_refuses_is_told_in_one_line(way: Way, status: str) -> None:
    way.status = status
    with pytest.raises(ToolError, match="the proxy") as error:
        await way.fetcher().get("http://pub.example.com/ok")
    assert "\n" not in str(error.value)
    assert not way.served


async def test_a_proxy_that_cannot_be_used_is_told_before_anything_is_sent(way: Way) -> None:
    for url in ("socks5://127.0.0.1:1080", "http://[", "http://:80"):
        with pytest.raises(ToolError, match=r"cannot be used|cannot be opened"):
            await way.fetcher(url).get("http://pub.example.com/ok")
    with pytest.raises(UsageError, match=r"socks5://proxy\.example:1080 cannot") as error:
        read_proxy("socks5://ida:secret@proxy.example:1080")
    assert "secret" not in str(error.value)
