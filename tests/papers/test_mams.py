"""MaMs (rubrics paper, section 3.4, Algorithm 1) step by step: order, what each agent saw, limits, endings, memory."""

import asyncio
import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hira.core.errors import EndpointError, OutOfBudget
from hira.core.events import Notice
from hira.core.messages import ToolCall
from hira.core.policy import Completion, Finish, Request, Watch
from hira.evidence import Source
from hira.testing import ScriptedPolicy
from hira.testing.script import make_context
from hira.tools import Observation, Passage, Tool, Toolbox
from hira.workflows import MaMs, rollout
from hira.workflows.mams.state import Memory, MemoryEntry, Update, WrittenEntry, find_unsourced, ids, merge, missing

TOPIC = "The mills of Orlen"
FILLER = " ".join(f"Word{at}" for at in range(50))


def searching(*pages: str) -> Toolbox:
    """A search that brings page `n` for the query "page n": a sentence of its own, and filler that makes it a chunk."""

    async def run(arguments: Any) -> Observation:
        numbers = [int(number) for number in re.findall(r"\d+", arguments["query"])]
        found = [Source(f"mill-{at}.txt", f"Mill {at}", f"{pages[at]} {FILLER}") for at in numbers if at < len(pages)]
        return Observation(passages=tuple(Passage(one, one.text) for one in found)) if found else Observation("nothing")

    parameters = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    return Toolbox(search=Tool("search", "searches", parameters, run, pure=True))


def calls(plan: str, *queries: str) -> Completion:
    made = tuple(ToolCall("", "search", json.dumps({"query": query})) for query in queries)
    return Completion(f"<plan>{plan}</plan>", calls=made, finish="calls")


def update(keep: Sequence[str] = (), *new: str, plan: str = "", source: str = "") -> str:
    memory = [{"text": text, "sources": [source] if source else []} for text in new]
    return json.dumps({"keep": list(keep), "memory": memory, "plan": plan})


def asked(policy: ScriptedPolicy, conversation: str) -> str:
    """The first prompt of a conversation."""
    return next(one.messages[0].text for one in policy.requests if one.conversation == conversation)


SMALL = MaMs(chunk=200, window=2_000)
PAGES = ("The first mill ground flour in 1901.", "The second mill sawed oak.", "The third mill burned down in 1950.")


def script() -> ScriptedPolicy:
    return ScriptedPolicy(
        {
            "search": [
                calls("- [ ] mills one and two", "page 0", "page 1"),
                calls("- [ ] mill three", "page 2"),
                "Done.",
            ],
            "state": [
                update((), "Mill one ground flour.", plan="- [x] one"),
                update(["m1"], "Mill two sawed oak.", plan="- [x] one and two"),
                update(["m1-m2"], "Mill three burned."),
            ],
            "report": [
                "<report># Mills\n\nOne ground flour [s1].</report>",
                "<report># Mills\n\nOne ground flour [s1], two sawed oak [s2].</report>",
                "<report># Mills\n\nOne ground flour [s1], two sawed oak [s2], three burned down in 1950 [s3].</report>",
            ],
        }
    )


async def test_algorithm_1_plan_act_chunk_remember_write_until_the_search_agent_ends() -> None:
    policy = script()
    record = await rollout(SMALL, TOPIC, make_context(policy, dialect="native", tools=searching(*PAGES)))
    assert record.error == ""
    order = [request.conversation for request in policy.requests]
    assert [name for name in order if not name.endswith("report")] == [
        "1/search", "1.1/state", "1.2/state", "2/search", "2.1/state", "3/search",
    ]  # fmt: skip
    assert [name for name in order if name.endswith("report")] == ["1.1/report", "1.2/report", "2.1/report"]
    assert record.answer.endswith("three burned down in 1950 [s3].")
    assert [fact.text for fact in record.memory.facts] == [
        "Mill one ground flour.", "Mill two sawed oak.", "Mill three burned.",
    ]  # fmt: skip
    assert record.memory.facts[2].sources == ("s3",)
    assert "- [ ] mills one and two" in asked(policy, "1.1/state"), "the State agent reads the Search agent's plan"
    policy.assert_done()


