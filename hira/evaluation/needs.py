"""What a metric has to have of every question. It is looked at before any question is asked, and so before any is paid
for."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hira.agents.rubrics.rubric import Rubric
from hira.core.errors import UsageError
from hira.evaluation.item import Item
from hira.evaluation.rewards.answer_judge import JUDGES
from hira.evaluation.rewards.race import Dimension, criteria_of


def check(metric: str, items: Sequence[Item], data: str) -> None:
    """Raise `UsageError` for the first question that lacks what the metric holds answers against. A metric that is not
    known here, such as one of your own, needs nothing."""
    needed = NEEDED.get(metric)
    if needed is None:
        return
    for item in items:
        try:
            needed(item)
        except UsageError as error:
            raise UsageError(error.what, where=f"in {data}; {_columns(item)}", fix=error.fix) from None


def answer_of(item: Item) -> None:
    """Any known answer, or word that there is none."""
    if not (item.answerable or item.unanswerable):
        fix = 'name its column: --column answer=NAME; if the answer is unknown, write "answer": []'
        raise UsageError(f"question {item.id!r} has no reference answer", fix=fix)


def short_answer_of(item: Item) -> None:
    """An answer that an answer can be equal to as a whole."""
    answer_of(item)
    if item.every:
        what = f"question {item.id!r} has several answers that all have to be said, and no answer is equal to them"
        raise UsageError(what, fix="--metric match")


def rubric_of(item: Item) -> Rubric:
    try:
        return Rubric.of(_json(item, "rubric"))
    except ValueError as error:
        raise _lacking("rubric", item, str(error)) from None


def race_of(item: Item) -> tuple[tuple[Dimension, ...], str]:
    """The criteria, and the report that the answer is compared with."""
    try:
        dimensions = criteria_of(_json(item, "criteria"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _lacking("criteria", item, str(error)) from None
    reference = item.meta.get("reference")
    if not isinstance(reference, str) or not reference.strip():
        raise _lacking("reference", item, "it is empty")
    return dimensions, reference


NEEDED: Mapping[str, Callable[[Item], object]] = {
    "match": answer_of,
    **dict.fromkeys(JUDGES, answer_of),
    "em": short_answer_of,
    "numeric": short_answer_of,
    "rubric": rubric_of,
    "race": race_of,
}


def _json(item: Item, name: str) -> Any:
    """A column that holds JSON, as text or already read."""
    value = item.meta.get(name)
    if value is None:
        raise _lacking(name, item, "there is none")
    return json.loads(value) if isinstance(value, str) else value


def _lacking(name: str, item: Item, why: str) -> UsageError:
    fixes: Mapping[str, str] = {
        "rubric": "give each question a rubric: hira rubric QUERY --json writes one",
        "reference": "give each question a report to compare with",
        "criteria": "give each question criteria in the benchmark's shape",
    }
    return UsageError(f"question {item.id!r} has no {name} that can be used: {why}", fix=fixes[name])


def _columns(item: Item) -> str:
    return f"its other columns: {', '.join(map(str, item.meta)) or 'none'}"
