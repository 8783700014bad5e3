"""`auto`: one search first; the hierarchy continues where the check does not confirm the answer."""

from dataclasses import replace
from pathlib import Path

import pytest

from hira import Hira
from hira.agents.experts import EXPERTS, Account, Task
from hira.agents.retrieval import PAGES
from hira.agents.run_context import RunContext, RunOptions
from hira.evidence import Source
from hira.testing import ScriptedPolicy
from hira.testing.script import calling, make_context
from hira.tools import Observation, Passage, Toolbox, tool
from hira.workflows import HiRA, rollout
from hira.workflows.auto import Auto
from hira.workflows.baselines.single import Rag
from hira.workflows.bound import Sizes

QUESTION = "How high is the tower of Alta?"
READ = "The tower of Alta is 31 m high."
OTHER = "The tower of Alta was finished in 1907."


class Timetable:
    """An expert of the user."""

    name, description, ability, cost = "timetable", "knows when ferries leave", "timetable", 1
    needs = frozenset[str]()

    async def work(self, task: Task, context: RunContext) -> Account:
        raise NotImplementedError


def make_box(queries: list[str], text: str = READ) -> Toolbox:
    @tool(pure=True)
    async def search(query: str) -> Observation:
        "Search."
        queries.append(query)
        return Observation(passages=(Passage(Source("towers.md", "Towers", text, "file"), text),))

    return Toolbox(search=search)


async def test_a_confirmed_answer_costs_what_rag_costs_and_is_checked_once() -> None:
    queries: list[str] = []
    policy = ScriptedPolicy(["The tower of Alta is 31 m high [s1]."])
    record = await rollout(Auto(), QUESTION, make_context(policy, tools=make_box(queries)))
    assert (record.status, record.usage.calls, queries) == ("answered", 1, [QUESTION])
    assert [conversation.role for conversation in record.trajectories.values()] == ["reasoner"]


async def test_an_unconfirmed_answer_and_its_passages_reach_the_planner_who_may_answer_at_once() -> None:
    policy = ScriptedPolicy(["The tower of Alta is 40 m high [s1].", r"\boxed{The tower of Alta is 31 m high [s1].}"])
    queries: list[str] = []
    record = await rollout(Auto(), QUESTION, make_context(policy, tools=make_box(queries)))
    assert (record.status, record.answer) == ("answered", "The tower of Alta is 31 m high [s1].")
    shown = policy.requests[1].messages[-1].text
    assert "40 m" in shown
    assert READ in shown
    assert queries == [QUESTION]


async def test_an_answer_in_other_words_that_comes_from_one_passage_is_not_worked_on_further() -> None:
    policy = ScriptedPolicy(["The tower of Alta rises 31 m high [s1]."])
    record = await rollout(Auto(), QUESTION, make_context(policy, tools=make_box([])))
    assert (record.status, record.usage.calls) == ("unverified", 1)


@pytest.mark.parametrize(
    "first",
    [
        "The Kvam bridge was finished in 1907 [s1].",
        "The tower of Alta is 19 + 12 = 31 m high [s1].",
        "The tower of Alta is 40 m high [s1].",
    ],
    ids=["from no passage", "a computation", "a number that nothing says"],
)
async def test_the_first_answer_stays_unless_the_second_is_better_confirmed(first: str) -> None:
    policy = ScriptedPolicy([first, r"\boxed{The tower of Alta soars to 50 m [s1].}"])
    record = await rollout(Auto(), QUESTION, make_context(policy, tools=make_box([])))
    assert (record.status, record.answer, record.usage.calls) == ("unverified", first, 2)


async def test_the_planner_reads_the_sentences_that_matter_and_not_the_whole_passages() -> None:
    others = [f"Ferry {number} leaves the harbour of Bode before noon." for number in range(40)]
    policy = ScriptedPolicy(["The documents do not say it.", r"\boxed{The tower of Alta is 31 m high [s1].}"])
    box = make_box([], "\n".join([*others[:20], READ, *others[20:]]))
    record = await rollout(Auto(), QUESTION, make_context(policy, tools=box))
    shown = policy.requests[1].messages[-1].text
    assert record.status == "answered"
    assert f"[s1] Towers (towers.md)\n{READ}\n[/s1]" in shown
    assert "Ferry" not in shown


async def test_what_the_first_search_read_is_not_searched_again_by_an_expert() -> None:
    queries: list[str] = []
    policy = ScriptedPolicy(
        {
            "reasoner": ["I cannot tell."],
            "planner": [calling("deep_search", task=QUESTION), r"\boxed{The tower of Alta is 31 m high [s1].}"],
            "deep_search": [calling("search", query=QUESTION), "The tower of Alta is 31 m high [s1]."],
        }
    )
    record = await rollout(Auto(), QUESTION, make_context(policy, dialect="native", tools=make_box(queries)))
    assert [(finding.expert, finding.subtask.text) for finding in record.findings] == [("deep_search", QUESTION)]
    assert (record.status, queries) == ("answered", [QUESTION])


