"""The claims of an answer: what states something, and what does not."""

from dataclasses import replace

import pytest

from hira.core.sources import Sources
from hira.evidence import Citation, claims, drop_unknown, flag_claims, is_refusal, remove_marks
from hira.evidence.citations import references_start
from hira.evidence.claims import Claim


def texts(answer: str) -> list[str]:
    return [one.text for one in claims(answer)]


def test_a_power_keeps_its_sign_and_bold_words_lose_theirs() -> None:
    assert texts("2**10 = 1024. [s1]\n\nIt has **1,024** **bytes**. [s1]") == ["2**10 = 1024", "It has 1,024 bytes"]


def test_a_claim_ends_where_its_mark_stands() -> None:
    found = claims("Lena runs the ferry [s1], Otto the mill [s2, s3]. Both are old.")
    assert [(one.text, one.sources) for one in found] == [
        ("Lena runs the ferry", ("s1",)),
        ("Otto the mill", ("s2", "s3")),
        ("Both are old", ()),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        "Based on the information provided in these reports, the weir was mended in 1911.",
        "The provided text states that the weir was mended in 1911.",
        "According to [s2], the weir was mended in 1911.",
        "Based on [s2], the weir was mended in 1911.",
        "In the report [s2], the weir was mended in 1911.",
        "According to weir.md [s2], the weir was mended in 1911.",
        "[1] The weir was mended in 1911.",
        "**Answer:** the weir was mended in 1911.",
        "The weir was mended in 1911. Let me know if you need more.",
    ],
)
def test_framing_is_no_part_of_a_claim(answer: str) -> None:
    assert [text.lower() for text in texts(answer)] == ["the weir was mended in 1911"]


@pytest.mark.parametrize(
    ("answer", "claim", "sources", "end"),
    [
        ("In 1911 [s1], the weir was mended.", "In 1911, the weir was mended", ("s1",), "mended"),
        ("In 1911 [s1], the weir was mended [s2].", "In 1911, the weir was mended", ("s1", "s2"), "[s2]"),
        ("The weir was mended [s1] in 1911, by Otto.", "The weir was mended in 1911, by Otto", ("s1",), "Otto"),
    ],
)
def test_a_mark_within_a_sentence_leaves_no_hole_in_its_claim(
    answer: str, claim: str, sources: tuple[str, ...], end: str
) -> None:
    assert claims(answer) == [Claim(claim, sources, answer.index(end) + len(end))]


def test_a_statement_that_begins_with_a_preposition_is_a_claim_of_its_own() -> None:
    told = claims("In 2012 Anna Berg founded the mill [s1], Bob left it [s2]. Since the end of May [s1], it is open.")
    assert [(claim.text, claim.sources) for claim in told] == [
        ("In 2012 Anna Berg founded the mill", ("s1",)),
        ("Bob left it", ("s2",)),
        ("Since the end of May, it is open", ("s1",)),
    ]


def test_framing_in_other_languages_is_no_part_of_a_claim() -> None:
    assert texts("Selon les documents fournis, le pont date de 1911.") == ["le pont date de 1911"]
    assert texts("Según los documentos, el puente es de 1911.") == ["el puente es de 1911"]
    assert texts("Laut den Dokumenten wurde das Wehr 1911 geflickt.") == ["wurde das Wehr 1911 geflickt"]
    assert texts("根据所提供的资料，水坝建于1911年。") == ["水坝建于1911年"]


@pytest.mark.parametrize(
    "answer",
    [
        "The documents do not mention who mended the weir.",
        "None of the sources names the smith.",
        "I'm sorry, but I could not find an answer.",
        "Unfortunately, there is no information about the smith in the search results.",
        "In den Dokumenten steht nicht, wer das Wehr geflickt hat.",
        "Les documents ne mentionnent pas le forgeron.",
        "文档没有提到铁匠。",
    ],
)
def test_a_refusal_is_a_refusal_and_no_claim(answer: str) -> None:
    assert is_refusal(answer)
    assert claims(answer) == []


