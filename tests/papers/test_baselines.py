"""Direct reasoning, RAG, CodeAct, the multimodal baseline, Plan-and-Solve and ReAct step by step (HiRA, appendix)."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

from hira.agents.expert import Account, Task
from hira.agents.run_context import RunContext
from hira.core.budget import Budget
from hira.core.errors import EndpointError, ToolError, UsageError
from hira.core.messages import Media
from hira.core.policy import Request
from hira.evaluation.tables import TABLES
from hira.evidence import OUTPUT, Source
from hira.testing import ScriptedPolicy
from hira.testing.script import make_context
from hira.tools import Observation, Passage, Tool, Toolbox, tool
from hira.workflows import rollout
from hira.workflows.baselines.plan_and_solve import PlanAndSolve
from hira.workflows.baselines.single import CodeAct, Direct, MultimodalAlone, Rag, ReAct

QUESTION = "How high is the tower?"
READ = "The tower is 31 m high."
ANSWER = r"So: \boxed{The tower is 31 m high [s1].}"


@tool(pure=True)
async def search(query: str) -> Observation:
    "Search."
    return Observation(passages=(Passage(Source("towers.md", "Towers", READ, "file"), f"{READ} Hit for {query}."),))


@tool(pure=True)
async def browse(url: str, intent: str) -> Observation:
    "Open a page."
    return Observation(passages=(Passage(Source(url, url, f"PAGE {intent}"), f"PAGE {intent}"),))


@tool
async def python(code: str) -> Observation:
    "Run Python."
    text = f"{code}{OUTPUT}height 31 m"
    return Observation(passages=(Passage(Source(f"python:{code}", code, text, "computation"), text),))


@asynccontextmanager
async def open_python(label: str) -> AsyncIterator[Tool]:
    del label
    yield python


BOX = Toolbox(search=search, python=open_python)
RUNNING = "<|begin_code_call|>print('height', int(open('tower.txt').read()) // 2, 'm')<|end_code_call|>"


async def test_direct_is_one_call_that_shows_the_question_and_no_tools() -> None:
    policy = ScriptedPolicy([r"I recall it. \boxed{31 m}"])
    record = await rollout(Direct(), QUESTION, make_context(policy, dialect="native", tools=BOX))
    (request,) = policy.requests
    assert request.tools == ()
    assert QUESTION in request.messages[0].text
    assert record.answer == "31 m"


async def test_rag_searches_once_for_the_question_itself_and_answers_from_that() -> None:
    policy = ScriptedPolicy(["The tower is 31 m high [s1]."])
    record = await rollout(Rag(), QUESTION, make_context(policy, tools=BOX))
    (request,) = policy.requests
    assert f"Hit for {QUESTION}" in request.messages[0].values["documents"]
    assert (record.status, record.usage.calls) == ("answered", 1)


async def test_rag_reads_the_first_ten_pages_that_it_finds() -> None:
    @tool(name="search", pure=True)
    async def snippets(query: str) -> Observation:
        "Search."
        hits = [Source(f"https://l.example/{at}", str(at), query, "hit") for at in range(15)]
        return Observation(passages=tuple(Passage(hit, hit.text) for hit in hits))

    policy = ScriptedPolicy(["The tower is 31 m high [s1]."])
    await rollout(Rag(), QUESTION, make_context(policy, tools=Toolbox(search=snippets, browse=browse)))
    assert policy.requests[0].messages[0].values["documents"].count("PAGE") == 10


async def test_rag_sends_the_beginning_of_a_long_question() -> None:
    policy = ScriptedPolicy(["Nothing valid was found."])
    await rollout(Rag(), "tower " * 200, make_context(policy, tools=BOX))
    assert policy.requests[0].messages[0].values["documents"].count("tower") < 90


async def test_rag_whose_search_fails_answers_from_nothing_and_says_so() -> None:
    @tool(name="search", pure=True)
    async def down(query: str) -> Observation:
        "Search."
        raise ToolError(f"no service answers {query}")

    policy = ScriptedPolicy(["Nothing valid was found."])
    record = await rollout(Rag(), QUESTION, make_context(policy, tools=Toolbox(search=down)))
    assert "no service answers" in policy.requests[0].messages[0].text
    assert record.status == "insufficient_evidence"


async def test_rag_whose_endpoint_fails_has_no_answer_but_its_sources() -> None:
    record = await rollout(Rag(), QUESTION, make_context([EndpointError("gone")], tools=BOX))
    assert (record.status, record.error, record.answer) == ("failed", "gone", "")
    assert [source.evidence for source in record.sources.read.values()] == [READ]


async def test_codeact_acts_by_python_alone_and_cites_what_it_printed() -> None:
    policy = ScriptedPolicy([RUNNING, r"\boxed{The height is 31 m [s1].}"])
    record = await rollout(CodeAct(), QUESTION, make_context(policy, tools=BOX))
    assert record.status == "answered"
    assert "height 31 m" in policy.requests[1].messages[-1].text
    assert "begin_search_query" not in policy.requests[0].messages[0].text
    policy.assert_done()


async def test_codeact_has_ten_runs_and_then_has_to_answer() -> None:
    runs = [f"<|begin_code_call|>print('height', {at})<|end_code_call|>" for at in range(10)]
    policy = ScriptedPolicy([*runs, r"\boxed{The height is 31 m [s1].}"])
    await rollout(CodeAct(), QUESTION, make_context(policy, tools=BOX))
    assert "all 10 calls are used" in policy.requests[-1].messages[-1].text
    policy.assert_done()


LOOKING = "<|begin_multimodal_call|>\ndata: tower.png\nquestion: How high?\n<|end_multimodal_call|>"


def seeing(**more: Any) -> Toolbox:
    return Toolbox(media=lambda path: Media("image", f"data:image/png;base64,{path}"), visible=("tower.png",), **more)


async def test_the_multimodal_baseline_has_a_picture_looked_at_and_reasons_on() -> None:
    policy = ScriptedPolicy({"reasoner": [LOOKING, ANSWER], "look": ["The tower is 31 m high."]})
    record = await rollout(MultimodalAlone(), QUESTION, make_context(policy, tools=seeing()))
    assert (record.status, record.answer) == ("answered", "The tower is 31 m high [s1].")
    looked = next(request for request in policy.requests if request.conversation == "1/look")
    assert looked.messages[0].media[0].url.endswith("tower.png")
    assert record.sources.read["s1"].kind == "media"


async def test_the_multimodal_baseline_reasons_alone_where_there_is_nothing_to_look_at() -> None:
    """Most questions of HiRA's Table 1 have neither file nor picture; elsewhere the run says what it needs."""
    policy = ScriptedPolicy([r"I recall it. \boxed{31 m}"])
    record = await rollout(MultimodalAlone(alone=True), QUESTION, make_context(policy, tools=Toolbox()))
    (request,) = policy.requests
    assert (record.answer, request.tools) == ("31 m", ())
    with pytest.raises(UsageError, match="something to look at"):
        await MultimodalAlone().run(QUESTION, make_context([], tools=Toolbox()))
    assert TABLES["hira-table1"].rows("multimodal")[""]["workflows"] == {"multimodal": {"alone": True}}


