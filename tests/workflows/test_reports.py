"""Reports end to end: MaMs and its ReAct baseline offline, in every dialect, resumed, bounded, and on a real server."""

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hira import Hira, Settings
from hira.core.errors import EndpointError, OutOfBudget
from hira.core.policy import Completion, Request, Watch
from hira.evidence import Source, find_cited
from hira.policies.dialects import DIALECTS
from hira.policies.offline import OfflinePolicy
from hira.testing import ScriptedPolicy
from hira.testing.script import make_context
from hira.tools import Observation, Passage, Tool, Toolbox
from hira.tools.documents import Index, browse_documents, search_documents
from hira.workflows import MaMs, rollout
from hira.workflows.baselines.react_report import ReActReport
from hira.workflows.bound import Sizes

LIBRARY = Path(__file__).parent.parent / "data" / "library"
TOPIC = "Lighthouses, tides and ferries of the coast"


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    made = Index([LIBRARY])
    yield made
    made.close()


@pytest.fixture
def tools(index: Index) -> Toolbox:
    return Toolbox(search=search_documents(index), browse=browse_documents(index))


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_offline_writes_a_report_whose_citations_hold(tools: Toolbox, dialect: str) -> None:
    record = await rollout(MaMs(), TOPIC, make_context(OfflinePolicy(), dialect=dialect, tools=tools))
    assert record.error == ""
    assert record.status == "answered"
    assert record.answer.startswith(f"# {TOPIC}\n\n- ")
    assert "spring tides" in record.answer
    assert {citation.verdict for citation in record.citations} == {"supported"}


async def test_offline_writes_in_chinese_from_chinese_documents(tools: Toolbox) -> None:
    record = await rollout(MaMs(), "灯塔和渔港的历史", make_context(OfflinePolicy(), tools=tools))
    assert record.status == "answered"
    assert "灯塔位于港口东侧，高三十八米，由当地花岗岩建成。" in record.answer


class Failing:
    """The embedded policy, with an endpoint that goes away at the `at`-th call."""

    model = "offline"

    def __init__(self, at: int) -> None:
        self.at, self.made = at, 0
        self.inner = OfflinePolicy()

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        self.made += 1
        if self.made >= self.at and request.conversation.endswith("search"):
            raise EndpointError("the endpoint went away")
        return await self.inner.complete(request, watch)

    async def aclose(self) -> None:
        pass


async def test_a_report_that_broke_off_leaves_what_was_written_and_goes_on_where_it_ended(tmp_path: Path) -> None:
    settings = Settings(model="offline", docs=(LIBRARY,), journal=tmp_path / "journal.sqlite", workflow="mams")
    async with Hira(settings=settings) as hira:
        whole = await hira.ask(TOPIC)
    failing = Failing(4)
    async with Hira(settings=settings, policies={"*": failing}) as hira:
        broken = await hira.ask(TOPIC)
    assert broken.status == "failed"
    assert broken.text
    assert len(broken.rollout.memory.facts) > 4
    counting = Failing(99)
    async with Hira(settings=settings, policies={"*": counting}) as hira:
        run = await hira.resume(broken.rollout.run)
        await run.work()
    assert run.answer.text == whole.text
    assert counting.made == whole.rollout.usage.calls - 3


def text_of(number: int, words: int) -> str:
    return " ".join(f"Page {number} word {at}." for at in range(words))


def pages(*texts: str) -> Tool:
    async def search(arguments: Any) -> Observation:
        found = [Source(f"{at}.txt", f"Page {at}", text) for at, text in enumerate(texts)]
        return Observation(passages=tuple(Passage(one, one.text) for one in found))

    parameters = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    return Tool("search", "searches", parameters, search)


def quiet(search: list[Any]) -> ScriptedPolicy:
    """The Search agent as scripted; the others take nothing up."""
    nothing = '{"keep": ["m1-m99"], "memory": []}'
    return ScriptedPolicy(
        {"search": search, "state": lambda _: nothing, "report": lambda _: "<report>unchanged</report>"}
    )


def query(text: str) -> str:
    return f"<|begin_search_query|>{text}<|end_search_query|>"


async def test_what_was_read_before_is_not_read_again() -> None:
    policy = quiet([query("one"), query("two"), "Done."])
    record = await rollout(MaMs(), TOPIC, make_context(policy, tools=Toolbox(search=pages("The tide rises."))))
    assert [name for name in record.trajectories if name.endswith("state")] == ["1.1/state"]


async def test_more_than_the_window_is_left_for_a_later_turn_and_the_search_agent_is_told() -> None:
    texts = [text_of(at, 60) for at in range(10)]
    policy = quiet([query("all"), query("the rest"), "Done."])
    await rollout(MaMs(chunk=400, window=1_200), TOPIC, make_context(policy, tools=Toolbox(search=pages(*texts))))
    prompts = {one.conversation: one.messages[0].text for one in policy.requests}
    read = [re.findall(r"Page (\d) word 0", prompts[f"{turn}.{at}/state"]) for turn in (1, 2) for at in (1, 2, 3)]
    assert read == [["0"], ["1"], ["2"], ["3"], ["4"], ["5"]]
    assert "- too long for one turn, not read: s4, s5, s6, s7, s8, s9, s10" in prompts["2/search"]


