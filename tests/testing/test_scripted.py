"""A policy that says what its script says."""

import pytest

from hira.core.errors import RateLimited
from hira.core.messages import assistant, user
from hira.core.policy import Completion, Delta, Policy, Request
from hira.testing import ScriptedPolicy, ScriptError, calling


def request(text="hello", conversation="planner", **more):
    return Request((user(text),), conversation=conversation, **more)


async def test_replies_come_in_order():
    policy = ScriptedPolicy(["one", Completion("two")])
    assert [(await policy.complete(request())).text for _ in range(2)] == ["one", "two"]
    policy.assert_done()


async def test_each_role_has_its_own_script():
    policy = ScriptedPolicy({"planner": ["plan"], "code": ["first", "again"], "*": ["other"]})
    assert (await policy.complete(request(conversation="2/code"))).text == "first"
    assert (await policy.complete(request(conversation="planner"))).text == "plan"
    assert (await policy.complete(request(conversation="3/code.2"))).text == "again"
    assert (await policy.complete(request(conversation="3/search"))).text == "other"


async def test_one_conversation_can_have_a_script_of_its_own():
    policy = ScriptedPolicy({"code": ["any"], "2/code": ["the second"]})
    assert (await policy.complete(request(conversation="2/code"))).text == "the second"
    assert (await policy.complete(request(conversation="1/code"))).text == "any"


async def test_a_script_that_runs_out_names_the_turn_and_the_conversation():
    policy = ScriptedPolicy(["only one"])
    await policy.complete(request())
    with pytest.raises(ScriptError, match=r"turn 2 of conversation 'planner' ended with 'what now\?'"):
        await policy.complete(request("what now?"))


async def test_a_role_without_a_part_is_named():
    with pytest.raises(ScriptError, match="no part for 'code'"):
        await ScriptedPolicy({"planner": ["x"]}).complete(request(conversation="1/code"))


async def test_replies_left_over_are_reported():
    policy = ScriptedPolicy({"planner": ["a", "b"], "code": ["c"]})
    await policy.complete(request())
    with pytest.raises(ScriptError, match="1 for 'planner', 1 for 'code'; 1 requests were sent"):
        policy.assert_done()


async def test_an_exception_in_the_script_is_raised():
    with pytest.raises(RateLimited):
        await ScriptedPolicy([RateLimited("slow down")]).complete(request())


async def test_a_function_reads_the_request():
    policy = ScriptedPolicy(lambda asked: asked.messages[-1].text.upper())
    assert (await policy.complete(request("abc"))).text == "ABC"
    assert (await policy.complete(request("xyz"))).text == "XYZ"


async def test_text_is_cut_at_the_stop_string():
    completion = await ScriptedPolicy(["thought <end> invented"]).complete(request(stop=("<end>",)))
    assert (completion.text, completion.stop) == ("thought ", "<end>")


async def test_a_reply_can_call_a_tool_and_gets_an_id():
    completion = await ScriptedPolicy([calling("search", query="mars")]).complete(request())
    (call,) = completion.calls
    assert (call.name, call.arguments, completion.finish) == ("search", '{"query": "mars"}', "calls")
    assert call.id


async def test_usage_is_counted_so_that_budgets_can_be_tested():
    asked = Request((user("one two three"), assistant("four")), conversation="planner")
    usage = (await ScriptedPolicy(["five six"]).complete(asked)).usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (1, 4, 2)


async def test_pieces_are_handed_to_the_watcher():
    seen: list[Delta] = []
    policy = ScriptedPolicy([Completion("the answer", reasoning="let me see")])
    await policy.complete(request(), seen.append)
    assert "".join(delta.text for delta in seen if delta.reasoning) == "let me see"
    assert "".join(delta.text for delta in seen if not delta.reasoning) == "the answer"


async def test_requests_are_kept():
    policy = ScriptedPolicy(["x"])
    await policy.complete(request("kept"))
    assert policy.requests[0].messages[0].text == "kept"
    assert isinstance(policy, Policy)


def test_a_single_text_in_place_of_a_list_is_refused():
    with pytest.raises(TypeError, match="write a list"):
        ScriptedPolicy("oops")
