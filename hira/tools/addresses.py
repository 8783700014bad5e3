"""The addresses that may be opened: public ones, in every spelling, and of these only those that a model has seen.

A page can tell a model to put what it knows into a URL and open it. A URL that is opened unchanged leaks nothing.
"""

import ipaddress
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Network
from urllib.parse import SplitResult, quote, urlsplit

from hira.core.errors import ToolError
from hira.core.patterns import compile_lazily
from hira.core.sanitize import clean, printable

LONGEST = 4096
PORTS = frozenset({80, 443, 8080, 8443})
LOCAL_NAMES = frozenset(
    """local localhost localdomain internal intranet private lan corp home arpa onion svc consul test""".split()
)
_NAME = compile_lazily(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
# beside those that the standard library knows; Azure answers its machines from the first one
_NOT_PUBLIC_4 = [
    IPv4Network(network) for network in ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24", "224.0.0.0/3")
]
_GLOBAL_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = [IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "3fff::/20")]
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)


class RefusedAddress(ToolError):
    """An address that hira does not open, whatever is there."""


@dataclass(frozen=True, slots=True)
class CheckedUrl:
    """A checked URL. `host` is in ASCII, an IP address or a full name; `allowed` if the user named host and port."""

    url: str
    host: str
    port: int
    allowed: bool


def public(address: str) -> bool:
    """Return whether an IP address belongs to the public internet, also for one that only wraps an IPv4 address."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, IPv4Address):
        return ip.is_global and not any(ip in network for network in _NOT_PUBLIC_4)
    last = IPv4Address(int(ip) & 0xFFFFFFFF)
    if ip.ipv4_mapped or ip in _NAT64:
        return public(str(last))
    if ip not in _GLOBAL_6 or any(ip in network for network in _NOT_PUBLIC_6):
        return False
    wrapped = [ip.sixtofour, last if (int(ip) >> 32) & 0xFFFFFFFF in _ISATAP else None]
    return all(public(str(inner)) for inner in wrapped if inner)


def check_url(url: str, allow: Collection[str] = ()) -> CheckedUrl:
    """Return a URL's place. Raises `RefusedAddress` with the reason. `allow` holds the user's "host:port" entries.

    Blanks after the host are escaped, as browsers do.
    """
    scheme, slashes, rest = printable(url).strip().partition("://")
    host, slash, path = rest.partition("/")
    url = f"{scheme}{slashes}{host}{slash}{path.replace(' ', '%20')}"
    if len(url) > LONGEST:
        raise RefusedAddress(f"the URL is longer than {LONGEST} characters")
    if any(ord(character) <= 32 or ord(character) == 127 or character == "\\" for character in url):
        raise RefusedAddress(f"the URL {quote_url(url)} contains blanks, control characters or backslashes")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise RefusedAddress(f"the URL {quote_url(url)} cannot be read") from None
    if parts.scheme not in {"http", "https"}:
        raise RefusedAddress(f"only http and https URLs can be opened, not {quote_url(url)}")
    if "@" in parts.netloc:
        raise RefusedAddress(f"the URL {quote_url(url)} has a name or password before its host")
    host = _host(parts, url)
    usual = 443 if parts.scheme == "https" else 80
    port = usual if port is None else port
    allowed = f"{host}:{port}" in allow or f"[{host}]:{port}" in allow
    if not allowed:
        _check(host, port, url)
    netloc = (f"[{host}]" if ":" in host else host) + ("" if port == usual else f":{port}")
    return CheckedUrl(parts._replace(netloc=netloc, fragment="").geturl(), host, port, allowed)


def _host(parts: SplitResult, url: str) -> str:
    """Return the host in lower-case ASCII: compatibility forms folded, so that ①②⑦ equals 127, IDN encoded."""
    host = unicodedata.normalize("NFKC", parts.hostname or "").replace("。", ".").rstrip(".").lower()
    if not host or "%" in host or "/" in host:
        raise RefusedAddress(f"the host of {quote_url(url)} cannot be read")
    if not host.isascii():
        import idna

        try:
            host = idna.encode(host, uts46=True).decode("ascii")
        except idna.IDNAError:
            raise RefusedAddress(f"the host of {quote_url(url)} is not a domain name") from None
    if len(host) > 253 or not (":" in host or _NAME.fullmatch(host)):
        raise RefusedAddress(f"the host of {quote_url(url)} is not a domain name")
    return host


def _check(host: str, port: int, url: str) -> None:
    if port not in PORTS:
        raise RefusedAddress(f"port {port} of {quote_url(url)} cannot be opened, only {sorted(PORTS)}")
    last = host.rpartition(".")[2]
    if ":" in host or last.isdigit() or last.startswith("0x"):
        try:
            ipaddress.ip_address(host)
        except ValueError:
            raise RefusedAddress(f"{quote_url(url)} spells its address in a form that is not opened") from None
        if not public(host):
            raise RefusedAddress(f"{quote_url(url)} is not a public address")
    elif "." not in host or last in LOCAL_NAMES:
        raise RefusedAddress(f"{quote_url(url)} names a host of a local network")


def quote_url(url: str) -> str:
    """Return the URL as a text for the model may quote it."""
    return repr(clean(url if len(url) <= 200 else url[:200] + "…"))


_URL = compile_lazily(r"https?://[^\s<>\"'`|\\^{}\x00-\x20]+", re.IGNORECASE)
_AFTER = ".,;:!?…*_。，、）】》」』”’"
_PAIRS = {")": "(", "]": "["}
_TRIPLET = compile_lazily(r"%[0-9a-f]{2}", re.IGNORECASE)


def canonicalise_url(url: str) -> str:
    """Return the one spelling of a URL: http for https, host and escapes in one case, no fragment, no last slash.

    The query stays exactly as it is.
    """
    url = printable(url).strip()
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
        port = parts.port
    except ValueError:
        return url
    host = f"{host}:{port}" if port not in {None, 80, 443} else host
    named = f"{parts.username or ''}:{parts.password or ''}@" if "@" in parts.netloc else ""
    scheme = "http" if parts.scheme == "https" else parts.scheme
    query = f"?{_quote_part(parts.query)}" if parts.query else ""
    return f"{scheme}://{named}{host}{_quote_part(parts.path).removesuffix('/')}{query}"


def _quote_part(text: str) -> str:
    return in_one_case(quote(text, safe="%/:@!$&'()*+,;=~?[]-._"))


def in_one_case(url: str) -> str:
    """Return a URL with its escapes as `%2F`: a model that writes some as `%2f` tells the server nothing by it."""
    return _TRIPLET.sub(lambda match: match[0].upper(), url)


def is_on_host(url: str, hosts: Collection[str]) -> bool:
    """Return whether a URL is on one of these hosts, or on a subdomain of one."""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return False
    named = (host.lower().strip(".") for host in hosts)
    return any(host == name or host.endswith("." + name) for name in named)


def urls(text: str) -> list[str]:
    """Return the http(s) URLs in a text, each once, without the punctuation after them and without closing
    brackets that they do not open."""
    found: dict[str, None] = {}
    for match in _URL.finditer(text):
        url, end = match[0], len(match[0])
        unopened = {closing: url.count(closing) - url.count(opening) for closing, opening in _PAIRS.items()}
        while end and (url[end - 1] in _AFTER or unopened.get(url[end - 1], 0) > 0):
            end -= 1
            if url[end] in unopened:
                unopened[url[end]] -= 1
        found[url[:end]] = None
    return list(found)
