"""Where a page leads."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from hira.core.sanitize import printable
from hira.tools.addresses import LONGEST
from hira.tools.pages.tree import Element, flat, unseen

LINKS = 2000
_ESCAPED = str.maketrans({"\t": "", "\r": "", "\n": "", " ": "%20", "<": "%3C", ">": "%3E", '"': "%22"})


@dataclass(frozen=True, slots=True)
class Link:
    text: str
    url: str


def links_of(main: Element, root: Element, base: str, page: str) -> tuple[Link, ...]:
    """Where the page leads, each place once: first from its main text, then from around it."""
    found: dict[str, Link] = {}
    here = page.partition("#")[0]
    for one in (*_anchors(main), *_anchors(root)):
        url = _target(one.attributes.get("href", ""), base)
        text = flat(one) or one.attributes.get("title", "") or one.attributes.get("aria-label", "")
        if url and text and url != here and url not in found and len(found) < LINKS:
            found[url] = Link(text, url)
    return tuple(found.values())


def _anchors(root: Element) -> Iterator[Element]:
    """The links that can be seen."""
    waiting = [root]
    while waiting:
        one = waiting.pop()
        if one.tag in {"a", "area"} and "href" in one.attributes:
            yield one
        waiting += [child for child in reversed(one.children) if isinstance(child, Element) and not unseen(child)]


def _target(href: str, base: str) -> str:
    """The absolute http(s) URL without its fragment, or nothing. Line ends are left out, blanks and brackets escaped,
    as in browsers; what is longer than can be opened leads nowhere."""
    url = resolve_url(base, href).partition("#")[0]
    leads = href.strip()[:1] != "#" and len(url) <= LONGEST
    return url if leads and url.lower().startswith(("http://", "https://")) and _is_readable(url) else ""


def resolve_url(base: str, href: str) -> str:
    """A reference of a page as a URL; nothing where it cannot be read as one."""
    try:
        return urljoin(base, printable(href).strip().translate(_ESCAPED))
    except ValueError:
        return ""


def _is_readable(url: str) -> bool:
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:
        return False
