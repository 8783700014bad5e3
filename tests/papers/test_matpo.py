"""MATPO (2510.04678) step by step: its multi-agent rollout, what each agent sees, its limits, and its endings."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from hira import Hira, Settings
from hira.agents.planner import make_workflow_tool
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Rollout
from hira.core.errors import EndpointError
from hira.core.events import SubtaskAssigned, SubtaskDone, SubtaskIssued
from hira.core.messages import ToolCall, system
from hira.core.policy import Completion, Request
from hira.core.tokens import count
from hira.evaluation.rewards.answers import form
from hira.evidence import Source
from hira.policies.dialects import DIALECTS, Call
from hira.policies.dialects.protocol import write_examples
from hira.policies.dialects.switching import rewrite_messages
from hira.testing import FakeWeb, ScriptedPolicy, Served
from hira.testing.script import make_context
from hira.tools import Observation, Passage, Tool, Toolbox, tool
from hira.tools.search import open_backend, search_tool
from hira.workflows.matpo import MATPO
from hira.workflows.workflow import rollout

ASEAN = Path(__file__).parent.parent / "data" / "asean"
QUESTION = "How high is the tower, and how old?"
SUMMARY = "## Conclusion\nIt is {0} [s{1}].\n\n## Supporting Information\n- {0}\n\n## Observations\nNone.\n\n## Contribution to Main Task\nSettles it."
ANSWER = "## Conclusion\n\\boxed{It is 31 m high [s1].}\n\n## Supporting Information\n- [s1]\n\n## Observations\nSure.\n\n## Contribution to Main Task\nThe first."


@tool(pure=True)
async def search(query: str) -> Observation:
    "Search the library."
    text = f"All about {query}: the tower is 31 m high. PAGE-OF-{query.upper().replace(' ', '-')}"
    return Observation(passages=(Passage(Source(f"{query}.md", query, text), text),))


@tool(pure=True)
async def browse(url: str, intent: str = "") -> Observation:
    "Open a page."
    return Observation(passages=(Passage(Source(url, url, text := f"Opened {url}: the tower is 31 m high"), text),))


BOX = Toolbox(search=search, browse=browse)
BROWSING = make_workflow_tool("search_and_browse", "Have a worker search.", ["subtask"], server="browsing_agent")
TOOLS: dict[str, Tool] = {"search": search, "browse": browse, "search_and_browse": BROWSING}


def calls(dialect: str, *made: tuple[str, dict[str, Any]], thought: str = "I think.") -> Completion:
    """A turn with these calls, in this dialect."""
    if dialect == "native":
        native = tuple(ToolCall("", name, json.dumps(arguments)) for name, arguments in made)
        return Completion(thought, calls=native, finish="calls")
    return Completion(
        thought
        + "".join(f"\n{DIALECTS[dialect].write(Call(name, arguments), TOOLS[name])}" for name, arguments in made)
    )


def hand(*subtasks: str, dialect: str = "xml") -> Completion:
    return calls(dialect, *(("search_and_browse", {"subtask": subtask}) for subtask in subtasks))


def look(query: str, dialect: str = "xml") -> Completion:
    return calls(dialect, ("search", {"query": query}))


def context(planner: list[Any], worker: Any, dialect: str = "xml", **fields: Any) -> tuple[RunContext, ScriptedPolicy]:
    policy = ScriptedPolicy({"planner": planner, "worker": worker})
    return make_context(policy, dialect=dialect, **{"tools": BOX, **fields}), policy


def reader(request: Request) -> Any:
    """A worker that searches for its subtask once, says that it is done, and sums up."""
    task = request.messages[1].values["task"]
    said = [message for message in request.messages if message.role == "assistant"]
    if request.messages[-1].prompt == "matpo_worker_summary":
        return SUMMARY.format(f"{task}: 31 m", request.messages[3].text.split("[s")[1].split("]")[0])
    return look(str(task)) if not said else "<think>PRIVATE</think>I have it."


def told(request: Request) -> str:
    return "\n".join(message.text for message in request.messages)


def of(policy: ScriptedPolicy, conversation: str) -> list[Request]:
    return [request for request in policy.requests if request.conversation == conversation]


async def run(workflow: MATPO, people: RunContext) -> Rollout:
    return await rollout(workflow, QUESTION, people)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_planner_and_workers_take_turns_as_the_rollout_of_the_paper_has_it(dialect: str) -> None:
    """τ = [a₁, τ¹, s₁, a₂, τ², s₂, a₃] and the two summaries of each agent's own rollout."""
    people, policy = context(
        [hand("Height", dialect=dialect), hand("Age", dialect=dialect), r"Known. \boxed{31 m [s1]}", ANSWER],
        [
            *(
                look("tower", dialect),
                calls(dialect, ("browse", {"url": "tower.md"})),
                "31 m.",
                SUMMARY.format("31 m", 1),
            ),
            *(look("age", dialect), "Old.", SUMMARY.format("300 years", 3)),
        ],
        dialect,
    )
    record = await run(MATPO(), people)
    assert (record.status, record.answer) == ("answered", "It is 31 m high [s1].")
    order = [request.conversation for request in policy.requests]
    assert order == ["planner", *["1/worker"] * 4, "planner", *["2/worker"] * 3, "planner", "planner"]
    for name in ("planner", "1/worker", "2/worker"):
        for earlier, later in pairwise(of(policy, name)):
            assert later.messages[: len(earlier.messages)] == earlier.messages
    reports = [message.text for message in of(policy, "planner")[-1].messages if message.prompt == "result"]
    assert [text.count("## Contribution to Main Task") for text in reports] == [1, 1]
    assert "It is 31 m [s1]." in reports[0]
    assert "It is 300 years [s3]." in reports[1]
    assert [(one.subtask.id, one.expert, one.conclusion) for one in record.findings] == [
        ("1", "worker", "It is 31 m [s1]."),
        ("2", "worker", "It is 300 years [s3]."),
    ]
    policy.assert_done()


