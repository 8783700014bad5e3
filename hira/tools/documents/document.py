"""The result of every reader: a title and the text, in parts; and how it is cut into passages of 120 to 200 words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hira.core.errors import ToolError
from hira.core.sanitize import clip_title
from hira.tools.documents.pieces import CJK, TRAIL, Piece


class NoText(ToolError):
    """The file holds no text: it is empty, or of a kind such as an image or a program."""


class Lacking(ToolError):
    """The file can be read once a package is installed."""


@dataclass(frozen=True, slots=True)
class Part:
    """A page, a sheet, a slide or a chapter; `place` names it ("page 3", "sheet Sales"), "" for a whole file.

    `media` means that there is something to see and no text, which is work for the multimodal expert. `lines` has the
    number in the file for each line of the text, or nothing if the file is not read line by line; `unit` is what the
    numbers count.
    """

    text: str
    place: str = ""
    media: bool = False
    lines: tuple[int, ...] = ()
    unit: Literal["line", "row", "cell"] = "line"


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read. Headings in `parts` are in Markdown, table rows name their columns. `remark` says after the
    file's name what a person should know about its encoding. `is_own` is true for a file that hira wrote."""

    title: str
    parts: tuple[Part, ...]
    remark: str = ""
    is_own: bool = False

    @property
    def text(self) -> str:
        """The whole text; the place of a part precedes it: "[page 3]"."""
        return "\n\n".join(f"[{part.place}]\n{part.text}" if part.place else part.text for part in self.parts)


def add_title(path: Path, parts: tuple[Part, ...], title: str = "") -> Document:
    """Return a document with its own title, otherwise its first heading, otherwise the name of its file. The first of
    several headings of the highest level is not the title."""
    given = clip_title(title)
    bare = given.lower().strip("()[]<> ")
    if bare == "anonymous" or bare.startswith(("untitled", "microsoft word -", "powerpoint presentation", "document")):
        given = ""
    lines = (line for part in parts for line in part.text.splitlines() if line.startswith("#"))
    headings = (match for line in lines if (match := _HEADING.fullmatch(line.rstrip())))
    first = next(headings, None)
    heading = clip_title(first[2].strip(" *_#")) if first else ""
    is_section = first is not None and any(len(match[1]) <= len(first[1]) for match in headings)
    if is_section and given in ("", heading):
        return Document(path.stem, parts)
    return Document(given or heading or path.stem, parts)


ENOUGH, MOST = 120, 200
_LONG_WORD = 40
_HEADING = re.compile(r"(#{1,6})\s+(\S.{0,300})")
"""A longer line is text: every passage below a heading repeats it."""
FENCE = re.compile(r"\s*(?:```|~~~)")
_BLANK = re.compile(r"\n[ \t]*\n+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])|\n")


def words_in(text: str) -> int:
    """Count the words of a text; two Chinese, Japanese or Korean characters count as one."""
    return len(text.split()) + (0 if text.isascii() else len(CJK.findall(text)) // 2)


def fits(text: str) -> bool:
    """Return whether the text is at most one passage. Very long texts are not counted, to save memory."""
    return len(text) <= MOST * _LONG_WORD and words_in(text) <= MOST


def cut(document: Document) -> list[Piece]:
    """Cut the document into passages, in order. A passage never crosses a part or a heading."""
    return [piece for part in document.parts for piece in _cut(part)]


def _cut(part: Part) -> Iterator[Piece]:
    headings: list[tuple[int, str]] = []
    gathered: list[str] = []
    length = 0
    bare = False  # the last heading has no text yet
    heading_span = ""
    lines = _LineCounter(part)
    for level, block in _blocks(part.text):
        size = words_in(block)
        if gathered and (level or (length + size > MOST and length >= ENOUGH)):
            yield _piece(part.place, headings, gathered, lines.take_span())
            gathered, length = [], 0
        lines.pass_block(block)
        if not level:
            gathered.append(block)
            length += size
            bare = False
            continue
        span = lines.take_span()
        if bare and level <= headings[-1][0]:
            yield _piece(part.place, headings, [], heading_span)
        headings = [above for above in headings if above[0] < level] + [(level, block.lstrip("# ").strip())]
        bare, heading_span = True, span
    if gathered or bare:
        yield _piece(part.place, headings, gathered, lines.take_span() or heading_span)


def _piece(place: str, headings: list[tuple[int, str]], gathered: list[str], span: str) -> Piece:
    return Piece(place, TRAIL.join(title for _, title in headings), "".join(gathered).strip("\n"), span)


class _LineCounter:
    """Follows the blocks of a part in order, and knows which lines of the file they span."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._several = bool(part.lines) and "\n" in part.text.strip()
        self._at = self._line = 0
        self._first = self._last = -1

    def pass_block(self, block: str) -> None:
        """Go on to the end of a block."""
        text = block.strip()
        if not (text and self._several):
            return
        begin = self._part.text.index(text, self._at)
        self._line += self._part.text.count("\n", self._at, begin)
        self._first = self._line if self._first < 0 else self._first
        self._line += text.count("\n")
        self._last, self._at = self._line, begin + len(text)

    def take_span(self) -> str:
        """Return the lines since the last span, and begin a new one."""
        if self._first < 0:
            return ""
        first, last = self._part.lines[self._first], self._part.lines[self._last]
        self._first = self._last = -1
        unit = self._part.unit
        return f"{unit}s {first}–{last}" if last > first else f"{unit} {first}"


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield headings with their level, and at level 0 paragraphs; of an overlong one, its lines or sentences."""
    for paragraph in _paragraphs(text):
        if heading := _HEADING.fullmatch(paragraph.strip()):
            yield len(heading[1]), paragraph.strip()
        elif fits(paragraph):
            yield 0, f"{paragraph}\n\n"
        else:
            for line in paragraph.split("\n"):
                yield from ((0, piece) for piece in _lines(line))
            yield 0, "\n"


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the runs between empty lines; a heading is a separate run, and inside a code fence nothing is a heading."""
    fenced = False
    for run in _BLANK.split(text):
        lines: list[str] = []
        for line in run.split("\n"):
            fenced ^= bool(FENCE.match(line))
            if not fenced and _HEADING.fullmatch(line):
                if any(text.strip() for text in lines):
                    yield "\n".join(lines)
                yield line
                lines = []
            else:
                lines.append(line)
        if any(line.strip() for line in lines):
            yield "\n".join(lines)


def _lines(line: str) -> Iterator[str]:
    """Yield a line as one block; if it is longer than a passage, its sentences, and of a longer sentence, its words."""
    if fits(line):
        yield f"{line}\n"
        return
    for sentence in _SENTENCE.split(line):
        if fits(sentence):
            yield f"{sentence} "
        else:
            yield from _words(sentence)
    yield "\n"


def _words(sentence: str) -> Iterator[str]:
    step = MOST * 2 if len(CJK.findall(sentence)) > len(sentence) / 4 else MOST * 8
    position = 0
    while position < len(sentence):
        end = sentence.rfind(" ", position + step // 2, position + step) + 1 or position + step
        yield sentence[position:end]
        position = end
    yield " "
