"""Agreement of a judge with human labels, which says how far its verdicts can be trusted."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hira.core.errors import Stop, UsageError
from hira.core.window import CONCURRENCY, map_concurrently
from hira.evaluation.files import require_columns, rows_of
from hira.evaluation.rewards.answer_judge import JUDGES, Verdict
from hira.evaluation.rewards.match import extract_answer
from hira.evaluation.scorers import begin_judgement, open_judge
from hira.evaluation.statistics import Interval, wilson
from hira.runtime.settings import Settings

LABELS = {
    **dict.fromkeys(("true", "yes", "correct", "right", "1"), True),
    **dict.fromkeys(("false", "no", "incorrect", "wrong", "not_attempted", "0"), False),
}
NEEDED = ("question", "answer", "response", "label")


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """Agreement over the rows that the judge could judge."""

    judge: str
    labelled: int
    """The number of rows of the file."""
    unscored: int
    """The number of rows for which the judge failed; they count in no other figure."""
    agreed: Interval
    """The share of rows on which judge and label agree, with its 95 % interval."""
    kappa: float
    accepted: int
    """The number of wrong responses that the judge accepted."""
    refused: int
    """The number of right responses that it refused."""
    wrong: tuple[tuple[int, str], ...]
    """Number and reason of each row on which they differ."""


async def measure_agreement(path: Path, judge: str, settings: Settings) -> JudgeAgreement:
    """Ask the judge about every labelled response. Raises `UsageError` for an unusable file or an unknown judge."""
    if judge not in JUDGES:
        raise UsageError(f"{judge!r} is not a judge", fix=f"choose one of {', '.join(JUDGES)}")
    rows = read_labels(path)
    verdicts: dict[int, tuple[bool, str]] = {}
    async with open_judge(settings, None) as context:

        async def ask(number: int) -> tuple[int, Verdict | None]:
            question, answer, response, _ = rows[number - 1]
            conversation = begin_judgement(context, question).conversation("judge")
            try:
                return number, await JUDGES[judge](conversation, question, answer, extract_answer(response))
            except Stop:  # the judge has spent its budget
                return number, None

        async for number, verdict in map_concurrently(range(1, len(rows) + 1), CONCURRENCY, ask):
            if verdict is not None:
                verdicts[number] = verdict.correct, verdict.reason
    judged = [(number, rows[number - 1][3], *verdicts[number]) for number in sorted(verdicts)]
    counts = Counter((label, correct) for _, label, correct, _ in judged)
    return JudgeAgreement(
        judge,
        len(rows),
        len(rows) - len(judged),
        wilson(counts[True, True] + counts[False, False], len(judged)),
        compute_kappa(counts),
        counts[False, True],
        counts[True, False],
        tuple((number, reason) for number, label, correct, reason in judged if label != correct),
    )


def read_labels(path: Path) -> list[tuple[str, str, str, bool]]:
    """Read question, answer, response and label of each row. Raises `UsageError` for a row that lacks one."""
    rows = []
    for number, row in enumerate(rows_of(path), 1):
        where = f"row {number} of {path}"
        question, answer, response, label = require_columns(row, NEEDED, where)
        if label.lower() not in LABELS:
            raise UsageError(f"the label {label!r} is not true or false", where=where, fix="write true or false")
        rows.append((question, answer, response, LABELS[label.lower()]))
    if not rows:
        raise UsageError("there are no labels", where=f"in {path}", fix=f"each row needs {', '.join(NEEDED)}")
    return rows


def compute_kappa(counts: Mapping[tuple[bool, bool], int]) -> float:
    """Compute Cohen's kappa of two raters from the counts of their pairs of verdicts; 0 without pairs."""
    total = sum(counts.values()) or 1
    first = sum(count for (verdict, _), count in counts.items() if verdict) / total
    second = sum(count for (_, other), count in counts.items() if other) / total
    agreed = sum(count for (verdict, other), count in counts.items() if verdict == other) / total
    chance = first * second + (1 - first) * (1 - second)
    return (agreed - chance) / (1 - chance) if chance < 1 else float(agreed)


def format_agreement(agreement: JudgeAgreement) -> str:
    """Format the agreement as text, with one line for each row on which judge and label differ."""
    agreed, judged = agreement.agreed, agreement.labelled - agreement.unscored
    share = f"{100 * agreed.value:.1f} % of {judged} (95 % {100 * agreed.low:.1f} to {100 * agreed.high:.1f})"
    lines = [
        f"judge {agreement.judge}: agrees on {share}, kappa {agreement.kappa:.2f}",
        f"  wrong accepted: {agreement.accepted}, right refused: {agreement.refused}, not judged: {agreement.unscored}",
    ]
    return "\n".join([*lines, *(f"  row {number}: {reason}" for number, reason in agreement.wrong)])
