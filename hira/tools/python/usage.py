"""What an interpreter uses beyond what the kernel bounds for it, and what it prints."""

import codecs
import contextlib
import os
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path

from hira.tools.python.folder import look

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_STATE, _THREADS = 0, 17  # fields of /proc/PID/stat, counted behind the name
_STILL = 0.5


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one session. `seconds` is for one call; sizes are bytes; `output` is what is kept of
    what one call prints, `printed` the most that it may print.

    `memory` bounds what is allocated and, with a fifth more, what is resident; `disk` and `files` are for all that the
    session adds to its folder, `file` for one file.
    """

    seconds: float = 60.0
    memory: int = 1 << 30
    disk: int = 256 << 20
    file: int = 64 << 20
    files: int = 5_000
    threads: int = 64
    open_files: int = 256
    output: int = 20_000
    printed: int = 256 << 20


def find_broken_limit(pid: int, limits: Limits) -> str:
    """Which limit the process has broken, in words for the model; empty if none, or where the system does not say."""
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


def still(pid: int) -> None:
    """Wait until a process that was stopped stands still, for half a second at most. Blocking."""
    until = time.monotonic() + _STILL
    with contextlib.suppress(OSError, IndexError):
        while pid and time.monotonic() < until and not _stands(pid):
            time.sleep(0.002)


def _stands(pid: int) -> bool:
    """Whether every thread of the process is stopped or gone."""
    return all(_fields(f"{pid}/task/{task.name}")[_STATE] in "TtZXx" for task in Path(f"/proc/{pid}/task").iterdir())


def _fields(process: int | str) -> list[str]:
    return Path(f"/proc/{process}/stat").read_text(encoding="latin-1").rpartition(")")[2].split()


def overfull(folder: Path, limits: Limits, *, entries: int, taken: int, pid: int = 0) -> str:
    """Which limit of the folder is broken, in words for the model, over the `entries` and bytes `taken` before.

    With `pid` the process's deleted but open files count too.
    """
    try:
        found = look(folder, limits.files + entries)
    except OSError:
        return ""
    if found.deep:
        return "it nested folders too deep"
    if found.entries - entries > limits.files:
        return f"it made more than {limits.files:,} files"
    if found.bytes + _held(pid, folder, limits.file) - taken > limits.disk:
        return f"its files took more than {size(limits.disk)}"
    return ""


def _held(pid: int, folder: Path, largest: int) -> int:
    """Bytes of files that were deleted while they were open, or are still mapped into memory.

    What a mapped file takes is not told to everyone; it counts as the `largest` that there can be.
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
    return sum(opened.values()) + largest * len(_mapped(pid, folder) - opened.keys())


def _mapped(pid: int, folder: Path) -> set[int]:
    """The numbers of the deleted files of the folder that are mapped into the memory of the process."""
    inside, deleted = f" {folder}/".encode(), b" (deleted)\n"
    with contextlib.suppress(OSError), Path(f"/proc/{pid}/maps").open("rb") as maps:
        return {int(line.split()[4]) for line in maps if line.endswith(deleted) and inside in line}
    return set()


def size(count: int) -> str:
    """Bytes for a person: 64 MB, 1.5 GB."""
    return f"{count / (1 << 30):.3g} GB" if count >= 1 << 30 else f"{count / (1 << 20):.3g} MB"


_decode = codecs.getincrementaldecoder("utf-8")


@dataclass(slots=True)
class Output:
    """Bytes as they come. `half` of the characters are kept from the beginning and `half` from the end."""

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
        """The output as text; what is no UTF-8 is replaced."""
        tail = bytes(self._tail[-self.half :])
        missing = self.total - len(self._head) - len(tail)
        if not missing:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        return (
            f"{_decode('ignore').decode(bytes(self._head))}\n… {missing:,} bytes left out …\n"
            f"{tail.decode('utf-8', 'replace').lstrip(chr(0xFFFD))}"
        )
