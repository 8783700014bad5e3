"""Containers of docker or podman, for machines without Landlock and seccomp.

The worker's channel is its standard input and output, and the code's output arrives over its standard error, so it
needs no network and has none.
"""

import contextlib
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ENGINES = ("docker", "podman")
_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Container:
    """A container, with the name that starts and removes it."""

    engine: str
    name: str

    def remove(self) -> None:
        """End it with everything in it; it may have ended already."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            _call(self.engine, "rm", "--force", "--volumes", self.name)


def _call(*command: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603 - no shell


def engine() -> str:
    """Return the path of docker or podman, empty if neither is installed."""
    return next(filter(None, map(shutil.which, ENGINES)), "")


@cache
def explain_missing_image(program: str, image: str) -> str:
    """Explain why this engine cannot start a container of this image; empty if it can. Asked once per process."""
    name = Path(program).name
    if not program:
        return f"needs {' or '.join(ENGINES)}"
    try:
        done = _call(program, "image", "inspect", image)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{name} does not answer ({type(error).__name__})"
    if not done.returncode:
        return ""
    message = " ".join(done.stderr.decode("utf-8", "replace").split())[:200]
    missing = "no such" in message.lower() or "not known" in message.lower()
    return f"run: {name} pull {image}" if missing else f"{name} does not answer: {message or 'it failed'}"
