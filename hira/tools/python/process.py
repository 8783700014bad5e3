"""The parent's side of one interpreter: start it, configure it, talk to it, stop it for good."""

import asyncio
import contextlib
import csv
import io
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hira.tools.python.container import Container, engine
from hira.tools.python.frames import ANSWER, LENGTH, pack_frame
from hira.tools.python.layers import Mode, PythonLimits
from hira.tools.python.usage import ClippedOutput

# A package of that name represents this folder, so that the worker imports its own modules and nothing of hira. Python
# runs with -S: the worker itself loads `site` once the channel is out of reach of what the user's `.pth` files print.
BOOT = """
import sys, types
package = types.ModuleType("hira_sandbox")
package.__path__ = [sys.argv[1]]
sys.modules["hira_sandbox"] = package
from hira_sandbox.worker import main
main(int(sys.argv[2]))
"""
WORKER = "/hira_sandbox"
"""The folder of the worker's modules in the container."""
FLAGS = ("-S", "-s", "-P", "-B", "-X", "utf8")
"""Options of every interpreter."""
_PROCESSOR = 3600
"""The most seconds of processor time: ends a container whose hira was killed in the middle of a call."""
_LINUX = sys.platform == "linux"
_PIPE = 1 << 20
_CHUNK = 1 << 16
_REAP = 30.0
_SOON, _SLOW = 0.001, 0.05
_MARK = "HIRA_SANDBOX"
_SWEEPS = 20
_CONFIGURED = 30.0
_STRAY = 64  # frames without a call: code that found the channel can send some


class InterpreterEnded(Exception):
    """The interpreter has ended or cannot be used; the text, which may be empty, says why."""


class Late(InterpreterEnded):
    """A new interpreter has not answered in time."""


