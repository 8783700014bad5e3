"""A web page as its readable text: a small extractor without dependencies.

The page becomes a tree; what is hidden is left out of it; what its tag, class or id calls furniture is left out of the
text; and the text is that of the smallest element that holds most of the running words. Where this leaves little of a
page that has much, the furniture was the page: it is read again whole.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Literal
from urllib.parse import urljoin, urlsplit

State = Literal["ok", "blocked", "empty", "script", "paywall"]

DEEPEST = 150
MAIN_SHARE = 0.75
LITTLE = 1500
LINKS = 2000


@dataclass(frozen=True, slots=True)
class Link:
    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Page:
    """`text` is the readable text, `links` the places to go on to, those within the text first. Only "ok" is content."""

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


_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_DROPPED = frozenset(
    "head iframe object embed canvas audio video map datalist select option textarea button dialog".split()
)
_FURNITURE = frozenset("nav footer aside menu figcaption form".split())
_BLOCKS = frozenset(
    """address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer form h1 h2 h3
    h4 h5 h6 header hgroup hr li main menu nav ol p pre section summary table tbody td tfoot th thead tr ul""".split()
)
_CLOSES = {  # an opening tag ends these, up to the nearest of the second set
    "li": ({"li"}, {"ul", "ol", "menu"}),
    "dt": ({"dt", "dd"}, {"dl"}),
    "dd": ({"dt", "dd"}, {"dl"}),
    "tr": ({"tr", "td", "th"}, {"table"}),
    "td": ({"td", "th"}, {"tr", "table"}),
    "th": ({"td", "th"}, {"tr", "table"}),
}
_UNREAD = re.compile(r"<!--|<(script|style|noscript|template|svg|math)\b", re.IGNORECASE)
_END = {
    tag: re.compile(rf"</{tag}\s*>", re.IGNORECASE) for tag in "script style noscript template svg math".split()
}
_DECLARATION = re.compile(r"<[!?][^>]*>")
_HIDDEN = re.compile(
    r"display:none|visibility:(?:hidden|collapse)|font-size:0(?!\.?\d*[1-9])|opacity:0(?!\.?\d*[1-9])"
    r"|color:transparent|(?:left|top|text-indent):-\d{3,}|clip:rect\(0",
    re.IGNORECASE,
)
_NOISE = re.compile(
    r"""(?:^|[\s_-])(?:nav(?:bar|igation)?|menu|breadcrumbs?|footer|sidebar|side-?bar|rail|comments?|disqus|respond|shar(?:e|ing)
    |social\w*|related\w*|recirc\w*|recommend\w*|promo\w*|newsletter\w*|subscri\w+|sign-?up|log-?in|cookies?|consent|gdpr
    |banner|advert\w*|ads?|sponsor\w*|outbrain|taboola|popular|trending|most-?read|read-?more|more-?stories|tags?|tag-?list
    |author-?bio|by-?line|captions?|credits?|copyright|popup|modal|overlay|widgets?|toolbar|pagination|pager|print-?only
    |skip-?link|screen-?reader\w*|sr-only|visually-?hidden|editsection|toc|catlinks|printfooter|noprint)(?:$|[\s_-])""",
    re.IGNORECASE | re.VERBOSE,
)
_SPACE = re.compile(r"[^\S\n]+")
_WALL = re.compile(
    r"""are\ you\ a\ (?:ro)?bot|(?:verify|confirm)\ (?:that\ )?you(?:'|’)?\ ?a?re\ (?:a\ |not\ a\ )?(?:human|robot)|captcha
    |checking\ your\ browser|unusual\ traffic|access\ (?:to\ this\ page\ (?:has\ been|was)\ )?denied|attention\ required!
    |request\ (?:was\ |has\ been\ )?blocked|you\ have\ been\ blocked|pardon\ our\ interruption|just\ a\ moment\.\.\.
    |(?:403|401)\s*[:—-]?\s*(?:forbidden|unauthorized)|too\ many\ requests|bot\ detection|ddos\ protection""",
    re.IGNORECASE | re.VERBOSE,
)
_NEEDS_SCRIPT = re.compile(r"(?:enable|requires?|turn on|without|activate)\s+(?:\w+\s+){0,3}javascript|javascript\s+(?:is|must|has)", re.IGNORECASE)
_PAYWALL = re.compile(
    r"""(?:subscribe|sign\ in|log\ in|register)(?:\ now|\ today)?\ to\ (?:continue|keep|read|unlock|access|view)
    |to\ (?:continue|keep)\ reading|(?:article|content|story)\ is\ (?:only\ )?(?:for|available\ to|reserved\ for)\ (?:our\ )?(?:paying\ )?(?:subscribers|members)
    |subscriber[\s-]only|already\ a\ subscriber\?|free\ articles?\ (?:left|remaining|this\ month)""",
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
    title = _joined(tree.title) or tree.named or next(
        (_flat(one) for one in _walk(tree.root) if one.tag == "h1"), ""
    )
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
    return _DECLARATION.sub("", text[:last]) + text[last:].partition("<")[0], "\n".join(scripts)


class _Tree(HTMLParser):
    """Builds the tree. Deeper than `DEEPEST` it stays flat, so that no page can make us recurse too far."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = self.at = _Element("html")
        self.open: Counter[str] = Counter()
        self.title: list[str] = []
        self.named = self.base = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in reversed(attrs)}
        if tag == "base" and not self.base:
            self.base = attributes.get("href", "").strip()
        elif tag == "meta" and attributes.get("property") == "og:title":
            self.named = _joined([attributes.get("content", "")])
        if tag in {"html", "body", "meta", "link", "base"}:
            return
        self._end_before(tag)
        one = _Element(tag, attributes, self.at, depth=self.at.depth + 1)
        self.at.children.append(one)
        if tag not in _VOID and one.depth < DEEPEST:
            self.at = one
            self.open[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        if self.open[tag]:
            while self.at.tag != tag:
                self._leave()
            self._leave()

    def handle_data(self, data: str) -> None:
        if self.at.tag == "title" and not self.open["body"]:
            self.title.append(data)
        else:
            self.at.children.append(data)

    def _end_before(self, tag: str) -> None:
        if self.open["head"] and tag in _BLOCKS:
            self.handle_endtag("head")
        if tag in _BLOCKS and self.at.tag == "p":
            self._leave()
        if tag in _CLOSES and self.open[tag if tag not in {"dt", "dd", "td", "th"} else self.at.tag]:
            ended, bounds = _CLOSES[tag]
            one: _Element | None = self.at
            while one is not None and one.tag not in bounds and one.tag not in ended:
                one = one.parent
            while one is not None and one.tag in ended:
                while self.at is not one:
                    self._leave()
                self._leave()
                one = self.at

    def _leave(self) -> None:
        self.open[self.at.tag] -= 1
        self.at = self.at.parent or self.root


def _readable(root: _Element) -> tuple[_Element, str]:
    """The element that is the page's main text, and that text."""
    strict_main, strict = _main(root, filtered=True)
    if len(strict) < LITTLE:
        loose_main, loose = _main(root, filtered=False)
        if len(loose) > 2 * len(strict):
            return loose_main, loose
    return strict_main, strict


def _main(root: _Element, *, filtered: bool) -> tuple[_Element, str]:
    _measure(root, filtered=filtered)
    main = root
    while True:
        inner = [one for one in main.children if isinstance(one, _Element) and one.running > MAIN_SHARE * root.running]
        if not inner or inner[0].tag in {"p", "td", "tr", "li", "ul", "ol", "tbody"}:
            break
        main = inner[0]
    writer = _Writer(filtered=filtered)
    writer.write(main)
    return main, writer.text


def _measure(one: _Element, *, filtered: bool) -> int:
    one.running = 0
    if _left_out(one, filtered=filtered) or one.tag == "a":
        return 0
    for child in one.children:
        if isinstance(child, str):
            size = len(child.strip())
            one.running += size if size >= 20 else 0
        else:
            one.running += _measure(child, filtered=filtered)
    return one.running


def _left_out(one: _Element, *, filtered: bool) -> bool:
    if one.tag in _DROPPED or _hidden(one):
        return True
    if not filtered or one.depth == 0:
        return False
    if one.tag in _FURNITURE:
        return True
    names = f"{one.attributes.get('class', '')} {one.attributes.get('id', '')} {one.attributes.get('role', '')}"
    return one.tag not in {"article", "main"} and bool(_NOISE.search(names))


def _hidden(one: _Element) -> bool:
    if "hidden" in one.attributes or one.attributes.get("aria-hidden", "").lower() == "true":
        return True
    style = one.attributes.get("style")
    return bool(style and _HIDDEN.search("".join(style.split())))


class _Writer:
    """Writes the text of an element: headings with #, lists with -, table rows between bars."""

    def __init__(self, *, filtered: bool) -> None:
        self.filtered = filtered
        self.lines: list[str] = []
        self.line: list[str] = []

    @property
    def text(self) -> str:
        self.end()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self.lines)).strip()

    def write(self, one: _Element) -> None:
        if _left_out(one, filtered=self.filtered):
            return
        if one.tag == "br":
            self.end()
        elif one.tag == "pre":
            self.end("")
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
            self.end("" if one.tag not in {"li", "tr", "td", "th", "dt", "dd", "tbody"} else None)
        if one.tag in {"h1", "h2", "h3", "h4", "h5", "h6"}:
            self.line.append("#" * int(one.tag[1]) + " ")
        elif one.tag == "li":
            self.line.append("- ")
        for child in one.children:
            if isinstance(child, str):
                self.line.append(child)
            else:
                self.write(child)
        if apart:
            self.end("" if one.tag not in {"li", "tr", "td", "th", "dt", "dd", "tbody"} else None)

    def end(self, blank: str | None = None) -> None:
        line = _joined(self.line)
        if line.strip("#- "):
            self.lines.append(line)
        self.line = []
        if blank is not None:
            self.lines.append(blank)


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
            elif not _left_out(child, filtered=False):
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
        waiting += [
            child for child in reversed(one.children) if isinstance(child, _Element) and not _left_out(child, filtered=False)
        ]


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


