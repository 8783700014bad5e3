"""HiRA (2507.02652) step by step: the algorithm, the case of its Table 3, its ablations, its limits."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hira.agents.expert import Account, Task
from hira.agents.experts import DeepSearch, SimpleSearch
from hira.agents.run_context import RunContext
from hira.core.budget import Budget
from hira.core.errors import EndpointError
from hira.core.events import SubtaskDone, SubtaskIssued
from hira.core.memory import Fact, Recall
from hira.evidence import Source
from hira.testing import ScriptedPolicy, calling
from hira.testing.script import make_context
from hira.tools import Observation, Passage, Tool, Toolbox, tool
from hira.tools.documents import Index, browse_documents, search_documents
from hira.tools.python import open_python
from hira.tools.search import search_tool
from hira.tools.search.service import Hit
from hira.workflows import HiRA, rollout

ASEAN = Path(__file__).parent.parent / "data" / "asean"
QUESTION = (
    "In terms of geographical distance between capital cities, which two ASEAN countries are the furthest from each "
    "other? Answer with a comma separated list in alphabetical order."
)


def subtask(dialect: str, text: str, thought: str = "") -> Any:
    if dialect == "native":
        return calling("subtask", task=text)
    return f"{thought}<|begin_call_subtask|>{text}<|end_call_subtask|>"


class Desk:
    """An expert that answers from a table, reads a source for it, and keeps what it was given."""

    name, description, ability, cost = "desk", "looks a fact up", "search", 1
    needs: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    async def work(self, task: Task, context: RunContext) -> Account:
        self.tasks.append(task)
        source = context.read(Source(f"page-{task.id}", "Page", f"{task.text} is answered by {task.id}00."))
        told = f"{task.text} is answered by {task.id}00 [{source.id}]."
        return Account(told, told)


def distil(request: Any) -> str:
    if request.messages[0].prompt == "recall":
        return '{"chosen": [1, 2]}'
    if request.messages[0].prompt == "assign":
        return '{"reason": "one page states it", "expert": "desk"}'
    work = request.messages[0].values["work"]
    fact = {"text": work, "sources": []}
    return json.dumps({"reasoning": "Looked it up.", "conclusion": work, "facts": [fact]})


def run_of(planner: list[Any], dialect: str = "tags", **hira: Any) -> tuple[HiRA, RunContext, ScriptedPolicy]:
    policy = ScriptedPolicy({"planner": planner, "coordinator": distil})
    return HiRA(**{"experts": (Desk(),), "faithful": True, **hira}), make_context(policy, dialect=dialect), policy


@pytest.mark.parametrize("dialect", ["tags", "native"])
async def test_think_delegate_read_and_go_on_until_the_answer(dialect: str) -> None:
    """Eq. 1 and 2: each subtask is generated from the question, the reasoning so far and the results so far."""
    planner = [
        subtask(dialect, "Height of the tower"),
        subtask(dialect, "Height of the mill"),
        r"Both known. \boxed{Height of the tower is answered by 100 [s1].}",
    ]
    workflow, context, policy = run_of(planner, dialect)
    record = await rollout(workflow, "How high?", context)
    assert (record.status, record.answer) == ("answered", "Height of the tower is answered by 100 [s1].")
    planned = [request for request in policy.requests if request.conversation == "planner"]
    assert all("How high?" in request.messages[0].text for request in planned)
    assert "Conclusion: Height of the tower is answered by 100 [s1]" in planned[1].messages[-1].text
    for earlier, later in pairwise(planned):
        assert later.messages[: len(earlier.messages)] == earlier.messages
    assert [finding.subtask.id for finding in record.findings] == ["1", "2"]
    policy.assert_done()


async def test_the_planner_never_sees_a_page_only_the_distilled_report() -> None:
    report = {"reasoning": "One page states it.", "conclusion": "It is 100 m [s1].", "facts": [], "resources": []}
    policy = ScriptedPolicy({"planner": [subtask("tags", "Height"), "done"], "coordinator": [json.dumps(report)]})
    await rollout(HiRA(experts=(Desk(),), faithful=True), "How high?", make_context(policy, dialect="tags"))
    asked, read = [request.messages[-1].text for request in policy.requests[-2:]]
    assert "Height is answered by 100 [s1]" in asked, "the coordinator reads the expert's work"
    assert "One page states it." in read
    assert "It is 100 m [s1]." in read
    assert "is answered by" not in read


@tool(pure=True)
async def search(query: str) -> Observation:
    "Search."
    found = [Source(f"https://l.example/{query}-{at}", f"{query} {at}", f"snippet {at}", "hit") for at in range(2)]
    return Observation(passages=tuple(Passage(source, source.text) for source in found))


@tool(pure=True)
async def browse(url: str, intent: str = "") -> Observation:
    "Open a page."
    source = Source(url, url, f"All of {url}: the tower is 31 m high.")
    return Observation(passages=(Passage(source, source.text),))


LIBRARY = Toolbox(search=search, browse=browse)


async def test_simple_search_plans_three_queries_at_most_retrieves_once_and_answers_from_what_it_read() -> None:
    plan = json.dumps({"queries": [f"query{at}" for at in range(30)]})
    policy = ScriptedPolicy([plan, "It is 31 m high [s1]."])
    account = await SimpleSearch().work(Task("1", "Height?", faithful=True), make_context(policy, tools=LIBRARY))
    planning, answering = policy.requests
    assert planning.messages[0].prompt == "simple_search_plan"
    assert "Height?" in planning.messages[0].text
    documents = answering.messages[0].values["documents"]
    assert [f"query{at}" in documents for at in range(4)] == [True, True, True, False]
    assert "All of https://l.example/query2-1: the tower is 31 m high." in answering.messages[0].text
    assert "ids of the documents, such as [s1]" in answering.messages[0].text
    assert account.conclusion == "It is 31 m high [s1]."


async def test_a_query_copied_from_the_prompt_is_replaced_by_the_task_and_what_is_known_is_searched_for_as_well() -> (
    None
):
    policy = ScriptedPolicy(['{"queries": ["first query"]}', "It is 31 m high [s1]."])
    await SimpleSearch().work(Task("1", "Height?", faithful=True), make_context(policy, tools=LIBRARY))
    assert "tower is 31 m high" in policy.requests[1].messages[0].values["documents"]
    asked: list[str] = []

    @tool(pure=True)
    async def search(query: str) -> str:
        "Search."
        asked.append(query)
        return "nothing found"

    task = Task("2", "Where was its founder born?", Recall((Fact("Ada founded the mill.", ("s1",)),)))
    await SimpleSearch().work(task, make_context(ScriptedPolicy(["Unknown."]), tools=Toolbox(search=search)))
    assert asked == ["Where was its founder born?", "Where was its founder born? Ada founded the mill."]
    asked.clear()
    known = Recall((Fact("much " * 60, ("s1",)),))
    one = replace(task, recall=known)
    await SimpleSearch().work(one, make_context(ScriptedPolicy(["Unknown."]), tools=Toolbox(search=search)))
    assert [len(query.split()) for query in asked] == [5, 50], "a query is no longer than a few lines"


async def test_deep_search_searches_opens_a_page_and_answers_in_one_conversation() -> None:
    looking = [calling("search", query="tower"), calling("browse", url="https://l.example/tower-1", intent="height")]
    policy = ScriptedPolicy([*looking, r"\boxed{It is 31 m high [s3].}"])
    account = await DeepSearch().work(Task("1", "Height?"), make_context(policy, tools=LIBRARY, dialect="native"))
    assert {request.conversation for request in policy.requests} == {policy.requests[0].conversation}
    assert [one["function"]["name"] for one in policy.requests[0].tools] == ["search", "browse"]
    assert "All of https://l.example/tower-1" in policy.requests[-1].messages[-1].text
    assert account.conclusion == "It is 31 m high [s3]."


class Library:
    """A search service that finds more than anybody asks for."""

    name = "library"

    async def search(self, query: str, n: int) -> list[Hit]:
        del n
        return [Hit(f"{query} {at}", f"https://l.example/{at}", "a snippet") for at in range(15)]


async def test_a_search_brings_ten_results() -> None:
    found = await search_tool([Library()])("tower")
    assert len(found.passages) == 10


async def test_several_independent_subtasks_of_one_turn_run_together() -> None:
    turn = "".join(f"<|begin_call_subtask|>Height of {what}<|end_call_subtask|>" for what in ("tower", "mill", "barn"))
    workflow, context, policy = run_of([turn, "done"], parallel=2)
    heard: list[Any] = []
    context.events.readers.append(heard.append)
    record = await rollout(workflow, "How high?", context)
    assert [finding.subtask.text for finding in record.findings] == ["Height of tower", "Height of mill"]
    assert [one.subtask for one in heard if isinstance(one, SubtaskIssued)] == ["1", "2"]
    reports = policy.requests[-1].messages[-1].text
    assert reports.index("Height of tower") < reports.index("Height of mill")


async def test_the_limit_is_ten_as_in_the_paper() -> None:
    planner = [*(subtask("tags", f"Height of {n}") for n in range(11)), "unused"]
    workflow, context, _ = run_of(planner)
    record = await rollout(workflow, "How high?", context)
    assert len(record.findings) == 10


async def test_a_planner_that_only_repeats_its_one_subtask_answers_with_its_report() -> None:
    workflow, context, policy = run_of([subtask("tags", "Find the height")] * 2)
    record = await rollout(workflow, "What is the height?", context)
    (finding,) = record.findings
    assert (record.status, record.answer) == ("answered", finding.conclusion)
    policy.assert_done()


async def test_a_planner_that_hands_out_the_report_that_it_has_read_answers_with_it() -> None:
    report = "Find the height is answered by 100 [s1]."
    workflow, context, policy = run_of([subtask("tags", one) for one in ("Find the height", report)], faithful=False)
    record = await rollout(workflow, "What is the height?", context)
    (finding,) = record.findings
    assert (record.status, record.answer) == ("answered", finding.conclusion)
    policy.assert_done()


async def test_a_planner_that_repeats_a_part_of_the_question_hands_out_the_question_itself_with_what_is_known() -> None:
    question = "When was the founder of the mill born?"
    workflow, context, policy = run_of([subtask("tags", "Find the founder of the mill")] * 2)
    record = await rollout(workflow, question, context)
    assert [finding.subtask.text for finding in record.findings] == ["Find the founder of the mill", question]
    tasks = workflow.experts[0].tasks  # type: ignore[attr-defined]
    assert tasks[1].recall.lines == ["Find the founder of the mill is answered by 100 [s1]. (source: s1)"]
    assert (record.status, record.answer) == ("answered", record.findings[1].conclusion)
    policy.assert_done()


async def test_the_planner_works_with_and_without_the_experts_descriptions() -> None:
    """Figure 3: planner and experts are decoupled."""
    for describe in (True, False):
        workflow, context, policy = run_of([subtask("tags", "Height"), "done"], describe_experts=describe)
        await rollout(workflow, "How high?", context)
        assert ("looks a fact up" in policy.requests[0].messages[0].text) is describe


async def test_an_answer_without_evidence_cites_nothing_and_says_so() -> None:
    workflow, context, _ = run_of([r"\boxed{It is 31 m high [s4].}"])
    record = await rollout(workflow, "How high?", context)
    assert (record.status, record.answer, record.citations) == ("unverified", "It is 31 m high.", [])


async def test_an_endpoint_that_dies_leaves_what_was_found_as_a_clear_partial() -> None:
    workflow, context, _ = run_of([subtask("tags", "Height"), EndpointError("the endpoint is gone", where="at /v1")])
    record = await rollout(workflow, "How high?", context)
    assert record.status == "failed"
    assert "the endpoint is gone" in record.error
    assert "answered by 100" in record.answer


async def test_a_spent_budget_ends_in_an_answer_from_what_is_known() -> None:
    workflow, context, policy = run_of([subtask("tags", "Height"), r"\boxed{Height is answered by 100 [s1].}"])
    context = replace(context, budget=Budget(calls=3))
    record = await rollout(workflow, "How high?", context)
    assert (record.status, record.answer) == ("partial", "Height is answered by 100 [s1].")
    assert "budget of 3 calls" in policy.requests[-1].messages[-1].text


async def test_a_stop_from_outside_ends_in_an_answer_from_what_is_known() -> None:
    workflow, context, _ = run_of([subtask("tags", "Height"), r"\boxed{Height is answered by 100 [s1].}"])
    context.events.readers.append(lambda event: context.stop() if isinstance(event, SubtaskDone) else None)
    record = await rollout(workflow, "How high?", context)
    assert (record.status, record.answer) == ("interrupted", "Height is answered by 100 [s1].")


def _tool(name: str) -> Tool:
    async def run(_: Any) -> Observation:
        return Observation("nothing")

    return Tool(name, name, {"type": "object", "properties": {"query": {"type": "string"}}}, run)


async def test_table_2_each_removed_ability_takes_away_its_experts_and_no_others() -> None:
    box = Toolbox(search=_tool("search"), python=open_python(Path("unused")), media=_never)
    names = {
        part: [expert.name for expert in HiRA(without=frozenset({part})).available(make_context([], tools=box))]  # type: ignore[arg-type]
        for part in ("memory", "reasoning-transfer", "search", "code", "multimodal")
    }
    everyone = ["simple_search", "code", "multimodal", "deep_search"]
    assert names == {
        "memory": everyone,
        "reasoning-transfer": everyone,
        "search": ["code", "multimodal"],
        "code": ["simple_search", "multimodal", "deep_search"],
        "multimodal": ["simple_search", "code", "deep_search"],
    }


class Archive(Desk):
    name, description, cost = "archive", "explores many pages at length", 3


@pytest.mark.parametrize(
    ("without", "asked"),
    [
        (set(), {"assign": 6, "recall": 1, "distil": 6}),
        ({"code", "multimodal"}, {"assign": 6, "recall": 1, "distil": 6}),
        ({"memory"}, {"assign": 6, "distil": 6}),
        ({"reasoning-transfer"}, {"recall": 1, "distil": 6}),
        ({"reasoning-transfer", "memory"}, {}),
    ],
    ids=["nothing", "abilities of others", "memory", "transfer", "both"],
)
async def test_table_2_each_removed_mechanism_takes_away_its_calls_and_no_others(
    without: set[Any], asked: dict[str, int]
) -> None:
    """From the fifth memory entry on the model chooses, which is in the sixth subtask."""
    experts = (Desk(), Archive())
    workflow, context, policy = run_of(
        [*(subtask("tags", what) for what in "ABCDEF"), "done"], experts=experts, without=frozenset(without)
    )
    record = await rollout(workflow, "?", context)
    assert record.error == ""
    made = [name for name in record.trajectories if name.endswith("/coordinator")]
    assert Counter(name.split("/")[1] for name in made) == asked
    assert [expert.name for expert in experts if expert.tasks] == ["desk"]
    remembers, transfers = "memory" not in without, "reasoning-transfer" not in without
    assert [len(task.recall) for task in experts[0].tasks] == ([0, 1, 2, 3, 4, 2] if remembers else [0] * 6)
    assert len(record.memory.facts) == (6 if remembers else 0)
    assert all(bool(finding.facts) is remembers for finding in record.findings)
    reports = [request.messages[-1].text for request in policy.requests if request.conversation == "planner"][1:]
    assert all(("Looked it up." in report) is transfers for report in reports)
    assert all("is answered by" in report for report in reports)


def _never(path: str) -> Any:
    raise AssertionError(path)


PROGRAM = """
import csv, itertools, math
capitals = {capitals}
places = {{row["city"]: (float(row["latitude"]), float(row["longitude"])) for row in csv.DictReader(open({file!r}))}}
missing = [city for city in capitals.values() if city not in places]
print("not in the table:", ", ".join(missing) or "none")
def km(a, b):
    (p, l), (q, m) = [(math.radians(x), math.radians(y)) for x, y in (places[a], places[b])]
    h = math.sin((q - p) / 2) ** 2 + math.cos(p) * math.cos(q) * math.sin((m - l) / 2) ** 2
    return 2 * 6371 * math.asin(math.sqrt(h))
