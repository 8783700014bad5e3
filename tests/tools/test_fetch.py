"""Fetching over a real loopback server that plays the public web: names resolve to a public address, and a dial to that
address ends at the server. A dial to any other address is written down and refused. A proxy there leads to the
server."""

import asyncio
import gzip
import time
import zlib
from collections.abc import AsyncIterator, Callable
from functools import cache
from urllib.parse import parse_qs, urlsplit

import httpcore
import pytest

from hira.core.concurrency import SingleFlight
from hira.core.errors import ToolError, UsageError
from hira.tools.addresses import RefusedAddress
from hira.tools.fetch import Fetched, Fetcher
from hira.tools.proxies import read_proxy

PUBLIC = "93.184.215.14"


class Web(httpcore.AnyIOBackend):
    """The name service, the network and one server. `dialled` holds every address that was dialled."""

    def __init__(self) -> None:
        self.names: dict[str, list[list[str]]] = {"pub.example.com": [[PUBLIC]]}
        self.dialled: list[str] = []
        self.requests: list[str] = []
        self.tunnels: list[str] = []
        self.tunnel_status = "200 Connection established"
        self.port = self.proxy_port = 0

    async def resolve(self, host: str, port: int) -> list[str]:
        if host not in self.names:
            return [host]
        answers = self.names[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def connect_tcp(self, host, port, timeout=None, local_address=None, socket_options=None):
        self.dialled.append(host)
        if (host, port) == ("127.0.0.1", self.proxy_port):
            return await super().connect_tcp(host, port, timeout)
        if host != PUBLIC:
            raise httpcore.ConnectError("nobody there")
        return await super().connect_tcp("127.0.0.1", self.port, timeout)

    def fetcher(self, **options) -> Fetcher:
        return Fetcher(resolve=self.resolve, dial=self, **{"seconds": 5.0} | options)

    def behind_proxy(self, url: str = "") -> Fetcher:
        return self.fetcher(proxies=lambda scheme, host: url or f"http://ida:p%40ss@127.0.0.1:{self.proxy_port}")

    async def tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tunnels.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(f"HTTP/1.1 {self.tunnel_status}\r\nVia: 1.1 test\r\n\r\n".encode())
        if self.tunnel_status.startswith("200"):
            inner, outer = await asyncio.open_connection("127.0.0.1", self.port)
            await asyncio.gather(pass_on(reader, outer), pass_on(inner, writer), return_exceptions=True)
            outer.close()
        writer.close()


async def pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(65_536):
        sink.write(data)
        await sink.drain()
    sink.close()


def whole(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]).encode() + body


def redirect(query: dict[str, str]) -> bytes:
    return whole(b"", f"Location: {query['to']}", status=f"{query.get('s', 302)} Found")


def chain(query: dict[str, str]) -> bytes:
    left = int(query["n"])
    if left:
        return whole(b"", f"Location: /chain?n={left - 1}&end={query.get('end', '')}", status="301 Moved")
    return redirect({"to": query["end"]}) if query.get("end") else whole(b"arrived", "Content-Type: text/plain")


async def silent(writer: asyncio.StreamWriter, reader: asyncio.StreamReader) -> None:
    await reader.read()


async def dripping_body(writer: asyncio.StreamWriter, reader: asyncio.StreamReader) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 9000\r\n\r\nthe first words")
    await writer.drain()
    await reader.read()


ZEROS = 50_000_000


@cache
def bomb() -> bytes:
    return gzip.compress(b"0" * ZEROS, 6)


