"""Functions called in a child process with limits, so that a hostile text can fail only its own reading and never
blocks the event loop.

A thread would share the interpreter with the loop, which then waits for it at every call that lets threads run. One
child serves its owner for its lifetime and is restarted after a call that broke a limit. It gets JSON and replies in
JSON, which is checked against the function's types, so that none of its output runs here. A file reaches it as an open
descriptor, so that the file that was checked is the file that is read.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from itertools import count
from pathlib import Path
from queue import PriorityQueue
from typing import IO, TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from hira.core.errors import HiraError, WorkerError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")
_Waiting = tuple[int, int, "Future[Any]", Callable[[], Any]]

_LOOK_EVERY = 0.2
"""Seconds between checks that a waiting call should end."""
_NICE = 5
"""The child yields to the process whose event loop it relieves."""
# Python runs with -S: `site` is loaded once replies have a descriptor that the user's `.pth` files do not print to.
_START = (
    "import os, site, sys; replies = os.dup(1); os.dup2(2, 1); site.main(); sys.stdout.flush()\n"
    "from hira.core.child import main; main(replies)"
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
TEXTS = WorkerLimits(memory=1 << 30)
"""Of texts of pages and sources, which are shorter than files."""


class OutOfTime(WorkerError):
    """The call was given less time than the limits allow, and that time is over."""


class Worker:
    """Calls functions in one child process, one call at a time. `close` may be called from another thread."""

    def __init__(self, limits: WorkerLimits = LIMITS) -> None:
        self.limits = limits
        self._turn = threading.Lock()
        # a separate thread, so that waiting callers do not occupy one that others need
        self._line = ThreadPoolExecutor(1, "hira worker")
        self._waiting: PriorityQueue[_Waiting] = PriorityQueue()
        self._numbers = count()
        self._child: _Child | None = None
        self._owner = 0
        self._ended: threading.Event | None = None
        self._users = 0
        self._counting = threading.Lock()

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a module's function by position and return its result. Blocking.

        Raises the `HiraError` that the function raises, and `WorkerError` if the child ended or broke a limit.
        """
        result: T = self._collect(_Call(function, arguments))[0]
        return result

    def collect(
        self,
        function: Callable[..., Iterator[T]],
        *arguments: Any,
        handle: int,
        seconds: float | None = None,
        ended: threading.Event | None = None,
    ) -> list[T]:
        """Call a generator function with a descriptor, then the arguments, and return everything that it yields.

        Each item is sent and checked alone, so that a long result does not hold up the other threads. The call ends
        with `OutOfTime` after `seconds`, if these are fewer than the limits allow, and as soon as `end` is called with
        the event `ended`.
        """
        return self._collect(_Call(function, arguments, handle, seconds), ended)

    async def run(self, size: int, function: Callable[..., T], *arguments: Any) -> T:
        """Do the same as `call`, without blocking the event loop. Of the calls that wait, the one with the smallest
        text is next, so that large pages do not hold up a small one."""
        result: Future[T] = Future()
        self._waiting.put((size, next(self._numbers), result, partial(self.call, function, *arguments)))
        self._line.submit(self._work)
        return await asyncio.wrap_future(result)

    def _work(self) -> None:
        _, _, result, work = self._waiting.get()
        if result.set_running_or_notify_cancel():
            try:
                result.set_result(work())
            except BaseException as error:  # noqa: BLE001 - it is raised where the result is awaited
                result.set_exception(error)

    def end(self, ended: threading.Event) -> None:
        """End the call with this event, whether it waits or runs, and no other call."""
        ended.set()
        child = self._child
        if child and self._ended is ended:
            child.process.kill()

    def use(self) -> None:
        """Keep the child until `release`, which ends it with its last user."""
        with self._counting:
            self._users += 1

    def release(self) -> None:
        with self._counting:
            self._users -= 1
            if not self._users:
                self.close()

    def close(self) -> None:
        """End the child; a call in progress ends with a `WorkerError`."""
        child, self._child = self._child, None
        if child and self._owner == os.getpid():
            child.end()
        self._line.shutdown(wait=False)

    def _collect(self, call: "_Call", ended: threading.Event | None = None) -> list[Any]:
        _, returned = _adapters(call.function, by_handle=call.handle is not None)
        began = time.monotonic()
        while not self._turn.acquire(timeout=_LOOK_EVERY):
            if ended and ended.is_set():
                raise WorkerError("reading was ended")
            if call.seconds and time.monotonic() - began > call.seconds:
                raise OutOfTime(f"it took more than {call.seconds:g} seconds, with the wait for other files")
        try:
            self._ended = ended
            return [returned.validate_json(line) for line in self._ask(call, began)]
        finally:
            self._ended = None
            self._turn.release()

    def _find_child(self, call: "_Call", began: float) -> tuple["_Child", float]:
        """Return the child, which starts with its first call, and when the time of the call began."""
        child = self._child
        # a fork leaves the child to the parent, and the kernel may have ended one that waited
        if child and self._owner == os.getpid() and child.process.poll() is None:
            return child, began
        if child and self._owner == os.getpid():
            child.end()
        child, self._owner = _start(self.limits), os.getpid()
        self._child = child
        if self._ended and self._ended.is_set():  # while it started, there was no child to kill
            self._child = None
            child.end()
            raise WorkerError("reading was ended")
        if call.seconds:  # on a busy machine, starting the child may take longer than the limit for a small file
            self._ask(_Call(prepare, (call.function.__module__,)), began)
            began = time.monotonic()
        return child, began

    def _ask(self, call: "_Call", began: float) -> list[bytes]:
        """Return the lines of the reply. `call.seconds` include the wait for the other calls."""
        child, began = self._find_child(call, began)
        short = call.seconds is not None and call.seconds < self.limits.wall_seconds
        seconds = call.seconds + began - time.monotonic() if call.seconds and short else self.limits.wall_seconds
        request = call.encode(self.limits.cpu_seconds)
        late = threading.Timer(max(seconds, 0.0), child.process.kill)
        late.start()
        lines, kind, size = list[bytes](), b"", 0
        try:
            child.send(request, call.handle)
            while size < self.limits.output and (line := child.replies.readline(self.limits.output - size)):
                size += len(line)
                kind = line[:1] if line.endswith(b"\n") else b""
                if kind != b"+":
                    break
                lines.append(line[1:])
        except (OSError, ValueError):  # the last user may close the pipes at any moment
            kind = b""
        finally:
            late.cancel()
        if kind == b".":
            return lines
        if kind == b"!":
            name, what = json.loads(line[1:])
            raise _error(name)(what)
        self._child = None
        why = child.explain_end(self.limits, overlong=size >= self.limits.output)
        if short and time.monotonic() - began >= (call.seconds or 0.0):
            raise OutOfTime(f"it took more than {call.seconds:g} seconds")
        raise WorkerError(why)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a function. With a descriptor (`handle`), the function gets it first, and yields its results."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    handle: int | None = None
    seconds: float | None = None

    def encode(self, cpu_seconds: int) -> bytes:
        """Return the request: a line with the function, its seconds and whether a descriptor comes; its arguments."""
        given, _ = _adapters(self.function, by_handle=self.handle is not None)
        seconds = min(cpu_seconds, int(self.seconds or cpu_seconds) + 1)
        named = f"{self.function.__module__}:{self.function.__qualname__} {seconds} {int(self.handle is not None)}\n"
        return named.encode() + given.dump_json(self.arguments) + b"\n"


