"""`hira ask --approve`: the person at the terminal decides on each subtask before it is handed out."""

import argparse
import asyncio
import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from hira.agents.run_context import Approve
from hira.agents.trajectory import Rejected, Subtask
from hira.cli.progress import View
from hira.cli.shell import Shell, encodable, visible
from hira.core.errors import Interrupted, UsageError

CHOICES = "run it? [y]es, [e]dit, [n]o, [a]ll that follow: "
READ = 4096


class AtTerminal:
    """Asks at the terminal. `view` shows the run's progress and is held still meanwhile; `all` is True once the person
    has said that whatever comes is fine."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.view: View | None = None
        self.all = False
        self._typed = b""

    async def __call__(self, subtasks: Sequence[Subtask]) -> Sequence[Subtask | Rejected]:
        with self.view.paused() if self.view else nullcontext():
            return [await self._decide(one) for one in subtasks]

    async def _decide(self, subtask: Subtask) -> Subtask | Rejected:
        if self.all:
            return subtask
        self._show(f"subtask {subtask.id}: {subtask.text}\n")
        while True:
            said = (await self._line(CHOICES)).lower()
            if said in ("", "y", "yes"):
                return subtask
            if said in ("a", "all"):
                self.all = True
                return subtask
            if said in ("e", "edit"):
                text = await self._line("its new text (empty keeps the old one): ")
                return replace(subtask, text=text or subtask.text)
            if said in ("n", "no"):
                return Rejected(subtask, await self._line("why not? the planner reads your reason: "))

    async def _line(self, prompt: str) -> str:
        """What the person types. Raises `Interrupted` when the terminal is closed."""
        self._show(prompt)
        while b"\n" not in self._typed:
            read = await self._read()
            if not read:
                self._show("\n")
                raise Interrupted("no one is left to approve subtasks; answering from the results so far")
            self._typed += read
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode("utf-8", "replace").strip()

    async def _read(self) -> bytes:
        """Some bytes from the terminal, b"" at its end; nothing keeps waiting when the run is stopped."""
        loop, source = asyncio.get_running_loop(), self.shell.stdin.fileno()
        ready: asyncio.Future[None] = loop.create_future()

        def typed() -> None:
            if not ready.done():
                ready.set_result(None)

        loop.add_reader(source, typed)
        try:
            await ready
        finally:
            loop.remove_reader(source)
        try:
            return os.read(source, READ)
        except OSError:  # the terminal went away
            return b""

    def _show(self, text: str) -> None:
        self.shell.stderr.write(encodable(visible(text), self.shell.stderr))
        self.shell.stderr.flush()


def at_terminal(args: argparse.Namespace, shell: Shell) -> Approve:
    """Asks at the terminal. Raises `UsageError` where there is none, and where a program reads along."""
    if args.events or not (shell.stdin.isatty() and shell.stderr.isatty()):
        why = "a program reads --events" if args.events else "this is not a terminal"
        fix = "from Python: Hira(approve=…); over HTTP: hira serve, and its page"
        raise UsageError(f"--approve asks a person about each subtask, and {why}", fix=fix)
    return AtTerminal(shell)
