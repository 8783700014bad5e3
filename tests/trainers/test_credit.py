"""Credit by hand: every number here was worked out from the formula in the docstring it tests."""

import math
from dataclasses import replace

import pytest
from rollouts_made import attempt, group, row

from hira.trainers.credit import grpo, mars, matpo
from hira.trainers.credit.grpo import advantages
from hira.trainers.credit.mars import count_draws
from hira.trainers.rows import Credited


def weights(credited: Credited) -> list[tuple[str, float, float]]:
    return [(one.row.conversation, round(one.advantage, 6), round(one.weight, 6)) for one in credited.rows]


def test_a_group_without_a_signal_has_no_advantages() -> None:
    for rewards in ([1.0], [1.0, 1.0], [0.3, 0.3 + 1e-4], []):
        assert advantages(rewards) is None
    assert advantages([0.0, 1.0], floor=0.5) == [-1.0, 1.0], "a deviation at the floor is a signal"


def test_groups_without_a_signal_leave_the_denominator_of_grpo_and_matpo() -> None:
    alive = group(attempt(0, 1.0, row("planner", 4)), attempt(1, 0.0, row("planner", 5)))
    dead = replace(group(attempt(0, 1.0, row("planner", 4)), attempt(1, 1.0, row("planner", 5))), problem="other")
    for credit in (grpo, matpo):
        credited = credit([alive, dead])
        assert (credited.normaliser, credited.dead) == (2, 1)
        assert len(credited.rows) == 2


def test_grpo_compares_only_what_began_with_the_same_input() -> None:
    made = group(
        attempt(0, 1.0, row("planner", 1), row("worker", 1, prompt=5)),
        attempt(1, 0.0, row("planner", 1), row("worker", 1, prompt=6)),
    )
    credited = grpo([made])
    assert [one.row.role for one in credited.rows] == ["planner", "planner"]
    assert credited.singletons == 2
    assert sorted(credited.sizes) == [1, 1, 2]


def test_matpo_gives_the_planners_advantage_to_every_row_and_divides_by_the_tokens_of_the_tree() -> None:
    made = group(
        attempt(0, 1.0, row("planner", 4), row("worker", 6, conversation="1/worker", tool=9)),
        attempt(1, 0.0, row("planner", 5)),
    )
    credited = matpo([made])
    assert weights(credited) == [("planner", 1.0, 0.1), ("1/worker", 1.0, 0.1), ("planner", -1.0, 0.2)]
    assert credited.normaliser == 2
    assert {one.group.role for one in credited.rows} == {"planner"}


def test_matpo_normalises_over_planners_however_many_workers_a_reward_took() -> None:
    workers = [row("worker", 1, conversation=f"{at}/worker") for at in range(9)]
    made = group(attempt(0, 1.0, row("planner", 1), *workers), attempt(1, 0.0, row("planner", 1)))
    assert [one.advantage for one in matpo([made]).rows] == [1.0] * 10 + [-1.0]


def test_matpo_by_role_gives_planner_and_workers_the_same_sum_of_weights() -> None:
    made = group(
        attempt(
            0,
            1.0,
            row("planner", 2),
            row("worker", 6, conversation="1/worker"),
            row("worker", 2, conversation="2/worker"),
        ),
        attempt(1, 0.0, row("planner", 1)),
    )
    credited = matpo([made], norm="role_mean")
    sums = [one.weight * one.row.tokens for one in credited.rows if one.advantage > 0]
    assert sums == pytest.approx([0.5, 0.375, 0.125])
    assert credited.normaliser == 2, "rollouts"


def test_matpo_by_token_weighs_every_sampled_token_alike() -> None:
    made = group(
        attempt(0, 1.0, row("planner", 4), row("worker", 6, conversation="1/worker", tool=9)),
        attempt(1, 0.0, row("planner", 5)),
    )
    credited = matpo([made], norm="token_mean")
    assert weights(credited) == [("planner", 1.0, 1.0), ("1/worker", 1.0, 1.0), ("planner", -1.0, 1.0)]
    assert credited.normaliser == 4 + 6 + 5


def test_a_rollout_that_the_infrastructure_broke_leaves_mean_deviation_and_loss() -> None:
    for credit in (grpo, matpo):
        broken = attempt(2, 0.0, row("planner", 7, rollout="broken"), status="infra_failed")
        unscored = attempt(3, None, row("planner", 7, rollout="unscored"))
        made = group(attempt(0, 1.0, row("planner", 2)), attempt(1, 0.0, row("planner", 2)), broken, unscored)
        credited = credit([made])
        assert [one.advantage for one in credited.rows] == [1.0, -1.0]
        assert credited.normaliser == 2


