"""What stands between the tokens of a call: the arguments as they are written and as a small model writes them."""

import json
from typing import Any

import pytest

from hira.core.tool import Observation, Tool
from hira.policies.dialects.tags import arguments, body, describe_parameters


def tool(*fields: str, required: list[str] | None = None, **kinds: str) -> Tool:
    async def run(_: dict[str, Any]) -> Observation:
        return Observation()

    properties = {name: {"type": kinds.get(name, "string"), "description": f"the {name}"} for name in fields}
    schema = {"type": "object", "properties": properties}
    return Tool("made", "", schema if required is None else schema | {"required": required}, run)


CODE, QUERY, PAIR = tool("code"), tool("query"), tool("query", "count", count="integer")


@pytest.mark.parametrize(
    ("made", "inner", "read"),
    [
        (CODE, "```python\nprint(1)\n```", {"code": "print(1)"}),
        (CODE, "python\nprint(1)", {"code": "print(1)"}),
        (CODE, "print(1)", {"code": "print(1)"}),
        (QUERY, "```python\nprint(1)\n```", {"query": "```python\nprint(1)\n```"}),
        (QUERY, "python\nprint(1)", {"query": "python\nprint(1)"}),
        (QUERY, "  tower height ", {"query": "tower height"}),
        (QUERY, '{"query": "tower"}', {"query": "tower"}),
        (QUERY, '{"other": "tower"}', {"query": '{"other": "tower"}'}),
        (QUERY, "{no json}", {"query": "{no json}"}),
        (QUERY, "query: tower", {"query": "query: tower"}),
        (PAIR, "Query: tower\ncount : 3", {"query": "tower", "count": 3}),
        (PAIR, '{"count": 3, "query": "a"}', {"query": "a", "count": 3}),
        (tool("query", "count", required=["query"]), "tower", {"query": "tower"}),
        (tool("count", required=[], count="integer"), "3", {"count": 3}),
        (tool("query", required=[]), " ", {}),
        (tool(), "", {}),
    ],
)
def test_arguments_are_read_in_each_form(made: Tool, inner: str, read: dict[str, Any]) -> None:
    assert arguments(inner, made) == read


@pytest.mark.parametrize(
    ("made", "inner", "what"),
    [
        (QUERY, "  ", "it is empty; write the query in it"),
        (PAIR, "tower", "write one line for each of query:, count:"),
        (tool(), "something", "write one line for each of "),
    ],
)
def test_what_cannot_be_read_says_what_to_write(made: Tool, inner: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        arguments(inner, made)


@pytest.mark.parametrize("text", ["plain", "{curly", "```fence", "python\nx", " spaced ", "", "two\nlines", "query: x"])
def test_a_body_is_read_back_as_it_was(text: str) -> None:
    for made, given in ((QUERY, {"query": text}), (CODE, {"code": text}), (PAIR, {"query": text, "count": 2})):
        assert arguments(body(given, made), made) == given


def test_a_single_plain_text_is_written_bare_and_anything_else_as_json() -> None:
    assert body({"query": "tower"}, QUERY) == " tower "
    for given, made in (({"query": " tower"}, QUERY), ({"query": ""}, QUERY), ({}, QUERY), ({"query": "a"}, PAIR)):
        assert json.loads(body(given, made)) == given
    assert describe_parameters(PAIR) == "\n- query: the query\n- count: the count"
    bare = Tool("bare", "", {"type": "object", "properties": {"x": {"type": "string"}}}, QUERY.run)
    assert describe_parameters(bare) == ""