async def test_react_has_every_tool_in_one_chain_and_every_output_is_inserted_as_it_is() -> None:
    policy = ScriptedPolicy(
        {
            "reasoner": [
                "First search. <|begin_search_query|>tower<|end_search_query|>",
                f"Then compute. {RUNNING}",
                f"Then look. {LOOKING}",
                ANSWER,
            ],
            "look": ["A tower."],
        }
    )
    box = seeing(search=search, browse=browse, python=open_python)
    record = await rollout(ReAct(), QUESTION, make_context(policy, tools=box))
    assert (record.status, record.answer) == ("answered", "The tower is 31 m high [s1].")
    offered = policy.requests[0].messages[0].text
    assert all(f"<|begin_{one}|>" in offered for one in ("search_query", "click_link", "code_call", "multimodal_call"))
    chain = [request for request in policy.requests if request.conversation == "reasoner"]
    brought = [request.messages[-1].text for request in chain[1:]]
    for text, shown in zip(("Hit for tower.", "height 31 m", "A tower."), brought, strict=True):
        assert text in shown
    for earlier, later in pairwise(chain):
        assert later.messages[: len(earlier.messages)] == earlier.messages
    policy.assert_done()


class Desk:
    """An expert that answers from a table, reads a source for it, and keeps what it was given."""

    name, description, ability, cost = "desk", "looks a fact up", "search", 1
    needs: frozenset[str] = frozenset()

    def __init__(self, failing: frozenset[str] = frozenset()) -> None:
        self.tasks: list[Task] = []
        self.failing = failing

    async def work(self, task: Task, context: RunContext) -> Account:
        self.tasks.append(task)
        if task.id in self.failing:
            raise EndpointError("the desk is closed")
        source = context.read(Source(f"page-{task.id}", "Page", f"{task.text} is answered by {task.id}00."))
        return Account("", f"{task.text} is answered by {task.id}00 [{source.id}].")


