"""Which addresses a model may reach: public web addresses, in whatever spelling, and nothing behind the door.

Everything here is pure; `hira.tools.fetch` asks it about each URL, each redirect and each resolved address.
"""

import ipaddress
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from urllib.parse import SplitResult, urlsplit

import idna

from hira.core.errors import ToolError
from hira.core.sanitize import clean, printable

LONGEST = 4096
PORTS = frozenset({80, 443, 8080, 8443})
LOCAL_NAMES = frozenset(
    {
        "local",
        "localhost",
        "localdomain",
        "internal",
        "intranet",
        "private",
        "lan",
        "corp",
        "home",
        "arpa",
        "onion",
        "svc",
        "consul",
        "test",
    }
)
_NAME = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_NOT_PUBLIC_4 = [
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure answers its machines from this one
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
]
_GLOBAL_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = [
    IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "3fff::/20", "2001:10::/28", "2001:20::/28")
]
_NAT64 = IPv6Network("64:ff9b::/96")
_MAPPED = IPv6Network("::ffff:0:0/96")
_6TO4 = IPv6Network("2002::/16")
_ISATAP = (0x00005EFE, 0x02005EFE)


class Refused(ToolError):
    """hira does not open this address, whatever is there."""


@dataclass(frozen=True, slots=True)
class Place:
    """A checked URL. `host` is in ASCII, an IP address or a full name; `allowed` if the user named host and port."""

    url: str
    host: str
    port: int
    allowed: bool


def public(address: str) -> bool:
    """Whether an IP address is one of the public internet, also when it only wraps an IPv4 address."""
    try:
        one = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(one, IPv4Address):
        return not any(one in network for network in _NOT_PUBLIC_4)
    if one in _NAT64 or one in _MAPPED:
        return public(str(IPv4Address(int(one) & 0xFFFFFFFF)))
    if one not in _GLOBAL_6 or any(one in network for network in _NOT_PUBLIC_6):
        return False
    return all(public(str(inner)) for inner in _wrapped(one))


def _wrapped(one: IPv6Address) -> list[IPv4Address]:
    """IPv4 addresses that a 6to4 or ISATAP address leads to."""
    found = []
    if one in _6TO4:
        found.append(IPv4Address((int(one) >> 80) & 0xFFFFFFFF))
    if (int(one) >> 32) & 0xFFFFFFFF in _ISATAP:
        found.append(IPv4Address(int(one) & 0xFFFFFFFF))
    return found


def check_url(url: str, allow: Collection[str] = ()) -> Place:
    """The place a URL names, or `Refused` with the reason. `allow` holds "host:port" entries that the user opened.

    Blanks after the host are escaped, as browsers do.
    """
    scheme, slashes, rest = printable(url).strip().partition("://")
    host, slash, path = rest.partition("/")
    url = f"{scheme}{slashes}{host}{slash}{path.replace(' ', '%20')}"
    if len(url) > LONGEST:
        raise Refused(f"the URL is longer than {LONGEST} characters")
    if any(ord(character) <= 32 or ord(character) == 127 or character == "\\" for character in url):
        raise Refused(f"the URL {quote_url(url)} contains blanks, control characters or backslashes")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Refused(f"the URL {quote_url(url)} cannot be read") from None
    if parts.scheme not in {"http", "https"}:
        raise Refused(f"only http and https URLs can be opened, not {quote_url(url)}")
    if "@" in parts.netloc:
        raise Refused(f"the URL {quote_url(url)} has a name or password before its host")
    host = _host(parts, url)
    port = port if port is not None else {"http": 80, "https": 443}[parts.scheme]
    allowed = f"{host}:{port}" in allow or f"[{host}]:{port}" in allow
    if not allowed:
        _check(host, port, url)
    shown_host = f"[{host}]" if ":" in host else host
    default = port == {"http": 80, "https": 443}[parts.scheme]
    netloc = shown_host if default else f"{shown_host}:{port}"
    return Place(parts._replace(netloc=netloc, fragment="").geturl(), host, port, allowed)


def _host(parts: SplitResult, url: str) -> str:
    """The host in lower-case ASCII: compatibility forms folded, so that ①②⑦ and 127 are one, IDN encoded."""
    host = unicodedata.normalize("NFKC", parts.hostname or "").replace("。", ".").rstrip(".").lower()
    if not host or "%" in host or "/" in host:
        raise Refused(f"the host of {quote_url(url)} cannot be read")
    try:
        host = host if host.isascii() else idna.encode(host, uts46=True).decode("ascii")
    except idna.IDNAError:
        raise Refused(f"the host of {quote_url(url)} is not a domain name") from None
    if len(host) > 253 or not (":" in host or _NAME.fullmatch(host)):
        raise Refused(f"the host of {quote_url(url)} is not a domain name")
    return host


def _check(host: str, port: int, url: str) -> None:
    if port not in PORTS:
        raise Refused(f"port {port} of {quote_url(url)} cannot be opened, only {sorted(PORTS)}")
    last = host.rpartition(".")[2]
    if ":" in host or last.isdigit() or last.startswith("0x"):
        try:
            ipaddress.ip_address(host)
        except ValueError:
            raise Refused(f"{quote_url(url)} spells its address in a form that is not opened") from None
        if not public(host):
            raise Refused(f"{quote_url(url)} is not a public address")
    elif "." not in host or last in LOCAL_NAMES:
        raise Refused(f"{quote_url(url)} names a host of a local network")


def quote_url(url: str) -> str:
    """The URL as a text for the model may quote it."""
    return repr(clean(url if len(url) <= 200 else url[:200] + "…"))
