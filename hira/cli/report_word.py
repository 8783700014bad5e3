"""An answer or a report as a Word document."""

import re
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING

from hira.cli.shell import visible
from hira.tools.documents.own_files import AUTHOR

if TYPE_CHECKING:
    from docx.document import Document
    from docx.text.paragraph import Paragraph
    from markdown_it.token import Token

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DEEPEST = 3
"""Word's template has styles for lists up to this depth."""


def render_word(markdown: str) -> bytes:
    """Return the text as a .docx file. Its links and HTML are plain text."""
    from docx import Document

    document = Document()
    document.core_properties.author = AUTHOR
    _Writer(document).write(parse_markdown(markdown))
    file = BytesIO()
    document.save(file)
    return file.getvalue()


def parse_markdown(text: str) -> "list[Token]":
    """Return the tokens of a text without the characters that no file can show. HTML and pictures are text."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("image")
    return parser.parse(_NOT_XML.sub("", visible(text)))


@dataclass(slots=True)
class _Writer:
    """Adds blocks of Markdown. `label` is the number of the next list item, `rows` holds the cells of a table."""

    document: "Document"
    style: str = "Normal"
    label: str = ""
    depth: int = 0
    rows: list[list["Token"]] = field(default_factory=list)

    def write(self, tokens: "list[Token]") -> None:
        for token in tokens:
            match token.type:
                case "inline" if self.rows:
                    self.rows[-1].append(token)
                case "inline":
                    _fill(self._add_paragraph(), token)
                case "fence" | "code_block":
                    _set_code(self._add_paragraph(), token.content.rstrip("\n"))
                case "table_close":
                    self._add_table()
                case _:
                    self._enter(token)

    def _enter(self, token: "Token") -> None:
        """Note the beginning or the end of a block, which decides how the next text is shown."""
        match token.type:
            case "heading_open":
                self.style = f"Heading {token.tag.removeprefix('h')}"
            case "blockquote_open":
                self.style = "Quote"
            case "heading_close" | "blockquote_close":
                self.style = "Normal"
            case "bullet_list_open" | "ordered_list_open" | "bullet_list_close" | "ordered_list_close":
                self.depth += token.nesting
            case "list_item_open":
                self.label = f"{token.info}{token.markup}" if token.info else "•"
            case "tr_open":
                self.rows.append([])

    def _add_paragraph(self) -> "Paragraph":
        if not self.depth:
            return self.document.add_paragraph(style=self.style)
        depth = min(self.depth, _DEEPEST)
        name, label = ("List Bullet", "") if self.label == "•" else ("List Continue", self.label)
        paragraph = self.document.add_paragraph(style=name if depth == 1 else f"{name} {depth}")
        if label:
            paragraph.add_run(f"{label} ")
        self.label = ""
        return paragraph

    def _add_table(self) -> None:
        table = self.document.add_table(len(self.rows), max(map(len, self.rows)), style="Table Grid")
        for cells, row in zip(table.rows, self.rows, strict=True):
            for cell, token in zip(cells.cells, row, strict=False):
                _fill(cell.paragraphs[0], token)
        self.rows.clear()


def _fill(paragraph: "Paragraph", token: "Token") -> None:
    """Add the words of a line, with what is bold, italic, struck out or code."""
    active = set[str]()
    for child in token.children or ():
        kind, _, side = child.type.rpartition("_")
        if child.type == "code_inline":
            _set_code(paragraph, child.content)
        elif side == "open":
            active.add(kind)
        elif side == "close":
            active.discard(kind)
        else:
            run = paragraph.add_run({"softbreak": " ", "hardbreak": "\n"}.get(child.type, child.content))
            run.bold, run.italic, run.font.strike = "strong" in active, "em" in active, "s" in active


def _set_code(paragraph: "Paragraph", text: str) -> None:
    paragraph.add_run(text).font.name = "Courier New"
