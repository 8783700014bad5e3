"""Assign, recall, work, distil, remember: and what happens when the coordinator's model is no use."""

import asyncio
import json
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from hira import Hira
from hira.agents.coordinator import Coordinator
from hira.agents.expert import Account, Task, reason
from hira.agents.experts import Code, DeepSearch, SimpleSearch
from hira.agents.planner import report
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Finding, Subtask
from hira.core.budget import Budget, Limits
from hira.core.errors import EndpointError, ToolError
from hira.core.events import Notice, SubtaskAssigned, SubtaskDone
from hira.core.memory import DualMemory, Fact, Recall, Resource
from hira.core.prompts import Prompt
from hira.evidence import Source
from hira.journal import Journal
from hira.runtime.replay import replay
from hira.runtime.settings import Settings
from hira.runtime.trace import read
from hira.testing import ScriptedPolicy, calling
from hira.testing.script import ScriptError, make_context
from hira.tools import Observation, Passage, Toolbox, tool
from hira.workflows import HiRA


class Told:
    """An expert that says what it was told to say, and keeps the tasks it was given."""

    ability = "search"
    needs: frozenset[str] = frozenset()

    def __init__(self, name: str, description: str, cost: int, says: str = "It is 31 m high [s1].") -> None:
        self.name, self.description, self.cost, self.says = name, description, cost, says
        self.tasks: list[Task] = []

    async def work(self, task: Task, context: RunContext) -> Account:
        self.tasks.append(task)
        context.read(Source("towers.md", "Towers", "The tower is 31 m high.", kind="file"))
        return Account(f"I looked at towers.md [s1]. {self.says}", self.says)


def assigned(expert: str, reason: str = "it suffices") -> str:
    return json.dumps({"reason": reason, "expert": expert})


def distilled(conclusion: str = "31 m [s1]", **more: Any) -> str:
    return json.dumps({"reasoning": "Looked it up.", "conclusion": conclusion, **more})


CHEAP, DEAR = ("quick", "looks a fact up"), ("deep", "explores many pages at length")


def coordinator(replies: Any, **switches: bool) -> tuple[Coordinator, ScriptedPolicy, list[Told], list[Any]]:
    policy = ScriptedPolicy({"coordinator": replies})
    context = make_context(policy, files=(Path("data/plan.csv"),))
    heard: list[Any] = []
    context.events.readers.append(heard.append)
    experts = [Told(*DEAR, 3), Told(*CHEAP, 1)]
    return Coordinator(context, experts, **{"faithful": True, **switches}), policy, experts, heard


TASK = Subtask("1", "How high is the tower?")


async def test_the_expert_is_chosen_with_a_reason_and_the_finding_is_distilled() -> None:
    facts = [{"text": "The tower is 31 m high.", "sources": "s1"}]
    resources = [{"description": "all towers", "path": "towers.md"}]
    coord, policy, experts, heard = coordinator([assigned("deep"), distilled(facts=facts, resources=resources)])
    memory = coord.context.rollout.memory
    (finding,) = await coord.delegate([TASK], memory)
    assert (finding.expert, finding.reasoning, finding.conclusion) == ("deep", "Looked it up.", "31 m [s1]")
    assert memory.facts == [Fact("The tower is 31 m high.", ("s1",), "1")]
    assert memory.resources == [Resource("all towers", "towers.md", "1")]
    assert next(one for one in heard if isinstance(one, SubtaskAssigned)).reason == "it suffices"
    listed = policy.requests[0].messages[0].text
    assert listed.index("cheapest first") < listed.index("quick:") < listed.index("deep:")
    assert TASK.text in listed
    assert listed.index('"reason"') < listed.index('"expert"'), "the reason comes before the choice"
    assert list(policy.requests[0].schema["properties"]) == ["reason", "expert"]  # type: ignore[index]
    assert "looked at towers.md" in policy.requests[1].messages[0].text, "it is the work that is distilled"
    assert experts[0].tasks[0].files == (Path("data/plan.csv"),)
    policy.assert_done()