PAGES: dict[str, Callable[[dict[str, str]], bytes] | Callable[[asyncio.StreamWriter, asyncio.StreamReader], object]] = {
    "/wall": lambda q: whole(b"", f"Location: {q['to']}", "Set-Cookie: seen=yes; Path=/", status="302 Found"),
    "/ok": lambda q: whole(b"<p>hello there</p>", "Content-Type: text/html", "Set-Cookie: id=SECRET"),
    "/redir": redirect,
    "/chain": chain,
    "/badloc": lambda q: b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://[\xff\xfe/\r\n\r\n",
    "/twice": lambda q: whole(b"", "Location: /typed", "Location: /gone", status="302 Found"),
    "/typed": lambda q: whole(b"<p>caf\xe9</p>", "Content-Type: text/plain", "Content-Type: text/html; charset=cp1252"),
    "/gzip": lambda q: whole(gzip.compress(b"<p>small</p>"), "Content-Encoding: gzip", "Content-Type: text/html"),
    "/rawdeflate": lambda q: whole(zlib.compress(b"raw flat")[2:-4], "Content-Encoding: deflate"),
    "/bomb": lambda q: whole(bomb(), "Content-Encoding: gzip", "Content-Type: text/plain"),
    "/bomb2": lambda q: whole(gzip.compress(bomb()), "Content-Encoding: gzip, gzip"),
    "/brokengzip": lambda q: whole(gzip.compress(b"words ", 0) + b"\x1f\x8b\xff" * 9, "Content-Encoding: gzip"),
    "/short": lambda q: b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 500\r\n\r\nhalf a pa",
    "/silent": silent,
    "/dripbody": dripping_body,
    "/hugehead": lambda q: b"HTTP/1.1 200 OK\r\nX-Big: " + b"y" * 2_000_000 + b"\r\n\r\n",
    "/nohttp": lambda q: b"SSH-2.0-OpenSSH_9.6\r\n",
    "/plain": lambda q: whole(b"<p>not packed</p>", "Content-Encoding: gzip", "Content-Type: text/html"),
    "/br": lambda q: whole(b"\x0b\x02\x80hello\x03", "Content-Encoding: br"),
    "/manymembers": lambda q: whole(gzip.compress(b"0" * 10_000) * 3000, "Content-Encoding: gzip"),
    "/hugechunk": lambda q: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFF\r\nabc",
    "/lengths": lambda q: b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
}


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    web = Web()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if (first := await reader.read(1)) == b"\x16":  # the beginning of TLS, which is not spoken here
                return
            head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            web.requests.append(head)
            split = urlsplit(head.split(" ")[1])
            page = PAGES.get(split.path, lambda q: whole(b"nothing here", status="404 Not Found"))
            if asyncio.iscoroutinefunction(page):
                await page(writer, reader)
            else:
                writer.write(page({key: values[0] for key, values in parse_qs(split.query).items()}))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    servers = [await asyncio.start_server(one, "127.0.0.1", 0) for one in (serve, web.tunnel)]
    web.port, web.proxy_port = (one.sockets[0].getsockname()[1] for one in servers)
    yield web
    for one in servers:
        one.close()


def at(path: str) -> str:
    return f"http://pub.example.com{path}"


