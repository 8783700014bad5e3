"""Search-o1 and WebThinker step by step, and the faults of their published code, each shown not to be one here."""

import json
from typing import Any

import pytest

from hira.core.errors import EndpointError, ToolError
from hira.core.policy import Completion, Request
from hira.evidence import Source
from hira.policies.dialects import DIALECTS
from hira.testing import ScriptedPolicy
from hira.testing.script import make_context
from hira.tools import Observation, Passage, Toolbox, tool
from hira.workflows import rollout
from hira.workflows.baselines.search_o1 import SearchO1
from hira.workflows.baselines.webthinker import WebThinker

QUESTION = "How high is the tower?"
ANSWER = r"Enough. \boxed{The tower is 31 m high [s1].}"
CONDENSED = "The tower is 31 m high [s1]."
EXPLORED = r"\boxed{The tower is 31 m high [s1].}"
READ = "The tower is 31 m high and stands by the sea."


def searching(query: str, thought: str = "I look it up.") -> str:
    return f"{thought} <|begin_search_query|>{query}<|end_search_query|>"


@tool(pure=True)
async def search(query: str) -> Observation:
    "Search."
    return Observation(passages=(Passage(Source("towers.md", "Towers", READ, "file"), f"{READ} Hit for {query}."),))


BOX = Toolbox(search=search)
BOTH = pytest.mark.parametrize(
    ("workflow", "served"),
    [(SearchO1(), {"reader": lambda _: CONDENSED}), (WebThinker(), {"deep_search": lambda _: EXPLORED})],
    ids=["search-o1", "webthinker"],
)


def of(policy: ScriptedPolicy, role: str) -> list[Request]:
    """The requests of one role."""
    return [request for request in policy.requests if request.conversation.rpartition("/")[2].startswith(role)]


async def test_search_o1_reasons_searches_condenses_inserts_and_goes_on() -> None:
    policy = ScriptedPolicy({"reasoner": [searching("height of the tower"), ANSWER], "reader": [CONDENSED]})
    record = await rollout(SearchO1(), QUESTION, make_context(policy, tools=BOX))
    assert (record.status, record.answer) == ("answered", "The tower is 31 m high [s1].")
    assert [request.conversation for request in policy.requests] == ["reasoner", "1/reader", "reasoner"]
    policy.assert_done()


async def test_reason_in_documents_sees_question_reasoning_query_and_pages() -> None:
    policy = ScriptedPolicy({"reasoner": [searching("height", "It may be 30 m."), ANSWER], "reader": [CONDENSED]})
    await rollout(SearchO1(), QUESTION, make_context(policy, tools=BOX))
    (told,) = of(policy, "reader")[0].messages
    assert f"Question: {QUESTION}" in told.text
    assert "It may be 30 m." in told.text.partition("Reasoning so far:")[2].partition("Query:")[0]
    assert "Query: height" in told.text
    assert "Hit for height." in told.values["documents"]


async def test_the_chain_of_reasoning_never_sees_a_page_only_what_was_condensed_of_it() -> None:
    policy = ScriptedPolicy({"reasoner": [searching("height"), ANSWER], "reader": [CONDENSED]})
    await rollout(SearchO1(), QUESTION, make_context(policy, tools=BOX))
    shown = of(policy, "reasoner")[-1].messages[-1].text
    assert CONDENSED in shown
    assert "stands by the sea" not in shown


@pytest.mark.parametrize("echo", ["height", "I look\nit up."])
async def test_what_a_reader_only_repeats_is_no_summary_and_the_pages_are_passed_on(echo: str) -> None:
    policy = ScriptedPolicy({"reasoner": [searching("height"), ANSWER], "reader": [echo]})
    await rollout(SearchO1(), QUESTION, make_context(policy, tools=BOX))
    assert "stands by the sea" in of(policy, "reasoner")[-1].messages[-1].text


async def test_what_nobody_could_condense_is_passed_on_as_it_is_and_that_is_told() -> None:
    policy = ScriptedPolicy({"reasoner": [searching("height"), ANSWER], "reader": [EndpointError("reader is gone")]})
    heard: list[Any] = []
    context = make_context(policy, tools=BOX)
    context.events.readers.append(heard.append)
    record = await rollout(SearchO1(), QUESTION, context)
    assert record.status == "answered"
    assert "stands by the sea" in of(policy, "reasoner")[-1].messages[-1].text
    assert any("reader is gone" in getattr(event, "text", "") for event in heard)