async def test_an_unknown_expert_is_asked_about_once_more_and_never_taken_silently() -> None:
    coord, policy, _, _ = coordinator([assigned("wizard"), assigned("quick"), distilled()])
    (finding,) = await coord.delegate([TASK], coord.context.rollout.memory)
    assert finding.expert == "quick"
    assert "expert: input should be 'quick' or 'deep'" in policy.requests[1].messages[-1].text
    assert policy.requests[0].schema["properties"]["expert"]["enum"] == ["quick", "deep"]  # type: ignore[index]


async def test_a_choice_that_stays_unusable_falls_back_to_the_cheapest_expert_and_says_so() -> None:
    coord, _, _, heard = coordinator(["I would say: deep", "deep!", distilled()])
    (finding,) = await coord.delegate([Subtask("1", "Explore many pages about towers")], coord.context.rollout.memory)
    assert finding.expert == "quick"
    assert "assigned to the cheapest expert" in next(one.text for one in heard if isinstance(one, Notice))


async def test_a_reply_that_cannot_be_read_is_not_shown_again() -> None:
    coord, policy, _, _ = coordinator(["deep deep deep", assigned("deep"), distilled()])
    await coord.delegate([TASK], coord.context.rollout.memory)
    (asked,) = policy.requests[1].messages
    assert "deep deep deep" not in asked.text
    assert "holds no JSON object" in asked.text


async def test_nothing_to_decide_and_nothing_to_condense_takes_no_call() -> None:
    policy = ScriptedPolicy({"coordinator": []})
    coord = Coordinator(make_context(policy), [Told(*CHEAP, 1)])
    (finding,) = await coord.delegate([TASK], coord.context.rollout.memory)
    assert finding.conclusion == "It is 31 m high [s1]."
    assert coord.context.rollout.memory.facts == [Fact("It is 31 m high [s1].", ("s1",), "1")]
    assert policy.requests == []


async def test_expert_and_notes_are_chosen_in_one_call() -> None:
    reply = json.dumps({"reason": "it suffices", "expert": "quick", "chosen": [3, 1, 99]})
    coord, policy, experts, _ = coordinator([reply], faithful=False)
    filled(coord, 8)
    await coord.delegate([TASK], coord.context.rollout.memory)
    assert len(experts[1].tasks[0].recall) == 2
    assert f"3. {experts[1].tasks[0].recall.lines[0]}" in policy.requests[0].messages[0].text
    policy.assert_done()


async def test_an_expert_that_came_to_no_conclusion_does_not_get_the_same_subtask_again() -> None:
    coord, policy, (deep, quick), _ = coordinator([assigned("quick"), assigned("quick")], faithful=False)
    quick.says = ""
    again = Subtask("2", TASK.text)
    findings = [(await coord.delegate([one], DualMemory()))[0] for one in (TASK, again)]
    assert [(one.expert, one.ok) for one in findings] == [("quick", False), ("deep", True)]
    assert (len(quick.tasks), len(deep.tasks), len(policy.requests)) == (1, 1, 1)
    deep.says = ""
    (third,) = await coord.delegate([Subtask("3", "How wide is it?")], DualMemory())
    assert third.expert == "quick", "it failed at another subtask only"


