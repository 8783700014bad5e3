"""The record of each question: one line of JSON, written when it is finished."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hira.core.errors import UsageError
from hira.core.policy import Usage
from hira.evaluation.cells import Cell
from hira.evaluation.files import Item
from hira.journal.encoding import DamagedRecord, read_json, validate
from hira.runtime.answer import Answer


@dataclass(frozen=True, slots=True)
class Score:
    """`correct` and `value` (0 to 1) are None if the answer is unscored, never 0. `note` has the reason, or the judge's
    explanation; `parts` the components of the value, such as RACE's dimensions."""

    correct: bool | None
    value: float | None
    metric: str
    note: str = ""
    extracted: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """One question in one cell."""

    cell: str
    id: str
    category: str
    question: str
    gold: str
    answer: str
    status: str
    score: Score
    error: str = ""
    """The failure that ended the run, such as `RateLimited: …`."""
    run: str = ""
    seconds: float = 0.0
    """Wall time."""
    cost: float | None = None
    subtasks: int = 0
    roles: Mapping[str, Usage] = field(default_factory=dict)
    """The usage of each role."""
    tools: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The calls of each tool: all, and those that succeeded."""
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """The number of citations with each verdict."""

    @property
    def usage(self) -> Usage:
        return sum(self.roles.values(), Usage())

    @property
    def interactions(self) -> int:
        """The number of tool calls."""
        return sum(made for made, _ in self.tools.values())


def record_of(
    cell: Cell, item: Item, answer: Answer, score: Score, tools: Mapping[str, tuple[int, int]], seconds: float
) -> Record:
    rollout, failure = answer.rollout, answer.rollout.failure
    roles: dict[str, Usage] = {}
    for trajectory in rollout.trajectories.values():
        roles[trajectory.role] = roles.get(trajectory.role, Usage()) + trajectory.usage
    return Record(
        cell.name,
        item.id,
        item.category,
        item.question,
        item.gold,
        answer.text,
        answer.status,
        score,
        f"{type(failure).__name__}: {'; '.join(str(failure).splitlines())}" if failure else "",
        rollout.run,
        round(seconds, 3),
        rollout.usage.cost,
        len(rollout.findings),
        roles,
        dict(tools),
        dict(Counter(str(citation.verdict) for citation in answer.citations)),
    )


def read(path: Path) -> list[Record]:
    """Return the records of a file. If two processes asked a question, the later record counts; an incomplete last
    line, after a crash of the machine, is left out."""
    if not path.exists():
        return []
    # model output may contain other line separators
    lines = [line for line in path.read_bytes().split(b"\n") if line]
    by_question: dict[tuple[str, str], Record] = {}
    for number, line in enumerate(lines, 1):
        try:
            record: Record = validate(Record, read_json(line))
        except DamagedRecord as error:
            if number == len(lines):
                break
            what = f"line {number} cannot be read: {error}"
            raise UsageError(what, where=f"in {path}", fix="remove the line") from None
        by_question[record.cell, record.id] = record
    return list(by_question.values())
