"""An endpoint that takes no native tool calls: the run goes on in text, and the endpoint is not asked again."""

from typing import Any

import pytest

from hira.agents.loop import Loop
from hira.agents.run_context import RoleConfig, RunContext
from hira.core.errors import ToolsRefused
from hira.core.events import Event, Events, Notice
from hira.core.messages import user
from hira.core.policy import Policy
from hira.policies.dialects import JSON, NATIVE, TAGS
from hira.policies.failures import refuses_tools
from hira.policies.openai import OpenAIPolicy
from hira.policies.retrying import Fallback
from hira.runtime.settings import RoleSettings, Settings
from hira.testing import Endpoint, ScriptedPolicy, calling, make_context
from hira.tools import tool

REFUSED = "400-no-tools"


@tool(pure=True)
def double(n: int) -> str:
    "Twice a number."
    return str(2 * n)


def context_at(policy: Policy, notices: list[str], **part: Any) -> RunContext:
    def told(event: Event) -> None:
        if isinstance(event, Notice):
            notices.append(event.text)

    return RunContext({"*": RoleConfig(policy, otherwise=JSON, **part)}, events=Events(told))


def begun(context: RunContext) -> Loop:
    conversation = context.conversation("worker")
    told = conversation.part.dialect.instructions([double])
    conversation.say(user(f"Begin. {told}"))
    return Loop(conversation, [double])


CALL = 'I call.\n```json\n{"name": "double", "arguments": {"n": 21}}\n```'


async def test_the_run_goes_on_in_text_as_if_it_had_begun_in_it() -> None:
    notices: list[str] = []
    with Endpoint([CALL, "It is \\boxed{42}."], faults=[REFUSED]) as endpoint:
        policy = OpenAIPolicy(endpoint.model, endpoint.base_url)
        step = await begun(context_at(policy, notices)).run()
        await policy.aclose()
        endpoint.assert_done()
        sent = [one.body["messages"] for one in endpoint.calls]
    assert step.answer == "42"
    assert notices == ["scripted takes no tool calls: they are written as text (dialect json)"]
    plain = ScriptedPolicy([CALL, "It is \\boxed{42}."])
    await begun(make_context(plain, dialect="json")).run()
    assert sent[1:] == [[message.wire for message in request.messages] for request in plain.requests]


async def test_the_endpoint_is_asked_once_and_every_later_run_knows() -> None:
    notices: list[str] = []
    with Endpoint([CALL, "\\boxed{42}"] * 2, faults=[REFUSED]) as endpoint:
        for _ in range(2):
            policy = OpenAIPolicy(endpoint.model, endpoint.base_url)
            assert (await begun(context_at(policy, notices)).run()).answer == "42"
            await policy.aclose()
        endpoint.assert_done()
        assert ["tools" in one.body for one in endpoint.calls] == [True, False, False, False, False]
    assert len(notices) == 2


async def test_a_dialect_that_somebody_chose_is_left_as_it_is() -> None:
    with Endpoint(["never"], faults=[REFUSED]) as endpoint:
        policy = OpenAIPolicy(endpoint.model, endpoint.base_url)
        context = RunContext({"*": RoleConfig(policy)})
        for _ in range(2):
            with pytest.raises(ToolsRefused, match=r"takes? no tool calls|does not support tools") as raised:
                await begun(context).run()
            assert "HIRA_DIALECT=tags" in raised.value.fix
        await policy.aclose()
        assert len(endpoint.calls) == 1


async def test_what_was_called_natively_before_stands_as_text_afterwards() -> None:
    """The first model takes tool calls and goes down in the middle; the one that speaks for it does not."""
    notices: list[str] = []
    with (
        Endpoint([calling("double", n=21)], faults=lambda n: "" if n == 1 else "503") as first,
        Endpoint(["It is \\boxed{42}."], model="second", faults=[REFUSED]) as second,
    ):
        policies = OpenAIPolicy(first.model, first.base_url), OpenAIPolicy(second.model, second.base_url)
        step = await begun(context_at(Fallback(policies), notices)).run()
        for policy in policies:
            await policy.aclose()
        sent = second.calls[-1].body["messages"]
    assert step.answer == "42"
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert '{"name": "double", "arguments": {"n": 21}}' in sent[1]["content"]
    assert sent[2]["content"].splitlines()[::2] == ["<tool_response>", "42", "</tool_response>"]


@pytest.mark.parametrize(
    ("settings", "otherwise"),
    [
        (Settings(), "json"),
        (Settings(dialect="native"), ""),
        (Settings(dialect="tags"), ""),
        (Settings(roles={"*": RoleSettings(dialect="native")}), ""),
    ],
)
def test_only_a_dialect_that_nobody_set_may_be_left(settings: Settings, otherwise: str) -> None:
    from hira.runtime.factory import cast_of

    cast, _ = cast_of(settings, {"*": ScriptedPolicy([])})
    part = cast["*"]
    assert (part.otherwise.name if part.otherwise else "") == otherwise
    assert part.dialect is (TAGS if settings.dialect == "tags" else NATIVE)


@pytest.mark.parametrize(
    "said",
    [
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "registry.ollama.ai/library/gemma3:4b does not support tools",
        "tools param requires --jinja flag",
        "No endpoints found that support tool use. To learn more about provider routing, visit the docs",
        "Unrecognized request argument supplied: tools",
        "body.tools: Extra inputs are not permitted",
        "This model does not support function calling",
        "Tool calling is not enabled for this deployment",
        "`tools` is not supported in this version",
    ],
)
def test_what_servers_say_when_they_take_no_tools(said: str) -> None:
    assert refuses_tools(said)


@pytest.mark.parametrize(
    "said",
    [
        "This model only supports single tool-calls at once!",
        "Invalid schema for function 'search': 'pattern' is not permitted",
        "messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
        "temperature is not supported with this model",
        "the model does not exist",
        "No tool output found for function call call_1",
    ],
)
def test_other_failures_say_nothing_about_tools(said: str) -> None:
    assert not refuses_tools(said)