async def test_eq_4_and_5_each_agent_sees_its_chunk_and_the_state_before_it() -> None:
    policy = script()
    await rollout(SMALL, TOPIC, make_context(policy, dialect="native", tools=searching(*PAGES)))
    second_state, second_report = asked(policy, "1.2/state"), asked(policy, "1.2/report")
    for prompt in (second_state, second_report):
        assert "m1. Mill one ground flour. [s1]" in prompt
        assert "The second mill sawed oak." in prompt, "c_2"
        assert "Mill two sawed" not in prompt, "m_2 is not there yet"
    assert "- [x] one" in second_state, "p_1"
    assert "One ground flour [s1]." in second_report, "r_1"
    assert "One ground flour [s1]" not in second_state, "the State agent never reads the report"
    later = asked(policy, "2/search")
    for part in ("m2. Mill two sawed oak. [s2]", "- [x] one and two", "two sawed oak [s2].", "- search: page 1 — s2"):
        assert part in later, "the Search agent reads all of the state"


async def test_nobody_sees_more_of_the_past_than_the_state() -> None:
    policy = script()
    await rollout(SMALL, TOPIC, make_context(policy, dialect="native", tools=searching(*PAGES)))
    for request in policy.requests:
        assert len(request.messages) == 1, "every step is a conversation of its own"
    for name in ("1.2/state", "1.2/report", "2/search", "2.1/state", "2.1/report", "3/search"):
        assert "The first mill ground flour in 1901" not in asked(policy, name), "what was read is gone, notes stay"
    assert "- [ ] mills one and two" not in asked(policy, "2/search"), "the plan before the State agent's is gone"


class Gate:
    """A policy that holds the Report agent's first reply back until the State agent was asked for its last chunk."""

    model = "gate"

    def __init__(self, last: str) -> None:
        self.last, self.open = last, asyncio.Event()
        self.begun: list[str] = []
        self.ended: list[str] = []

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        name = request.conversation
        self.begun.append(name)
        await asyncio.sleep(0)  # as any endpoint, it lets others begin
        if name == self.last:
            self.open.set()
        if name == "1.1/report":
            await asyncio.wait_for(self.open.wait(), 10)
        self.ended.append(name)
        if name.endswith("search"):
            return calls("all", "page 0", "page 1", "page 2") if name == "1/search" else Completion("Done.")
        if name.endswith("state"):
            known = re.findall(r"^(m\d+)\. ", request.messages[0].text, re.MULTILINE)
            return Completion(update(known, f"Mill {name[2]} stood."))
        return Completion(f"<report># Mills\n\nSo far {name} [s1].</report>")

    async def aclose(self) -> None:
        pass


async def test_states_and_reports_are_two_chains_and_states_do_not_wait_for_reports() -> None:
    policy = Gate("1.3/state")
    record = await rollout(SMALL, TOPIC, make_context(policy, dialect="native", tools=searching(*PAGES)))
    assert record.error == ""
    assert record.answer.endswith("So far 1.3/report [s1].")
    for role in ("state", "report"):
        chain = [f"1.{at}/{role}" for at in (1, 2, 3)]
        assert [name for name in policy.ended if name.endswith(role)] == chain
    assert policy.begun.index("1.1/report") < policy.ended.index("1.1/state") + 3
    assert policy.begun.index("2/search") > policy.begun.index("1.3/report"), "the next turn reads all of the state"