def systems(reward: float, chunks: int, number: int) -> object:
    ones = [row("system1", 2, conversation=f"{number}.{at}/system1") for at in range(chunks)]
    return attempt(number, reward, row("system2", 4), *ones)


def test_mars_compares_each_system_with_itself_over_all_samples() -> None:
    credited = mars([group(systems(1.0, 1, 0), systems(0.0, 3, 1))], balance=False)
    twos = [one for one in credited.rows if one.row.role == "system2"]
    ones = [one for one in credited.rows if one.row.role == "system1"]
    assert [one.advantage for one in twos] == [1.0, -1.0]
    assert [one.advantage for one in ones] == pytest.approx([math.sqrt(3), *[-1 / math.sqrt(3)] * 3])
    assert [one.weight for one in twos] == [1 / 4, 1 / 4]
    assert [one.weight for one in ones] == pytest.approx([1 / 2 * 2 / 4] * 4)
    assert credited.normaliser == 2
    credited = mars([group(systems(1.0, 3, 0), systems(0.0, 1, 1))], balance=False)
    rewards = [one.reward for one in credited.rows if one.row.role == "system1"]
    assert rewards == [1.0, 1.0, 1.0, 0.0], "each sample has the whole reward of its trajectory"
    for chunks, sizes, dead in ((2, (2, 2), 1), (0, (2,), 0)):
        credited = mars([group(systems(1.0, chunks, 0), systems(0.0, 0, 1))])
        assert (credited.sizes, credited.dead) == (sizes, dead), "each system with samples is a compared group"


def test_mars_adds_the_objectives_of_both_systems() -> None:
    """Eq. 6: each system's part is the mean over its samples, however many it has, so that both weigh the same."""
    for balance in (True, False):
        credited = mars([group(systems(1.0, 3, 0), systems(0.0, 9, 1))], balance=balance)
        sums = {name: sum(one.weight * one.row.tokens for one in credited.rows if one.row.role == name)
                for name in ("system1", "system2")}  # fmt: skip
        assert sums == {"system1": pytest.approx(credited.normaliser), "system2": pytest.approx(credited.normaliser)}


def test_mars_takes_the_mean_over_all_samples_also_of_groups_without_a_signal() -> None:
    """Eq. 7: the mean over all of D_i."""
    alive, dead = (
        group(systems(1.0, 1, 0), systems(0.0, 3, 1)),
        group(systems(1.0, 2, 0), systems(1.0, 2, 1), systems(1.0, 2, 2), systems(1.0, 2, 3)),
    )
    for balance in (True, False):
        alone, both = mars([alive], balance=balance), mars([alive, dead], balance=balance)
        assert (alone.normaliser, both.normaliser) == (2, 6)
        assert weights(both)[:2] == weights(alone)[:2]
        ones = [
            (one.weight / made.normaliser) for made in (alone, both) for one in made.rows if one.row.role == "system1"
        ]
        samples = (2, 6) if balance else (4, 12)
        assert ones[-1] == pytest.approx(ones[0] * samples[0] / samples[1])


def test_mars_draws_as_many_samples_as_rollouts_that_count() -> None:
    broken = attempt(2, 0.0, row("system2", 4), row("system1", 2, conversation="2.0/system1"), status="infra_failed")
    made = group(systems(1.0, 4, 0), systems(0.0, 4, 1), broken)
    credited = mars([made])
    drawn = [one.weight * one.row.tokens for one in credited.rows if one.row.role == "system1"]
    assert (len(drawn), sum(drawn)) == (2, pytest.approx(2)), (
        "of the eight samples, two for the two rollouts that count"
    )
    assert credited.normaliser == 2


def test_mars_balances_system_one_to_exactly_as_many_samples_as_rollouts() -> None:
    for first, second in ((1, 0), (3, 9), (1, 1)):
        made = [group(systems(1.0, first, 0), systems(0.0, second, 1))]
        credited = mars(made, baseline="trajectory")
        taken = [one.weight * one.row.tokens for one in credited.rows if one.row.role == "system1"]
        assert sum(taken) == pytest.approx(2)
        unbalanced = mars(made, baseline="trajectory", balance=False)
        before = {(one.row, one.reward): one.advantage for one in unbalanced.rows}
        assert all(one.advantage == before[one.row, one.reward] for one in credited.rows), "balanced afterwards"
        assert credited == mars(made, baseline="trajectory")
    assert [sum(count_draws(there, 4, "seed")) for there in (1, 4, 9)] == [4, 4, 4]
    draws = [count_draws(6, 2, str(seed)) for seed in range(300)]
    assert all(60 <= sum(draw[at] for draw in draws) <= 140 for at in range(6)), "each sample is drawn as often"
