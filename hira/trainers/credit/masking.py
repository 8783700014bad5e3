"""Tokens and conversations that an update leaves out.

Well-mastered tokens of right answers, against the collapse of entropy (UloRL, 2507.19766), and conversations whose last
reply was cut off (DAPO, 2503.14476, section 3.4).
"""

from collections.abc import Sequence
from dataclasses import replace
from math import log

from hira.trainers.rows import Credited, Row, Weighted

MASTERED = 0.99
ENTROPY = 0.2


def mark_mastered(row: Row, tau: float = MASTERED) -> tuple[int, ...]:
    """Return 1 for each sampled token of the row whose probability was τ or more, else 0. Shape (T,)."""
    least = log(tau)
    return tuple(
        is_sampled if is_sampled and logprob >= least else 0
        for is_sampled, logprob in zip(row.mask, row.logprobs, strict=True)
    )


def entropy(rows: Sequence[Row]) -> float:
    """Return the mean of -log π(o_t) over sampled tokens, in nats: an unbiased estimate of the policy's entropy. 0
    without tokens."""
    tokens = sum(row.tokens for row in rows)
    total = sum(
        logprob for row in rows for is_sampled, logprob in zip(row.mask, row.logprobs, strict=True) if is_sampled
    )
    return -total / tokens if tokens else 0.0


def drop_mastered(credited: Credited, *, tau: float = MASTERED, target: float = ENTROPY) -> Credited:
    """Return the update without well-mastered tokens: those with p(t) ≥ `tau` in rows of reward 1, while the entropy is
    under `target` (UloRL, eq. 9 to 11, with the minus sign that eq. 10 lacks).

    The normaliser Z stays that of all tokens, because a smaller one would give the weight of dropped tokens to the
    others. UloRL's text names the model's entropy and its formula a sample's: here it is that of all rows of the
    update.
    """
    rows = [weighted.row for weighted in credited.rows]
    sampled = entropy(rows)
    kept: list[Weighted] = []
    masked = 0
    for weighted in credited.rows:
        if sampled >= target or weighted.reward < 1:
            kept.append(weighted)
            continue
        known = mark_mastered(weighted.row, tau)
        masked += sum(known)
        mask = tuple(is_sampled - gone for is_sampled, gone in zip(weighted.row.mask, known, strict=True))
        if any(mask):
            kept.append(replace(weighted, row=replace(weighted.row, mask=mask)))
    tokens = sum(row.tokens for row in rows)
    record = {"masked": masked / tokens if tokens else 0.0, "sampled_entropy": sampled}
    return replace(credited, rows=tuple(kept), figures={**credited.figures, **record})


def drop_overlong(credited: Credited) -> Credited:
    """Return the update without overlong conversations. Their rewards stay in the baselines: a cut reply says little
    about its tokens, and only these are left out.

    Z shrinks by their share of the weight, so that a mean over tokens or members becomes one over the trained ones, as
    in TRL's `mask_truncated_completions`.
    """
    kept = tuple(weighted for weighted in credited.rows if not weighted.row.overlong)
    left, whole = (sum(each.weight * each.row.tokens for each in rows) for rows in (kept, credited.rows))
    normaliser = credited.normaliser * left / whole if whole else credited.normaliser
    record = {"overlong": 1 - left / whole if whole else 0.0}
    return replace(credited, rows=kept, normaliser=normaliser, figures={**credited.figures, **record})
