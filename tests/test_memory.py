from hypothesis import given
from hypothesis import strategies as st

from hira.memory import DualMemory, Fact, Resource

MONTHS = ["May", "June", "July", "August", "October", "November"]


def remembered(*facts: Fact) -> DualMemory:
    memory = DualMemory()
    for fact in facts:
        memory.add_fact(fact)
    return memory


def test_similar_statements_of_one_source_become_one_and_the_fuller_one_stays() -> None:
    memory = remembered(
        Fact("The bridge opened in 1932.", ("s1",)), Fact("The harbour bridge opened in 1932, in March.", ("s1",))
    )
    assert [fact.text for fact in memory.facts] == ["The harbour bridge opened in 1932, in March."]


def test_the_same_statement_of_another_source_stays_a_fact_of_its_own() -> None:
    memory = remembered(Fact("The bridge opened in 1932.", ("s1",)), Fact("The bridge opened in 1932.", ("s2",)))
    assert [fact.sources for fact in memory.facts] == [("s1",), ("s2",)]


def test_statements_that_differ_in_a_number_or_in_a_negation_are_never_merged() -> None:
    memory = remembered(
        Fact("The bridge opened in 1932.", ("s1",)),
        Fact("The bridge opened in 1934.", ("s1",)),
        Fact("The bridge was not opened in 1932.", ("s1",)),
    )
    assert len(memory.facts) == 3


def test_merging_loses_no_word() -> None:
    memory = remembered(
        Fact("Lake Zug lies in central Switzerland near Lucerne.", ("s1",)),
        Fact("Lake Zug lies in central Switzerland near Zurich.", ("s1",)),
    )
    text = " ".join(fact.text for fact in memory.facts)
    assert "Lucerne" in text
    assert "Zurich" in text


def test_order_and_provenance_are_kept() -> None:
    memory = remembered(Fact("b", ("s2",), "1"), Fact("a", ("s1",), "2"))
    assert [(fact.text, fact.sources, fact.subtask) for fact in memory.facts] == [
        ("b", ("s2",), "1"),
        ("a", ("s1",), "2"),
    ]


def test_a_path_is_kept_once() -> None:
    memory = DualMemory()
    assert memory.add_resource(Resource("population table", "data/people.csv"))
    assert not memory.add_resource(Resource("the table again", "data/people.csv"))


def test_recall_brings_what_is_relevant_most_relevant_first_with_resources() -> None:
    memory = remembered(*(Fact(f"It rained in the month of {n}.", ("s9",)) for n in MONTHS))
    memory.add_fact(Fact("The tower of Arnis is 31 m high.", ("s1",)))
    memory.add_resource(Resource("heights of all towers, with Arnis", "towers.csv"))
    recall = memory.recall("How high is the tower of Arnis?", 5)
    assert {fact.text for fact in recall.facts} == {"The tower of Arnis is 31 m high."}
    assert [resource.path for resource in recall.resources] == ["towers.csv"]
    assert recall.lines[0] == "The tower of Arnis is 31 m high. (source: s1)"


def test_a_sourced_fact_ranks_above_an_inference_and_a_report_of_failure() -> None:
    filler = [Fact(f"Filler {n} on something else entirely.", (f"s{n}",)) for n in range(5, 12)]
    memory = remembered(
        Fact("Search for the depth of Lake Vire failed with an error.", ("s1",)),
        Fact("The depth of Lake Vire may be 40 m."),
        Fact("The depth of Lake Vire is 44 m.", ("s2",)),
        *filler,
    )
    lines = memory.recall("depth of Lake Vire", 3).lines
    assert lines[0].startswith("The depth of Lake Vire is 44 m.")
    assert lines[-1].startswith("Search for the depth")


def test_chosen_entries_come_in_the_order_chosen_each_once() -> None:
    memory = remembered(Fact("a", ("s1",)), Fact("b", ("s2",)))
    memory.add_resource(Resource("r", "p"))
    recall = memory.recall("anything", 9).take([1, 2, 1])
    assert recall.lines == ["b (source: s2)", "r: p"]


names = st.sampled_from(["tower", "lake", "bridge", "river", "mill", "1932", "1934", "not", "old", "new"])


@given(st.lists(st.tuples(st.lists(names, min_size=1).map(" ".join), st.sampled_from(["s1", "s2", ""]))))
def test_memory_never_loses_a_word_that_was_stated(facts: list[tuple[str, str]]) -> None:
    memory = DualMemory()
    for text, source in facts:
        memory.add_fact(Fact(text, (source,) if source else ()))
    for text, source in facts:
        kept = " ".join(fact.text for fact in memory.facts if (source in fact.sources) or not (source or fact.sources))
        assert set(text.split()) <= set(kept.replace(";", " ").split())
