"""Follow-up questions: what the earlier turns of a conversation leave for the next one."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hira.agents.trajectory import Rollout
from hira.core.memory import DualMemory, Fact, Resource
from hira.core.prompts import Prompt
from hira.evidence import Source

HISTORY = Prompt(__file__, "history")
CONTINUES = "continues"
"""Stands in a run's recorded settings for the run whose conversation it continues."""
Messages = Sequence[tuple[str, str]]
"""What was said, in order: who said it (`user`, `assistant`), and the text."""


def add_history(question: str, messages: Messages) -> str:
    """The question as a workflow is asked it: with the earlier messages, if there are any."""
    if not messages:
        return question
    history = "\n".join(f"{role}: {text}" for role, text in messages)
    return str(HISTORY.fill(history=history, question=question))


@dataclass(frozen=True, slots=True)
class Earlier:
    """The turns of a conversation before a question; `run` is the latest of them.

    `sources` keep their ids in the next turn. The subtasks that brought the facts are left out, since each turn numbers
    its own from 1.
    """

    run: str
    messages: tuple[tuple[str, str], ...]
    sources: tuple[Source, ...] = field(repr=False)
    facts: tuple[Fact, ...] = field(repr=False)
    resources: tuple[Resource, ...] = field(repr=False)

    @classmethod
    def of(cls, record: Rollout, before: "Earlier | None") -> "Earlier":
        """What a turn leaves, together with the turns before it."""
        asked = (("user", record.question), ("assistant", record.answer))
        return cls(
            record.run,
            (*(before.messages if before else ()), *asked),
            tuple(_lasting(source, record.run) for source in record.sources.read.values()),
            tuple(replace(fact, subtask="") for fact in record.memory.facts),
            tuple(replace(resource, subtask="") for resource in record.memory.resources),
        )

    def seed(self, record: Rollout) -> None:
        """Enter the earlier sources and the memory into the record of the next turn."""
        given = {source.id for source in self.sources}
        record.sources.reserved = {where: one for where, one in record.sources.reserved.items() if one not in given}
        for source in self.sources:
            record.sources.reserved[source.location] = source.id
            record.sources.add(source)
        record.memory = DualMemory([*self.facts], [*self.resources])


def _lasting(source: Source, run: str) -> Source:
    """A source under a location that no later turn has: each run counts its computations from 1."""
    if source.kind != "computation" or "@" in source.location:
        return source
    return replace(source, location=f"{source.location}@{run}")