async def test_a_refusal_after_one_search_is_not_the_last_word() -> None:
    policy = ScriptedPolicy(
        ["The documents do not say how high it is.", r"\boxed{The tower of Alta was finished in 1907 [s1].}"]
    )
    record = await rollout(
        Auto(), "When was the tower of Alta finished?", make_context(policy, tools=make_box([], OTHER))
    )
    assert (record.status, record.usage.calls) == ("answered", 2)


@pytest.mark.parametrize("reason", ["files", "tools", "experts", "no search"])
async def test_what_rag_cannot_use_starts_with_the_planner(reason: str, tmp_path: Path) -> None:
    @tool(pure=True)
    async def measure(name: str) -> str:
        "Measure."
        return name

    policy = ScriptedPolicy([r"\boxed{I have nothing to answer from.}"])
    box = make_box([])
    context = make_context(policy, tools=replace(box, extra=(measure,)) if reason == "tools" else box)
    if reason == "files":
        (tmp_path / "plan.txt").write_text(READ, encoding="utf-8")
        context.files = (tmp_path / "plan.txt",)
    if reason == "no search":
        context.tools = Toolbox(extra=(measure,))
    flow = Auto(experts=(*EXPERTS, Timetable())) if reason == "experts" else Auto()
    record = await rollout(flow, QUESTION, context)
    assert next(iter(record.trajectories.values())).role == "planner"


@pytest.mark.parametrize(
    ("question", "queries", "read", "roles"),
    [
        ("What is the capital of France?", '["Paris"]', "", ["reasoner"]),
        ("What is the capital of France?", '["tower of Alta"]', READ, ["reasoner", "planner"]),
        ("What is 17 times 23?", "", "", ["planner"]),
        ("What are the documents about?", "", "", ["planner"]),
        ("Was ist die Hauptstadt von Frankreich?", "", "", ["planner"]),
    ],
    ids=["other words find nothing", "other words find something", "a computation", "the documents", "German"],
)
async def test_a_question_that_no_source_speaks_of_is_refused_unless_other_words_find_more(
    question: str, queries: str, read: str, roles: list[str]
) -> None:
    @tool(pure=True)
    async def search(query: str) -> Observation:
        "Search."
        if query == question or not read:
            return Observation(f"nothing found for {query!r} in 3 documents")
        return Observation(passages=(Passage(Source("towers.md", "Towers", read, "file"), read),))

    policy = ScriptedPolicy([*([f'{{"queries": {queries}}}'] if queries else []), r"\boxed{I cannot tell.}"])
    record = await rollout(Auto(), question, make_context(policy, tools=Toolbox(search=search)))
    assert (record.status, record.answer) == ("insufficient_evidence", "Nothing was found that answers the question.")
    assert [conversation.role for conversation in record.trajectories.values() if conversation.turns] == roles
    assert "nothing found" not in "".join(message.text for request in policy.requests for message in request.messages)


async def test_the_planner_reads_the_earlier_messages_of_a_follow_up_question(tmp_path: Path) -> None:
    (tmp_path / "towers.md").write_text(READ, encoding="utf-8")
    policy = ScriptedPolicy([f"{READ[:-1]} [s1].", "The documents do not say it.", r"\boxed{I cannot tell.}"])
    async with Hira(docs=tmp_path, policies={"*": policy}, verify="lexical") as hira:
        chat = hira.chat()
        await chat.ask(QUESTION)
        await chat.ask("And how high is the other tower?")
    assert QUESTION in policy.requests[2].messages[-1].text


async def test_a_search_that_is_left_out_is_not_made() -> None:
    queries: list[str] = []
    policy = ScriptedPolicy([r"\boxed{I have nothing to answer from.}"])
    record = await rollout(Auto(without=frozenset({"search"})), QUESTION, make_context(policy, tools=make_box(queries)))
    assert (record.status, queries) == ("failed", [])


async def test_without_a_check_the_first_answer_is_the_answer() -> None:
    policy = ScriptedPolicy(["The tower of Alta is 40 m high [s1]."])
    context = make_context(policy, tools=make_box([]))
    context.options = RunOptions(verify="off")
    record = await rollout(Auto(), QUESTION, context)
    assert (record.answer, record.usage.calls) == ("The tower of Alta is 40 m high [s1].", 1)


def test_its_bound_is_that_of_both() -> None:
    assert Auto().bound(Sizes())["reasoner"] == Rag(PAGES).bound(Sizes())["reasoner"] + Sizes().bound_plan()
    assert Auto().bound(Sizes())["planner"] == HiRA().bound(Sizes())["planner"]


@pytest.mark.parametrize(("title", "calls"), [("List of the documents", 1), ("Towers", 2)])
async def test_an_answer_about_the_documents_as_a_whole_needs_their_list_and_no_more(title: str, calls: int) -> None:
    @tool(pure=True)
    async def search(query: str) -> Observation:
        "Search."
        return Observation(passages=(Passage(Source("docs", title, "Documents in the folder: 2.", "file"), READ),))

    policy = ScriptedPolicy(["They describe towers and who built them [s1].", r"\boxed{I cannot tell.}"])
    context = make_context(policy, tools=Toolbox(search=search))
    record = await rollout(Auto(), "What are the documents about?", context)
    assert (record.status, record.usage.calls) == ("unverified", calls)
