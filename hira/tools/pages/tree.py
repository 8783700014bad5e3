"""Markup as a tree of elements, without content that a reader never sees as text, and the links in it."""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

from hira.core.sanitize import printable, shorten_references, unescape
from hira.tools.addresses import LONGEST

DEEPEST = 150
ELEMENTS = 100_000
MARKS = 200_000
"""The most `<` of a page that are parsed, the beginnings of its tags; of the rest only the text is kept."""


@dataclass(eq=False, slots=True)
class Element:
    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    parent: "Element | None" = None
    children: list["Element | str"] = field(default_factory=list)
    depth: int = 0
    running: int = 0  # characters of running text inside, without links
    size: int = 0  # characters of text inside
    linked: int = 0  # of these, inside links
    left_out: bool = False


def tags(names: str) -> frozenset[str]:
    """Split a line into names of tags."""
    return frozenset(names.split())


_VOID = tags("area base br col embed hr img input link meta param source track wbr")
_DROPPED = tags(
    "script style head iframe noembed object embed canvas audio video datalist select option textarea button dialog"
    " del s strike"
)
BLOCKS = tags(
    """address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer form h1 h2 h3
    h4 h5 h6 header hgroup hr li main menu nav ol p pre section summary table tbody td tfoot th thead tr ul"""
)
_READ = tags("href class id role style hidden aria-hidden aria-label title itemprop colspan rowspan")
_TABLE = tags("table tbody thead tfoot tr td th")
_ENDED = {  # opening tag → the tags that it ends, and the tags at which that stops
    "li": (tags("li"), tags("ul ol menu")),
    **dict.fromkeys(("dt", "dd"), (tags("dt dd"), tags("dl"))),
    "tr": (tags("tr td th"), tags("table")),
    **dict.fromkeys(("td", "th"), (tags("td th"), tags("tr table"))),
}
_UNREAD = re.compile(r"<!--|<(script|style|noscript|template|svg|math)\b", re.IGNORECASE)
_END = {
    tag: re.compile(rf"</{tag}(?:[\s/][^<>]*)?>", re.IGNORECASE)
    for tag in tags("script style noscript template svg math")
}
_MARKUP = re.compile(r"<[^<>]*>")
_DECLARATION = re.compile(r"<[!?][^>]*>")
_HIDDEN = re.compile(
    r"display:none|visibility:(?:hidden|collapse)|font-size:0(?!\.?\d*[1-9])|opacity:0(?!\.?\d*[1-9])"
    r"|color:transparent|(?:left|top|text-indent):-\d{3,}|clip:rect\(0",
    re.IGNORECASE,
)
_EMPTY = re.compile(r"(?:height|width):0(?!\.?\d*[1-9])", re.IGNORECASE)


def without_unread(html: str) -> tuple[str, str]:
    """Return the markup without comments, scripts, styles and declarations; and the content of scripts and noscript.

    An unclosed one takes the rest of the page with it, as in a browser. Left-over `<` at the end is dropped, because
    html.parser would look for its end again and again.
    """
    html = shorten_references(html)
    kept, scripts, position = [], [], 0
    while opened := _UNREAD.search(html, position):
        kept.append(html[position : opened.start()])
        tag = (opened[1] or "").lower()
        if not tag:
            end = html.find("-->", opened.start() + 2)
            position = end + 3 if end >= 0 else len(html)
            continue
        closed = _END[tag].search(html, opened.end())
        position = closed.end() if closed else len(html)
        if tag in {"script", "noscript"}:
            scripts.append(html[opened.start() : position])
    kept.append(html[position:])
    text = "".join(kept)
    last = text.rfind(">") + 1
    return _DECLARATION.sub(" ", text[:last]) + text[last:].partition("<")[0], "\n".join(scripts)