_CODECS = frozenset(
    """utf-8 ascii iso8859-1 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-9 iso8859-10
    iso8859-11 iso8859-13 iso8859-14 iso8859-15 iso8859-16 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258
    cp437 cp850 cp852 cp866 cp874 koi8-r koi8-u mac-roman mac-cyrillic tis-620 gb2312 gbk gb18030 big5 big5hkscs euc_jp
    shift_jis cp932 iso2022_jp euc_kr cp949 johab utf-16 utf-16-le utf-16-be utf-32""".split()
)
_WIDER = {"ascii": "cp1252", "iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949", "shift_jis": "cp932"}
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_META = re.compile(rb"<(?:meta\b[^>]{0,300}?charset\s*=|\?xml\b[^>]{0,200}?encoding\s*=)\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)


def decode(body: bytes, content_type: str = "") -> str:
    """Bytes to text: byte-order mark, then the HTTP header, then the page's own meta, then UTF-8, then a guess.

    Only names of text encodings are believed; what cannot be decoded becomes U+FFFD.
    """
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body.decode(name, "replace")
    header, meta = _CHARSET.search(content_type), _META.search(body[:4096])
    for told in (header[1] if header else "", meta[1].decode("ascii", "ignore") if meta else ""):
        if name := _codec(told):
            return body.decode(name, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode(_guessed(body), "replace")


def _codec(told: str) -> str:
    """The codec of that name if it is one of text; browsers read the older names as their later supersets."""
    try:
        name = codecs.lookup(told).name if told else ""
    except (LookupError, ValueError):
        return ""
    return _WIDER.get(name, name) if name in _CODECS else ""


def _guessed(body: bytes) -> str:
    try:
        from charset_normalizer import from_bytes  # noqa: PLC0415 - optional
    except ImportError:
        return "cp1252"
    best = from_bytes(body[:50_000]).best()
    return _codec(best.encoding if best else "") or "cp1252"
