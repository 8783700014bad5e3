"""Everything that was read: pages, files, computations and media, each with its text under one id."""

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import Literal

Kind = Literal["page", "hit", "file", "computation", "media", "tool"]
Places = tuple[tuple[int, str], ...]

OUTPUT = "\n\nOutput:\n"
"""Separates a request from its result: a program from its output, a question from its answer."""
_WORD = re.compile(r"[^\W_]+")
GAP = "\n\n"
"""Between two passages of a source."""
_BETWEEN = r"[\W_]+"
SPAN = re.compile(r"(line|row)s (\d+)–(\d+)\Z")
_ROW = re.compile(r"row (\d+): ")
"""The beginning of a row of a sheet, as hira writes it."""


@dataclass(frozen=True, slots=True)
class Source:
    """A page, file, computation or tool result that was read. `id` is set when it enters the run.

    `places` say where the passages of `text` begin, in order, and where each is in the document: `(0, "p. 12")`. `date`
    is when it was published, as the search service writes it, empty if that is unknown. `newer` is the location of the
    newest version of the document, empty if this is it.
    """

    location: str
    title: str
    text: str
    kind: Kind = "page"
    id: str = ""
    places: Places = ()
    date: str = ""
    newer: str = ""

    @property
    def evidence(self) -> str:
        """The text that can support a claim: all of it, or of a call only its result."""
        if self.kind == "computation":
            return self.text.rpartition(OUTPUT)[2]
        if self.kind in ("media", "tool") and OUTPUT in self.text:
            return "\n\n".join(answer.partition(ASKED)[0] for answer in self.text.split(OUTPUT)[1:])
        return self.text

    @property
    def call(self) -> str:
        """The code of a computation or the calls of a tool, which count together with the result; otherwise empty.

        Questions about media are left out: a leading question would support its own answer.
        """
        if self.kind == "computation":
            return self.text.rpartition(OUTPUT)[0]
        if self.kind == "tool":
            return "\n\n".join(section.partition(OUTPUT)[0] for section in self.text.split(ASKED)[1:])
        return ""

    def find_place(self, quote: str) -> str:
        """Return where a quotation is ("p. 12"), empty if unknown; without a quotation, the only place."""
        known = {place for _, place in self.places}
        if not known:
            return ""
        if not quote.strip():
            return known.pop() if len(known) == 1 else ""
        position = _find_words(quote, self.text)
        number = bisect_right(self.places, position, key=lambda place: place[0]) - 1
        if number < 0:
            return ""
        begin, place = self.places[number]
        end = self.places[number + 1][0] if number + 1 < len(self.places) else len(self.text)
        return _narrow(place, self.text[begin:end], position - begin)

    def change_text(self, change: Callable[[str], str]) -> "Source":
        """Return a copy with its text changed. Its places move with the text; if they cannot, it has none."""
        text = change(self.text)
        if text == self.text:
            return self
        edges = [0, *(begin for begin, _ in self.places), len(self.text)]
        texts = [change(self.text[begin:end]) for begin, end in pairwise(edges)]
        if "".join(texts) != text:
            return replace(self, text=text, places=())
        places: list[tuple[int, str]] = []
        begin = 0
        for before, (_, place) in zip(texts, self.places, strict=False):
            begin += len(before)
            places.append((begin, place))
        return replace(self, text=text, places=tuple(places))


def _find_words(quote: str, text: str) -> int:
    """Return where a quotation begins in a text, whatever its spaces, signs and case, -1 if it does not occur. Of rows
    after their header, the last row counts; of passages with "…" between them, the first."""
    line = quote.strip().splitlines()[-1]
    for passage in (line, quote, quote.partition(" … ")[0]):
        words = _WORD.findall(passage)
        if not words:
            continue
        pattern = _BETWEEN.join(map(re.escape, words))
        if match := re.search(pattern, text) or re.search(pattern, text, re.IGNORECASE):
            return match.start()
    return -1


def _narrow(place: str, passage: str, position: int) -> str:
    """Return the place of a position in a passage: "lines 3–9" becomes "line 5" if the passage has the lines of the
    document, and a row of a sheet is named by its number."""
    begin = passage.rfind("\n", 0, position) + 1
    if row := _ROW.match(passage, begin):
        return f"{place}, row {row[1]}" if place else f"row {row[1]}"
    span = SPAN.search(place)
    if not span or passage.rstrip().count("\n") != int(span[3]) - int(span[2]):
        return place
    number = int(span[2]) + passage.count("\n", 0, position)
    return f"{place[: span.start()]}{span[1]} {number}"


LISTING = "List of the documents"
"""The title of the source that lists a folder."""
LISTED = "Documents in the folder:"
"""How the text of that source begins."""
ASKED = "\n\nAsked:\n"
"""Precedes a question about media or a tool's call, so that a second one is not part of the first answer."""


def join_question_and_answer(question: str, answer: str) -> str:
    """Return the text of a media or tool source: the question and the answer, which alone is evidence."""
    return f"{ASKED}{' '.join(question.split())}{OUTPUT}{answer}"


def _join_texts(known: Source, new: Source) -> Source:
    """Return the known source with the new text as well, each passage at its place."""
    begin = new.text.find(known.text)
    if begin >= 0:
        places = new.places or tuple((begin + start, place) for start, place in known.places)
        return replace(known, text=new.text, places=places)
    begin = len(known.text) + len(GAP)
    added = tuple((begin + start, place) for start, place in new.places)
    if known.places and not (added and added[0][0] == begin):
        added = ((begin, ""), *added)
    return replace(known, text=f"{known.text}{GAP}{new.text}", places=known.places + added)


@dataclass(slots=True)
class Sources:
    """All sources of one run, by id in the order in which they were first read.

    `reserved` has, by location, the ids that an earlier part of the run assigned.
    """

    read: dict[str, Source] = field(default_factory=dict)
    reserved: dict[str, str] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)

    def add(self, source: Source) -> Source:
        """Add the source and return it with its id. One location keeps one id; new text of a location is appended."""
        if not source.text.isascii():  # lone surrogates cannot be stored or passed to a checker
            source = replace(source, text=source.text.encode("utf-8", "replace").decode("utf-8"))
        known = self.read.get(self._ids.get(source.location, ""))
        if known is None:
            taken = {*self.read, *self.reserved.values()}
            free = next(name for number in count(len(self.read) + 1) if (name := f"s{number}") not in taken)
            known = replace(source, id=self.reserved.get(source.location, free))
            self._ids[source.location] = known.id
        elif source.text not in known.text:
            known = replace(_join_texts(known, source), kind=source.kind, title=known.title or source.title)
        elif known.kind == "hit":
            known = replace(known, kind=source.kind)
        if source.date or source.newer:
            known = replace(known, date=known.date or source.date, newer=known.newer or source.newer)
        self.read[known.id] = known
        return known

    def __contains__(self, source_id: object) -> bool:
        return source_id in self.read

    def __len__(self) -> int:
        return len(self.read)