async def test_the_limits_are_ten_turns_and_five_calls_a_turn_as_in_the_paper() -> None:
    made = 0

    def search(request: Request) -> Completion:
        nonlocal made
        made += 1
        return calls("more", *(f"page {made * 100 + at}" for at in range(7)))

    policy = ScriptedPolicy({"search": search})
    record = await rollout(MaMs(), TOPIC, make_context(policy, dialect="native", tools=searching()))
    assert len(policy.requests) == 10
    done = asked(policy, "10/search")
    assert len(re.findall(r"^- search: page .* — nothing$", done, re.MULTILINE)) == 9 * 5
    assert "You have 1 turns left" in done
    assert (record.answer, record.status) == (
        "Nothing that was read has to do with the topic.",
        "insufficient_evidence",
    )


async def test_a_search_agent_that_calls_nothing_ends_with_what_it_says() -> None:
    said = "<plan>- none</plan>\nThere is nothing to look up."
    policy = ScriptedPolicy({"search": [said, said]})
    record = await rollout(MaMs(), TOPIC, make_context(policy, dialect="native", tools=searching()))
    assert (record.answer, record.status) == ("There is nothing to look up.", "insufficient_evidence")
    policy.assert_done()


async def test_what_a_search_agent_says_beside_its_calls_is_its_plan_if_no_section_marks_one() -> None:
    policy = script()
    first: Completion = policy.replies["search"][0]  # type: ignore[index,call-overload,assignment]
    policy.replies["search"][0] = replace(first, text="First mills one and two.")  # type: ignore[index,call-overload]
    policy = ScriptedPolicy(policy.replies)
    await rollout(SMALL, TOPIC, make_context(policy, dialect="native", tools=searching(*PAGES)))
    assert "First mills one and two." in asked(policy, "1.1/state")
    assert "First mills one and two." not in asked(policy, "2/search"), "the State agent's plan replaces it"


async def test_a_search_agent_that_is_done_and_has_found_nothing_does_not_answer_by_saying_that_it_is_done() -> None:
    policy = ScriptedPolicy({"search": [calls("- [x] unicorns", "page 9"), "<plan>- [x] all</plan>\nIt is complete."]})
    record = await rollout(MaMs(), TOPIC, make_context(policy, dialect="native", tools=searching()))
    assert (record.answer, record.status) == (
        "Nothing that was read has to do with the topic.",
        "insufficient_evidence",
    )
    policy.assert_done()


async def test_a_search_agent_that_only_plans_at_the_beginning_is_asked_for_its_first_calls() -> None:
    policy = script()
    policy.replies["search"].insert(0, "<plan>- [ ] first the mills</plan>")  # type: ignore[index,union-attr]
    policy = ScriptedPolicy(policy.replies)
    record = await rollout(SMALL, TOPIC, make_context(policy, dialect="native", tools=searching(*PAGES)))
    assert record.answer.endswith("three burned down in 1950 [s3].")
    assert "Make the first calls now." in policy.requests[1].messages[-1].text
    policy.assert_done()
    late = ScriptedPolicy({"search": ["First I look for mills.", OutOfBudget("the time is over")]})
    record = await rollout(SMALL, TOPIC, make_context(late, dialect="native", tools=searching(*PAGES)))
    assert (record.status, record.answer) == ("partial", ""), "a plan is no report"


async def test_without_a_report_a_run_that_ends_early_answers_with_its_notes() -> None:
    policy = ScriptedPolicy(
        {
            "search": [calls("one", "page 0"), EndpointError("the endpoint is gone")],
            "state": [update((), "The first mill ground flour in 1901.")],
            "report": [EndpointError("overloaded")],
        }
    )
    heard: list[Any] = []
    context = make_context(policy, dialect="native", tools=searching(*PAGES))
    context.events.readers.append(heard.append)
    record = await rollout(SMALL, TOPIC, context)
    assert (record.status, record.error) == ("failed", "the endpoint is gone")
    assert record.answer == "- The first mill ground flour in 1901. [s1]"
    assert any("a chunk is missing from the report: overloaded" in one.text for one in heard if isinstance(one, Notice))


