"""A way out through the proxy that the user's environment names: a tunnel to an address that was checked here.

The proxy gets the address and not the name, so that it cannot connect to anything but the checked address.
"""

import ssl
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore

from hira.core.errors import UsageError
from hira.core.sanitize import without_userinfo

SECONDS = 8.0
_LONGEST_HEAD = 16_384
Proxies = Callable[[str, str], str]
"""Returns the proxy's URL for a scheme and a host; empty for none."""


def of_environment(scheme: str, host: str) -> str:
    """Return the proxy that `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` name, except for hosts of `NO_PROXY`."""
    named = getproxies()
    return "" if proxy_bypass(host) else named.get(scheme) or named.get("all", "")


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy: its address, whether to use TLS, and the header line that authenticates the user."""

    host: str
    port: int
    secure: bool
    authorization: str = ""


def read_proxy(url: str) -> Proxy:
    """Parse a proxy's URL such as `http://user:password@proxy.example:3128`. Raises `UsageError` for other kinds."""
    fix = "set HTTPS_PROXY to an http:// or https:// proxy, or name the hosts in NO_PROXY"
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port
    except ValueError:
        raise UsageError("the proxy's URL cannot be read", fix=fix) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == 0:
        raise UsageError(f"the proxy {without_userinfo(url)} cannot be used for pages", fix=fix)
    named = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}" if parts.username else ""
    line = f"Proxy-Authorization: Basic {b64encode(named.encode()).decode()}\r\n" if named else ""
    return Proxy(parts.hostname, port or (443 if parts.scheme == "https" else 80), parts.scheme == "https", line)


async def open_tunnel(
    proxy: Proxy, dial: httpcore.AsyncNetworkBackend, address: str, port: int, seconds: float | None
) -> httpcore.AsyncNetworkStream:
    """Dial an address through a proxy, with CONNECT. The result is a connection like a direct one."""
    stream = await dial.connect_tcp(proxy.host, proxy.port, seconds)
    try:
        if proxy.secure:
            stream = await stream.start_tls(ssl.create_default_context(), proxy.host, seconds)
        target = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        head = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{proxy.authorization}\r\n"
        await stream.write(head.encode("latin-1"), SECONDS)
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            got = await stream.read(1, SECONDS)  # not a byte more: the rest is for TLS
            answer += got
            if not got or len(answer) > _LONGEST_HEAD:
                raise httpcore.ConnectError("the proxy did not answer with valid HTTP")
        first = answer.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        status = int(first[1]) if len(first) > 1 and first[1].isdigit() else 0
        if status != HTTPStatus.OK:
            raise httpcore.ConnectError(f"the proxy refused the connection, status {status}")
    except BaseException:
        await stream.aclose()
        raise
    return stream
