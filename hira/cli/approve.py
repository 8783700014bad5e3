"""The person at the terminal decides on each subtask (`--approve`), and on each call of a tool that needs approval."""

import asyncio
import json
import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, overload

from hira.agents.trajectory import Rejected, Subtask
from hira.cli.shell import Shell, View, encodable, visible
from hira.core.errors import Interrupted
from hira.core.hooks import Refusal, ToolUse, parse_arguments

CHOICES = "run it? [y]es, [e]dit, [n]o, [a]ll that follow: "
UNKNOWN = "answer y, e, n or a\n"
REASON = "why not? the model reads your reason: "
READ = 4096
SUBTASK = "subtask"
"""The kind of subtasks: Enter alone runs a subtask, but not a tool call, which may do harm."""


class AtTerminal:
    """Asks at the terminal, while the progress in `view` is paused. `all` holds the kinds that the person allowed
    from now on: "subtask", or the name of a tool."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.view: View | None = None
        self.all: set[str] = set()
        self._typed = b""

    @overload
    async def __call__(self, proposal: Sequence[Subtask]) -> Sequence[Subtask | Rejected]: ...
    @overload
    async def __call__(self, proposal: ToolUse) -> ToolUse | Refusal: ...
    async def __call__(self, proposal: Sequence[Subtask] | ToolUse) -> Sequence[Subtask | Rejected] | ToolUse | Refusal:
        with self.view.pause() if self.view else nullcontext():
            if isinstance(proposal, ToolUse):
                return await self._decide_call(proposal)
            return [await self._decide(subtask) for subtask in proposal]

    async def _decide(self, subtask: Subtask) -> Subtask | Rejected:
        choice = await self._choice(SUBTASK, f"subtask {subtask.id}: {subtask.text}\n")
        if choice == "e":
            text = await self._line("its new text (empty keeps the old one): ")
            return replace(subtask, text=text or subtask.text)
        if choice == "n":
            return Rejected(subtask, await self._line(REASON))
        return subtask

    async def _decide_call(self, use: ToolUse) -> ToolUse | Refusal:
        arguments_text = json.dumps(dict(use.arguments), ensure_ascii=False, default=str)
        while (choice := await self._choice(use.name, f"{use.role} calls {use.name}: {arguments_text}\n")) == "e":
            arguments = await self._arguments(arguments_text)
            if arguments is not None:
                return replace(use, arguments=arguments)
        return Refusal(await self._line(REASON)) if choice == "n" else use

    async def _arguments(self, old: str) -> dict[str, Any] | None:
        """Return the arguments that the person writes; None to choose again."""
        while (text := await self._line("its new arguments as a JSON object (empty goes back): ")) not in ("", "n"):
            arguments = parse_arguments(text)
            if arguments is not None:
                return arguments
            self._show(f"that is not a JSON object; the old arguments are {old}\n")
        return None

    async def _choice(self, kind: str, text: str) -> str:
        """Return the letter that the person chose: y, e or n."""
        if kind in self.all:
            return "y"
        self._show(text)
        while True:
            choice = (await self._line(CHOICES)).lower()[:1] or ("y" if kind == SUBTASK else "?")
            if choice == "a":
                self.all.add(kind)
                return "y"
            if choice in "yen":
                return choice
            self._show(UNKNOWN)

    async def _line(self, prompt: str) -> str:
        """Return the line that the person types. Raises `Interrupted` when the terminal is closed."""
        self._show(prompt)
        while b"\n" not in self._typed:
            if not (read := await self._read()):
                self._show("\n")
                raise Interrupted("no one is left to approve; answering from the results so far")
            self._typed += read
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode("utf-8", "replace").strip()

    async def _read(self) -> bytes:
        """Return some bytes from the terminal, b"" at its end. A stopped run leaves no reader waiting."""
        loop, source, ready = asyncio.get_running_loop(), self.shell.stdin.fileno(), asyncio.Event()
        loop.add_reader(source, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(source)
        try:
            return os.read(source, READ)
        except OSError:  # the terminal went away
            return b""

    def _show(self, text: str) -> None:
        self.shell.stderr.write(encodable(visible(text), self.shell.stderr))
        self.shell.stderr.flush()
