"""A container for the interpreter: docker or podman, whichever is there. For machines without Landlock and seccomp.

The worker's channel is the container's standard input and output, and what the code prints comes over its standard
error; so nothing of the network is needed, and the container has none.
"""

import contextlib
import csv
import io
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hira.tools.python.usage import Limits

ENGINES = ("docker", "podman")
IMAGE = "python:3.13-slim"
WORKER = "/hira_sandbox"
"""Where the worker's modules are in the container."""

_SECONDS = 20.0
_PROCESSOR = 3600
"""Seconds of the processor, at most: ends a container whose hira was killed in the middle of a call."""


@dataclass(frozen=True, slots=True)
class Container:
    """One container by the name that it is started and removed by."""

    engine: str
    name: str

    def remove(self) -> None:
        """End it with everything in it; it need not be there any more."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(  # noqa: S603 - no shell
                [self.engine, "rm", "--force", "--volumes", self.name],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )


def engine() -> str:
    """The path of docker or podman, empty if neither is there."""
    return next(filter(None, map(shutil.which, ENGINES)), "")


@cache
def trouble(found: str, image: str) -> str:
    """Why no container of this image can be started by this engine; empty if one can. Asked once in a process."""
    name = Path(found).name
    if not found:
        return f"needs {' or '.join(ENGINES)}"
    try:
        done = subprocess.run(  # noqa: S603 - no shell
            [found, "image", "inspect", image],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{name} does not answer ({type(error).__name__})"
    if not done.returncode:
        return ""
    said = " ".join(done.stderr.decode("utf-8", "replace").split())[:200]
    missing = "no such" in said.lower() or "not known" in said.lower()
    return f"run: {name} pull {image}" if missing else f"{name} does not answer: {said or 'it failed'}"


def command(
    container: Container,
    image: str,
    folder: Path,
    readable: Iterable[str],
    limits: Limits,
    environ: Mapping[str, str],
    boot: str,
) -> list[str]:
    """What starts the container with the worker in it. Nothing is fetched: the image has to be there.

    The user's own number is kept, so that the folder can be written and what is written belongs to the user.
    """
    podman = Path(container.engine).name.startswith("podman")
    mounts = [(str(Path(__file__).parent), WORKER, True), (str(folder), str(folder), False)]
    mounts += [(path, path, True) for path in readable]
    return [
        *(container.engine, "run", "--rm", "--interactive", "--init", "--pull", "never", "--name", container.name),
        *("--network", "none", "--ipc", "private", "--hostname", "hira", "--read-only"),
        *("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--security-opt", "label=disable"),
        *("--user", f"{os.getuid()}:{os.getgid()}"),
        *(("--userns", "keep-id") if podman and os.getuid() else ()),
        *("--memory", str(limits.memory * 6 // 5), "--memory-swap", str(limits.memory * 6 // 5), "--cpus", "2"),
        *("--pids-limit", str(limits.threads), "--shm-size", str(64 << 20)),
        *("--ulimit", f"cpu={_PROCESSOR}:{_PROCESSOR}", "--ulimit", "core=0:0"),
        *("--log-driver", "none", "--workdir", str(folder)),
        *(part for name, value in environ.items() for part in ("--env", f"{name}={value}")),
        *(part for mount in mounts for part in ("--mount", _mount(*mount))),
        *(image, "python3", "-s", "-P", "-B", "-X", "utf8", "-c", boot, WORKER, "0", "0"),
    ]


def _mount(source: str, target: str, closed: bool) -> str:  # noqa: FBT001 - of this module alone
    """A mount as the engines read it: one line of comma-separated values, quoted where a path needs it."""
    line = io.StringIO()
    fields = ["type=bind", f"source={source}", f"target={target}", *(["readonly"] if closed else [])]
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()