class Other(Desk):
    name, description, cost = "other", "does anything else", 2


PLAN = json.dumps({"steps": ["Height of the tower", "Height of the mill", "The sum of both"]})
SUM = r"\boxed{The sum of both is answered by 300 [s3].}"


def assigning(request: Request) -> str:
    return json.dumps({"reason": "it can", "expert": "desk"})


async def test_a_plan_is_made_at_once_carried_out_in_order_and_answered_from() -> None:
    desk = Desk()
    policy = ScriptedPolicy({"planner": [PLAN, SUM], "coordinator": assigning})
    record = await rollout(PlanAndSolve(experts=(desk, Other())), "What is the sum of both?", make_context(policy))
    assert (record.status, record.answer) == ("answered", "The sum of both is answered by 300 [s3].")
    assert [task.text for task in desk.tasks] == ["Height of the tower", "Height of the mill", "The sum of both"]
    assert [request.conversation for request in policy.requests] == [
        "planner",
        "1/assign/coordinator",
        "2/assign/coordinator",
        "3/assign/coordinator",
        "planner.2",
    ]
    policy.assert_done()


async def test_a_step_is_told_the_results_of_those_before_it_and_nothing_is_distilled() -> None:
    desk = Desk()
    policy = ScriptedPolicy({"planner": [PLAN, SUM], "coordinator": assigning})
    await rollout(PlanAndSolve(experts=(desk, Other())), "What is the sum of both?", make_context(policy))
    assert [len(task.recall) for task in desk.tasks] == [0, 1, 2]
    assert "Height of the tower is answered by 100 [s1]" in " ".join(desk.tasks[2].recall.lines)
    assert {request.messages[0].prompt for request in policy.requests} == {
        "plan_and_solve_plan",
        "assign",
        "plan_and_solve_answer",
    }


async def test_the_plan_is_fixed_a_step_that_fails_changes_nothing_and_the_answer_knows() -> None:
    desk = Desk(failing=frozenset("1"))
    policy = ScriptedPolicy({"planner": [PLAN, r"\boxed{Only the mill is known: 200 [s1].}"], "coordinator": assigning})
    record = await rollout(PlanAndSolve(experts=(desk, Other())), "What is the sum of both?", make_context(policy))
    assert [task.text for task in desk.tasks] == json.loads(PLAN)["steps"]
    assert "the desk is closed" in policy.requests[-1].messages[0].text
    assert [finding.ok for finding in record.findings] == [False, True, True]
    assert len(desk.tasks[1].recall) == 0


async def test_a_plan_longer_than_the_limit_is_cut_and_one_that_cannot_be_read_is_the_question() -> None:
    long, desk = json.dumps({"steps": [f"Height {at}" for at in range(12)]}), Desk()
    policy = ScriptedPolicy({"planner": [long, SUM], "coordinator": assigning})
    await rollout(PlanAndSolve(max_subtasks=2, experts=(desk,)), QUESTION, make_context(policy))
    assert [task.text for task in desk.tasks] == ["Height 0", "Height 1"]
    for unusable in (["no plan", "still none"], ['{"steps": ["first step"]}']):
        desk = Desk()
        policy = ScriptedPolicy({"planner": [*unusable, SUM]})
        await rollout(PlanAndSolve(experts=(desk,)), QUESTION, make_context(policy))
        assert [task.text for task in desk.tasks] == [QUESTION]


async def test_a_plan_that_its_budget_ends_is_answered_from_the_steps_that_were_done() -> None:
    desk = Desk()
    policy = ScriptedPolicy(
        {"planner": [PLAN, r"\boxed{The first is answered by 100 [s1].}"], "coordinator": assigning}
    )
    context = make_context(policy, budget=Budget(calls=3))
    record = await rollout(PlanAndSolve(experts=(desk, Other())), "What is the sum of both?", context)
    assert record.status == "partial"
    assert record.answer == "The first is answered by 100 [s1]."
