"""A Python session for one subtask: code comes in, what it printed, computed and wrote comes back."""

import asyncio
import contextlib
import secrets
import signal
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from hira.errors import ToolError
from hira.tools.python.folder import Found, clear, look, read, remove, written
from hira.tools.python.frames import shortened
from hira.tools.python.layers import Mode, readable_paths, refusal
from hira.tools.python.process import Ended, Interpreter, spawn
from hira.tools.python.usage import Limits, broken, overfull, size

Status = Literal["ok", "error", "timeout", "limit", "died"]

_START = 30.0
_GRACE = 0.5
_LOOK = 0.1
_REST = 10  # looking takes at most a tenth of the time
_SHOWN = 20
_SCRATCH = (".tmp", ".matplotlib")
_MOST = 1 << 30
RESTARTED = "Python was restarted: variables are lost."


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one call. `value` is the last expression's, `error` a traceback or the reason why it was ended.

    `files` are those that the call wrote; `restarted` says that variables are lost.
    """

    number: int
    status: Status
    output: str = ""
    value: str = ""
    error: str = ""
    files: tuple[Path, ...] = ()
    restarted: bool = False

    @property
    def text(self) -> str:
        """Output, then value, then error, as they are shown to a model."""
        return "\n".join(part.rstrip("\n") for part in (self.output, self.value, self.error) if part.strip("\n"))


class PythonSandbox:
    """A warm interpreter that can be written to, held back as `sandbox_layers` says.

    >>> async with PythonSandbox(folder, readable=(table,), label="2") as sandbox:
    ...     outcome = await sandbox.run("6 * 7")

    `folder` belongs to the code: it may change everything in it. `readable` files and folders lie open to it besides;
    what is hidden (`.env`, `.git`) at the top of a readable folder does not. The interpreter starts with the first
    call, lasts as long as the session, and is started anew after a call that had to be killed. One call runs at a time.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        readable: tuple[Path | str, ...] = (),
        label: str = "",
        sandbox: Mode = "auto",
        limits: Limits = Limits(),  # noqa: B008 - frozen
    ) -> None:
        self.folder = Path(folder).resolve()
        self.readable = tuple(Path(path).resolve() for path in readable)
        self.label = label
        self.mode: Mode = sandbox
        self.limits = limits
        self.calls = 0
        self.layers: tuple[str, ...] = ()
        self._interpreter: Interpreter | None = None
        self._dying: asyncio.Future[int] | None = None
        self._base: Found | None = None
        self._found = Found()
        self._place = (0, 0)
        self._lock = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the interpreter and wait for its end. Files stay, except the scratch of libraries."""
        self._discard()
        await self._gone()
        if self._base is not None and self.folder.is_dir():
            await asyncio.to_thread(remove, self.folder, _SCRATCH)

    async def run(self, code: str, *, seconds: float | None = None) -> Outcome:
        """Run the code; never raises for what the code does. `ToolError` if Python cannot be run here at all.

        Cancelling it ends the interpreter.
        """
        async with self._lock:
            try:
                lost = await self._ready()
                self.calls += 1
                outcome = await self._call(code, seconds or self.limits.seconds)
            except BaseException:
                self._discard()
                raise
            if lost:
                outcome = replace(outcome, output=f"({lost} {RESTARTED})\n{outcome.output}", restarted=True)
            return outcome

    async def files(self, most: int = 1 << 20) -> dict[str, bytes]:
        """The files of the session by their place in the folder, at most `most` bytes of each. Follows no link."""
        async with self._lock:
            return await asyncio.to_thread(_contents, self.folder, self.limits.files, most)

    async def _ready(self) -> str:
        """Make sure that an interpreter waits for code; says what was wrong if another one had to be started."""
        lost = ""
        if self._interpreter:
            if not self._interpreter.alive:
                lost = "Python had ended."
            elif not self._is_there():
                lost = "The work folder was gone."
            if not lost:
                return ""
            self._discard()
        await self._gone()
        if line := refusal(self.mode):
            raise ToolError(line, fix='To run it all the same, the user can set the sandbox to "process" or "off".')
        try:
            await self._start()
        except (OSError, Ended) as error:
            raise ToolError(f"Python could not be started: {str(error) or await self._why_not()}") from None
        return lost

    async def _why_not(self) -> str:
        """What the interpreter said before it ended, its last line."""
        interpreter = self._interpreter
        self._discard()
        await self._gone()
        said = interpreter.output.text.strip() if interpreter else ""
        return _sound(said.rpartition("\n")[2]) or "it ended at once"

    async def _start(self) -> None:
        await asyncio.to_thread(self._make_folder)
        if await self._overfull():  # a call was cancelled before its files were removed
            await self._roll_back()
        interpreter = self._interpreter = spawn(self.folder, self.limits.output)
        opened, listed = await asyncio.to_thread(readable_paths, self.readable)
        setup = {
            "id": secrets.token_hex(8),
            "mode": self.mode,
            "folder": str(self.folder),
            "read": opened,
            "list": listed,
            "limits": asdict(self.limits),
        }
        try:
            async with asyncio.timeout(_START):
                answer = await interpreter.ask(setup)
        except TimeoutError:
            raise Ended(f"it did not answer within {_START:g} seconds") from None
        if "failed" in answer:
            raise Ended(f"it could not be confined: {answer['failed']}")
        self.layers = tuple(answer["layers"])

    def _make_folder(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        (self.folder / _SCRATCH[0]).mkdir(mode=0o700, exist_ok=True)
        there = self.folder.stat()
        self._place = (there.st_dev, there.st_ino)
        self._found = look(self.folder, _MOST)
        self._base = self._base or self._found

    def _is_there(self) -> bool:
        try:
            there = self.folder.lstat()
        except OSError:
            return False
        return (there.st_dev, there.st_ino) == self._place

    async def _call(self, code: str, seconds: float) -> Outcome:
        interpreter = self._interpreter
        assert interpreter is not None  # noqa: S101 - _ready() has started it
        interpreter.thaw()
        frame = {"id": secrets.token_hex(8), "code": code, "number": self.calls}
        asked = asyncio.ensure_future(interpreter.ask(frame))
        watched = asyncio.ensure_future(self._watch(interpreter))
        try:
            await asyncio.wait((asked, watched), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            late = not (asked.done() or watched.done())
            if late:
                interpreter.interrupt()
                await asyncio.wait((asked, watched), timeout=_GRACE, return_when=asyncio.FIRST_COMPLETED)
            answer = asked.result() if asked.done() and not asked.exception() else None
            limit = watched.result() if watched.done() else ""
            ended = asked.done() and answer is None
        finally:
            asked.cancel()
            watched.cancel()
            await asyncio.gather(asked, watched, return_exceptions=True)
        if answer is None or limit:
            return await self._ended(interpreter, limit, seconds, by_itself=ended)
        interpreter.freeze()
        return await self._answered(
            interpreter, answer, f"(stopped after {seconds:g} seconds; variables are kept)" if late else ""
        )

    async def _watch(self, interpreter: Interpreter) -> str:
        """Wait until a limit is broken that the kernel does not know of; says which one."""
        pid, loop = interpreter.process.pid, asyncio.get_running_loop()
        pause = _LOOK
        while True:
            await asyncio.sleep(pause)
            began = loop.time()
            if interpreter.output.total > self.limits.printed:
                return f"it printed more than {size(self.limits.printed)}"
            if self.mode == "off":
                continue
            if limit := broken(pid, self.limits) or await self._overfull(pid):
                return limit
            pause = max(_LOOK, _REST * (loop.time() - began))

    async def _overfull(self, pid: int = 0) -> str:
        if self.mode == "off":
            return ""
        base = self._base or Found()
        return await asyncio.to_thread(
            overfull, self.folder, self.limits, entries=base.entries, taken=base.bytes, pid=pid
        )

    async def _answered(self, interpreter: Interpreter, answer: dict[str, Any], late: str) -> Outcome:
        output = interpreter.printed()
        value, error = str(answer.get("value", "")), str(answer.get("error", ""))
        status: Status = "timeout" if late else "error" if error else "ok"
        if limit := await self._overfull(interpreter.process.pid):
            await self._roll_back()
            status, error = "limit", f"{error}\n{limit}: what this call wrote was removed".strip()
        files, more = await self._written()
        return Outcome(
            self.calls,
            status,
            _sound(output),
            _sound(value),
            _sound("\n".join(filter(None, (error, late, more)))),
            files,
        )

    async def _ended(self, interpreter: Interpreter, limit: str, seconds: float, *, by_itself: bool) -> Outcome:
        """The interpreter is gone or has to go; say why, and leave the folder so that the next call can work."""
        self._discard()
        status = await self._gone()
        if limit:
            why: tuple[Status, str] = "limit", f"Stopped: {limit}."
        elif by_itself:
            why = "died", _last_words(status)
        else:
            why = "timeout", f"Stopped after {seconds:g} seconds."
        removed = ""
        if await self._overfull():
            await self._roll_back()
            removed = "What this call wrote was removed."
        files, more = await self._written()
        error = " ".join(filter(None, (why[1], removed, RESTARTED, more)))
        return Outcome(self.calls, why[0], _sound(interpreter.output.text), "", error, files, restarted=True)

    async def _written(self) -> tuple[tuple[Path, ...], str]:
        """The files of this call, and a word on those that are not listed."""
        before = self._found
        base = self._base or Found()
        try:
            self._found = await asyncio.to_thread(look, self.folder, self.limits.files + base.entries)
        except OSError:
            return (), "The work folder is gone."
        names, odd = written(before.files, self._found.files)
        left = len(names) - _SHOWN
        told = [f"{odd} files with unusual names are not listed." if odd else ""]
        told.append(f"{left} more files were written." if left > 0 else "")
        return tuple(self.folder / name for name in names[:_SHOWN]), " ".join(filter(None, told))

    async def _roll_back(self) -> None:
        """Remove what this call wrote; if older files have grown, all that the session wrote."""
        await asyncio.to_thread(clear, self.folder, self._found.files)
        if await self._overfull():
            await asyncio.to_thread(clear, self.folder, (self._base or Found()).files)

    def _short(self, text: str) -> str:
        """What the interpreter said of itself: it may say anything, at any length."""
        return shortened(_sound(text), self.limits.output)

    def _discard(self) -> None:
        if self._interpreter:
            self._dying = self._interpreter.kill()
            self._interpreter = None

    async def _gone(self) -> int:
        """The exit status of the interpreter that was discarded last."""
        if self._dying is None:
            return 0
        status = await asyncio.shield(self._dying)
        self._dying = None
        return status


def _contents(folder: Path, entries: int, most: int) -> dict[str, bytes]:
    contents: dict[str, bytes] = {}
    try:
        names, _ = written({}, look(folder, entries).files)
    except OSError:
        return contents
    for name in names:
        with contextlib.suppress(OSError):
            contents[name] = read(folder, name, most)
    return contents


def _last_words(status: int) -> str:
    if status >= 0:
        return f"The code ended Python (exit status {status})."
    if status == -signal.SIGKILL:
        return "Python was ended, or what it sent could not be read."
    return f"Python crashed ({signal.Signals(-status).name})."


def _sound(text: str) -> str:
    """Text that can be encoded: what came as half a character is replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")
