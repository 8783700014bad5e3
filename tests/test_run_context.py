import asyncio
from dataclasses import replace

import pytest

from hira.agents.run_context import Conversation, RoleConfig, RunContext
from hira.core.budget import Budget, ReplyBound
from hira.core.errors import Interrupted, OutOfBudget, Withheld
from hira.core.events import Notice, SourceRead
from hira.core.messages import assistant, user
from hira.core.policy import CallOptions, Completion, Request, Sampling, Usage, Watch
from hira.core.tool import Observation, Tool
from hira.evidence import Source
from hira.policies.dialects import FALLBACKS, Call
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


def searching(dialect: str, *replies: object) -> tuple[Conversation, ScriptedPolicy]:
    async def run(_: dict[str, object]) -> Observation:
        return Observation()

    policy = ScriptedPolicy(list(replies))  # type: ignore[arg-type]
    conversation = make_context(policy, dialect=dialect).conversation("worker")
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    conversation.tools = [Tool("search", "Search.", schema, run)]
    return conversation, policy


@pytest.mark.parametrize("dialect", ["native", "tags", "json", "xml"])
async def test_a_turn_stops_at_a_call_only_where_calls_may_be_made(dialect: str) -> None:
    conversation, policy = searching(dialect, "a", "b", "c", "d", "e")
    spoken, tools = conversation.config.dialect, conversation.tools
    await conversation.turn(closing=True)
    conversation.say(user("one"))
    await conversation.turn(closing=True)
    conversation.say(assistant("two"), user("three"))
    await conversation.turn(several=2, schema={"type": "object"})
    await conversation.turn()
    await conversation.turn(closing=True)
    first, short, calling, plain, closing = policy.requests
    assert calling.stop == spoken.stops(tools, 2)
    assert [request.stop for request in (first, short, plain, closing)] == [()] * 4
    assert calling.tools == closing.tools == spoken.specs(tools), "history that speaks of tools is shown with them"
    assert [request.tools for request in (first, short, plain)] == [()] * 3
    assert [request.choose for request in policy.requests] == ["none", "none", "auto", "auto", "none"]
    assert (calling.schema, plain.schema) == ({"type": "object"}, None)
    assert not any(request.continues for request in policy.requests)


async def test_a_message_that_is_carried_on_is_continued_and_remembers_its_results() -> None:
    conversation, policy = searching("tags", "a", "b")
    call = Call("search", {"query": "x"})
    conversation.carry_on("Thus ")
    assert [(message.role, message.text) for message in conversation.messages] == [("assistant", "Thus ")]
    conversation.carry_on("far", [(call, "31 m")])
    conversation.carry_on(".", [(call, "32 m")])
    (message,) = conversation.messages
    assert (message.text, message.values["results"]) == ("Thus far.", [(call, "31 m"), (call, "32 m")])
    await conversation.turn()
    assert policy.requests[0].continues
    conversation.say(user("and?"))
    conversation.carry_on("Well")
    assert [message.role for message in conversation.messages] == ["assistant", "user", "assistant"]


async def test_the_bound_of_a_reply_is_the_smaller_one_and_instructions_follow_the_first_question_once() -> None:
    context = make_context(ScriptedPolicy([]), instructions="Be brief.")
    bounded = replace(context.config_of("worker"), replies=ReplyBound(100, 100))
    context.roles = {**context.roles, "bounded": bounded}
    for role, reply, most in (("worker", 50, 50), ("bounded", 50, 50), ("bounded", 200, 100), ("bounded", None, None)):
        assert context.conversation(role, reply=reply).config.sampling.max_tokens == most
    talk = context.conversation("worker")
    talk.say(assistant("Ready."))
    assert [message.text for message in talk.messages] == ["Ready."]
    talk.say(assistant("Now."), user("One?"), user("Two?"))
    talk.say(user("Three?"))
    texts = [message.text for message in talk.messages]
    assert [("Be brief." in text) for text in texts] == [False, False, True, False, False]
    assert texts[2].startswith("One?\n\n")


def test_roles_that_neither_plan_nor_answer_are_not_told_the_instructions() -> None:
    context = make_context(ScriptedPolicy([]), instructions="Be brief.")
    silent = ("coordinator", "evidence", "look", "output", "reader", "state", "system1", "verifier")
    for role in (*silent, "planner", "code", "solver", "system2", "report"):
        talk = context.conversation(role, "1")
        talk.say(user("One?"))
        assert ("Be brief." in talk.messages[0].text) is (role not in silent), role


