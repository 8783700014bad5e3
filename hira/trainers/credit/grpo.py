"""GRPO and its variants: members of one group answered the very same input. All schemes share `advantages`."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import pstdev
from typing import Literal

from hira.trainers.rows import Credited, Group, Key, Row, Weighted

Norm = Literal["grpo", "dapo", "dr_grpo"]
Scale = Literal["group", "batch", "none"]
FLOOR = 1e-3
"""A group with a smaller deviation has no signal: dividing by it would turn rounding errors into noise."""


def advantages(
    rewards: Sequence[float], *, baseline: Sequence[float] | None = None, by: float | None = None, floor: float = FLOOR
) -> list[float] | None:
    """Return (r - μ) / σ for each reward; None if the group has no signal: fewer than two rewards, or σ under the
    floor.

    μ and σ are those of `baseline` if given, else of the rewards; `by` replaces σ as the divisor.

    >>> advantages([1, 0, 0, 1])
    [1.0, -1.0, -1.0, 1.0]
    >>> advantages([1, 0], by=1.0)
    [0.5, -0.5]
    """
    compared = rewards if baseline is None else baseline
    if len(compared) < 2 or (spread := pstdev(compared)) < floor:
        return None
    mean = sum(compared) / len(compared)
    return [(reward - mean) / (spread if by is None else by) for reward in rewards]


def divisor(scale: Scale, rewards: Sequence[float], floor: float = FLOOR) -> float | None:
    """Return the common divisor of all advantages: 1 for `none` (Dr. GRPO), the deviation over the whole batch for
    `batch`; None for `group`, where each group has its own."""
    if scale == "group":
        return None
    if scale == "none" or not rewards:
        return 1.0
    return max(pstdev(rewards), floor)


def grpo(
    groups: Sequence[Group], *, norm: Norm = "grpo", scale: Scale = "group", longest: int = 1, floor: float = FLOOR
) -> Credited:
    """A_i = (r_i - μ_g) / σ_g over the members i of group g (Shao et al. 2024, eq. 3; outcome supervision).

    A member is a conversation with all its parts; its group has the conversations of one role that began with the same
    input, so that no baseline is taken across roles or prompts. With o_i the sampled tokens and B the members left:

        norm      w_i       Z          after
        grpo      1/|o_i|   B          GRPO: mean over tokens, then over members
        dapo      1         Σ|o_i|     DAPO: mean over all tokens
        dr_grpo   1         B · L      Dr. GRPO with `scale="none"`: L = `longest`, the token limit of a completion

    A group without a signal leaves the batch and its denominator. A member with nothing to compare with gets no
    advantage and is counted.
    """
    members: dict[Key, list[tuple[float, list[Row]]]] = defaultdict(list)
    for group in groups:
        for attempt in group.counting:
            whole: dict[str, list[Row]] = defaultdict(list)
            for row in attempt.rows:
                whole[row.conversation].append(row)
            for name, rows in whole.items():
                members[Key(group.problem, rows[0].role, rows[0].input)].append((attempt.reward_of(name), rows))
    by = divisor(scale, [reward for group_ in members.values() for reward, _ in group_], floor)
    credited: list[Weighted] = []
    dead = alone = left = 0
    for key, compared in members.items():
        gained = advantages([reward for reward, _ in compared], by=by, floor=floor)
        if gained is None:
            alone += len(compared) == 1
            dead += len(compared) > 1
            continue
        left += len(compared)
        for (reward, rows), advantage in zip(compared, gained, strict=True):
            weight = 1 / sum(row.tokens for row in rows) if norm == "grpo" else 1.0
            credited += [Weighted(row, key, reward, advantage, weight) for row in rows]
    z = {"grpo": left, "dapo": sum(weighted.row.tokens for weighted in credited), "dr_grpo": left * longest}[norm]
    sizes = tuple(len(compared) for compared in members.values())
    return Credited(tuple(credited), float(z), sizes, dead, alone)
