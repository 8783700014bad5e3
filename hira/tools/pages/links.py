"""Where a page leads."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from hira.tools.pages.tree import Element, flat, unseen

LINKS = 2000


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
    """The absolute http(s) URL without its fragment, or nothing."""
    try:
        url = urljoin(base, "".join(href.split())).partition("#")[0]
        return url if href.strip()[:1] != "#" and urlsplit(url).scheme in {"http", "https"} else ""
    except ValueError:
        return ""
