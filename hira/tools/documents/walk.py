"""The files of the folders that a person named, each once, each with its shown name."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hira.core.errors import UsageError
from hira.core.sanitize import is_text, printable
from hira.tools.documents.reader import MEDIA
from hira.tools.left_out import FOLDERS, holds_keys, is_evaluation

_SHOWN = 200
"""Characters of a path in a warning, from its end."""


@dataclass(slots=True)
class Found:
    """The result of a walk: shown name → file, those with text separate from pictures, sounds and videos; and one line
    for each omission that a person should know about."""

    files: dict[str, Path] = field(default_factory=dict)
    media: dict[str, Path] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def roots_of(paths: Sequence[Path]) -> list[Path]:
    """Return the paths with links resolved. Raises `UsageError` for one that is neither a file nor a folder."""
    roots = []
    for path in paths:
        root = Path(os.path.realpath(path.expanduser()))
        if not is_text(str(root)):
            fix = "rename it to valid UTF-8, or copy the documents elsewhere"
            raise UsageError(f"the path of the documents is not UTF-8: {printable(str(root))!r}", fix=fix)
        if not root.exists():
            raise UsageError(f"no such file or folder: {str(path)!r}", fix="name files or folders that exist")
        if not (root.is_file() or root.is_dir()):
            fix = "save its content to a file, and name that file"
            raise UsageError(f"{str(path)!r} is neither a file nor a folder", fix=fix)
        roots.append(root)
    return roots


def real_paths(paths: Iterable[Path]) -> frozenset[Path]:
    """Return the paths with links resolved, whether or not they exist."""
    return frozenset(Path(os.path.realpath(path.expanduser())) for path in paths)


def walk(paths: Sequence[Path], exclude: Iterable[Path] = ()) -> Found:
    """Find every file below the paths that looks readable. Raises `UsageError` for a path that does not exist.

    Hidden files and folders, dependencies, virtual environments, folders of evaluations, and files that usually hold
    keys are left out, unless they are named explicitly; paths in `exclude` are always left out. Only links to targets
    inside the named paths are followed, so that a folder from elsewhere cannot bring in files that nobody named.
    """
    real = roots_of(paths)
    found, keys = Found(), list[str]()
    closed = real_paths(exclude)
    seen = set(closed)
    for root in real:
        if not closed.isdisjoint((root, *root.parents)):
            continue
        for path in [root] if root.is_file() else _walk_below(root, real, closed, found.warnings, keys):
            if path not in seen:
                seen.add(path)
                kind = found.media if path != root and path.suffix.lower() in MEDIA else found.files
                kind[_name_for(path, root, real, kind)] = path
    if keys:
        named = ", ".join(dict.fromkeys(keys))
        found.warnings.append(f"left out because files with such names hold keys: {named}; to read one, name its path")
    return found


def _name_for(path: Path, root: Path, roots: Sequence[Path], taken: dict[str, Path]) -> str:
    """Return the name relative to its folder; with several roots, after the folder's name; absolute if that is
    taken."""
    name = path.relative_to(_base(root, roots) if root != path else root.parent).as_posix()
    return path.as_posix() if name in taken else name


def _base(root: Path, roots: Sequence[Path]) -> Path:
    """Return the folder that names of files in a root are relative to."""
    return root if len(roots) == 1 else root.parent


def beginnings(paths: Sequence[Path]) -> dict[Path, str]:
    """Return how the names that `walk` gives to files of each folder begin: "" or the folder's name and a slash."""
    roots = roots_of(paths)
    folders = [root for root in roots if root.is_dir()]
    return {root: "" if _base(root, roots) == root else f"{root.name}/" for root in folders}


def _walk_below(
    root: Path, roots: Sequence[Path], closed: frozenset[Path], warnings: list[str], keys: list[str]
) -> Iterator[Path]:
    waiting = [root]
    entered = {root, *closed}
    while waiting:
        folder = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            warnings.append(f"{printable(str(folder))[-_SHOWN:]} cannot be listed: {error.strerror or error}")
            continue
        if folder != root and any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        if folder != root and is_evaluation([entry.name for entry in entries]):
            warnings.append(
                f"{printable(str(folder))} is left out: it contains an evaluation; to read it, name its path"
            )
            continue
        below: list[Path] = []
        for entry in _without_keys(entries, keys):
            try:
                path, is_folder, is_file = _follow(entry)
            except OSError as error:
                warnings.append(f"{printable(entry.path)[-_SHOWN:]} cannot be read: {error.strerror or error}")
                continue
            if why := _explain_left_out(entry, path, roots):
                warnings.append(f"{printable(entry.path)} {why}")
            elif is_folder and path not in entered:
                entered.add(path)
                below.append(path)
            elif is_file and not holds_keys(path.name):
                yield path
        waiting += reversed(below)


def _explain_left_out(entry: os.DirEntry[str], path: Path, roots: Sequence[Path]) -> str:
    """Explain why an entry, which leads to this path, is not entered or read; empty if it may be."""
    if not is_text(f"{entry.name}{path}"):
        return "is left out: its name is not UTF-8; rename it"
    if entry.is_symlink() and not any(path == one or one in path.parents for one in roots):
        return "links outside the documents; to read its target, name it"
    return ""


def _without_keys(entries: Iterable[os.DirEntry[str]], keys: list[str]) -> Iterator[os.DirEntry[str]]:
    """Yield the entries without hidden ones, dependencies, and files of keys, whose names are added to `keys`."""
    for entry in entries:
        if holds_keys(entry.name) and not entry.is_dir(follow_symlinks=False):
            keys.append(entry.name)
        elif not entry.name.startswith((".", "~$")) and entry.name not in FOLDERS:
            yield entry


def _follow(entry: os.DirEntry[str]) -> tuple[Path, bool, bool]:
    """Return where an entry leads, and whether that is a folder or a file. Raises `OSError` if that is unknown."""
    path = Path(os.path.realpath(entry.path) if entry.is_symlink() else entry.path)
    return path, entry.is_dir(), entry.is_file()
