"""The result of every reader: a title and the text, in parts; and its passages of about 120 to 200 words.

The full-text index expects words with spaces around them. Chinese, Japanese and Korean are therefore also indexed as
pairs of characters, and numbers also without the commas inside them.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from hira.core.bm25 import words
from hira.core.errors import ToolError
from hira.core.sanitize import clip_title
from hira.core.sources import GAP, Places


class NoText(ToolError):
    """The file holds no text: it is empty, or of a kind such as an image or a program."""


class Lacking(ToolError):
    """The file can be read once a package is installed."""


class EncoderFailed(ToolError):
    """The encoder or the reranker cannot be used; its text is one line for a person."""


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
    file's name what a person should know about its encoding."""

    title: str
    parts: tuple[Part, ...]
    remark: str = ""

    @property
    def text(self) -> str:
        """The whole text; the place of a part precedes it: "[page 3]"."""
        return "\n\n".join(f"[{part.place}]\n{part.text}" if part.place else part.text for part in self.parts)

    @property
    def unread(self) -> list[str]:
        """The places that hold no text but something to see."""
        return [part.place or "the file" for part in self.parts if part.media]


def add_title(path: Path, parts: tuple[Part, ...], title: str = "") -> Document:
    """Return a document with its own title, otherwise its first heading, otherwise the name of its file. The first of
    several headings of the highest level is not the title."""
    given = clip_title(title)
    if given.lower().startswith(("untitled", "microsoft word -", "powerpoint presentation", "document")):
        given = ""
    heading, is_section = _read_first_heading(parts)
    if is_section and given in ("", heading):
        return Document(path.stem, parts)
    return Document(given or heading or path.stem, parts)


def _read_first_heading(parts: tuple[Part, ...]) -> tuple[str, bool]:
    """Return the first heading, and whether a later one has its level or a higher one."""
    lines = (line for part in parts for line in part.text.splitlines() if line.startswith("#"))
    headings = (match for line in lines if (match := _HEADING.fullmatch(line.rstrip())))
    if (first := next(headings, None)) is None:
        return "", False
    return clip_title(first[2].strip(" *_#")), any(len(match[1]) <= len(first[1]) for match in headings)


ENOUGH, MOST = 120, 200
TRAIL = " › "
_PAGE = re.compile(r"page (\d+)(?:, labelled (.+))?")
_LONG_WORD = 40
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]")
_HEADING = re.compile(r"(#{1,6})\s+(\S.{0,300})")
"""A longer line is text: every passage below a heading repeats it."""
_FENCE = re.compile(r"\s*(?:```|~~~)")
_BLANK = re.compile(r"\n[ \t]*\n+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])|\n")


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage of a document: its place, the headings above it ("Results › Sales"), and its own text.

    `span` names its lines or rows in the file ("lines 3–9"), if they are known.
    """

    place: str
    heading: str
    text: str
    span: str = ""

    @property
    def full(self) -> str:
        """The text after its headings: both can support a claim."""
        return "\n".join(line for line in (self.heading, self.text) if line)

    def locate(self, title: str) -> str:
        """Return where the passage is, as a citation names it: "p. 12", "section Results › Sales, lines 3–9". The title
        of the document is a section only if nothing else says where the passage is."""
        if page := _PAGE.fullmatch(self.place):
            return f"p. {page[2]} (page {page[1]} of the file)" if page[2] else f"p. {page[1]}"
        below = drop_title(self.heading, title)
        section = "" if self.place else below or (self.heading if not self.span else "")
        return ", ".join(filter(None, (self.place, section and f"section {section}", self.span)))


def drop_title(heading: str, title: str) -> str:
    """Return the headings of a passage below the title of its document."""
    return "" if heading == title else heading.removeprefix(f"{title}{TRAIL}")


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
            fenced ^= bool(_FENCE.match(line))
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


def join_pieces(pieces: Sequence[Piece], title: str, *, placed: bool = False) -> tuple[str, Places]:
    """Return pieces of a document as the text of a source, if `placed` with the place above each, and the places of its
    passages. Lines and rows are counted in a piece's own text, so the headings above it have a place without them."""
    texts: list[str] = []
    places: list[tuple[int, str]] = []
    begin = 0
    for piece in pieces:
        above = [f"({piece.place})"] if placed and piece.place else []
        above += [piece.heading] if piece.heading else []
        where = piece.locate(title)
        if above:
            places.append((begin, replace(piece, span="").locate(title)))
        if piece.text:
            places.append((begin + sum(len(line) + 1 for line in above), where))
        texts.append("\n".join([*above, *([piece.text] if piece.text else [])]))
        begin += len(texts[-1]) + len(GAP)
    return GAP.join(texts), tuple(places)


