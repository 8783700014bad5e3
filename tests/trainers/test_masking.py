"""Dynamic masking of well-mastered positive tokens, by hand and in the trainer."""

from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import pytest

from hira.trainers.credit import grpo
from hira.trainers.credit.masking import drop_mastered, drop_overlong, entropy, mask_credit
from hira.trainers.metrics import measure_update
from hira.trainers.rows import Attempt, Credited, Group, Key, Row, Weighted

KEY = Key("q", "solver")
SURE, UNSURE = log(0.995), log(0.5)


def row(*logprobs: float, mask: tuple[int, ...] = (), rollout: str = "r") -> Row:
    own = mask or (1,) * len(logprobs)
    return Row("q", rollout, "solver", "1/solver", (3,), tuple(range(4, 4 + len(own))), own, logprobs)


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
    assert after.told["masked"] == 2 / 5
    assert measure_update([], after)["masked"] == 2 / 5


def test_at_the_target_and_over_it_nothing_is_masked() -> None:
    before = credited((row(SURE, UNSURE), 1.0))
    assert drop_mastered(before).rows == before.rows
    at = entropy([one.row for one in before.rows])
    assert drop_mastered(before, target=at).rows == before.rows
    assert drop_mastered(before, target=at + 1e-9).rows != before.rows


def test_the_entropy_may_be_that_of_each_row() -> None:
    sure, unsure = row(SURE, SURE, log(0.9), rollout="a"), row(SURE, log(1e-3), rollout="b")
    before = credited((sure, 1.0), (unsure, 1.0))
    assert drop_mastered(before).rows == before.rows  # together they are over the target
    assert [one.row.mask for one in drop_mastered(before, scope="row").rows] == [(0, 0, 1), (1, 1)]


@pytest.mark.heavy
@pytest.mark.filterwarnings("default")
def test_one_step_of_the_trainer_is_that_of_a_hand_written_loss_with_the_masked_tokens_left_out(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    from dataclasses import replace

    from tiny import groups, hand_written, model, trainer
    from transformers import TrainerCallback

    class Gradients(TrainerCallback):
        kept: dict[str, Any]

        def on_pre_optimizer_step(self, *_: Any, **known: Any) -> None:
            self.kept = {
                name: one.grad.clone() for name, one in known["model"].named_parameters() if one.grad is not None
            }

    def sure(group: Group) -> Group:
        """Every other token was almost certain."""

        def of(one: Row) -> Row:
            return replace(one, logprobs=tuple(own * (SURE if at % 2 else -0.1) for at, own in enumerate(one.mask)))

        return Group(group.problem, tuple(replace(a, rows=tuple(map(of, a.rows))) for a in group.attempts))

    given = tuple(map(sure, groups(3)))
    credit = mask_credit(lambda many: grpo(many, norm="dapo"))
    callback = Gradients()
    run = trainer(tmp_path, model(), given, credit)
    run.add_callback(callback)
    run.run()
    kept = credit(given)
    assert 0.05 < kept.told["masked"] < 0.5
    assert kept.normaliser == grpo(given, norm="dapo").normaliser
    made = model()
    loss: Any = hand_written(made, kept, adapters={"*": "default"})
    loss.backward()
    wanted = {name: one.grad for name, one in made.named_parameters() if one.grad is not None}
    apart = sum(float(((one - wanted[name]) ** 2).sum()) for name, one in callback.kept.items())
    assert (apart / sum(float((one**2).sum()) for one in wanted.values())) ** 0.5 < 1e-5


@pytest.mark.parametrize(("norm", "before", "left"), [("dapo", 9.0, 7.0), ("grpo", 3.0, 2.0)])
def test_overlong_members_are_compared_with_and_not_trained(norm: Any, before: float, left: float) -> None:
    lengths, rewards = (2, 3, 4), (0.0, 1.0, 1.0)
    rows = [row(*[UNSURE] * length, rollout=str(at)) for at, length in enumerate(lengths)]
    rows[0] = replace(rows[0], overlong=True)
    attempts = tuple(Attempt(at, (rows[at],), rewards[at]) for at in range(3))
    whole = grpo([Group("q", attempts)], norm=norm)
    made = drop_overlong(whole)
    assert whole.normaliser == before
    assert made.normaliser == pytest.approx(left)
    assert made.rows == whole.rows[1:]
    assert made.rows[0].advantage == pytest.approx((1 - 2 / 3) / (2 / 9) ** 0.5), "of all three rewards"
    assert measure_update([Group("q", attempts)], made)["solver/overlong"] == pytest.approx(1 / 3)
