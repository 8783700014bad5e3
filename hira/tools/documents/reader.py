"""Files are parsed in a child process with limits, so that a hostile file costs its own reading and nothing else.

Plain text needs no parser and is read at once. For everything else one child serves a whole folder; it has bounds of
processor time, wall time, memory and output for each file, and is started again after a file that broke it.
"""

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import hira
from hira.core.errors import ToolError
from hira.tools.documents.document import Document, Lacking, NoText, Part
from hira.tools.documents.parse import LIMIT, check_readable, is_plain, parse_file


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """What parsing one file may take.

    `cpu_seconds` of processor time are counted by the kernel, which ends the child after them; `wall_seconds` pass
    however little it computes, such as for a file on a network drive that hangs. `memory` is the child's address
    space and `text` its reply, in bytes.
    """

    cpu_seconds: int = 60
    wall_seconds: float = 180.0
    memory: int = 2 << 30
    text: int = 100 << 20


_ERRORS = {"NoText": NoText, "Lacking": Lacking}
_START = "from hira.tools.documents.child import main; main()"


class FileReader:
    """Reads files of any kind. Methods block, so call them in a thread; `close` may be called from another one."""

    def __init__(self, limits: ReadingLimits = ReadingLimits()) -> None:
        self.limits = limits
        self._turn = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, path: Path, *, limit: int = LIMIT) -> Document:
        """Read a file of at most `limit` bytes. Raises `ToolError` with one line that says why it cannot be read."""
        if is_plain(path):
            return parse_file(path, limit=limit)
        check_readable(path)
        with self._turn:
            reply = self._ask(path, limit)
        if "error" in reply:
            raise _ERRORS.get(reply["kind"], ToolError)(reply["error"])
        return Document(path, reply["title"], tuple(Part(**part) for part in reply["parts"]))

    def close(self) -> None:
        """End the child; a file that is being read ends with a `ToolError`."""
        child, self._child = self._child, None
        if child:
            _end_child(child)

    def _ask(self, path: Path, limit: int) -> dict[str, Any]:
        child = self._child
        if child is None:
            child = self._child = _start_child(self.limits)
        assert child.stdin  # noqa: S101 - a pipe
        assert child.stdout  # noqa: S101 - likewise
        late = threading.Timer(self.limits.wall_seconds, child.kill)
        late.start()
        try:
            child.stdin.write(json.dumps({"path": str(path.absolute()), "limit": limit}).encode() + b"\n")
            child.stdin.flush()
            line = child.stdout.readline(self.limits.text)
        except OSError:
            line = b""
        finally:
            late.cancel()
        if line.endswith(b"\n"):
            reply: dict[str, Any] = json.loads(line)
            return reply
        self._child = None
        raise ToolError(f"{path.name} is not read: {_explain_end(child, line, self.limits)}")


def read_file(path: Path, *, limit: int = LIMIT) -> Document:
    """Read one file as `FileReader.read` does. Blocking."""
    with FileReader() as reader:
        return reader.read(path, limit=limit)


def _start_child(limits: ReadingLimits) -> subprocess.Popen[bytes]:
    """A child that knows none of the parent's variables, keys least of all."""
    home = str(Path(hira.__file__).parent.parent)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR") if name in os.environ}
    try:
        return subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-P", "-c", _START, str(limits.cpu_seconds), str(limits.memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**kept, "PYTHONPATH": home},
        )
    except OSError as error:
        raise ToolError(f"no process could be started to read files: {error.strerror or error}") from None


def _end_child(child: subprocess.Popen[bytes]) -> None:
    with suppress(OSError), child:  # what was still to be written to it is lost
        child.kill()


def _explain_end(child: subprocess.Popen[bytes], said: bytes, limits: ReadingLimits) -> str:
    """Why a child gave no whole reply; it is gone afterwards."""
    if overlong := len(said) >= limits.text:
        child.kill()
    child.wait()
    _end_child(child)
    if overlong:
        return f"it holds more than {limits.text / 2**20:g} MB of text"
    if sys.platform != "win32":
        import signal

        if child.returncode == -signal.SIGXCPU:
            return f"it needs more than {limits.cpu_seconds} seconds to parse"
        if child.returncode == -signal.SIGKILL:
            return f"it took more than {limits.wall_seconds:g} seconds, or reading was ended"
    return f"its parser failed (exit status {child.returncode})"
