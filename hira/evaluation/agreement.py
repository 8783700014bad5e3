"""How often a judge agrees with labels of people, so that its verdicts can be trusted as far as they deserve."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hira.agents.run_context import RunContext
from hira.agents.trajectory import Rollout
from hira.core.concurrency import map_concurrently
from hira.core.errors import Stop, UsageError
from hira.evaluation.files import rows_of
from hira.evaluation.rewards.answer_judge import JUDGES
from hira.evaluation.rewards.match import extract_answer
from hira.evaluation.scorers import judging
from hira.evaluation.statistics import Interval, wilson
from hira.runtime.settings import Settings

TRUE = frozenset({"true", "yes", "correct", "right", "1"})
FALSE = frozenset({"false", "no", "incorrect", "wrong", "not_attempted", "0"})
NEEDED = ("question", "answer", "response", "label")


@dataclass(frozen=True, slots=True)
class Labelled:
    """A response that a person has judged."""

    question: str
    answer: str
    response: str
    label: bool


@dataclass(frozen=True, slots=True)
class Agreement:
    """`kappa` is Cohen's: agreement beyond chance. `accepted` counts wrong answers that the judge let pass, `refused`
    right ones that it did not; `wrong` are the lines on which it differs, as (line, reason)."""

    judge: str
    labelled: int
    unscored: int
    agreed: Interval
    kappa: float
    accepted: int
    refused: int
    wrong: tuple[tuple[int, str], ...]

    def json(self) -> dict[str, Any]:
        return asdict(self)


async def agreement(path: Path, judge: str, settings: Settings, concurrency: int = 8) -> Agreement:
    """Ask the judge about every labelled response. Raises `UsageError` for a file that cannot be used."""
    if judge not in JUDGES:
        raise UsageError(f"{judge!r} is not a judge", fix=f"choose one of {', '.join(JUDGES)}")
    rows = read_labels(path)
    found: dict[int, tuple[bool | None, str]] = {}
    async with judging(settings, None) as context:

        async def ask(one: tuple[int, Labelled]) -> tuple[int, bool | None, str]:
            at, row = one
            own = RunContext(context.cast, Rollout("", row.question, "judge"), budget=context.budget)
            try:
                verdict = await JUDGES[judge](
                    own.conversation("judge"), row.question, row.answer, extract_answer(row.response)
                )
            except Stop as stop:  # the judge has spent what it may
                return at, None, stop.what
            return (at, None, "") if verdict is None else (at, verdict.correct, verdict.reason)

        async for at, correct, reason in map_concurrently(enumerate(rows, 1), concurrency, ask):
            found[at] = (correct, reason)
    return compare_verdicts(judge, rows, found)


def read_labels(path: Path) -> list[Labelled]:
    rows = []
    for at, row in enumerate(rows_of(path), 1):
        if missing := [name for name in NEEDED if row.get(name) in (None, "")]:
            fix = f"each needs {', '.join(NEEDED)}"
            raise UsageError(f"there is no {missing[0]!r}", where=f"row {at} of {path}", fix=fix)
        label = str(row["label"]).strip().lower()
        if label not in TRUE | FALSE:
            fix = "write true or false"
            raise UsageError(f"the label {row['label']!r} is not true or false", where=f"row {at} of {path}", fix=fix)
        rows.append(Labelled(str(row["question"]), str(row["answer"]), str(row["response"]), label in TRUE))
    if not rows:
        raise UsageError("there are no labels", where=f"in {path}")
    return rows


def compare_verdicts(judge: str, rows: Sequence[Labelled], found: Mapping[int, tuple[bool | None, str]]) -> Agreement:
    """What the verdicts come to against the labels; verdicts that are None are left out of every figure."""
    pairs = {at: (row.label, found[at][0]) for at, row in enumerate(rows, 1) if found[at][0] is not None}
    counts = Counter(pairs.values())
    agreed = counts[True, True] + counts[False, False]
    total = len(pairs)
    wrong = tuple((at, found[at][1]) for at, (label, verdict) in sorted(pairs.items()) if label != verdict)
    return Agreement(
        judge,
        len(rows),
        len(rows) - total,
        wilson(agreed, total),
        _kappa(counts, total),
        counts[False, True],
        counts[True, False],
        wrong,
    )


def _kappa(counts: Mapping[tuple[bool, bool | None], int], total: int) -> float:
    if not total:
        return 0.0
    people = (counts[True, True] + counts[True, False]) / total
    judge = (counts[True, True] + counts[False, True]) / total
    chance = people * judge + (1 - people) * (1 - judge)
    agreed = (counts[True, True] + counts[False, False]) / total
    return 1.0 if chance == 1 else (agreed - chance) / (1 - chance)


def format_agreement(found: Agreement) -> str:
    interval = found.agreed
    judged = found.labelled - found.unscored
    within = f"95 % {100 * interval.low:.1f} to {100 * interval.high:.1f}"
    lines = [
        f"judge {found.judge}: agrees on {100 * interval.value:.1f} % of {judged} ({within}), kappa {found.kappa:.2f}",
        f"  wrong answers let pass: {found.accepted}, right answers refused: {found.refused}"
        + (f", not judged: {found.unscored}" if found.unscored else ""),
    ]
    return "\n".join([*lines, *(f"  row {at}: {reason}" for at, reason in found.wrong)])
