"""What the planner is told, and what becomes of what it hands out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hira.agents.experts import EXPERTS
from hira.agents.planner import Planner
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Finding, Rollout, Subtask
from hira.core.events import SubtaskIssued
from hira.core.policy import Completion, Request
from hira.testing import ScriptedPolicy, calling
from hira.testing.script import make_context
from hira.tools import Observation, Tool, Toolbox


def named(name: str, description: str) -> Tool:
    async def run(_: Any) -> Observation:
        return Observation("nothing")

    return Tool(name, description, {"type": "object", "properties": {"query": {"type": "string"}}}, run)


SEARCH = named("search", "Search the local documents. Returns the passages that fit the query best.")


@dataclass
class Desk:
    """Does the subtasks that are handed out."""

    context: RunContext
    ok: bool = True
    given: list[Subtask] = field(default_factory=list)

    async def __call__(self, subtasks: Sequence[Subtask]) -> list[Finding]:
        self.given += subtasks
        findings = [Finding(subtask, "desk", "Looked.", f"{subtask.id} m", ok=self.ok) for subtask in subtasks]
        self.context.rollout.findings += findings
        return findings


async def told(question: str = "How high is it?", context: RunContext | None = None, **planner: Any) -> str:
    """What the planner is sent first."""
    policy = ScriptedPolicy(["done"])
    context = context or make_context(policy, tools=Toolbox(search=SEARCH))
    await Planner(context, **planner).begin(question)
    return context.rollout.trajectories["planner"].turns[0].request.messages[0].text


async def test_the_planner_is_told_the_day_on_which_the_run_began() -> None:
    began = datetime(2024, 2, 29, 12, tzinfo=UTC).timestamp()
    text = await told(context=make_context(["done"], rollout=Rollout("r", "", "hira", began=began)))
    assert "Today is 2024-02-29." in text


async def test_the_planner_is_told_who_works_for_it_where_they_search_and_what_the_user_brought() -> None:
    tools = Toolbox(search=SEARCH, extra=(named("weather", "Tells the weather. In degrees."),))
    text = await told(context=make_context(["done"], tools=tools), experts=EXPERTS)
    assert "one explores many pages" in text
    assert "search (Search the local documents), weather (Tells the weather)." in text


async def test_without_descriptions_only_the_abilities_are_told() -> None:
    text = await told(experts=EXPERTS, describe=False)
    assert "The experts' abilities: search, code, multimodal, reading." in text
    assert "deep_search" not in text


@pytest.mark.parametrize("several", [1, 2, 3])
async def test_the_planner_is_told_how_many_subtasks_a_turn_may_hold(several: int) -> None:
    assert (f"up to {several} subtasks at once" in await told(several=several)) is (several > 1)


async def test_attached_files_stand_in_a_paragraph_of_their_own() -> None:
    text = await told(context=make_context(["done"], files=(Path("data/plan.csv"),)))
    assert text.endswith("How high is it?\n\nAttached files:\n- data/plan.csv")


def turn(*tasks: str) -> Completion:
    calls = tuple(calling("subtask", task=task).calls[0] for task in tasks)
    return Completion("", calls=calls, finish="calls")


async def test_a_subtask_that_says_nothing_is_answered_at_once_and_given_to_nobody() -> None:
    policy = ScriptedPolicy([turn(" "), turn("Find it."), r"\boxed{found}"])
    context = make_context(policy, dialect="native")
    heard: list[Any] = []
    context.events.readers.append(heard.append)
    planner, desk = Planner(context), Desk(context)
    await planner.hand_out(await planner.begin("How high is it?"), desk)
    assert [subtask.text for subtask in desk.given] == ["Find it."]
    assert [one.text for one in heard if isinstance(one, SubtaskIssued)] == ["Find it."]
    assert "the subtask is empty" in policy.requests[1].messages[-1].text


async def test_beside_a_full_subtask_an_empty_one_gets_its_own_answer() -> None:
    policy = ScriptedPolicy([turn("Find it.", " "), r"\boxed{found}"])
    context = make_context(policy, dialect="native")
    planner, desk = Planner(context, several=2), Desk(context)
    closed = await planner.hand_out(await planner.begin("How high is it?"), desk)
    assert desk.given == [Subtask("1", "Find it.")]
    assert (closed.calls, closed.answer) == ((), "found")
    told = [message.text for message in policy.requests[1].messages[-2:]]
    assert "1 m" in told[0]
    assert "the subtask is empty" in told[1]


@pytest.mark.parametrize("dialect", ["native", "tags", "json"])
@pytest.mark.parametrize(
    ("written", "task", "expert"),
    [
        ('{"name": "deep_search", "arguments": {"task": "Find the height."}}', "Find the height.", "deep_search"),
        ('simple_search(query="tower height")', "tower height", "simple_search"),
        ('{"name": "simple_search", "arguments": {"queries": ["tower", "height"]}}', "tower, height", "simple_search"),
        ('{"name": "simple_search", "query": "tower height"}', "tower height", "simple_search"),
        ('{"name": "subtask", "arguments": {"task": "Find it.", "expert": "code"}}', "Find it.", "code"),
        ('{"name": "subtask", "arguments": {"task": "Find it.", "expert": "nobody"}}', "Find it.", ""),
    ],
)
async def test_a_planner_that_calls_an_expert_by_its_name_hands_out_a_subtask(
    dialect: str, written: str, task: str, expert: str
) -> None:
    policy = ScriptedPolicy([written, "done"])
    context = make_context(policy, dialect=dialect)
    planner, desk = Planner(context, experts=EXPERTS), Desk(context)
    assert (await planner.hand_out(await planner.begin("How high is it?"), desk)).answer == "done"
    assert desk.given == [Subtask("1", task, expert)]
    assert not any(tool["function"]["name"] == expert for tool in policy.requests[0].tools)


async def test_without_descriptions_no_expert_can_be_called_by_its_name() -> None:
    policy = ScriptedPolicy(['{"name": "deep_search", "arguments": {"task": "Find it."}}', "done"])
    planner = Planner(make_context(policy, dialect="json"), experts=EXPERTS, describe=False)
    assert (await planner.begin("How high is it?")).answer == "done"
    assert "no tool named 'deep_search'" in policy.requests[1].messages[-1].text


@pytest.mark.parametrize(
    ("tasks", "answer"),
    [
        (["Find how high it is."], "1 m"),
        (["Find how high it is.", "And how wide."], "asked on"),
        (["Find it.", "How high is it?"], "2 m"),
        (["How high is it?", "Find it."], "asked on"),
    ],
)
async def test_a_planner_that_only_repeats_itself_ends_with_the_only_report_or_that_on_the_question(
    tasks: list[str], answer: str
) -> None:
    script = iter(tasks)

    def reply(request: Request) -> Completion | str:
        return turn(next(script, tasks[-1])) if request.tools else r"\boxed{asked on}"

    policy = ScriptedPolicy(reply)
    context = make_context(policy, dialect="native")
    planner, desk = Planner(context), Desk(context)
    step = await planner.begin("How high is it?")
    for _ in tasks:
        step = await planner.hand_out(step, desk)
    assert [subtask.text for subtask in desk.given] == tasks
    assert step.answer == answer


@pytest.mark.parametrize("ok", [True, False])
async def test_only_a_subtask_that_failed_is_handed_out_again(*, ok: bool) -> None:
    policy = ScriptedPolicy([turn("Find it."), turn("Find it."), r"\boxed{found}"])
    context = make_context(policy, dialect="native")
    planner, desk = Planner(context), Desk(context, ok=ok)
    again = await planner.hand_out(await planner.begin("How high is it?"), desk)
    assert ("Find it." in [call.arguments["task"] for call in again.calls]) is not ok
