"""What every search service brings, in one form, and when two results are the same place."""

import html
import re
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit

_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
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
    asked = sorted(pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not _TRACKING.fullmatch(pair[0]))
    where = f":{port}" if port not in {None, 80, 443} else ""
    query = f"?{urlencode(asked)}" if asked else ""
    return f"{host}{where}{parts.path.rstrip('/')}{query}"


def plain(text: object) -> str:
    """A title or snippet without markup, in one line."""
    return " ".join(html.unescape(_TAG.sub("", str(text or ""))).split())
