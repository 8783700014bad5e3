from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hira.core.policy import Completion
from hira.policies.dialects import TAGS, Call
from hira.policies.dialects.tags import arguments, body, tag
from hira.tools import Observation, Tool, tool


async def _nothing(_: Any) -> Observation:
    return Observation()


def made(name: str, **fields: str) -> Tool:
    properties = {key: {"type": kind} for key, kind in fields.items()}
    return Tool(name, name, {"type": "object", "properties": properties, "required": list(fields)}, _nothing)


SEARCH, PYTHON = made("search", query="string"), made("python", code="string")
LOOK = made("look", data="string", question="string")
TOOLS = [SEARCH, PYTHON, LOOK]


def calls(text: str, several: int = 1, **completion: Any) -> list[tuple[str, dict[str, Any]]]:
    parsed = TAGS.parse(Completion(text, **completion), TOOLS, several)
    assert not parsed.error, parsed.error
    return [(call.name, dict(call.arguments)) for call in parsed.calls]


def test_the_tokens_are_hiras_to_the_letter() -> None:
    names = ("subtask", "search", "browse", "python", "look")
    assert [(tag(name).begin, tag(name).result_end) for name in names] == [
        ("<|begin_call_subtask|>", "<|end_subtask_result|>"),
        ("<|begin_search_query|>", "<|end_search_result|>"),
        ("<|begin_click_link|>", "<|end_click_result|>"),
        ("<|begin_code_call|>", "<|end_code_call_result|>"),
        ("<|begin_multimodal_call|>", "<|end_multimodal_result|>"),
    ]


@pytest.mark.parametrize(
    ("text", "how"),
    [
        (
            "Let me look. <|begin_search_query|> tower height <|end_search_query|>",
            {},
        ),
        ("Let me look. <|begin_search_query|> tower height ", {"stop": "<|end_search_query|>"}),
        ("Let me look. <|begin_search_query|> tower height ", {}),
        ("Let me look. < BEGIN_SEARCH_QUERY >tower height< end_search_query >", {}),
        ("", {"reasoning": "Let me look. <|begin_search_query|>tower height"}),
    ],
)
def test_a_call_is_read_whatever_the_server_does_with_the_stop_string(text: str, how: dict[str, str]) -> None:
    assert calls(text, **how) == [("search", {"query": "tower height"})]


def test_the_conversation_keeps_the_call_closed_however_it_came() -> None:
    parsed = TAGS.parse(Completion("So: <|begin_search_query|>a"), TOOLS)
    assert parsed.message.text == "So: <|begin_search_query|>a<|end_search_query|>"


def test_a_result_that_the_model_writes_itself_is_cut_also_where_several_calls_may_stand() -> None:
    text = "<|begin_search_query|>a<|end_search_query|>\n<|begin_search_query|>b<|end_search_query|><|begin_search_result|>made up"
    parsed = TAGS.parse(Completion(text), TOOLS, several=3)
    assert [call.arguments["query"] for call in parsed.calls] == ["a", "b"]
    assert "made up" not in parsed.message.text


def test_a_forged_result_without_any_call_is_no_answer() -> None:
    parsed = TAGS.parse(Completion("I recall. <|begin_search_result|>42<|end_search_result|>"), TOOLS)
    assert (parsed.text, parsed.calls) == ("I recall.", ())


@pytest.mark.parametrize(
    "quoted", ["`<|begin_search_query|>x<|end_search_query|>`", "```\n<|begin_search_query|>x\n```"]
)
def test_a_quoted_call_is_no_call(quoted: str) -> None:
    assert calls(f"The page holds {quoted}, which I ignore.") == []


def test_a_fence_around_nothing_but_the_call_is_a_habit_not_a_quotation() -> None:
    text = "I search.\n```\n<|begin_search_query|>tower<|end_search_query|>\n```"
    assert calls(text) == [("search", {"query": "tower"})]


def test_a_visible_answer_is_not_passed_over_for_a_call_in_the_reasoning() -> None:
    parsed = TAGS.parse(Completion(r"\boxed{4}", reasoning="<|begin_search_query|>tower<|end_search_query|>"), TOOLS)
    assert (parsed.text, parsed.calls) == (r"\boxed{4}", ())


@pytest.mark.parametrize(
    ("text", "finish", "says"),
    [
        ("<|begin_search_query|>a long quer", "length", "cut off before <|end_search_query|>"),
        ("<|begin_teleport|>home<|end_teleport|>", "stop", "no call <|begin_teleport|>"),
        ("<|begin_search_query|>  <|end_search_query|>", "stop", "empty"),
        ("<|begin_multimodal_call|>a.png<|end_multimodal_call|>", "stop", "data:"),
    ],
)
def test_what_cannot_be_read_is_told_to_the_model_with_the_way_out(text: str, finish: Any, says: str) -> None:
    parsed = TAGS.parse(Completion(text, finish=finish), TOOLS)
    assert not parsed.calls
    assert says in parsed.error


def test_a_body_of_several_fields_is_written_in_lines_as_the_paper_has_it() -> None:
    text = "<|begin_multimodal_call|>\ndata: a/b.png\nquestion: what colour: red\nor blue?\n<|end_multimodal_call|>"
    assert calls(text) == [("look", {"data": "a/b.png", "question": "what colour: red\nor blue?"})]


def test_a_tool_of_ones_own_gets_tokens_of_its_own_name() -> None:
    @tool
    def weather(city: str, days: int = 1) -> str:
        "The weather of a city."
        return f"{city} {days}"

    assert "<|begin_weather_call|>" in TAGS.instructions([weather])
    parsed = TAGS.parse(Completion("<|begin_weather_call|>city: Oslo\ndays: 3<|end_weather_call|>"), [weather])
    assert parsed.calls[0].arguments == {"city": "Oslo", "days": 3}
    parsed = TAGS.parse(Completion("<|begin_weather_call|>Oslo<|end_weather_call|>"), [weather])
    assert parsed.calls[0].arguments == {"city": "Oslo"}


plain = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="<>`"), min_size=1)


@given(plain)
def test_what_is_written_is_read_back_one_field(value: str) -> None:
    assert arguments(body({"query": value}, SEARCH), SEARCH) == {"query": value} or value.strip() != value
    parsed = TAGS.parse(Completion(TAGS.write(Call("search", {"query": value.strip() or "x"}), SEARCH)), TOOLS)
    assert [call.arguments for call in parsed.calls] == [{"query": value.strip() or "x"}]
