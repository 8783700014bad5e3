"""A tool whose ground gave way: the model reads it, and the person is told, once, even one who wants no progress."""

from hira.agents.loop import use
from hira.core.errors import ToolDown, ToolError
from hira.core.events import Event, Notice
from hira.testing import make_context
from hira.tools import tool


@tool
def weigh(thing: str) -> str:
    "What a thing weighs."
    if thing == "nothing":
        raise ToolError("nothing cannot be weighed")
    raise ToolDown("the scales cannot be started", fix="Buy new ones.")


async def test_a_tool_that_is_down_is_told_once_to_everybody() -> None:
    told: list[Event] = []
    context = make_context([])
    context.events.readers.append(told.append)
    seen = [
        await use(context.conversation("worker"), weigh, {"thing": thing}) for thing in ("apple", "pear", "nothing")
    ]
    assert all(not one.ok for one in seen)
    assert "scales cannot be started" in seen[0].text
    notices = [(one.text, one.important) for one in told if isinstance(one, Notice)]
    assert notices == [("weigh is down: the scales cannot be started; Buy new ones", True)]