@pytest.mark.parametrize(
    ("computes", "searches", "chosen", "conclusion", "ok"),
    [
        ("It is 47 m high.", "It is 31 m high [s1].", "quick", "It is 31 m high [s1].", True),
        ("Edda Kroll measured it.", "It is 31 m high [s1].", "quick", "It is 31 m high [s1].", True),
        ("I could not find the height.", "It is 31 m high [s1].", "quick", "It is 31 m high [s1].", True),
        ("It is 47 m high.", "The documents do not say how high it is.", "sums", "It is 47 m high.", False),
        ("It is 31 m high.", "never asked", "sums", "It is 31 m high.", True),
    ],
)
async def test_an_expert_that_searches_tries_a_subtask_after_one_that_made_up_its_answer(
    computes: str, searches: str, chosen: str, conclusion: str, *, ok: bool
) -> None:
    sums, quick = Told("sums", "computes", 2, computes), Told(*CHEAP, 1, searches)
    sums.ability = "code"
    policy = ScriptedPolicy({"coordinator": [assigned("sums")]})
    coord = Coordinator(make_context(policy), [sums, quick])
    (finding,) = await coord.delegate([TASK], coord.context.rollout.memory)
    assert (finding.expert, finding.conclusion, finding.ok) == (chosen, conclusion, ok)
    assert [fact.text for fact in coord.context.rollout.memory.facts] == ([conclusion] if ok else [])
    assert len(quick.tasks) == (searches != "never asked")
    policy.assert_done()


async def test_an_answer_is_doubted_once_all_that_run_side_by_side_have_read() -> None:
    class Guess(Told):
        ability = "code"

        async def work(self, task: Task, context: RunContext) -> Account:
            return Account(self.says, self.says)

    class Slow(Told):
        async def work(self, task: Task, context: RunContext) -> Account:
            await asyncio.sleep(0.01)
            return await super().work(task, context)

    sums, quick = Guess("sums", "computes", 2), Slow(*CHEAP, 1)
    policy = ScriptedPolicy({"coordinator": [assigned("sums"), assigned("quick")]})
    coord = Coordinator(make_context(policy), [sums, quick])
    both = [Subtask("1", "How high is the tower?"), Subtask("2", "How old is the tower?")]
    findings = await coord.delegate(both, coord.context.rollout.memory)
    assert [finding.expert for finding in findings] == ["sums", "quick"]
    assert len(quick.tasks) == 1, "in a replay the first expert may be done later"


async def test_both_experts_of_a_subtask_count_as_having_had_it() -> None:
    sums, quick = Told("sums", "computes", 2, "It is 47 m high."), Told(*CHEAP, 1, "The documents do not say it.")
    sums.ability = "code"
    policy = ScriptedPolicy({"coordinator": [assigned("sums"), assigned("sums")]})
    context = make_context(policy, budget=Budget(roles={"sums": Limits(subtasks=2), "quick": Limits(subtasks=1)}))
    coord = Coordinator(context, [sums, quick, Told(*DEAR, 3)])
    memory = context.rollout.memory
    findings = [(await coord.delegate([Subtask(number, TASK.text)], memory))[0] for number in ("1", "2")]
    assert [(finding.expert, finding.ok) for finding in findings] == [("sums", False), ("deep", True)]
    (third,) = await coord.delegate([Subtask("3", "How wide is it?")], memory)
    assert (third.expert, third.conclusion, len(quick.tasks)) == ("deep", "It is 31 m high [s1].", 1)


@pytest.mark.parametrize(
    ("says", "expert", "ok"),
    [("The tower of Alta is 31 m high [s1].", "simple_search", True), ("The documents do not say it.", "code", False)],
)
async def test_a_record_has_the_turns_of_both_experts_and_replays(
    tmp_path: Path, says: str, expert: str, *, ok: bool
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "alta.md").write_text("The tower of Alta is 31 m high.\n", encoding="utf-8")
    question = "How high is the tower of Alta?"
    script = {
        "planner": [calling("subtask", task=question), rf"\boxed{{{says}}}"],
        "coordinator": [assigned("code")],
        "code": [r"\boxed{The tower of Alta is 47 m high.}"],
        "simple_search": [says],
    }
    settings = Settings(docs=(tmp_path / "docs",), verify="lexical", journal=tmp_path / "journal.sqlite")
    async with Hira(settings=settings, workflow="hira", policies={"*": ScriptedPolicy(script)}) as hira:
        answer = await hira.ask(question)
    assert list(answer.rollout.trajectories) == ["planner", "1/assign/coordinator", "1/code", "1/simple_search"]
    with closing(Journal(tmp_path / "journal.sqlite")) as journal:
        assert (await replay(journal, answer.rollout.run)).same
        (subtask,) = read(journal, answer.rollout.run).subtasks
    assert (subtask.expert, subtask.ok, subtask.reason) == (expert, ok, "code states 47 without a source")


