"""The options of a Python session, and the layers that confine its code here, decided before anything runs."""

import os
import sys
from dataclasses import dataclass
from typing import Literal

from hira.tools.python.kernel import landlock_version, missing_seccomp

IMAGE = "python:3.13-slim"
_LIMITED = "memory, threads, open files, disk, output, time"
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


@dataclass(frozen=True, slots=True)
class SandboxLayer:
    """One layer; `note` says what it prevents, or why it is missing."""

    name: str
    active: bool
    note: str


def sandbox_layers(mode: Mode = "auto", image: str = IMAGE) -> tuple[SandboxLayer, ...]:
    """Return the layers that would confine code here, in this mode. Only checks; changes nothing."""
    if mode == "container":
        from hira.tools.python.container import engine, explain_missing_image  # for machines without the others

        program = engine()
        missing = "needs Linux or macOS" if os.name != "posix" else explain_missing_image(program, image)
        held = f"{program}, image {image}: no network, no other files, no capabilities; memory, processors, processes"
        return (_layer("container", missing, held), _layer("limits", missing, _LIMITED))
    no_posix = "" if os.name == "posix" else "needs Linux or macOS"
    no_linux = "" if sys.platform == "linux" else "needs Linux"
    off = "switched off: sandbox is 'off'" if mode == "off" else ""
    less = off or ("switched off: sandbox is 'process'" if mode == "process" else "") or no_linux
    version = landlock_version()
    no_landlock = "" if version else "this kernel has no Landlock (Linux 5.13 or later, with Landlock switched on)"
    return (
        _layer("process", no_posix, "own process and session, clean environment, closed descriptors"),
        _layer("limits", off or no_posix, _LIMITED),
        _layer("privileges", off or no_linux, "no new privileges, capabilities dropped, ends when hira ends"),
        _layer("landlock", less or no_landlock, f"files (ABI {version})"),
        _layer("seccomp", less or missing_seccomp(), "no network, no other programs, no signals to others"),
    )


def refusal(mode: Mode = "auto", image: str = IMAGE) -> str:
    """Return one line that says why code cannot be run here in this mode; empty if it can."""
    missing = [layer for layer in sandbox_layers(mode, image) if not layer.active]
    if mode == "container":
        missing = missing[:1]
    needed = missing if mode in {"auto", "container"} else [layer for layer in missing if layer.name == "process"]
    if not needed:
        return ""
    wants = "; ".join(f"{layer.name}: {layer.note}" for layer in needed)
    return f"Python code does not run here, because there is no sandbox ({wants})"


def _layer(name: str, missing: str, holds: str) -> SandboxLayer:
    return SandboxLayer(name, not missing, missing or holds)
