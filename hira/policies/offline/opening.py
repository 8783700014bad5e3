"""Opening the table that a question is over: among the attached files, then in documents that a search brings."""

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hira.policies.offline import table
from hira.policies.offline.blocks import tables
from hira.policies.offline.conversation import Asked
from hira.policies.offline.passages import Passage, passages_of
from hira.policies.offline.program import Calls
from hira.policies.offline.sentences import ROW
from hira.policies.offline.wording import words

OPEN_TABLE = "Open the table that holds the data"
PARTIAL = "A part of the table"
WHOLE = "The table"
OPENED = 3
"""Documents that are opened for a question."""
SHEET_FILE = re.compile(r"[\w./\\~-]+\.(?:xlsx|xlsm|xls|ods|numbers|parquet)\b", re.IGNORECASE)
"""Tables that are computed only from what a document tool shows of them."""
TABLE_FILE = re.compile(r"[\w./\\~-]+\.(?:csv|tsv)\b", re.IGNORECASE)
"""What Python opens by itself."""
TITLED = re.compile(rf"^(?:{WHOLE}|{PARTIAL}) (.*):$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A table of a passage: what it is called, its rows as they are shown, and whether some are left out."""

    passage: Passage
    title: str
    rows: tuple[str, ...]
    partial: bool

    @property
    def told(self) -> str:
        """The rows below the title, with the id of their source; of a part of a file that Python opens, its name."""
        if self.partial and TABLE_FILE.fullmatch(self.passage.location):
            return f"{PARTIAL} {self.title} ({self.passage.location}):\n{self.rows[0]} [{self.passage.id}]"
        part = PARTIAL if self.partial else WHOLE
        return "\n".join([f"{part} {self.title}:", *self.rows]) + f" [{self.passage.id}]"

    def answers(self, question: str) -> bool:
        """Whether every word of the question is understood over these rows."""
        return not self.partial and bool(table.answer(question, table.from_lines(self.rows), self.title))


def blocks(passage: Passage) -> list[Block]:
    """The tables of a passage."""
    return [Block(passage, one.title, one.rows, one.partial) for one in tables(passage.title, passage.text)]


def chosen(question: str, read: Sequence[Passage]) -> Block | None:
    """The table that answers the question; else the one that shares most words with it, if only one does."""
    known = {(one.passage.location, one.rows): one for passage in read for one in blocks(passage)}
    able = [one for one in known.values() if one.answers(question)]
    wanted = set(words(question))
    ranked = sorted(
        ((_shared(wanted, one), len(one.rows), one) for one in able or known.values()), key=lambda entry: -entry[0]
    )
    if not ranked or (len(ranked) > 1 and able and ranked[0][0] == ranked[1][0]):
        return None
    return ranked[0][2]


def _shared(wanted: set[str], one: Block) -> int:
    return len(wanted & set(words(f"{one.passage.title} {one.title} {' '.join(one.rows)}")))


def opened(asked: Asked, question: str, queries: Sequence[str]) -> Generator[Calls, list[str], str]:
    """The rows of the table that the question names, or of the one that answers it; empty if there is none."""
    named = [Path(match[0]).name.lower() for match in SHEET_FILE.finditer(question)]
    brought = yield from attached(asked, queries)
    if one := chosen(question, _called(named, brought)):
        return one.told
    seen = {""}
    read: list[Passage] = []
    for query in queries if {"search", "browse"} <= asked.tools else ():
        (hits,) = yield [("search", {"query": query})]
        near = _called(named, passages_of(hits))
        for location in _nearest(question, near)[:OPENED]:
            if location not in seen:
                seen.add(location)
                (page,) = yield [("browse", {"url": location, "intent": question})]
                read += passages_of(page)
                if (one := chosen(question, read)) and one.answers(question):
                    return one.told
    one = chosen(question, read)
    return one.told if one else ""


def _nearest(question: str, read: Sequence[Passage]) -> list[str]:
    """Where passages with rows lie, those first that share most words with the question."""
    wanted = set(words(question))
    tables = [(one, sum(ROW in line for line in one.text.splitlines())) for one in read]
    shared = [
        (-len(wanted & set(words(f"{one.title} {one.text}"))), at, one)
        for at, (one, rows) in enumerate(tables)
        if rows > 1
    ]
    return list(dict.fromkeys(one.location for _, _, one in sorted(shared, key=lambda entry: entry[:2])))


def _called(named: list[str], read: list[Passage]) -> list[Passage]:
    """The passages of the files with these names; all if there are none."""
    return [one for one in read if not named or Path(one.location).name.lower() in named]


def attached(asked: Asked, queries: Sequence[str]) -> Generator[Calls, list[str], list[Passage]]:
    """The attached files, read by the tool for them; of a long one the parts that have to do with the question."""
    read: list[Passage] = []
    for path in asked.files if "files" in asked.tools else ():
        (brought,) = yield [("files", {"path": path})]
        if not passages_of(brought):
            (brought,) = yield [("files", {"path": path, "part": queries[0]})]
        read += passages_of(brought)
    return read
