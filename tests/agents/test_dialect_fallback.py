"""Models whose calls cannot be read and endpoints that take no tool calls: the run goes on in the next dialect, and no
call becomes an answer."""

from pathlib import Path

import pytest

from hira import Hira
from hira.agents.loop import Loop
from hira.agents.run_context import RoleConfig, RunContext, RunOptions
from hira.core.errors import ToolsRefused
from hira.core.events import Event, Events, Notice, TurnText
from hira.core.messages import user
from hira.core.policy import Delta, Policy
from hira.journal import Journal
from hira.policies.dialects import DIALECTS, FALLBACKS, NATIVE, TAGS, Call
from hira.policies.facts import DIALECT, EndpointFacts
from hira.policies.failures import failure
from hira.policies.fallback import Fallback
from hira.policies.openai import OpenAIPolicy
from hira.runtime.replay import replay
from hira.runtime.settings import RoleSettings, Settings
from hira.testing import Endpoint, ScriptedPolicy, calling, make_context
from hira.tools import tool

BROKEN = '<tool_call>{"name": "double", "arguments": {"n": </tool_call>'
UNKNOWN = '{"name": "triple", "arguments": {"n": 3}}'


@tool(pure=True)
def double(n: int) -> str:
    "Twice a number."
    return str(2 * n)


def begun(context: RunContext, **given: int) -> Loop:
    conversation = context.conversation("worker")
    conversation.say(user(f"Begin. {conversation.config.dialect.instructions([double])}"))
    return Loop(conversation, [double], **given)


def written(name: str, n: int) -> str:
    return DIALECTS[name].write(Call("double", {"n": n}), double)


def falling(policy: Policy, notices: list[str]) -> RunContext:
    def told(event: Event) -> None:
        if isinstance(event, Notice):
            notices.append(event.text)

    return RunContext({"*": RoleConfig(policy, otherwise=FALLBACKS["native"])}, events=Events(told))


async def test_after_two_unreadable_turns_a_run_goes_on_in_json_and_then_in_tags() -> None:
    notices: list[str] = []
    replies = [BROKEN, UNKNOWN, BROKEN, BROKEN, f"I call. {written('tags', 21)}", r"It is \boxed{42}."]
    with Endpoint(replies) as endpoint:
        policy = OpenAIPolicy(endpoint.model, endpoint.base_url)
        step = await begun(falling(policy, notices)).run()
        await policy.aclose()
        endpoint.assert_done()
        sent = [one.body for one in endpoint.calls]
    assert step.answer == "42"
    assert ["tools" in body for body in sent] == [True, True, False, False, False, False]
    assert '"name": "double"' in sent[2]["messages"][0]["content"]
    assert "<|begin_double_call|>" in sent[4]["messages"][0]["content"]
    told = [one for one in notices if "in the dialect" in one]
    assert told == [
        "scripted: 2 turns in a row could not be read in the dialect native; calls are written in the dialect json",
        "scripted: 2 turns in a row could not be read in the dialect json; calls are written in the dialect tags",
    ]


async def test_after_the_last_dialect_the_answer_is_asked_for() -> None:
    policy = ScriptedPolicy([BROKEN] * 6 + ["I do not know."])
    step = await begun(falling(policy, [])).run()
    assert (step.text, step.forced) == ("I do not know.", "your calls could not be read")


async def test_what_was_called_before_stands_in_the_new_dialect() -> None:
    policy = ScriptedPolicy([calling("double", n=1), BROKEN, BROKEN, written("json", 2), BROKEN, BROKEN, "4"])
    await begun(falling(policy, [])).run()
    second, third = policy.requests[3].messages, policy.requests[6].messages
    assert [one.role for one in second] == ["user", "assistant", "user"]
    assert '{"name": "double", "arguments": {"n": 1}}' in second[1].text
    assert [one.text.count("<|begin_double_call|>") for one in third if one.role == "assistant"] == [1, 1]
    assert third[-1].text.count("4") == 1


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_broken_call_and_what_was_told_of_it_leave_the_conversation(dialect: str) -> None:
    good = calling("double", n=4) if dialect == "native" else written(dialect, 4)
    policy = ScriptedPolicy([BROKEN, good, "8"])
    loop = begun(make_context(policy, dialect=dialect))
    assert (await loop.run()).answer == "8"
    retried, last = (request.messages for request in policy.requests[1:])
    assert [one.role for one in retried] == ["user", "user"]
    assert "Nothing was called" in retried[1].text
    assert last[0] == retried[0]
    assert not any("Nothing was called" in one.text or "<tool_call>" in one.text for one in last)
    assert loop.conversation.trajectory.unreadable == 1


