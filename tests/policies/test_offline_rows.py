"""Rows of a table in Markdown are told with the names of their columns; what only looks like a measure answers nothing."""

import pytest

from hira.policies.offline.kinds import measured, measures
from hira.policies.offline.passages import Passage
from hira.policies.offline.reading import find
from hira.policies.offline.wording import words

FLEET = """# The fleet

| vessel | built | length (m) | home port |
|---|---|---|---|
| Albatros | 1998 | 74.5 | Cuxhaven |
| Petrel | 2015 | 48.6 | Lorient |
"""
LOST = "The two moorings that the Petrel lost in July 2022 were M-14 and M-19."


def told(question: str, *texts: str) -> str:
    read = [Passage(f"s{at}", f"Page {at}", f"{at}.md", text) for at, text in enumerate(texts, 1)]
    found = find(question, read)
    return found.text if found else ""


@pytest.mark.parametrize(
    "question",
    ["What is the home port of the Petrel?", "How long is the Petrel?", "When was the Petrel built?"],
)
def test_a_row_in_markdown_answers_with_the_names_of_its_columns(question: str) -> None:
    assert told(question, LOST, FLEET) == "vessel: Petrel, built: 2015, length (m): 48.6, home port: Lorient. [s2]"


def test_the_names_of_the_columns_answer_nothing() -> None:
    assert told("What is the home port of the fleet?", FLEET) != "vessel, built, length (m), home port. [s1]"
    assert told("What is the home port of the Meridian?", FLEET) == ""


def test_a_row_of_a_sentence_and_a_name_is_told_as_it_was() -> None:
    words_told = "| word | meaning |\n|---|---|\n| rollout | A rollout is one question's whole way |\n"
    assert told("What is a rollout?", words_told) == "A rollout is one question's whole way. [s1]"


@pytest.mark.parametrize(
    ("question", "text", "holds"),
    [
        ("How long is the pier?", "The pier is 310 metres long.", True),
        ("How long is the pier?", "The pier has a length of 310.", True),
        ("How long may one stay?", "Guests may stay for 45 days.", True),
        ("How long may one stay?", "Guests may stay three full weeks.", True),
        ("How long is the pier?", "The pier lost M-14 in 2022.", False),
        ("How long is the pier?", "month: 2023-01 | pier: North | visitors: 140", False),
        ("How far is the pier?", "On day one 12 people saw the pier.", False),
    ],
)
def test_a_unit_measures_only_behind_a_number(question: str, text: str, *, holds: bool) -> None:
    assert measures(measured(question), text, frozenset(words(text))) is holds


PRICES = Passage(
    "s1",
    "Price list",
    "prices.md",
    "| Article | Material | Price | Sold |\n|---|---|---|---|\n| Fjord | wool | 119.00 € | yes |\n"
    "| Dune | cotton | 64.00 € | no |\n| Marl | wool | 42.00 € | yes |",
)


@pytest.mark.parametrize(
    ("question", "articles"),
    [
        ("Which articles are made of wool?", {"Fjord", "Marl"}),
        ("Which articles cost less than 100 €?", {"Dune", "Marl"}),
        ("Which articles are made of silk?", set()),
        ("Which articles are red?", set()),
        ("How much does the Marl cost?", {"Marl"}),
        ("Of which material does the Dune come?", {"Dune"}),
    ],
)
def test_all_rows_that_are_asked_for_are_told(question: str, articles: set[str]) -> None:
    found = find(question, [PRICES])
    told = found.text if found else ""
    assert {name for name in ("Fjord", "Dune", "Marl") if name in told} == articles
