"""What MaMs hands from one step to the next, and nothing besides: memory, plan and report (MaMs, section 3.4).

Memory loses nothing. An entry stays as it is, or becomes part of a merged one that still holds every figure, every
name and every other word of substance in it; this is checked, and holds through any number of merges. The sources of
an entry go wherever it goes.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

from hira.core.bm25 import words
from hira.core.statements import tokens
from hira.evidence import find_cited, remove_marks

_FIGURE = re.compile(r"(?:(?<!\w)[-−])?\d+(?:[.,]\d+)*|[%‰€$£¥°]")
_CAPITALS = re.compile(r"\b[A-Z]{2,}\b")
_RANGE = re.compile(r"m(\d+)\s*(?:-|–|\.\.|to)\s*m?(\d+)")
_ONE = re.compile(r"m\d+")
_TURNING = frozenset("not no never none nobody nothing neither nor cannot without".split())
_WORD = re.compile(r"[^\W\d_]+(?:'t)?")


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """One statement of memory with an id such as `m3`; `sources` are source ids, empty for an inference."""

    id: str
    text: str
    sources: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        return f"{self.id}. {self.text}" + (f" [{', '.join(self.sources)}]" if self.sources else "")


Memory = tuple[MemoryEntry, ...]


@dataclass(frozen=True, slots=True)
class AgentPlan:
    """The Search agent's plan, and the calls `done`, which an agent without history would repeat."""

    text: str = ""
    done: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """⟨memory, plan, report⟩: all that one turn knows of those before it."""

    memory: Memory = ()
    plan: AgentPlan = AgentPlan()
    report: str = ""


def _several(value: object) -> object:
    """A list of texts where a model wrote one text, or bare numbers."""
    return [f"m{mark}" if isinstance(mark, int) else mark for mark in (value if isinstance(value, list) else [value])]


Ids = Annotated[list[str], BeforeValidator(_several)]


class WrittenEntry(BaseModel):
    """An entry as the State agent writes it: new, or made of those that it `merges`."""

    text: str = Field(min_length=1)
    merges: Ids = []
    sources: Ids = []


class Update(BaseModel):
    """The State agent's update for a chunk: the ids of entries to `keep` ("m1", "m4-m9"), and its new entries."""

    keep: Ids = []
    memory: list[WrittenEntry] = []
    plan: str = ""


@dataclass(frozen=True, slots=True)
class Merged:
    """The memory after an update. `lost` are the old entries that the update would have dropped, each with the words
    that no other entry contains; `memory` keeps them unchanged."""

    memory: Memory
    lost: Mapping[str, Sequence[str]] = field(default_factory=dict)


def missing(old: str, new: str) -> list[str]:
    """Return the figures, names and other content words of the old text that the new one lacks.

    Empty means that nothing is lost. The relation is transitive, so that no fact wears off over many merges.
    """
    kept = _substance(new)
    return [word for word in _substance(old) if word not in kept]


def _substance(text: str) -> list[str]:
    """Return the content words that a merged entry must contain, each once; the whole text if it has none."""
    substance = [*_FIGURE.findall(text), *_CAPITALS.findall(text)]
    substance += [word for word in words(text) if not _FIGURE.fullmatch(word)]
    spoken = (word.casefold() for word in _WORD.findall(text.replace("’", "'")))
    turning = [word for word in spoken if word in _TURNING or word.endswith("n't")]
    substance += ["not" if word.endswith("n't") else word for word in turning]
    return list(dict.fromkeys(substance)) or tokens(text)


