"""Files are parsed in a child process with limits, so that a hostile file costs its own reading and nothing else.

Plain text needs no parser and is read at once. For everything else one child serves a whole folder.
"""

from pathlib import Path
from typing import Self

from hira.core.errors import ToolError
from hira.core.worker import LIMITS, Worker, WorkerError, WorkerLimits
from hira.tools.documents.document import Document
from hira.tools.documents.parse import LIMIT, check_readable, is_plain, parse_file


class FileReader:
    """Reads files of any kind. Methods block, so call them in a thread; `close` may be called from another one."""

    def __init__(self, limits: WorkerLimits = LIMITS) -> None:
        self.worker = Worker(limits)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, path: Path, *, limit: int = LIMIT) -> Document:
        """Read a file of at most `limit` bytes. Raises `ToolError` with one line that says why it cannot be read."""
        if is_plain(path):
            return parse_file(path, limit)
        check_readable(path)
        try:
            document = self.worker.call(parse_file, path.absolute(), limit)
        except WorkerError as error:
            raise ToolError(f"{path.name} is not read: {error}") from None
        return Document(path, document.title, document.parts)

    def close(self) -> None:
        """End the child; a file that is being read ends with a `ToolError`."""
        self.worker.close()


def read_file(path: Path, *, limit: int = LIMIT) -> Document:
    """Read one file as `FileReader.read` does. Blocking."""
    with FileReader() as reader:
        return reader.read(path, limit=limit)
