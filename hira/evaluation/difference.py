"""A comparison of two evaluations of the same questions, or of two ways of asking in one, question by question: the
flips, and whether they may be chance."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from hira.core.errors import UsageError, did_you_mean
from hira.evaluation.cells import BETWEEN, Cell
from hira.evaluation.record import Record, read
from hira.evaluation.run import PLAN, RECORDS
from hira.evaluation.statistics import Interval, bootstrap, cohens_d, mcnemar, permutation_p_value
from hira.journal.encoding import DamagedRecord, read_json, validate


@dataclass(frozen=True, slots=True)
class Flip:
    """A question that one of the two answers correctly more often; shares are over seeds."""

    id: str
    question: str
    gold: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Difference:
    before: str
    after: str
    questions: int
    unscored: int
    """The number of questions that are not scored in both."""
    accuracy_before: float
    accuracy_after: float
    difference: Interval
    """The difference of the accuracies, with its bootstrap interval over questions."""
    p: float
    """McNemar's exact test for one seed, random changes of sign for several."""
    effect: float | None
    """The paired Cohen's d; None if it is infinite, because every question differs by the same amount."""
    flips: tuple[Flip, ...]


def compare_folders(before: Path, after: Path) -> list[Difference]:
    """Compare the folders of two evaluations. Ways of asking are paired by name, or directly if each folder has only
    one. Raises `UsageError` for folders without an evaluation, or with different questions."""
    first, second = _groups(before), _groups(after)
    asked = {(record.id, record.question) for records in first.values() for record in records}
    if asked.isdisjoint((record.id, record.question) for records in second.values() for record in records):
        raise UsageError("they have no question in common", where=f"{before} and {after}", fix="compare the same data")
    shared = [(name, name) for name in first if name in second]
    if not shared and len(first) == len(second) == 1:
        shared = [(next(iter(first)), next(iter(second)))]
    if not shared:
        raise UsageError(
            "they have no way of asking in common",
            where=f"{', '.join(first)} against {', '.join(second)}",
            fix="evaluate the same workflow and model in both, or only one in each",
        )
    return [_pair(key, other, first[key], second[other]) for key, other in shared]


def compare_within(folder: Path, ways: Sequence[str] = ()) -> Difference:
    """Compare two ways of asking in one evaluation: those with the given names, workflows or models, or its only two.
    Raises `UsageError` for a name that fits none or several, and without names unless there are exactly two."""
    groups = _groups(folder)
    known = ", ".join(groups)
    if not ways and len(groups) != 2:
        fix = "name two of them after the folder" if len(groups) > 2 else "name another folder to compare it with"
        raise UsageError(f"{folder} does not hold two ways of asking", where=f"it holds {known}", fix=fix)
    before, after = (_way(name, groups) for name in ways) if ways else groups
    if before == after:
        raise UsageError(f"{before!r} is one way of asking, not two", where=f"{folder} holds {known}", fix="name two")
    return _pair(before, after, groups[before], groups[after])


def _way(name: str, groups: Mapping[str, Sequence[Record]]) -> str:
    """Return the one way of asking that has these parts; a workflow or a model alone may be enough."""
    wanted = {part.strip() for part in name.split("·")}
    fitting = [group for group in groups if wanted.issubset(group.split(BETWEEN))]
    if not fitting:
        parts = dict.fromkeys(part for group in groups for part in group.split(BETWEEN))
        raise UsageError(f"nothing was asked with {name!r}", fix=did_you_mean(name, parts))
    if len(fitting) > 1:
        raise UsageError(f"{name!r} fits several ways of asking", fix=f"name one of {', '.join(map(repr, fitting))}")
    return fitting[0]


def _groups(folder: Path) -> dict[str, list[Record]]:
    """Return the records of each way of asking, all seeds together."""
    path = folder / PLAN
    if not path.is_file():
        raise UsageError(f"{folder} holds no evaluation", fix="name an output folder of `hira eval`")
    try:
        plan = read_json(path.read_bytes())
        cells: list[Cell] = validate(list[Cell], plan.get("cells") if isinstance(plan, dict) else None)
    except (OSError, DamagedRecord) as error:
        raise UsageError(f"the plan cannot be read: {error}", where=f"in {path}", fix="name another folder") from None
    groups = {cell.name: cell.way for cell in cells}
    records: dict[str, list[Record]] = {group: [] for group in groups.values()}  # in the order of the plan
    for record in read(folder / RECORDS):
        if record.cell in groups:
            records[groups[record.cell]].append(record)
    records = {group: finished for group, finished in records.items() if finished}
    if not records:
        raise UsageError(f"{folder} holds no finished question", fix="resume the evaluation first")
    return records


def _pair(name: str, other: str, before: Sequence[Record], after: Sequence[Record]) -> Difference:
    first, second = _shares(before), _shares(after)
    both = [key for key in first if key in second]
    if not both:
        raise UsageError(f"no question is scored in both for {name}", fix="read records.jsonl to see why")
    differences = [second[key][0] - first[key][0] for key in both]
    flips = [
        Flip(record.id, record.question, record.gold, before_share, second[key][0])
        for key, (before_share, record) in first.items()
        if key in second and before_share != second[key][0]
    ]
    single = all(share in (0.0, 1.0) for key in both for share in (first[key][0], second[key][0]))
    better = sum(difference > 0 for difference in differences)
    worse = sum(difference < 0 for difference in differences)
    effect = cohens_d(differences)
    return Difference(
        name,
        other,
        len(both),
        len({(record.id, record.question) for record in (*before, *after)}) - len(both),
        fmean([first[key][0] for key in both]),
        fmean([second[key][0] for key in both]),
        bootstrap(differences),
        mcnemar(better, worse) if single else permutation_p_value(differences),
        effect if math.isfinite(effect) else None,
        tuple(flips),
    )


def _shares(records: Sequence[Record]) -> dict[tuple[str, str], tuple[float, Record]]:
    """Return for each scored question its share of right answers, with one of its records."""
    by_question: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        if record.score.correct is not None:
            by_question[record.id, record.question].append(record)
    rights = {key: [float(bool(record.score.correct)) for record in tries] for key, tries in by_question.items()}
    return {key: (fmean(rights[key]), tries[0]) for key, tries in sorted(by_question.items())}


def format_difference(pairs: Sequence[Difference]) -> str:
    """Format the comparison for a person: each pair in a line or two, then the questions that flipped."""
    lines: list[str] = []
    for pair in pairs:
        name = pair.before if pair.before == pair.after else f"{pair.before} → {pair.after}"
        share = f"{100 * pair.accuracy_before:.1f} → {100 * pair.accuracy_after:.1f}"
        interval = pair.difference
        points = f"{100 * interval.value:+.1f} points (95 % {100 * interval.low:+.1f} to {100 * interval.high:+.1f})"
        lines += [
            f"{name}: {share} over {pair.questions} questions",
            f"  {points}, p = {pair.p:.3g}" + (f", {pair.unscored} not scored in both" if pair.unscored else ""),
        ]
        for sign, chosen in (("+", 1), ("-", -1)):
            flipped = [flip for flip in pair.flips if (flip.after - flip.before) * chosen > 0]
            lines += [f"  {sign} {flip.id}: {' '.join(flip.question.split())[:100]}" for flip in flipped]
    return "\n".join(lines)
