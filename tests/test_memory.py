from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hira.core.memory import DualMemory, Fact, Resource
from hira.core.statements import tokens

MONTHS = ["May", "June", "July", "August", "October", "November"]


def remembered(*facts: Fact) -> DualMemory:
    memory = DualMemory()
    for fact in facts:
        memory.add_fact(fact)
    return memory


def test_a_statement_that_stands_in_a_fuller_one_of_its_source_becomes_one_with_it_whichever_came_first() -> None:
    less = Fact("The bridge opened in 1932.", ("s1",), "1")
    more = Fact("the bridge opened in 1932, in March.", ("s1",), "2")
    assert remembered(less, more).facts == [more]
    assert remembered(more, less).facts == [more]


@pytest.mark.parametrize("part", ["The bridge", "bridge opened in", "opened in 1932", "1932"])
def test_a_part_of_a_statement_is_no_entry_of_its_own_wherever_it_stands_in_it(part: str) -> None:
    whole = Fact("The bridge opened in 1932.", ("s1",), "1")
    assert remembered(whole, Fact(part, ("s1",), "2")).facts == [whole]


def test_statements_that_share_all_but_one_stretch_stand_in_one_entry_both_in_full() -> None:
    memory = remembered(
        Fact("The mill by the river was built of stone.", ("s1",), "1"),
        Fact("The mill by the river was built of oak.", ("s1",), "1"),
    )
    (fact,) = memory.facts
    assert fact.text == ("The mill by the river was built of stone; The mill by the river was built of oak.")
    assert memory.add_fact(Fact("The mill by the river was built of brick.", ("s1",), "1")), "memory has changed"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The truck can carry 5 t.", "The truck cannot carry 5 t."),
        ("Team A won", "Team B won"),
        ("Type I diabetes is autoimmune.", "Type II diabetes is autoimmune."),
        ("It was 5 degrees.", "It was -5 degrees."),
        ("Anna beat Boris", "boris beat anna"),
        ("It costs 5", "It costs 5%"),
        ("The bridge is safe", "The bridge is safe no longer"),
        ("Anna won", "It is not true that Anna won"),
    ],
)
def test_a_statement_is_never_taken_for_another(one: str, other: str) -> None:
    for facts in ((one, other), (other, one)):
        memory = remembered(*(Fact(text, ("s1",), "1") for text in facts))
        told = "; ".join(fact.text.rstrip(".") for fact in memory.facts)
        assert one.rstrip(".") in told
        assert other.rstrip(".") in told
        assert len(memory.facts) == 2


def test_no_source_is_said_to_hold_what_only_another_one_says() -> None:
    both, one = Fact("The bridge opened", ("s1", "s2")), Fact("The bridge opened in 1932", ("s1",))
    assert remembered(both, one).facts == [both, one]
    assert remembered(one, both).facts == [one, both]


def test_order_and_provenance_are_kept() -> None:
    memory = remembered(Fact("b", ("s2",), "1"), Fact("a", ("s1",), "2"))
    assert [(fact.text, fact.sources, fact.subtask) for fact in memory.facts] == [
        ("b", ("s2",), "1"),
        ("a", ("s1",), "2"),
    ]
    memory.add_fact(Fact("c"))
    assert memory.recall("c", 3).lines[0] == "c (source: inferred)"


def test_a_path_is_kept_once() -> None:
    memory = DualMemory()
    assert memory.add_resource(Resource("population table", "data/people.csv"))
    assert not memory.add_resource(Resource("the table again", "data/people.csv"))


def test_recall_brings_what_is_relevant_most_relevant_first_with_resources() -> None:
    memory = remembered(*(Fact(f"It rained in the month of {n}.", ("s9",)) for n in MONTHS))
    memory.add_fact(Fact("The tower of Arnis is 31 m high.", ("s1",)))
    memory.add_resource(Resource("heights of all towers, with Arnis", "towers.csv"))
    recall = memory.recall("How high is the tower of Arnis?", 5)
    assert recall.lines == [
        "The tower of Arnis is 31 m high. (source: s1)",
        "heights of all towers, with Arnis: towers.csv",
    ]


def test_a_resource_that_fits_better_stands_before_facts_and_survives_the_cut() -> None:
    memory = remembered(*(Fact(f"Tower {n} was painted in {n}.", ("s1",)) for n in MONTHS))
    memory.add_resource(Resource("register of tower heights, Arnis included", "towers.csv"))
    ranked = memory.recall("Look up the height of the tower of Arnis in the register", 7)
    assert ranked.lines[0].endswith("towers.csv")
    assert ranked.take(range(len(ranked)), 5).lines[0].endswith("towers.csv")


def test_a_sourced_fact_ranks_above_an_inference_and_a_report_of_failure() -> None:
    filler = [Fact(f"Filler {n} on something else entirely.", (f"s{n}",)) for n in range(5, 12)]
    memory = remembered(
        Fact("Search for the depth of Lake Vire failed with an error.", ("s1",)),
        Fact("Depth of Lake Vire: 40 m."),
        Fact("The depth of Lake Vire is 44 m where the river leaves it.", ("s2",)),
        *filler,
    )
    lines = memory.recall("depth of Lake Vire", 3).lines
    assert lines[0].startswith("The depth of Lake Vire is 44 m where")
    assert lines[-1].startswith("Search for the depth")


