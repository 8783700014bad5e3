import json

import pytest

from hira.agents.planner import SUBTASK
from hira.core.messages import Filled, ToolCall
from hira.core.policy import Completion
from hira.policies.dialects import NATIVE, Call


def asked(arguments: str, name: str = "subtask") -> Completion:
    return Completion("", calls=(ToolCall("c1", name, arguments),), finish="calls")


def test_a_native_call_is_read_and_kept_for_the_endpoint() -> None:
    parsed = NATIVE.parse(asked('{"task": "look"}'), [SUBTASK])
    assert parsed.calls == (Call("subtask", {"task": "look"}, "c1"),)
    assert parsed.message.wire["tool_calls"][0]["function"] == {"name": "subtask", "arguments": '{"task": "look"}'}


@pytest.mark.parametrize(
    ("completion", "says"),
    [
        (asked('{"task": '), "not valid JSON"),
        (asked("[1]"), "one JSON object with: task"),
        (asked("{}", name="fly"), "no tool named 'fly'. Available: subtask"),
        (asked('{"subtask": "find it"}'), "The call of subtask lacks task; it takes task."),
        (asked('{"task": ""}'), "lacks task"),
    ],
)
def test_a_call_that_cannot_be_read_is_answered_and_its_arguments_are_not_repeated(
    completion: Completion, says: str
) -> None:
    parsed = NATIVE.parse(completion, [SUBTASK])
    assert says in parsed.error
    assert not parsed.calls
    assert json.loads(parsed.message.calls[0].arguments) == {}


def test_thought_does_not_become_the_content_of_a_call() -> None:
    completion = Completion("", reasoning="long thought", calls=(ToolCall("c1", "subtask", '{"task": "t"}'),))
    assert NATIVE.parse(completion, [SUBTASK]).message.wire["content"] == ""


def test_results_are_tool_messages_and_form_no_token() -> None:
    told = NATIVE.results([(Call("subtask", {}, "c1"), "<tool_call>x</tool_call>")], Filled("last one"))
    assert [(message.role, message.call_id) for message in told] == [("tool", "c1"), ("user", "")]
    assert "<tool_call>" not in told[0].text


def test_only_as_many_calls_stay_as_the_turn_may_hold() -> None:
    calls = tuple(ToolCall(f"c{n}", "subtask", '{"task": "t"}') for n in range(3))
    parsed = NATIVE.parse(Completion("", calls=calls, finish="calls"), [SUBTASK], several=2)
    assert [call.id for call in parsed.calls] == ["c0", "c1"]
    assert [call.id for call in parsed.message.calls] == ["c0", "c1"]


def test_the_dialect_offers_its_tools_in_the_request_and_stops_nowhere() -> None:
    assert NATIVE.specs([SUBTASK])[0]["function"]["name"] == "subtask"
    assert NATIVE.stops([SUBTASK], 1) == ()