known = sorted(country for country, city in capitals.items() if city in places)
pair = max(itertools.combinations(known, 2), key=lambda two: km(capitals[two[0]], capitals[two[1]]))
print("furthest:", ", ".join(pair), round(km(capitals[pair[0]], capitals[pair[1]])), "km")
"""
CAPITALS = {
    "Brunei": "Bandar Seri Begawan", "Cambodia": "Phnom Penh", "Indonesia": "Jakarta", "Laos": "Vientiane",
    "Malaysia": "Kuala Lumpur", "Myanmar": "Nay Pyi Taw", "Philippines": "Manila", "Singapore": "Singapore",
    "Thailand": "Bangkok", "Vietnam": "Hanoi",
}  # fmt: skip


def program(dialect: str, capitals: dict[str, str]) -> Any:
    code = PROGRAM.format(capitals=capitals, file=str(ASEAN / "coordinates.csv"))
    return (
        calling("python", code=code) if dialect == "native" else f"<|begin_code_call|>python\n{code}<|end_code_call|>"
    )


def told(request: Any) -> str:
    """The code expert closes with what its own program printed."""
    text = request.messages[-1].text
    line = next(line for line in text.splitlines() if line.startswith("furthest:"))
    return f"\\boxed{{{line} [{text.split('[s', 1)[1].split(']')[0].join(('s', ''))}]}}"


def reported(request: Any) -> str:
    """A distillation made of what really happened: the last paragraph of the expert's work."""
    work = str(request.messages[0].values["work"]).strip()
    return json.dumps({"reasoning": "Did as asked.", "conclusion": work.split("\n\n")[-1]})