def test_chosen_entries_come_in_the_order_chosen_each_once() -> None:
    memory = remembered(Fact("a", ("s1",)), Fact("b", ("s2",)))
    memory.add_resource(Resource("r", "p"))
    everything = memory.recall("anything", 9)
    assert everything.take([1, 2, 1]).lines == ["b (source: s2)", "r: p"]
    assert everything.take([2, 2, 2, 0], 2).lines == ["r: p", "a (source: s1)"]


names = st.sampled_from("a can cannot - 5 I II one not Anna beat Boris".split())


@given(st.lists(st.tuples(st.lists(names, min_size=1).map(" ".join), st.sampled_from(["s1", "s2", ""]))))
def test_memory_never_loses_a_statement(facts: list[tuple[str, str]]) -> None:
    """Each one still stands in an entry of its source, its words in their order and side by side."""
    memory = DualMemory()
    for text, source in facts:
        memory.add_fact(Fact(text, (source,) if source else ()))
    for text, source in facts:
        kept = [fact.text for fact in memory.facts if fact.sources == ((source,) if source else ())]
        parts = [f" {' '.join(tokens(part))} " for text in kept for part in text.split("; ")]
        assert any(f" {' '.join(tokens(text))} " in part for part in parts)


def test_memory_says_whether_a_fact_changed_it() -> None:
    """What is kept, what comes, whether memory changes, and what is kept then."""
    high = Fact("The tower is 31 m high.", ("s1",), "1")
    again = Fact("The tower is 31 m high", ("s1",), "2")
    elsewhere = replace(again, sources=("s2",))
    both = replace(high, sources=("s1", "s2"))
    fuller = Fact("The tower is 31 m high and red.", ("s1",), "2")
    red = Fact("The tower is red and old.", ("s1",), "2")
    for kept, new, changes, then in (
        ([], high, True, [high]),
        ([high], again, False, [high]),
        ([high], elsewhere, True, [high, elsewhere]),
        ([high], replace(again, sources=("s1", "s2")), True, [both]),
        ([both], elsewhere, False, [both]),
        ([high], replace(again, sources=()), True, [high, replace(again, sources=())]),
        ([replace(high, sources=())], replace(again, sources=()), False, [replace(high, sources=())]),
        ([fuller], high, False, [fuller]),
        ([high, Fact("It is new.", ("s1",)), Fact("high and red", ("s1",))], fuller, True,
         [fuller, Fact("It is new.", ("s1",))]),
        ([high], red, True, [high, red]),
    ):  # fmt: skip
        memory = remembered(*kept)
        assert memory.facts == kept
        assert memory.add_fact(new) is changes
        assert memory.facts == then


@pytest.mark.parametrize(
    ("new", "source", "subtask", "shared"),
    [
        ("The mill by the river was built of oak.", "s1", "1", True),
        ("The mill by the river was built of oak.", "s2", "1", False),
        ("The mill by the river was built of oak.", "s1", "2", False),
        ("The mill by the river was never built.", "s1", "1", False),
        ("The mill at its foot was built of old oak.", "s1", "1", False),  # five of ten words are common
        ("The mill by the river was made from stone.", "s1", "1", True),  # seven of nine
        ("The mill by the river was made from oak.", "s1", "1", False),  # six of nine are too few
    ],
)
def test_alike_statements_share_an_entry_only_of_one_source_and_subtask(
    new: str, source: str, subtask: str, shared: bool
) -> None:
    old = Fact("The mill by the river was built of stone.", ("s1",), "1")
    other = Fact(new, (source,), subtask)
    memory = remembered(old, other)
    assert memory.facts == ([replace(old, text=f"{old.text[:-1]}; {new}")] if shared else [old, other])


def test_a_name_or_a_number_tells_statements_apart_only_where_both_have_one() -> None:
    memory = remembered(
        Fact("The mill by the river was built of stone.", ("s1",)),
        Fact("The mill by the river was built in 1904.", ("s1",)),
    )
    (fact,) = memory.facts
    assert fact.text.endswith("of stone; The mill by the river was built in 1904.")
    memory.add_fact(Fact("The mill by the river was built in 1906.", ("s1",)))
    assert len(memory.facts) == 1, "it is alike to the first statement of the entry"
    apart = remembered(
        Fact("The mill by the river was built in 1904.", ("s1",)),
        Fact("The mill by the river was built in 1906.", ("s1",)),
    )
    assert len(apart.facts) == 2


def test_an_entry_is_one_line_with_the_sources_that_hira_resolved() -> None:
    memory = remembered(Fact("31 m high\n(source: a page; see below)", ("s1", "s2")))
    memory.add_resource(Resource("a\ntable", "t.csv"))
    assert memory.recall("x", 2).lines == ["31 m high (source: s1, s2)", "a table: t.csv"]
    assert memory.recall("table", 1).lines == ["a table: t.csv"]
    assert memory.recall("nothing of it", 1).lines == [], "what shares no word is left out where not all fits"


def test_quality_weighs_a_source_and_a_failure() -> None:
    def first(*facts: Fact) -> str:
        return remembered(*facts).recall("depth lake", 9).lines[0]

    inferred, sourced = Fact("lake depth is 40 m"), Fact("depth of lake is 41 m", ("s1",))
    assert first(inferred, sourced) == first(sourced, inferred) == "depth of lake is 41 m (source: s1)"
    failed = Fact("depth of lake failed now", ("s1",))
    assert first(failed, inferred) == first(inferred, failed) == "lake depth is 40 m (source: inferred)"
