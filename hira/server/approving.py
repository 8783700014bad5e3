"""A run that waits for the page: decisions on its subtasks come in by requests, one after another or all at once."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hira.agents.trajectory import Rejected, Subtask
from hira.core.sanitize import printable
from hira.server.chat import check_length
from hira.server.keys import Refused

SHAPE = 'write {"decisions": [{"id": "1"}, {"id": "2", "text": "…"}, {"id": "3", "rejected": "…"}]}'


@dataclass(eq=False, slots=True)
class Desk:
    """Where the subtasks of one run wait. Called by the run; `decide` is what the requests do.

    A decision may be taken back as long as one of the others is missing.
    """

    waiting: dict[str, Subtask] = field(default_factory=dict)
    _decided: dict[str, Subtask | Rejected] = field(default_factory=dict)
    _complete: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, subtasks: Sequence[Subtask]) -> Sequence[Subtask | Rejected]:
        self.waiting, self._decided = {one.id: one for one in subtasks}, {}
        self._complete.clear()
        try:
            await self._complete.wait()
            return [self._decided[one.id] for one in subtasks]
        finally:
            self.waiting = {}

    def decide(self, decisions: Sequence[Any]) -> None:
        """Raises `Refused` for one that cannot be read, before any of them is taken."""
        made = [self._read(one) for one in decisions]
        self._decided |= dict(made)
        if self._decided.keys() == self.waiting.keys():
            self._complete.set()

    def _read(self, decision: Any) -> tuple[str, Subtask | Rejected]:
        if not isinstance(decision, dict) or not all(isinstance(one, str) for one in decision.values()):
            raise Refused(400, SHAPE, "invalid_request_error")
        name, text, reason = decision.get("id", ""), decision.get("text"), decision.get("rejected")
        if name not in self.waiting:
            raise Refused(409, f"subtask {name!r} does not wait for a decision", "invalid_request_error", "conflict")
        subtask = self.waiting[name]
        check_length(len(text or "") + len(reason or ""))
        if reason is not None:
            return name, Rejected(subtask, printable(reason).strip())
        if text is not None and not text.strip():
            raise Refused(400, f"the text of subtask {name!r} is empty; reject it instead", "invalid_request_error")
        return name, replace(subtask, text=printable(text).strip()) if text else subtask
