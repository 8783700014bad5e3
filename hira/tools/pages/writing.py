"""The text of an element: headings with #, lists with -, table rows between bars."""

import re

from hira.tools.pages.tree import BLOCKS, Element, flat, joined, tags, walk

_HEADINGS = tags("h1 h2 h3 h4 h5 h6")
_INNER = tags("li tr td th dt dd tbody thead tfoot")  # stand without an empty line around them


class Writer:
    """Writes the text of an element: headings with #, lists with -, table rows between bars."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.line: list[str] = []

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
            cells = [flat(cell) for cell in one.children if isinstance(cell, Element)]
            if any(cells):
                self.lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
        else:
            self._block(one)

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
        line = joined(self.line)
        if line.strip("#- "):
            self.lines.append(line)
        self.line = []
        if blank:
            self.lines.append("")
