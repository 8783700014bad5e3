"""Follow-up questions: what the earlier turns of a conversation leave for the next one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hira.agents.trajectory import Rollout
from hira.core.memory import DualMemory, Fact, Resource
from hira.core.prompts import Prompt, is_copied
from hira.evidence import Source

HISTORY = Prompt(__file__, "history")
LONGEST_HISTORY = 8_000
"""Characters, about 2,000 tokens."""
LONGEST_OLDER = 12_000
"""Characters of the older messages that one call sums up; beyond, the oldest are dropped."""
LONGEST_SUMMARY = 2_000
"""Characters, about 500 tokens."""
LONGEST_MESSAGE = 3_500
"""Characters, so that the latest question and its answer both fit."""
CONTINUES: Final = "continues"
"""The recorded setting that names the run whose conversation is continued."""
SENT: Final = "history"
"""The recorded setting with the earlier messages that came with the question."""
SUMMARY: Final = "summary"
"""The channel of the event that a summary of earlier turns is recorded with."""
Messages = Sequence[tuple[str, str]]
"""Earlier messages in order: the speaker (`user`, `assistant`) and the text."""


def keep_latest(messages: Messages, room: int = LONGEST_HISTORY) -> tuple[tuple[str, str], ...]:
    """The latest of the messages that fit into `room` characters; long ones are cut."""
    kept: list[tuple[str, str]] = []
    for role, text in reversed(messages):
        shown = _cut(text)
        room -= len(_line_of(role, shown))
        if room < 0:
            break
        kept.insert(0, (role, shown))
    return tuple(kept)


def split_history(messages: Messages) -> tuple[Messages, Messages]:
    """Return the older messages, which are summed up, and the latest, which stay as they are. Nothing is older while
    all fit; then half of the room becomes free, so that not every turn costs a call."""
    if len(keep_latest(messages)) == len(messages):
        return (), messages
    kept = max(2, len(keep_latest(messages, LONGEST_HISTORY // 2)))
    if kept > 2 and messages[-kept][0] != "user":
        kept -= 1  # an answer stays with its question
    return messages[:-kept], messages[-kept:]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE + 1 else f"{text[:LONGEST_MESSAGE]}…"


def _line_of(role: str, text: str, **more: str) -> str:
    return json.dumps({"role": role, "text": text, **more}, ensure_ascii=False)


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
    summary: str = ""
    """A model's summary of the messages before these; no evidence."""
    statuses: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The status of each answer that is not `answered`, by its text."""

    @classmethod
    def of_messages(cls, messages: Messages, known: "Earlier | None" = None) -> "Earlier":
        """Build the history from messages that a client sent, with the sources and memory of the `known` turns, and
        their summary if the questions after it are the same."""
        known = known or cls("", (), (), (), ())
        sent = keep_latest(messages, LONGEST_OLDER + LONGEST_HISTORY)
        begins = _find_questions(sent, known.messages) if known.summary else None
        summary = "" if begins is None else known.summary
        return replace(known, messages=sent[begins or 0 :], summary=summary, sent=True)

    @classmethod
    def of(cls, record: Rollout, before: "Earlier | None") -> "Earlier":
        """Build the history from a turn and those before it."""
        exchange = (("user", record.question), ("assistant", record.answer))
        before = before or cls("", (), (), (), ())
        if record.summary:
            before = before.condense(record.summary)
        status = {} if record.status == "answered" else {_cut(record.answer): record.status}
        read = [
            replace(source, location=f"{source.location}@{record.run}")  # each run counts its computations from 1
            if source.kind == "computation" and "@" not in source.location
            else source
            for source in record.sources.read.values()
        ]
        return cls(
            record.run,
            (*before.messages, *exchange),
            tuple(read),
            tuple(replace(fact, subtask="") for fact in record.memory.facts),
            tuple(replace(resource, subtask="") for resource in record.memory.resources),
            summary=before.summary,
            statuses={**before.statuses, **status},
        )

    def condense(self, summary: str) -> "Earlier":
        """Replace the older messages by a summary of them, which contains the summary so far."""
        return replace(self, summary=summary, messages=tuple(split_history(self.messages)[1]))

    def list_older(self) -> list[str]:
        """The messages that no longer fit, as lines of JSON with the status of answers that are not confirmed."""
        older = keep_latest(split_history(self.messages)[0], LONGEST_OLDER)
        status = {text: {"status": status} for text, status in self.statuses.items()}
        return [_line_of(role, text, **(status.get(text, {}) if role != "user" else {})) for role, text in older]

    @property
    def recorded(self) -> Mapping[str, Any]:
        """The part of the next turn's recorded settings that names this conversation."""
        return {**({CONTINUES: self.run} if self.run else {}), **({SENT: self.messages} if self.sent else {})}

    def extend(self, question: str) -> str:
        """The question as a workflow is asked it: with the latest of the earlier messages, if there are any, and a
        summary of those before them. Each is a line of JSON, so that none can contain another."""
        lines = [_line_of(*message) for message in keep_latest(self.messages)]
        told = json.dumps(self.summary, ensure_ascii=False) if self.summary else ""
        return str(HISTORY.fill(history="\n".join(lines), question=question, summary=told)) if lines else question

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


def repeats_history(text: str, question: str, messages: Messages) -> bool:
    """Return whether a text repeats the `question` as a workflow is asked it: in a line, one of the messages as JSON or
    hira's words around them, or in all lines, whole questions. Small models do this. An earlier answer may be true
    again, and an answer may begin with the question."""
    asked = [
        said for role, said in messages if role == "user" and (len(said.split()) > 2 or said.endswith(("?", "？")))
    ]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    copied = [line for line in lines if is_copied(line, question)]
    framed = (line.startswith("{") or (len(line.split()) > 3 and is_copied(line, HISTORY.text)) for line in copied)
    return any(framed) or (len(copied) == len(lines) and all(any(said in line for said in asked) for line in lines))


def _find_questions(messages: Messages, known: Messages) -> int | None:
    """Return where the questions of the known messages begin among those of a client, which may show answers in
    another form; None if they are not there."""
    asked = [_cut(text) for role, text in known if role == "user"]
    places = [at for at, (role, _) in enumerate(messages) if role == "user"]
    for first in range(len(places) - len(asked), -1, -1):
        if [messages[at][1] for at in places[first : first + len(asked)]] == asked:
            return places[first]
    return None