@dataclass(frozen=True, slots=True)
class _Child:
    """The process, and the socket that descriptors are sent through."""

    process: subprocess.Popen[bytes]
    handles: socket.socket

    @property
    def replies(self) -> IO[bytes]:
        assert self.process.stdout  # noqa: S101 - a pipe
        return self.process.stdout

    def send(self, request: bytes, handle: int | None) -> None:
        assert self.process.stdin  # noqa: S101 - a pipe
        if handle is not None:
            socket.send_fds(self.handles, [b"f"], [handle])
        self.process.stdin.write(request)
        self.process.stdin.flush()

    def end(self) -> None:
        self.handles.close()
        with suppress(OSError), self.process:  # unwritten requests are lost
            self.process.kill()

    def explain_end(self, limits: WorkerLimits, *, overlong: bool) -> str:
        """Explain why the child gave no complete reply; it has ended afterwards."""
        if overlong:
            self.process.kill()
        self.process.wait()
        self.end()
        if overlong:
            return f"it holds more than {limits.output / 2**20:g} MB of text"
        if sys.platform != "win32":
            import signal

            if self.process.returncode == -signal.SIGXCPU:
                return f"it needs more than {limits.cpu_seconds} seconds to parse"
            if self.process.returncode == -signal.SIGKILL:
                return f"it took more than {limits.wall_seconds:g} seconds, or reading was ended"
        return f"its parser failed (exit status {self.process.returncode})"


