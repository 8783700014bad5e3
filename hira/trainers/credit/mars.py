"""MARS: each system is compared with itself, over all its samples, before System 1 is balanced to G of them."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from hira.trainers.credit.grpo import FLOOR, advantages
from hira.trainers.rows import Attempt, Credited, Group, Key, Row, Weighted

Baseline = Literal["pooled", "trajectory"]


def mars(
    groups: Sequence[Group],
    *,
    system1: str = "system1",
    system2: str = "system2",
    baseline: Baseline = "pooled",
    balance: bool = True,
    seed: int = 0,
    floor: float = FLOOR,
) -> Credited:
    """A_sys2^k = (r^k - μ) / σ over the G rollouts of a question; A_sys1^{k,j} = (r^k - μ') / σ' over all M = Σ n_k
    conversations of System 1 (MARS, eq. 5 and section 2.2.2), then J = J_sys1 + J_sys2 (eq. 6), each the mean over all
    samples of D_i (eq. 7) of the mean over their tokens (eq. 9): w = 1/|y|, divided by the number of samples of its
    system. For one Z, the number of System 2's, System 1's weights are multiplied by their ratio. J is maximised.
    Groups without a signal add nothing to the sums and count in both means, because they are in D_i.

    `baseline="pooled"` is the paper's μ' and σ' over the M conversations, where a rollout counts n_k times;
    `"trajectory"` counts each rollout once, as for System 2. Balancing draws exactly G of the M without replacement, or
    adds random ones a second time, by a seeded choice after the advantages are computed; a conversation that is
    drawn several times has a multiple weight. Without `balance` all M are kept.
    """
    twos: list[Weighted] = []
    ones: list[Weighted] = []
    dead = alone = many_twos = many_ones = 0
    sizes: list[int] = []
    for group in groups:
        attempts = [attempt for attempt in group.counting if _of(attempt, system2)]
        rewards = [float(attempt.reward or 0.0) for attempt in attempts]
        sizes.append(len(attempts))
        pool = [(attempt, name) for attempt in attempts for name in _of(attempt, system1)]
        times = [1] * len(pool)
        if balance and pool:
            times = count_draws(len(pool), len(attempts), f"{seed}/{group.problem}")
        many_twos += len(attempts)
        many_ones += sum(times)
        gained = advantages(rewards, floor=floor)
        if gained is None:
            alone += len(attempts) == 1
            dead += len(attempts) > 1
            continue
        for attempt, reward, advantage in zip(attempts, rewards, gained, strict=True):
            rows = [row for row in attempt.rows if row.role == system2]
            twos += _weigh_rows(rows, Key(group.problem, system2), reward, advantage, 1)
        if not pool:
            continue
        sizes.append(len(pool))
        paid = [float(attempt.reward or 0.0) for attempt, _ in pool]
        worth = advantages(paid, baseline=paid if baseline == "pooled" else rewards, floor=floor)
        if worth is None:
            dead += 1
            continue
        for (attempt, name), reward, advantage, often in zip(pool, paid, worth, times, strict=True):
            rows = [row for row in attempt.rows if row.conversation == name]
            ones += _weigh_rows(rows, Key(group.problem, system1), reward, advantage, often)
    scale = many_twos / many_ones if many_ones else 1.0
    scaled = [replace(weighted, weight=weighted.weight * scale) for weighted in ones]
    return Credited((*twos, *scaled), float(many_twos), tuple(sizes), dead, alone)


def count_draws(there: int, wanted: int, seed: str) -> list[int]:
    """Return how often each of `there` samples is drawn, so that the draws add up to exactly `wanted`."""
    chance = random.Random(seed)  # noqa: S311 - a repeatable draw, not a secret
    if there >= wanted:
        drawn = set(chance.sample(range(there), wanted))
        return [int(index in drawn) for index in range(there)]
    again = chance.choices(range(there), k=wanted - there)
    return [1 + again.count(index) for index in range(there)]


def _of(attempt: Attempt, role: str) -> list[str]:
    """Return the conversations of the role that have rows."""
    return list(dict.fromkeys(row.conversation for row in attempt.rows if row.role == role))


def _weigh_rows(rows: Sequence[Row], key: Key, reward: float, advantage: float, often: int) -> list[Weighted]:
    """Return the rows of one sample, weighted so that their tokens sum to `often`; none if it was not drawn."""
    tokens = sum(row.tokens for row in rows)
    return [Weighted(row, key, reward, advantage, often / tokens) for row in rows] if often else []
