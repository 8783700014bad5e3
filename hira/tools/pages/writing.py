"""The text of an element: headings with #, lists with -, table rows between bars."""

import re

from hira.tools.pages.tree import BLOCKS, Element, flat, join_parts, tags, walk

_HEADINGS = tags("h1 h2 h3 h4 h5 h6")
_INNER = tags("li tr td th dt dd tbody thead tfoot")  # stand without an empty line around them
_SPANS = ("colspan", "rowspan")
_MOST = 500
_SPANNED = 200_000
"""Characters of a page that stand for cells again or for gaps; a few bytes could ask for any number of them."""
_BETWEEN = 3


class Writer:
    """Writes the text of an element: headings with #, lists with -, table rows between bars."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.line: list[str] = []
        self.below: dict[int, tuple[str, int]] = {}
        """Of the table that is written: cells that reach down, by column, each with the rows that it reaches yet."""
        self.room = _SPANNED

    @property
    def text(self) -> str:
        self.end()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self.lines)).strip()

    def write(self, one: Element) -> None:
        if one.left_out:
            return
        if one.tag == "br":
            self.end()
        elif one.tag == "pre":
            self.end(blank=True)
            self.lines += [*flat(one, preserve=True).strip("\n").split("\n"), ""]
        elif one.tag == "tr" and not any(part.tag in {"p", "div", "table", "ul"} for part in walk(one)):
            self.end()
            cells = self._cells(one)
            if any(cells):
                self.lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
        elif one.tag == "table":
            above, self.below = self.below, {}
            self._block(one)
            self.below = above
        else:
            self._block(one)

    def _cells(self, row: Element) -> list[str]:
        """The cells of a row, each under its column: one that reaches down stands in every row that it reaches, one
        that reaches sideways leaves gaps."""
        cells: list[str] = []
        for cell in row.children:
            if not isinstance(cell, Element):
                continue
            self._reached(cells)
            wide, deep = (_span(cell.attributes.get(name, "")) if self.room > 0 else 1 for name in _SPANS)
            self.room -= _BETWEEN * (wide - 1)
            for text in (flat(cell), *[""] * (wide - 1)):
                if deep > 1:
                    self.below[len(cells)] = (text, deep - 1)
                cells.append(text)
        self._reached(cells)
        return cells

    def _reached(self, cells: list[str]) -> None:
        while self.room > 0 and len(cells) in self.below:
            text, left = self.below.pop(len(cells))
            self.room -= len(text) + _BETWEEN
            if left > 1:
                self.below[len(cells)] = (text, left - 1)
            cells.append(text)

    def _block(self, one: Element) -> None:
        apart = one.tag in BLOCKS
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
        line = join_parts(self.line)
        if line.strip("#- "):
            self.lines.append(line)
        self.line = []
        if blank:
            self.lines.append("")


def _span(told: str) -> int:
    """How many columns or rows a cell takes."""
    return min(max(int(told), 1), _MOST) if told.isascii() and told.isdigit() else 1
