"""Budgets: checked before each call, for a run, for roles, and for all runs of a key, with a reserve for the answer."""

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from hira import Hira
from hira.agents.coordinator import Coordinator
from hira.agents.experts import EXPERTS
from hira.agents.loop import Loop
from hira.agents.run_context import RoleConfig, RunContext
from hira.agents.trajectory import Finding, Subtask
from hira.core.budget import AGAIN, ANSWER, LONGEST_ASKED, ROOM, Allowance, Budget, CallNeed, Ledger, Limits, size
from hira.core.errors import OutOfBudget, RoleBudgetExceeded, UsageError
from hira.core.memory import DualMemory
from hira.core.messages import Media, ToolCall, assistant, user
from hira.core.policy import Completion, Request, Usage, Watch
from hira.core.prices import TABLE, Price, Prices, litellm_table
from hira.policies.names import is_nearby
from hira.runtime.factory import configure_roles
from hira.runtime.session import budget_of
from hira.runtime.settings import RoleSettings, Settings
from hira.testing import ScriptedPolicy, calling
from hira.testing.script import make_context
from hira.tools import Tool, tool
from hira.workflows.bound import Sizes, add_bounds, list_alternatives
from hira.workflows.hira import HiRA

PRICE = Price(input=10.0, output=40.0, cached=1.0)
PRICES = Prices({"scripted": PRICE})


def spend(budget: Budget, *calls: CallNeed, completion: int = 0) -> None:
    for call in calls:
        budget.admit(call)
        budget.charge(call, Usage(1, call.prompt, completion))


def test_a_call_is_refused_before_it_is_made_when_its_prompt_would_eat_the_reserve() -> None:
    budget = Budget(tokens=10_000)
    spend(budget, CallNeed("code", 8_000))
    with pytest.raises(OutOfBudget, match=r"the budget of 10,000 tokens is used up"):
        budget.admit(CallNeed("code", 1_000))
    budget.admit(CallNeed("code", 1_000 - ROOM))