async def test_an_expert_of_ones_own_may_know_what_nothing_that_was_read_says() -> None:
    stock, quick = Told("stock", "knows the stock", 2, "There are 47 lamps."), Told(*CHEAP, 1)
    stock.ability = "stock"
    coord = Coordinator(make_context(ScriptedPolicy([assigned("stock")])), [stock, quick])
    (finding,) = await coord.delegate([TASK], coord.context.rollout.memory)
    assert (finding.expert, finding.ok, quick.tasks) == ("stock", True, [])


async def test_a_faithful_coordinator_takes_what_the_chosen_expert_says() -> None:
    sums, quick = Told("sums", "computes", 2, "It is 47 m high."), Told(*CHEAP, 1)
    sums.ability = "code"
    coord = Coordinator(
        make_context(ScriptedPolicy([assigned("sums"), distilled("47 m")])), [sums, quick], faithful=True
    )
    (finding,) = await coord.delegate([TASK], coord.context.rollout.memory)
    assert (finding.expert, finding.conclusion, quick.tasks) == ("sums", "47 m", [])


async def test_a_long_account_is_condensed() -> None:
    class Thorough(Told):
        async def work(self, task: Task, context: RunContext) -> Account:
            return Account("I looked at a page. " * 600, "It is 31 m high.")

    policy = ScriptedPolicy({"coordinator": [distilled()]})
    (finding,) = await Coordinator(make_context(policy), [Thorough(*CHEAP, 1)]).delegate([TASK], DualMemory())
    assert (finding.reasoning, finding.conclusion) == ("Looked it up.", "31 m [s1]")


async def test_a_malformed_distillation_is_asked_for_once_more_with_the_error() -> None:
    coord, policy, _, _ = coordinator([assigned("quick"), '{"reasoning": "x"}', distilled("31 m [s1]")])
    (finding,) = await coord.delegate([TASK], coord.context.rollout.memory)
    assert finding.conclusion == "31 m [s1]"
    assert "conclusion: field required" in policy.requests[2].messages[-1].text


class Eye(Told):
    """An expert whose work ends in an error, or returns anything."""

    def __init__(self, made: Any) -> None:
        super().__init__("eye", "looks at pictures", 1)
        self.made = made

    async def work(self, task: Task, context: RunContext) -> Account:
        if isinstance(self.made, BaseException):
            raise self.made
        returned: Account = self.made
        return returned


@pytest.mark.parametrize(
    ("made", "told", "is_fault"),
    [
        (EndpointError("the model cannot see pictures"), "cannot see pictures", False),
        (KeyError("height"), "KeyError: 'height'", True),
        (
            ExceptionGroup("tasks", [ExceptionGroup("inner", [KeyError("height")]), OSError("x")]),
            "KeyError: 'height'",
            True,
        ),
        ("31 m", "its work must return an Account(reasoning, conclusion), got '31 m'", True),
        (Account("Measured.", cast("str", 31)), "its Account must contain only strings, not in conclusion", True),
    ],
)
async def test_an_expert_that_fails_is_a_finding_that_says_so_and_the_others_go_on(
    made: Any, told: str, is_fault: bool, caplog: pytest.LogCaptureFixture
) -> None:
    context, heard = make_context(ScriptedPolicy({"coordinator": [distilled()]})), list[Any]()
    context.events.readers.append(heard.append)
    coord = Coordinator(context, [Eye(made), Told("quick", "looks a fact up", 1)], transfer=False)
    findings = await coord.delegate([Subtask("1", "pictures"), Subtask("2", "a fact")], context.rollout.memory)
    assert [(finding.expert, finding.ok) for finding in findings] == [("eye", False), ("quick", True)]
    assert told in findings[0].conclusion
    assert [told in one.text and one.important for one in heard if isinstance(one, Notice)] == [True] * is_fault
    assert [one.ok for one in heard if isinstance(one, SubtaskDone)].count(False) == 1
    assert [one.message for one in caplog.records] == ["a fault in the expert 'eye'"] * is_fault


