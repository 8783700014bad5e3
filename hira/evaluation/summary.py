"""The summary of the records. Pure: the same records give the same figures, bit by bit, in any order."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from hira.agents.calls import SEARCHES
from hira.evaluation.cells import Cell, join_way
from hira.evaluation.files import labels_of
from hira.evaluation.record import Record
from hira.evaluation.rewards.match import extract_answer
from hira.evaluation.statistics import Interval, bootstrap, majority, pass_at, wilson
from hira.evidence import Verdict

FETCHES = frozenset({"browse", "paper"})


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One way of asking, over all its seeds. Means are over asked questions."""

    workflow: str
    model: str
    variant: str
    seeds: int
    asked: int
    scored: int
    """The number of scored questions."""
    accuracy: Interval | None
    """Over scored questions, each counting once (avg@k), with its 95 % interval."""
    pass_at_k: float | None
    """The share of questions that any seed answered right (pass@k for k = all seeds); None for one seed."""
    majority: float | None
    """The share of questions whose majority answer is right; None for one seed."""
    value: float | None
    calls: float
    calls_by_role: Mapping[str, float]
    """For the search agent of MaMs, the interaction turns of the rubrics paper, Table 6."""
    tokens: float
    completion_tokens: float
    tool_calls: float
    subtasks: float
    cost: float | None
    statuses: Mapping[str, int]
    failures: Mapping[str, int]
    """The failures that ended runs early, by their names."""
    reasons: Mapping[str, str]
    """The text of the first failure of each name."""
    citations: Mapping[str, int]
    """The number of citations with each verdict."""
    tools: Mapping[str, tuple[int, int]]
    """The calls of each tool: all, and those that succeeded."""
    categories: Mapping[str, "Category"]
    parts: Mapping[str, float]
    """The mean of each component of the score (rubrics paper, Table 2)."""

    @property
    def name(self) -> str:
        return join_way(self.workflow, self.model, self.variant)

    @property
    def supported(self) -> tuple[int, int]:
        """The number of citations whose verdict is that they are supported, and of all that have one."""
        return self.citations.get(Verdict.SUPPORTED, 0), sum(self.citations.values())

    def success_rate(self, tools: Iterable[str]) -> float | None:
        """Return the share of these tools' calls that succeeded, None without calls."""
        counts = [self.tools[tool] for tool in sorted(tools) if tool in self.tools]
        made = sum(count for count, _ in counts)
        return sum(well for _, well in counts) / made if made else None


@dataclass(frozen=True, slots=True)
class Category:
    """A part of the questions: the numbers of scored and of right ones (summed over seeds), and the means of completion
    tokens and tool calls over all asked ones (HiRA, Fig. 5)."""

    scored: int
    right: int
    completion_tokens: float
    tool_calls: float

    @property
    def accuracy(self) -> float | None:
        return self.right / self.scored if self.scored else None


