"""A web page as its readable text: a small extractor without dependencies.

The page becomes a tree; what is hidden is left out of it; what its tag, class or id calls furniture is left out of the
text; and the text is that of the smallest element that holds most of the running words. Where this leaves little of a
page that has much, the furniture was the page: it is read again whole.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Literal
from urllib.parse import urljoin, urlsplit

State = Literal["ok", "blocked", "empty", "script", "paywall"]

DEEPEST = 150
ELEMENTS = 100_000
MAIN_SHARE = 0.6
FAIR_SHARE = 0.03
LITTLE = 1500
RUNNING = 40
LINKED = 0.9
FEW = 200
LINKS = 2000


@dataclass(frozen=True, slots=True)
class Link:
    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Page:
    """`text` is what can be read, `links` where it leads, those within the text first. Only state "ok" is content."""

    title: str
    text: str
    links: tuple[Link, ...]
    state: State


@dataclass(eq=False, slots=True)
class _Element:
    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    parent: "_Element | None" = None
    children: list["_Element | str"] = field(default_factory=list)
    depth: int = 0
    running: int = 0  # characters of running text within, links left out
    size: int = 0  # characters of text within
    linked: int = 0  # of these, within links
    left_out: bool = False


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


_LISTING = _set("ul ol div section header p")
_VOID = _set("area base br col embed hr img input link meta param source track wbr")
_DROPPED = _set(
    "script style head iframe object embed canvas audio video datalist select option textarea button dialog"
)
_FURNITURE = _set("nav footer aside menu figcaption")
_BLOCKS = _set(
    """address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer form h1 h2 h3
    h4 h5 h6 header hgroup hr li main menu nav ol p pre section summary table tbody td tfoot th thead tr ul"""
)
_READ = _set("href class id role style hidden aria-hidden aria-label title itemprop")
_HEADINGS = _set("h1 h2 h3 h4 h5 h6")
_WHOLE = _set("p td tr li ul ol tbody")  # the main text is never less than these stand in
_TABLE = _set("table tbody thead tfoot tr td th")
_INNER = _set("li tr td th dt dd tbody thead tfoot")  # stand without an empty line around them
_ENDED = {  # an opening tag ends the first, up to the second
    tag: (_set(ended), _set(bounds))
    for tag, ended, bounds in (
        ("li", "li", "ul ol menu"),
        ("dt", "dt dd", "dl"),
        ("dd", "dt dd", "dl"),
        ("tr", "tr td th", "table"),
        ("td", "td th", "tr table"),
        ("th", "td th", "tr table"),
    )
}
_UNREAD = re.compile(r"<!--|<(script|style|noscript|template|svg|math)\b", re.IGNORECASE)
_END = {tag: re.compile(rf"</{tag}\s*>", re.IGNORECASE) for tag in _set("script style noscript template svg math")}
_DECLARATION = re.compile(r"<[!?][^>]*>")
_HIDDEN = re.compile(
    r"display:none|visibility:(?:hidden|collapse)|font-size:0(?!\.?\d*[1-9])|opacity:0(?!\.?\d*[1-9])"
    r"|color:transparent|(?:left|top|text-indent):-\d{3,}|clip:rect\(0",
    re.IGNORECASE,
)
_NOISE = re.compile(
    r"""(?:^|[\s_-])(?:nav(?:bar|igation)?|menu|breadcrumbs?|footer|sidebar|side-?bar|rail|comment\w*|disqus|respond|shar(?:e|ing)
    |social\w*|related\w*|recirc\w*|recommend\w*|promo\w*|newsletter\w*|subscri\w+|sign-?up|log-?in|cookies?|consent|gdpr
    |banner|advert\w*|ads?|sponsor\w*|outbrain|taboola|popular|trending|most-?read|read-?more|more-?stories|tags?|tag-?list
    |author-?bio|by-?line|captions?|credits?|copyright|popup|modal|overlay|widgets?|toolbar|pagination|pager|print-?only
    |skip-?link|navbox\w*|reference|screen-?reader\w*|sr-only|visually-?hidden|editsection|toc|catlinks|printfooter|noprint)(?:$|[\s_-])""",
    re.IGNORECASE | re.VERBOSE,
)
_BODY = re.compile(r"(?:^|\s)(?:article|story|entry|post)[_-]{0,2}(?:body|content|text)(?:$|\s)", re.IGNORECASE)
_WALL = re.compile(
    r"""are\ you\ a\ (?:ro)?bot|(?:verify|confirm)\ (?:that\ )?you(?:['’]|\ a)re\ (?:a\ |not\ a\ )?(?:human|robot)
    |captcha|checking\ your\ browser|unusual\ traffic|attention\ required!|access\ (?:to\ this\ page\ .{0,20})?denied
    |request\ (?:was\ |has\ been\ )?blocked|you\ have\ been\ blocked|pardon\ our\ interruption|just\ a\ moment\.\.\.
    |(?:403|401)\s?[:—-]?\s?(?:forbidden|unauthorized)|too\ many\ requests|bot\ detection|ddos\ protection""",
    re.IGNORECASE | re.VERBOSE,
)
_NEEDS_SCRIPT = re.compile(
    r"(?:enable|requires?|turn on|without|activate)\s+(?:\w+\s+){0,3}javascript|javascript\s+(?:is|must|has)",
    re.IGNORECASE,
)
_PAYWALL = re.compile(
    r"""(?:subscribe|sign\ in|log\ in|register)(?:\ now|\ today)?\ to\ (?:continue|keep|read|unlock|access|view)
    |to\ (?:continue|keep)\ reading|subscriber[\s-]only|already\ a\ subscriber\?|free\ articles?\ (?:left|remaining)
    |(?:article|content|story)\ is\ (?:only\ )?(?:for|available\ to|reserved\ for)\ .{0,12}(?:subscribers|members)""",
    re.IGNORECASE | re.VERBOSE,
)
_NOT_FREE = re.compile(r"\"isAccessibleForFree\"\s*:\s*\"?false", re.IGNORECASE)


def extract(html: str, base_url: str = "") -> Page:
    """Read a page. Never raises on broken markup; takes time linear in the length of `html`."""
    kept, scripts = _without_unread(html)
    tree = _Tree()
    tree.feed(kept)
    tree.close()
    main, text = _readable(tree.root)
    base = urljoin(base_url, tree.base) if tree.base else base_url
    links = _links(main, tree.root, base, base_url)
    title = _joined(tree.title) or tree.named or next((_flat(one) for one in _walk(tree.root) if one.tag == "h1"), "")
    return Page(title, text, links, _state(title, text, scripts))


def _without_unread(html: str) -> tuple[str, str]:
    """The markup without comments, scripts, styles and declarations; and what stood in scripts and noscript.

    An unclosed one takes the rest of the page with it, as in a browser. Left-over `<` at the end is dropped, because
    html.parser would look for its end again and again.
    """
    kept, scripts, at = [], [], 0
    while opened := _UNREAD.search(html, at):
        kept.append(html[at : opened.start()])
        tag = (opened[1] or "").lower()
        if not tag:
            end = html.find("-->", opened.start() + 2)
            at = end + 3 if end >= 0 else len(html)
            continue
        closed = _END[tag].search(html, opened.end())
        at = closed.end() if closed else len(html)
        if tag in {"script", "noscript"}:
            scripts.append(html[opened.start() : at])
    kept.append(html[at:])
    text = "".join(kept)
    last = text.rfind(">") + 1
    return _DECLARATION.sub(" ", text[:last]) + text[last:].partition("<")[0], "\n".join(scripts)


class _Tree(HTMLParser):
    """Builds the tree. Deeper than `DEEPEST` it stays flat, past `ELEMENTS` it grows no more."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.at = _Element("html")
        self.open: Counter[str] = Counter()
        self.flat: Counter[str] = Counter()
        self.elements = 0
        self.title: list[str] = []
        self.named = self.base = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in reversed(attrs) if name in _READ}
        if tag == "base":
            self.base = self.base or attributes.get("href", "").strip()
        elif tag == "meta" and ("property", "og:title") in attrs:
            self.named = _joined([dict(attrs).get("content") or ""])
        if tag in _BLOCKS:
            self.handle_endtag("head")
        if tag in {"html", "body", "meta", "link", "base"} or self.elements >= ELEMENTS:
            return
        self.elements += 1
        self._end_before(tag)
        one = _Element(tag, attributes, self.at, depth=self.at.depth + 1)
        self.at.children.append(one)
        if tag in _VOID:
            return
        if one.depth < DEEPEST:
            self.at = one
            self.open[tag] += 1
        else:
            self.flat[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        """End the nearest such element; a stray end of something inline ends no block, none leaves its table cell."""
        if self.flat[tag]:
            self.flat[tag] -= 1
        elif self.open[tag]:
            one = self.at
            while one.tag != tag and one.parent:
                if tag not in _BLOCKS and one.tag in _BLOCKS and one.tag != "p":
                    return
                if one.tag in {"td", "th"} and tag not in _TABLE:
                    return
                one = one.parent
            self._leave(one)

    def handle_data(self, data: str) -> None:
        (self.title if self.at.tag == "title" else self.at.children).append(data)

    def _end_before(self, tag: str) -> None:
        """End what an opening `tag` ends by itself: a paragraph, the list item or table cell before, a link."""
        if tag in _BLOCKS and self.at.tag == "p":
            self._leave(self.at)
        if tag == "a":
            self.handle_endtag("a")
        ended, bounds = _ENDED.get(tag, (frozenset(), frozenset()))
        one: _Element | None = self.at if ended else None
        while one and one.tag not in bounds:
            above = one.parent
            if one.tag in ended:
                self._leave(one)
            one = above

    def _leave(self, one: _Element) -> None:
        """Go on beside `one`; all that is open within it ends too."""
        while True:
            left, self.at = self.at, self.at.parent or self.root
            self.open[left.tag] -= 1
            if left is one:
                return


def _readable(root: _Element) -> tuple[_Element, str]:
    """The element that is the page's main text, and that text.

    Read strictly first: without furniture and lists of links. Where that leaves too little, less and less is left out.
    """
    main, text = _main(root, strictness=2)
    for strictness, enough in ((1, LITTLE), (0, FEW)):
        if len(text) < enough:
            looser, more = _main(root, strictness=strictness)
            if len(more) > 2 * len(text):
                main, text = looser, more
    return main, text


def _main(root: _Element, *, strictness: int) -> tuple[_Element, str]:
    _measure(root, strictness)
    main = _marked(root) or root
    enough = MAIN_SHARE * main.running
    while True:
        inner = [one for one in main.children if isinstance(one, _Element) and one.running > enough]
        if not inner or inner[0].tag in _WHOLE:
            break
        main = inner[0]
    writer = _Writer()
    writer.write(main)
    return main, writer.text


def _marked(root: _Element) -> _Element | None:
    """The one element that the page itself calls its article, if a fair share of the running text stands in it."""
    marks: tuple[Callable[[_Element], bool], ...] = (_called_body, lambda one: one.tag in {"article", "main"})
    for is_article in marks:
        marked = [one for one in _walk(root) if one.running >= max(FEW, FAIR_SHARE * root.running) and is_article(one)]
        within = set(marked)
        outer = [one for one in marked if one.parent not in within]
        if len(outer) == 1:
            return outer[0]
    return None


def _called_body(one: _Element) -> bool:
    return one.attributes.get("itemprop") == "articleBody" or bool(_BODY.search(_names(one)))


def _names(one: _Element) -> str:
    return " ".join(one.attributes.get(key, "")[:300] for key in ("class", "id", "role"))


def _measure(one: _Element, strictness: int) -> None:
    """Count the characters of an element and of all that stands within it, and decide whether it is left out."""
    one.running = one.size = one.linked = 0
    one.left_out = _unseen(one) or (strictness > 1 and one.depth > 0 and _furniture(one))
    if one.left_out:
        return
    for child in one.children:
        if isinstance(child, str):
            size = len(child.strip())
            one.size += size
            one.running += size if size >= RUNNING else 0
        else:
            _measure(child, strictness)
            one.size += child.size
            one.running += child.running
            one.linked += child.linked
    if one.tag == "a":
        one.running, one.linked = 0, one.size
    elif strictness and one.tag in _LISTING and one.linked > LINKED * one.size and one.running < FEW:
        one.running = one.size = one.linked = 0
        one.left_out = True


def _furniture(one: _Element) -> bool:
    return one.tag in _FURNITURE or (one.tag not in {"article", "main"} and bool(_NOISE.search(_names(one))))


def _unseen(one: _Element) -> bool:
    return one.tag in _DROPPED or _hidden(one)


def _hidden(one: _Element) -> bool:
    if "hidden" in one.attributes or one.attributes.get("aria-hidden", "").lower() == "true":
        return True
    style = one.attributes.get("style")
    return bool(style and _HIDDEN.search("".join(style[:1000].split())))


class _Writer:
    """Writes the text of an element: headings with #, lists with -, table rows between bars."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.line: list[str] = []

    @property
    def text(self) -> str:
        self.end()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self.lines)).strip()

    def write(self, one: _Element) -> None:
        if one.left_out:
            return
        if one.tag == "br":
            self.end()
        elif one.tag == "pre":
            self.end(blank=True)
            self.lines += [*_flat(one, preserve=True).strip("\n").split("\n"), ""]
        elif one.tag == "tr" and not any(part.tag in {"p", "div", "table", "ul"} for part in _walk(one)):
            self.end()
            cells = [_flat(cell) for cell in one.children if isinstance(cell, _Element)]
            if any(cells):
                self.lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
        else:
            self._block(one)

    def _block(self, one: _Element) -> None:
        apart = one.tag in _BLOCKS
        if apart:
            self.end(blank=one.tag not in _INNER)
        if one.tag in _HEADINGS:
            self.line.append("#" * int(one.tag[1]) + " ")
        elif one.tag == "li":
            self.line.append("- ")
        for child in one.children:
            if isinstance(child, str):
                self.line.append(child)
            else:
                self.write(child)
        if apart:
            self.end(blank=one.tag not in _INNER)

    def end(self, *, blank: bool = False) -> None:
        """End the line, `blank` with an empty one after it."""
        line = _joined(self.line)
        if line.strip("#- "):
            self.lines.append(line)
        self.line = []
        if blank:
            self.lines.append("")


def _joined(parts: list[str]) -> str:
    return " ".join("".join(parts).split())


def _walk(one: _Element) -> Iterator[_Element]:
    waiting = [one]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += [child for child in reversed(one.children) if isinstance(child, _Element)]


def _flat(one: _Element, *, preserve: bool = False) -> str:
    """All visible text within, in one line or as it stands."""
    parts: list[str] = []

    def collect(inner: _Element) -> None:
        for child in inner.children:
            if isinstance(child, str):
                parts.append(child)
            elif child.tag == "br":
                parts.append("\n")
            elif not _unseen(child):
                collect(child)

    collect(one)
    return "".join(parts) if preserve else _joined(parts)


def _links(main: _Element, root: _Element, base: str, page: str) -> tuple[Link, ...]:
    """Where the page leads, each place once: first from its main text, then from around it."""
    found: dict[str, Link] = {}
    here = page.partition("#")[0]
    for one in (*_anchors(main), *_anchors(root)):
        url = _target(one.attributes.get("href", ""), base)
        text = _flat(one) or one.attributes.get("title", "") or one.attributes.get("aria-label", "")
        if url and text and url != here and url not in found and len(found) < LINKS:
            found[url] = Link(text, url)
    return tuple(found.values())


def _anchors(root: _Element) -> Iterator[_Element]:
    """The links that can be seen."""
    waiting = [root]
    while waiting:
        one = waiting.pop()
        if one.tag in {"a", "area"} and "href" in one.attributes:
            yield one
        waiting += [child for child in reversed(one.children) if isinstance(child, _Element) and not _unseen(child)]


def _target(href: str, base: str) -> str:
    """The absolute http(s) URL without its fragment, or nothing."""
    try:
        url = urljoin(base, "".join(href.split())).partition("#")[0]
        return url if href.strip()[:1] != "#" and urlsplit(url).scheme in {"http", "https"} else ""
    except ValueError:
        return ""


def _state(title: str, text: str, scripts: str) -> State:
    """Whether the text is what the page is about, by its length first: a long text with such words is an article."""
    if len(text) < LITTLE and (_WALL.search(title) or (len(text) < LITTLE // 2 and _WALL.search(text))):
        return "blocked"
    if len(text) < LITTLE // 5 and (_NEEDS_SCRIPT.search(text) or _NEEDS_SCRIPT.search(scripts)):
        return "script"
    if len(text) < 2 * LITTLE and (_PAYWALL.search(text) or (_NOT_FREE.search(scripts) and len(text) < LITTLE)):
        return "paywall"
    if len(text) < LITTLE // 10 and scripts.count("<script") > 1:
        return "script"
    return "ok" if text else "empty"
