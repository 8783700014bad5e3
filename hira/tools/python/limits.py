"""The options of a Python session: where its code runs, and how much it may use."""

from dataclasses import dataclass
from typing import Literal

IMAGE = "python:3.13-slim"
Mode = Literal["auto", "container", "process", "off"]
"""`auto` requires every layer; `container` requires docker or podman instead; `process` needs only a separate process
and limits; `off` removes the limits too."""


@dataclass(frozen=True, slots=True)
class PythonLimits:
    """Limits of one session; sizes are bytes."""

    seconds: float = 60.0
    """For one call."""
    memory: int = 1 << 30
    """Of allocated memory; resident memory may be a fifth more."""
    disk: int = 256 << 20
    """Everything that the session adds to its folder."""
    file: int = 64 << 20
    """One file."""
    files: int = 5_000
    """Files and folders that the session adds to its folder."""
    threads: int = 64
    open_files: int = 256
    output: int = 20_000
    """The kept part of the output of one call."""
    printed: int = 256 << 20
    """The most that one call may print."""
