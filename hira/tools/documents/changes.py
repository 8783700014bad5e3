"""The files that changed since they were indexed, and those that cannot be read."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from hira.tools.documents.store import Refused, Stamp, cut_time
from hira.tools.file_kinds import LIMIT

Progress = Callable[[int, int], None]
"""Gets how many of how many files or passages are done."""
SPARE, LONGEST = 70.0, 600.0
"""Seconds for all files of a question beyond those that their sizes explain, and with these."""
BYTES = 4 << 30
_EACH, _MEGABYTE = 1.0, 10.0
"""The seconds that a file and a megabyte of it explain."""
_TRIED_AGAIN = 600.0
_FRESH = 2_000_000_000
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Change:
    """A file that is new or differs from the index, or changed too recently to tell; `size` is that on the disk."""

    name: str
    path: Path
    size: int
    before: Stamp | None

    @property
    def seconds(self) -> float:
        """The time that reading a file of this size may take."""
        return _EACH + _MEGABYTE * self.size / 2**20


@dataclass(slots=True)
class Unread:
    """Files that could not be read, by the reason: a line for each, files without text, files that did not fit."""

    lines: list[str] = field(default_factory=list)
    textless: dict[str, str] = field(default_factory=dict)
    unfit: list[str] = field(default_factory=list)

    def add(self, name: str, line: str, *, textless: bool) -> None:
        if textless:
            self.textless[name] = line
        elif line:
            self.lines.append(line)
        else:
            self.unfit.append(name)

    def describe(self) -> list[str]:
        """Return the lines; files without text and those that did not fit have one line together."""
        without = list(self.textless.values())
        if len(without) > 1:
            without = [f"{len(without)} files hold no text and cannot be searched: {shorten(list(self.textless))}"]
        late = []
        if count := len(self.unfit):
            files = "1 file was" if count == 1 else f"{count} files were"
            limit = f"{SPARE:g} s for slow files, {LONGEST:g} s and {BYTES >> 30} GB for all"
            again = "a later question reads on"
            late = [f"{files} not read within the limits of a question ({limit}): {shorten(self.unfit)}; {again}"]
        return [*late, *self.lines, *without]


def shorten(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")


def find_changes(
    files: Mapping[str, Path], known: Mapping[str, Stamp], refused: Mapping[str, Refused]
) -> tuple[list[Change], Unread]:
    """Return the changed files, and those that did not change since they could not be read."""
    fresh = time.time_ns() - _FRESH
    changes: list[Change] = []
    unread = Unread()
    for name, path in files.items():
        before, refusal, size = known.get(str(path)), refused.get(str(path)), 0
        with suppress(OSError):  # it disappeared after the walk; reading it will report that
            about = os.lstat(path)
            marks = (about.st_size, cut_time(about.st_mtime_ns))
            size = min(about.st_size, getattr(about, "st_blocks", about.st_size) * 512)  # without the holes
            size = size if size <= LIMIT else 0  # it is not read
            if min(about.st_mtime_ns, about.st_ctime_ns) <= fresh:
                if refusal and refusal[:2] == marks and (refusal.line or time.time() - refusal.tried < _TRIED_AGAIN):
                    unread.add(name, refusal.line, textless=refusal.textless)
                    continue
                if before and before[:2] == marks:
                    continue
        changes.append(Change(name, path, size, before))
    return changes, unread
