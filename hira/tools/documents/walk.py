"""The files of the folders that a person named, each once, each with its shown name; and those that changed."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from hira.core.errors import UsageError
from hira.core.sanitize import is_text, printable
from hira.tools.file_kinds import FOLDERS, LIMIT, holds_keys, holds_records

MEDIA = frozenset(
    """.png .jpg .jpeg .gif .webp .bmp .tif .tiff .heic .avif .ico .mp3 .wav .flac .ogg .m4a .aac .opus .mp4 .mov .mkv
    .avi .webm""".split()
)
_SHOWN = 200
"""Characters of a path in a warning, from its end."""


@dataclass(slots=True)
class WalkResult:
    """The result of a walk: shown name → file, those with text separate from pictures, sounds and videos; and one line
    for each omission that a person should know about."""

    files: dict[str, Path] = field(default_factory=dict)
    media: dict[str, Path] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    """Names of files that were left out because they usually hold keys."""


def roots_of(paths: Sequence[Path]) -> list[Path]:
    """Return the paths with links resolved. Raises `UsageError` for one that is neither a file nor a folder."""
    roots = []
    for path in paths:
        root = Path(os.path.realpath(path.expanduser()))
        if not is_text(str(root)):
            fix = "rename it to valid UTF-8, or copy the documents elsewhere"
            raise UsageError(f"the path of the documents is not UTF-8: {printable(str(root))!r}", fix=fix)
        if not {"http:", "https:"}.isdisjoint(path.parts):
            fix = "save the page to a file, or search the web with --search or search="
            raise UsageError("documents are files and folders, not addresses of the web", fix=fix)
        try:
            exists = root.exists()
        except OSError as error:
            what = f"the documents cannot be read: {error.strerror}"
            raise UsageError(what, where=f"at {path}", fix="name files or folders that you may read") from None
        if not exists:
            raise UsageError(f"no such file or folder: {str(path)!r}", fix="name files or folders that exist")
        if not (root.is_file() or root.is_dir()):
            fix = "save its content to a file, and name that file"
            raise UsageError(f"{str(path)!r} is neither a file nor a folder", fix=fix)
        roots.append(root)
    return roots


def real_paths(paths: Iterable[Path]) -> frozenset[Path]:
    """Return the paths with links resolved, whether or not they exist."""
    return frozenset(Path(os.path.realpath(path.expanduser())) for path in paths)


def walk(paths: Sequence[Path], exclude: Iterable[Path] = ()) -> WalkResult:
    """Find every file below the paths that looks readable. Raises `UsageError` for a path that does not exist.

    Hidden files and folders, dependencies, virtual environments, folders of evaluations, and files that usually hold
    keys are left out, unless they are named explicitly; paths in `exclude` are always left out. Only links to targets
    inside the named paths are followed, so that a folder from elsewhere cannot bring in files that nobody named.
    """
    roots = roots_of(paths)
    listing, closed = WalkResult(), real_paths(exclude)
    seen = set(closed)
    for root in roots:
        if not closed.isdisjoint((root, *root.parents)):
            continue
        base = str(_base(root, roots)).rstrip(os.sep) + os.sep
        for path in [root] if root.is_file() else _walk_below(root, roots, closed, listing):
            if path not in seen:
                seen.add(path)
                kind = listing.media if path != root and path.suffix.lower() in MEDIA else listing.files
                name = str(path).removeprefix(base).replace(os.sep, "/")
                kind[path.as_posix() if name in kind else name] = path
    if listing.keys:
        named = ", ".join(dict.fromkeys(listing.keys))
        why = "left out because files with such names hold keys"
        listing.warnings.append(f"{why}: {named}; to read one, name its path")
    return listing


def _base(root: Path, roots: Sequence[Path]) -> Path:
    """Return the folder that names of files in a root are relative to: with several roots they include the root's."""
    return root if len(roots) == 1 and root.is_dir() else root.parent


def beginnings(paths: Sequence[Path]) -> dict[Path, str]:
    """Return how the names that `walk` gives to files of each folder begin: "" or the folder's name and a slash."""
    roots = roots_of(paths)
    return {root: "" if _base(root, roots) == root else f"{root.name}/" for root in roots if root.is_dir()}