class Tree(HTMLParser):
    """Builds the tree. Elements deeper than `DEEPEST` are added flat, elements after `ELEMENTS` are ignored."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.current = Element("html")
        self.open: Counter[str] = Counter()
        self.flat: Counter[str] = Counter()
        self.elements = 0
        self.title: list[str] = []
        self.named = self.base = ""

    def read(self, html: str) -> None:
        """Parse the markup."""
        rest = html.split("<", MARKS)[MARKS:]
        self.feed(html[: len(html) - len(rest[0]) - 1] if rest else html)
        self.close()
        if rest:
            self.handle_data(unescape(_MARKUP.sub(" ", f"<{rest[0]}")))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in reversed(attrs) if name in _READ}
        if tag == "base":
            self.base = self.base or attributes.get("href", "").strip()
        elif tag == "meta" and ("property", "og:title") in attrs:
            self.named = join_parts([dict(attrs).get("content") or ""])
        if tag in BLOCKS:
            self.handle_endtag("head")
        if tag in {"html", "body", "meta", "link", "base"} or self.elements >= ELEMENTS:
            return
        self.elements += 1
        self._end_before(tag)
        element = Element(tag, attributes, self.current, depth=self.current.depth + 1)
        self.current.children.append(element)
        if tag in _VOID:
            return
        if element.depth < DEEPEST:
            self.current = element
            self.open[tag] += 1
        else:
            self.flat[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        """End the nearest such element; a stray end of an inline one ends no block, and none leaves its table cell."""
        if self.flat[tag]:
            self.flat[tag] -= 1
        elif self.open[tag]:
            element = self.current
            while element.tag != tag and element.parent:
                if tag not in BLOCKS and element.tag in BLOCKS and element.tag != "p":
                    return
                if element.tag in {"td", "th"} and tag not in _TABLE:
                    return
                element = element.parent
            self._leave(element)

    def handle_data(self, data: str) -> None:
        (self.title if self.current.tag == "title" else self.current.children).append(data)

    def _end_before(self, tag: str) -> None:
        """End the elements that an opening `tag` ends implicitly: a paragraph, list item, table cell or link."""
        if tag in BLOCKS and self.current.tag == "p":
            self._leave(self.current)
        if tag == "a":
            self.handle_endtag("a")
        ended, bounds = _ENDED.get(tag, (frozenset(), frozenset()))
        element: Element | None = self.current if ended else None
        while element and element.tag not in bounds:
            above = element.parent
            if element.tag in ended:
                self._leave(element)
            element = above

    def _leave(self, element: Element) -> None:
        """Continue after the element; all open elements inside it end too."""
        while True:
            left, self.current = self.current, self.current.parent or self.root
            self.open[left.tag] -= 1
            if left is element:
                return


def unseen(element: Element) -> bool:
    attributes = element.attributes
    if element.tag in _DROPPED or "hidden" in attributes or attributes.get("aria-hidden", "").lower() == "true":
        return True
    style = "".join(attributes.get("style", "")[:1000].split())
    return bool(_HIDDEN.search(style) or ("overflow:hidden" in style.lower() and _EMPTY.search(style)))


def join_parts(parts: list[str]) -> str:
    return " ".join("".join(parts).split())


def walk(element: Element, *, visible: bool = False) -> Iterator[Element]:
    """Yield an element and those inside it, in order, or only the `visible` ones inside it."""
    waiting = [element]
    while waiting:
        element = waiting.pop()
        yield element
        inner = [child for child in reversed(element.children) if isinstance(child, Element)]
        waiting += [child for child in inner if not unseen(child)] if visible else inner


def flat(element: Element, *, preserve: bool = False, without: Collection[str] = ()) -> str:
    """Return all visible text inside, in one line or, with `preserve`, unchanged; not that of the tags in `without`."""
    parts: list[str] = []

    def collect(inner: Element) -> None:
        for child in inner.children:
            if isinstance(child, str):
                parts.append(child)
            elif child.tag == "br":
                parts.append("\n")
            elif child.tag not in without and not unseen(child):
                collect(child)

    collect(element)
    return "".join(parts) if preserve else join_parts(parts)


LINKS = 2000
_ESCAPED = str.maketrans({"\t": "", "\r": "", "\n": "", " ": "%20", "<": "%3C", ">": "%3E", '"': "%22"})


@dataclass(frozen=True, slots=True)
class Link:
    text: str
    url: str


def links_of(main: Element, root: Element, base: str, page: str) -> tuple[Link, ...]:
    """Return the links of the page, each target once: first from its main text, then from the rest."""
    links: dict[str, Link] = {}
    here = page.partition("#")[0]
    for element in (*walk(main, visible=True), *walk(root, visible=True)):
        if element.tag not in {"a", "area"} or "href" not in element.attributes:
            continue
        url = _target(element.attributes["href"], base)
        text = flat(element) or element.attributes.get("title", "") or element.attributes.get("aria-label", "")
        if url and text and url != here and url not in links and len(links) < LINKS:
            links[url] = Link(text, url)
    return tuple(links.values())


def _target(href: str, base: str) -> str:
    """Return the absolute http(s) URL without its fragment, or "" for a link that leads nowhere. Line ends are left
    out, blanks and brackets escaped, as in browsers; URLs that are too long to open lead nowhere."""
    url = resolve_url(base, href).partition("#")[0]
    if href.strip()[:1] == "#" or len(url) > LONGEST or not url.lower().startswith(("http://", "https://")):
        return ""
    try:
        return url if urlsplit(url).hostname else ""
    except ValueError:
        return ""


def resolve_url(base: str, href: str) -> str:
    """Resolve a reference of a page to a URL; empty if it cannot be read as one."""
    try:
        return urljoin(base, printable(href).strip().translate(_ESCAPED))
    except ValueError:
        return ""
