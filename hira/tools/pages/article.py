"""The element of a page that holds its subject, and its text.

Elements whose tag, class or id marks them as furniture are left out of the text; and the text is that of the smallest
element that holds most of the running words. If this leaves little of a page that has much, the furniture was the page:
it is read again whole.
"""

import re
from collections.abc import Callable

from hira.tools.pages.tree import BLOCKS, Element, flat, join_parts, tags, unseen, walk

_HEADINGS = tags("h1 h2 h3 h4 h5 h6")
_DEFINED = ": "
"""Between a term and its definition, on one line as a label with its value."""
_INNER = tags("li tr td th dt dd tbody thead tfoot")  # no empty lines around these
_SPANS = ("colspan", "rowspan")
_MOST = 500
_SPANNED = 200_000
"""Characters of a page for repeated cells or gaps, because a few bytes could request any number of them."""
_BETWEEN = 3


class ArticleWriter:
    """Writes the text of an element: headings with #, lists with -, table rows between bars, definitions as
    "term: definition"."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.line: list[str] = []
        self.below: dict[int, tuple[str, int]] = {}
        """The cells of the current table that span rows, by column, each with the number of rows left."""
        self.columns: int | None = None
        """The columns that the header of the current table has so far; None outside of a header."""
        self.room = _SPANNED

    @property
    def text(self) -> str:
        self.end()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self.lines)).strip()

    def write(self, element: Element) -> None:
        if element.left_out:
            return
        if element.tag == "br":
            self.end()
        elif element.tag == "pre":
            self.end(blank=True)
            self.lines += [*flat(element, preserve=True).strip("\n").split("\n"), ""]
        elif element.tag == "tr" and not any(part.tag in {"p", "div", "table", "ul"} for part in walk(element)):
            self.end()
            cells = self._cells(element)
            if any(cells):
                self._rule(element, len(cells))
                self.lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
        elif element.tag == "table":
            above = self.below, self.columns
            self.below, self.columns = {}, 0
            self._block(element)
            self.below, self.columns = above
        else:
            self._block(element)

    def _rule(self, row: Element, columns: int) -> None:
        """Write the line below the header before the first row that does not consist of names of columns (`th`)."""
        if self.columns is None:
            return
        if all(cell.tag == "th" for cell in row.children if isinstance(cell, Element)):
            self.columns = columns
            return
        if self.columns:
            self.lines.append(f"|{'---|' * self.columns}")
        self.columns = None

    def _cells(self, row: Element) -> list[str]:
        """Return the cells of a row, each in its column: one that spans rows is repeated in every row that it spans,
        one that spans columns leaves gaps."""
        cells: list[str] = []
        for cell in row.children:
            if not isinstance(cell, Element):
                continue
            self._add_reaching(cells)
            spans = (cell.attributes.get(name, "") if self.room > 0 else "" for name in _SPANS)
            wide, deep = (min(max(int(span), 1), _MOST) if span.isascii() and span.isdigit() else 1 for span in spans)
            self.room -= _BETWEEN * (wide - 1)
            for text in (flat(cell), *[""] * (wide - 1)):
                if deep > 1:
                    self.below[len(cells)] = (text, deep - 1)
                cells.append(text)
        self._add_reaching(cells)
        return cells

    def _add_reaching(self, cells: list[str]) -> None:
        while self.room > 0 and len(cells) in self.below:
            text, left = self.below.pop(len(cells))
            self.room -= len(text) + _BETWEEN
            if left > 1:
                self.below[len(cells)] = (text, left - 1)
            cells.append(text)

    def _block(self, element: Element) -> None:
        apart = element.tag in BLOCKS
        defines = element.tag == "dd" and self.line[-1:] == [_DEFINED]
        if apart and not defines:
            self.end(blank=element.tag not in _INNER)
        if element.tag in _HEADINGS:
            self.line.append("#" * int(element.tag[1]) + " ")
        elif element.tag == "li":
            self.line.append("- ")
        children = element.children
        if defines:  # a single paragraph is the definition itself
            inner = [child for child in children if not isinstance(child, str) or child.strip()]
            if len(inner) == 1 and isinstance(inner[0], Element) and inner[0].tag == "p":
                children = inner[0].children
        for child in children:
            if isinstance(child, str):
                self.line.append(child)
            else:
                self.write(child)
        if element.tag == "dt" and join_parts(self.line).rstrip()[-1:].isalnum():
            self.line.append(_DEFINED)
        elif apart:
            self.end(blank=element.tag not in _INNER)

    def end(self, *, blank: bool = False) -> None:
        """End the line, and add an empty line if `blank`."""
        line = join_parts(self.line)
        if line.strip("#- "):
            self.lines.append(line)
        self.line = []
        if blank:
            self.lines.append("")


MAIN_SHARE = 0.6
FAIR_SHARE = 0.03
LITTLE = 1500
RUNNING = 40
LINKED = 0.9
FEW = 200

_LISTING = tags("ul ol div section header p")
_FURNITURE = tags("nav footer aside menu figcaption")
_WHOLE = tags("p td tr li ul ol tbody")  # the main text is never just one of these
_NOISE = re.compile(
    r"""(?:^|[\s_-])(?:nav(?:bar|igation)?|menu|breadcrumbs?|footer|sidebar|side-?bar|rail|comment\w*|disqus|respond|shar(?:e|ing)
    |social\w*|related\w*|recirc\w*|recommend\w*|promo\w*|newsletter\w*|subscri\w+|sign-?up|log-?in|cookies?|consent|gdpr
    |banner|advert\w*|ads?|sponsor\w*|outbrain|taboola|popular|trending|most-?read|read-?more|more-?stories|tags?|tag-?list
    |author-?bio|by-?line|captions?|credits?|copyright|popup|modal|overlay|widgets?|toolbar|pagination|pager|print-?only
    |skip-?link|navbox\w*|reference|screen-?reader\w*|sr-only|visually-?hidden|editsection|toc|catlinks|printfooter|noprint)(?:$|[\s_-])""",
    re.IGNORECASE | re.VERBOSE,
)
_BODY = re.compile(r"(?:^|\s)(?:article|story|entry|post)[_-]{0,2}(?:body|content|text)(?:$|\s)", re.IGNORECASE)


def readable(root: Element) -> tuple[Element, str]:
    """Return the element that is the page's main text, and that text.

    The first reading is strict: without furniture and lists of links. If that leaves too little, less and less is left
    out.
    """
    main, text = _main(root, strictness=2)
    for strictness, enough in ((1, LITTLE), (0, FEW)):
        if len(text) < enough:
            looser, more = _main(root, strictness=strictness)
            if len(more) > 2 * len(text):
                main, text = looser, more
    return main, text


def _main(root: Element, *, strictness: int) -> tuple[Element, str]:
    _measure(root, strictness)
    main = _find_marked(root) or root
    enough = MAIN_SHARE * main.running
    while True:
        inner = [child for child in main.children if isinstance(child, Element) and child.running > enough]
        if not inner or inner[0].tag in _WHOLE:
            break
        main = inner[0]
    writer = ArticleWriter()
    writer.write(main)
    return main, writer.text


def _find_marked(root: Element) -> Element | None:
    """Return the one element that the page marks as its article, if it holds a fair share of the running text."""
    marks: tuple[Callable[[Element], bool], ...] = (
        lambda element: element.attributes.get("itemprop") == "articleBody" or bool(_BODY.search(_names(element))),
        lambda element: element.tag in {"article", "main"},
    )
    fair = max(FEW, FAIR_SHARE * root.running)
    for is_article in marks:
        marked = [element for element in walk(root) if element.running >= fair and is_article(element)]
        within = set(marked)
        outer = [element for element in marked if element.parent not in within]
        if len(outer) == 1:
            return outer[0]
    return None


def _names(element: Element) -> str:
    return " ".join(element.attributes.get(key, "")[:300] for key in ("class", "id", "role"))


def _measure(element: Element, strictness: int) -> None:
    """Count the characters of an element and of everything inside it, and decide whether it is left out."""
    element.running = element.size = element.linked = 0
    element.left_out = unseen(element)
    if strictness > 1 and element.depth > 0 and not element.left_out:
        named = element.tag not in {"article", "main"} and _NOISE.search(_names(element))
        element.left_out = element.tag in _FURNITURE or bool(named)
    if element.left_out:
        return
    for child in element.children:
        if isinstance(child, str):
            size = len(child.strip())
            element.size += size
            element.running += size if size >= RUNNING else 0
        else:
            _measure(child, strictness)
            element.size += child.size
            element.running += child.running
            element.linked += child.linked
    if element.tag == "a":
        element.running, element.linked = 0, element.size
    elif strictness and element.tag in _LISTING and element.linked > LINKED * element.size and element.running < FEW:
        element.running = element.size = element.linked = 0
        element.left_out = True
