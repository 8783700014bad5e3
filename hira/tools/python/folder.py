"""The work folder as hostile ground: examined and cleared without following links and without recursion.

Names may be anything, trees may be deeper than a path can be long, and a link may have replaced a folder.
"""

import contextlib
import os
import re
import secrets
import stat
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

DEEPEST = 40
_DIRECTORY = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_ODD = re.compile(
    r"[\x00-\x1f\x7f-\xa0\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\uffff\ud800-\udfff<>]"
    r"|[\U000e0000-\U000e0fff]"
)

Mark = tuple[int, int, int]
"""Inode, time of change in nanoseconds, size in bytes: a file that keeps all three counts as unchanged."""


@dataclass(slots=True)
class FolderContent:
    """The content of the folder. `bytes` are counted on disk; `deep` means that a branch was too deep to examine."""

    files: dict[str, Mark] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    bytes: int = 0
    deep: bool = False

    @property
    def entries(self) -> int:
        return len(self.files) + len(self.folders)


def look(folder: Path, most: int) -> FolderContent:
    """Examine the folder; stop once there are more than `most` entries."""
    content = FolderContent()
    for place, entry, depth in _walk(folder):
        with contextlib.suppress(OSError):
            info = entry.stat(follow_symlinks=False)
            content.bytes += info.st_blocks * 512
            if stat.S_ISDIR(info.st_mode):
                content.folders.add(place)
                content.deep = content.deep or depth >= DEEPEST
            else:
                size = info.st_size if stat.S_ISREG(info.st_mode) else -1
                content.files[place] = (info.st_ino, info.st_mtime_ns, size)
        if content.entries > most or content.deep:
            break
    return content


def find_written(before: Mapping[str, Mark], after: Mapping[str, Mark]) -> tuple[list[str], int]:
    """Return the new or changed regular files, and the number of others, whose names are unsafe to repeat."""
    changed = [
        place
        for place, mark in after.items()
        if before.get(place) != mark and mark[2] >= 0 and not place.startswith(".") and "/." not in place
    ]
    plain = [place for place in changed if not _ODD.search(place)]
    return sorted(plain), len(changed) - len(plain)


def clear(folder: Path, keep: FolderContent) -> None:
    """Remove everything except the files and folders in `keep`, and entries that cannot be removed.

    Nothing may run in the folder meanwhile.
    """
    folders = {*keep.folders, *(above.as_posix() for name in keep.files for above in PurePosixPath(name).parents)}
    places = [""]
    while places:
        place = places.pop()
        with contextlib.suppress(OSError), _open_place(folder, place) as here:
            for entry in _list_folder(here):
                inner = f"{place}/{entry.name}" if place else entry.name
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_folder and inner in folders:
                    places.append(inner)
                elif is_folder or inner not in keep.files:
                    with contextlib.suppress(OSError):
                        if is_folder:
                            _remove_tree(here, entry.name)
                        else:
                            os.unlink(entry.name, dir_fd=here)


def read(folder: Path, place: str, most: int) -> bytes:
    """Read at most `most` bytes of a regular file. Raises `OSError` for anything else, links included."""
    above, _, name = place.rpartition("/")
    with _open_place(folder, above) as here:
        handle = _open_unlocked(here, name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{place} is not a regular file")
        return file.read(most)


def remove(folder: Path, names: Collection[str]) -> None:
    """Remove these trees at the top of the folder, if they exist. Nothing may run in it meanwhile."""
    with _open_place(folder, "") as root:
        for entry in _list_folder(root):
            if entry.name in names and entry.is_dir(follow_symlinks=False):
                _remove_tree(root, entry.name)


def _walk(folder: Path) -> Iterator[tuple[str, "os.DirEntry[str]", int]]:
    """Yield every entry with its place in the folder and its depth; at most one descriptor is open for each level."""
    root = os.open(folder, os.O_RDONLY | _DIRECTORY)
    stack = [(root, "", iter(_list_folder(root)))]
    try:
        while stack:
            here, place, entries = stack[-1]
            entry = next(entries, None)
            if entry is None:
                os.close(stack.pop()[0])
                continue
            inner = f"{place}/{entry.name}" if place else entry.name
            yield inner, entry, len(stack)
            if len(stack) < DEEPEST and entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    child = _enter(here, entry.name)
                    stack.append((child, inner, iter(_list_folder(child))))
    finally:
        for here, *_ in stack:
            os.close(here)


def _list_folder(folder: int) -> "list[os.DirEntry[str]]":
    with os.scandir(folder) as entries:
        return list(entries)


def _enter(parent: int, name: str) -> int:
    """Open a folder below, also one that its creator has closed to us."""
    return _open_unlocked(parent, name, os.O_RDONLY | _DIRECTORY, 0o700)


def _open_unlocked(parent: int, name: str, flags: int, mode: int) -> int:
    """Open an entry below, with that mode if its creator has closed it to us. No link is followed."""
    try:
        return os.open(name, flags, dir_fd=parent)
    except PermissionError:
        if sys.platform != "linux":
            raise
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            if stat.S_ISLNK(os.fstat(handle).st_mode):
                raise
            Path(f"/proc/self/fd/{handle}").chmod(mode)
            return os.open(name, flags, dir_fd=parent)
        finally:
            os.close(handle)


@contextlib.contextmanager
def _open_place(folder: Path, place: str) -> Iterator[int]:
    """Open the folder at a place below, "" for the folder itself, without following links."""
    here = os.open(folder, os.O_RDONLY | _DIRECTORY)
    try:
        for name in place.split("/") if place else ():
            inner = _enter(here, name)
            os.close(here)
            here = inner
        yield here
    finally:
        os.close(here)


def _remove_tree(parent: int, name: str) -> None:
    """Remove a tree of any depth: each folder in it is first moved up next to it."""
    pending = [name]
    while pending:
        child = pending.pop()
        folder = _enter(parent, child)
        try:
            if os.fstat(folder).st_mode & 0o700 != 0o700:
                os.fchmod(folder, 0o700)
            for entry in _list_folder(folder):
                if entry.is_dir(follow_symlinks=False):
                    moved = f".gone-{secrets.token_hex(8)}"
                    os.close(_enter(folder, entry.name))
                    os.rename(entry.name, moved, src_dir_fd=folder, dst_dir_fd=parent)
                    pending.append(moved)
                else:
                    os.unlink(entry.name, dir_fd=folder)
        finally:
            os.close(folder)
        os.rmdir(child, dir_fd=parent)