@pytest.mark.parametrize("raw", [written("json", 3), BROKEN, UNKNOWN, "[double(n=3)]"])
async def test_a_raw_call_is_never_the_answer(raw: str) -> None:
    policy = ScriptedPolicy([calling("double", n=1), raw, r"\boxed{2}"])
    assert (await begun(make_context(policy, dialect="native"), limit=1).run()).answer == "2"
    assert "That was a call" in policy.requests[-1].messages[-1].text
    stubborn = ScriptedPolicy([calling("double", n=1), raw, raw])
    notices: list[str] = []
    context = falling(stubborn, notices)
    step = await begun(context, limit=1).run()
    assert (step.text, step.answer) == ("", "")
    assert any("wrote a call instead of its answer" in one for one in notices)


REPLIES = [
    BROKEN,
    BROKEN,
    '{"name": "search", "arguments": {"query": "ASEAN"}}',
    r"\boxed{It was founded in 1967 [s1].}",
]


async def test_the_next_run_begins_in_the_dialect_that_worked_and_both_replay(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "asean.txt").write_text("ASEAN was founded in 1967.\n", encoding="utf-8")
    with Endpoint(REPLIES + REPLIES[2:]) as endpoint:
        settings = Settings(
            model=endpoint.model,
            base_url=endpoint.base_url,
            docs=(tmp_path / "docs",),
            workflow="react",
            verify="lexical",
            cache=tmp_path / "cache",
            journal=tmp_path / "journal.sqlite",
        )
        runs = []
        for _ in range(2):
            async with Hira(settings=settings) as hira:
                runs.append(await hira.ask("When was ASEAN founded?"))
        endpoint.assert_done()
        sent = [one.body for one in endpoint.calls]
    assert [answer.text for answer in runs] == ["It was founded in 1967 [s1]."] * 2
    assert ["tools" in body for body in sent] == [True, True, False, False, False, False]
    assert EndpointFacts(tmp_path / "cache").about(endpoint.base_url, endpoint.model).get(DIALECT) == "json"
    journal = Journal(tmp_path / "journal.sqlite")
    for answer in runs:
        assert (await replay(journal, answer.rollout.run)).same
    journal.close()


async def test_a_dialect_that_somebody_set_is_kept(tmp_path: Path) -> None:
    facts = EndpointFacts(tmp_path)
    with Endpoint([r"\boxed{It was founded in 1967.}"]) as endpoint:
        facts.about(endpoint.base_url, endpoint.model).keep(DIALECT, "json")
        (tmp_path / "asean.txt").write_text("ASEAN was founded in 1967.\n", encoding="utf-8")
        settings = Settings(
            model=endpoint.model, base_url=endpoint.base_url, docs=(tmp_path,), workflow="react", cache=tmp_path,
            dialect="native", verify="lexical", journal=None,
        )  # fmt: skip
        async with Hira(settings=settings) as hira:
            await hira.ask("When was ASEAN founded?")
        assert "tools" in endpoint.calls[0].body


def test_facts_are_kept_by_endpoint_model_and_name_and_can_be_forgotten(tmp_path: Path) -> None:
    EndpointFacts(tmp_path).about("http://a/v1/", "m").keep(DIALECT, "json")
    EndpointFacts(tmp_path).about("http://a/v1", "n").keep(DIALECT, "tags")
    EndpointFacts(tmp_path).about("http://a/v1", "n").keep("speed", {"tokens": 12})
    known = EndpointFacts(tmp_path)
    assert [known.about("http://a/v1", name).get(DIALECT) for name in ("m", "n", "o")] == ["json", "tags", None]
    assert known.about("http://a/v1/", "n").get("speed") == {"tokens": 12}
    known.about("http://a/v1", "m").keep(DIALECT, "")
    assert EndpointFacts(tmp_path).about("http://a/v1", "m").get(DIALECT) is None
    assert EndpointFacts(tmp_path).about("http://a/v1", "n").get(DIALECT) == "tags"


