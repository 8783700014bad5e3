"""MarsRL's parts, Solver, Verifier1, Corrector1, Verifier2, Corrector2: their inputs, outputs and figures."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from hira.agents import marsrl
from hira.agents.marsrl import Review, Solution
from hira.evaluation.rewards.answers import RIGHT
from hira.trainers.metrics import Means
from hira.trainers.rollouts import ScoredRollout

STEPS = ("solver", "verifier", "corrector", "verifier", "corrector")
"""The role at each step. In training a problem has at most five (section 3.1)."""


@dataclass(frozen=True, slots=True)
class Input:
    """The input of all members of a group. `right` is whether the solution is right, by its own reward."""

    step: int
    problem: marsrl.MarsProblem
    solution: Solution | None = None
    right: bool = False
    review: Review | None = None

    @property
    def role(self) -> str:
        return STEPS[self.step - 1]

    @property
    def part(self) -> str:
        """The name of the role in figures: Verifier1 and Corrector1 work on the Solver's solution, the others on a
        refined one (section 3.1)."""
        return self.role if self.solution is None else f"{self.role}{2 if self.solution.refined else 1}"


@dataclass(frozen=True, slots=True)
class MemberOutput:
    """A member's answer: a solution or a review, and its rollout."""

    asked: Input
    scored: ScoredRollout
    solution: Solution | None
    review: Review | None

    @property
    def reward(self) -> float | None:
        return self.scored.attempt.reward if self.scored.attempt.counts else None

    @property
    def flagged(self) -> bool:
        """True for a review that reports errors, and not for an unreadable verdict."""
        return self.review is not None and self.review.correct is False

    @property
    def goes_on(self) -> bool:
        """True if the next role may work on it: a whole solution with a reward, or a report of errors."""
        if self.scored.attempt.status != "ok" or self.reward is None:
            return False
        return self.flagged or (self.solution is not None and self.solution.complete)


def measure_parts(outputs: Sequence[MemberOutput]) -> dict[str, float]:
    """Figures as `PART/NAME`.

    reward, length, cut      its own reward, tokens, the share that was cut off at the length limit
    recall, false_alarms     a Verifier's: how many of the wrong and of the right solutions it flags
    precision, unreadable    how many of its flags are true, and how many verdicts cannot be read
    wrong                    how many of its input solutions are wrong
    natural                  its accuracy on solutions as they come, not as they are picked:
                             p · (1 - false_alarms) + (1 - p) · recall, p of those being right
    fixed, harmed            a Corrector's: how often a wrong solution becomes right, and a right one wrong
    """
    means = Means()
    groups: dict[str, set[int]] = defaultdict(set)
    for one in outputs:
        groups[one.asked.part].add(id(one.asked))
        _add(means, one)
    measures = means.values
    for verifier, source in (("verifier1", "solver"), ("verifier2", "corrector1")):
        known = [measures.get(f"{verifier}/{name}") for name in ("recall", "false_alarms")]
        right = measures.get(f"{source}/reward")
        if right is not None and known[0] is not None and known[1] is not None:
            measures[f"{verifier}/natural"] = right * (1 - known[1]) + (1 - right) * known[0]
    return measures | {f"{part}/groups": float(len(inputs)) for part, inputs in groups.items()}


def _add(means: Means, one: MemberOutput) -> None:
    part, asked = one.asked.part, one.asked
    for row in one.scored.cut.rows:
        means.add(f"{part}/length", row.tokens)
    record = one.scored.record
    turns = [turn for path in record.trajectories.values() for turn in path.turns] if record else []
    if turns:
        means.add(f"{part}/cut", float(turns[-1].completion.finish == "length"))
    if one.reward is None:
        return
    means.add(f"{part}/reward", one.reward)
    if asked.role == "verifier":
        means.add(f"{part}/{'false_alarms' if asked.right else 'recall'}", float(one.flagged))
        means.add(f"{part}/wrong", float(not asked.right))
        means.add(f"{part}/unreadable", float(one.review is None or one.review.correct is None))
        if one.flagged:
            means.add(f"{part}/precision", float(not asked.right))
    elif asked.role == "corrector":
        right = one.reward >= RIGHT
        means.add(f"{part}/{'harmed' if asked.right else 'fixed'}", float(right is not asked.right))
