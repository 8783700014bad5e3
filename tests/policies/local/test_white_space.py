"""White space around a reply is part of what the model wrote: a conversation of ids goes on from it."""

import pytest
from later import needs
from test_conversation import Talk

from hira.agents.loop import Loop
from hira.agents.run_context import RoleConfig, RunContext
from hira.core.messages import user
from hira.policies.dialects import DIALECTS
from hira.tools import tool
from hira.trainers.rows import rows_of

pytestmark = needs("torch", "transformers")
CALLS = {
    "native": '\n\n Twice.\n<tool_call>\n{"name": "double", "arguments": {"of": "2"}}\n</tool_call>',
    "tags": "\n\n Twice. <|begin_double_call|> 2 <|end_double_call|>",
    "xml": "\n\n Twice.\n<use_mcp_tool>\n<server_name>tools</server_name>\n<tool_name>double</tool_name>\n"
    '<arguments>\n{"of": "2"}\n</arguments>\n</use_mcp_tool>',
    "json": '\n\n Twice.\n```json\n{"name": "double", "arguments": {"of": "2"}}\n```\n',
}


@tool(pure=True)
def double(of: str) -> str:
    """Twice as many."""
    return str(2 * int(of))


@pytest.mark.parametrize("dialect", CALLS)
async def test_a_turn_that_begins_with_white_space_stays_one_row(dialect: str) -> None:
    talk = Talk(CALLS[dialect], CALLS[dialect].replace("2", "3"), "It is 6.")
    context = RunContext({"*": RoleConfig(talk.policy, dialect=DIALECTS[dialect])})
    conversation = context.conversation("planner")
    conversation.say(user("What is twice two, and twice three?"))
    step = await Loop(conversation, [double], final=True).run()
    assert step.text == "It is 6."
    assert talk.counts == {"turns": 3, "rows": 1}
    assert len(rows_of(context.rollout).rows) == 1