def test_two_writers_of_facts_keep_what_the_other_learned(tmp_path: Path) -> None:
    first, second = EndpointFacts(tmp_path), EndpointFacts(tmp_path)
    first.about("http://a/v1", "m").keep(DIALECT, "json")
    second.about("http://a/v1", "m").keep("speed", 3)
    assert EndpointFacts(tmp_path).about("http://a/v1", "m").get(DIALECT) == "json"
    assert EndpointFacts(tmp_path).about("http://a/v1", "m").get("speed") == 3


def test_facts_without_a_folder_last_as_long_as_the_object() -> None:
    known = EndpointFacts()
    known.about("http://a/v1", "m").keep(DIALECT, "json")
    assert known.about("http://a/v1", "m").get(DIALECT) == "json"
    assert EndpointFacts().about("http://a/v1", "m").get(DIALECT) is None


def test_a_file_of_dialects_alone_as_earlier_releases_wrote_it_is_read_and_extended(tmp_path: Path) -> None:
    (tmp_path / "endpoints.json").write_text('{"http://a/v1 m": "json", "http://a/v1 n": "tags"}')
    known = EndpointFacts(tmp_path)
    assert [known.about("http://a/v1", name).get(DIALECT) for name in ("m", "n")] == ["json", "tags"]
    known.about("http://a/v1", "m").keep("speed", 3)
    again = EndpointFacts(tmp_path)
    assert [again.about("http://a/v1", "m").get(name) for name in (DIALECT, "speed")] == ["json", 3]
    assert again.about("http://a/v1", "n").get(DIALECT) == "tags"


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "[" * 100_000, '{"http://a/v1 m": 3}', '{"http://a/v1 m": {"dialect": 5}}']
)
def test_a_broken_file_of_facts_costs_no_other_fact(tmp_path: Path, content: str) -> None:
    (tmp_path / "endpoints.json").write_text(content)
    known = EndpointFacts(tmp_path)
    known.about("http://a/v1", "n").keep(DIALECT, "json")
    assert EndpointFacts(tmp_path).about("http://a/v1", "n").get(DIALECT) == "json"


async def test_a_call_in_the_text_is_not_streamed() -> None:
    seen: list[str] = []

    class Streams(ScriptedPolicy):
        async def complete(self, request, watch=None):  # type: ignore[no-untyped-def]
            completion = await super().complete(request)
            for at in range(0, len(completion.text), 5):
                watch(Delta(completion.text[at : at + 5]))
            return completion

    policy = Streams([f"I look. {written('json', 21)}", "It is 42."])
    events = Events(lambda event: seen.append(event.text) if isinstance(event, TurnText) else None)
    context = RunContext({"*": RoleConfig(policy)}, events=events, options=RunOptions(stream=True))
    assert (await begun(context).run()).text == "It is 42."
    assert "".join(seen).split() == ["I", "look.", "It", "is", "42."]


REFUSED = "400-no-tools"
CALL = 'I call.\n```json\n{"name": "double", "arguments": {"n": 21}}\n```'


async def test_the_run_goes_on_in_text_as_if_it_had_begun_in_it() -> None:
    notices: list[str] = []
    with Endpoint([CALL, "It is \\boxed{42}."], faults=[REFUSED]) as endpoint:
        policy = OpenAIPolicy(endpoint.model, endpoint.base_url)
        step = await begun(falling(policy, notices)).run()
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
            assert (await begun(falling(policy, notices)).run()).answer == "42"
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
        step = await begun(falling(Fallback(policies), notices)).run()
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
    from hira.runtime.factory import configure_roles

    configs, _ = configure_roles(settings, {"*": ScriptedPolicy([])})
    part = configs["*"]
    assert part.otherwise == otherwise
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
    assert isinstance(failure(400, said, {}), ToolsRefused)


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
    assert not isinstance(failure(400, said, {}), ToolsRefused)