@dataclass(slots=True)
class Interpreter:
    """One running interpreter."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    pipe: int
    kept: int
    """Bytes of a call's output that are kept."""
    mark: str = ""
    """Set if it may start programs: each has the mark in its environment."""
    container: Container | None = None
    """The process is then the engine's own, which passes signals on."""
    output: ClippedOutput = field(init=False)

    def __post_init__(self) -> None:
        self.output = ClippedOutput(self.kept // 2)
        asyncio.get_running_loop().add_reader(self.pipe, self._drain)

    async def configure(
        self, mode: Mode, folder: Path, opened: list[str], listed: list[str], limits: PythonLimits
    ) -> tuple[str, ...]:
        """Send a new interpreter its permissions; return the layers that it names. Raises `InterpreterEnded`."""
        setup = {
            "id": secrets.token_hex(8),
            "mode": mode,
            "folder": str(folder),
            "read": opened,
            "list": listed,
            "limits": asdict(limits),
        }
        try:
            async with asyncio.timeout(_CONFIGURED):
                answer = await self.ask(setup)
        except TimeoutError:
            raise Late(f"it did not answer within {_CONFIGURED:g} seconds") from None
        if "failed" in answer:
            raise InterpreterEnded(f"it could not be confined: {answer['failed']}")
        layers = tuple(answer["layers"])
        if mode == "auto" and not {"landlock", "seccomp"} <= {*layers}:
            raise InterpreterEnded("it is not confined")
        self.take_printed()  # by the user's `.pth` files and sitecustomize, not by code of a call
        return layers

    async def ask(self, frame: dict[str, Any]) -> dict[str, Any]:
        """Send the frame and wait for the first answer that carries its id. Raises `InterpreterEnded`."""
        try:
            await asyncio.get_running_loop().sock_sendall(self.channel, pack_frame(frame))
        except OSError:
            raise InterpreterEnded from None
        return await self.answer(frame["id"])

    async def answer(self, mark: str) -> dict[str, Any]:
        """Wait for the next answer that carries this id. Raises `InterpreterEnded`."""
        try:
            for _ in range(_STRAY):
                (size,) = LENGTH.unpack(await self._exactly(LENGTH.size))
                if size > ANSWER:
                    break
                answer = json.loads(await self._exactly(size))
                if isinstance(answer, dict) and answer.get("id") == mark:
                    return answer
        except OSError:
            raise InterpreterEnded from None
        except (ValueError, RecursionError):
            pass
        raise InterpreterEnded("what it sent could not be read")

    async def _exactly(self, size: int) -> bytes:
        loop, got = asyncio.get_running_loop(), bytearray()
        while len(got) < size:
            chunk = await loop.sock_recv(self.channel, min(size - len(got), _CHUNK))
            if not chunk:
                raise InterpreterEnded
            got += chunk
        return bytes(got)

    def _drain(self, most: int = 16) -> None:
        """Read the content of the pipe, at most `most` chunks, so that a flood does not block the loop."""
        for _ in range(most):
            try:
                chunk = os.read(self.pipe, _CHUNK)
            except BlockingIOError:
                return
            if not chunk:
                asyncio.get_running_loop().remove_reader(self.pipe)
                return
            self.output.add(chunk)

    def take_printed(self) -> str:
        """Return the text printed since the last time; later text belongs to the next call."""
        self._drain(2 * _PIPE // _CHUNK)
        text = self.output.text
        self.output = ClippedOutput(self.kept // 2)
        return text

    @property
    def alive(self) -> bool:
        """True if the other end of the channel is still open and silent, as between two calls. Nothing asks the system
        before `kill`, because reaping the process releases its number, and a later signal could hit another process."""
        try:
            self.channel.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    @property
    def seen(self) -> int:
        """The number of the process whose usage is visible from here, 0 in a container."""
        return 0 if self.container else self.process.pid

    def freeze(self) -> None:
        """Stop the process between two calls, so that no left-over thread uses the processor or replaces a file."""
        if _LINUX and not self.container:
            self.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        if _LINUX and not self.container:
            self.send_signal(signal.SIGCONT)

    def send_signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.process.pid, number)

    def kill(self) -> "asyncio.Future[int]":
        """Kill the interpreter and everything that it started; the future has its exit status. Never waits."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.send_signal(signal.SIGKILL)
        return asyncio.ensure_future(self._reap(asyncio.get_running_loop()))

    async def _reap(self, loop: asyncio.AbstractEventLoop) -> int:
        """Poll instead of waiting in a thread, because that could be one thread too many."""
        until, pause = loop.time() + _REAP, _SOON
        try:
            while (status := self.process.poll()) is None and loop.time() < until:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _SLOW)
            if status is None:
                status = -signal.SIGKILL
            elif self.container:
                await asyncio.to_thread(self.container.remove)
            elif self.mark:
                await asyncio.to_thread(kill_marked, self.mark)
        finally:
            loop.remove_reader(self.pipe)
            self._drain(2 * _PIPE // _CHUNK)
            os.close(self.pipe)
            self.channel.close()
        return status


def spawn(folder: Path, readable: Sequence[str], limits: PythonLimits, mode: Mode, image: str) -> Interpreter:
    """Start an interpreter with a clean environment and no descriptor but its own end of the channel; in a container,
    it can read the `readable` paths and write into the folder.

    Not `-I`: that would ignore PYTHONHASHSEED, which makes sets print in the same order in every replay. `-P -s` and an
    environment without the caller's variables keep out the same.
    """
    if mode == "container":
        container = Container(engine(), f"hira-{secrets.token_hex(8)}")
        process, channel, pipe = _start(command(container, image, folder, readable, limits))
        return Interpreter(process, channel, pipe, limits.output, container=container)
    mark = "" if mode == "auto" else secrets.token_hex(8)  # in this mode it cannot start other programs
    python = [sys.executable, *FLAGS, "-c", BOOT, str(Path(__file__).parent), str(os.getpid())]
    environ = environment(folder) | ({_MARK: mark} if mark else {})
    process, channel, pipe = _start(python, cwd=folder, env=environ)
    return Interpreter(process, channel, pipe, limits.output, mark=mark)


def command(container: Container, image: str, folder: Path, readable: Iterable[str], limits: PythonLimits) -> list[str]:
    """Return the command that starts the container with the worker in it. The image has to exist already.

    The user's own number is kept, so that the folder is writable and new files belong to the user.
    """
    podman = Path(container.engine).name.startswith("podman")
    mounts = [(str(Path(__file__).parent), WORKER, True), (str(folder), str(folder), False)]
    mounts += [(path, path, True) for path in readable]
    mounted: list[str] = []
    for source, target, closed in mounts:  # a line of comma-separated values, quoted if a path requires it
        line = io.StringIO()
        fields = ["type=bind", f"source={source}", f"target={target}", *(["readonly"] if closed else [])]
        csv.writer(line, lineterminator="").writerow(fields)
        mounted += ["--mount", line.getvalue()]
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
        *(part for name, value in environment(folder).items() for part in ("--env", f"{name}={value}")),
        *mounted,
        *(image, "python3", *FLAGS, "-c", BOOT, WORKER, "0"),
    ]


def _start(called: Sequence[str], **where: Any) -> tuple["subprocess.Popen[bytes]", socket.socket, int]:
    """Start a program on one end of a channel, its errors in a pipe. Return the process, the other end, the pipe."""
    with contextlib.ExitStack() as unless_started:
        ours, theirs = socket.socketpair()
        unless_started.callback(ours.close)
        with theirs:
            read, write = os.pipe()
            unless_started.callback(os.close, read)
            try:
                process = subprocess.Popen(  # noqa: S603 - our own program or the user's engine, no shell
                    called, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=write, start_new_session=True, **where
                )
            finally:
                os.close(write)
        unless_started.pop_all()
    ours.setblocking(False)  # noqa: FBT003 - the standard library takes it by position only
    os.set_blocking(read, False)
    if _LINUX:
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(read, fcntl.F_SETPIPE_SZ, _PIPE)
    return process, ours, read


def environment(folder: Path) -> dict[str, str]:
    """Return the whole environment of the code. It has none of the caller's variables, because these hold keys."""
    libraries = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA", "RAYON", "VECLIB")
    threads = {f"{name}_NUM_THREADS": "2" for name in libraries} | {"POLARS_MAX_THREADS": "2"}
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "HOME": str(folder),
        "USER": "hira",
        "LOGNAME": "hira",
        "TMPDIR": str(folder / ".tmp"),
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": str(folder / ".matplotlib"),
        "PYTHONHASHSEED": "0",
        **threads,
    }


def kill_marked(mark: str) -> None:
    """Kill the programs that carry this mark in their environment: they left the interpreter's session. Linux only."""
    wanted = f"{_MARK}={mark}".encode()
    for _ in range(_SWEEPS):  # a program may have started another one before it was killed
        has_marked = False
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended, or is another user's
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    os.kill(int(entry.name), signal.SIGKILL)
                    has_marked = True
        if not has_marked:
            return
        time.sleep(_SLOW)
