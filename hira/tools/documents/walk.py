"""The files of the folders that a person named, each once, each under the name that it is shown by."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hira.errors import UsageError
from hira.tools.documents.read import MEDIA

_SKIPPED = frozenset(["node_modules", "__pycache__", "__MACOSX", "site-packages"])


@dataclass(slots=True)
class Found:
    """What a walk found: shown name → file, and one line for each thing that was left out and should be known."""

    files: dict[str, Path] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def roots_of(paths: Sequence[Path]) -> list[Path]:
    """The paths without links in them. Raises `UsageError` for one that does not exist."""
    for path in paths:
        if not path.expanduser().exists():
            raise UsageError(f"no such file or folder: {str(path)!r}", fix="name files or folders that exist")
    return [Path(os.path.realpath(path.expanduser())) for path in paths]


def walk(paths: Sequence[Path]) -> Found:
    """Every readable-looking file below the paths. A path that does not exist is a `UsageError`.

    Hidden files and folders, dependencies, virtual environments and media are left out, except where they are named
    themselves. A link is followed only to what lies inside the named paths, so that a folder from elsewhere cannot
    bring in files that nobody named.
    """
    real = roots_of(paths)
    found, seen = Found(), set[Path]()
    for root in real:
        for path in [root] if root.is_file() else _below(root, real, found.warnings):
            if path not in seen:
                seen.add(path)
                found.files[_shown(path, root, real, found.files)] = path
    return found


def _shown(path: Path, root: Path, roots: Sequence[Path], taken: dict[str, Path]) -> str:
    """Relative to its folder; with several roots below the folder's name; absolute if that is taken already."""
    base = root if len(roots) == 1 and root != path else root.parent
    name = path.relative_to(base).as_posix()
    return path.as_posix() if name in taken else name


def _below(root: Path, roots: Sequence[Path], warnings: list[str]) -> Iterator[Path]:
    waiting = [root]
    entered = {root}
    while waiting:
        folder = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except PermissionError:
            warnings.append(f"{folder} may not be listed: permission denied")
            continue
        below: list[Path] = []
        for entry in entries:
            path = Path(entry.path)
            if entry.name.startswith((".", "~$")) or entry.name in _SKIPPED:
                continue
            if entry.is_symlink():
                path = Path(os.path.realpath(path))
                if not any(path == one or one in path.parents for one in roots):
                    warnings.append(f"{entry.path} links to outside of the documents; name its target to have it read")
                    continue
            if path.is_dir() if entry.is_symlink() else entry.is_dir():
                if path not in entered and not (path / "pyvenv.cfg").exists():
                    entered.add(path)
                    below.append(path)
            elif path.suffix.lower() not in MEDIA and path.is_file():
                yield path
        waiting += reversed(below)