def answer(request: Any) -> str:
    """The planner answers with the pair and the source that the last report gave."""
    report = request.messages[-1].text
    pair = report.split("furthest: ")[1].split(" [")[0].rsplit(" ", 2)[0]
    return f"Naypyidaw is in the table now. \\boxed{{{pair} [{report.rsplit('[', 1)[1].split(']')[0]}]}}"


def asean(dialect: str) -> ScriptedPolicy:
    wrong, right = CAPITALS, {**CAPITALS, "Myanmar": "Naypyidaw"}
    lookups: list[Callable[[Any], str] | str] = [
        json.dumps({"queries": ["ASEAN member states capital"]}),
        lambda request: "The members and capitals stand in the list [s1]. " + ", ".join(CAPITALS.values()),
        json.dumps({"queries": ["capital of Myanmar spelt Naypyidaw"]}),
        "The name of the capital of Myanmar is spelt Naypyidaw.",
    ]
    return ScriptedPolicy(
        {
            "planner": [
                subtask(dialect, "List the ASEAN member states with their capitals."),
                subtask(dialect, f"Compute the two of these capitals furthest apart by the Haversine formula: {wrong}"),
                subtask(dialect, "How is the name of the capital of Myanmar spelt in encyclopedias?"),
                subtask(dialect, f"Compute the pair furthest apart again, with the capital as Naypyidaw: {right}"),
                answer,
            ],
            "1/assign/coordinator": ['{"reason": "one page states it", "expert": "simple_search"}'],
            "2/assign/coordinator": ['{"reason": "it has to be exact", "expert": "code"}'],
            "3/assign/coordinator": ['{"reason": "a spelling", "expert": "simple_search"}'],
            "4/assign/coordinator": ['{"reason": "it has to be exact", "expert": "code"}'],
            "coordinator": reported,
            "simple_search": lookups,
            "code": [program(dialect, wrong), told, program(dialect, right), told],
        }
    )


@pytest.mark.parametrize("dialect", ["tags", "native"])
async def test_table_3_the_asean_case_is_solved_and_its_wrong_result_corrected_on_the_way(
    dialect: str, tmp_path: Path
) -> None:
    policy = asean(dialect)
    index = Index([ASEAN])
    tools = Toolbox(
        search=search_documents(index),
        browse=browse_documents(index),
        python=open_python(tmp_path, readable=(ASEAN,)),
    )
    record = await rollout(HiRA(faithful=True), QUESTION, make_context(policy, dialect=dialect, tools=tools))
    assert record.error == ""
    conclusions = [finding.conclusion for finding in record.findings]
    assert [finding.expert for finding in record.findings] == ["simple_search", "code", "simple_search", "code"]
    assert "furthest: Indonesia, Vietnam" in conclusions[1], "Myanmar's capital was not found under its older spelling"
    assert "Naypyidaw" in conclusions[2]
    assert "furthest: Indonesia, Myanmar" in conclusions[3]
    assert record.answer.startswith("Indonesia, Myanmar [s")
    assert record.status == "answered"
    (citation,) = record.citations
    assert record.sources.read[citation.source].kind == "computation"
    assert "Indonesia, Myanmar" in citation.quote
    policy.assert_done()
    index.close()
