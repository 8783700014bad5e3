import pytest

from hira.events import Events, Notice
from hira.evidence import (
    OUTPUT,
    Citation,
    Source,
    Sources,
    Verdict,
    accepted,
    check,
    cited,
    claims,
    drop_unknown,
    told,
    uncited,
    verify,
)
from hira.evidence.computed import repeated
from hira.evidence.quantities import dates, quantities
from hira.testing import ScriptedPolicy
from hira.testing.team import team_of
from hira.workflows import rollout

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


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("[s1] Built in 1894. [/s1]", "[s1] Built in 1894."),
        ("Built in 1894 [/s1].", "Built in 1894 [s1]."),
        ("Built in 1894 [/s1]. High [/s1].", "Built in 1894 [s1]. High [s1]."),
        ("Built in 1894 [s1].\n\nHigh [/ s1].", "Built in 1894 [s1].\n\nHigh [s1]."),
        ("Built in 1894 [/s9].", "Built in 1894."),
        ("[/s1]", "[s1]"),
    ],
)
def test_the_end_of_a_frame_stands_in_no_answer(said: str, shown: str) -> None:
    assert drop_unknown(said, read(TOWER))[0] == shown


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


def verdict(claim: str, text: str, question: str = "", kind: str = "page") -> str:
    return check(claim, Source("p", "P", text, kind, "s1"), question).verdict  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("claim", "text", "expected"),
    [
        (
            "Indonesia's capital city is Bangkok",
            "Jakarta is Indonesia's capital; Bangkok is Thailand's.",
            "contradicted",
        ),
        ("上海是中国的首都", "北京是中国的首都。上海是中国最大的城市。", "not found"),
        (
            "the capital of the country is Jakarta",
            "The capital of the country is Bandung. Jakarta is a port.",
            "not found",
        ),
        ("Jakarta is not the capital of Indonesia", "Jakarta is the capital of Indonesia.", "contradicted"),
        ("Revenue fell by 12 %", "Revenue grew by 12 %.", "contradicted"),
        ("The road is 300 miles long", "The road is 300 metres long.", "contradicted"),
        ("Germany beat Brazil", "Brazil beat Germany in the final.", "contradicted"),
        ("Costs fell by 12 %", "Revenue grew by 12 %, while costs fell by 4 %.", "contradicted"),
        ("The staff rose from 90 to 80", "The staff rose from 80 to 90.", "contradicted"),
        ("She was the last woman to win the prize", "She was the first woman to win the prize.", "contradicted"),
        ("杭州位于西湖西部", "西湖位于杭州西部。", "contradicted"),
    ],
)
def test_a_claim_in_the_words_of_the_page_that_says_otherwise_is_not_supported(
    claim: str, text: str, expected: str
) -> None:
    assert verdict(claim, text) == expected


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("The town has 3.1 million inhabitants", "The town has 3,140,000 inhabitants."),
        ("The town has about 40,000 inhabitants", "The town has 39,700 inhabitants."),
        ("It opened on 7 May 2020", "The museum was opened on 2020-05-07."),
        ("It opened on May 7, 2020", "The museum was opened on 7 May 2020."),
        ("There are ten experts", "There are 10 experts in the system."),
        ("The lake covers 3,5 km²", "The lake covers 3.5 km²."),
        ("Revenue grew by 12 percent", "Revenue grew by 12 %."),
        ("It is 1.2 km long", "It is 1,200 metres long."),
        ("长城始建于公元前7世纪", "长城始建于公元前七世纪。"),
        ("Ida Lorn built the mill in 1742", "The mill was built in 1742 by the architect Ida Lorn."),
    ],
)
def test_a_true_claim_is_supported_however_it_writes_its_numbers(claim: str, text: str) -> None:
    assert verdict(claim, text) == "supported"


def test_numbers_are_read_as_values_in_every_spelling() -> None:
    spelt = "3.1 million, 3,140,000, twenty-one, two hundred and fifty, 3,5, 2 400 000, 一千二百万, 45万"
    values = [3.1e6, 3.14e6, 21, 250, 3.5, 2.4e6, 1.2e7, 4.5e5]
    assert [one.readings[0] for one in quantities(spelt)] == pytest.approx(values)
    days = dates("7 May 2020, May 7, 2020; 2020-05-07; 2020年5月7日")
    assert {(one.year, one.month, one.day) for one in days} == {(2020, 5, 7)}


def test_a_sentence_is_cut_behind_each_mark_and_what_follows_the_last_belongs_to_it() -> None:
    assert claims("Indonesia [s1], Myanmar [s2]") == [("Indonesia", ["s1"]), ("Myanmar", ["s2"])]
    assert claims("Built in 1894 [s1] by Krey.") == [("Built in 1894 by Krey", ["s1"])]
    assert claims("According to [s1], it was built in 1894.") == [("it was built in 1894", ["s1"])]
    assert claims("It is high [s1][s2].") == [("It is high", ["s1", "s2"])]


