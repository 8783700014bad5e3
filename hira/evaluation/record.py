"""The record of each question: one line of JSON, written when it is finished."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hira.core.errors import UsageError
from hira.evaluation.cells import Cell
from hira.evaluation.files import Item
from hira.runtime.answer import Answer


@dataclass(frozen=True, slots=True)
class Score:
    """`correct` and `value` (0 to 1) are None if the answer is unscored, never 0. `note` has the reason, or the judge's
    explanation."""

    correct: bool | None
    value: float | None
    metric: str
    note: str = ""
    extracted: str = ""


@dataclass(frozen=True, slots=True)
class Spent:
    """The usage of one role in one run."""

    calls: int
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Record:
    """One question in one cell. `tools` counts calls by tool as [all, succeeded]; `seconds` is wall time."""

    cell: str
    id: str
    category: str
    question: str
    gold: str
    answer: str
    status: str
    score: Score
    error: str = ""
    run: str = ""
    seconds: float = 0.0
    cost: float | None = None
    subtasks: int = 0
    roles: Mapping[str, Spent] = field(default_factory=dict)
    tools: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    verdicts: Mapping[str, int] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        return sum(role.calls for role in self.roles.values())

    @property
    def tokens(self) -> int:
        return sum(role.prompt_tokens + role.completion_tokens for role in self.roles.values())

    @property
    def written(self) -> int:
        """The number of completion tokens: the length of the reasoning."""
        return sum(role.completion_tokens for role in self.roles.values())

    @property
    def interactions(self) -> int:
        """The number of tool calls."""
        return sum(made for made, _ in self.tools.values())

    @property
    def line(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False, sort_keys=True)


def record_of(
    cell: Cell, item: Item, answer: Answer, score: Score, tools: Mapping[str, tuple[int, int]], seconds: float
) -> Record:
    rollout = answer.rollout
    roles: dict[str, Spent] = {}
    for trajectory in rollout.trajectories.values():
        usage, known = trajectory.usage, roles.get(trajectory.role, Spent(0, 0, 0))
        roles[trajectory.role] = Spent(
            known.calls + usage.calls,
            known.prompt_tokens + usage.prompt_tokens,
            known.completion_tokens + usage.completion_tokens,
        )
    return Record(
        cell.name,
        item.id,
        item.category,
        item.question,
        item.gold,
        answer.text,
        answer.status,
        score,
        kind_of(answer),
        rollout.run,
        round(seconds, 3),
        rollout.usage.cost,
        len(rollout.findings),
        roles,
        dict(tools),
        dict(Counter(str(citation.verdict) for citation in answer.citations)),
    )


def kind_of(answer: Answer) -> str:
    """Return the failure that ended a run, such as `RateLimited: …`; "" if none did."""
    failure = answer.rollout.failure
    return f"{type(failure).__name__}: {failure.what}" if failure else ""


def read(path: Path) -> list[Record]:
    """Return the records of a file. If two processes asked a question, the later record counts; an incomplete last
    line, after a crash of the machine, is left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")  # model output may contain other line separators
    return list({(one.cell, one.id): one for one in _records([line for line in lines if line], path)}.values())


def _records(lines: Iterable[str], path: Path) -> Iterator[Record]:
    lines = list(lines)
    for at, line in enumerate(lines, 1):
        try:
            yield from_json(json.loads(line))
        except (ValueError, TypeError, KeyError) as error:
            if at == len(lines):
                return
            raise UsageError(f"line {at} cannot be read: {error}", where=f"in {path}", fix="remove the line") from None


def from_json(values: Mapping[str, Any]) -> Record:
    values = dict(values)
    values["score"] = Score(**values["score"])
    values["roles"] = {role: Spent(**spent) for role, spent in values["roles"].items()}
    values["tools"] = {tool: (made, well) for tool, (made, well) in values["tools"].items()}
    return Record(**values)
