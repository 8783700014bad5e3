"""What several runs may spend together: never more in all, and always an answer for each."""

from collections.abc import Sequence
from contextlib import suppress
from random import Random

import pytest

from hira.core.budget import AGAIN, LONGEST_ASKED, Allowance, Budget, Limits, Purse, Wanted
from hira.core.errors import OutOfBudget
from hira.core.policy import Usage

TOGETHER = 60_000


def budgets(many: int, tokens: int = TOGETHER) -> tuple[Allowance, Sequence[Budget]]:
    shared = Allowance(Purse(Limits(tokens), " of the key 'ada'"))
    return shared, [Budget(shared=shared) for _ in range(many)]


def spend(budget: Budget, call: Wanted) -> None:
    room = budget.admit(call)
    budget.charge(call, Usage(1, call.prompt, 500 if room is None else min(room, 500)))


def test_runs_of_one_key_never_spend_more_than_it_has_whichever_calls_go_side_by_side() -> None:
    for seed in range(200):
        random = Random(seed)
        shared, runs = budgets(random.randint(1, 5))
        under_way: list[tuple[Budget, Wanted, int]] = []
        refused = 0
        while refused < 20 or under_way:
            if refused < 20 and random.random() < 0.5:
                longest = random.choice([None, random.randint(1, 6_000)])
                run = random.choice(runs)
                call = Wanted("planner", random.randint(100, 8_000), answers=True, reply=longest)
                try:
                    room = run.admit(call)
                except OutOfBudget:
                    refused += 1
                else:
                    bounds = (LONGEST_ASKED if room is None else room, longest or LONGEST_ASKED)
                    under_way.append((run, call, min(bounds)))
            elif under_way:
                run, call, room = under_way.pop(random.randrange(len(under_way)))
                run.charge(call, Usage(1, call.prompt, random.randint(0, room)))
        assert shared.purse.spent.tokens <= TOGETHER
        assert shared.purse.held == Usage(), "something is held for calls that have ended"


def test_what_another_run_spends_leaves_each_run_its_answer() -> None:
    shared, (one, other) = budgets(2, 20_000)
    asked = Wanted("planner", 2_000, answers=True)
    one.admit(asked)
    one.charge(asked, Usage(1, 2_000, 100))
    with suppress(OutOfBudget):
        while True:
            spend(other, Wanted("planner", 2_000, answers=True))
    for run in (other, one):
        spend(run, Wanted("planner", 2_400, answers=True, last=True))
    assert run.spent.calls >= 2
    assert shared.purse.spent.tokens <= 20_000


def test_what_an_ended_run_kept_for_its_answer_is_the_others_again() -> None:
    shared, (one, other) = budgets(2, 10_000)
    asked = Wanted("planner", 3_000, answers=True)
    one.admit(asked)
    one.charge(asked, Usage(1, 3_000, 10))
    with pytest.raises(OutOfBudget):
        other.admit(Wanted("planner", 3_000))
    shared.leave(id(one))
    other.admit(Wanted("planner", 3_000))


def test_a_call_that_only_others_under_way_stand_against_is_told_so_and_may_be_tried_again() -> None:
    shared, (one, other) = budgets(2, 6_000)
    first, second = Wanted("planner", 1_500), Wanted("planner", 1_500)
    one.admit(first)
    with pytest.raises(OutOfBudget, match="the budget of 6,000 tokens of the key 'ada' is held by other calls") as held:
        other.admit(second)
    assert held.value.fix == AGAIN
    one.charge(first, Usage(1, 1_500, 100))
    other.admit(second)
    other.charge(second, Usage(1, 1_500, 1_500))
    with pytest.raises(OutOfBudget, match="the budget of 6,000 tokens of the key 'ada' is used up") as spent:
        other.admit(Wanted("planner", 1_500))
    assert not spent.value.fix
    assert shared.purse.held == Usage()