@pytest.mark.parametrize("finish", ["stop", "length"])
async def test_a_reply_that_repeats_the_request_is_no_report(finish: Finish) -> None:
    echo = "## Mills\n\nNew fragment; each text stands between marks with its source id:\n[s1] page 0\nIt ground flour."
    policy = ScriptedPolicy(
        {
            "search": [calls("one", "page 0"), "The report is complete."],
            "state": [update((), "The first mill ground flour in 1901.")],
            "report": [
                Completion(echo, finish=finish),
                "<report># Mills\n\nThe first mill ground flour in 1901 [s1].</report>",
            ],
        }
    )
    record = await rollout(SMALL, TOPIC, make_context(policy, dialect="native", tools=searching(*PAGES)))
    assert record.answer == "# Mills\n\nThe first mill ground flour in 1901 [s1]."
    assert any("There was no report between" in one.messages[-1].text for one in policy.requests)


def forgetful(drops: random.Random, share: float, count: list[int]) -> Callable[[Request], str]:
    """A State agent that notes one fact a chunk and, when first asked, forgets some of what was noted; every third time
    that it forgot, it forgets again when it is asked once more."""

    def reply(request: Request) -> str:
        prompt = request.messages[0].text
        known = re.findall(r"^(m\d+)\. ", prompt.partition("Fragment;")[0], re.MULTILINE)
        (number,) = re.findall(r"Fact number (\d+)", prompt.partition("Fragment;")[2])
        again = len(request.messages) > 1
        if again:
            count[1] += 1
        kept = [name for name in known if (again and count[1] % 3) or drops.random() > share]
        count[0] += len(kept) < len(known)
        return update(kept, f"Fact number {number} is {int(number) * 7}.")

    return reply


@pytest.mark.parametrize("seed", range(2))
async def test_memory_keeps_every_old_fact_over_50_chunks_of_a_state_agent_that_drops_some(seed: int) -> None:
    pages = [f"Fact number {at} is {at * 7}." for at in range(50)]
    count = [0, 0]
    policy = ScriptedPolicy(
        {
            "search": [*(calls("on", *(f"page {turn * 5 + at}" for at in range(5))) for turn in range(10))],
            "state": forgetful(random.Random(seed), 0.2, count),
            "report": lambda _: "<report>unchanged</report>",
        }
    )
    heard: list[Any] = []
    context = make_context(policy, dialect="native", tools=searching(*pages))
    context.events.readers.append(heard.append)
    record = await rollout(SMALL, TOPIC, context)
    assert record.error == ""
    facts = {fact.text: fact.sources for fact in record.memory.facts}
    assert facts == {page: (f"s{at}",) for at, page in enumerate(pages, 1)}
    chunks = [name for name in record.trajectories if name.endswith("/state")]
    assert len(chunks) == 50
    told = [one.text for one in heard if isinstance(one, Notice)]
    lost = [text for text in told if "This update would lose notes" in text]
    repaired = [text for text in told if ", which the update had dropped" in text]
    assert len(lost) == count[0] > 20, "each loss is noticed"
    assert count[1] > 20, "and asked for again"
    again = next(one for one in policy.requests if one.conversation.endswith("/state") and len(one.messages) == 3)
    lost_one = r"^- m\d+ is neither kept nor merged: Fact number \d+ is \d+\.$"
    assert re.search(lost_one, again.messages[-1].text, re.MULTILINE)
    assert len(repaired) > 5, "and what is lost then as well is kept"
    last = asked(policy, "10.5/state")
    assert all(page in last for page in pages[:49]), "the agent itself is shown every old fact"


