"""Which URLs a model may open: those it was shown, in the question, in search results and on pages, with nothing added.

A page can tell a model to put what it knows into a URL and open it. A URL opened as it was shown carries nothing out.
"""

import re
from collections.abc import Collection, Container
from urllib.parse import quote, urlsplit

from hira.core.sanitize import printable

_URL = re.compile(r"https?://[^\s<>\"'`|\\^{}\x00-\x20]+", re.IGNORECASE)
_AFTER = ".,;:!?…*_。，、）】》」』”’"
_PAIRS = {")": "(", "]": "["}
_TRIPLET = re.compile(r"%[0-9a-f]{2}", re.IGNORECASE)


def canonicalise_url(url: str) -> str:
    """The one spelling of a URL: http and https are one, host and escapes in one case, no fragment, no last slash.

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
    return f"{scheme}://{named}{host}{_quoted(parts.path).removesuffix('/')}" + (
        f"?{_quoted(parts.query)}" if parts.query else ""
    )


def _quoted(text: str) -> str:
    return in_one_case(quote(text, safe="%/:@!$&'()*+,;=~?[]-._"))


def in_one_case(url: str) -> str:
    """A URL with its escapes as `%2F`: a model that writes some as `%2f` says nothing by it to the server."""
    return _TRIPLET.sub(lambda match: match[0].upper(), url)


def is_allowed(url: str, seen: Container[str]) -> bool:
    """Whether a URL may be opened; `seen` holds spelled URLs."""
    return canonicalise_url(url) in seen


def on(url: str, hosts: Collection[str]) -> bool:
    """Whether a URL is on one of these hosts, or on a host below one."""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return False
    named = (one.lower().strip(".") for one in hosts)
    return any(host == one or host.endswith("." + one) for one in named)


def urls(text: str) -> list[str]:
    """The http(s) URLs that stand in a text, each once, without the punctuation around them."""
    return list(dict.fromkeys(_trimmed(match[0]) for match in _URL.finditer(text)))


def _trimmed(url: str) -> str:
    """The URL without the punctuation after it, and without brackets that close what it does not open."""
    unopened = {closing: url.count(closing) - url.count(opening) for closing, opening in _PAIRS.items()}
    end = len(url)
    while end and (url[end - 1] in _AFTER or unopened.get(url[end - 1], 0) > 0):
        end -= 1
        if url[end] in unopened:
            unopened[url[end]] -= 1
    return url[:end]
