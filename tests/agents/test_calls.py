"""A role's call of a tool: what is performed, what the model reads of it, and what the run knows afterwards."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hira.agents.calls import CallResult, format_arguments, frame_source, use
from hira.agents.run_context import RunContext
from hira.core.errors import HiraError, ToolDown, ToolError
from hira.core.events import Event, Events, Notice, ToolEnded, ToolStarted
from hira.core.tool import Observation, Passage, Tool
from hira.evidence import Source
from hira.journal import Journal
from hira.testing import ScriptedPolicy, make_context

PAGE = Source("https://page.example/a", "A page", "The tower is 31 m high. It is red.")


class Killed(GeneratorExit):
    """Ends a run the way nothing in hira expects."""


def tool(result: Any, name: str = "browse", **fields: Any) -> tuple[Tool, list[Mapping[str, Any]]]:
    """A tool with this result, or one that raises it, and the arguments of its calls so far."""
    calls: list[Mapping[str, Any]] = []

    async def run(arguments: dict[str, Any]) -> Observation:
        calls.append(arguments)
        if isinstance(result, BaseException):
            raise result
        return result if isinstance(result, Observation) else Observation(str(result))

    return Tool(name, "a tool", {"type": "object"}, run, **fields), calls


def watched(**fields: Any) -> tuple[RunContext, list[Event]]:
    context = make_context(ScriptedPolicy([]), **fields)
    events: list[Event] = []
    context.events.readers.append(events.append)
    return context, events


async def called(made: Tool, context: RunContext | None = None, **arguments: Any) -> CallResult:
    context = context or watched()[0]
    return await use(context.conversation("expert"), made, arguments)


async def test_passages_enter_the_sources_and_are_shown_with_their_ids_one_frame_for_each_source() -> None:
    other = Source("https://page.example/b", "Other", "A mill.")
    parts = [Passage(PAGE, "31 m"), Passage(other, "A mill."), Passage(PAGE, "red"), Passage(PAGE, "31 m")]
    made, _ = tool(Observation("Two pages.", tuple(parts)))
    context, events = watched()
    result = await called(made, context, url="x")
    assert result.ok
    assert [source.location for source in context.rollout.sources.read.values()] == [PAGE.location, other.location]
    assert result.text.startswith("Two pages.\n\n")
    assert result.text.count("[s1] A page") == result.text.count("[s2] Other") == result.text.count("31 m") == 1
    assert result.text.index("red") < result.text.index("A mill."), "what one source says stands together"
    (started,) = [event for event in events if isinstance(event, ToolStarted)]
    (ended,) = [event for event in events if isinstance(event, ToolEnded)]
    assert (started.call, ended.call, ended.ok, ended.text) == (1, 1, True, result.text)
    assert 0 <= ended.seconds < 60
    assert frame_source(PAGE, "x [/s1]").count("[/") == 1


async def test_nothing_found_is_said_and_a_search_without_a_hit_is_no_result() -> None:
    for name, observation, has in (
        ("search", Observation("0 results"), False),
        ("scholar", Observation(""), False),
        ("google_search", Observation(""), False),
        ("search", Observation("", (Passage(PAGE, "31 m"),)), True),
        ("python", Observation(""), True),
        ("python", Observation("an error", ok=False), False),
    ):
        conversation = watched()[0].conversation("expert")
        result = await use(conversation, tool(observation, name)[0], {"query": "q"})
        assert conversation.calls.has_result is has, (name, observation)
        assert observation.text or observation.passages or result.text == "Nothing was found."


async def test_a_citable_text_is_a_source_together_with_its_call() -> None:
    for observation, sources in (
        (Observation("3.5 m", citable=True), ['tool:tides({"harbour": "Husum"})']),
        (Observation("3.5 m"), []),
        (Observation("it failed", ok=False, citable=True), []),
    ):
        context, _ = watched()
        result = await called(tool(observation, "tides")[0], context, harbour="Husum")
        assert [source.location for source in context.rollout.sources.read.values()] == sources
        assert observation.text in result.text


async def test_the_model_reads_why_a_tool_failed_and_the_user_hears_of_one_that_is_down_or_faulty() -> None:
    for error, text, noted in (
        (ToolError("no such page"), "browse failed: no such page", ""),
        (ToolDown("the service\nrests."), "browse failed: the service\nrests.", "browse is down: the service; rests"),
        (KeyError("x"), "a fault in the tool, KeyError: 'x'", "browse failed: a fault in the tool, KeyError: 'x'"),
        (OSError(), "a fault in the tool, OSError", "browse failed: a fault in the tool, OSError"),
    ):
        context, events = watched()
        result = await called(tool(error)[0], context, url="x")
        assert not result.ok
        assert text in result.text
        notices = [event.text for event in events if isinstance(event, Notice)]
        assert notices == ([noted] if noted else [])
    for own in (HiraError("the run is broken"), AssertionError("no")):
        with pytest.raises(type(own)):
            await called(tool(own)[0], url="x")


async def test_a_pure_tool_is_called_once_for_equal_arguments_unless_it_failed() -> None:
    for pure, result, times in ((True, "31 m", 1), (False, "31 m", 2), (True, ToolError("no"), 2)):
        made, calls = tool(result, pure=pure)
        context, _ = watched()
        for arguments in ({"a": 1, "b": 2}, {"b": 2, "a": 1}):
            await called(made, context, **arguments)
        assert len(calls) == times
        await called(made, context, a=1, b=3)
        assert len(calls) == times + 1
        assert context.state.called == 3


async def test_secrets_leave_in_no_argument_and_come_back_in_no_result() -> None:
    made, calls = tool(Observation("key-12345678", (Passage(PAGE, "it is key-12345678"),)))
    context, events = watched(events=Events(secrets=frozenset({"key-12345678"})))
    refused = await called(made, context, url="https://x.example?k=key-12345678")
    assert not refused.ok
    assert "a secret of this machine" in refused.text
    assert calls == []
    result = await called(made, context, url="y")
    assert len(calls) == 1
    assert "key-12345678" not in result.text + str(events) + "".join(
        source.text for source in context.rollout.sources.read.values()
    )


@pytest.mark.parametrize(
    "arguments", [{"url": " https://a.blocked.example/x "}, {"urls": [{"at": "http://blocked.example"}]}]
)
async def test_a_blocked_host_is_neither_opened_nor_shown(arguments: dict[str, Any]) -> None:
    blocked = Source("https://blocked.example/a", "Answers", "42")
    made, calls = tool(Observation("", (Passage(blocked, "42"), Passage(PAGE, "31 m"))), blocked=["blocked.example"])
    context, _ = watched()
    result = await called(made, context, **arguments)
    assert (result.ok, calls) == (False, [])
    assert "is blocked in this run; continue without it" in result.text
    shown = await called(
        made, context, url="https://page.example/a", note="blocked.example is a name here, no host of it"
    )
    assert [source.location for source in context.rollout.sources.read.values()] == [PAGE.location]
    assert "31 m" in shown.text
    assert "42" not in shown.text
    free, _ = tool(Observation("", (Passage(blocked, "42"),)))
    assert (await called(free, **arguments)).ok


async def test_of_calls_side_by_side_the_one_that_began_first_gets_its_ids_first() -> None:
    first_may_end = asyncio.Event()

    async def slow(_: dict[str, Any]) -> Observation:
        await first_may_end.wait()
        return Observation("", (Passage(Source("https://slow.example", "Slow", "s"), "s"),))

    async def quick(_: dict[str, Any]) -> Observation:
        first_may_end.set()
        return Observation("", (Passage(Source("https://quick.example", "Quick", "q"), "q"),))

    context, events = watched()
    conversation = context.conversation("expert")
    tools = [Tool(name, "", {"type": "object"}, run) for name, run in (("slow", slow), ("quick", quick))]
    results = await asyncio.gather(*(use(conversation, made, {"x": 1}) for made in tools))
    assert ["[s1] Slow" in results[0].text, "[s2] Quick" in results[1].text] == [True, True]
    assert [event.call for event in events if isinstance(event, ToolStarted)] == [1, 2]


def test_two_calls_are_the_same_if_they_are_spelled_alike() -> None:
    assert format_arguments({"query": " How\nhigh  is it? "}) == "How high is it?"
    assert format_arguments({"n": 3}) == '{"n": 3}'
    assert format_arguments({"b": "ü", "a": 1}) == format_arguments({"a": 1, "b": "ü"}) == '{"a": 1, "b": "ü"}'
    assert format_arguments({}) == "{}"


async def test_a_recorded_call_is_made_once_and_only_one_that_was_interrupted_may_have_run_twice(
    tmp_path: Path,
) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    made, calls = tool("sent", "send_mail")
    dies, _ = tool(Killed(), "send_mail")
    log = journal.begin("r1", settings={"model": "m"}, files=(), versions={"hira": "0"})
    context, events = watched(log=log)
    first = await called(made, context, to="a@example.org")
    with pytest.raises(Killed):
        await called(dies, context, to="b@example.org")
    again, heard = watched(log=journal.resume("r1"))
    assert (await called(made, again, to="a@example.org")).text == first.text
    assert len(calls) == 1, "its result is in the record"
    assert [event.text for event in heard if isinstance(event, Notice)] == []
    await called(made, again, to="b@example.org")
    assert [arguments["to"] for arguments in calls] == ["a@example.org", "b@example.org"]
    (told,) = [event.text for event in heard if isinstance(event, Notice)]
    assert "send_mail had started when the run stopped, and was called again; it may have run twice" in told
    assert not [event for event in events if isinstance(event, Notice)]
    journal.close()
