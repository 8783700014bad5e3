"""The work folder of one session: what lay there before, what each call wrote, and what has to go. Blocking."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hira.tools.python.folder import Found, clear, find_written, look, read, remove
from hira.tools.python.usage import Limits, overfull, still

_SCRATCH = (".tmp", ".matplotlib")
_SHOWN = 20
_MOST = 1 << 30
_TOTAL = 64 << 20


@dataclass(frozen=True, slots=True)
class Settled:
    """The folder after a call: its `files`, a `note` on those not listed, and the `limit` for which all went.

    `held` says that the interpreter itself keeps too much: files that are deleted and still open.
    """

    files: tuple[Path, ...] = ()
    note: str = ""
    limit: str = ""
    held: bool = False


class Workplace:
    """What lay in the folder before is neither counted nor removed. `bounded` is False if the user wants no limits."""

    def __init__(self, folder: Path, limits: Limits, *, bounded: bool) -> None:
        self.folder = folder
        self.limits = limits
        self.bounded = bounded
        self._before: Found | None = None
        self._known = Found()
        self._place = (0, 0)

    def make(self) -> None:
        """Make the folder, private to the user, and learn what lies in it. A call that was cancelled is undone."""
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
        """Whether the folder is still the one that the interpreter was given."""
        try:
            there = self.folder.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # nobody can tell
            return True
        return (there.st_dev, there.st_ino) == self._place

    def overfull(self, pid: int = 0) -> str:
        """Which limit what was added breaks, in words for the model; counts what the process `pid` keeps open, too."""
        if not self.bounded:
            return ""
        before = self._before or Found()
        return overfull(self.folder, self.limits, entries=before.entries, taken=before.bytes, pid=pid)

    def settle(self, pid: int = 0) -> Settled:
        """Take stock after a call. Nothing may run in the folder meanwhile."""
        if limit := self.overfull(pid):
            still(pid)
            with contextlib.suppress(OSError):
                self._roll_back()
        held = bool(limit and self.overfull(pid))
        before, allowed = self._known.files, self.limits.files + (self._before or Found()).entries
        try:
            self._known = look(self.folder, allowed if self.bounded else _MOST)
        except OSError as error:
            gone = not self.is_there()
            why = "is gone" if gone else f"could not be looked at ({error.strerror or error})"
            return Settled(note=f"The work folder {why}.", limit=limit, held=held)
        names, odd = find_written(before, self._known.files)
        left = len(names) - _SHOWN
        told = [f"{odd} files with unusual names are not listed." if odd else ""]
        told.append(f"{left} more files were written." if left > 0 else "")
        listed = tuple(self.folder / name for name in names[:_SHOWN])
        return Settled(listed, " ".join(filter(None, told)), limit, held)

    def contents(self, most: int) -> dict[str, bytes]:
        """The files by their place in the folder, at most `most` bytes of each and 64 MiB of all. Follows no link."""
        contents: dict[str, bytes] = {}
        room = _TOTAL
        try:
            names, _ = find_written({}, look(self.folder, self.limits.files).files)
        except OSError:
            return contents
        for name in names:
            with contextlib.suppress(OSError):
                contents[name] = read(self.folder, name, min(most, room))
                room -= len(contents[name])
        return contents

    def read(self, paths: Sequence[Path], most: int) -> dict[Path, bytes]:
        """At most `most` bytes of each of these files in the folder, without those that are none. Follows no link."""
        contents: dict[Path, bytes] = {}
        for path in paths:
            with contextlib.suppress(OSError):
                contents[path] = read(self.folder, path.relative_to(self.folder).as_posix(), most)
        return contents

    def tidy(self) -> None:
        """Remove the scratch of libraries."""
        if self._before is not None and self.folder.is_dir():
            with contextlib.suppress(OSError):
                remove(self.folder, _SCRATCH)

    def _roll_back(self) -> None:
        """Remove what this call wrote; if older files have grown, all that the session wrote.

        If even that is too much, the user's own files have grown: later calls are measured from there.
        """
        for keep in (self._known, self._before or Found()):
            clear(self.folder, keep)
            if not self.overfull():
                return
        self._before = look(self.folder, _MOST)