@cache
def open_worker(limits: WorkerLimits) -> Worker:
    """Return the worker of this process with these limits: one for texts of pages and sources, and one for files."""
    return Worker(limits)


@cache
def _adapters(function: Callable[..., Any], *, by_handle: bool) -> "tuple[TypeAdapter[Any], TypeAdapter[Any]]":
    """Return the adapters that convert the arguments and the result, by the function's annotations.

    A function that gets a descriptor has it as its first argument, and yields its results.
    """
    from pydantic import TypeAdapter

    hints = get_type_hints(function)
    returned = hints.pop("return")
    types = list(hints.values())
    if by_handle:
        types, returned = types[1:], get_args(returned)[0]
    in_turn: Any = tuple
    return TypeAdapter(in_turn[tuple(types)] if types else tuple[()]), TypeAdapter(returned)


def _error(kind: str) -> type[HiraError]:
    """Return the class of hira's own errors with this name, `WorkerError` for any other name."""
    waiting: list[type[HiraError]] = [HiraError]
    while waiting:
        error_type = waiting.pop()
        if error_type.__name__ == kind:
            return error_type
        waiting += error_type.__subclasses__()
    return WorkerError


def _start(limits: WorkerLimits) -> _Child:
    """Start a child with none of the parent's variables, so that it gets no keys."""
    home = str(Path(__file__).parent.parent.parent)
    ours, theirs = socket.socketpair()
    try:
        process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-S", "-P", "-c", _START, str(limits.memory), str(theirs.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**{name: os.environ[name] for name in _KEPT if name in os.environ}, "PYTHONPATH": home},
            pass_fds=(theirs.fileno(),),
        )
    except OSError as error:
        ours.close()
        raise WorkerError(f"no process could be started: {error.strerror or error}") from None
    finally:
        theirs.close()
    return _Child(process, ours)


def prepare(module: str) -> bool:
    """Load what a later call needs. Runs in the child."""
    import_module(module)
    return True


def main(descriptor: int) -> None:
    """Answer calls, each with lines on this descriptor, until the parent closes the pipe."""
    replies = os.fdopen(descriptor, "wb")
    memory, handles = map(int, sys.argv[1:])
    _limit("RLIMIT_AS", memory)
    _limit("RLIMIT_CORE", 0)  # no core file when it breaks a limit
    if sys.platform != "win32":
        os.nice(_NICE)
    with socket.socket(fileno=handles) as source:
        while header := sys.stdin.buffer.readline().decode().split():
            name, seconds, by_handle = header
            _limit("RLIMIT_CPU", int(time.process_time()) + int(seconds) + 1)  # in addition to the earlier calls' time
            handle = socket.recv_fds(source, 1, 1)[1][0] if by_handle == "1" else None
            try:
                replies.writelines(_answer(name, sys.stdin.buffer.readline(), handle))
            finally:
                if handle is not None:
                    os.close(handle)
            replies.flush()


def _answer(name: str, arguments: bytes, handle: int | None) -> Iterator[bytes]:
    """Yield the reply to one call: a line of JSON for each result and ".", or the error that the call raised."""
    from pydantic_core import PydanticSerializationError

    module, _, function = name.partition(":")
    try:
        called = getattr(import_module(module), function)
        given, returned = _adapters(called, by_handle=handle is not None)
        values = given.validate_json(arguments)
        for result in (called(*values),) if handle is None else called(handle, *values):
            yield b"+" + returned.dump_json(result) + b"\n"
    except HiraError as error:
        yield _refusal(type(error), error.what)
    except MemoryError:
        yield _refusal(WorkerError, "there is not enough memory for its text")
    except (RecursionError, PydanticSerializationError) as error:
        yield _refusal(WorkerError, f"it cannot be read ({type(error).__name__})")
    else:
        yield b".\n"


def _refusal(kind: type[HiraError], what: str) -> bytes:
    return b"!" + json.dumps([kind.__name__, what]).encode() + b"\n"


def _limit(name: str, most: int) -> None:
    """Limit a resource of this process, at most to what it may have anyway."""
    if sys.platform != "win32":
        import resource

        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