def write_pieces(pieces: Sequence[Piece], chosen: Sequence[int]) -> str:
    """Join the chosen pieces, with their places and headings where these change, and mark omissions."""
    lines: list[str] = []
    before, last = Piece("", "", ""), -1
    for index in chosen:
        piece = pieces[index]
        if index > last + 1:
            lines.append(f"[… {_count(index - last - 1)} left out …]")
        if piece.place != before.place:
            lines.append(f"[{piece.place}]")
        if piece.heading != before.heading and piece.heading:
            lines.append(f"## {piece.heading}")
        lines.append(piece.text)
        before, last = piece, index
    if last + 1 < len(pieces):
        lines.append(f"[… {_count(len(pieces) - last - 1)} left out …]")
    return "\n\n".join(line for line in lines if line)


def _count(number: int) -> str:
    return "1 passage" if number == 1 else f"{number} passages"


_TOKEN = re.compile(r"[^\W_]+(?:[-'’.,/][^\W_]+)*")
_PHRASE = re.compile(r"[^\W\d_]+(?: [^\W\d_]+)+")
_RUN = re.compile(f"(?:{CJK.pattern})+")
_GROUPED = re.compile(r"\d{1,3}(?:[,'’]\d{3})+")
_TERMS = 64


def find_extra_words(text: str) -> str:
    """Return the extra words to index for a text, "" for most."""
    extra = [re.sub(r"\D", "", number) for number in _GROUPED.findall(text)]
    if not text.isascii() and CJK.search(text):
        for match in re.finditer(r"[^\W_]+", unicodedata.normalize("NFKC", text)):
            if CJK.search(match[0]):
                extra += _pieces(match[0])
    return " ".join(extra)


def _pieces(word: str) -> Iterator[str]:
    """Yield the pairs of characters of a word, the last character alone, and the text between the scripts."""
    position = 0
    for run in _RUN.finditer(word):
        if run.start() > position:
            yield word[position : run.start()]
        yield from (run[0][first : first + 2] for first in range(len(run[0])))
        position = run.end()
    if position < len(word):
        yield word[position:]


def list_terms(question: str) -> list[str]:
    """Return the content words of a question as terms of an FTS5 query, nothing if it has no word.

    Every word is in quotes, so that nothing in a question acts as an operator.
    """
    text = unicodedata.normalize("NFKC", question).replace("\0", " ")
    tokens = [match[0] for match in _TOKEN.finditer(text)]
    content = [token for token in tokens if words(token)] or tokens
    terms = [term for token in content for term in _terms(token)]
    for phrase in _PHRASE.findall(text):  # a text may write "ARR" for "annual recurring revenue"
        initials = "".join(word[0] for word in phrase.split() if words(word) and not CJK.search(word))
        terms += [
            quote_term(initials[start : start + length])
            for length in range(3, 6)
            for start in range(len(initials) - length + 1)
        ]
    return list(dict.fromkeys(terms))[:_TERMS]


def _terms(token: str) -> Iterator[str]:
    parts = re.split(r"[-'’.,/]", token)
    if len(parts) > 1:
        yield quote_term(token)
        if _GROUPED.fullmatch(token):
            yield quote_term("".join(parts))
            return
        parts = [part for part in parts if len(part) > 1 and words(part)]
    for part in parts:
        if not CJK.search(part):
            yield quote_term(part)
            continue
        for piece in _pieces(part):
            if len(piece) > 1:
                yield quote_term(piece)
            elif len(part) == 1:
                yield f"{quote_term(piece)} *"


def quote_term(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'