@pytest.mark.parametrize(
    "error",
    [
        ScriptError("no reply left"),
        ExceptionGroup("tasks", [OSError("x"), ExceptionGroup("inner", [ScriptError("no reply left")])]),
        KeyboardInterrupt(),
    ],
)
async def test_a_check_that_failed_and_an_interrupt_are_no_findings(error: BaseException) -> None:
    coord = Coordinator(make_context([]), [Eye(error)])
    with pytest.raises(ScriptError if isinstance(error, Exception) else KeyboardInterrupt):
        await coord.delegate([TASK], coord.context.rollout.memory)


async def test_nothing_outlives_a_run_that_a_failed_check_ends() -> None:
    ended: list[str] = []

    class Waiting(Told):
        async def work(self, task: Task, context: RunContext) -> Account:
            if task.id == "1":
                await asyncio.sleep(0)
                raise ScriptError("no reply left")
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(task.id)
            return await super().work(task, context)

    coord = Coordinator(make_context([]), [Waiting(*CHEAP, 1)])
    with pytest.raises(ScriptError):
        await coord.delegate([Subtask("1", "a"), Subtask("2", "b"), Subtask("3", "c")], coord.context.rollout.memory)
    assert sorted(ended) == ["2", "3"]


async def test_facts_keep_only_sources_that_were_read_by_id_or_by_their_place() -> None:
    facts = [
        {"text": "by id", "sources": ["s1"]},
        {"text": "by place", "sources": ["towers.md"]},
        {"text": "several ids in one entry", "sources": ["s1, s2"]},
        {"text": "by its address with a slash", "sources": "http://data.s1.amazonaws.example/f/"},
        {"text": "an address nobody read", "sources": ["https://data.s1.example/g"]},
        {"text": "in brackets", "sources": ["table s1 on page [s2]"]},
        {"text": "made up", "sources": ["s77", "https://nowhere.example"]},
        {"text": "said in the text [s1]"},
    ]
    coord, _, _, _ = coordinator([assigned("quick"), distilled(facts=facts)])
    coord.context.read(Source("towers.md", "Towers", "The tower is 31 m high.", kind="file"))
    coord.context.read(Source("https://data.s1.amazonaws.example/f", "Data", "31"))
    await coord.delegate([TASK], coord.context.rollout.memory)
    told = [fact.sources for fact in coord.context.rollout.findings[0].facts]
    assert told == [("s1",), ("s1",), ("s1", "s2"), ("s2",), (), ("s2",), (), ("s1",)]


async def test_resources_keep_only_what_was_read_or_listed_or_came_with_the_question() -> None:
    paths = [
        "towers.md",
        "s1",
        "https://towers.example/list/",
        "https://named.example/on-the-page",
        "data/plan.csv",
        "https://towers.example/invented",
        "tower_heights",
    ]
    resources = [{"description": f"no {number}", "path": path} for number, path in enumerate(paths)]
    coord, _, _, _ = coordinator([assigned("quick"), distilled(resources=resources)])
    coord.context.read(Source("towers.md", "Towers", "See https://named.example/on-the-page.", kind="file"))
    coord.context.read(Source("https://towers.example/list", "List", "31 m"))
    await coord.delegate([TASK], coord.context.rollout.memory)
    kept = [resource.path for resource in coord.context.rollout.memory.resources]
    assert kept == ["towers.md", *paths[2:5]]


