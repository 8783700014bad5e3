"""Best of N: how often a workflow with its tools answers a question rightly (MARS, appendix B, step 5 and Figure 5).

Answered 1 to 12 times of 16, a question can be learned from. Never: it may be ambiguous, or its answer wrong. More
often: it is trivial.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hira.core.errors import UsageError
from hira.evaluation.cells import grid
from hira.evaluation.item import Item
from hira.evaluation.record import Record
from hira.evaluation.run import Evaluation, Plan, Scorer, Task
from hira.runtime.settings import Settings
from hira.trainers.curation.decision import Decision

OWN = ("DialectError", "ContextOverflow", "Withheld", "BadReply", "OutOfBudget", "RoleBudgetExceeded")
"""What an attempt brings upon itself. Any other failure is none of the question's."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """`attempts` at each question, of which `fewest` to `most` have to be right."""

    attempts: int = 16
    fewest: int = 1
    most: int = 12
    workflow: str = "mars"
    metric: str = "match"
    concurrency: int = 8

    def __post_init__(self) -> None:
        if not 0 <= self.fewest <= self.most <= self.attempts or not self.attempts:
            what = f"{self.fewest} to {self.most} of {self.attempts} attempts cannot be right"
            raise UsageError(what, fix="choose 0 ≤ fewest ≤ most ≤ attempts")

    def kept(self, right: int, unknown: int) -> bool | None:
        """Whether a question is kept of which so many attempts were right and so many are not known.

        None where it hangs on those that are not known.

        >>> Challenge().kept(3, 0), Challenge().kept(0, 0), Challenge().kept(13, 3), Challenge().kept(0, 1)
        (True, False, False, None)
        """
        possible = {self.fewest <= right + more <= self.most for more in range(unknown + 1)}
        return possible.pop() if len(possible) == 1 else None


class Attempts(Evaluation):
    """The attempts at those questions that came so far, in an evaluation of all of them: what a later stage makes of
    further questions goes on in the same folder."""

    def __init__(self, plan: Plan, folder: Path, score: Scorer, wanted: Collection[str]) -> None:
        super().__init__(plan, folder, score)
        self.wanted = frozenset(wanted)

    @property
    def left(self) -> list[Task]:
        return [task for task in super().left if task.item.id in self.wanted]


def plan_of(challenge: Challenge, data: str, items: Sequence[Item], settings: Settings) -> Plan:
    """Every attempt is a cell with a seed of its own."""
    cells = tuple(grid([challenge.workflow], [], challenge.attempts))
    return Plan(data, tuple(items), cells, settings, challenge.metric, challenge.concurrency)


def counted(records: Sequence[Record], wanted: Collection[str]) -> dict[str, list[bool]]:
    """The attempts at each question whose outcome is known."""
    found: dict[str, list[bool]] = {one: [] for one in wanted}
    for one in records:
        if one.id in found and (right := outcome(one)) is not None:
            found[one.id].append(right)
    return found


def outcome(record: Record) -> bool | None:
    """Whether the attempt was right; None if what it ran on broke it, or nobody could judge it."""
    if record.error and not record.error.startswith(OWN):
        return None
    return record.score.correct


def decided(challenge: Challenge, outcomes: Mapping[str, Sequence[bool]]) -> list[Decision]:
    """The decisions on all questions of which enough is known."""
    found = []
    for question, known in outcomes.items():
        right = sum(known)
        kept = challenge.kept(right, challenge.attempts - len(known))
        if kept is not None:
            told = {"right": right, "known": len(known), "of": challenge.attempts}
            why = "" if kept else "never answered" if right < challenge.fewest else "answered too often"
            found.append(Decision("challenge", question, kept=kept, why=why, told=told))
    return found
