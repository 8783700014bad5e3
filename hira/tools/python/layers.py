"""The layers that confine the code on this machine: the kernel's or a container; decided before anything runs.

A container of docker or podman is for machines without Landlock and seccomp. The worker's channel is its standard input
and output, and the code's output arrives over its standard error, so it needs no network and has none.
"""

import contextlib
import csv
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hira.tools.left_out import FOLDERS, holds_keys, is_evaluation
from hira.tools.python import seccomp
from hira.tools.python.confine import landlock_version, missing_landlock
from hira.tools.python.limits import IMAGE, Mode, PythonLimits

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


_Listing = Callable[[Path], list[os.DirEntry[str]]]


@dataclass(frozen=True, slots=True)
class SandboxLayer:
    """One layer; `note` says what it prevents, or why it is missing."""

    name: str
    active: bool
    note: str


def sandbox_layers(mode: Mode = "auto", image: str = IMAGE) -> tuple[SandboxLayer, ...]:
    """Return the layers that would confine code here, in this mode. Only checks; changes nothing."""
    if mode == "container":
        program = engine()
        missing = "needs Linux or macOS" if os.name != "posix" else explain_missing_image(program, image)
        held = f"{program}, image {image}: no network, no other files, no capabilities; memory, processors, processes"
        return (
            _layer("container", missing, held),
            _layer("limits", missing, "memory, threads, open files, disk, output, time"),
        )
    no_posix = "" if os.name == "posix" else "needs Linux or macOS"
    no_linux = "" if sys.platform == "linux" else "needs Linux"
    off = "switched off: sandbox is 'off'" if mode == "off" else ""
    less = off or ("switched off: sandbox is 'process'" if mode == "process" else "")
    return (
        _layer("process", no_posix, "own process and session, clean environment, closed descriptors"),
        _layer("limits", off or no_posix, "memory, threads, open files, disk, output, time"),
        _layer("privileges", off or no_linux, "no new privileges, capabilities dropped, ends when hira ends"),
        _layer("landlock", less or missing_landlock(), f"files (ABI {landlock_version()})"),
        _layer("seccomp", less or seccomp.missing(), "no network, no other programs, no signals to others"),
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


def readable_paths(paths: Iterable[Path], closed: Collection[Path] = ()) -> tuple[list[str], list[str]]:
    """Return the paths to open and those only to list, so that these files and folders can be read without private or
    `closed` entries.

    A folder that holds hidden entries (`.env`, `.git`), files of keys, dependencies, an evaluation, a closed path or
    the home folder, at any depth, is opened entry by entry, and then no link in it is followed: otherwise the folder's
    creator would choose what is opened.
    """
    opened: list[str] = []
    listed: list[str] = []
    home, shut, inside = _home(), frozenset(closed), cache(_list_folder)
    for path in paths:
        if not shut.isdisjoint((path, *path.parents)):
            continue
        divided = _find_divided(path, home, shut, inside)
        pending = [path]
        while pending:
            place = pending.pop()
            if place not in divided:
                opened.append(str(place))
                continue
            listed.append(str(place))
            pending += [place / entry.name for entry in inside(place) if not _private(entry, shut, inside)]
    return opened, listed


def _find_divided(path: Path, home: Path, closed: frozenset[Path], inside: _Listing) -> set[Path]:
    """Return the folders from `path` on down that cannot be opened as a whole."""
    divided: set[Path] = set()
    folders = [path]
    for folder in folders:  # grows during the loop: parents precede their children
        entries = inside(folder)
        if home.is_relative_to(folder) or any(_private(entry, closed, inside) for entry in entries):
            divided.update(parent for parent in (folder, *folder.parents) if parent.is_relative_to(path))
        folders += [
            folder / entry.name for entry in entries if _is_folder(entry) and not _private(entry, closed, inside)
        ]
    return divided


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a user without a name, as in many containers
        return Path("/nonexistent")


def _private(entry: os.DirEntry[str], closed: frozenset[Path], inside: _Listing) -> bool:
    """Return whether an entry of a folder stays closed: it is hidden, a link, dependencies, an evaluation, one of the
    closed paths, or usually holds keys."""
    path = Path(entry.path)
    if entry.name.startswith(".") or entry.is_symlink() or path in closed:
        return True
    if _is_folder(entry):
        return entry.name in FOLDERS or is_evaluation([entry.name for entry in inside(path)])
    return holds_keys(entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _list_folder(path: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, none if it cannot be listed."""
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:
        return []


def _layer(name: str, missing: str, holds: str) -> SandboxLayer:
    return SandboxLayer(name, not missing, missing or holds)
