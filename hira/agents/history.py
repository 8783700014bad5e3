"""Follow-up questions: what the earlier turns of a conversation leave for the next one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hira.agents.trajectory import Rollout
from hira.core.memory import DualMemory, Fact, Resource
from hira.core.prompts import Prompt
from hira.evidence import Source

HISTORY = Prompt(__file__, "history")
LONGEST_HISTORY = 8_000
"""Characters, about 2,000 tokens."""
LONGEST_MESSAGE = 3_500
"""Characters, so that the latest question and its answer both fit."""
CONTINUES: Final = "continues"
"""The recorded setting that names the run whose conversation is continued."""
SENT: Final = "history"
"""The recorded setting with the earlier messages that came with the question."""
Messages = Sequence[tuple[str, str]]
"""Earlier messages in order: the speaker (`user`, `assistant`) and the text."""


def add_history(question: str, messages: Messages) -> str:
    """The question as a workflow is asked it: with the latest of the earlier messages, if there are any. Each is a line
    of JSON, so that none can contain another."""
    lines = [_line_of(*message) for message in keep_latest(messages)]
    return str(HISTORY.fill(history="\n".join(lines), question=question)) if lines else question


def keep_latest(messages: Messages) -> tuple[tuple[str, str], ...]:
    """The latest of the messages that a question is asked with, long ones cut."""
    kept: list[tuple[str, str]] = []
    room = LONGEST_HISTORY
    for role, text in reversed(messages):
        shown = text if len(text) <= LONGEST_MESSAGE + 1 else f"{text[:LONGEST_MESSAGE]}…"
        room -= len(_line_of(role, shown))
        if room < 0:
            break
        kept.insert(0, (role, shown))
    return tuple(kept)


def _line_of(role: str, text: str) -> str:
    return json.dumps({"role": role, "text": text}, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Earlier:
    """The turns of a conversation before a question; `run` is the latest of them, empty where nobody knows it.

    `sources` keep their ids in the next turn. The subtasks that brought the facts are left out, since each turn numbers
    its own from 1. Messages that were `sent` came with the question and are recorded with it.
    """

    run: str
    messages: tuple[tuple[str, str], ...]
    sources: tuple[Source, ...] = field(repr=False)
    facts: tuple[Fact, ...] = field(repr=False)
    resources: tuple[Resource, ...] = field(repr=False)
    sent: bool = False

    @classmethod
    def of_messages(cls, messages: Messages, known: "Earlier | None" = None) -> "Earlier":
        """Build the history from messages that a client sent, with the sources and memory of the `known` turns."""
        known = known or cls("", (), (), (), ())
        return replace(known, messages=keep_latest(messages), sent=True)

    @classmethod
    def of(cls, record: Rollout, before: "Earlier | None") -> "Earlier":
        """Build the history from a turn and those before it."""
        exchange = (("user", record.question), ("assistant", record.answer))
        return cls(
            record.run,
            (*(before.messages if before else ()), *exchange),
            tuple(_lasting(source, record.run) for source in record.sources.read.values()),
            tuple(replace(fact, subtask="") for fact in record.memory.facts),
            tuple(replace(resource, subtask="") for resource in record.memory.resources),
        )

    @property
    def recorded(self) -> Mapping[str, Any]:
        """The part of the next turn's recorded settings that names this conversation."""
        return {**({CONTINUES: self.run} if self.run else {}), **({SENT: self.messages} if self.sent else {})}

    def extend(self, question: str) -> str:
        """The question as a workflow is asked it."""
        return add_history(question, self.messages)

    def seed(self, record: Rollout) -> None:
        """Enter the earlier sources and the memory into the record of the next turn."""
        given = {source.id for source in self.sources}
        record.sources.reserved = {
            where: source for where, source in record.sources.reserved.items() if source not in given
        }
        for source in self.sources:
            record.sources.reserved[source.location] = source.id
            record.sources.add(source)
        record.memory = DualMemory([*self.facts], [*self.resources])


def _lasting(source: Source, run: str) -> Source:
    """A source under a location that no later turn has: each run counts its computations from 1."""
    if source.kind != "computation" or "@" in source.location:
        return source
    return replace(source, location=f"{source.location}@{run}")
