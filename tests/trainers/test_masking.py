"""Dynamic masking of well-mastered positive tokens, by hand and in the trainer."""

from dataclasses import replace
from math import log

import pytest

from hira.trainers.credit import grpo
from hira.trainers.credit.masking import drop_mastered, drop_overlong, entropy
from hira.trainers.metrics import measure_update
from hira.trainers.rows import Attempt, Credited, Group, Key, Row, Weighted

KEY = Key("q", "solver")
SURE, UNSURE = log(0.995), log(0.5)


def row(*logprobs: float, rollout: str = "r") -> Row:
    ids = tuple(range(4, 4 + len(logprobs)))
    return Row("q", rollout, "solver", "1/solver", (3,), ids, (1,) * len(ids), logprobs)


def credited(*pairs: tuple[Row, float]) -> Credited:
    rows = tuple(Weighted(one, KEY, reward, 2 * reward - 1, 1.0) for one, reward in pairs)
    return Credited(rows, float(sum(one.row.tokens for one in rows)))


def test_under_the_target_mastered_tokens_of_right_answers_leave_the_numerator_and_not_the_denominator() -> None:
    right, wrong = row(SURE, SURE, log(0.9), rollout="a"), row(SURE, SURE, rollout="b")
    before = credited((right, 1.0), (wrong, 0.0))
    assert entropy([right, wrong]) < 0.2
    after = drop_mastered(before)
    assert [one.row.mask for one in after.rows] == [(0, 0, 1), (1, 1)]
    assert after.normaliser == before.normaliser == 5
    assert [one.weight for one in after.rows] == [1.0, 1.0]
    assert after.figures["masked"] == 2 / 5
    assert measure_update([], after)["masked"] == 2 / 5
    assert drop_mastered(before, target=entropy([right, wrong])).rows == before.rows, "only below the target"


def test_overlong_members_are_compared_with_and_not_trained() -> None:
    lengths, rewards = (2, 3, 4), (0.0, 1.0, 1.0)
    rows = [row(*[UNSURE] * length, rollout=str(at)) for at, length in enumerate(lengths)]
    rows[0] = replace(rows[0], overlong=True)
    given = [Group("q", tuple(Attempt(at, (rows[at],), rewards[at]) for at in range(3)))]
    for norm, before, left in (("dapo", 9.0, 7.0), ("grpo", 3.0, 2.0)):
        whole = grpo(given, norm=norm)  # type: ignore[arg-type]
        made = drop_overlong(whole)
        assert whole.normaliser == before
        assert made.normaliser == pytest.approx(left)
        assert made.rows == whole.rows[1:]
        assert made.rows[0].advantage == pytest.approx((1 - 2 / 3) / (2 / 9) ** 0.5), "of all three rewards"
        assert measure_update(given, made)["solver/overlong"] == pytest.approx(1 / 3)
    assert drop_overlong(credited()).figures == {"overlong": 0.0}, "of no rows, none is left out"