async def test_a_refusal_is_remembered_only_with_what_it_states() -> None:
    facts = [
        {"text": "The documents do not say who painted the mill."},
        {"text": "The documents do not say who painted the mill, but it was built in 1742."},
        {"text": "The mill was built in 1742."},
    ]
    coord, _, _, _ = coordinator([assigned("quick"), distilled(facts=facts)])
    await coord.delegate([TASK], coord.context.rollout.memory)
    assert [fact.text for fact in coord.context.rollout.memory.facts] == [fact["text"] for fact in facts[1:]]


async def test_memory_grows_in_the_order_of_the_subtasks_whoever_is_done_first() -> None:
    class Timed(Told):
        async def work(self, task: Task, context: RunContext) -> Account:
            await asyncio.sleep(0.03 if task.id == "1" else 0)
            return await super().work(task, context)

    def distil(request: Any) -> str:
        number = request.conversation.split("/")[0]
        return distilled(facts=[{"text": f"Fact of subtask number {number} alone.", "sources": "s1"}])

    policy = ScriptedPolicy({"coordinator": distil})
    coord = Coordinator(make_context(policy), [Timed(*CHEAP, 1)], faithful=True)
    memory = coord.context.rollout.memory
    await coord.delegate([Subtask("1", "slow"), Subtask("2", "fast")], memory)
    assert [fact.subtask for fact in memory.facts] == ["1", "2"]


def filled(coord: Coordinator, n: int) -> None:
    for at in range(n):
        coord.context.rollout.memory.add_fact(Fact(f"Tower {at} is {at} m high.", (f"s{at}",)))


async def test_up_to_four_entries_are_recalled_without_asking_the_model() -> None:
    coord, policy, experts, _ = coordinator([assigned("quick")], faithful=False)
    filled(coord, 4)
    await coord.delegate([TASK], coord.context.rollout.memory)
    assert len(experts[1].tasks[0].recall) == 4
    policy.assert_done()


async def test_above_that_the_model_chooses_and_never_more_than_five() -> None:
    coord, policy, experts, _ = coordinator(
        [assigned("quick"), json.dumps({"chosen": [3, 3, 3, 3, 3, 1, 99, 2, 4, 5, 6]}), distilled()]
    )
    filled(coord, 8)
    await coord.delegate([TASK], coord.context.rollout.memory)
    recall = experts[1].tasks[0].recall
    assert len(recall) == 5
    assert f"3. {recall.lines[0]}" in policy.requests[1].messages[0].text


async def test_a_choice_of_memory_that_cannot_be_read_falls_back_to_relevance() -> None:
    coord, _, experts, _ = coordinator([assigned("quick"), "all of them", "really", distilled()])
    filled(coord, 8)
    await coord.delegate([Subtask("1", "Tower 7")], coord.context.rollout.memory)
    recall = experts[1].tasks[0].recall
    assert len(recall) == 5
    assert recall.lines[0].startswith("Tower 7")


async def test_without_memory_nothing_is_recalled_asked_for_or_kept() -> None:
    facts = [{"text": "kept nowhere", "sources": ["s1"]}]
    coord, policy, experts, _ = coordinator([assigned("quick"), distilled(facts=facts)], remember=False)
    filled(coord, 3)
    (finding,) = await coord.delegate([TASK], coord.context.rollout.memory)
    assert len(experts[1].tasks[0].recall) == 0
    assert len(coord.context.rollout.memory.facts) == 3
    assert (finding.conclusion, finding.facts, finding.resources) == ("31 m [s1]", (), ())
    assert '"conclusion"' in policy.requests[-1].messages[0].text
    assert '"facts"' not in policy.requests[-1].messages[0].text
    assert set(policy.requests[-1].schema["properties"]) == {"reasoning", "conclusion"}  # type: ignore[index]


