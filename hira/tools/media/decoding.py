"""PyAV, the library that reads sounds and videos of most kinds; an extra. Files only, and of known kinds.

A playlist or a script in the guise of a video could make the decoder open other files or addresses: such formats are
not among the `FORMATS`.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hira.core.errors import ToolError

FORMATS = "aac,ac3,aiff,amr,asf,avi,caf,flac,flv,gif,matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,mp3,mpeg,mpegts,ogg,w64,wav"
EXTRA = "pip install 'hira[media]'"


def decodes() -> bool:
    """Whether PyAV is installed."""
    return find_spec("av") is not None


def ffmpeg() -> str:
    """Where the program ffmpeg is, empty if it is nowhere."""
    return shutil.which("ffmpeg") or ""


@contextmanager
def open_media(path: Path, what: str) -> Iterator[Any]:
    """The file as PyAV opens it. What is wrong with the file is a `ToolError`, also later, while it is read."""
    av: Any = import_module("av")  # an extra: it may have no types here
    try:
        with av.open(str(path), options={"format_whitelist": FORMATS, "protocol_whitelist": "file"}) as container:
            yield container
    except (av.FFmpegError, OSError, ValueError, EOFError) as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ToolError(f"{path.name} cannot be read as a {what}: {said}") from None