def test_sources_that_are_cited_together_hold_a_claim_together() -> None:
    sources = read(
        Source("a", "Orlen", "Orlen has 48,200 inhabitants."), Source("b", "Tilsen", "Tilsen has 17,950 inhabitants.")
    )
    text = "Orlen has 48,200 inhabitants and Tilsen has 17,950 inhabitants [s1, s2]."
    assert {one.verdict for one in verify(text, sources)} == {"supported"}
    wrong = "Orlen has 48,200 inhabitants and Tilsen has 27,950 inhabitants [s1, s2]."
    assert "supported" not in {one.verdict for one in verify(wrong, sources)}


@pytest.mark.parametrize(
    ("answer", "question", "expected"),
    [
        ("Yes", "Did revenue grow in 2023?", "supported"),
        ("No", "Did revenue grow in 2023?", "contradicted"),
        ("Yes", "Did revenue fall in 2023?", "contradicted"),
        ("No", "Is the board content?", "unchecked"),
    ],
)
def test_yes_and_no_say_what_the_question_asks(answer: str, question: str, expected: str) -> None:
    assert verdict(answer, "Revenue grew by 12 % in 2023.", question) == expected


@pytest.mark.parametrize(
    ("claim", "program", "output", "expected"),
    [
        ("The average is 42", "print(sum(v) / len(v))", "42.0", "supported"),
        ("2757 km", "print('furthest:', *best)", "furthest: Indonesia Myanmar 2757.3 km", "supported"),
        ("2857 km", "print('furthest:', *best)", "furthest: Indonesia Myanmar 2757.3 km", "not found"),
        ("Sydney is the capital", "print('Sydney is the capital')", "Sydney is the capital", "unchecked"),
        ("Tilsen", "print(max({'Orlen': f(1), 'Tilsen': f(2)}))", "Tilsen", "supported"),
    ],
)
def test_a_computation_holds_what_it_computed_and_not_what_it_was_written_with(
    claim: str, program: str, output: str, expected: str
) -> None:
    assert verdict(claim, f"{program}{OUTPUT}{output}", kind="computation") == expected


def test_the_question_about_a_picture_is_no_evidence() -> None:
    sources = read(
        Source("p.jpg", "p", told("Is the car red?", "A blue van."), "media"),
        Source("p.jpg", "p", told("Is the\n\nOutput:\ndog black?", "The dog is white."), "media"),
    )
    assert check("A blue van", sources.read["s1"]).verdict == "supported"
    assert check("The dog is white", sources.read["s1"]).verdict == "supported"
    assert check("The car is red", sources.read["s1"]).verdict != "supported"
    assert check("The dog is black", sources.read["s1"]).verdict != "supported"


def made(*verdicts: Verdict) -> list[Citation]:
    return [Citation("s1", f"claim {at}", "", verdict) for at, verdict in enumerate(verdicts)]


def test_one_claim_in_ten_may_be_unfound_and_none_contradicted() -> None:
    assert accepted(made("supported", "unchecked"))
    assert not accepted(made("unchecked"))
    assert not accepted(made("supported", "not found"))
    assert accepted(made(*["supported"] * 9, "not found"))
    assert not accepted(made(*["supported"] * 9, "contradicted"))


def test_sentences_that_cite_nothing_are_found() -> None:
    assert uncited("Orlen. The tower is high [s1]. The moon is made of cheese.") == ["The moon is made of cheese."]
    assert uncited("# The towers of Orlen town\n\nThe tower is high [s1].") == [], "a heading claims nothing"


async def test_a_run_tells_each_claim_that_does_not_hold_and_what_cites_nothing() -> None:
    class Told:
        name = "told"

        async def run(self, question: str, team: object) -> str:
            return "The tower is 31 m high [s1]. It is 90 m wide [s1]. Elephants live in its old garden."

    notices: list[str] = []
    team = team_of(ScriptedPolicy([]))
    team.events = Events(lambda event: notices.append(event.text) if isinstance(event, Notice) else None)
    team.rollout.sources.add(TOWER)
    record = await rollout(Told(), "How high is the tower?", team)
    assert record.status == "insufficient_evidence"
    assert any(one.startswith("1 of 2 cited claims hold") and "90 m wide" in one for one in notices)
    assert any("cite nothing: 1" in one and "Elephants" in one for one in notices)


def test_a_figure_is_no_literal_because_its_digits_are() -> None:
    assert not repeated("rows = 32", 'few, many = 3, 2\nprint("rows =", count())')
    assert repeated("rows = 32", 'print("rows =", 32)')