NOT_PUBLIC = """http://127.0.0.1/x http://127.0.0.1:8000/ http://127.1/ http://2130706433/ http://0x7f000001/
http://0x7f.0.0.0x1/ http://0177.0.0.1/ http://0/ http://0.0.0.0/ http://127.0.0.1./ http://[::1]/ http://[::]/
http://[::ffff:127.0.0.1]/ http://[::ffff:7f00:1]/ http://[::127.0.0.1]/ http://[fec0::1]/ http://[fe80::1%25lo]/
http://[fe80::1]/ http://[fc00::1]/ http://[ff02::1]/ http://[64:ff9b::7f00:1]/ http://[64:ff9b::a9fe:a9fe]/
http://[64:ff9b:1::7f00:1]/ http://[2002:7f00:1::]/ http://[2002:c0a8:101::1]/ http://[2001:0:1:2:3:4:80ff:fffe]/
http://[2a00:1450::5efe:7f00:1]/ http://[2a00:1450::200:5efe:a00:1]/ http://[2001:db8::1]/ http://[100::1]/
http://10.0.0.1/ http://172.16.0.1/ http://172.31.255.255/ http://192.168.1.1/admin http://169.254.169.254/latest/
http://[fd00:ec2::254]/latest/ http://[fd00:ec2::254%251]/ http://168.63.129.16/ http://100.100.100.200/
http://192.0.0.192/ http://198.18.0.1/ http://224.0.0.1/ http://240.0.0.1/ http://255.255.255.255/
http://①②⑦.⓪.⓪.①/ http://127。0。0。1/ http://１２７.0.0.1/ http://localhost/ http://LOCALHOST/ http://localhost./
http://foo.localhost/ http://router.lan/ http://printer.local/ http://metadata.google.internal/computeMetadata/v1/
http://intranet/ http://x.onion/ http://1.1.1/ http://0x08080808/ http://8.8.8.8.example.0x1/
http://[::ffff:0:127.0.0.1]/ http://017700000001/ http://⑯⑨。②⑤④。⑯⑨。②⑤④/ http://127．0．0．1/ http://loc\u00adalhost/
http://00127.0.0.1/ http://127.000.000.001/ http://[3fff::1]/ http://[5f00::1]/ http://kubernetes.default.svc/
http://db.service.consul/ http://host.docker.internal/ http://x.localhost.localdomain/ http://0251.0376.0251.0376/
http://169.254.43518/ http://425.510.425.510/ http://0xa9fea9fe/ http://4294967295/ http://[0:0:0:0:0:ffff:127.0.0.1]/
http://[::ffff:100.100.100.200]/ http://[64:ff9b:1:ffff::7f00:1]/ http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/
http://[fd20:ce::254]/ http://[::1%25]/ http://[v1.fe80::1]/ http://[4000::1]/ http://127.0.0.1:/ http://127.0.0.1:080/
http://127.0.0.1;@pub.example.com/ http://127.0.0.1?@pub.example.com/ hTtP://127.0.0.1/ http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/
http://𝟏𝟐𝟕.𝟎.𝟎.𝟏/ http://١٢٧.٠.٠.١/ http://127｡0｡0｡1/ http://localhoſt/ http://1.0.0.127.in-addr.arpa/
http://instance-data/ http://100.127.255.255/ http://198.19.255.254/ http://192.0.0.170/ http://169.254.170.2/
http://[::ffff:127.0.0.1%25lo]/ http://0x/ http://1.2.3.4.5/ http://8.8.8.08/ http://a.0x7f/""".split()
NOT_THE_WEB = [
    "file:///etc/passwd",
    "javascript:alert(1)",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/info",
    "//127.0.0.1/x",
    "pub.example.com/x",
    "",
    "http://",
    "http://user:pw@pub.example.com/",
    "http://pub.example.com /ok",
    "http://pub.example.com/a\r\nX-Injected: 1",
    "http://pub.example.com/\x00a",
    "http://pub.example.com/\ta",
    "http://pub.example.com:22/",
    "http://pub.example.com:99999/",
    "http://pub.example.com:x/",
    "http://pub..example.com/",
    "http://pub.example.com%2f@127.0.0.1/",
    "http://xn--.example.com/",
    "http://xn--a.example.com/",
    "http://[::1/",
    "http://%31%32%37.0.0.1/",
    "http://pub.example.com:８０/",
    "ht\ntp://pub.example.com/",
    "http://pub.example.com/" + "a" * 5000,
]


async def test_an_address_that_is_not_of_the_public_web_is_refused_before_anything_is_sent(web):
    fetcher, taken = web.fetcher(), []
    for url in NOT_PUBLIC + NOT_THE_WEB:
        try:
            await fetcher.get(url)
        except RefusedAddress:
            continue
        except ToolError:
            pass
        taken.append(url)
    assert (taken, web.dialled) == ([], [])


async def test_a_name_that_leads_to_a_private_address_is_refused(web):
    for address in ("169.254.169.254", "::1", "64:ff9b::7f00:1", "junk"):
        web.names["trap.example.com"] = [[PUBLIC, address]]
        with pytest.raises(RefusedAddress, match="not public"):
            await web.fetcher().get("http://trap.example.com/ok")
    assert web.dialled == []


async def test_the_checked_address_is_the_one_that_is_dialled(web):
    web.names["rebind.example.com"] = [[PUBLIC], ["127.0.0.1"]]
    assert (await web.fetcher().get("http://rebind.example.com/ok")).status == 200
    assert web.dialled == [PUBLIC]
    with pytest.raises(RefusedAddress):
        await web.fetcher().get("http://rebind.example.com/ok")
    assert web.dialled == [PUBLIC]


async def test_every_redirect_is_checked_like_the_first_url(web):
    for to in ("//10.0.0.1/x", "file:///etc/passwd", "http://[::ffff:127.0.0.1]/", "http://pub.example.com:22/"):
        for path in (f"/redir?to={to}", f"/chain?n=3&end={to}"):
            with pytest.raises(RefusedAddress):
                await web.fetcher().get(at(path))
    assert set(web.dialled) == {PUBLIC}


async def test_ordinary_redirects_are_followed_but_neither_many_nor_unreadable_ones(web):
    got = await web.fetcher().get(at("/chain?n=3"))
    assert (got.status, got.text, got.url) == (200, "arrived", "http://pub.example.com/chain?n=0&end=")
    assert (await web.fetcher().get(at("/redir?s=308&to=/ok"))).status == 200
    with pytest.raises(ToolError, match="redirects more than 8 times"):
        await web.fetcher().get(at("/chain?n=40"))
    with pytest.raises(RefusedAddress):
        await web.fetcher().get(at("/badloc"))


