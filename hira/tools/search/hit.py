"""What every search service brings, in one form, and when two results are the same place."""

import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import idna

from hira.core.sanitize import printable, unescape

_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_PLAIN = re.compile(r"%[0-9a-f]{2}", re.IGNORECASE)
_KEPT = "%/:@!$&'()*+,;=~-._"
_TRACKING = re.compile(
    r"utm_\w+|(?:g|fb|ms|y|tw|dc|wbra|gbra)clid|mc_[ce]id|igshid|_hs\w+|ref_src|ref_url|spm|cmpid|ocid"
)


@dataclass(frozen=True, slots=True)
class Hit:
    """One result. `snippet` is what the service quotes of the page; `date` as it writes it; `rank` begins at 1."""

    title: str
    url: str
    snippet: str
    rank: int = 0
    backend: str = ""
    date: str = ""


class Backend(Protocol):
    """A search service. `search` raises `ToolError` where it cannot answer; no hits are an answer."""

    @property
    def name(self) -> str: ...

    async def search(self, query: str, n: int) -> list[Hit]: ...


def canonical(url: str) -> str:
    """A key that is the same for two spellings of one place: without scheme, www, tracking, fragment and order.

    Empty for what is no http(s) URL. It is a key only, never opened.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
        return ""
    host = parts.hostname.rstrip(".").removeprefix("www.").replace(".m.wikipedia.org", ".wikipedia.org")
    if not host.isascii():
        with suppress(idna.IDNAError):
            host = idna.encode(host, uts46=True).decode("ascii")
    asked = sorted(pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not _TRACKING.fullmatch(pair[0]))
    where = f":{port}" if port not in {None, 80, 443} else ""
    query = f"?{urlencode(asked)}" if asked else ""
    return f"{host}{where}{_PLAIN.sub(_unquoted, quote(parts.path, safe=_KEPT)).rstrip('/')}{query}"


def _unquoted(escape: re.Match[str]) -> str:
    """What an escape stands for if it need not be escaped, else the escape in capitals."""
    told = unquote(escape[0])
    return told if told.isascii() and (told.isalnum() or told in "-._~") else escape[0].upper()


def plain(text: object) -> str:
    """A title or snippet without markup, in one line."""
    return " ".join(unescape(_TAG.sub("", whole(text))).split())


def whole(text: object) -> str:
    """A text without halves of characters: services cut in the middle of one, and it can be neither sent nor stored."""
    return printable(str(text or ""))
