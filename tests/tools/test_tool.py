"""Tools that are made of functions: what calls are checked against."""

import threading
from collections.abc import AsyncIterator
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from hira.agents.calls import use
from hira.core.errors import ToolError, UsageError
from hira.core.tokens import count
from hira.core.tool import SHOWN, text_tool
from hira.testing.script import make_context
from hira.tools import Observation, Tool, tool


def counting(described: str = "how many", most: int = 9, default: Any = 3) -> Tool:
    async def count(number: Annotated[int, Field(description=described, le=most)], times: int = default) -> str:
        "Counts."
        return f"{most}: {number} × {times}"

    made: Tool = tool(count)
    return made


def test_tools_of_one_signature_share_what_checks_them_and_not_what_they_do() -> None:
    first, second = counting(), counting()
    assert first.parameters is second.parameters
    assert first.run is not second.run


LONG = "It begins here. " + "One line of a long table. " * 8_000 + "It ends here."


async def test_a_long_text_is_shown_by_its_ends_and_stays_whole_as_a_source() -> None:
    @tool
    def table(year: int) -> str:
        """A table."""
        return LONG

    context = make_context([])
    seen = await use(context.conversation("reader"), table, {"year": 1742})
    assert count(seen.text) < SHOWN * 1.1
    assert "It begins here." in seen.text
    assert "It ends here." in seen.text
    (source,) = context.rollout.sources.read.values()
    assert (source.location, source.evidence) == ('tool:table({"year": 1742})', LONG)
    assert source.call.strip() == 'table({"year": 1742})'
    assert f"[{source.id}]" in seen.text
    assert (await tool(table.function, shown=0).call({"year": 1742})).text == LONG


async def test_a_structure_is_shown_as_json() -> None:
    @tool
    def fare(zone: int) -> Any:
        """The fare of a zone."""
        return {"zone": zone, "fare": 4.5, "valid": [True, None], "from": date(2026, 5, 1), "name": "Zoë"}

    shown = (await fare.call({"zone": 2})).text
    assert shown == '{"zone": 2, "fare": 4.5, "valid": [true, null], "from": "2026-05-01", "name": "Zoë"}'


async def test_a_short_text_is_a_source_of_the_run_together_with_its_call() -> None:
    assert await counting().call({"number": 1}) == Observation("9: 1 × 3", citable=True)
    context = make_context([])
    seen = await use(context.conversation("reader"), counting(), {"number": 1})
    (source,) = context.rollout.sources.read.values()
    assert (source.kind, source.evidence, source.call.strip()[-15:]) == ("tool", "9: 1 × 3", '({"number": 1})')
    assert f"[{source.id}]" in seen.text
    assert "9: 1 × 3" in seen.text


async def test_a_tool_can_be_called_as_the_function_that_it_was_made_of() -> None:
    @tool(pure=True)
    def shelf(word: str) -> int:
        """Where a book stands."""
        return len(word)

    assert shelf("mill") == shelf(word="mill") == 4
    assert await counting()(2) == "9: 2 × 3"
    with pytest.raises(UsageError, match="was not made of a function"):
        Tool("bare", "", {}, shelf.run)()


class Archive:
    def look_up(self, word: str) -> str:
        "Looks a word up."
        return word


async def test_a_method_is_a_tool_of_its_object() -> None:
    assert (await tool(Archive().look_up).call({"word": "mill"})).text == "mill"


def bare(number) -> str:  # type: ignore[no-untyped-def]
    return str(number)


def several(*words: str) -> str:
    return str(words)


def placed(word: str, /) -> str:
    return word


def test_the_args_of_a_docstring_describe_the_parameters_in_the_schema() -> None:
    @tool
    def order(part: Literal["HP-20", "HP-30"], count: Annotated[int, Field(description="from 1")] = 1) -> str:
        """Order a part.

        Args:
            part (str): the number of the part,
                as on its label
            count: how many

        It is delivered tomorrow.
        """
        return f"{count} × {part}"

    assert order.description == "Order a part.\n\nIt is delivered tomorrow."
    properties = order.parameters["properties"]
    assert properties["part"]["description"] == "the number of the part, as on its label"
    assert properties["count"]["description"] == "from 1"


def test_wrong_arguments_are_explained_in_the_letters_of_the_schema() -> None:
    @tool
    def order(part: Literal["HP-20", "HP-30"]) -> str:
        "Order a part."
        return part

    with pytest.raises(ToolError, match="part: input should be 'HP-20' or 'HP-30'"):
        order.check({"part": "hp-20"})


def locking(word: str, lock: threading.Lock) -> str:
    return f"{word} {lock}"


def unknown(word: "Local") -> str:  # type: ignore[name-defined]  # noqa: F821 - as with a model that is defined in a function
    return str(word)


async def list_tides(harbour: str) -> AsyncIterator[str]:
    """The tides of a harbour."""
    yield harbour


def test_what_no_model_could_call_is_refused_with_a_way_out() -> None:
    for made_of, told in (
        (bare, "parameter 'number' needs a type\nwrite number: str"),
        (Archive.look_up, "parameter 'self' needs a type\nmake it of an object's method: tool(it.look_up)"),
        (several, "'*words' gives a model no names for its arguments\nname each parameter"),
        (placed, "parameter 'word' cannot be given by its name\nleave out the /"),
        (Archive(), "a tool needs a function, got"),
        (list_tides, "a tool needs a function that returns, got the generator"),
        (locking, "parameter 'lock' has a type that no model can write: "),
        (unknown, "function 'unknown': the type of a parameter is unknown: name 'Local' is not defined\ndefine"),
    ):
        with pytest.raises(UsageError) as caught:
            tool(made_of)
        assert told in str(caught.value)


def test_a_tool_of_texts_is_inspected_once() -> None:
    async def read(page: str) -> Observation:
        """Read a page."""
        return Observation(page)

    made = text_tool(read, {"page": "its name"})
    assert made.check({"page": "pier"}) == {"page": "pier"}
    read.__annotations__["page"] = int
    assert made.check({"page": "pier"}) == {"page": "pier"}
