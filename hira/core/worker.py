"""Functions called in a child process with limits, so that a hostile text can fail only its own reading and never
blocks the event loop.

A thread would share the interpreter with the loop, which then waits for it at every call that lets threads run. One
child serves its owner for its lifetime and is restarted after a call that broke a limit. It gets JSON and replies in
JSON, which is checked against the function's types, so that none of its output runs here.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, get_type_hints

from hira.core.errors import HiraError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")

TINY, SMALL, LARGE = 4_000, 50_000, 20_000_000
"""Characters. Texts with fewer than the first run at once, because passing them on takes longer. Texts with fewer than
the second run in a thread, which is faster than sending them to a child, and so do texts with more than the third,
because sending them would block the loop."""
_NICE = 5
"""The child yields to the process whose event loop it relieves."""
# Python runs with -S: `site` is loaded once replies have a descriptor that the user's `.pth` files do not print to.
_START = (
    "import os, site, sys; replies = os.dup(1); os.dup2(2, 1); site.main(); sys.stdout.flush()\n"
    "from hira.core.worker import main; main(replies)"
)
_KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR")


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Limits of one call.

    `cpu_seconds` of processor time are counted by the kernel, which then ends the child; `wall_seconds` pass however
    little it computes, for example while a file on a network drive hangs. `memory` is the child's address space and
    `output` its reply, in bytes.
    """

    cpu_seconds: int = 60
    wall_seconds: float = 180.0
    memory: int = 2 << 30
    output: int = 100 << 20


LIMITS = WorkerLimits()


class WorkerError(HiraError):
    """The call broke a limit or the child."""


class Worker:
    """Calls functions in one child process, one call at a time. `close` may be called from another thread."""

    def __init__(self, limits: WorkerLimits = LIMITS) -> None:
        self.limits = limits
        self._turn = threading.Lock()
        # a separate thread, so that waiting callers do not occupy one that others need
        self._line = ThreadPoolExecutor(1, "hira worker")
        self._child: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a module's function by position and return its result. Blocking.

        Raises the `HiraError` that the function raises, and `WorkerError` if the child ended or broke a limit.
        """
        given, returned = _adapters(function)
        named = f"{function.__module__}:{function.__qualname__}\n".encode()
        request = named + given.dump_json(arguments) + b"\n"
        with self._turn:
            reply = self._ask(request)
        if reply.startswith(b"!"):
            kind, what = json.loads(reply[1:])
            raise _error(kind)(what)
        result: T = returned.validate_json(reply)
        return result

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Do the same as `call`, without blocking the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._line, partial(self.call, function, *arguments))

    def close(self) -> None:
        """End the child; a call in progress ends with a `WorkerError`."""
        child, self._child = self._child, None
        if child and self._owner == os.getpid():
            _end(child)
        self._line.shutdown(wait=False)

    def _ask(self, request: bytes) -> bytes:
        if self._child is None or self._owner != os.getpid():  # a fork leaves the child to the parent
            self._child, self._owner = _start(self.limits), os.getpid()
        child = self._child
        assert child.stdin  # noqa: S101 - a pipe
        assert child.stdout  # noqa: S101 - likewise
        late = threading.Timer(self.limits.wall_seconds, child.kill)
        late.start()
        try:
            child.stdin.write(request)
            child.stdin.flush()
            line = child.stdout.readline(self.limits.output)
        except OSError:
            line = b""
        finally:
            late.cancel()
        if line.endswith(b"\n"):
            return line
        self._child = None
        raise WorkerError(_explain_end(child, line, self.limits))


@cache
def open_shared_worker() -> Worker:
    """Return the worker of this process for texts of pages and sources."""
    return Worker()


async def run_apart(size: int, function: Callable[..., T], *arguments: Any) -> T:
    """Run the function in the best place for a text of that size: here, in the shared worker, or in a thread."""
    if size < TINY:
        await asyncio.sleep(0)  # here it can be cancelled, as in the other cases
        return function(*arguments)
    if not SMALL < size <= LARGE:
        return await asyncio.to_thread(function, *arguments)
    return await open_shared_worker().run(function, *arguments)


@cache
def _adapters(function: Callable[..., Any]) -> "tuple[TypeAdapter[Any], TypeAdapter[Any]]":
    """Return the adapters that convert the arguments and the result, by the function's annotations."""
    from pydantic import TypeAdapter

    hints = get_type_hints(function)
    returned = hints.pop("return")
    in_turn: Any = tuple
    return TypeAdapter(in_turn[tuple(hints.values())]), TypeAdapter(returned)