async def test_the_planner_never_sees_a_page_and_a_worker_nothing_of_the_others() -> None:
    people, policy = context([hand("Height"), hand("Age"), "Known.", ANSWER], reader)
    await run(MATPO(), people)
    for unseen in ("PAGE-OF-", "I have it."):
        assert unseen not in "".join(map(told, of(policy, "planner"))), "it sees the worker's summary alone"
    assert "PAGE-OF-AGE" in told(of(policy, "2/worker")[-1])
    for word in ("Height", "HEIGHT", "search_and_browse"):
        assert word not in "".join(map(told, of(policy, "2/worker")))


@pytest.mark.parametrize("recap", [True, False])
async def test_a_worker_knows_the_main_question_by_the_recap_alone(recap: bool) -> None:
    people, policy = context([hand("Height"), "Known.", ANSWER], reader)
    await run(MATPO(recap=recap), people)
    asked = of(policy, "1/worker")
    assert (QUESTION in asked[0].messages[0].text) is recap
    assert (QUESTION in asked[-1].messages[-1].text) is recap
    assert ("and how old" in "".join(map(told, asked))) is recap
    assert all("Height" in request.messages[1].text for request in asked)


async def test_a_single_agent_works_on_the_question_itself_and_closes_with_a_summary() -> None:
    """The single agent of Fig. 5 and 6: no planner, no subtask; its format is the rate of all its calls."""
    people, policy = context([], [look("tower"), look("tower"), "It is 31 m.", SUMMARY.format("31 m high", 1)])
    record = await run(MATPO(planner=False), people)
    assert {request.conversation for request in policy.requests} == {"1/worker"}
    assert QUESTION in told(policy.requests[0])
    assert record.answer == "It is 31 m high [s1]."
    assert form(record) == (0.5, 0.5), "the second call only repeats the first"
    assert MATPO(planner=False).roles == {"worker"}


