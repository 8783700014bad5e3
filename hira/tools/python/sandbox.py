"""A Python session for one subtask: code comes in, what it printed, computed and wrote comes back."""

import asyncio
import secrets
import signal
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from hira.errors import ToolDown
from hira.tools.python.container import IMAGE
from hira.tools.python.frames import LARGEST, shortened
from hira.tools.python.layers import Mode, readable_paths, refusal
from hira.tools.python.process import Ended, Interpreter, spawn, spawn_contained
from hira.tools.python.usage import Limits, broken, size
from hira.tools.python.workplace import Workplace

Status = Literal["ok", "error", "timeout", "limit", "died"]

_START = 30.0
_GRACE = 0.5
_LOOK = 0.1
_REST = 10  # looking takes at most a tenth of the time
RESTARTED = "Python was restarted: variables are lost."


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one call. `value` is the last expression's, `error` a traceback or the reason why it was ended.

    `files` are those that the call wrote, `note` a word on others; `restarted` says that variables are lost.
    """

    number: int
    status: Status
    output: str = ""
    value: str = ""
    error: str = ""
    note: str = ""
    files: tuple[Path, ...] = ()
    restarted: bool = False

    @property
    def text(self) -> str:
        """Output, value, error and note, as they are shown to a model."""
        parts = (self.output, self.value, self.error, self.note)
        return "\n".join(part.rstrip("\n") for part in parts if part.strip("\n"))


class PythonSandbox:
    """A warm interpreter that can be written to, held back as `sandbox_layers` says.

    >>> async with PythonSandbox(folder, readable=(table,), label="2") as sandbox:
    ...     outcome = await sandbox.run("6 * 7")

    `folder` belongs to the code: it may change everything in it. `readable` files and folders lie open to it besides,
    and so do the folders of `earlier` sessions; what is hidden in them (`.env`, `.git`), and files of keys, do not. The
    interpreter starts with the first call, lasts as long as the session, and is started anew after a call that had to
    be killed. One call runs at a time.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        readable: tuple[Path | str, ...] = (),
        earlier: tuple[Path, ...] = (),
        label: str = "",
        sandbox: Mode = "auto",
        image: str = IMAGE,
        limits: Limits = Limits(),  # noqa: B008 - frozen
    ) -> None:
        self.folder = Path(folder).resolve()
        self.readable = tuple(Path(path).resolve() for path in readable)
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
        await asyncio.to_thread(self.workplace.tidy)

    async def run(self, code: str, *, seconds: float | None = None) -> Outcome:
        """Run the code; never raises for what the code does. `ToolDown` if Python cannot be run here at all.

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
            return await asyncio.to_thread(self.workplace.contents, most)

    async def contents(self, paths: Sequence[Path], most: int) -> dict[Path, bytes]:
        """At most `most` bytes of each of these files of the session, without those that are none. Follows no link."""
        async with self._lock:
            return await asyncio.to_thread(self.workplace.read, paths, most)

    async def _ready(self) -> str:
        """Make sure that an interpreter waits for code; says what was wrong if another one had to be started."""
        lost = ""
        if self._interpreter:
            if not self._interpreter.alive:
                lost = "Python had ended."
            elif not self.workplace.is_there():
                lost = "The work folder was gone."
            if not lost:
                return ""
            self._discard()
        await self._gone()
        if line := await asyncio.to_thread(refusal, self.mode, self.image):
            raise ToolDown(line, fix='To run it all the same, the user can set the sandbox to "process" or "off".')
        try:
            await self._start()
        except (OSError, Ended) as error:
            raise ToolDown(f"Python could not be started: {str(error) or await self._why_not()}") from None
        return lost

    async def _why_not(self) -> str:
        """What the interpreter said before it ended, its last line."""
        interpreter = self._interpreter
        self._discard()
        await self._gone()
        said = interpreter.output.text.strip() if interpreter else ""
        return _sound(said.rpartition("\n")[2]) or "it ended at once"

    async def _start(self) -> None:
        await asyncio.to_thread(self.workplace.make)
        # a session of a resumed run may have begun before the programs of earlier ones were run again
        earlier = [path for path in self.earlier if path.is_dir()]
        opened, listed = await asyncio.to_thread(readable_paths, (*self.readable, *earlier))
        if self.mode == "container":
            interpreter = self._interpreter = spawn_contained(self.folder, opened, self.limits, self.image)
        else:
            interpreter = self._interpreter = spawn(self.folder, self.limits.output, alone=self.mode == "auto")
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
        if self.mode == "auto" and not {"landlock", "seccomp"} <= {*self.layers}:
            raise Ended("it is not confined")

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
            interpreter, answer, f"(stopped after {seconds:g} s; variables are kept)" if late else ""
        )

    async def _watch(self, interpreter: Interpreter) -> str:
        """Wait until a limit is broken that the kernel does not know of; says which one."""
        pid, loop = interpreter.seen, asyncio.get_running_loop()
        pause = _LOOK
        while True:
            await asyncio.sleep(pause)
            began = loop.time()
            if interpreter.output.total > self.limits.printed:
                return f"it printed more than {size(self.limits.printed)}"
            if self.mode == "off":
                continue
            if limit := (broken(pid, self.limits) if pid else "") or await asyncio.to_thread(
                self.workplace.overfull, pid
            ):
                return limit
            pause = max(_LOOK, _REST * (loop.time() - began))

    async def _answered(self, interpreter: Interpreter, answer: dict[str, Any], late: str) -> Outcome:
        """What an interpreter that goes on says of the call. It may say anything, at any length."""
        output = interpreter.printed()
        value, error = (_sound(str(answer.get(name, "")), self.limits.output) for name in ("value", "error"))
        status: Status = "timeout" if late else "error" if error else "ok"
        settled = await asyncio.to_thread(self.workplace.settle, interpreter.seen)
        if settled.limit:
            status, late = "limit", f"{settled.limit}: what this call wrote was removed"
        error = "\n".join(filter(None, (error, late)))
        return Outcome(self.calls, status, _sound(output), value, error, settled.note, settled.files)

    async def _ended(self, interpreter: Interpreter, limit: str, seconds: float, *, by_itself: bool) -> Outcome:
        """The interpreter is gone or has to go; say why, and leave the folder so that the next call can work."""
        self._discard()
        code = await self._gone()
        settled = await asyncio.to_thread(self.workplace.settle)
        status: Status = "limit" if limit else "died" if by_itself else "timeout"
        stopped = f"Stopped: {limit}." if limit else f"Stopped after {seconds:g} s."
        why = _last_words(code) if status == "died" else stopped
        removed = "What this call wrote was removed." if settled.limit else ""
        error = " ".join(filter(None, (why, removed, RESTARTED)))
        output = _sound(interpreter.output.text)
        return Outcome(self.calls, status, output, "", error, settled.note, settled.files, restarted=True)

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


def _last_words(status: int) -> str:
    if status >= 0:
        return f"The code ended Python (exit status {status})."
    if status == -signal.SIGKILL:
        return "Python was ended, or what it sent could not be read."
    return f"Python crashed ({signal.strsignal(-status) or -status})."


def _sound(text: str, most: int = LARGEST) -> str:
    """Text that can be encoded, and not too much of it: what came as half a character is replaced."""
    return shortened(text, most).encode("utf-8", "replace").decode("utf-8")
