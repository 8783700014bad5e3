"""Questions from a graph: facts from JSON lines and RDF, chains without detours, questions that give nothing away."""

import json
from pathlib import Path

import pytest

from hira.core.errors import DialectError, UsageError
from hira.testing import ScriptedPolicy
from hira.testing.script import make_context
from hira.trainers.curation.generation import FactChain, Triple, facts_of, leaks, paths, rewrite_query, write_question

FACTS = [
    Triple("Ida Berg", "designed", "Vale Bridge"),
    Triple("Vale Bridge", "crosses", "the Orr"),
    Triple("the Orr", "rises in", "Mount Kell"),
    Triple("Mount Kell", "height in metres", "2140", value=True),
    Triple("the Orr", "flows through", "Tarn"),
    Triple("the Orr", "flows through", "Lisk"),
]
CHAIN = FactChain(tuple(FACTS[:3]))


def test_facts_are_read_from_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "facts.jsonl"
    names = ("subject", "relation", "object", "value")
    path.write_text("\n".join(json.dumps({name: getattr(one, name) for name in names}) for one in [*FACTS, FACTS[0]]))
    assert facts_of(path) == sorted(FACTS)
    path.write_text('{"subject": "a", "relation": "b"}')
    with pytest.raises(UsageError, match="lacks a part"):
        facts_of(path)


def test_a_chain_takes_only_steps_that_have_one_outcome() -> None:
    found = paths(FACTS, 20)
    assert found
    assert all("Tarn" not in one.hidden for one in found)
    assert any(one.end == "2140" for one in found)
    assert paths(FACTS, 20) == found
    assert paths([], 5) == []


def test_a_chain_ends_where_no_fact_goes_on() -> None:
    ends = {(one.start, one.end) for one in paths(FACTS[:3], 3)}
    assert ends == {("Ida Berg", "the Orr"), ("Ida Berg", "Mount Kell"), ("Vale Bridge", "Mount Kell")}


GOOD = "Where does the river rise that is crossed by the bridge which Ida Berg designed?"


def test_a_question_gives_nothing_away() -> None:
    assert leaks(GOOD, CHAIN) == []
    assert leaks("Where does the Orr rise, which Ida Berg bridged?", CHAIN) == ["it gives the Orr away"]
    assert leaks("Where does a river rise?", CHAIN) == ["it does not name Ida Berg"]


async def test_a_question_that_gives_something_away_is_asked_for_once_more() -> None:
    policy = ScriptedPolicy(
        [json.dumps({"question": "Where is Mount Kell, Ida Berg?"}), json.dumps({"question": GOOD})]
    )
    item = await write_question(make_context(policy, dialect="native").conversation("writer"), "q1", CHAIN)
    assert item is not None
    assert (item.question, item.answers, item.category) == (GOOD, ("Mount Kell",), "3 hops")
    assert item.meta["path"][0] == ["Ida Berg", "designed", "Vale Bridge"]
    assert "it gives Mount Kell away" in str(policy.requests[1].messages[-1].text)
    bad = make_context(ScriptedPolicy([json.dumps({"question": "The Orr?"})] * 2), dialect="native")
    assert await write_question(bad.conversation("writer"), "q2", CHAIN) is None


QUERY = "What eye colour has the breed behind the Cheshire Cat?"
REPORT = "Please look into the Cheshire Cat: which breed is behind it, and what eye colour goes with it?"


async def test_a_query_is_rewritten_and_keeps_its_names() -> None:
    good = json.dumps({"kept": ["Cheshire Cat"], "query": REPORT})
    assert await rewrite_query(make_context([good], dialect="native").conversation("rewriter"), QUERY) == REPORT
    lost = json.dumps({"kept": ["Cheshire Cat"], "query": "Please look into a cat."})
    policy = ScriptedPolicy([lost, good])
    assert await rewrite_query(make_context(policy, dialect="native").conversation("rewriter"), QUERY) == REPORT
    same = json.dumps({"query": QUERY})
    with pytest.raises(DialectError, match="as it was"):
        await rewrite_query(make_context([same, same], dialect="native").conversation("rewriter"), QUERY)


async def test_what_is_made_is_made_once_and_what_failed_is_tried_again(tmp_path: Path) -> None:
    from hira.evaluation.files import Item
    from hira.trainers.curation.generation import MADE, generate

    asked: list[str] = []

    async def make(name: str) -> Item | None:
        asked.append(name)
        return None if name == "b" and len(asked) < 4 else Item(name, f"Question {name}?", ("yes",))

    first = [one async for one in generate(tmp_path, {"graph": "g"}, ["a", "b", "c"], make, 1)]
    assert [item is not None for item in first] == [True, False, True]
    again = [item async for item in generate(tmp_path, {"graph": "g"}, ["a", "b", "c"], make, 1)]
    assert [item.id for item in again if item] == ["b"]
    assert [json.loads(line)["id"] for line in (tmp_path / MADE).read_text().splitlines()] == ["a", "c", "b"]
    with pytest.raises(UsageError, match="another"):
        [one async for one in generate(tmp_path, {"graph": "h"}, ["a"], make, 1)]