def rows(records: Sequence[Record], cells: Sequence[Cell]) -> list[SummaryRow]:
    """Return one row for each way of asking, in the order of the plan."""
    groups: dict[tuple[str, str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[cell.group].append(cell)
    by_cell: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_cell[record.cell].append(record)
    summary = []
    for group, group_cells in groups.items():
        questioned: list[Record] = []
        for cell in group_cells:
            questioned += sorted(by_cell[cell.name], key=lambda record: record.id)
        if questioned:
            summary.append(_row(group, len(group_cells), questioned))
    return summary


def _row(group: tuple[str, str, str], seeds: int, records: Sequence[Record]) -> SummaryRow:
    by_question: dict[str, list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record.id):
        if record.score.correct is not None:
            by_question[record.id].append(record)
    tries = by_question.values()
    shares = [fmean([float(bool(record.score.correct)) for record in scored]) for scored in tries]
    accuracy = None
    if shares and all(share in (0.0, 1.0) for share in shares):
        accuracy = wilson(round(sum(shares)), len(shares))  # valid for small numbers and at 0 and 1
    elif shares:
        accuracy = bootstrap(shares)
    values = [record.score.value for record in records if record.score.value is not None]
    costs = [record.cost for record in records if record.cost is not None]
    usage = [record.usage for record in records]
    calls = _sum({role: usage.calls for role, usage in record.roles.items()} for record in records)
    made = _sum({tool: count for tool, (count, _) in record.tools.items()} for record in records)
    well = _sum({tool: count for tool, (_, count) in record.tools.items()} for record in records)
    parts: dict[str, list[float]] = defaultdict(list)
    for record in records:
        for name, value in record.score.parts.items():
            parts[name].append(value)
    return SummaryRow(
        *group,
        seeds=seeds,
        asked=len(records),
        scored=sum(record.score.value is not None for record in records),
        accuracy=accuracy,
        pass_at_k=_pass_at_k(tries) if seeds > 1 else None,
        majority=_score_majority(tries) if seeds > 1 else None,
        value=fmean(values) if values else None,
        calls=fmean([role_usage.calls for role_usage in usage]),
        calls_by_role={role: count / len(records) for role, count in sorted(calls.items())},
        tokens=fmean([role_usage.tokens for role_usage in usage]),
        completion_tokens=fmean([role_usage.completion_tokens for role_usage in usage]),
        tool_calls=fmean([record.interactions for record in records]),
        subtasks=fmean([record.subtasks for record in records]),
        cost=sum(costs) if costs else None,
        statuses=_sum({record.status: 1} for record in records),
        failures=_sum({record.error.partition(": ")[0]: 1} for record in records if record.error),
        reasons={
            name: reason for name, _, reason in (record.error.partition(": ") for record in records[::-1]) if name
        },
        citations=_sum(record.verdicts for record in records),
        tools={tool: (made[tool], well[tool]) for tool in made},
        categories=_categories(records),
        parts={name: fmean(known) for name, known in parts.items()},
    )


def _pass_at_k(tries: Collection[Sequence[Record]]) -> float | None:
    """Return pass@k of the scored tries of each question, for the least number k of tries."""
    if not tries:
        return None
    k = min(map(len, tries))
    rights = [sum(bool(record.score.correct) for record in records) for records in tries]
    return fmean([pass_at(right, len(records), k) for right, records in zip(rights, tries, strict=True)])


def _score_majority(tries: Collection[Sequence[Record]]) -> float | None:
    """Return the share of questions whose most frequent answer is right, given the scored tries of each."""
    right = []
    for records in tries:
        found = [record.score.extracted or extract_answer(record.answer) for record in records]
        answers = [" ".join(text.lower().split()) for text in found]
        chosen = majority(answers)
        right.append(float(bool(records[answers.index(chosen)].score.correct)) if chosen else 0.0)
    return fmean(right) if right else None


def _categories(records: Sequence[Record]) -> dict[str, Category]:
    by_label: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        for label in labels_of(record.category):
            by_label[label].append(record)
    categories = {}
    for name, labelled in sorted(by_label.items()):
        right = [record.score.correct for record in labelled if record.score.correct is not None]
        written = fmean([record.usage.completion_tokens for record in labelled])
        calls = fmean([record.interactions for record in labelled])
        categories[name] = Category(len(right), sum(right), written, calls)
    return categories


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(sorted(total.items()))


def as_json(row: SummaryRow) -> dict[str, Any]:
    interval = row.accuracy
    values: dict[str, Any] = _round(asdict(row))
    return values | {
        "calls_by_role": _round(row.calls_by_role),
        "parts": _round(row.parts),
        "accuracy": interval and round(interval.value, 6),
        "accuracy_95": interval and [round(interval.low, 6), round(interval.high, 6)],
        "tools": {tool: {"made": made, "ok": well} for tool, (made, well) in row.tools.items()},
        "search_success": row.success_rate(SEARCHES),
        "fetch_success": row.success_rate(FETCHES),
        "categories": {
            name: {**_round(asdict(category)), "accuracy": category.accuracy}
            for name, category in row.categories.items()
        },
    }


def _round(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in values.items()}
