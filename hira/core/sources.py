"""Everything that was read: pages, files, computations and media, each with its text under one id."""

from dataclasses import dataclass, field, replace
from typing import Literal

Kind = Literal["page", "hit", "file", "computation", "media", "tool"]

OUTPUT = "\n\nOutput:\n"
"""Separates a request from its result: a program from its output, a question from its answer."""


@dataclass(frozen=True, slots=True)
class Source:
    """A page, file, computation or tool result that was read. `id` is set when it enters the run."""

    location: str
    title: str
    text: str
    kind: Kind = "page"
    id: str = ""

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
            return "\n\n".join(asked.partition(OUTPUT)[0] for asked in self.text.split(ASKED)[1:])
        return ""


ASKED = "\n\nAsked:\n"
"""Precedes a question about media or a tool's call, so that a second one is not part of the first answer."""


def join_question_and_answer(question: str, answer: str) -> str:
    """Return the text of a media or tool source: the question and the answer, which alone is evidence."""
    return f"{ASKED}{' '.join(question.split())}{OUTPUT}{answer}"


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
            known = replace(source, id=self.reserved.get(source.location) or self._free())
            self._ids[source.location] = known.id
        elif source.text not in known.text:
            text = source.text if known.text in source.text else f"{known.text}\n\n{source.text}"
            known = replace(known, text=text, kind=source.kind, title=known.title or source.title)
        elif known.kind == "hit":
            known = replace(known, kind=source.kind)
        self.read[known.id] = known
        return known

    def _free(self) -> str:
        taken = {*self.read, *self.reserved.values()}
        at = len(self.read) + 1
        while f"s{at}" in taken:
            at += 1
        return f"s{at}"

    def __contains__(self, source_id: object) -> bool:
        return source_id in self.read

    def __len__(self) -> int:
        return len(self.read)