def test_the_reserve_is_at_least_what_the_answering_call_takes() -> None:
    budget = Budget(tokens=10_000)
    spend(budget, CallNeed("planner", 3_000, answers=True))
    with pytest.raises(OutOfBudget):
        budget.admit(CallNeed("code", 10_000 - 3_000 - (3_000 + ANSWER) - ROOM + 1))
    spend(budget, CallNeed("code", 10_000 - 3_000 - (3_000 + ANSWER) - ROOM))
    budget.admit(CallNeed("planner", 3_000 + ANSWER // 2, answers=True, last=True))


def test_a_budget_that_pays_for_no_call_is_refused_before_anything_is_paid() -> None:
    budget = Budget(tokens=1_000)
    for last in (False, True):
        with pytest.raises(UsageError, match="is too small: a call and the answer need about"):
            budget.admit(CallNeed("planner", 2_000, answers=True, last=last))
    assert budget.spent == Usage()


def test_money_is_counted_where_the_price_is_known() -> None:
    budget = Budget(cost=0.10)
    call = CallNeed("code", 5_000, PRICE)
    budget.admit(call)
    budget.charge(call, Usage(1, 5_000, 500, cost=PRICE.of(Usage(1, 5_000, 500))))
    assert budget.spent.cost == pytest.approx(0.07)
    with pytest.raises(OutOfBudget, match=r"the budget of 0\.1 US dollars is used up"):
        budget.admit(CallNeed("code", 2_000, PRICE))


def test_the_reply_is_bounded_only_where_little_is_left() -> None:
    assert Budget(tokens=100_000).admit(CallNeed("code", 1_000)) is None
    assert Budget(tokens=5_000).admit(CallNeed("code", 1_000)) == 5_000 * 0.9 - 1_000
    assert Budget(cost=0.1).admit(CallNeed("code", 1_000, PRICE)) == pytest.approx((0.1 * 0.9 - 0.01) / 40e-6, abs=1)


def test_a_role_has_limits_of_its_own_beside_the_runs() -> None:
    budget = Budget(roles={"code": Limits(calls=2), "look": Limits(tokens=100)})
    spend(budget, CallNeed("code"), CallNeed("code"), CallNeed("planner"), CallNeed("planner"))
    with pytest.raises(RoleBudgetExceeded, match="the budget of 2 calls of role 'code' is used up"):
        budget.admit(CallNeed("code"))
    with pytest.raises(RoleBudgetExceeded, match="of role 'look' is too small"):
        budget.admit(CallNeed("look", 200))
    budget.admit(CallNeed("planner"))


def test_time_that_is_used_up_admits_no_call_and_the_last_tenth_only_the_answer() -> None:
    budget = Budget(seconds=1000)
    budget.began -= 950
    with pytest.raises(OutOfBudget, match="1,000 seconds"):
        budget.admit(CallNeed("code"))
    budget.admit(CallNeed("planner", last=True))
    assert budget.remaining_seconds(last=True) == pytest.approx(50, abs=5)


def test_the_size_of_messages_counts_text_calls_and_media() -> None:
    picture = Media("image", "data:image/png;base64," + "A" * 100_000)
    assert size([user("one two three")]) < 20
    assert 1_000 < size([user("what is this?", picture)]) < 1_100


def echo() -> Tool:
    @tool(pure=True)
    def echo(text: str) -> str:
        """Say it back."""
        return text

    return echo


async def test_the_size_of_a_prompt_is_what_the_endpoint_counted_and_what_is_new_since() -> None:
    policy = ScriptedPolicy([Completion("a", usage=Usage(1, 5_000, 5)), "b"])
    context = make_context(policy, budget=Budget(tokens=7_000))
    conversation = context.conversation("worker")
    conversation.say(user("hello"))
    await conversation.turn()
    conversation.say(assistant("a"), user("word " * 1_500))
    with pytest.raises(OutOfBudget):
        await conversation.turn()
    assert len(policy.requests) == 1


async def test_a_chain_that_is_carried_on_is_counted_by_what_was_added() -> None:
    context = make_context(["a", "b"], budget=Budget(tokens=100_000))
    conversation = context.conversation("worker")
    conversation.say(user("hello"))
    conversation.carry_on("begun")
    await conversation.turn()
    before = conversation._sized[2]
    conversation.carry_on(" and so " * 100)
    assert 150 < conversation.tokens(()) - before < 350


async def test_a_reply_is_asked_to_be_short_only_near_the_limit() -> None:
    policy = ScriptedPolicy(["a", "b"])
    await make_context(policy, budget=Budget(tokens=2_000)).conversation("worker").reply(user("hello"))
    conversation = make_context(policy).conversation("worker")
    await conversation.reply(user("hello"))
    near, without = (request.sampling.max_tokens for request in policy.requests)
    assert 1_700 < (near or 0) < 1_800
    assert without is None
    assert not conversation.context.budget.counts("worker")


async def test_cost_is_filled_in_where_the_policy_does_not_know_it() -> None:
    told = Completion("b", usage=Usage(1, 1_000, 100, cost=0.5))
    policy = ScriptedPolicy([Completion("a", usage=Usage(1, 1_000, 100, cached_tokens=600)), told])
    context = RunContext({"*": RoleConfig(policy, prices=PRICES)})
    conversation = context.conversation("worker")
    await conversation.reply(user("one"))
    assert context.rollout.usage.cost == pytest.approx((400 * 10 + 600 * 1 + 100 * 40) / 1e6)
    await conversation.reply(user("two"))
    assert context.rollout.usage.cost == pytest.approx(0.0086 + 0.5)


async def test_a_failed_call_costs_nothing_and_holds_nothing() -> None:
    context = make_context(ScriptedPolicy([ValueError("no")] * 3), budget=Budget(tokens=2_000))
    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            await context.conversation("worker").reply(user("word " * 500))
    assert context.budget._run.held == Usage(cost=None)


async def test_the_reserve_pays_for_the_answer_whatever_the_experts_spend() -> None:
    words = Completion("x", usage=Usage(1, 3_000, 100))
    called = Completion(str(calling("echo", text="one").text), calls=calling("echo", text="one").calls)
    policy = ScriptedPolicy({"planner": [called, "the answer"], "worker": [words] * 9})
    context = make_context(policy, dialect="native", budget=Budget(tokens=20_000))
    loop = Loop(context.conversation("planner"), [echo()], final=True)
    loop.conversation.say(user("What is it?"))
    step = await loop.think()
    loop.observe([(step.calls[0], "one")])
    with suppress(OutOfBudget):
        while True:
            await context.conversation("worker").reply(user("word " * 2_000))
    assert 2 < len(policy.requests) < 8
    step = await loop.close("the budget is used up")
    assert step.answer == "the answer"
    assert context.rollout.usage.tokens <= 20_000


async def test_a_role_out_of_its_budget_closes_with_its_own_reserve_and_the_run_goes_on() -> None:
    calls = [calling("echo", text=str(at)) for at in range(9)]
    policy = ScriptedPolicy({"code": [*calls[:2], "it is done"], "planner": ["fine"]})
    context = make_context(policy, dialect="native", budget=Budget(roles={"code": Limits(calls=3)}))
    loop = Loop(context.conversation("code", "1"), [echo()])
    loop.conversation.say(user("Do it."))
    step = await loop.run()
    assert (step.answer, step.forced) == ("it is done", "the budget of 3 calls of role 'code' is used up")
    assert context.stopped is None
    assert await context.conversation("planner").reply(user("and?")) == "fine"
    policy.assert_done()


async def test_a_role_that_answers_for_the_run_ends_it_with_its_budget() -> None:
    policy = ScriptedPolicy([calling("echo", text="1"), "the answer"])
    context = make_context(policy, dialect="native", budget=Budget(roles={"planner": Limits(calls=2)}))
    loop = Loop(context.conversation("planner"), [echo()], final=True)
    loop.conversation.say(user("What is it?"))
    assert (await loop.run()).answer == "the answer"
    assert isinstance(context.stopped, RoleBudgetExceeded)


async def test_the_seconds_of_a_role_end_its_call_and_not_the_run() -> None:
    class Slow:
        model = "slow"

        async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
            await asyncio.sleep(60)
            raise AssertionError

        async def aclose(self) -> None:
            pass

    context = make_context(Slow(), budget=Budget(roles={"look": Limits(seconds=0.05)}))
    with pytest.raises(RoleBudgetExceeded, match="seconds of role 'look'"):
        await context.conversation("look").reply(user("well?"))
    assert context.stopped is None


class Knower:
    description, ability, cost = "knows", "knowing", 1
    needs: frozenset[str] = frozenset()

    def __init__(self, name: str) -> None:
        self.name = name

    async def work(self, task: Any, context: RunContext) -> Any:
        raise AssertionError


async def test_an_expert_is_offered_no_more_subtasks_than_it_may_have() -> None:
    context = make_context([], budget=Budget(roles={"one": Limits(subtasks=2)}))
    coordinator = Coordinator(context, [Knower("one"), Knower("two")])
    task = Subtask("1", "x")
    offered = [[expert.name for expert in coordinator._available(task, before)] for before in range(3)]
    assert offered == [["one", "two"], ["one", "two"], ["two"]]
    context.rollout.findings.append(Finding(task, "one", "", "done"))
    assert [expert.name for expert in coordinator._available(task, 1)] == ["two"]

    context = make_context([], budget=Budget(roles={"one": Limits(subtasks=0)}))
    (finding,) = await Coordinator(context, [Knower("one")]).delegate([Subtask("1", "x")], DualMemory())
    assert (finding.ok, finding.conclusion) == (False, "no expert can take another subtask")


def test_settings_become_limits_of_the_run_and_of_roles() -> None:
    roles = {"code": RoleSettings(max_tokens=100, max_calls=2), "planner": RoleSettings(temperature=0.1)}
    budget = budget_of(Settings(max_tokens=1000, max_cost=0.5, max_time=60, max_calls=9, roles=roles))
    assert (budget.tokens, budget.cost, budget.seconds, budget.calls) == (1000, 0.5, 60, 9)
    assert budget.roles == {"code": Limits(tokens=100, calls=2)}


def test_given_prices_win_over_the_table_and_a_name_in_it_may_say_litellm() -> None:
    row = {"input_cost_per_token": 2e-6, "output_cost_per_token": 8e-6, "cache_read_input_token_cost": 5e-7}
    prices = Prices({"mine": PRICE}, {"gpt": row, "mine": row, "free": {"mode": "chat"}})
    assert prices.of("mine") == PRICE
    assert prices.of("other", "litellm/gpt") == Price(2.0, 8.0, 0.5)
    assert prices.of("free") is None
    assert prices.of("gpt", "mine") == PRICE


def test_a_model_that_is_served_nearby_is_not_priced_by_the_table() -> None:
    row = {"gpt-oss": {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}}
    for base_url, price in (("http://127.0.0.1:8000/v1", None), ("https://api.example.com/v1", Price(1.0, 1.0))):
        configs, _ = configure_roles(Settings(model="gpt-oss", base_url=base_url, api_key="k"), {}, row)
        assert configs["*"].price == price
    assert is_nearby("http://vllm:8000/v1")
    assert is_nearby("http://10.1.2.3/v1")
    assert not is_nearby("")


def test_litellms_table_is_read_without_loading_litellm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "litellm"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('loaded')")
    (package / TABLE).write_text(json.dumps({"gpt": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}}))
    monkeypatch.syspath_prepend(tmp_path)
    assert Prices({}, litellm_table()).of("gpt") == Price(1.0, 2.0)
    assert "litellm" not in sys.modules
    (package / TABLE).unlink()
    assert litellm_table() == {}


def test_the_bound_of_a_run_holds_for_one_that_does_everything_wrong() -> None:
    """Of the loop with its calls: unreadable before each accepted one, repeats, and the closing turn."""
    sizes = Sizes()
    rows = HiRA(max_subtasks=2).bound(sizes)
    assert set(rows) == {
        "planner",
        "coordinator",
        "simple_search",
        "code",
        "multimodal",
        "look",
        "reader",
        "deep_search",
    }
    assert rows["coordinator"].calls == 2 * 8
    total = add_bounds(rows, list_alternatives(EXPERTS))
    assert total.calls == rows["planner"].calls + 16 + rows["code"].calls + rows["deep_search"].calls
    assert total.tokens > rows["code"].tokens + rows["deep_search"].tokens + rows["planner"].tokens
    alone = [expert for expert in EXPERTS if expert.ability != "search"]
    assert sizes.bound_hierarchy(2, alone)["coordinator"].calls == 2 * 6, "nobody searches after the code expert"


async def test_a_loop_never_takes_more_turns_than_its_bound() -> None:
    unreadable = Completion("", calls=(ToolCall("", "echo", "{"),))
    replies: list[Any] = []
    for at in range(3):
        replies += [unreadable, calling("echo", text=str(at))]
    policy = ScriptedPolicy([*[calling("echo", text="a")] * 2, *replies, "done"])
    loop = Loop(make_context(policy, dialect="native").conversation("code"), [echo()], limit=4)
    loop.conversation.say(user("Do it."))
    assert (await loop.run()).answer == "done"
    assert len(policy.requests) <= Sizes().bound_loop(4, 10).calls


TOGETHER = 60_000


def budgets(many: int, tokens: int = TOGETHER) -> tuple[Allowance, Sequence[Budget]]:
    shared = Allowance(Ledger(Limits(tokens), " of the key 'ada'"))
    return shared, [Budget(shared=shared) for _ in range(many)]


def spend_room(budget: Budget, call: CallNeed) -> None:
    room = budget.admit(call)
    budget.charge(call, Usage(1, call.prompt, 500 if room is None else min(room, 500)))


def test_runs_of_one_key_never_spend_more_than_it_has_whichever_calls_go_side_by_side() -> None:
    for seed in range(200):
        random = Random(seed)
        shared, runs = budgets(random.randint(1, 5))
        under_way: list[tuple[Budget, CallNeed, int]] = []
        refused = 0
        while refused < 20 or under_way:
            if refused < 20 and random.random() < 0.5:
                longest = random.choice([None, random.randint(1, 6_000)])
                run = random.choice(runs)
                call = CallNeed("planner", random.randint(100, 8_000), answers=True, reply=longest)
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
        assert shared.ledger.spent.tokens <= TOGETHER
        assert shared.ledger.held == Usage(), "something is held for calls that have ended"


def test_what_another_run_spends_leaves_each_run_its_answer() -> None:
    shared, (one, other) = budgets(2, 20_000)
    asked = CallNeed("planner", 2_000, answers=True)
    one.admit(asked)
    one.charge(asked, Usage(1, 2_000, 100))
    with suppress(OutOfBudget):
        while True:
            spend_room(other, CallNeed("planner", 2_000, answers=True))
    for run in (other, one):
        spend_room(run, CallNeed("planner", 2_400, answers=True, last=True))
    assert run.spent.calls >= 2
    assert shared.ledger.spent.tokens <= 20_000


def test_what_an_ended_run_kept_for_its_answer_is_the_others_again() -> None:
    shared, (one, other) = budgets(2, 10_000)
    asked = CallNeed("planner", 3_000, answers=True)
    one.admit(asked)
    one.charge(asked, Usage(1, 3_000, 10))
    with pytest.raises(OutOfBudget):
        other.admit(CallNeed("planner", 3_000))
    shared.leave(id(one))
    other.admit(CallNeed("planner", 3_000))


def test_a_call_that_only_others_under_way_stand_against_is_told_so_and_may_be_tried_again() -> None:
    shared, (one, other) = budgets(2, 6_000)
    first, second = CallNeed("planner", 1_500), CallNeed("planner", 1_500)
    one.admit(first)
    with pytest.raises(OutOfBudget, match="the budget of 6,000 tokens of the key 'ada' is held by other calls") as held:
        other.admit(second)
    assert held.value.fix == AGAIN
    one.charge(first, Usage(1, 1_500, 100))
    other.admit(second)
    other.charge(second, Usage(1, 1_500, 1_500))
    with pytest.raises(OutOfBudget, match="the budget of 6,000 tokens of the key 'ada' is used up") as spent:
        other.admit(CallNeed("planner", 1_500))
    assert not spent.value.fix
    assert shared.ledger.held == Usage()


async def test_the_code_of_a_workflow_of_ones_own_ends_with_the_time_of_the_run() -> None:
    class Waits:
        name = "waits"

        async def run(self, question: str, context: RunContext) -> str:
            await asyncio.Event().wait()
            return question

    async with Hira("offline", workflow=Waits(), max_time=0.1) as hira:
        answer = await hira.ask("How long?")
    assert (answer.status, answer.error) == ("partial", "the budget of 0.1 seconds is used up")


@pytest.mark.parametrize("answers", [True, False])
def test_the_time_of_recorded_calls_refuses_none_and_time_is_kept_only_for_a_call_that_answers(answers: bool) -> None:
    budget = Budget(seconds=10)
    planner, expert = CallNeed("planner", answers=answers), CallNeed("deep_search")
    for role in ("planner", "deep_search") * 3:
        budget.charge_role(role, Usage(1, seconds=20))  # by the calls in the record of a resumed run
    for _ in range(2):
        budget.admit(planner)
        budget.charge(planner, Usage(1, seconds=20))
        budget.admit(replace(expert, recorded=True))
    if answers:
        with pytest.raises(RoleBudgetExceeded, match="no time left for another call"):
            budget.admit(expert)
    else:
        assert budget.admit(expert) is None