async def test_what_would_be_lost_is_named_when_it_is_asked_for_again() -> None:
    state = [
        update((), "The mill of Orlen was built in 1871 of oak."),
        json.dumps({"keep": [], "memory": [{"text": "The mill is of oak.", "merges": ["m1"]}]}),
        json.dumps(
            {"keep": [], "memory": [{"text": "The mill of Orlen, built of oak in 1871, sawed.", "merges": ["m1"]}]}
        ),
    ]
    policy = ScriptedPolicy(
        {
            "search": [calls("all", "page 0", "page 1"), "Done."],
            "state": state,
            "report": lambda _: "<report># R</report>",
        }
    )
    record = await rollout(SMALL, TOPIC, make_context(policy, dialect="native", tools=searching(*PAGES)))
    again = next(one for one in policy.requests if one.conversation == "1.2/state" and len(one.messages) == 3)
    complaint = again.messages[-1].text
    assert "m1 is merged, but its note no longer says: 1871, orlen, built." in complaint
    (fact,) = record.memory.facts
    assert fact.text == "The mill of Orlen, built of oak in 1871, sawed."
    assert fact.sources == ("s1", "s2"), "the source of a merged entry goes on"


async def test_an_update_that_cannot_be_read_twice_leaves_memory_as_it_was() -> None:
    policy = ScriptedPolicy(
        {
            "search": [calls("all", "page 0", "page 1"), "Done."],
            "state": [update((), "Kept."), "no record", "again none"],
            "report": lambda _: "<report># R</report>",
        }
    )
    heard: list[Any] = []
    context = make_context(policy, dialect="native", tools=searching(*PAGES))
    context.events.readers.append(heard.append)
    record = await rollout(SMALL, TOPIC, context)
    assert [fact.text for fact in record.memory.facts] == ["Kept."]
    assert any("a chunk is missing from the notes" in one.text for one in heard if isinstance(one, Notice))


TEXT = st.text("abcABC 0189.,;%not ", min_size=1, max_size=24)


@given(TEXT, TEXT, TEXT)
def test_nothing_wears_off_over_merges(one: str, two: str, three: str) -> None:
    assert missing(one, one) == []
    if not missing(one, two) and not missing(two, three):
        assert not missing(one, three)


NAMED = st.lists(st.sampled_from([f"m{at}" for at in range(1, 9)]), max_size=6)
WRITTEN = st.builds(
    WrittenEntry, text=TEXT, merges=NAMED, sources=st.lists(st.sampled_from(["s1", "s2", "s9"]), max_size=2)
)


@settings(max_examples=150)
@given(st.lists(TEXT, max_size=7), NAMED, st.lists(WRITTEN, max_size=4))
def test_whatever_an_update_says_every_old_entry_stands_in_memory_with_its_sources(
    old: list[str], keep: list[str], new: list[WrittenEntry]
) -> None:
    memory = tuple(MemoryEntry(f"m{at}", text, (f"t{at}",)) for at, text in enumerate(old, 1))
    after = merge(memory, Update(keep=keep, memory=new), ("s1", "s2")).memory
    for entry in memory:
        assert any(not missing(entry.text, one.text) and set(entry.sources) <= set(one.sources) for one in after) or (
            entry in after
        )
    assert len({entry.id for entry in after}) == len(after)
    assert {source for entry in after for source in entry.sources} <= {"s1", "s2", *(f"t{at}" for at in range(1, 8))}


KNOWN: Memory = (
    MemoryEntry("m1", "The dam is 40 m high.", ("s1",)),
    MemoryEntry("m2", "US engineers did not approve.", ("s2",)),
)


@pytest.mark.parametrize(
    ("old", "new", "lacking"),
    [
        ("The dam is 40 m high.", "Of stone, the dam is 40 m high.", []),
        ("The dam is 40 m high.", "The dam is 50 m high.", ["40"]),
        ("The dam is 40 m high.", "The dam is -40 m high.", ["40"]),
        ("It grew by 5 %.", "It grew by 5.", ["%"]),
        ("The engineers did not approve it.", "The engineers approve it.", ["not"]),
        ("The engineers didn't approve it.", "The engineers approve it.", ["didn't", "not"]),
        ("The engineers never approve it.", "The engineers approve it.", ["never"]),
        ("US engineers came.", "Engineers came to us.", ["US"]),
        ("埃利斯港建于一六四二年", "埃利斯港建于一六四二年，是渔村。", []),
        ("埃利斯港建于一六四二年", "埃利斯港是渔村。", ["港建", "建于", "于一", "一六", "六四", "四二", "二年"]),
    ],
)
def test_what_a_merged_entry_lacks_is_found(old: str, new: str, lacking: list[str]) -> None:
    assert missing(old, new) == lacking


