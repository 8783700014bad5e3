"""What a program hands to its tools (`deps`), and what it tells the roles that plan and answer (`instructions`)."""

from typing import Any

import pytest

from hira import Context, Hira, tool
from hira.agents.run_context import RunContext
from hira.core.errors import ToolError, UsageError
from hira.runtime.settings import Settings
from hira.testing import ScriptedPolicy, calling


@tool
async def count_ships(ctx: Context[dict[str, int]], harbour: str) -> str:
    """How many ships lie in a harbour."""
    return f"{ctx.deps[harbour]} ships, asked in {ctx.question!r}"


def asking(script: Any, **more: Any) -> tuple[Hira, ScriptedPolicy]:
    policy = ScriptedPolicy(script)
    settings = Settings(workflow="react", verify="lexical", journal=None)
    return Hira(settings=settings, policies={"*": policy}, **more), policy


async def test_a_tool_is_handed_the_deps_of_its_run_and_the_model_never_sees_them() -> None:
    script = [calling("count_ships", harbour="Husum"), r"\boxed{Two ships lie there.}"]
    hira, policy = asking(script, tools=[count_ships], deps={"Husum": 2})
    async with hira:
        await hira.ask("How many ships are in Husum?")
    first, second = policy.requests
    assert "2 ships, asked in 'How many ships are in Husum?'" in second.messages[-1].text
    (spec,) = [one for one in first.tools if one["function"]["name"] == "count_ships"]
    assert list(spec["function"]["parameters"]["properties"]) == ["harbour"]


async def test_a_workflow_of_ones_own_gets_the_deps_of_the_program() -> None:
    class Count:
        name = "count"

        async def run(self, question: str, context: RunContext) -> str:
            return f"{context.deps[question]} ships"

    async with Hira("offline", workflow=Count(), deps={"Husum": 2}) as hira:
        assert (await hira.ask("Husum")).text == "2 ships"


async def test_a_tool_with_a_context_says_that_it_needs_a_run() -> None:
    with pytest.raises(ToolError, match="only within a run"):
        await count_ships.call({"harbour": "Husum"})
    assert await count_ships(Context({"Husum": 3}), "Husum") == "3 ships, asked in ''"


async def test_a_tool_that_needs_deps_is_refused_at_the_opening_of_a_program_that_hands_none_over() -> None:
    @tool
    def note(ctx: Context[list[str] | None], word: str) -> str:
        """Note a word."""
        return word

    hira, _ = asking([], tools=[note])
    async with hira:
        pass  # its deps may be None
    hira, _ = asking([], tools=[note, count_ships])
    with pytest.raises(UsageError, match=r"tool 'count_ships' needs deps of the type dict"):
        await hira.open_session()


async def test_runs_side_by_side_each_have_their_own_context() -> None:
    seen: list[str] = []

    @tool
    def remember(ctx: Context, word: str) -> str:
        """Remember a word."""
        seen.append(f"{ctx.question} {word} {bool(ctx.run_id)}")
        return "ok"

    script = {"reasoner": [calling("remember", word="a"), calling("remember", word="b"), r"\boxed{x}", r"\boxed{y}"]}
    hira, _ = asking(script, tools=[remember])
    async with hira:
        async for _ in hira.batch(["One?", "Two?"], concurrency=2):
            pass
    assert sorted(seen) == ["One? a True", "Two? b True"]


async def test_roles_that_plan_and_answer_are_told_the_instructions_once() -> None:
    script = {
        "planner": [calling("subtask", task="How high is it?"), r"\boxed{31 metres}"],
        "coordinator": ['{"reason": "", "expert": "reader"}'] * 3,
        "*": [r"\boxed{31 metres}"] * 9,
    }
    policy = ScriptedPolicy(script)
    settings = Settings(verify="lexical", journal=None)
    given = {"tools": [count_ships], "deps": {}, "instructions": "Use metres."}
    async with Hira(settings=settings, policies={"*": policy}, **given) as hira:
        await hira.ask("How high?")
    told = {
        request.conversation: [one.text.count("Use metres.") for one in request.messages] for request in policy.requests
    }
    assert sum(told["planner"]) == 1
    assert all(sum(counts) == 0 for name, counts in told.items() if name.endswith("coordinator"))
    assert sum(sum(counts) for name, counts in told.items() if "/" in name and "coordinator" not in name) >= 1