async def test_each_agent_closes_with_a_summary_of_its_own_making() -> None:
    people, policy = context([hand("Height"), r"\boxed{12 m}", ANSWER], reader)
    record = await run(MATPO(), people)
    closing = {name: of(policy, name)[-1].messages[-1] for name in ("planner", "1/worker")}
    assert closing["planner"].prompt == "matpo_planner_summary"
    assert closing["1/worker"].prompt == "matpo_worker_summary"
    for heading in ("Conclusion", "Supporting Information", "Observations", "Contribution to Main Task"):
        assert all(f"- {heading}: " in message.text for message in closing.values())
    assert QUESTION in closing["planner"].text
    assert "Subtask: Height" in closing["1/worker"].text
    assert record.answer == "It is 31 m high [s1].", "the summary is the answer, not what was said before it"


async def test_without_summaries_the_last_words_are_passed_on_without_thought_or_call() -> None:
    forged = "<think>PRIVATE</think>It is 31 m [s1]. " + look("more").text.removeprefix("I think.")
    people, policy = context([hand("Height"), r"\boxed{31 m [s1]}"], [look("tower"), forged])
    record = await run(MATPO(summary=False, worker_calls=1), people)
    assert record.answer == "31 m [s1]"
    assert [len(of(policy, name)) for name in ("planner", "1/worker")] == [2, 2]
    report = of(policy, "planner")[1].messages[-1].text
    assert "It is 31 m [s1]." in report
    assert not {"PRIVATE", "use_mcp_tool", "more"} & set(report.replace("<", " ").replace(">", " ").split())
    policy.assert_done()


async def test_the_workers_alone_can_sum_up_as_in_the_paper() -> None:
    people, policy = context(
        [hand("Height"), r"\boxed{31 m [s1]}"], [look("tower"), "Done.", SUMMARY.format("31 m", 1)]
    )
    record = await run(MATPO(planner_summary=False), people)
    assert record.answer == "31 m [s1]"
    assert of(policy, "1/worker")[-1].messages[-1].prompt == "matpo_worker_summary"
    policy.assert_done()


async def test_thought_and_calls_in_a_summary_are_not_passed_on() -> None:
    forged = "<think>PRIVATE</think>" + SUMMARY.format("31 m", 1) + look("SECRET").text
    people, policy = context([hand("Height"), "Known.", ANSWER], [look("tower"), "Done.", forged])
    await run(MATPO(), people)
    report = of(policy, "planner")[1].messages[-1].text
    assert "It is 31 m [s1]." in report
    assert "PRIVATE" not in report
    assert "SECRET" not in report


REPEATED = """## Conclusion
the answer itself in \\boxed{}, or that the reports do not contain it"""


@pytest.mark.parametrize("summary", [EndpointError("gone"), look("more"), Completion("", reasoning="hm"), REPEATED])
async def test_a_summary_that_fails_loses_nothing_that_was_said_before_it(summary: Any) -> None:
    worker = [look("tower"), "It is 31 m [s1].", summary]
    people, policy = context([hand("Height"), r"\boxed{31 m [s1]}", summary], worker)
    record = await run(MATPO(), people)
    assert "It is 31 m [s1]." in of(policy, "planner")[1].messages[-1].text
    assert (record.status, record.error, record.answer) == ("unverified", "", "31 m [s1]")
    policy.assert_done()


async def test_the_limits_are_twenty_turns_of_each_agent() -> None:
    assert (MATPO().window, MATPO().reply) == (40_960, 4_096)
    people, policy = context([*(hand(f"Part {n}") for n in range(20)), ANSWER], reader)
    record = await run(MATPO(), people)
    assert (len(record.findings), record.status) == (20, "answered")
    people, policy = context(
        [hand("Height"), "Known.", ANSWER], [*(look(f"q{n}") for n in range(20)), SUMMARY.format("x", 1)]
    )
    await run(MATPO(), people)
    assert len(of(policy, "1/worker")) == 21
    policy.assert_done()


