"""Files that are replaced as a whole."""

import errno
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path


def replace_file(path: Path, pieces: Iterable[bytes], *, private: bool = False) -> int:
    """Write the pieces into a file that then takes the place of `path`, and return how many there were. Readers of the
    path see the old file or the whole new one; only the user can read a `private` one. Raises `OSError`, also for a
    device or a pipe."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    fresh, written = Path(name), 0
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                file.write(piece)
                written += 1
        if not private:
            fresh.chmod(0o644)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    return written
