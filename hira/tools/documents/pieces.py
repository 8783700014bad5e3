"""Passages of documents: where each is, how they are shown, and the words by which they are found.

The full-text index expects words with spaces around them. Chinese, Japanese and Korean are therefore also indexed as
pairs of characters, and numbers also without the commas inside them.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hira.core.bm25 import STOP, words
from hira.core.errors import ToolError, count_of
from hira.core.sources import GAP, Places

TRAIL = " › "
_PAGE = re.compile(r"page (\d+)(?:, labelled (.+))?")
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]")


class EncoderFailed(ToolError):
    """The encoder or the reranker cannot be used; its text is one line for a person."""


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
            lines.append(f"[… {count_of(index - last - 1, 'passage')} left out …]")
        if piece.place != before.place:
            lines.append(f"[{piece.place}]")
        if piece.heading != before.heading and piece.heading:
            lines.append(f"## {piece.heading}")
        lines.append(piece.text)
        before, last = piece, index
    if last + 1 < len(pieces):
        lines.append(f"[… {count_of(len(pieces) - last - 1, 'passage')} left out …]")
    return "\n\n".join(line for line in lines if line)


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
        spans = ((start, start + length) for length in range(3, 6) for start in range(len(initials) - length + 1))
        short = [initials[start:end].lower() for start, end in spans]
        # the index stems "ors" to "or"
        terms += [quote_term(word) for word in short if word.removesuffix("s") not in STOP]
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
