"""Where a run works, and the files that it may read."""

import asyncio
import contextlib
import math
import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hira.core.sanitize import flatten_name


@dataclass(frozen=True, slots=True)
class ReadableFiles:
    """Everything that can be seen and heard, by its name on one line, and the `places` of everything that may be read,
    as of the time `read_at`."""

    shown: Mapping[str, Path] = field(default_factory=dict)
    places: tuple[Path, ...] = ()
    read_at: float = -math.inf


def find_readable(docs: Sequence[Path], files: Sequence[Path] = (), exclude: Sequence[Path] = ()) -> ReadableFiles:
    """Look up the readable documents and files, without the excluded ones. Blocking."""
    if not (docs or files):
        return ReadableFiles(read_at=time.monotonic())
    from hira.tools.documents.walk import walk
    from hira.tools.file_kinds import can_be_sent

    listing = walk(docs, exclude)
    named = {**{str(file): file.expanduser() for file in files}, **listing.media, **listing.files}
    shown = {flatten_name(name): path for name, path in named.items() if can_be_sent(name)}
    return ReadableFiles(shown, tuple(path.expanduser().resolve() for path in (*docs, *files)), time.monotonic())


@asynccontextmanager
async def work_folder(run: str) -> AsyncIterator[Path]:
    """The place of a folder that nobody else knows of; what is there when the context is left is removed.

    Who needs the folder makes it, in a thread: few runs do, and a busy disk holds up whoever makes or removes one.
    """
    folder = Path(tempfile.gettempdir(), f"hira-{run}-{secrets.token_hex(8)}")
    try:
        yield folder
    finally:
        if folder.exists():  # noqa: ASYNC240 - a look costs less than a thread
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, _remove, folder))


def _remove(folder: Path) -> None:
    """Remove the folder with all that programs have left in it, at whatever depth; blocking.

    `shutil.rmtree` would run out of stack or of descriptors in folders that are nested deep enough.
    """
    from hira.tools.python.folder import FolderContent, clear

    with contextlib.suppress(OSError):
        clear(folder, FolderContent())
        folder.rmdir()
