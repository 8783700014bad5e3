"""Files opened once: what a file is, is decided on its open descriptor, so that nothing can be exchanged in between.

A path below a folder is opened part by part, and no part may be a link: whoever can write in the folder could otherwise
exchange a file for a link that leads out of it, after the walk and before the reading. The child process that parses
files gets the descriptor, too.
"""

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self, TypeVar

from hira.core.child import LIMITS, OutOfTime, open_worker
from hira.core.errors import ToolError, WorkerError
from hira.tools.file_kinds import LIMIT

T = TypeVar("T")

_SHOWN = 100
_HOLES = 1024 * 1024
"""The most bytes of a file that were never written."""
_SEGMENTS = 1_000
_NOT_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | _NOT_WAITING
_FOLDER = _READ | getattr(os, "O_DIRECTORY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class OpenFile:
    """An open regular file; `path` is its name, and is not opened again."""

    path: Path
    handle: int
    about: os.stat_result

    @property
    def size(self) -> int:
        return self.about.st_size

    def rewind(self) -> BufferedReader:
        """Return the file from its beginning; closing what is returned leaves the descriptor open."""
        os.lseek(self.handle, 0, os.SEEK_SET)
        return os.fdopen(self.handle, "rb", closefd=False)


@contextmanager
def open_regular(path: Path, roots: Sequence[Path] = (), *, limit: int = LIMIT) -> Iterator[OpenFile]:
    """Open a file. Below one of the `roots`, which are resolved, no link is followed; other paths are opened as named.

    Raises `ToolError` for what cannot be opened, is no regular file, is too big, or consists of holes; and in place of
    whatever goes wrong with the file while it is open (`explaining`).
    """
    root = next((root for root in roots if path.is_relative_to(root)), None)
    with explaining(path), ExitStack() as opened:
        handle = os.open(path, _READ) if root is None else _open_below(root, path)
        opened.callback(os.close, handle)
        about = os.fstat(handle)
        if stat.S_ISDIR(about.st_mode):
            raise ToolError(f"{path.name or path} is a folder, not a file")
        if not stat.S_ISREG(about.st_mode):
            raise ToolError(f"{path.name} is not a regular file")
        if (size := about.st_size) > limit:
            megabytes = f"{size / 2**20:.1f} MB, the limit is {limit / 2**20:g} MB"
            raise ToolError(f"{path.name} is too big to read: {megabytes}")
        blocks = getattr(about, "st_blocks", 0) * 512
        if size - blocks > _HOLES and (holes := size - _count_written(handle, size)) > _HOLES:
            raise ToolError(f"{path.name} is not read: {holes / 2**20:.1f} MB of it were never written (a sparse file)")
        yield OpenFile(path, handle, about)


@contextmanager
def open_copy(name: str, data: bytes) -> Iterator[OpenFile]:
    """Open a file with this name and content, which exists only inside the context."""
    with TemporaryDirectory(prefix="hira-", ignore_cleanup_errors=True) as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        with open_regular(path) as file:
            yield file


def _open_below(root: Path, path: Path) -> int:
    """Open a path part by part, from a folder or a single file that a person named."""
    if os.open not in os.supports_dir_fd:  # a system without such calls
        return os.open(path, _READ)
    *folders, name = path.relative_to(root).parts or (root.name,)
    here = os.open(root.parent if path == root else root, _FOLDER)
    try:
        for folder in folders:
            above, here = here, _open_part(folder, _FOLDER, here)
            os.close(above)
        return _open_part(name, _READ, here)
    finally:
        os.close(here)


def _open_part(name: str, flags: int, folder: int) -> int:
    try:
        return os.open(name, flags | _NO_LINK, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise ToolError(f"{name} was replaced by a link while hira read it") from None
        raise


def _count_written(handle: int, size: int) -> int:
    """Count the bytes outside of holes. Compression, too, lets a file take fewer blocks than it has bytes, and some
    file systems count no blocks; only holes are reported by `lseek`."""
    if not hasattr(os, "SEEK_DATA"):
        return size
    written = position = 0
    for _ in range(_SEGMENTS):
        try:
            start = os.lseek(handle, position, os.SEEK_DATA)
        except OSError as error:
            return written if error.errno == errno.ENXIO else size  # no data after `position`, or not supported
        position = os.lseek(handle, start, os.SEEK_HOLE)
        written += position - start
        if position >= size:
            break
    return written


@contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong with a file into a `ToolError` of one line."""
    try:
        yield
    except ToolError:
        raise
    except FileNotFoundError:
        raise Unopened(f"{path} does not exist") from None
    except OSError as error:
        raise Unopened(f"{path.name} cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise ToolError(f"{path.name} cannot be read: there is not enough memory for it") from None
    except RecursionError:
        raise ToolError(f"{path.name} is nested too deeply to read") from None
    except Exception as error:  # noqa: BLE001 - whatever a damaged file makes a parser stumble over
        what = " ".join(str(error).split())[:_SHOWN]
        raise ToolError(f"{path.name} is damaged and cannot be read ({type(error).__name__}: {what})") from None


class Unopened(ToolError):
    """The file cannot be opened now; its content is not to blame."""


class Deferred(ToolError):
    """Reading the file takes longer than the time that was left for it."""


class ReadingChild:
    """Calls functions with open files in the child that reads the files of this process, one at a time. It ends with
    its last user. Methods block; `close` may be called from another thread."""

    def __init__(self) -> None:
        self._worker = open_worker(LIMITS)
        self._ended = threading.Event()
        self._used = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def collect(
        self, function: Callable[..., Iterator[T]], file: OpenFile, *more: object, seconds: float | None = None
    ) -> list[T]:
        """Call a function of `hira` with the file's descriptor, its path and `more`; return all that it yields."""
        if not self._used:
            self._used = True
            self._worker.use()
        file.rewind()
        try:
            return self._worker.collect(
                function, file.path, *more, handle=file.handle, seconds=seconds, ended=self._ended
            )
        except OutOfTime as error:
            raise Deferred(f"{file.path.name} is not read: {error}") from None
        except WorkerError as error:
            ended = Unopened if self._ended.is_set() else ToolError
            raise ended(f"{file.path.name} is not read: {error}") from None

    def close(self) -> None:
        """End a call in progress with a `ToolError`."""
        self._worker.end(self._ended)
        if self._used:
            self._used = False
            self._worker.release()
