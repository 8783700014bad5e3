"""MarsRL: Solver, Verifier and Corrector are each compared within groups that answered the very same input."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from hira.core.errors import HiraError
from hira.trainers.credit.grpo import FLOOR, Norm, Scale, grpo
from hira.trainers.rows import Attempt, Credited, Group


def marsrl(
    groups: Sequence[Group],
    *,
    roles: Collection[str] | None = None,
    norm: Norm = "dapo",
    scale: Scale = "group",
    longest: int = 1,
    floor: float = FLOOR,
) -> Credited:
    """A_i = (r_i - μ_g) / σ_g over the members of one group (MarsRL, eq. 1), which is one step of one problem: the same
    role, given the same ids. r is the agent's own reward (section 3.2, `hira.evaluation.rewards.answers`).

    The paper takes the normalisation from UloRL, where each token counts alike (`norm="dapo"`: w = 1, Z = Σ|o| of the
    groups with a signal). The KL term of its eq. 2 is `train.beta`, which is 0 here unless it is set. `roles` are those
    that are trained, None for all: {"solver"} is MarsRL-S, {"verifier", "corrector"} is MarsRL-VC (section 4.3). Raises
    `HiraError` for a group of several roles or inputs: then the baseline of one would be that of another.
    """
    for group in groups:
        inputs = {(row.role, row.input) for attempt in group.attempts for row in attempt.rows if row.part == 0}
        if len(inputs) > 1:
            where = f"group {group.problem!r} of {', '.join(sorted({role for role, _ in inputs}))}"
            fix = "make one group for each input, as hira.trainers.agentic does"
            raise HiraError("the members of a group answered different inputs", where=where, fix=fix)
    if roles is not None:
        groups = [Group(group.problem, tuple(_keep_roles(group, roles))) for group in groups]
    return grpo([group for group in groups if group.attempts], norm=norm, scale=scale, longest=longest, floor=floor)


def _keep_roles(group: Group, roles: Collection[str]) -> Iterator[Attempt]:
    """Yield the attempts that have rows of these roles, with those rows only."""
    for attempt in group.attempts:
        if rows := tuple(row for row in attempt.rows if row.role in roles):
            yield replace(attempt, rows=rows)