async def test_at_a_limit_the_last_call_is_made_and_the_summary_sees_it_and_is_told_why() -> None:
    """The published code takes the turn and never makes its call."""
    people, policy = context([hand("Height"), ANSWER], [look("c"), look("b"), SUMMARY.format("31 m", 2)])
    record = await run(MATPO(max_subtasks=1, worker_calls=2), people)
    worker, planner = of(policy, "1/worker")[-1], of(policy, "planner")[-1]
    assert "PAGE-OF-B" in worker.messages[-2].text
    assert worker.messages[-1].prompt == "matpo_worker_summary"
    assert "all 2 calls are used" in worker.messages[-1].text
    assert "It is 31 m [s2]." in planner.messages[-2].text
    assert planner.messages[-1].prompt == "matpo_planner_summary"
    assert "all 1 calls are used" in planner.messages[-1].text
    assert record.status == "answered"
    policy.assert_done()


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_full_context_loses_its_latest_messages_until_the_summary_fits(dialect: str) -> None:
    @tool(name="search", pure=True)
    async def long(query: str) -> Observation:
        "Search the library."
        return Observation(f"PAGE-{query} " + "word " * 2000)

    people, policy = context(
        [hand("Height", dialect=dialect), "Known.", ANSWER],
        [look("a", dialect), look("b", dialect), look("c", dialect), SUMMARY.format("31 m", 1)],
        dialect,
        tools=Toolbox(search=long),
    )
    record = await run(MATPO(window=6_400, reply=500), people)
    last = of(policy, "1/worker")[-1]
    assert [f"PAGE-{page}" in told(last) for page in "abc"] == [True, True, False]
    assert last.messages[-1].prompt == "matpo_worker_summary"
    assert "the context is full" in last.messages[-1].text
    assert sum(count(message.text) for message in last.messages) <= 5_900
    assert last.messages[:2] == of(policy, "1/worker")[0].messages, "subtask and recap stay"
    assert "It is 31 m [s1]." in told(of(policy, "planner")[1])
    assert record.error == ""


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_workers_of_one_turn_run_side_by_side_and_report_in_the_order_of_the_calls(dialect: str) -> None:
    """In the published code they run one after the other, and the barrier would never open."""
    barrier, done = asyncio.Barrier(3), list[str]()

    @tool(name="search")
    async def meeting(query: str) -> Observation:
        "Search the library."
        await barrier.wait()
        await asyncio.sleep(0.02 * (ord("c") - ord(query)))
        done.append(query)
        return Observation(f"about {query}")

    replies = {f"{n}/worker": [look(at, dialect), "Done.", SUMMARY.format(at, n)] for n, at in enumerate("abc", 1)}
    policy = ScriptedPolicy({"planner": [hand(*"ABC", dialect=dialect), "Known.", ANSWER], **replies})
    people = make_context(policy, dialect=dialect, tools=Toolbox(search=meeting))
    async with asyncio.timeout(10):
        record = await run(MATPO(parallel=3), people)
    assert done == ["c", "b", "a"]
    assert [finding.subtask.text for finding in record.findings] == ["A", "B", "C"]
    read = told(of(policy, "planner")[1])
    assert read.index("It is a ") < read.index("It is b ") < read.index("It is c ")
    policy.assert_done()


async def test_one_turn_hands_out_one_subtask_unless_the_run_allows_more() -> None:
    people, policy = context([hand("Height", "Age"), "Known.", ANSWER], reader)
    record = await run(MATPO(), people)
    assert [finding.subtask.text for finding in record.findings] == ["Height"]
    assert "Age" not in told(of(policy, "planner")[-1])
    people, policy = context([], [calls("xml", ("search", {"query": "Height"}), ("search", {"query": "Age"})), ANSWER])
    await run(MATPO(planner=False, summary=False), people)
    assert "PAGE-OF-HEIGHT" in told(policy.requests[-1])
    assert "PAGE-OF-AGE" not in told(policy.requests[-1]), "a worker calls once a turn"


@pytest.mark.parametrize("dialect", ["xml", "tags", "json"])
@pytest.mark.parametrize("results", ["user", "tool"])
async def test_results_are_messages_of_the_user_or_of_the_tool(results: Any, dialect: str) -> None:
    people, policy = context(
        [hand("Height", dialect=dialect), "Known.", ANSWER],
        [look("tower", dialect), "Done.", SUMMARY.format("31 m", 1)],
        dialect,
    )
    record = await run(MATPO(results=results), people)
    for name in ("planner", "1/worker"):
        brought = [message for message in of(policy, name)[-1].messages if message.prompt == "result"]
        assert [message.role for message in brought] == [results]
    assert record.answer == "It is 31 m high [s1]."