async def test_a_host_that_the_user_allows_is_opened_on_that_port_only(web):
    allowed = Fetcher(allow=[f"127.0.0.1:{web.port}"], seconds=5)
    got = await allowed.get(f"http://127.0.0.1:{web.port}/ok")
    assert (got.status, got.kind) == (200, "html")
    with pytest.raises(RefusedAddress):
        await allowed.get(f"http://127.0.0.1:{web.port + 1}/ok")
    with pytest.raises(RefusedAddress):
        await allowed.get(f"http://127.1:{web.port}/ok")


async def test_a_cookie_goes_back_to_its_own_site_within_the_redirects_of_one_fetch(web):
    web.names["other.example"] = [[PUBLIC]]
    await web.fetcher().get(at("/wall?to=/ok"))
    await web.fetcher().get(at("/wall?to=http://other.example/ok"))
    assert ["\r\nCookie: seen=yes\r\n" in head for head in web.requests] == [False, True, False, False]


async def test_nothing_of_one_fetch_is_sent_with_the_next(web):
    fetcher = web.fetcher(contact="ann@example.org")
    for _ in range(2):
        await fetcher.get(at("/redir?to=/ok"))
    for head in web.requests:
        assert not any(word in head.lower() for word in ("cookie:", "referer:", "authorization:"))
        assert "\r\nUser-Agent: hira/" in head
        assert "contact: ann@example.org" in head
        assert "\r\nFrom: ann@example.org\r\n" in head


async def test_international_names_and_paths_are_encoded(web):
    web.names["xn--bcher-kva.example.com"] = [[PUBLIC]]
    got = await web.fetcher().get("http://bücher.example.com/ok?q=ä")
    assert got.status == 200
    assert web.requests[0].startswith("GET /ok?q=%C3%A4 HTTP/1.1\r\nHost: xn--bcher-kva.example.com")


async def test_of_a_repeated_header_one_counts_as_in_browsers(web):
    got = await web.fetcher().get(at("/twice"))
    assert (got.url, got.kind, got.text) == (at("/typed"), "html", "<p>café</p>")


async def test_one_layer_of_compression_is_read_up_to_the_limit_and_no_other_encoding(web):
    for path, text in (("/gzip", "<p>small</p>"), ("/rawdeflate", "raw flat")):
        got = await web.fetcher().get(at(path))
        assert (got.text, got.cut) == (text, "")
    for path in ("/bomb", "/manymembers"):
        got = await web.fetcher(limit=100_000).get(at(path))
        assert (len(got.body), got.cut) == (100_000, "it is longer than 0.1 MB")
    for path in ("/bomb2", "/br"):
        with pytest.raises(ToolError, match="encoding"):
            await web.fetcher().get(at(path))


async def test_what_came_before_a_break_is_kept_and_said_to_be_a_part(web):
    got = await web.fetcher().get(at("/short"))
    assert (got.text, got.cut) == ("half a pa", "the connection broke off")
    assert (await web.fetcher().get(at("/plain"))).cut == "its compression is broken"
    got = await web.fetcher(seconds=0.5).get(at("/dripbody"))
    assert (got.text, got.cut) == ("the first words", "the time limit was reached")
    got = await web.fetcher().get(at("/brokengzip"))
    assert got.cut.startswith("its compression")
    assert got.text.startswith("words ")


async def test_what_gives_no_page_is_an_error_for_the_model(web):
    web.names |= {"dead.example.com": [["93.184.215.99"]], "none.example.com": [[]]}
    for url, why in (
        (at("/silent"), r"did not answer within 0\.5 seconds"),
        (at("/hugehead"), "valid HTTP"),
        (at("/nohttp"), "valid HTTP"),
        (at("/lengths"), "valid HTTP"),
        ("http://dead.example.com/", "cannot be opened: the connection failed"),
        ("http://none.example.com/", "cannot be opened"),
    ):
        with pytest.raises(ToolError, match=why):
            await web.fetcher(seconds=0.5).get(url)


