import pytest

from hira.policies.offline import reading
from hira.policies.offline.passages import Passage
from hira.policies.offline.reading import DIFFER


def answer(question: str, *texts: str) -> str:
    read = [Passage(f"s{at}", "Notes", f"{at}.md", text) for at, text in enumerate(texts, 1)]
    found = reading.find(question, read)
    return found.text if found else ""


@pytest.mark.parametrize(
    ("question", "one", "other", "values"),
    [
        ("When was Varn Mill built?", "Varn Mill was built in 1742.", "Varn Mill was built in 1747.", ("1742", "1747")),
        ("Who designed Varn Mill?", "Varn Mill was designed by Ida Lorn.", "Varn Mill was designed by Jon Pell.", ("Ida Lorn", "Jon Pell")),
        ("How high is Varn Mill?", "Varn Mill is 31 m high.", "Varn Mill is 27 metres high.", ("31 m", "27 metres")),
        ("How many rooms does Varn Mill have?", "Varn Mill has 14 rooms.", "Varn Mill has 17 rooms.", ("14", "17")),
        ("What does a loaf cost in Varn?", "In Varn a loaf costs 3 euros.", "A loaf costs 4 euros in Varn.", ("3 euros", "4 euros")),
        ("How much does the Lumo cost?", "The Lumo costs 79 euros.", "- Lumo: 84 €\n- Fix: 3 €", ("79 euros", "84 €")),
        ("How much does the Lumo cost?", "The Lumo costs 79 euros.", "| Article | Colour | Price |\n|---|---|---|\n| Lumo | red | 84 € |\n| Fix | blue | 3 € |", ("79 euros", "84 €")),
        ("How much does a plot in Varn cost?", "A plot in Varn costs 48 euros.", "In Varn the cost of a plot goes up from 48 to 52 euros.", ("48", "52")),
        ("When was Varn Mill opened?", "Varn Mill was opened on 4 May.", "Varn Mill was opened on May 11.", ("4 May", "May 11")),
        ("What is the roof of Varn Mill made of?", "The roof of Varn Mill is made of slate.", "The roof of Varn Mill is made of copper.", ("slate", "copper")),
    ],
)  # fmt: skip
def test_sources_that_state_different_values_are_both_told_with_their_citations(
    question: str, one: str, other: str, values: tuple[str, str]
) -> None:
    told = answer(question, one, other)
    assert all(value in told for value in values)
    assert "[s1]" in told
    assert "[s2]" in told
    assert told.endswith(DIFFER)


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        ("When was Varn Mill built?", "Varn Mill was built in 1742.", "Varn Mill was built in May 1742 by monks."),
        ("When was Varn Mill built?", "Varn Mill was built in 1742.", "The mill of Mard was built in 1801."),
        ("When was Varn Mill built?", "Varn Mill was built in 1742.", "Varn Mill was planned to be built in 1740."),
        ("When was Varn Mill opened?", "Varn Mill was opened on 4 May.", "Varn Mill was opened on May 4th."),
        ("How much does the Lumo cost?", "The Lumo costs 79 euros.", "- Lumo: 79 €\n- Lumo Fix: 3 €"),
        ("When was Varn Mill renovated?", "Varn Mill was renovated in 1900.", "Varn Mill was renovated in 1960."),
        ("How high is Varn Mill?", "Varn Mill is 31 m high.", "Varn Mill is 3,100 cm high."),
        ("How high is Varn Mill?", "Varn Mill is about 30 m high.", "Varn Mill is 31 m high."),
        ("How high is Varn Mill?", "Varn Mill is 31 m high.", "Varn Mill is 9 m wide and 31 metres high."),
        (
            "How many people live in Varn?",
            "Varn had 900 people in 2001, who live by the river.",
            "Varn had 1,200 people in 2021, who live by the river.",
        ),
        ("How many people live in Varn?", "In Varn live 1,200 people.", "In 1880 300 people lived in Varn."),
        ("Who taught at Varn School?", "Ida Lorn taught at Varn School.", "Jon Pell taught at Varn School."),
        (
            "When is Varn Mill open?",
            "Varn Mill is open on Mondays from 9 am.",
            "Varn Mill is open on Sundays from 11 am.",
        ),
    ],
)
def test_other_things_times_plans_and_the_same_told_otherwise_are_no_contradiction(
    question: str, one: str, other: str
) -> None:
    for texts in ((one, other), (other, one)):
        told = answer(question, *texts)
        assert told
        assert DIFFER not in told


def test_one_source_does_not_contradict_itself() -> None:
    assert DIFFER not in answer(
        "When was Varn Mill built?", "Varn Mill was built in 1742. Varn Mill was built in 1747."
    )


def test_what_was_done_has_to_be_said_of_somebody() -> None:
    said = "The clock of Varn Mill stands in the yard of Ida Lorn."
    assert answer("Who repaired the clock of Varn Mill?", said) == ""
    assert answer("Who repaired the clock of Varn Mill?", "Ida Lorn repaired the clock of Varn Mill.")