@pytest.mark.parametrize("dialect", ["xml", "tags", "json"])
async def test_both_agents_may_go_on_in_one_chain(dialect: str) -> None:
    people, policy = context(
        [hand("Height", dialect=dialect), "Known.", ANSWER],
        [look("tower", dialect), "Done.", SUMMARY.format("31 m", 1)],
        dialect,
        chain=True,
    )
    record = await run(MATPO(), people)
    assert record.answer == "It is 31 m high [s1]."
    asked = of(policy, "1/worker")
    assert [len(request.messages) for request in asked] == [2, 3, 4]
    assert asked[1].continues
    assert "PAGE-OF-TOWER" in asked[1].messages[-1].text
    policy.assert_done()


async def test_calls_are_the_papers_tags_with_its_servers() -> None:
    people, policy = context([hand("Height"), "Known.", ANSWER], reader)
    await run(MATPO(), people)
    planner, worker = of(policy, "planner")[0], of(policy, "1/worker")[0]
    assert MATPO.dialect == "xml"
    assert "Server browsing_agent\n- search_and_browse: " in planner.messages[0].text
    assert "Server search_and_scrape_webpage\n- search: " in worker.messages[0].text
    assert "- browse: " in worker.messages[0].text
    assert planner.stop == ("</use_mcp_tool>",)


@pytest.mark.parametrize(
    ("chosen", "stop"), [(None, ("</use_mcp_tool>",)), ("tags", ("<|end_search_and_browse_call|>",))]
)
async def test_the_papers_dialect_is_the_workflows_own_unless_another_is_set(
    chosen: Any, stop: tuple[str, ...]
) -> None:
    policy = ScriptedPolicy({"planner": [r"\boxed{4}", r"## Conclusion\n\boxed{4}"]})
    settings = Settings(
        docs=(ASEAN,), dialect=chosen, journal=None, workflow="matpo", workflows={"matpo": {"recap": False}}
    )
    async with Hira(settings=settings, policies={"*": policy}) as hira:
        answer = await hira.ask(QUESTION)
    assert answer.rollout.workflow == "matpo"
    assert policy.requests[0].stop == stop


async def test_a_call_that_cannot_be_read_is_told_and_does_not_end_the_rollout() -> None:
    """The published code ends the rollout there, without a word."""
    broken = hand("Height").text.replace('"subtask"', "subtask")
    people, policy = context([broken, hand("Height"), "Known.", ANSWER], reader)
    record = await run(MATPO(), people)
    assert "not valid JSON" in told(of(policy, "planner")[1])
    assert (len(record.findings), record.answer) == (1, "It is 31 m high [s1].")


async def test_an_empty_subtask_is_not_worked_on() -> None:
    people, policy = context([hand(" \n"), "Known.", ANSWER], [])
    record = await run(MATPO(), people)
    assert "the subtask is empty" in told(of(policy, "planner")[1])
    assert not record.findings[0].ok


async def test_a_worker_that_fails_is_a_report_that_says_so_and_may_be_tried_again() -> None:
    worker = [
        look("tower"),
        EndpointError("the endpoint is gone"),
        *(look("tower"), "Done.", SUMMARY.format("31 m", 1)),
    ]
    people, policy = context([hand("Height"), hand("Height"), "Known.", ANSWER], worker)
    record = await run(MATPO(), people)
    first = of(policy, "planner")[1].messages[-1].text
    assert "the worker stopped early (the endpoint is gone). What it had found:\nI think." in first
    assert [finding.ok for finding in record.findings] == [False, True]
    assert record.answer == "It is 31 m high [s1]."
    policy.assert_done()


async def test_without_a_box_the_conclusion_is_the_answer() -> None:
    people, _ = context([hand("Height"), "Known.", ANSWER.replace("\\boxed{", "").replace("}", "")], reader)
    assert (await run(MATPO(), people)).answer == "It is 31 m high [s1]."


