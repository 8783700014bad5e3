"""MATPO: the planner's reward is the reward of all its workers. MaMs shares it (`broadcast` in `recipes.py`)."""

from collections.abc import Sequence
from typing import Literal

from hira.trainers.credit.grpo import FLOOR, Scale, advantages, divisor
from hira.trainers.rows import Credited, Group, Key, Weighted

Norm = Literal["rollout_mean", "role_mean", "token_mean"]


def matpo(
    groups: Sequence[Group],
    *,
    planner: str = "planner",
    norm: Norm = "rollout_mean",
    scale: Scale = "group",
    floor: float = FLOOR,
) -> Credited:
    """A_i = (r(τ_i) - mean) / std over the G rollouts of a question (MATPO, "Multi-Agent Tool-Integrated Policy
    Optimization"), and one scalar for every row of the rollout:

        J = 1/(Q·G) Σ_i 1/(Σ_t |τ_i^t|) Σ_t Σ_tokens m · min(ρ A_i, clip(ρ) A_i)

    with t = 0 the planner and t > 0 its workers. Here Q·G counts only rollouts of groups with a signal, as DAPO's
    dynamic sampling does: with five dead groups of six the step is six times that of the formula. |τ| counts sampled
    tokens only, and each row is masked by its *own* mask. A is normalised over the planners alone, as the paper's
    section on its implementation has it; the sentence that normalises over G × (T+1) rows would weigh a reward by how
    many workers it took. ρ = π/π_old, token by token.

    `norm` chooses the weights. `rollout_mean` is the paper's w = 1/Σ_t |τ_i^t|, Z = Q·G of the groups with a signal. It
    weighs the tokens of short rollouts more: if those are wrong, what all rollouts of a question begin with becomes
    less likely. `role_mean` takes the mean over tokens in each role of a rollout first, so that many workers do not
    outweigh their planner. `token_mean` is w = 1, Z = all tokens: it does not reward few long turns over many short
    ones, and leaves a common beginning as it is.
    """
    every = [attempt.reward for group in groups for attempt in group.counting if attempt.reward is not None]
    by = divisor(scale, every, floor)
    credited: list[Weighted] = []
    dead = alone = left = 0
    for group in groups:
        counting = [attempt for attempt in group.counting if attempt.rows]
        rewards = [float(attempt.reward or 0.0) for attempt in counting]
        gained = advantages(rewards, by=by, floor=floor)
        if gained is None:
            alone += len(counting) == 1
            dead += len(counting) > 1
            continue
        left += len(counting)
        for attempt, reward, advantage in zip(counting, rewards, gained, strict=True):
            began = next((row.input for row in attempt.rows if row.role == planner), "")
            tokens: dict[str, int] = {}
            for row in attempt.rows:
                tokens[row.role] = tokens.get(row.role, 0) + row.tokens
            weights = {"rollout_mean": {role: 1 / sum(tokens.values()) for role in tokens},
                       "role_mean": {role: 1 / (len(tokens) * count) for role, count in tokens.items()},
                       "token_mean": dict.fromkeys(tokens, 1.0)}[norm]  # fmt: skip
            key = Key(group.problem, planner, began)
            credited += [Weighted(row, key, reward, advantage, weights[row.role]) for row in attempt.rows]
    z = sum(weighted.row.tokens for weighted in credited) if norm == "token_mean" else left
    sizes = tuple(sum(bool(attempt.rows) for attempt in group.counting) for group in groups)
    return Credited(tuple(credited), float(z), sizes, dead, alone)