async def test_webthinker_sends_an_explorer_that_searches_and_clicks_in_a_conversation_of_its_own() -> None:
    @tool(pure=True)
    async def browse(url: str, intent: str = "") -> Observation:
        "Open."
        return Observation(passages=(Passage(Source(url, "Towers", READ, "file"), f"{READ} {intent}"),))

    policy = ScriptedPolicy(
        {
            "reasoner": [searching("tower"), ANSWER],
            "deep_search": [
                searching("tower by the sea"),
                "<|begin_click_link|>url: towers.md\nintent: its height<|end_click_link|>",
                EXPLORED,
            ],
        }
    )
    record = await rollout(WebThinker(), QUESTION, make_context(policy, tools=Toolbox(search=search, browse=browse)))
    assert (record.status, record.answer) == ("answered", "The tower is 31 m high [s1].")
    explored = of(policy, "deep_search")
    assert [request.conversation for request in explored] == ["1/deep_search"] * 3
    assert "Hit for tower by the sea." in explored[1].messages[-1].text
    assert "its height" in explored[2].messages[-1].text
    shown = of(policy, "reasoner")[-1].messages[-1].text
    assert "31 m high [s1]" in shown
    assert "stands by the sea" not in shown
    policy.assert_done()


async def test_the_explorer_is_told_the_intent_and_neither_the_question_nor_the_thoughts() -> None:
    call = "My thought. <|begin_search_query|>query: tower\nintent: its height in metres<|end_search_query|>"
    policy = ScriptedPolicy({"reasoner": [call, ANSWER], "deep_search": [EXPLORED]})
    await rollout(WebThinker(), QUESTION, make_context(policy, tools=BOX))
    told = of(policy, "deep_search")[0].messages[0].text
    assert "its height in metres" in told
    assert "tower" in told
    assert QUESTION not in told
    assert "My thought" not in told


async def test_an_explorer_whose_endpoint_fails_is_told_of_and_may_be_sent_again() -> None:
    policy = ScriptedPolicy(
        {
            "reasoner": [searching("tower"), searching("tower"), ANSWER],
            "deep_search": [EndpointError("explorer is gone"), searching("t"), EXPLORED],
        }
    )
    record = await rollout(WebThinker(), QUESTION, make_context(policy, tools=BOX))
    assert record.status == "answered"
    assert "explorer is gone" in of(policy, "reasoner")[1].messages[-1].text
    assert [finding.ok for finding in record.findings] == [False, True]


def write(title: str, task: str) -> str:
    call = json.dumps({"title": title, "task": task})
    return f"<|begin_write_section_call|>{call}<|end_write_section_call|>"


def editing(instruction: str) -> str:
    return f"<|begin_edit_article_call|>{instruction}<|end_edit_article_call|>"


CHECKING = "<|begin_check_article_call|><|end_check_article_call|>"
TOPIC = "The tower"


async def test_a_report_is_searched_for_written_checked_and_edited() -> None:
    policy = ScriptedPolicy(
        {
            "reasoner": [searching("tower"), write("Height", "how high it is"), CHECKING, editing("shorter"), "Done."],
            "deep_search": [searching("t"), EXPLORED],
            "writer": [
                "## Height\n\nThe tower is 31 m high and stands by the sea [s1].",
                "```markdown\n# The tower\n\n## Height\n\nThe tower is 31 m high [s1].\n```",
            ],
        }
    )
    record = await rollout(WebThinker(report=True), TOPIC, make_context(policy, tools=BOX))
    assert record.answer == "# The tower\n\n## Height\n\nThe tower is 31 m high [s1]."
    assert record.status == "answered"
    written, edited = of(policy, "writer")
    assert "stands by the sea" in written.messages[0].values["documents"]
    assert edited.messages[0].values["article"].endswith("stands by the sea [s1].")
    shown = [request.messages[-1].text for request in of(policy, "reasoner")]
    assert "## Height" in shown[3]
    assert "no longer cited: none" in shown[4]
    policy.assert_done()


async def test_sources_that_an_edit_lost_are_named() -> None:
    policy = ScriptedPolicy(
        {
            "reasoner": [searching("t"), write("Height", "how high"), editing("shorter"), "Done."],
            "deep_search": [searching("t"), EXPLORED],
            "writer": ["## Height\n\nThe tower is 31 m high [s1].", "# The tower\n\nIt is high."],
        }
    )
    await rollout(WebThinker(report=True), TOPIC, make_context(policy, tools=BOX))
    assert "no longer cited: s1" in of(policy, "reasoner")[-1].messages[-1].text


async def test_an_edit_that_was_cut_off_would_lose_the_end_of_the_report_and_is_not_taken() -> None:
    policy = ScriptedPolicy(
        {
            "reasoner": [write("Height", "h"), editing("longer, with more words"), "Done."],
            "writer": ["## Height\n\nIt is high.", Completion("# The tower\n\n## Hei", finish="length")],
        }
    )
    record = await rollout(WebThinker(report=True), TOPIC, make_context(policy, tools=BOX))
    assert record.answer == "# The tower\n\n## Height\n\nIt is high."
    assert "nothing changed" in of(policy, "reasoner")[-1].messages[-1].text


