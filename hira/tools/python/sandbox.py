"""A Python session for one subtask: it runs code, and returns its output, values and files."""

import asyncio
import errno
import os
import secrets
import signal
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, ParamSpec, Self, TypeVar

from hira.core.errors import SCARCE, ToolDown
from hira.core.sanitize import printable
from hira.tools.file_kinds import FOLDERS, holds_keys, holds_records
from hira.tools.python.frames import shorten_text
from hira.tools.python.layers import IMAGE, Mode, PythonLimits, refusal
from hira.tools.python.process import Interpreter, InterpreterEnded, Late, spawn
from hira.tools.python.usage import Workplace, find_broken_limit, size

Status = Literal["ok", "error", "timeout", "limit", "died"]

P = ParamSpec("P")
T = TypeVar("T")

_TAKEN = 10.0
_GRACE = 1.0
_PAUSES = (0.2, 1.0)  # seconds before each further try to start
_LOOK = 0.1
_REST = 10  # checks take at most a tenth of the time
RESTARTED = "Python was restarted: variables are lost."
SPENT = f"This call changed Python itself. {RESTARTED}"
HELD = f"This call kept files open that are deleted. {RESTARTED}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one call."""

    number: int
    status: Status
    output: str = ""
    value: str = ""
    """The value of the last expression."""
    error: str = ""
    """A traceback, or why the code ended."""
    note: str = ""
    """A remark on files that are not in `files`."""
    files: tuple[Path, ...] = ()
    """The files that the call wrote."""
    restarted: bool = False
    """Variables are lost."""

    @property
    def text(self) -> str:
        """Output, value, error and note, as a model sees them."""
        parts = (self.output, self.value, self.error, self.note)
        return "\n".join(part.rstrip("\n") for part in parts if part.strip("\n"))


