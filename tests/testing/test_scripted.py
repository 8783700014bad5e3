"""A policy that says what its script says."""

import pytest

from hira.core.messages import user
from hira.core.policy import Request
from hira.testing import ScriptedPolicy, ScriptError


def request(text="hello", conversation="planner", **more):
    return Request((user(text),), conversation=conversation, **more)


async def test_each_role_has_its_own_script():
    policy = ScriptedPolicy({"planner": ["plan"], "code": ["first", "again"], "*": ["other"]})
    assert (await policy.complete(request(conversation="2/code"))).text == "first"
    assert (await policy.complete(request(conversation="planner"))).text == "plan"
    assert (await policy.complete(request(conversation="3/code.2"))).text == "again"
    assert (await policy.complete(request(conversation="3/search"))).text == "other"


async def test_a_script_that_runs_out_names_the_turn_and_the_conversation():
    policy = ScriptedPolicy(["only one"])
    await policy.complete(request())
    with pytest.raises(ScriptError, match=r"turn 2 of conversation 'planner' ended with 'what now\?'"):
        await policy.complete(request("what now?"))


async def test_replies_left_over_are_reported():
    policy = ScriptedPolicy({"planner": ["a", "b"], "code": ["c"]})
    await policy.complete(request())
    with pytest.raises(ScriptError, match="1 for 'planner', 1 for 'code'; 1 requests were sent"):
        policy.assert_done()
