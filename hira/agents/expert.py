"""The protocol of an expert: an agent that works on a planner's subtasks. A new one is one small file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from hira.agents.loop import CALLS, Loop
from hira.agents.run_context import Conversation, RunContext, format_files
from hira.core.errors import EndpointError
from hira.core.memory import Recall
from hira.core.messages import Filled, user
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.tools import Tool

KNOWN = Prompt(__file__, "shared", "known")
SEARCH, CODE = "search", "code"
"""Abilities: an expert that searches may get a subtask after one that computes."""


@dataclass(frozen=True, slots=True)
class Task:
    """A subtask as an expert receives it: with what memory holds for it and the files that came with the question.

    A `faithful` expert makes every call of the paper, also where there is nothing to decide.
    """

    id: str
    text: str
    recall: Recall = Recall()
    files: tuple[Path, ...] = ()
    faithful: bool = False

    @property
    def known(self) -> Filled:
        """The recalled notes as a paragraph of a prompt; empty without notes."""
        notes = "\n".join(f"- {line}" for line in self.recall.lines)
        return KNOWN.fill(notes=sanitize(notes))

    @property
    def attached(self) -> Filled:
        return format_files(self.files)


@dataclass(frozen=True, slots=True)
class Account:
    """An expert's work: its whole `reasoning`, for the distiller, and its conclusion.

    `ended` is the reason if the work broke off; its findings until then are kept. `found` is False if its tools failed
    or brought nothing, so that memory keeps nothing of its words.
    """

    reasoning: str
    conclusion: str
    ended: str = ""
    found: bool = True


class Expert(Protocol):
    """Does subtasks. `cost` orders experts that can do the same, 1 being the cheapest.

    `ability` is the dimension it belongs to (HiRA: search, code or multimodal; your own may be new), `needs` names
    the tools of the toolbox without which it is not offered.
    """

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def ability(self) -> str: ...
    @property
    def cost(self) -> int: ...
    @property
    def needs(self) -> frozenset[str]: ...

    async def work(self, task: Task, context: RunContext) -> Account: ...


@runtime_checkable
class Looping(Expert, Protocol):
    """An expert that works in the loop with whatever tools there are: the user's own for it are enough."""

    @property
    def loops(self) -> bool: ...


def check_account(account: object) -> Account:
    """Return the account that an expert's work returned. Raises `TypeError` if it is something else."""
    if not isinstance(account, Account):
        raise TypeError(f"its work must return an Account(reasoning, conclusion), got {account!r:.100}")
    if wrong := [name for name in ("reasoning", "conclusion", "ended") if not isinstance(getattr(account, name), str)]:
        raise TypeError(f"its Account must contain only strings, not in {', '.join(wrong)}")
    return account


async def reason(
    conversation: Conversation, task: Task, prompt: Prompt, tools: Sequence[Tool], *, limit: int = CALLS
) -> Account:
    """Let a role do the task with tools inside its reasoning (HiRA, tool-augmented reasoning of an expert).

    The prompt's slots are `tools`, `limit`, `task`, `files` and `known`; `limit` counts calls.
    """
    loop = Loop(conversation, tools, limit=limit, task=task.text)
    tools_shown, text = conversation.explain(tools), sanitize(task.text)
    conversation.say(
        user(prompt.fill(tools=tools_shown, limit=limit, task=text, files=task.attached, known=task.known))
    )
    ended = ""
    try:
        conclusion = (await loop.run()).answer
    except EndpointError as error:
        if not loop.transcript:
            raise
        conclusion, ended = loop.transcript[-1], error.what
    found = bool(ended) or conversation.calls.has_result or not loop.calls.used
    return Account("\n\n".join(filter(None, loop.transcript)), conclusion, ended, found)
