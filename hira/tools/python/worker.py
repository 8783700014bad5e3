"""The child: a Python session at the other end of the channel. Runs model-written code; imports nothing of hira.

Everything it needs is imported before it is confined and bound here, so that code that tampers with the interpreter
harms at most its own session. The code itself may have written any answer: the parent trusts none of it.
"""

import ast
import builtins
import contextlib
import faulthandler
import fcntl
import io
import json
import linecache
import os
import resource
import signal
import site
import sys
import traceback
import types
import warnings
from pathlib import Path
from typing import Any

from .confine import confine
from .frames import LENGTH, pack_frame, shorten_text

_KEPT = 20_000
_OWN = "<call "
_RECURSION = 1000
_SWITCH = 0.005
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_SIGNS = ("Operation not permitted", "Permission denied", "failure in name resolution")
_HINT = (
    "(Here, code has no network and starts no other program; it reads the files it was given and writes only in its "
    "own folder.)"
)


def main(parent: int) -> None:
    """Serve calls until the parent closes the channel."""
    channel = Channel()
    site.main()
    sys.stdout.flush()
    setup = channel.receive()
    if setup is None:
        return
    try:
        layers = confine(setup, parent)
    except OSError as error:
        channel.send({"id": setup["id"], "failed": str(error)})
        return
    session = CodeSession(setup["folder"], _copy_high(1))
    channel.send({"id": setup["id"], "layers": layers})
    while (request := channel.receive()) is not None:
        channel.send({"id": request["id"]})  # from here on, a missing answer is this call's own fault
        answer = session.run(request["code"], request["number"])
        channel.send({"id": request["id"], **answer})


class Channel:
    """Standard input and output, because a container has nothing else; the code gets others."""

    def __init__(self) -> None:
        self._in, self._out = _copy_high(0), _copy_high(1)
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)

    def receive(self) -> Any:
        """Return the next frame, None at the end."""
        head = self._read(LENGTH.size)
        return json.loads(self._read(LENGTH.unpack(head)[0])) if head else None

    def _read(self, size: int) -> bytes:
        got = bytearray()
        while len(got) < size and (chunk := os.read(self._in, size - len(got))):
            got += chunk
        return bytes(got) if len(got) == size else b""

    def send(self, frame: dict[str, Any]) -> None:
        """Send a frame, for as long as it takes, whatever the code has done to the descriptors."""
        for descriptor in (self._in, self._out):
            os.set_blocking(descriptor, True)
        data = pack_frame(frame)
        while data:
            data = data[os.write(self._out, data) :]