async def test_whoever_watches_hears_of_every_subtask() -> None:
    people, _ = context([hand("Height"), "Known.", ANSWER], reader)
    heard: list[Any] = []
    people.events.readers.append(heard.append)
    await run(MATPO(), people)
    told_of = [event for event in heard if isinstance(event, SubtaskIssued | SubtaskAssigned | SubtaskDone)]
    assert [(type(event).__name__, event.subtask) for event in told_of] == [
        ("SubtaskIssued", "1"),
        ("SubtaskAssigned", "1"),
        ("SubtaskDone", "1"),
    ]


async def test_hosts_that_are_named_are_kept_from_the_worker_too() -> None:
    visits = [
        calls("xml", ("browse", {"url": f"https://{host}/x"})) for host in ("a.example", "b.c.example", "d.example")
    ]
    people, policy = context([hand("Height"), "Known.", ANSWER], [*visits, "Done.", SUMMARY.format("31 m", 1)])
    await run(MATPO(blocked_hosts="a.example, c.example", block_leaks=False), people)
    read = told(of(policy, "1/worker")[-1])
    for host, blocked in {"a.example": True, "b.c.example": True, "d.example": False}.items():
        assert (f"https://{host}/x is blocked in this run" in read) is blocked


@pytest.mark.parametrize("block", [True, False])
async def test_sites_that_hold_answers_of_benchmarks_are_kept_from_the_worker(block: bool) -> None:
    leak = "https://data.huggingface.co/gaia"
    result = {"title": "GAIA", "url": leak, "content": "LEAKED"}
    other = {"title": "Varn", "url": "https://varn.example/tower", "content": "OPEN"}
    opened: list[str] = []

    @tool(name="browse")
    async def fetch(url: str) -> Observation:
        "Open a page."
        opened.append(url)
        text = f"TEXT-OF {url}"
        at = leak if "short" in url else url
        return Observation(passages=(Passage(Source(at, "", text), text),))

    with FakeWeb({}, failures=[Served({"results": [result, other]}, "application/json")]) as web:
        async with httpx.AsyncClient() as client:
            box = Toolbox(search=search_tool([open_backend("searxng", client, base_url=web.url)]), browse=fetch)
            visits = [calls("xml", ("browse", {"url": url})) for url in (leak, "https://short.example/x")]
            people, policy = context(
                [hand("Height"), "Known.", ANSWER], [look("tower"), *visits, "Done.", "31 m"], tools=box
            )
            await run(MATPO(block_leaks=block), people)
    read = told(of(policy, "1/worker")[-1])
    assert "OPEN" in read
    assert ("LEAKED" in read) is not block
    assert (f"{leak} is blocked in this run" in read) is block
    assert (leak in opened) is not block
    assert ("TEXT-OF https://short.example/x" in read) is not block, "not by a redirect either"
    assert (leak in str(people.rollout.sources)) is not block


def test_brief_prompts_show_a_call_of_the_search_alone() -> None:
    run, policy = context([hand("How high is the tower?"), "31 m [s1]"], [look("tower"), "It is 31 m high [s1]."])
    asyncio.run(rollout(MATPO(brief=True, summary=False, recap=False), QUESTION, run))
    shown = {request.conversation: str(request.messages[0].text) for request in policy.requests}
    for conversation, name in (("planner", "search_and_browse"), ("1/worker", "search")):
        assert f"<tool_name>{name}</tool_name>" in shown[conversation]
        assert "in angle brackets" not in shown[conversation]
    assert "<tool_name>browse</tool_name>" not in shown["1/worker"]


def test_a_brief_run_without_a_search_is_refused() -> None:
    run, _ = context([hand("How high is the tower?")], [], tools=Toolbox(browse=browse))
    record = asyncio.run(rollout(MATPO(brief=True), QUESTION, run))
    assert "needs a search" in str(record.failure)


def test_brief_prompts_follow_a_change_of_the_dialect() -> None:
    explained = write_examples(DIALECTS["json"], [search])
    (rewritten,) = rewrite_messages([system(explained)], [search], DIALECTS["json"], DIALECTS["tags"])
    assert "<|begin_search_query|>" in rewritten.text
    assert "```json" not in rewritten.text