async def test_without_transfer_no_model_chooses_and_the_planner_reads_the_raw_conclusion() -> None:
    coord, policy, _, _ = coordinator([distilled("distilled", facts=[{"text": "A fact."}])], transfer=False)
    (finding,) = await coord.delegate([Subtask("1", "look a fact up")], coord.context.rollout.memory)
    assert (finding.expert, finding.reasoning, finding.conclusion) == ("quick", "", "It is 31 m high [s1].")
    assert [fact.text for fact in coord.context.rollout.memory.facts] == ["A fact."], "memory is a mechanism of its own"
    assert '"facts"' in policy.requests[-1].messages[0].text
    assert '"conclusion"' not in policy.requests[-1].messages[0].text
    policy.assert_done()


async def test_a_subtask_and_a_conclusion_about_code_reach_their_readers_as_they_were_written() -> None:
    task = r"What does std::vector<Tool> hold, and what does \boxed do? <|im_end|>"
    coord, policy, _, _ = coordinator([assigned("quick"), distilled()])
    await coord.delegate([Subtask("1", task)], coord.context.rollout.memory)
    for request in policy.requests:
        assert task.replace("<|im_end|>", "‹|im_end|›") in request.messages[0].text
    told = report(Finding(TASK, "quick", "I read <answer>.", "A vector<Tool> [s1]"))
    assert "I read <answer>." in told
    assert "A vector<Tool> [s1]" in told


RECALLED = [Fact("The tower of Arnis is 31 m high.", ("s1",))]


@pytest.mark.parametrize("expert", [SimpleSearch(), DeepSearch(), Code()])
async def test_what_is_recalled_and_the_attached_paths_really_reach_the_experts_prompt(expert: Any) -> None:
    """The published HiRA code computes memory and gives it to nobody."""
    from contextlib import asynccontextmanager

    from hira.tools import Observation, Tool, Toolbox

    async def nothing(_: Any) -> Observation:
        return Observation("nothing")

    def named(name: str) -> Tool:
        return Tool(name, name, {"type": "object", "properties": {"query": {"type": "string"}}}, nothing)

    @asynccontextmanager
    async def python(_: str) -> Any:
        yield named("python")

    policy = ScriptedPolicy({"*": lambda _: '{"queries": ["q"]} done'})
    context = make_context(policy, tools=Toolbox(search=named("search"), python=python), files=(Path("data/plan.csv"),))
    recall = Recall((*RECALLED, Resource("heights", "data/heights.csv")))
    await expert.work(Task("1", "How high is it?", recall, context.files), context)
    prompt = policy.requests[0].messages[0].text
    assert "The tower of Arnis is 31 m high. (source: s1)" in prompt
    assert "heights: data/heights.csv" in prompt
    assert "data/plan.csv" in prompt


async def test_a_short_task_is_its_own_query_also_with_its_facts_and_any_other_task_is_planned() -> None:
    asked: list[str] = []

    @tool
    async def search(query: str) -> str:
        "Search."
        asked.append(query)
        return "nothing"

    short, long = (" ".join(f"w{at}" for at in range(many)) for many in (25, 26))
    fact, resource = Fact(" ".join(f"f{at}" for at in range(30))), Resource("heights", "data/heights.csv")
    planned = ["q0", "q1", "q2"]
    policy = ScriptedPolicy({"*": lambda _: json.dumps({"queries": [*planned, "q3"]})})
    for task, queries in (
        (Task("1", short), [short]),
        (Task("1", short, Recall((resource, fact))), [short, f"{short} {' '.join(fact.text.split()[:25])}"]),
        (Task("1", long), planned),
        (Task("1", short, files=(Path("data/plan.csv"),)), planned),
        (Task("1", short, faithful=True), planned),
    ):
        asked.clear()
        await SimpleSearch().work(task, make_context(policy, tools=Toolbox(search=search)))
        assert asked == queries, task