def _copy_high(descriptor: int) -> int:
    """Return a copy of the descriptor with a high number, out of the way of code that counts from three."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max(3, min(soft, 256) - 16))


class CodeSession:
    """Variables that last from call to call. `out` is a descriptor of the output that the code does not know of."""

    def __init__(self, folder: str, out: int) -> None:
        self.folder = folder
        self.scratch = Path(os.environ["TMPDIR"])
        self.out = out
        self.outlet = _identity(out)
        self.running = False
        self.module = types.ModuleType("__main__")
        self.builtins = dict(vars(builtins))
        self.modules = sys.modules
        self.stream = self._open()
        self.input = _nothing()
        self.modules["__main__"] = self.module
        sys.argv = [""]
        sys.path.append(folder)  # last, so that no file of the code replaces a module of Python
        self.loaded = dict(sys.modules)
        finders: list[list[Any]] = [sys.path, sys.meta_path, sys.path_hooks]
        self.found_by = [(every, list(every)) for every in finders]
        warnings.filterwarnings("ignore", message=".*non-interactive")
        self._prepare()

    def run(self, code: str, number: int) -> dict[str, Any]:
        """Run the code as a notebook would, also if all of it is indented. The answer has the `value` of the last
        expression, or an `error`; `spent` means that no other code can run here afterwards."""
        try:
            self.running = True
            value = self._evaluate(code, f"{_OWN}{number}>", vars(self.module))
            self._save_figures(number)
            if value is not None:
                vars(self.module)["_"] = value  # for later code, as in a notebook
            answer: dict[str, Any] = {"value": "" if value is None else shorten_text(repr(value), _KEPT)}
        except BaseException as error:  # noqa: BLE001 - whatever the code raises is its result
            self.running = False
            sys.settrace(None)
            sys.setprofile(None)
            sys.setrecursionlimit(_RECURSION)
            answer = {"value": ""}
            if not (isinstance(error, SystemExit) and (error.code is None or error.code == 0)):
                answer["error"] = shorten_text(_format_error(error), _KEPT)
        self.running = False
        self._tidy()
        self._prepare()
        return answer if self._works() else {**answer, "spent": True}

    def _works(self) -> bool:
        """Return whether the next call can run: this one's code may have tampered with what runs it."""
        try:
            speaks = _identity(self.out) == self.outlet and explain_error(ValueError(7)) == "ValueError: 7"
            return speaks and self._evaluate("6 * 7", f"{_OWN}0>", {}) == 42
        except BaseException:  # noqa: BLE001 - what was bent may fail in any way
            return False

    def _evaluate(self, code: str, name: str, space: dict[str, Any]) -> object:
        """Run the code and return the value of its last expression, None if its last statement is not an expression."""
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        tree = _parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec", dont_inherit=True), space)  # noqa: S102 - that is what this process is for
        if not isinstance(last, ast.Expr):
            return None
        return eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), space)  # noqa: S307 - likewise

    def _save_figures(self, call: int) -> None:
        """Save figures that were neither saved nor closed, as a notebook would show them."""
        if pyplot := self.modules.get("matplotlib.pyplot"):
            drawn = [(number, pyplot.figure(number)) for number in pyplot.get_fignums()]
            for number, figure in drawn:
                if figure.stale:  # otherwise it is saved already
                    figure.savefig(Path(self.folder, f"figure-{call}-{number}.png"))
            pyplot.close("all")

    def _prepare(self) -> None:
        """Prepare for the next call, before this one is answered: if that fails, the session ends with this call."""
        os.set_blocking(self.out, True)
        os.dup2(self.out, 1)
        os.dup2(self.out, 2)
        if self.stream.closed:
            self.stream = self._open()
        sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = self.stream  # type: ignore[misc]
        if self.input.closed:
            self.input = _nothing()
        sys.stdin = sys.__stdin__ = self.input  # type: ignore[misc]
        signal.signal(signal.SIGINT, self._interrupt)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        with contextlib.suppress(OSError):
            os.chdir(self.folder)
        if not self.scratch.is_dir():
            with contextlib.suppress(OSError):
                self.scratch.mkdir(0o700)

    def _tidy(self) -> None:
        """Repair what the code may have tampered with: hooks, limits, built-in names, alarms."""
        sys.settrace(None)
        sys.setprofile(None)
        sys.setrecursionlimit(_RECURSION)
        sys.setswitchinterval(_SWITCH)
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        faulthandler.cancel_dump_traceback_later()
        vars(builtins).update(self.builtins)
        vars(self.module)["__builtins__"] = builtins
        sys.modules = self.modules
        self.modules.update({**self.loaded, **self.modules, "__main__": self.module})
        sys.path, sys.meta_path, sys.path_hooks = (every for every, _ in self.found_by)
        for every, at_first in self.found_by:
            every += [name for name in at_first if name not in every]
        for stream in (sys.stdout, self.stream):
            with contextlib.suppress(Exception):
                stream.flush()

    def _interrupt(self, *_: object) -> None:
        if self.running:
            raise KeyboardInterrupt

    def _open(self) -> io.TextIOWrapper:
        raw = io.BufferedWriter(io.FileIO(1, "w", closefd=False))
        return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)


def _identity(descriptor: int) -> tuple[int, int]:
    """Return the identity of an open descriptor's target: another one may have replaced it."""
    there = os.fstat(descriptor)
    return there.st_dev, there.st_ino


def _parse(code: str, name: str) -> ast.Module:
    """Parse the code. Code that is indented as a whole is read as a block, so that its texts stay as they are."""
    try:
        return ast.parse(code, name)
    except IndentationError:
        tree = ast.parse(f"if True:\n{code}", name)
        (block,) = tree.body
        assert isinstance(block, ast.If)  # noqa: S101 - what else can begin with `if True`
        tree.body = block.body
        return ast.increment_lineno(tree, -1)


def _nothing() -> io.TextIOWrapper:
    return Path(os.devnull).open(encoding="utf-8")


def _format_error(error: BaseException) -> str:
    """Format the error as well as possible: the code decides how it looks, and files or memory may be lacking."""
    for told in (explain_error, lambda error: f"{type(error).__name__}: {error}"):
        try:
            return told(error)
        except BaseException:  # noqa: BLE001, S112 - the next way asks for less
            continue
    return "An error was raised that cannot be shown."


def explain_error(error: BaseException) -> str:
    """Return the traceback with the code's own lines only, and a hint if the sandbox refused something."""
    told = traceback.TracebackException.from_exception(error, lookup_lines=False)
    pending, seen = [told], set()
    while pending:
        traced = pending.pop()
        if id(traced) in seen:
            continue
        seen.add(id(traced))
        frames = [frame for frame in traced.stack if frame.filename.startswith(_OWN)]
        traced.stack = traceback.StackSummary.from_list(frames)
        pending += [other for other in (traced.__cause__, traced.__context__, *(traced.exceptions or ())) if other]
    text = "".join(told.format()).rstrip()
    refused = any(sign in text for sign in _SIGNS)
    return f"{text}\n{_HINT}" if refused else text