def _error(kind: str) -> type[HiraError]:
    """Return the class of hira's own errors with this name, `WorkerError` for any other name."""
    waiting: list[type[HiraError]] = [HiraError]
    while waiting:
        one = waiting.pop()
        if one.__name__ == kind:
            return one
        waiting += one.__subclasses__()
    return WorkerError


def _start(limits: WorkerLimits) -> subprocess.Popen[bytes]:
    """Start a child with none of the parent's variables, so that it gets no keys."""
    home = str(Path(__file__).parent.parent.parent)
    try:
        return subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-S", "-P", "-c", _START, str(limits.cpu_seconds), str(limits.memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**{name: os.environ[name] for name in _KEPT if name in os.environ}, "PYTHONPATH": home},
        )
    except OSError as error:
        raise WorkerError(f"no process could be started: {error.strerror or error}") from None


def _end(child: subprocess.Popen[bytes]) -> None:
    with suppress(OSError), child:  # unwritten requests are lost
        child.kill()


def _explain_end(child: subprocess.Popen[bytes], said: bytes, limits: WorkerLimits) -> str:
    """Explain why a child gave no complete reply; the child has ended afterwards."""
    if overlong := len(said) >= limits.output:
        child.kill()
    child.wait()
    _end(child)
    if overlong:
        return f"it holds more than {limits.output / 2**20:g} MB of text"
    if sys.platform != "win32":
        import signal

        if child.returncode == -signal.SIGXCPU:
            return f"it needs more than {limits.cpu_seconds} seconds to parse"
        if child.returncode == -signal.SIGKILL:
            return f"it took more than {limits.wall_seconds:g} seconds, or reading was ended"
    return f"its parser failed (exit status {child.returncode})"


def main(descriptor: int) -> None:
    """Answer calls, each with a line on this descriptor, until the parent closes the pipe."""
    replies = os.fdopen(descriptor, "wb")
    cpu_seconds, memory = map(int, sys.argv[1:])
    _limit_memory(memory)
    if sys.platform != "win32":
        os.nice(_NICE)
    while name := sys.stdin.buffer.readline().decode().strip():
        _allow_seconds(cpu_seconds)
        replies.write(_answer(name, sys.stdin.buffer.readline()))
        replies.flush()


def _answer(name: str, arguments: bytes) -> bytes:
    """Return the reply to one call: a line of JSON, or the error that the call raised."""
    from pydantic_core import PydanticSerializationError

    module, _, function = name.partition(":")
    try:
        called = getattr(import_module(module), function)
        given, returned = _adapters(called)
        reply: bytes = returned.dump_json(called(*given.validate_json(arguments)))
    except HiraError as error:
        return _refusal(type(error), error.what)
    except MemoryError:
        return _refusal(WorkerError, "there is not enough memory for its text")
    except (RecursionError, PydanticSerializationError) as error:
        return _refusal(WorkerError, f"it cannot be read ({type(error).__name__})")
    return reply + b"\n"


def _refusal(kind: type[HiraError], what: str) -> bytes:
    return b"!" + json.dumps([kind.__name__, what]).encode() + b"\n"


def _limit_memory(memory: int) -> None:
    """Limit the memory of this process; it writes no core file when it breaks a limit."""
    if sys.platform != "win32":
        import resource

        for kind, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
            _, hard = resource.getrlimit(kind)
            resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _allow_seconds(seconds: int) -> None:
    """Let the next call take `seconds` of processor time, in addition to the time of the earlier ones."""
    if sys.platform != "win32":
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        most = int(time.process_time()) + seconds + 1
        resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