@pytest.mark.parametrize(
    "answer",
    [
        "The weir was mended in 1911. The documents do not say by whom.",
        "The ferry does not run on Sundays [s1].",
        "No data loss occurred that night.",
    ],
)
def test_an_answer_that_says_something_first_is_no_refusal(answer: str) -> None:
    assert not is_refusal(answer)
    assert len(claims(answer)) == 1


@pytest.mark.parametrize(
    ("answer", "refused", "claim"),
    [
        (
            "The documents do not say who mended the weir, but it was mended in 1911 [s1].",
            True,
            "it was mended in 1911",
        ),
        ("Although the text doesn't name the smith, the weir was mended in 1911.", True, "the weir was mended in 1911"),
        ("文档没有提到铁匠，但水坝建于1911年。", True, "水坝建于1911年"),
        ("However, the weir was mended in 1911.", False, "However, the weir was mended in 1911"),
    ],
)
def test_a_sentence_that_refuses_and_says_something_is_a_claim_in_one_clause(
    answer: str, refused: bool, claim: str
) -> None:
    assert is_refusal(answer) is refused
    assert texts(answer) == [claim]


def test_questions_headings_code_tables_and_lists_of_sources_state_nothing() -> None:
    answer = """# The weir of Arn

**Summary**

Who mended it? The smith mended the weir.

```python
print("The weir is green.")
```

| year | event |
|---|---|

## Sources
- [s1] The weir. A history.
"""
    assert texts(answer) == ["The smith mended the weir"]


def test_an_answer_of_one_word_is_a_claim_and_a_bare_yes_belongs_to_the_next() -> None:
    assert texts("Arn") == ["Arn"]
    assert texts("**Arn**") == ["Arn"]
    assert texts("Yes.") == ["Yes"]
    assert texts("Yes. The ferry runs.") == ["Yes, The ferry runs"]


def test_claims_that_are_not_supported_are_flagged_where_they_end() -> None:
    answer = "The weir leaks [s1]. It is green. Otto mended it. [s2]"
    made = [
        Citation("s1", "The weir leaks", "", "supported", by="lexical"),
        Citation("s1", "It is green", "", "unsupported", by="lexical"),
        Citation("s2", "Otto mended it", "", "contradicted", by="model"),
    ]
    why = "the source has these words, but puts them differently"
    flagged = f"The weir leaks [s1]. It is green (unsupported; {why}). Otto mended it. [s2] (contradicted)"
    assert flag_claims(answer, made) == flagged
    assert flag_claims(answer, made, chinese=True).count("(") == 2


def test_the_flag_of_a_claim_names_eight_words_at_most_that_the_source_does_not_say() -> None:
    missing = tuple("green weir of Arn leaks water every hour at dawn".split())
    citation = Citation("s1", "It is green", "", "unsupported", by="lexical", missing=missing)
    eight = "green, weir, of, Arn, leaks, water, every, hour, …"
    assert flag_claims("It is green.", [citation]) == f"It is green (unsupported; the quotation does not say: {eight})."
    assert "引文未提及：green" in flag_claims("It is green.", [citation], chinese=True)
    assert replace(citation, missing=(), by="model").explain() == ""
    assert replace(citation, missing=(), verdict="supported").explain() == ""


@pytest.mark.parametrize("text", ["[" + " " * 300_000, "[s1" + " " * 300_000 + "x", "[s9]" + " " * 300_000 + "x",
                                  "sources" + " " * 300_000 + "x", "x" + "." * 300_000 + "x", "!" * 300_000])  # fmt: skip
def test_many_blanks_or_stops_are_read_in_one_pass(text: str) -> None:
    """Each of these ran for minutes where a pattern could begin at every character."""
    claims(text)
    remove_marks(text)
    drop_unknown(text, Sources())
    references_start(text)


def test_a_short_list_item_is_read_with_the_line_that_announces_it() -> None:
    answer = "The ferrymen of Arn were [s1]:\n- Otto\n- Lena Brook [s2]\n\nThey were paid in eels."
    assert claims(answer)[:2] == [
        Claim("The ferrymen of Arn were: Otto", ("s1",), answer.index("Otto") + 4),
        Claim("The ferrymen of Arn were: Lena Brook", ("s2",), answer.index("[s2]") + 4),
    ]
    assert claims(answer)[2].text == "They were paid in eels"
