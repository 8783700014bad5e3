"""How well scores agree with preferences: accuracy and effect size (appendix E, eq. 6 and 7), with what they leave
out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hira.evaluation.statistics import Interval, bootstrap, cohens_d, wilson


@dataclass(frozen=True, slots=True)
class Effect:
    """The paired Cohen's d. `low` or `high` is None where d has no such bound, because in too many draws of the
    bootstrap all margins are alike."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """`accuracy` is the share of pairs whose accepted report has the higher score; a tie is none. It is what the paper
    calls AUC, which it equals only without ties: `auc` counts a tie for a half. `d` is the paired Cohen's d, None for a
    way of judging that gives no scores, and where all margins are alike. `unscored` pairs are in no figure."""

    way: str
    pairs: int
    unscored: int
    ties: int
    accuracy: Interval | None
    auc: float | None
    d: Effect | None

    def json(self) -> dict[str, Any]:
        return asdict(self)


def agreement(way: str, margins: Sequence[float | None], *, scored: bool = True, draws: int = 2_000) -> Agreement:
    """The figures of margins S(accepted) - S(rejected), None where a report has no score.

    `scored` is False where a margin is only a sign. The intervals are Wilson's and, of d, the percentile bootstrap's.
    """
    known = [margin for margin in margins if margin is not None]
    ties = sum(margin == 0 for margin in known)
    right = sum(margin > 0 for margin in known)
    if not known:
        return Agreement(way, len(margins), len(margins), 0, None, None, None)
    effect = _effect(known, draws) if scored and len(known) > 1 else None
    auc = (right + ties / 2) / len(known)
    return Agreement(way, len(margins), len(margins) - len(known), ties, wilson(right, len(known)), auc, effect)


def _effect(margins: Sequence[float], draws: int) -> Effect | None:
    found = bootstrap(margins, cohens_d, draws=draws)
    if not math.isfinite(found.value):
        return None
    low, high = (bound if math.isfinite(bound) else None for bound in (found.low, found.high))
    return Effect(found.value, low, high)


def correlation(ones: Sequence[float], others: Sequence[float]) -> float | None:
    """Pearson's r; None where one of both does not vary. Of a judge's quality and whether a rubric orders the reports
    as people did, it says whether the judge may lead: only then hybrid rewards do better than preferences alone."""
    if len(ones) != len(others):
        raise ValueError(f"expected as many values, got {len(ones)} and {len(others)}")
    if len(ones) < 2:
        return None
    centre, other = sum(ones) / len(ones), sum(others) / len(others)
    a, b = [one - centre for one in ones], [one - other for one in others]
    size = (sum(one * one for one in a) * sum(one * one for one in b)) ** 0.5
    return sum(x * y for x, y in zip(a, b, strict=True)) / size if size else None


def table(found: Sequence[Agreement], told: Mapping[str, str] | None = None) -> str:
    """The figures as in the paper's Table 1, in Markdown, with ties and what has no score."""
    lines = [
        "| way of scoring | Pref. Acc. | 95 % | Cohen's d | 95 % | ties | unscored |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in found:
        accuracy, effect = one.accuracy, one.d
        cells = [
            (told or {}).get(one.way, one.way),
            f"{100 * accuracy.value:.2f}" if accuracy else "–",
            f"{100 * accuracy.low:.1f} to {100 * accuracy.high:.1f}" if accuracy else "–",
            f"{effect.value:.3f}" if effect else "–",
            f"{_bound(effect.low, '−∞')} to {_bound(effect.high, '∞')}" if effect else "–",
            f"{one.ties} of {one.pairs - one.unscored}",
            str(one.unscored),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _bound(bound: float | None, without: str) -> str:
    return without if bound is None else f"{bound:.2f}"
