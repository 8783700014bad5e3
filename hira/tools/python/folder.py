"""The work folder as hostile ground: looked through and cleared without following anything and without recursion.

Names may be anything, trees may be deeper than a path can be long, and a link may stand where a folder was.
"""

import contextlib
import os
import re
import secrets
import stat
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

DEEPEST = 40
_DIRECTORY = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff<>]")

Mark = tuple[int, int, int]
"""Inode, time of change in nanoseconds, size in bytes: a file that keeps all three is taken for unchanged."""


@dataclass(slots=True)
class Found:
    """What lies in the folder. `bytes` are taken on disk; `deep` says that a branch was too deep to look through."""

    files: dict[str, Mark] = field(default_factory=dict)
    folders: int = 0
    bytes: int = 0
    deep: bool = False

    @property
    def entries(self) -> int:
        return len(self.files) + self.folders


def look(folder: Path, most: int) -> Found:
    """Look through the folder; stops once there are more than `most` entries."""
    found = Found()
    for place, entry, depth in _walk(folder):
        with contextlib.suppress(OSError):
            info = entry.stat(follow_symlinks=False)
            found.bytes += info.st_blocks * 512
            if stat.S_ISDIR(info.st_mode):
                found.folders += 1
                found.deep = found.deep or depth >= DEEPEST
            else:
                found.files[place] = (info.st_ino, info.st_mtime_ns, info.st_size if stat.S_ISREG(info.st_mode) else -1)
        if found.entries > most or found.deep:
            break
    return found


def written(before: Mapping[str, Mark], after: Mapping[str, Mark]) -> tuple[list[str], int]:
    """The regular files that are new or changed, and how many more there are whose names are better not repeated."""
    changed = [
        place
        for place, mark in after.items()
        if before.get(place) != mark and mark[2] >= 0 and not place.startswith(".") and "/." not in place
    ]
    plain = [place for place in changed if not _ODD.search(place)]
    return sorted(plain), len(changed) - len(plain)


def clear(folder: Path, keep: Mapping[str, Mark]) -> None:
    """Remove everything except the files that `keep` names. Nothing may run in the folder meanwhile."""
    kept = {place for name in keep for place in _with_parents(name)}
    root = os.open(folder, os.O_RDONLY | _DIRECTORY)
    try:
        places = [""]
        while places:
            place = places.pop()
            with _opened(root, place) as here:
                for entry in _listed(here):
                    inner = f"{place}/{entry.name}" if place else entry.name
                    if not entry.is_dir(follow_symlinks=False):
                        if inner not in kept:
                            os.unlink(entry.name, dir_fd=here)
                    elif inner in kept:
                        places.append(inner)
                    else:
                        _remove_tree(here, entry.name)
    finally:
        os.close(root)


def read(folder: Path, place: str, most: int) -> bytes:
    """At most `most` bytes of the regular file at that place; OSError for anything else, links included."""
    root = os.open(folder, os.O_RDONLY | _DIRECTORY)
    try:
        above, _, name = place.rpartition("/")
        with _opened(root, above) as here:
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(f"{place} is no regular file")
            return file.read(most)
    finally:
        os.close(root)


def remove(folder: Path, names: Collection[str]) -> None:
    """Remove these trees at the top of the folder, where they are there. Nothing may run in it meanwhile."""
    root = os.open(folder, os.O_RDONLY | _DIRECTORY)
    try:
        for entry in _listed(root):
            if entry.name in names and entry.is_dir(follow_symlinks=False):
                _remove_tree(root, entry.name)
    finally:
        os.close(root)


def _walk(folder: Path) -> Iterator[tuple[str, "os.DirEntry[str]", int]]:
    """Every entry with its place in the folder and its depth; at most one descriptor open for each level."""
    root = os.open(folder, os.O_RDONLY | _DIRECTORY)
    stack = [(root, "", iter(_listed(root)))]
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
                    stack.append((child, inner, iter(_listed(child))))
    finally:
        for here, *_ in stack:
            os.close(here)


def _listed(folder: int) -> "list[os.DirEntry[str]]":
    with os.scandir(folder) as entries:
        return list(entries)


def _enter(parent: int, name: str) -> int:
    """Open a folder below, also one that its maker has closed to us."""
    try:
        return os.open(name, os.O_RDONLY | _DIRECTORY, dir_fd=parent)
    except PermissionError:
        if sys.platform != "linux":
            raise
        handle = os.open(name, os.O_PATH | _DIRECTORY, dir_fd=parent)
        try:
            Path(f"/proc/self/fd/{handle}").chmod(0o700)
            return os.open(name, os.O_RDONLY | _DIRECTORY, dir_fd=parent)
        finally:
            os.close(handle)


@contextlib.contextmanager
def _opened(root: int, place: str) -> Iterator[int]:
    here = os.dup(root)
    try:
        for name in place.split("/") if place else ():
            inner = _enter(here, name)
            os.close(here)
            here = inner
        yield here
    finally:
        os.close(here)


def _remove_tree(parent: int, name: str) -> None:
    """Remove a tree of any depth: each folder found in it is moved up beside it first."""
    pending = [name]
    while pending:
        one = pending.pop()
        folder = _enter(parent, one)
        try:
            for entry in _listed(folder):
                if entry.is_dir(follow_symlinks=False):
                    moved = f".gone-{secrets.token_hex(8)}"
                    os.close(_enter(folder, entry.name))
                    os.rename(entry.name, moved, src_dir_fd=folder, dst_dir_fd=parent)
                    pending.append(moved)
                else:
                    os.unlink(entry.name, dir_fd=folder)
        finally:
            os.close(folder)
        os.rmdir(one, dir_fd=parent)


def _with_parents(place: str) -> Iterator[str]:
    yield place
    while "/" in place:
        place = place.rpartition("/")[0]
        yield place
