"""The options of a Python session: where its code runs, and how much it may use."""

from dataclasses import dataclass
from typing import Literal

IMAGE = "python:3.13-slim"
Mode = Literal["auto", "container", "process", "off"]
"""`auto` requires every layer; `container` requires docker or podman instead; `process` needs only a separate process
and limits; `off` removes the limits too."""


@dataclass(frozen=True, slots=True)
class PythonLimits:
    """Limits of one session. `seconds` is for one call; sizes are bytes; `output` is the kept part of the output of one
    call, `printed` the most that it may print.

    `memory` limits allocated and, with a fifth more, resident memory; `disk` and `files` are for everything that the
    session adds to its folder, `file` for one file.
    """

    seconds: float = 60.0
    memory: int = 1 << 30
    disk: int = 256 << 20
    file: int = 64 << 20
    files: int = 5_000
    threads: int = 64
    open_files: int = 256
    output: int = 20_000
    printed: int = 256 << 20