async def test_an_expert_is_one_small_file(tmp_path: Path) -> None:
    """`reason` gives a role tools inside its reasoning; the rest of an expert is its name and its prompt."""
    (tmp_path / "poet.md").write_text("{{tools}}{{limit}}{{task}}{{files}}{{known}}", encoding="utf-8")
    prompt = Prompt(str(tmp_path / "poet.py"), "poet")

    class Poet(Told):
        async def work(self, task: Task, context: RunContext) -> Account:
            return await reason(context.conversation(self.name, task.id), task, prompt, [])

    policy = ScriptedPolicy({"poet": [r"\boxed{A verse.}"], "coordinator": [distilled("A verse.")]})
    coord = Coordinator(make_context(policy), [Poet("poet", "writes verse", 1)])
    (finding,) = await coord.delegate([Subtask("1", "Write a verse.")], coord.context.rollout.memory)
    assert finding.conclusion == "A verse."
    workflow = HiRA(experts=(Poet("poet", "writes verse", 1),))
    assert [expert.name for expert in workflow.available(coord.context)] == ["poet"]
    assert "poet" in workflow.roles


@pytest.mark.parametrize(("expert", "ok"), [(SimpleSearch(), False), (DeepSearch(), True)])
@pytest.mark.parametrize("faithful", [False, True])
async def test_a_search_that_fails_is_never_remembered_as_a_fact(expert: Any, ok: bool, faithful: bool) -> None:
    @tool
    async def search(query: str) -> Observation:
        "Search."
        raise ToolError("no connection")

    def distil(request: Any) -> str:
        facts = [{"text": "The search failed."}] if '"facts"' in request.messages[0].text else []
        return distilled("Nothing was found.", facts=facts)

    script = {
        "simple_search": lambda _: '{"queries": ["tower"]}',
        "deep_search": ["<|begin_search_query|>tower<|end_search_query|>", "I could not find it: the search failed."],
        "coordinator": distil,
    }
    context = make_context(ScriptedPolicy(script), tools=Toolbox(search=search))
    (finding,) = await Coordinator(context, [expert], faithful=faithful).delegate([TASK], context.rollout.memory)
    assert (finding.ok, finding.facts, context.rollout.memory.facts) == (ok, (), [])
    if not ok:
        assert finding.conclusion == "simple_search failed: search failed: no connection"


@pytest.mark.parametrize(("name", "kept"), [("search", []), ("book", ["It is done."])])
async def test_a_search_without_a_hit_brings_no_fact_and_any_other_call_that_succeeds_does(
    name: str, kept: list[str]
) -> None:
    @tool(name=name)
    async def quiet(query: str) -> Observation:
        "Search, or book."
        return Observation("0 of 12")

    said = [calling(name, query="tower"), "It is done."]
    box = Toolbox(scoped={"deep_search": (quiet,)})
    context = make_context(ScriptedPolicy({"deep_search": said}), dialect="native", tools=box)
    await Coordinator(context, [DeepSearch()]).delegate([TASK], context.rollout.memory)
    assert [fact.text for fact in context.rollout.memory.facts] == kept


async def test_what_an_expert_found_before_its_endpoint_failed_reaches_the_planner() -> None:
    @tool
    async def search(query: str) -> Observation:
        "Search."
        return Observation(passages=(Passage(Source("t.md", "T", "The tower is 31 m high."), f"31 m, says {query}"),))

    policy = ScriptedPolicy(
        {
            "deep_search": ["<|begin_search_query|>tower<|end_search_query|>", EndpointError("the endpoint is gone")],
            "coordinator": lambda request: distilled("It is 31 m high [s1]."),
        }
    )
    context = make_context(policy, tools=Toolbox(search=search))
    (finding,) = await Coordinator(context, [DeepSearch()], faithful=True).delegate([TASK], context.rollout.memory)
    assert not finding.ok
    assert "the endpoint is gone" in finding.conclusion
    assert "It is 31 m high [s1]." in finding.conclusion
    asked = next(request for request in policy.requests if request.conversation.endswith("coordinator"))
    assert "31 m, says tower" in asked.messages[0].text
