import subprocess
import sys

import pytest

from hira.policies.offline import opening, table
from hira.policies.offline.passages import Passage

GUESTS = """\
| year | guests | school_classes | income_eur |
|---|---|---|---|
| 2019 | 4,100 | 12 | 52,300 |
| 2020 | 1,300 | 3 | 15,900 |
| 2021 | 2,900 | 8 | 36,400 |"""
WALKS = [
    {"walk": "Ridge", "start": "Lorn", "length_km": "12", "grade": "hard"},
    {"walk": "Mill Path", "start": "Varn", "length_km": "4.5", "grade": "easy"},
    {"walk": "Monk Way", "start": "Lorn", "length_km": "9", "grade": "easy"},
]
HARVEST = [
    {"orchard": "North", "kg_2021": "410", "kg_2022": "455"},
    {"orchard": "Chapel", "kg_2021": "150", "kg_2022": "142"},
]


@pytest.mark.parametrize(
    ("question", "figure"),
    [
        ("How many more guests came in 2019 than in 2021?", "difference = 1200"),
        ("How many fewer school classes came in 2020 than in 2019?", "difference = 9"),
        ("By how much did the income fall from 2019 to 2020?", "difference = 36400"),
        ("By how much did the guests rise between 2020 and 2021?", "difference = 1600"),
        ("What is the difference between the guests of 2019 and 2020?", "difference = 2800"),
        ("How many school classes came in 2019 and 2021 together?", "= 20 (2 rows)"),
        ("What is the mean of school_classes over the years?", "= 7.666666667 (3 rows; rounded 7.67)"),
        ("How many more guests came in 2019 than in 1999?", ""),
        ("How many more dogs came in 2019 than in 2020?", ""),
        ("How many more guests came in 2019 than in rainy years?", ""),
    ],
)
def test_two_rows_are_compared_where_both_are_understood(question: str, figure: str) -> None:
    told = table.answer(question, table.from_lines(GUESTS.splitlines()), "Guests of the museum")
    assert figure in told if figure else told == ""


@pytest.mark.parametrize(
    ("question", "figure"),
    [
        ("What is the total length of the walks that start in Lorn?", "= 21 (2 rows)"),
        ("How many walks start in Lorn?", "= 2 "),
        ("How many walks are graded easy?", "= 2 "),
        ("What is the mean length of the easy walks?", "= 6.75 (2 rows)"),
        ("How long are the Ridge and the Mill Path together?", "= 16.5 (2 rows)"),
        ("Which walk is the longest?", "walk Ridge"),
        ("How much longer is the Ridge than the Mill Path?", "difference = 7.5"),
        ("What is the total length of the walks with benches?", ""),
        ("Which walk has the most benches?", ""),
    ],
)
def test_rows_and_columns_may_be_named_loosely_but_not_left_out(question: str, figure: str) -> None:
    told = table.answer(question, WALKS, "walks")
    assert figure in told if figure else told == ""


def test_a_year_may_stand_in_the_name_of_a_column() -> None:
    assert "difference = 45" in table.answer("How much more kg did North have in 2022 than in 2021?", HARVEST)
    assert table.answer("What is the total of kg in 2020?", HARVEST) == ""


def test_of_several_tables_the_one_that_answers_is_opened() -> None:
    other = "| tool | price |\n|---|---|\n| saw | 12 |\n| axe | 30 |"
    page = Passage("s1", "Museum", "m.md", f"# Museum\n\n## Guests\n\n{GUESTS}\n\n## Tools\n\n{other}\n")
    question = "What is the total of guests?"
    found = opening.chosen(question, [page])
    assert found
    assert found.answers(question)
    assert "4,100" in found.told
    assert "saw" not in found.told


def test_two_tables_that_answer_alike_leave_it_open() -> None:
    pages = [Passage(f"s{at}", "Museum", f"{at}.md", GUESTS.replace("4,100", f"{at},100")) for at in (1, 2)]
    assert opening.chosen("What is the total of guests?", pages) is None


def test_the_reading_of_tables_runs_as_one_program_without_hira() -> None:
    program = f"{table.source()}\nprint(answer('How many walks are graded easy?', {WALKS!r}, 'walks'))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.strip() == table.answer("How many walks are graded easy?", WALKS, "walks")
