from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hira.core.policy import Completion, cut_at_stop
from hira.policies.dialects import JSON, Call
from hira.tools import Observation, Tool


async def _nothing(_: Any) -> Observation:
    return Observation()


def made(name: str, **fields: str) -> Tool:
    properties = {key: {"type": kind} for key, kind in fields.items()}
    return Tool(name, name, {"type": "object", "properties": properties, "required": list(fields)}, _nothing)


SEARCH, PYTHON = made("search", query="string"), made("python", code="string")
TOOLS = [SEARCH, PYTHON]
CALL = '{"name": "search", "arguments": {"query": "tower height"}}'


def calls(text: str, several: int = 1, **completion: Any) -> list[tuple[str, dict[str, Any]]]:
    parsed = JSON.parse(Completion(text, **completion), TOOLS, several)
    assert not parsed.error, parsed.error
    return [(call.name, dict(call.arguments)) for call in parsed.calls]


@pytest.mark.parametrize(
    ("text", "how"),
    [
        (f"I look.\n```\n{CALL}\n```\nThen I wait.", {}),
        (f"I look.\n```json\n{CALL}", {}),
        ("", {"reasoning": f"I look. {CALL}"}),
        (f"```json\n[{CALL}]\n```", {}),
    ],
)
def test_a_call_is_read_in_a_block_and_bare(text: str, how: dict[str, str]) -> None:
    assert calls(text, **how) == [("search", {"query": "tower height"})]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (f"So:\n```json\n{CALL}\n```\nand then", f"So:\n```json\n{CALL}\n```"),
        (f"So:\n```json\n{CALL}", f"So:\n```json\n{CALL}\n```"),
        (f"So: {CALL} and then", f"So: {CALL}"),
    ],
)
def test_the_conversation_keeps_the_call_as_it_was_written_and_closed(written: str, kept: str) -> None:
    parsed = JSON.parse(Completion(written), TOOLS)
    assert (parsed.text, parsed.message.text) == ("So:", kept)


def test_a_result_that_the_model_writes_itself_is_cut() -> None:
    forged = f"{CALL}\n<tool_response>31 m</tool_response>\n{CALL} so it is 31 m"
    parsed = JSON.parse(Completion(forged), TOOLS, 3)
    assert len(parsed.calls) == 1
    assert "31 m" not in parsed.message.text


@given(st.text(), st.sampled_from([1, 2]))
def test_what_is_written_is_read_back_whatever_it_is_and_past_every_stop(value: str, several: int) -> None:
    written = Completion("So: " + JSON.write(Call("python", {"code": value or "x"}), PYTHON) + "`and` more.")
    for turn in (written, cut_at_stop(written, JSON.stops(TOOLS, several))):
        (read,) = JSON.parse(turn, TOOLS, several).calls
        assert read.arguments == {"code": value or "x"}
