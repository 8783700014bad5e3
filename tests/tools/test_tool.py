"""Tools that are made of functions: what calls are checked against."""

from typing import Annotated, Any

import pytest
from pydantic import BeforeValidator, Field

from hira.errors import ToolError
from hira.tools import Tool, tool


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


@pytest.mark.parametrize("other", [{"described": "how often"}, {"most": 10}, {"default": 4}])
def test_tools_that_differ_in_a_word_a_bound_or_a_default_share_nothing(other: dict[str, Any]) -> None:
    assert counting().parameters is not counting(**other).parameters
    assert counting().parameters != counting(**other).parameters


def test_one_and_true_are_two_defaults() -> None:
    first, second = (counting(default=default).parameters["properties"]["times"] for default in (1, True))
    assert (first["default"] is True, second["default"] is True) == (False, True)


async def test_each_tool_keeps_its_own_bound() -> None:
    first, second = counting(most=9), counting(most=10)
    assert (await second.call({"number": 10})).text == "10: 10 × 3"
    with pytest.raises(ToolError, match="less than or equal to 9"):
        await first.call({"number": 10})


async def test_a_default_without_a_hash_is_taken_as_it_is() -> None:
    made = counting(default=[1])
    assert made.parameters["properties"]["times"]["default"] == [1]
    assert (await made.call({"number": 1})).text == "9: 1 × [1]"


async def test_each_tool_keeps_its_own_validator() -> None:
    def doubling(factor: int) -> Tool:
        async def double(number: Annotated[int, BeforeValidator(lambda one: int(one) * factor)]) -> str:
            "Doubles."
            return str(number)

        made: Tool = tool(double)
        return made

    assert (await doubling(2).call({"number": "4"})).text == "8"
    assert (await doubling(3).call({"number": "4"})).text == "12"


def test_a_parameter_without_a_type_is_refused() -> None:
    def bare(number) -> str:  # type: ignore[no-untyped-def]
        return str(number)

    with pytest.raises(TypeError, match="needs a type"):
        tool(bare)