def test_the_kind_of_a_body_is_told_by_its_first_bytes_before_its_type():
    for content_type, body, kind in (
        ("text/html; charset=x", b"<p>", "html"),
        ("text/html", b"\n%PDF-1.7", "pdf"),
        ("application/pdf", b"<!DOCTYPE html><p>please log in", "html"),
        ("application/ld+json", b"{}", "json"),
        ("text/plain", "a".encode("utf-16"), "text"),
        ("image/png", b"\x89PNG", "image"),
        ("text/plain", b"a long text with one zero \x00 in it " * 9, "binary"),
        ("text/plain", b"a long text with one zero in it " * 9 + b"\x00", "text"),
        ("", b"<p>nothing declared</p>", "html"),
        ("", b'<?xml version="1.0"?>\n<!DOCTYPE html><html>', "html"),
    ):
        assert Fetched("http://a.example/", 200, content_type, body).kind == kind


def test_a_page_that_begins_with_comments_takes_time_in_proportion() -> None:
    def seconds(comments: int) -> float:
        page = Fetched("http://a.example/", 200, "text/plain", b"<!---->" * comments + b"no page")
        began = time.process_time()
        assert page.kind == "text"
        return time.process_time() - began

    assert seconds(20) < 40 * max(seconds(10), 0.001)


async def test_fetchers_that_share_open_a_page_once_and_try_again_what_did_not_come(web: Web) -> None:
    once = SingleFlight()
    first, second = (web.fetcher(once=once) for _ in range(2))
    ok, gone = "http://pub.example.com/ok", "http://pub.example.com/gone"
    got = await asyncio.gather(first.get(ok), second.get(ok))
    assert got[0] == got[1]
    assert len(web.requests) == 1
    for fetcher in (first, second):
        assert (await fetcher.get(gone)).status == 404
    assert len(web.requests) == 3


async def test_a_proxy_is_asked_for_a_checked_address_and_gets_the_password_and_the_server_the_name(web):
    web.names["six.example.com"] = [["2606:2800:21f:cb07:6820:80da:af6b:8b2c"]]
    assert (await web.behind_proxy().get(at("/ok"))).status == 200
    assert web.tunnels[0].startswith(f"CONNECT {PUBLIC}:80 HTTP/1.1\r\nHost: {PUBLIC}:80\r\n")
    assert "Proxy-Authorization: Basic aWRhOnBAc3M=\r\n" in web.tunnels[0]
    assert "Host: pub.example.com\r\n" in web.requests[0]
    assert "uthorization" not in web.requests[0]
    await web.behind_proxy().get("http://six.example.com/ok")
    assert web.tunnels[1].startswith("CONNECT [2606:2800:21f:cb07:6820:80da:af6b:8b2c]:80 ")


async def test_what_is_not_public_is_refused_before_the_proxy_is_asked(web):
    web.names |= {"inner.example.com": [["10.0.0.7"]], "mixed.example.com": [[PUBLIC, "127.0.0.1"]]}
    for host in ("10.0.0.1", "169.254.169.254", "inner.example.com", "mixed.example.com", "localhost"):
        with pytest.raises(RefusedAddress):
            await web.behind_proxy().get(f"http://{host}/")
    assert not web.tunnels
    for target in ("169.254.169.254/latest/", "inner.example.com/"):
        with pytest.raises(RefusedAddress, match=r"not .*public"):
            await web.behind_proxy().get(at(f"/redir?to=http://{target}"))
    assert len(web.tunnels) == 2  # for the two first hops


async def test_the_certificate_is_checked_for_the_name_behind_the_tunnel(web):
    """The server speaks no TLS, so the handshake fails: nothing is sent in the clear."""
    with pytest.raises(ToolError, match="cannot be opened"):
        await web.behind_proxy().get("https://pub.example.com/secret")
    assert web.tunnels[0].startswith(f"CONNECT {PUBLIC}:443 ")
    assert not web.requests


async def test_a_proxy_that_refuses_or_cannot_be_used_is_told_in_one_line_and_nothing_is_sent(web):
    for status in ("403 Forbidden", "nonsense"):
        web.tunnel_status = status
        with pytest.raises(ToolError, match="the proxy") as error:
            await web.behind_proxy().get(at("/ok"))
        assert "\n" not in str(error.value)
    for url in ("socks5://127.0.0.1:1080", "http://[", "http://:80"):
        with pytest.raises(ToolError, match="cannot be opened"):
            await web.behind_proxy(url).get(at("/ok"))
    assert not web.requests
    with pytest.raises(UsageError, match=r"socks5://proxy\.example:1080 cannot") as refused:
        read_proxy("socks5://ida:secret@proxy.example:1080")
    assert "secret" not in str(refused.value)
