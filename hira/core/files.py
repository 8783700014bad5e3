"""Files that are replaced as a whole."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def open_replacement(path: Path, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of `path` when the context is left without an exception. Readers of the path see
    the old file or the whole new one; only the user can read a `private` one. Raises `OSError`."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        if not private:
            fresh.chmod(0o644)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def replace_file(path: Path, content: bytes, *, private: bool = False) -> None:
    """Replace the contents of a file as `open_replacement` does."""
    with open_replacement(path, private=private) as file:
        file.write(content)