def test_entries_are_kept_by_id_and_by_ranges_of_ids() -> None:
    assert len(ids(["m1-m999999999"])) < 10_010, "a range is bounded"
    assert ids(["m1", "m3-m5", "m7 to m8", "[m10]", "x"]) == {"m1", "m3", "m4", "m5", "m7", "m8", "m10"}
    merged = merge(KNOWN, Update(keep=["m1-m2"], memory=[WrittenEntry(text="It was built in 1960.")]), ("s3",))
    assert merged.lost == {}
    assert merged.memory == (*KNOWN, MemoryEntry("m3", "It was built in 1960.", ("s3",)))


def test_one_text_or_bare_numbers_in_place_of_a_list_of_ids_are_understood() -> None:
    read = Update.model_validate({"keep": [1, "m2"], "memory": [{"text": "x", "merges": "m3", "sources": "s1"}]})
    assert (read.keep, read.memory[0].merges, read.memory[0].sources) == (["m1", "m2"], ["m3"], ["s1"])
    assert Update.model_validate({"keep": "m1-m4"}).keep == ["m1-m4"]


def test_the_same_statement_of_another_source_adds_the_source_and_no_entry() -> None:
    new = WrittenEntry(text="The dam is 40 m high", sources=["s3"])
    merged = merge(KNOWN, Update(keep=["m1", "m2"], memory=[new]), ("s3", "s4"))
    assert merged.memory == (MemoryEntry("m1", "The dam is 40 m high.", ("s1", "s3")), KNOWN[1])


def test_a_note_may_only_come_from_what_was_read_for_it() -> None:
    made_up = Update(keep=["m1", "m2"], memory=[WrittenEntry(text="Water is wet.", sources=["s9"])])
    assert merge(KNOWN, made_up, ("s3",)).memory[-1].sources == ("s3",), "one source: it is that one"
    assert merge(KNOWN, made_up, ("s3", "s4")).memory[-1].sources == ()
    assert find_unsourced(KNOWN, made_up, ("s3", "s4")) == ["Water is wet."]
    assert find_unsourced(KNOWN, made_up, ("s3", "s9")) == find_unsourced(KNOWN, made_up, ("s3",)) == []
    same = WrittenEntry(text=KNOWN[0].text, merges=["m1"])
    assert find_unsourced(KNOWN, Update(memory=[same]), ("s3", "s4")) == [], "it has the source of what it merges"
    same.merges = []
    assert find_unsourced(KNOWN, Update(memory=[same]), ("s3", "s4")) == [same.text]


@pytest.mark.parametrize(("more", "sources"), [("", ("s1", "s2")), (" It leaks.", ("s1", "s2", "s3"))])
def test_a_merged_note_has_the_chunks_source_only_if_it_says_more_than_its_parts(
    more: str, sources: tuple[str, ...]
) -> None:
    new = WrittenEntry(text=f"{KNOWN[0].text} {KNOWN[1].text}{more}", merges=["m1", "m2"])
    (one,) = merge(KNOWN, Update(memory=[new]), ("s3",)).memory
    assert (one.id, one.text, one.sources) == ("m1", new.text, sources)


@pytest.mark.parametrize("part", ["The weir at Hagen", "at Hagen was", "was dug in 1833"])
def test_a_note_that_is_a_part_of_another_of_its_source_is_not_added(part: str) -> None:
    known: Memory = (MemoryEntry("m1", "The weir at Hagen was dug in 1833.", ("s1",)),)
    for text, count in ((part, 1), ("dug at Hagen", 2)):
        update = Update(keep=["m1"], memory=[WrittenEntry(text=text, sources=["s1"])])
        assert len(merge(known, update, ("s1",)).memory) == count