async def test_a_page_of_which_an_extract_was_seen_can_be_opened() -> None:
    async def search(arguments: Any) -> Observation:
        source = Source("https://example.org/tides", "Tides", "The tide rises …", kind="hit")
        return Observation(passages=(Passage(source, source.text),))

    async def browse(arguments: Any) -> Observation:
        source = Source(arguments["url"], "Tides", "The tide rises twice a day.")
        return Observation(passages=(Passage(source, source.text),))

    def opened(request: Request) -> str:
        prompt = request.messages[0].text
        assert "- s1: Tides (https://example.org/tides), an extract" in prompt
        return "<|begin_click_link|>https://example.org/tides<|end_click_link|>"

    def end(request: Request) -> str:
        assert "- s1: Tides (https://example.org/tides)\n" in request.messages[0].text, "no extract any more"
        return "Done."

    parameters = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    url = {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}
    box = Toolbox(search=Tool("search", "searches", parameters, search), browse=Tool("browse", "opens", url, browse))
    policy = ScriptedPolicy(
        {
            "search": [query("tides"), opened, end],
            "state": ['{"memory": [{"text": "The tide rises."}]}', '{"keep": ["m1"]}'],
            "report": ["<report># Tides</report>", "<report># Tides\n\nThe tide rises twice a day [s1].</report>"],
        }
    )
    record = await rollout(MaMs(), TOPIC, make_context(policy, tools=box))
    assert (record.status, record.answer) == ("answered", "# Tides\n\nThe tide rises twice a day [s1].")


async def test_react_reports_in_one_conversation_and_its_last_turn_is_the_report() -> None:
    policy = ScriptedPolicy({"report": [query("one"), query("two"), "# Report\n\nPage 0 word 1. [s1]"]})
    record = await rollout(
        ReActReport(max_turns=3), TOPIC, make_context(policy, tools=Toolbox(search=pages(text_of(0, 5))))
    )
    assert find_cited(record.answer) == ["s1"]
    assert record.answer.startswith("# Report")
    assert len(record.trajectories) == 1
    assert "all 3 turns are used. Write the whole report now" in policy.requests[-1].messages[-1].text
    first, second, _ = policy.requests
    assert second.messages[: len(first.messages)] == first.messages
    policy.assert_done()


async def test_a_react_report_may_read_condensed_results_with_their_ids_and_no_page() -> None:
    """MaMs, section 4.1: for ReAct the results are summarised."""
    said = {"report": [query("one"), "# Report\n\nIt is 7. [s1]"], "reader": ["The first page says 7 [s1]."]}
    policy = ScriptedPolicy(said)
    people = make_context(policy, tools=Toolbox(search=pages(text_of(0, 5))))
    record = await rollout(ReActReport(condense=True), TOPIC, people)
    assert find_cited(record.answer) == ["s1"]
    reader = next(one for one in policy.requests if one.conversation.endswith("reader"))
    assert "Page 0 word 1." in reader.messages[0].text
    read = "".join(message.text for message in policy.requests[-1].messages)
    assert "The first page says 7 [s1]." in read
    assert "Page 0 word 1." not in read
    policy.assert_done()


async def test_a_react_report_that_its_budget_ends_quotes_what_was_read() -> None:
    replies = ["I will search. " + query("one"), OutOfBudget("the time is over"), OutOfBudget("the time is over")]
    box = Toolbox(search=pages("The tide rises twice a day."))
    record = await rollout(ReActReport(), TOPIC, make_context(ScriptedPolicy({"report": replies}), tools=box))
    assert record.status == "partial"
    assert "“The tide rises twice a day.” [s1]" in record.answer
    assert "I will search" not in record.answer


GARBAGE: tuple[Any, ...] = (
    "", "   ", "plain words", "<plan>", "</plan><plan>- [ ] x", "<report>", "<report></report>", "<report>unchanged",
    "# Title\n\nMade up [s1], [s77].", "<think>only thought", "<think>x</think>", "{", '{"keep": 3}', '{"keep": ["m1"]}',
    '{"memory": [{"text": "A note of 5.", "merges": ["m1", "m9"], "sources": ["s1", "x"]}]}',
    '{"keep": [], "memory": [{"text": ""}]}', '{"memory": [{"text": "Tides."}], "plan": "- [x] done"}',
    query("tides"), query(""), "<|begin_search_query|>cut", "<|begin_nothing_call|>x<|end_nothing_call|>",
    query("a") + query("b") + query("c"), Completion("cut off here", finish="length"),
    Completion("<report># Half", finish="length"), Completion("no", finish="filtered"), EndpointError("overloaded"),
)  # fmt: skip


@pytest.mark.parametrize("workflow", [MaMs(max_turns=3, chunk=200, window=600), ReActReport(max_turns=3)], ids=str)
async def test_whatever_models_say_the_run_ends_within_its_bound_and_cites_only_what_was_read(workflow: Any) -> None:
    for seed in range(60):
        draw = random.Random(seed)

        def say(_: Request, draw: random.Random = draw) -> Any:
            said = draw.choice(GARBAGE)
            if isinstance(said, BaseException):
                raise said
            return said

        texts = [text_of(at, draw.randrange(1, 60)) for at in range(4)]
        record = await rollout(
            workflow, TOPIC, make_context(ScriptedPolicy({"*": say}), tools=Toolbox(search=pages(*texts)))
        )
        assert record.status in {"answered", "unverified", "insufficient_evidence", "partial", "failed"}, seed
        assert set(find_cited(record.answer)) <= set(record.sources.read), seed
        for role, usage in workflow.bound(Sizes()).items():
            made = sum(len(one.turns) for one in record.trajectories.values() if one.role == role)
            assert made <= usage.calls, (seed, role, made)
