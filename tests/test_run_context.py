import asyncio

import pytest

from hira.agents.run_context import RoleConfig, RunContext
from hira.core.errors import Interrupted, OutOfBudget
from hira.core.messages import user
from hira.core.policy import Completion, Usage
from hira.testing import ScriptedPolicy
from hira.testing.script import make_context


def test_a_role_that_is_not_named_is_played_by_the_star() -> None:
    one, other = RoleConfig(ScriptedPolicy([])), RoleConfig(ScriptedPolicy([]))
    context = RunContext({"*": one, "planner": other})
    assert context.config_of("planner") is other
    assert context.config_of("coordinator") is one


def test_conversations_of_a_role_have_names_of_their_own_by_subtask_and_number() -> None:
    context = make_context([])
    names = [context.conversation("code", under).name for under in ("1", "2", "1", "")]
    assert names == ["1/code", "2/code", "1/code.2", "code"]


async def test_every_turn_is_recorded_and_charged() -> None:
    policy = ScriptedPolicy([Completion("a", usage=Usage(1, 10, 5, cost=0.5)), Completion("b", usage=Usage(1, 20, 5))])
    context = make_context(policy)
    conversation = context.conversation("worker")
    await conversation.reply(user("one"))
    await conversation.reply(user("two"))
    assert [turn.completion.text for turn in context.rollout.trajectories["worker"].turns] == ["a", "b"]
    usage = context.rollout.usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.cost) == (2, 30, 10, 0.5)
    assert context.budget.spent == usage


async def test_a_request_is_a_snapshot_that_later_turns_do_not_change() -> None:
    policy = ScriptedPolicy(["a", "b"])
    conversation = make_context(policy).conversation("worker")
    await conversation.reply(user("one"))
    await conversation.reply(user("two"))
    assert [len(request.messages) for request in policy.requests] == [1, 3]


async def test_a_stop_cancels_what_is_under_way_and_the_first_reason_stays() -> None:
    context = make_context([])
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def work_until_stopped() -> None:
        async with context.stopping.bound():
            await work()

    waiting = asyncio.create_task(work_until_stopped())
    await asyncio.sleep(0)
    context.stop()
    context.stop(OutOfBudget("later"))
    with pytest.raises(Interrupted):
        await waiting
    assert ended.is_set()


async def test_calls_under_one_key_are_made_once_and_a_failure_is_not_kept() -> None:
    context, made = make_context([]), 0

    async def call() -> int:
        nonlocal made
        made += 1
        await asyncio.sleep(0)
        if made == 1:
            raise ValueError("once")
        return made

    with pytest.raises(ValueError, match="once"):
        await context.once("k", call)
    assert await asyncio.gather(context.once("k", call), context.once("k", call), context.once("", call)) == [3, 3, 3]
    assert await context.once("k", call) == 3


async def test_a_shared_call_ends_when_the_last_who_waits_for_it_gives_up() -> None:
    context, ended = make_context([]), asyncio.Event()

    async def call() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    waiting = [asyncio.create_task(context.once("k", call)) for _ in range(2)]
    await asyncio.sleep(0.01)
    waiting[0].cancel()
    await asyncio.sleep(0.01)
    assert not ended.is_set()
    waiting[1].cancel()
    await asyncio.wait(waiting)
    await asyncio.sleep(0.01)
    assert ended.is_set()