@pytest.mark.parametrize("written", ["", "<think>endless"])
async def test_a_writer_that_brings_nothing_changes_nothing_and_the_reasoner_is_told(written: str) -> None:
    policy = ScriptedPolicy(
        {
            "reasoner": [write("Height", "h"), write("Age", "a"), editing("shorter"), "Done."],
            "writer": ["## Height\n\nIt is high.", written, written],
        }
    )
    record = await rollout(WebThinker(report=True), TOPIC, make_context(policy, tools=BOX))
    assert record.answer == "# The tower\n\n## Height\n\nIt is high."
    assert all("nothing changed" in one.messages[-1].text for one in of(policy, "reasoner")[2:])


async def test_editing_and_checking_before_anything_is_written_costs_no_call_of_the_writer() -> None:
    policy = ScriptedPolicy({"reasoner": [CHECKING, editing("shorter"), "Done."]})
    await rollout(WebThinker(report=True), TOPIC, make_context(policy, tools=BOX))
    assert all("Nothing is written yet" in one.messages[-1].text for one in of(policy, "reasoner")[1:])


async def test_a_report_whose_endpoint_fails_keeps_what_was_written() -> None:
    policy = ScriptedPolicy(
        {"reasoner": [write("Height", "h"), EndpointError("gone")], "writer": ["## Height\n\nIt is high."]}
    )
    record = await rollout(WebThinker(report=True), TOPIC, make_context(policy, tools=BOX))
    assert (record.status, record.error) == ("failed", "gone")
    assert record.answer == "# The tower\n\n## Height\n\nIt is high."


async def test_what_was_read_before_an_endpoint_failed_is_told_with_its_source() -> None:
    policy = ScriptedPolicy({"reasoner": [searching("t"), EndpointError("gone")], "reader": [CONDENSED]})
    record = await rollout(SearchO1(), QUESTION, make_context(policy, tools=BOX))
    assert (record.status, record.error) == ("failed", "gone")
    assert f"“{READ}” [s1]" in record.answer
    assert record.citations == [], "a failed run has no verdicts"


@BOTH
async def test_results_are_inserted_into_one_chain_where_the_endpoint_can(workflow: Any, served: Any) -> None:
    policy = ScriptedPolicy({"reasoner": [searching("tower"), ANSWER], **served})
    context = make_context(policy, chain=True, tools=BOX)
    context.read(Source("towers.md", "Towers", READ, "file"))
    record = await rollout(workflow, QUESTION, context)
    assert record.status == "answered"
    last = of(policy, "reasoner")[-1]
    assert [message.role for message in last.messages] == ["user", "assistant"]
    assert "31 m high [s1]" in last.messages[-1].text


@BOTH
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_at_the_limit_of_searches_the_answer_is_forced(
    workflow: Any, served: dict[str, Any], dialect: str
) -> None:
    """Search-o1's code leaves questions without one that are unfinished at the turn limit."""
    limited = type(workflow)(searches=2)
    written = DIALECTS[dialect]
    calls = [_call(written, f"tower {at}") for at in range(2)]
    policy = ScriptedPolicy({"reasoner": [*calls, ANSWER], **served})
    context = make_context(policy, dialect=dialect, tools=BOX)
    context.read(Source("towers.md", "Towers", READ, "file"))
    record = await rollout(limited, QUESTION, context)
    assert (record.status, record.answer) == ("answered", "The tower is 31 m high [s1].")
    assert "all 2 calls are used" in of(policy, "reasoner")[-1].messages[-1].text
    policy.assert_done()


def _call(dialect: Any, query: str) -> Any:
    from hira.policies.dialects import Call
    from hira.testing import calling

    return dialect.write(Call("search", {"query": query}), search) or calling("search", query=query)


async def test_a_search_that_failed_is_not_kept_and_may_be_made_again() -> None:
    """Search-o1's code keeps failed searches for ever."""
    tried: list[str] = []

    @tool(name="search", pure=True)
    async def flaky(query: str) -> Observation:
        "Search."
        tried.append(query)
        if len(tried) == 1:
            raise ToolError("the service is down")
        return await search.run({"query": query})

    policy = ScriptedPolicy({"reasoner": [searching("tower"), searching("tower"), ANSWER], "reader": [CONDENSED]})
    record = await rollout(SearchO1(), QUESTION, make_context(policy, tools=Toolbox(search=flaky)))
    assert record.status == "answered"
    assert tried == ["tower", "tower"]
    assert "the service is down" in of(policy, "reasoner")[1].messages[-1].text