def merge(memory: Memory, update: Update, readable: Collection[str]) -> Merged:
    """Apply an update to memory; `readable` are the ids of the chunk's sources.

    An old entry that the update neither keeps nor contains in a new entry is lost, and kept all the same.
    """
    kept = ids(update.keep)
    carried = {entry.id: _carrier(entry, update, kept) for entry in memory}
    lost: dict[str, list[str]] = {}
    for entry in memory:
        if entry.id not in kept and carried[entry.id] is None:
            claiming = [written for written in update.memory if entry.id in ids(written.merges)]
            lacking = [missing(entry.text, remove_marks(written.text)) for written in claiming]
            lost[entry.id] = min(lacking, key=len, default=[])
    old = {entry.id: entry for entry in memory}
    entries: dict[int, MemoryEntry] = {}
    for name, number in carried.items():
        if number is not None:
            first = entries.get(number) or replace(old[name], text=remove_marks(update.memory[number].text).strip())
            entries[number] = replace(first, sources=_union(first.sources, old[name].sources))
    merged: list[MemoryEntry] = []
    for entry in memory:
        number = carried[entry.id]
        if number is None:
            merged.append(entry)
        elif entries[number].id == entry.id:
            held = " ".join(entry.text for entry in memory if carried[entry.id] == number)
            named = _find_sources(update.memory[number], {*readable, *entries[number].sources})
            named = named or _only(readable if missing(entries[number].text, held) else ())
            merged.append(replace(entries[number], sources=_union(entries[number].sources, named)))
    for number, written in enumerate(update.memory):
        if number not in entries:
            claimed = [source for entry in memory if entry.id in ids(written.merges) for source in entry.sources]
            merged = _add_entry(merged, written, readable, claimed)
    return Merged(tuple(merged), lost)


def find_unsourced(memory: Memory, update: Update, readable: Collection[str]) -> list[str]:
    """Return the new statements without a source, where the chunk has several."""
    unsourced: list[str] = []
    for written in update.memory if len(readable) > 1 else ():
        held = " ".join(entry.text for entry in memory if entry.id in ids(written.merges))
        if missing(remove_marks(written.text), held) and not _find_sources(written, readable):
            unsourced.append(written.text)
    return unsourced


def ids(named: Sequence[str]) -> set[str]:
    """The ids that a list names, ranges such as "m4-m9" included."""
    names: set[str] = set()
    for name in named:
        for first, last in _RANGE.findall(name):
            names |= {f"m{number}" for number in range(int(first), min(int(last), int(first) + 10_000) + 1)}
        names |= set(_ONE.findall(name))
    return names


def _carrier(entry: MemoryEntry, update: Update, kept: Collection[str]) -> int | None:
    """The place of the written entry that holds this one: one that says so, or any if this one is not kept."""
    holding = [
        index for index, written in enumerate(update.memory) if not missing(entry.text, remove_marks(written.text))
    ]
    claiming = [index for index in holding if entry.id in ids(update.memory[index].merges)]
    return next(iter(claiming or ([] if entry.id in kept else holding)), None)


def _add_entry(
    memory: list[MemoryEntry], written: WrittenEntry, readable: Collection[str], claimed: Sequence[str]
) -> list[MemoryEntry]:
    """Append a new entry. If another entry of its source contains its exact words, nothing is added; if another entry
    is identical, only the source is. `claimed` are the sources of the entries that it should contain."""
    text = remove_marks(written.text).strip()
    if not tokens(text):
        return memory
    named = _find_sources(written, {*readable, *claimed})
    sources = _union(claimed, named or _only(readable))
    for index, known in enumerate(memory):
        part, whole = tokens(text), tokens(known.text)
        if part == whole:
            return [*memory[:index], replace(known, sources=_union(known.sources, sources)), *memory[index + 1 :]]
        contained = any(whole[start : start + len(part)] == part for start in range(len(whole) - len(part) + 1))
        if contained and set(sources) <= set(known.sources):
            return memory
    number = 1 + max((int(known.id[1:]) for known in memory), default=0)
    return [*memory, MemoryEntry(f"m{number}", text, sources)]


def _find_sources(written: WrittenEntry, among: Collection[str]) -> tuple[str, ...]:
    """The sources that a written entry names, of those that it may."""
    named = [source.strip().strip("[]") for source in written.sources] + find_cited(written.text)
    return tuple(dict.fromkeys(name for name in named if name in among))


def _only(readable: Collection[str]) -> tuple[str, ...]:
    """The one source that there is; none where there are several."""
    return tuple(readable) if len(readable) == 1 else ()


def _union(first: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *other)))
