import pytest

from hira.evidence import OUTPUT, Source, Sources, accepted, check, cited, claims, drop_unknown, verify

TOWER = Source(
    "towers.md",
    "Towers",
    "The water tower of Arnis was built in 1894 by Johanna Krey. It is 31 m high, and stands on Chalk Hill.\n"
    "In 1931 its roof was renewed. About 2,400 people visit it each year.",
    id="s1",
)


def read(*sources: Source) -> Sources:
    known = Sources()
    for source in sources:
        known.add(source)
    return known


def test_one_location_keeps_one_id_and_grows_by_what_is_new_there() -> None:
    sources = read(Source("a", "A", "one"), Source("b", "B", "two"), Source("a", "A", "three"), Source("a", "A", "one"))
    assert list(sources.read) == ["s1", "s2"]
    assert sources.read["s1"].text == "one\n\nthree"


def test_a_page_read_whole_takes_the_place_of_its_snippet() -> None:
    sources = read(Source("u", "U", "part", kind="hit"), Source("u", "U", "whole with part in it", kind="page"))
    assert (sources.read["s1"].text, sources.read["s1"].kind) == ("whole with part in it", "page")


def test_ids_are_found_in_every_spelling() -> None:
    assert cited("a [s1], b [s2, s3]; c [ s1 ] and [4] and [source]") == ["s1", "s2", "s3"]


def test_citations_of_what_nobody_read_are_dropped_and_reported() -> None:
    assert drop_unknown("Built in 1894 [s1, s7]. High [s9].", read(TOWER)) == (
        "Built in 1894 [s1]. High.",
        ["s7", "s9"],
    )


def test_a_mark_after_the_full_stop_belongs_to_the_sentence_before() -> None:
    assert claims("It was built in 1894. [s1] It is 31 m high [s1]. Nice.") == [
        ("It was built in 1894", ["s1"]),
        ("It is 31 m high", ["s1"]),
    ]


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("The water tower of Arnis was built in 1894", "supported"),
        ("The tower was built by Johanna Krey in 1894", "supported"),
        ("It is 31 m high", "supported"),
        ("About 2400 people visit it each year", "supported"),
        ('The page says "stands on Chalk Hill"', "supported"),
        ("1894", "supported"),
        ("The water tower of Arnis was built in 1896", "contradicted"),
        ("The water tower of Arnis was built in 1931", "contradicted"),
        ('The page says "stands on Beacon Hill"', "not found"),
        ("The tower was designed by Amalia Stern in 1894", "not found"),
        ("It houses a museum of clocks and a cafe", "not found"),
        ("1895", "not found"),
    ],
)
def test_a_claim_is_held_against_the_stored_text(claim: str, verdict: str) -> None:
    assert check(claim, TOWER).verdict == verdict


def test_the_quote_is_the_passage_itself() -> None:
    quote = check("The tower is 31 m high", TOWER).quote
    assert quote in TOWER.text
    assert "31 m" in quote


def test_a_bare_answer_is_looked_for_beside_the_words_of_the_question() -> None:
    text = "Anna Lind was born in Oslo. Bo Lind was born in Oslo. Cai was born elsewhere."
    found = check("Oslo", Source("p", "P", text, id="s1"), "Where was Bo Lind born?")
    assert found.quote == "Bo Lind was born in Oslo."


def test_a_quotation_is_found_across_lines_and_typographic_marks() -> None:
    source = Source("p", "P", "He said it’s a\nlong way  home.", id="s1")
    assert check("He said “it's a long way home”", source).verdict == "supported"


def test_a_computation_is_evidence_by_what_it_printed_not_by_its_code() -> None:
    source = Source(
        "python:1.1",
        "sum",
        f"print('the answer is', 6 * 7)  # 41 would be wrong{OUTPUT}the answer is 42",
        "computation",
        "s1",
    )
    assert check("The answer is 42", source).verdict == "supported"
    assert check("41", source).verdict == "not found"


def test_chinese_claims_are_checked_too() -> None:
    source = Source("p", "P", "长城始建于公元前七世纪。它是中国的象征。", id="s1")
    assert check("长城始建于公元前七世纪", source).verdict == "supported"
    assert check("长城由火星人建造而成功能是望远镜", source).verdict == "not found"


def test_an_answer_rests_on_evidence_when_a_claim_is_supported_and_none_contradicted() -> None:
    sources = read(TOWER)
    assert accepted(verify("It is 31 m high [s1].", sources))
    assert not accepted(verify("It is 31 m high.", sources))
    assert not accepted(verify("It is 31 m high [s1]. The water tower of Arnis was built in 1901 [s1].", sources))
