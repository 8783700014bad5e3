"""Credit of your own: from a function of a group's rewards, and the checks of what a credit returns."""

import math
from collections.abc import Callable, Sequence

from hira.core.errors import HiraError
from hira.trainers.rows import Credited, Group, Key, Row, Weighted

FIX = "correct the recipe's credit, then resume with --resume"


def credit_by(advantages: Callable[[Sequence[float]], Sequence[float]]) -> Callable[[Sequence[Group]], Credited]:
    """Return a credit from a function that turns the rewards of a group into as many advantages.

    Each row of a rollout gets the rollout's advantage, each rollout counts alike: w = 1 / its tokens, Z = rollouts.

    >>> credit = credit_by(lambda rewards: [reward - max(rewards) / 2 for reward in rewards])
    """

    def credit(groups: Sequence[Group]) -> Credited:
        credited: list[Weighted] = []
        sizes: list[int] = []
        for group in groups:
            attempts = [attempt for attempt in group.counting if attempt.rows]
            rewards = [float(attempt.reward or 0.0) for attempt in attempts]
            sizes.append(len(attempts))
            gained = list(advantages(rewards)) if attempts else []
            if len(gained) != len(rewards):
                what = f"the credit returned {len(gained)} advantages for {len(rewards)} rewards"
                raise HiraError(what, where=f"question {group.problem!r}", fix=FIX)
            for attempt, reward, advantage in zip(attempts, rewards, gained, strict=True):
                weight = 1 / sum(row.tokens for row in attempt.rows)
                credited += [Weighted(row, Key(group.problem, ""), reward, advantage, weight) for row in attempt.rows]
        return Credited(tuple(credited), float(sum(sizes)), tuple(sizes))

    return credit


def run_credit(credit: Callable[[Sequence[Group]], Credited], groups: Sequence[Group]) -> Credited:
    """Return the credit of the groups. Raises `HiraError` for one that raises, or whose rows cannot be trained on."""
    try:
        credited = credit(groups)
    except HiraError:
        raise
    except Exception as error:
        raise HiraError(f"the credit raised {type(error).__name__}: {error}", fix=FIX) from error
    if not isinstance(credited, Credited):
        raise HiraError(f"the credit returned {type(credited).__name__}, not Credited", fix=FIX)
    lengths = {_key(row): row.length for group in groups for attempt in group.attempts for row in attempt.rows}
    for weighted in credited.rows:
        if fault := _find_fault(weighted, lengths.get(_key(weighted.row))):
            row = weighted.row
            where = f"question {row.question!r}, rollout {row.rollout!r}, conversation {row.conversation!r}"
            raise HiraError(f"the credit returned a row {fault}", where=where, fix=FIX)
    if credited.rows and not (math.isfinite(credited.normaliser) and credited.normaliser > 0):
        raise HiraError(f"the credit's normaliser must be a number above 0, got {credited.normaliser}", fix=FIX)
    return credited


def _key(row: Row) -> tuple[str, str, int]:
    return row.rollout, row.conversation, row.part


def _find_fault(weighted: Weighted, length: int | None) -> str:
    """Return what is wrong with a row, "" if nothing is. `length` is that of the row in the groups."""
    row, tokens = weighted.row, len(weighted.row.completion)
    if length is None:
        return "that is in none of the groups"
    if row.length != length:
        return f"of {row.length} tokens for one of {length}"
    if len(row.mask) != tokens or len(row.logprobs) != tokens:
        return f"with a mask of {len(row.mask)} and {len(row.logprobs)} log-probabilities for {tokens} tokens"
    for name, value in (("advantage", weighted.advantage), ("weight", weighted.weight)):
        if not math.isfinite(value):
            return f"whose {name} is {value}"
    return f"whose weight is {weighted.weight}, below 0" if weighted.weight < 0 else ""
