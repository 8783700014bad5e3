"""Usage of an interpreter that the kernel does not limit, its output, and the files that it writes into its folder."""

import codecs
import contextlib
import os
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hira.tools.python.folder import FolderContent, clear, find_written, look, read, remove
from hira.tools.python.layers import PythonLimits

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_STATE, _THREADS = 0, 17  # fields of /proc/PID/stat, counted after the name
_STILL = 0.5


def find_broken_limit(pid: int, limits: PythonLimits) -> str:
    """Return the limit that the process has broken, in words for the model; empty if none, or if unknown."""
    try:
        resident = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE
        threads = int(_fields(pid)[_THREADS])
    except (OSError, IndexError):
        return ""
    if resident > limits.memory * 1.2:
        return f"it used more than {size(limits.memory)} of memory"
    if threads > limits.threads:
        return f"it started more than {limits.threads} threads"
    return ""


def _is_stopped(pid: int) -> bool:
    """Return whether every thread of the process is stopped or has ended."""
    return all(_fields(f"{pid}/task/{task.name}")[_STATE] in "TtZXx" for task in Path(f"/proc/{pid}/task").iterdir())


def _fields(process: int | str) -> list[str]:
    return Path(f"/proc/{process}/stat").read_text(encoding="latin-1").rpartition(")")[2].split()


def _count_held(pid: int, folder: Path, largest: int) -> int:
    """Count the bytes of files that were deleted while they were open, or are still mapped into memory.

    Not everyone can see the size of a mapped file; it counts as the `largest` possible one.
    """
    if not pid:
        return 0
    opened: dict[int, int] = {}
    with contextlib.suppress(OSError):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                info = file.stat()
                if stat.S_ISREG(info.st_mode) and not info.st_nlink:
                    opened[info.st_ino] = info.st_blocks * 512
    inside, deleted = f" {folder}/".encode(), b" (deleted)\n"
    mapped: set[int] = set()
    with contextlib.suppress(OSError), Path(f"/proc/{pid}/maps").open("rb") as maps:
        mapped = {int(line.split()[4]) for line in maps if line.endswith(deleted) and inside in line}
    return sum(opened.values()) + largest * len(mapped - opened.keys())


def size(count: int) -> str:
    """Format bytes for a person: 64 MB, 1.5 GB."""
    return f"{count / (1 << 30):.3g} GB" if count >= 1 << 30 else f"{count / (1 << 20):.3g} MB"


_decode = codecs.getincrementaldecoder("utf-8")


@dataclass(slots=True)
class ClippedOutput:
    """Bytes as they arrive. `half` of the characters are kept from the beginning and `half` from the end."""

    half: int
    total: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: bytearray = field(default_factory=bytearray)

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        if room := self.half - len(self._head):
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._tail += chunk[-self.half :]
            if len(self._tail) > 2 * self.half:
                del self._tail[: -self.half]

    @property
    def text(self) -> str:
        """The output as text; invalid UTF-8 is replaced."""
        tail = bytes(self._tail[-self.half :])
        missing = self.total - len(self._head) - len(tail)
        if not missing:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        return (
            f"{_decode('ignore').decode(bytes(self._head))}\n… {missing:,} bytes left out …\n"
            f"{tail.decode('utf-8', 'replace').lstrip(chr(0xFFFD))}"
        )


_SCRATCH = (".tmp", ".matplotlib")
_SHOWN = 20
_MOST = 1 << 30


@dataclass(frozen=True, slots=True)
class Settled:
    """The folder after a call: its `files`, a `note` on unlisted ones, and the `limit` for which all were removed.

    `held` means that the interpreter itself keeps too much: deleted files that are still open.
    """

    files: tuple[Path, ...] = ()
    note: str = ""
    limit: str = ""
    held: bool = False


@dataclass(slots=True)
class Workplace:
    """The work folder of a session. Files that it had before are neither counted nor removed. `bounded` is False if the
    user wants no limits."""

    folder: Path
    limits: PythonLimits
    bounded: bool
    _before: FolderContent | None = None
    _known: FolderContent = field(default_factory=FolderContent)
    _place: tuple[int, int] = (0, 0)

    def make(self) -> None:
        """Create the folder, private to the user, and record its content. The writes of a cancelled call are undone."""
        self.folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.folder.chmod(0o700)
        (self.folder / _SCRATCH[0]).mkdir(mode=0o700, exist_ok=True)
        there = self.folder.stat()
        self._place = (there.st_dev, there.st_ino)
        self._before = self._before or look(self.folder, _MOST)
        if self.overfull():
            self._roll_back()
        self._known = look(self.folder, _MOST)

    def is_there(self) -> bool:
        """Return whether the folder is still the one that the interpreter got."""
        try:
            there = self.folder.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # unknown
            return True
        return (there.st_dev, there.st_ino) == self._place

    def overfull(self, pid: int = 0) -> str:
        """Return the limit that additions break, for the model; files that process `pid` keeps open count too."""
        before, limits = self._before or FolderContent(), self.limits
        if not self.bounded:
            return ""
        try:
            content = look(self.folder, limits.files + before.entries)
        except OSError:
            return ""
        if content.deep:
            return "it nested folders too deep"
        if content.entries - before.entries > limits.files:
            return f"it made more than {limits.files:,} files"
        if content.bytes + _count_held(pid, self.folder, limits.file) - before.bytes > limits.disk:
            return f"its files took more than {size(limits.disk)}"
        return ""

    def settle(self, pid: int = 0) -> Settled:
        """Examine the folder after a call. Nothing may run in it meanwhile."""
        if limit := self.overfull(pid):
            # until the stopped process is still
            until = time.monotonic() + _STILL
            with contextlib.suppress(OSError, IndexError):
                while pid and time.monotonic() < until and not _is_stopped(pid):
                    time.sleep(0.002)
            with contextlib.suppress(OSError):
                self._roll_back()
        held = bool(limit and self.overfull(pid))
        before, allowed = self._known.files, self.limits.files + (self._before or FolderContent()).entries
        try:
            self._known = look(self.folder, allowed if self.bounded else _MOST)
        except OSError as error:
            gone = not self.is_there()
            why = "is gone" if gone else f"could not be looked at ({error.strerror or error})"
            return Settled(note=f"The work folder {why}.", limit=limit, held=held)
        names, odd = find_written(before, self._known.files)
        left = len(names) - _SHOWN
        lines = [f"{odd} files with unusual names are not listed." if odd else ""]
        lines.append(f"{left} more files were written." if left > 0 else "")
        listed = tuple(self.folder / name for name in names[:_SHOWN])
        return Settled(listed, " ".join(filter(None, lines)), limit, held)

    def read(self, paths: Sequence[Path], most: int) -> dict[Path, bytes]:
        """Read at most `most` bytes of each of these files in the folder, if readable. Follows no link."""
        contents: dict[Path, bytes] = {}
        for path in paths:
            with contextlib.suppress(OSError):
                contents[path] = read(self.folder, path.relative_to(self.folder).as_posix(), most)
        return contents

    def tidy(self) -> None:
        """Remove the temporary files of libraries."""
        if self._before is not None and self.folder.is_dir():
            with contextlib.suppress(OSError):
                remove(self.folder, _SCRATCH)

    def _roll_back(self) -> None:
        """Remove the files of this call; if older files have grown, everything that the session wrote.

        If even that is too much, the user's own files have grown: later calls are measured from there.
        """
        for keep in (self._known, self._before or FolderContent()):
            clear(self.folder, keep)
            if not self.overfull():
                return
        self._before = look(self.folder, _MOST)