def find_document(paths: Sequence[Path], name: str) -> Path | None:
    """Return the file that has this shown name, None if it is gone."""
    roots = roots_of([path for path in paths if path.exists()])
    files = ((Path(os.path.realpath(_base(root, roots) / name)), root) for root in roots)
    return next((file for file, root in files if file.is_file() and file.is_relative_to(root)), None)


def _walk_below(root: Path, roots: Sequence[Path], closed: frozenset[Path], listing: WalkResult) -> Iterator[Path]:
    """Yield the files below a root. The listing gets the names of files of keys, and warnings of other omissions."""
    waiting = [root]
    entered = {root, *closed}
    while waiting:
        folder = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            listing.warnings.append(f"{printable(str(folder))[-_SHOWN:]} cannot be listed: {error.strerror or error}")
            continue
        names = [entry.name for entry in entries]
        if folder != root and "pyvenv.cfg" in names:
            continue
        if folder != root and holds_records(names):
            why = "it contains records of hira; to read it, name its path"
            listing.warnings.append(f"{printable(str(folder))} is left out: {why}")
            continue
        below: list[Path] = []
        for entry in entries:
            path = _follow(entry, roots, listing)
            if path and entry.is_dir() and path not in entered:
                entered.add(path)
                below.append(path)
            elif path and entry.is_file() and not holds_keys(path.name):
                yield path
        waiting += reversed(below)


def _follow(entry: os.DirEntry[str], roots: Sequence[Path], listing: WalkResult) -> Path | None:
    """Return where an entry leads; None if it is left out."""
    if holds_keys(entry.name) and not entry.is_dir(follow_symlinks=False):
        listing.keys.append(entry.name)
        return None
    if entry.name.startswith((".", "~$")) or entry.name in FOLDERS:
        return None
    try:
        path = Path(os.path.realpath(entry.path) if entry.is_symlink() else entry.path)
        entry.is_dir()
    except OSError as error:
        listing.warnings.append(f"{printable(entry.path)[-_SHOWN:]} cannot be read: {error.strerror or error}")
        return None
    if not is_text(f"{entry.name}{path}"):
        listing.warnings.append(f"{printable(entry.path)} is left out: its name is not UTF-8; rename it")
        return None
    if entry.is_symlink() and not any(path.is_relative_to(root) for root in roots):
        listing.warnings.append(f"{printable(entry.path)} links outside the documents; to read its target, name it")
        return None
    return path


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


class Stamp(NamedTuple):
    """The marks of a change of a file: `size` in bytes, time of `changed` in nanoseconds, `digest` of the content."""

    size: int
    changed: int
    digest: bytes


class Refused(NamedTuple):
    """A file that could not be read, so that it is not read again until it changes: the reason, in one `line`, empty if
    it took too long; and when it was `tried`, in seconds since 1970."""

    size: int
    changed: int
    line: str
    textless: bool
    tried: float


def cut_time(nanoseconds: int) -> int:
    """Return a time as a number that SQLite can hold: a file may be dated 2300, or before 1970."""
    return nanoseconds % 2**63


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


OWN = "is left out: hira wrote it, and searches it only where it is named"


@dataclass(slots=True)
class Unread:
    """Files that could not be read, by the reason: a line for each, files without a text to search, files that did not
    fit."""

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
        """Return the lines; files without text, those that hira wrote and those that did not fit have one line each."""
        lines = self.describe_faults()
        own = [name for name, line in self.textless.items() if line.endswith(OWN)]
        others = [name for name in self.textless if name not in own]
        together = "are left out: hira wrote them, and searches them only where they are named"
        for names, what in ((others, "hold no text and cannot be searched"), (own, together)):
            several = [f"{len(names)} files {what}: {shorten(names)}"]
            lines += several if len(names) > 1 else [self.textless[name] for name in names]
        return lines

    def describe_faults(self) -> list[str]:
        """Return the lines without those for files that hold no text, or that hira wrote."""
        late = []
        if count := len(self.unfit):
            files = "1 file was" if count == 1 else f"{count} files were"
            limit = f"{SPARE:g} s for slow files, {LONGEST:g} s and {BYTES >> 30} GB for all"
            again = "a later question reads on"
            late = [f"{files} not read within the limits of a question ({limit}): {shorten(self.unfit)}; {again}"]
        return [*late, *self.lines]


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