async def test_a_notice_is_shown_once_and_one_that_was_shown_already_never() -> None:
    context = make_context(ScriptedPolicy([]))
    heard: list[str] = []
    context.events.readers.append(lambda event: heard.append(event.text) if isinstance(event, Notice) else None)
    for text, shown in (("a", False), ("a", False), ("b", True), ("b", False), ("c", False)):
        context.note(text, shown=shown)
    assert heard == ["a", "c"]


class Listening(ScriptedPolicy):
    """A policy that keeps how its replies are received."""

    def __init__(self, replies: list[str]) -> None:
        super().__init__(replies)
        self.calls: list[CallOptions] = []

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        self.calls.append(CallOptions.of(watch))
        return await super().complete(request, watch)


async def test_a_reply_of_mere_thought_may_be_asked_for_again_with_more_tokens_where_no_length_was_set() -> None:
    policy = Listening(["a", "b", "c", "d"])
    bounded = RoleConfig(policy, replies=ReplyBound(tokens=500, again=900))
    for config, tokens, again in (
        (bounded, None, 900),
        (bounded, 900, 805),
        (replace(bounded, sampling=Sampling(max_tokens=300)), None, None),
        (replace(bounded, replies=None), None, None),
    ):
        context = RunContext({"*": config}, budget=Budget(tokens=tokens))
        await context.conversation("worker").reply(user("one"))
        assert policy.calls[-1].again == (again if tokens is None else pytest.approx(again, abs=20)), "what is left"


async def test_what_was_taken_back_is_counted_no_more_and_what_stays_whole() -> None:
    conversation, _ = searching("native")
    tools = ({"name": "search", "description": "Search the library."},)
    conversation.say(user("How high is the tower?"))
    before, whole = list(conversation.messages), conversation.tokens(tools)
    conversation.say(assistant("It is thirty-one metres high."), user("And how old?"))
    assert conversation.tokens(tools) > whole
    conversation.go_back(before)
    assert conversation.tokens(tools) == whole


async def test_a_filtered_reply_is_an_error_that_quotes_what_there_is() -> None:
    long = "I cannot help with this. " * 40
    for text, said in (("", "kept its reply back"), ("I  cannot\nhelp.", "kept its reply back: 'I cannot help.'")):
        context = make_context([Completion(text, finish="filtered")])
        with pytest.raises(Withheld) as caught:
            await context.conversation("worker").reply(user("one"))
        assert caught.value.what.endswith(said)
        assert caught.value.where == "role 'worker', model 'scripted'"
    with pytest.raises(Withheld) as caught:
        await make_context([Completion(long, finish="filtered")]).conversation("worker").reply(user("one"))
    assert len(caught.value.what) < 400


async def test_a_source_is_announced_when_it_is_first_read() -> None:
    context = make_context(ScriptedPolicy([]))
    heard: list[str] = []
    context.events.readers.append(lambda event: heard.append(event.source) if isinstance(event, SourceRead) else None)
    page = Source("https://a.example", "A", "text")
    assert [context.read(page).id, context.read(page).id, context.read(replace(page, location="b")).id] == [
        "s1", "s1", "s2"
    ]  # fmt: skip
    assert heard == ["s1", "s2"]


async def test_a_conversation_falls_back_to_the_next_dialect_and_says_why() -> None:
    conversation, _ = searching("native")
    heard: list[str] = []
    conversation.context.events.readers.append(
        lambda event: heard.append(event.text) if isinstance(event, Notice) else None
    )
    assert not conversation.switch_dialect("they cannot be read")
    conversation.config = replace(conversation.config, otherwise=FALLBACKS["native"])
    assert conversation.switch_dialect("they cannot be read")
    second = conversation.config.dialect.name
    assert second == FALLBACKS["native"]
    assert conversation.config.otherwise == FALLBACKS.get(second, "")
    assert heard == [f"scripted: they cannot be read in the dialect native; calls are written in the dialect {second}"]
    refused, _ = searching("native")
    refused.context.events.readers.append(lambda event: heard.append(event.text) if isinstance(event, Notice) else None)
    refused.config = replace(refused.config, otherwise=FALLBACKS["native"])
    assert refused.switch_dialect()
    assert heard[1:] == [f"scripted takes no tool calls: they are written as text (dialect {second})"]
