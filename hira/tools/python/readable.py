"""The folders that code may read, opened so that what is private in them stays closed."""

import os
from collections.abc import Callable, Collection, Iterable
from functools import cache
from pathlib import Path

from hira.tools.file_kinds import FOLDERS, holds_keys, is_evaluation

_Listing = Callable[[Path], list[os.DirEntry[str]]]


def readable_paths(paths: Iterable[Path], closed: Collection[Path] = ()) -> tuple[list[str], list[str]]:
    """Return the paths to open and those only to list, so that these files and folders can be read without private or
    `closed` entries.

    A folder that holds hidden entries (`.env`, `.git`), files of keys, dependencies, an evaluation, a closed path or
    the home folder, at any depth, is opened entry by entry, and then no link in it is followed: otherwise the folder's
    creator would choose what is opened.
    """
    opened: list[str] = []
    listed: list[str] = []
    home, shut, inside = _home(), frozenset(closed), cache(_list_folder)
    for path in paths:
        if not shut.isdisjoint((path, *path.parents)):
            continue
        divided = _find_divided(path, home, shut, inside)
        pending = [path]
        while pending:
            place = pending.pop()
            if place not in divided:
                opened.append(str(place))
                continue
            listed.append(str(place))
            pending += [place / entry.name for entry in inside(place) if not _private(entry, shut, inside)]
    return opened, listed


def _find_divided(path: Path, home: Path, closed: frozenset[Path], inside: _Listing) -> set[Path]:
    """Return the folders from `path` on down that cannot be opened as a whole."""
    divided: set[Path] = set()
    folders = [path]
    for folder in folders:  # grows during the loop: parents precede their children
        entries = inside(folder)
        if home.is_relative_to(folder) or any(_private(entry, closed, inside) for entry in entries):
            divided.update(parent for parent in (folder, *folder.parents) if parent.is_relative_to(path))
        folders += [
            folder / entry.name for entry in entries if _is_folder(entry) and not _private(entry, closed, inside)
        ]
    return divided


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a user without a name, as in many containers
        return Path("/nonexistent")


def _private(entry: os.DirEntry[str], closed: frozenset[Path], inside: _Listing) -> bool:
    """Return whether an entry of a folder stays closed: it is hidden, a link, dependencies, an evaluation, one of the
    closed paths, or usually holds keys."""
    path = Path(entry.path)
    if entry.name.startswith(".") or entry.is_symlink() or path in closed:
        return True
    if _is_folder(entry):
        return entry.name in FOLDERS or is_evaluation([entry.name for entry in inside(path)])
    return holds_keys(entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _list_folder(path: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, none if it cannot be listed."""
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:
        return []