class PythonSandbox:
    """A warm interpreter with a writable folder, confined as `sandbox_layers` says.

    >>> async with PythonSandbox(folder, readable=(table,), label="2") as sandbox:
    ...     outcome = await sandbox.run("6 * 7")

    `folder` belongs to the code: it may change everything in it. It can also read `readable` files and folders, and the
    folders of `earlier` sessions, except for `closed` and hidden entries in them (`.env`, `.git`), and files of keys.
    The interpreter starts with the first call, lasts as long as the session, and is restarted after a call that had to
    be killed. One call runs at a time.
    """

    def __init__(  # noqa: PLR0913 - three of them say what may be read
        self,
        folder: Path | str,
        *,
        readable: tuple[Path | str, ...] = (),
        closed: tuple[Path, ...] = (),
        earlier: tuple[Path, ...] = (),
        label: str = "",
        sandbox: Mode = "auto",
        image: str = IMAGE,
        limits: PythonLimits = PythonLimits(),  # noqa: B008 - frozen
    ) -> None:
        self.folder = Path(folder).resolve()
        self.readable = tuple(Path(path).resolve() for path in readable)
        self.closed = frozenset(path.expanduser().resolve() for path in closed)
        self.earlier = tuple(path.resolve() for path in earlier)
        self.label = label
        self.mode: Mode = sandbox
        self.image = image
        self.limits = limits
        self.calls = 0
        self.layers: tuple[str, ...] = ()
        self._interpreter: Interpreter | None = None
        self._dying: asyncio.Future[int] | None = None
        self.workplace = Workplace(self.folder, limits, bounded=sandbox != "off")
        self._lock = asyncio.Lock()
        self._hand: ThreadPoolExecutor | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the interpreter and wait for its end. Files stay, except temporary files of libraries."""
        self._discard()
        await self._wait_for_end()
        if self._hand:
            await self._beside(self.workplace.tidy)
            self._hand.shutdown(wait=False)
            self._hand = None

    async def run(self, code: str, *, seconds: float | None = None) -> Outcome:
        """Run the code; never raises for the code's own failures. Raises `ToolDown` if Python cannot run here.

        Cancelling it ends the interpreter.
        """
        async with self._lock:
            try:
                lost = await self._ready()
                self.calls += 1
                interpreter, mark, lost = await self._hand_over(code, lost)
                outcome = await self._call(interpreter, mark, seconds or self.limits.seconds)
            except BaseException:
                self._discard()
                raise
            if lost:
                outcome = replace(outcome, output=f"({lost} {RESTARTED})\n{outcome.output}", restarted=True)
            return outcome

    async def contents(self, paths: Sequence[Path], most: int) -> dict[Path, bytes]:
        """Read at most `most` bytes of each of these files of the session, if readable. Follows no link."""
        async with self._lock:
            return await self._beside(self.workplace.read, paths, most)

    async def _beside(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do this in the session's own thread: other work never delays it, and everything is done in order.

        Once the session has its thread it needs no other, so that code that starts too many cannot block it.
        """
        hand = self._hand = self._hand or ThreadPoolExecutor(1, "hira-python")
        try:
            doing = asyncio.get_running_loop().run_in_executor(hand, lambda: work(*args, **kwargs))
        except RuntimeError as error:
            self._hand = None
            raise OSError(errno.EAGAIN, str(error)) from None
        return await doing

    async def _ready(self) -> str:
        """Make sure that an interpreter waits for code; return what was wrong if another one had to be started."""
        lost = ""
        if self._interpreter:
            if not self._interpreter.alive:
                lost = "Python had ended."
            elif not self.workplace.is_there():
                lost = "The work folder was gone."
            if not lost:
                return ""
            self._discard()
        await self._wait_for_end()
        for pause in (*_PAUSES, None):
            try:
                await self._start()
            except (OSError, InterpreterEnded) as error:
                interpreter = self._interpreter
                self._discard()
                await self._wait_for_end()
                may_pass = isinstance(error, Late) or (isinstance(error, OSError) and error.errno in SCARCE)
                if pause is not None and may_pass:
                    await asyncio.sleep(pause)
                    continue
                last_line = printable(interpreter.output.text.strip().rpartition("\n")[2]) if interpreter else ""
                why = str(error) or last_line or "it ended at once"
                fix = "The machine may be too busy, or out of memory."
                if isinstance(error, OSError):
                    fix = SCARCE.get(error.errno or 0, "")
                raise ToolDown(f"Python could not be started: {why}", fix=fix) from None
            break
        return lost

    async def _hand_over(self, code: str, lost: str) -> tuple[Interpreter, str, str]:
        """Send the code; return its interpreter, the id of its answer, and why variables are lost, if they are.

        An interpreter that does not accept the code has not begun to run it, so another one can: something left over
        from an earlier call has ended or blocks it, or the machine ran out of memory in between.
        """
        for again in (True, False):
            interpreter, mark = self._interpreter, secrets.token_hex(8)
            assert interpreter is not None  # noqa: S101 - _ready() has started it
            interpreter.thaw()
            try:
                async with asyncio.timeout(_TAKEN):
                    await interpreter.ask({"id": mark, "code": code, "number": self.calls})
            except (InterpreterEnded, TimeoutError):
                self._discard()
                if again:
                    await self._ready()
                    lost = "Python no longer answered."
                continue
            return interpreter, mark, lost
        raise ToolDown(f"Python was started, but did not answer within {_TAKEN:g} seconds; the machine may be too busy")

    async def _start(self) -> None:
        if line := await self._beside(refusal, self.mode, self.image):
            raise ToolDown(line, fix='To run it all the same, the user can set the sandbox to "process" or "off".')
        await self._beside(self.workplace.make)
        # in a resumed run, a session may begin before the programs of earlier ones are repeated
        earlier = [path for path in self.earlier if path.is_dir()]
        opened, listed = await self._beside(readable_paths, (*self.readable, *earlier), self.closed)
        interpreter = self._interpreter = spawn(self.folder, opened, self.limits, self.mode, self.image)
        self.layers = await interpreter.configure(self.mode, self.folder, opened, listed, self.limits)

    async def _call(self, interpreter: Interpreter, mark: str, seconds: float) -> Outcome:
        reply = asyncio.ensure_future(interpreter.answer(mark))
        watched = asyncio.ensure_future(self._watch(interpreter))
        fell: InterpreterEnded | None = None
        try:
            await asyncio.wait((reply, watched), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            late = not (reply.done() or watched.done())
            if late:
                interpreter.send_signal(signal.SIGINT)
                await asyncio.wait((reply, watched), timeout=_GRACE, return_when=asyncio.FIRST_COMPLETED)
            limit = watched.result() if watched.done() else ""
            try:
                answer = reply.result() if reply.done() else None
            except InterpreterEnded as error:
                answer, fell = None, error
        finally:
            reply.cancel()
            watched.cancel()
            await asyncio.gather(reply, watched, return_exceptions=True)
        if limit:
            return await self._describe_end(interpreter, "limit", f"Stopped: {limit}.")
        if fell and not late:
            return await self._describe_end(interpreter, "died", str(fell))
        if answer is None:
            return await self._describe_end(interpreter, "timeout", f"Stopped after {seconds:g} s.")
        interpreter.freeze()
        why = f"(stopped after {seconds:g} s; variables are kept)" if late else ""
        return await self._describe_answer(interpreter, answer, why)

    async def _watch(self, interpreter: Interpreter) -> str:
        """Wait until a limit is broken that the kernel does not enforce; return which one."""
        pid, loop = interpreter.seen, asyncio.get_running_loop()
        pause = _LOOK
        while True:
            await asyncio.sleep(pause)
            began = loop.time()
            if interpreter.output.total > self.limits.printed:
                return f"it printed more than {size(self.limits.printed)}"
            if self.mode == "off":
                continue
            limit = find_broken_limit(pid, self.limits) if pid else ""
            if limit := limit or await self._beside(self.workplace.overfull, pid):
                return limit
            pause = max(_LOOK, _REST * (loop.time() - began))

    async def _describe_answer(self, interpreter: Interpreter, answer: dict[str, Any], late: str) -> Outcome:
        """Return the outcome of a call from an interpreter that continues. It may answer anything, at any length."""
        output = interpreter.take_printed()
        texts = (text if isinstance(text := answer.get(name), str) else "" for name in ("value", "error"))
        value, error = (shorten_text(printable(text), self.limits.output) for text in texts)
        status: Status = "timeout" if late else "error" if error else "ok"
        settled = await self._beside(self.workplace.settle, interpreter.seen)
        if settled.limit:
            status, late = "limit", f"{settled.limit}: what this call wrote was removed"
        spent = SPENT if answer.get("spent") else HELD if settled.held else ""
        if spent:
            self._discard()
        error = "\n".join(filter(None, (error, late)))
        note = "\n".join(filter(None, (settled.note, spent)))
        return Outcome(self.calls, status, printable(output), value, error, note, settled.files, restarted=bool(spent))

    async def _describe_end(self, interpreter: Interpreter, status: Status, why: str) -> Outcome:
        """End the interpreter, return the outcome with the reason, and clean the folder for the next call."""
        self._discard()
        code = await self._wait_for_end()
        settled = await self._beside(self.workplace.settle)
        if status == "died":
            why = f"Python was ended: {why}." if why else _last_words(code)
        removed = "What this call wrote was removed." if settled.limit else ""
        error = " ".join(filter(None, (why, removed, RESTARTED)))
        output = printable(interpreter.output.text)
        return Outcome(self.calls, status, output, "", error, settled.note, settled.files, restarted=True)

    def _discard(self) -> None:
        if self._interpreter:
            self._dying = self._interpreter.kill()
            self._interpreter = None

    async def _wait_for_end(self) -> int:
        """Return the exit status of the interpreter that was discarded last."""
        if self._dying is None:
            return 0
        status = await asyncio.shield(self._dying)
        self._dying = None
        return status


def _last_words(status: int) -> str:
    """Explain why Python ended with that status."""
    if status >= 0:
        return f"The code ended Python (exit status {status})."
    if status != -signal.SIGKILL:
        return f"Python crashed ({signal.strsignal(-status) or -status})."
    return "Python was killed, or the code closed what Python answers through."


_Listing = Callable[[Path], list[os.DirEntry[str]]]


def readable_paths(paths: Iterable[Path], closed: Collection[Path] = ()) -> tuple[list[str], list[str]]:
    """Return the paths to open and those only to list, so that these files and folders can be read without private or
    `closed` entries.

    A folder that holds hidden entries (`.env`, `.git`), files of keys, dependencies, an evaluation, a closed path or
    the home folder, at any depth, is opened entry by entry, and then no link in it is followed: otherwise the folder's
    creator would choose what is opened.
    """
    opened: list[str] = []
    listed: list[str] = []
    shut, inside = frozenset(closed), cache(_list_folder)
    try:
        home = Path.home()
    except RuntimeError:  # a user without a name, as in many containers
        home = Path("/nonexistent")
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
            folder / entry.name
            for entry in entries
            if entry.is_dir(follow_symlinks=False) and not _private(entry, closed, inside)
        ]
    return divided


def _private(entry: os.DirEntry[str], closed: frozenset[Path], inside: _Listing) -> bool:
    """Return whether an entry of a folder stays closed: it is hidden, a link, dependencies, an evaluation, one of the
    closed paths, or usually holds keys."""
    path = Path(entry.path)
    if entry.name.startswith(".") or entry.is_symlink() or path in closed:
        return True
    if entry.is_dir(follow_symlinks=False):
        return entry.name in FOLDERS or holds_records([entry.name for entry in inside(path)])
    return holds_keys(entry.name)


def _list_folder(path: Path) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, none if it cannot be listed."""
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:
        return []
