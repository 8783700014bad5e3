"""The offline policy calls in whatever dialect the instructions name, and looks at nothing else to know it."""

import pytest

from hira.agents.loop import Loop
from hira.agents.planner import SUBTASK
from hira.dialects import DIALECTS
from hira.messages import Filled, Message, system, user
from hira.policies.offline import OfflinePolicy
from hira.policies.offline.conversation import Act, read, write
from hira.policy import Completion, Request
from hira.testing.team import team_of
from hira.tools import Observation, Tool, tool


@tool(pure=True)
def lookup(term: str) -> str:
    "What a term means."
    return f"{term} is a harbour."


@tool
async def paint(colour: str, size: int = 1) -> Observation:
    "Paint something."
    return Observation("done")


TOOLS: list[Tool] = [lookup, paint]


def asked(name: str, *, inside: bool = False, role: str = "user") -> Request:
    """A request whose prompt, or a paragraph of it, or the system's prompt, tells how to call."""
    told: Filled = DIALECTS[name].instructions(TOOLS)
    if inside:
        told = Filled(f"How to call:\n{told}", "paragraph", {"tools": told})
    prompt = Filled(f"Do it.\n{told}", "anything", {"task": "Husum?", "tools": told})
    messages: tuple[Message, ...] = (user(prompt),)
    if role == "system":
        messages = (system(prompt), user(Filled("Husum?", "anything", {"task": "Husum?"})))
    return Request(messages, tools=DIALECTS[name].specs(TOOLS))


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("where", [{}, {"inside": True}, {"role": "system"}], ids=["prompt", "paragraph", "system"])
def test_what_it_writes_is_read_as_the_call_that_was_meant(name: str, where: dict[str, str]) -> None:
    act = Act("I call.", (("lookup", {"anything": 'a "quoted" <b> {word}'}), ("paint", {"colour": "blue"})))
    request = asked(name, **where)  # type: ignore[arg-type]
    assert read(request).tools == {"lookup", "paint"}
    text, calls = write(act, read(request))
    parsed = DIALECTS[name].parse(Completion(text, calls=calls), TOOLS, 2)
    assert [(call.name, dict(call.arguments)) for call in parsed.calls] == [
        ("lookup", {"term": 'a "quoted" <b> {word}'}),
        ("paint", {"colour": "blue"}),
    ]
    assert parsed.text == "I call."


@pytest.mark.parametrize("name", DIALECTS)
def test_a_tool_that_the_request_does_not_show_is_told_of_and_not_called(name: str) -> None:
    text, calls = write(Act("", (("subtask", {"task": "x"}),)), read(asked(name)))
    assert (text, calls) == ("This request shows no tool named subtask.", ())


@pytest.mark.parametrize("name", DIALECTS)
async def test_it_goes_through_a_loop_in_every_dialect(name: str) -> None:
    conversation = team_of(OfflinePolicy(), dialect=name).conversation("planner")
    told = conversation.part.dialect.instructions([SUBTASK])
    values = {"question": "What is Husum?", "call": told, "limit": 3, "several": "one"}
    conversation.say(user(Filled(f"What is Husum?\n{told}", "planner", values)))
    step = await Loop(conversation, [SUBTASK], final=True).think()
    assert [call.arguments["task"] for call in step.calls] == ["What is Husum?"]
