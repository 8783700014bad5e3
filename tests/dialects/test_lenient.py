"""What a model repeats without end is at fault like what it misspells: nested objects, digits, open thought."""

import time
from collections.abc import Callable

import pytest
from pydantic import BaseModel

from hira.core.errors import DialectError
from hira.core.messages import ToolCall
from hira.core.policy import Completion
from hira.policies.dialects import answer, json, native, tags, xml
from hira.policies.dialects.answer import strip_thought
from hira.policies.dialects.dialect import Dialect
from hira.tools import Observation, tool

DEEP, LONG = '{"query": ' * 100_000, '{"query": ' + "9" * 5_000 + "}"


@tool
async def search(query: str) -> Observation:
    """Look something up."""
    return Observation(query)


class Asked(BaseModel):
    query: str


def native_call(arguments: str) -> Completion:
    return Completion("", calls=(ToolCall("1", "search", arguments),))


def xml_call(arguments: str) -> Completion:
    named = "<server_name>hira</server_name><tool_name>search</tool_name>"
    return Completion(f"<use_mcp_tool>{named}<arguments>{arguments}</arguments></use_mcp_tool>")


def json_call(arguments: str) -> Completion:
    return Completion(f'{{"name": "search", "arguments": {arguments}}}')


@pytest.mark.parametrize(("arguments", "wrong"), [(DEEP, "nested too deeply"), (LONG, "number is too long")])
@pytest.mark.parametrize(
    ("dialect", "call"),
    [(native.DIALECT, native_call), (xml.DIALECT, xml_call), (json.DIALECT, json_call)],
    ids=["native", "xml", "json"],
)
def test_arguments_beyond_reading_are_told_to_the_model(
    dialect: Dialect, call: Callable[[str], Completion], arguments: str, wrong: str
) -> None:
    parsed = dialect.parse(call(arguments), [search])
    assert not parsed.calls
    assert wrong in parsed.error


@pytest.mark.parametrize("body", [DEEP, LONG])
def test_a_body_between_tags_is_a_text_where_it_is_no_record(body: str) -> None:
    parsed = tags.DIALECT.parse(Completion(f"<|begin_search_query|>{body}<|end_search_query|>"), [search])
    assert parsed.calls[0].arguments == {"query": body.strip()}


@pytest.mark.parametrize("reply", [DEEP, f"```json\n{LONG}\n```"])
def test_a_record_beyond_reading_is_asked_for_again(reply: str) -> None:
    with pytest.raises(DialectError):
        answer.read_record(Completion(reply), Asked)


def test_thought_that_is_opened_again_and_again_is_read_in_time_that_grows_with_its_length() -> None:
    def taken(times: int) -> float:
        began = time.process_time()
        assert strip_thought(Completion("<think>a</think>so" + "<think>" * times)).startswith("so")
        return time.process_time() - began

    short = min(taken(2_000) for _ in range(5))
    assert min(taken(20_000) for _ in range(3)) < 40 * max(short, 1e-4)


@pytest.mark.parametrize(
    ("dialect", "head", "mark", "tail"),
    [
        (tags.DIALECT, "<|begin_search_query", " " * 5, ""),
        (xml.DIALECT, "<use_mcp_tool>", "<arguments>", ""),
        (xml.DIALECT, "<use_mcp_tool>", "</arguments>", "</use_mcp_tool>"),
    ],
)
def test_marks_that_are_repeated_are_read_in_time_that_grows_with_their_number(
    dialect: Dialect, head: str, mark: str, tail: str
) -> None:
    def taken(times: int) -> float:
        began = time.process_time()
        assert not dialect.parse(Completion(head + times * mark + tail), [search]).calls
        return time.process_time() - began

    short = min(taken(1_000) for _ in range(3))
    assert min(taken(8_000) for _ in range(2)) < 32 * max(short, 1e-2)


def test_arguments_may_hold_the_tags_of_arguments_and_of_a_name() -> None:
    inner = '{"query": "<tool_name>x</tool_name> </arguments>"}'
    (call,) = xml.DIALECT.parse(xml_call(inner), [search]).calls
    assert (call.name, call.arguments) == ("search", {"query": "<tool_name>x</tool_name> </arguments>"})
