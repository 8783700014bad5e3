"""Containers of docker or podman, for machines without Landlock and seccomp.

The worker's channel is its standard input and output, and the code's output arrives over its standard error, so it
needs no network and has none.
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

from hira.tools.python.layers import PythonLimits

ENGINES = ("docker", "podman")
WORKER = "/hira_sandbox"
"""The folder of the worker's modules in the container."""
FLAGS = ("-S", "-s", "-P", "-B", "-X", "utf8")
"""Options of every interpreter."""

_SECONDS = 20.0
_PROCESSOR = 3600
"""The most seconds of processor time: ends a container whose hira was killed in the middle of a call."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container, with the name that starts and removes it."""

    engine: str
    name: str

    def remove(self) -> None:
        """End it with everything in it; it may have ended already."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(  # noqa: S603 - no shell
                [self.engine, "rm", "--force", "--volumes", self.name],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )


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
        done = subprocess.run(  # noqa: S603 - no shell
            [program, "image", "inspect", image],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{name} does not answer ({type(error).__name__})"
    if not done.returncode:
        return ""
    message = " ".join(done.stderr.decode("utf-8", "replace").split())[:200]
    missing = "no such" in message.lower() or "not known" in message.lower()
    return f"run: {name} pull {image}" if missing else f"{name} does not answer: {message or 'it failed'}"


def command(
    container: Container,
    image: str,
    folder: Path,
    readable: Iterable[str],
    limits: PythonLimits,
    environ: Mapping[str, str],
    boot: str,
) -> list[str]:
    """Return the command that starts the container with the worker in it. The image has to exist already.

    The user's own number is kept, so that the folder is writable and new files belong to the user.
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
        *(image, "python3", *FLAGS, "-c", boot, WORKER, "0"),
    ]


def _mount(source: str, target: str, closed: bool) -> str:  # noqa: FBT001 - of this module alone
    """Return a mount as the engines read it: one line of comma-separated values, quoted if a path requires it."""
    line = io.StringIO()
    fields = ["type=bind", f"source={source}", f"target={target}", *(["readonly"] if closed else [])]
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()
