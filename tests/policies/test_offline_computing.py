import subprocess
import sys
from pathlib import Path

import pytest

from hira.policies.offline import computing, table
from hira.policies.offline.table.cells import number

ROWS = [
    {"Town": "Bern", "Canton": "BE", "Inhabitants": "134,000"},
    {"Town": "Thun", "Canton": "BE", "Inhabitants": "43,700"},
    {"Town": "Stans", "Canton": "NW", "Inhabitants": "8,400"},
]


def printed(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("task", "result"),
    [
        ("What is 17 * 23?", "17 * 23 = 391"),
        ("What is seventeen times twenty-three?", "17 * 23 = 391"),
        ("How much is 15 percent of 2,480?", "15 / 100 * 2480 = 372"),
        ("What is the square root of 144 plus 5?", "sqrt(144) + 5 = 17"),
        ("Calculate the average of 4, 8 and 15.", "(4 + 8 + 15) / 3 = 9"),
        ("What is 5 subtracted from two hundred and five?", None),
        ("What is 5 subtracted from two hundred five?", "205 - 5 = 200"),
        ("What is 2 to the power of 10?", "2 ** 10 = 1024"),
        ("Compute 87 - 48", "87 - 48 = 39"),
        ("What is 7 factorial?", "factorial(7) = 5040"),
        ("What is 0.1 + 0.2?", "0.1 + 0.2 = 0.3"),
    ],
)
def test_arithmetic_in_words_or_signs_becomes_a_program(task: str, result: str | None) -> None:
    program = computing.arithmetic(task)
    assert (printed(program) if program else None) == result


@pytest.mark.parametrize(
    "task",
    [
        "What is 9 ** 9 ** 9?",
        "What is 2 to the power of 99999999?",
        "What is 99999999 factorial?",
        "Who built the bridge in 1871?",
        "How many of the 3-4 experts are used?",
        "What is GPT-4?",
        "What is 42?",
        "",
    ],
)
def test_what_is_no_arithmetic_or_has_no_end_becomes_none(task: str) -> None:
    assert computing.arithmetic(task) == ""


@pytest.mark.parametrize(
    ("task", "result"),
    [
        ("How many days lie between 14 March 1868 and 2 May 1871?", "days from 1868-03-14 to 1871-05-02 = 1144"),
        ("How many weeks are there from March 1, 2024 to 2024-03-15?", "weeks from 2024-03-01 to 2024-03-15 = 2"),
        ("What day of the week was 1 August 1991?", "1991-08-01 is a Thursday"),
        ("Which date is 100 days after 3 March 2020?", "100 days after 2020-03-03 = 2020-06-11"),
    ],
)
def test_dates_are_computed(task: str, result: str) -> None:
    assert printed(computing.dates(task)) == result


@pytest.mark.parametrize("task", ["When was 3 March 2020?", "What day is it?", "How many days has May?"])
def test_a_question_without_a_span_of_dates_is_none_to_compute(task: str) -> None:
    assert computing.dates(task) == ""


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("What is the total of Inhabitants?", "total of Inhabitants = 186100 (3 rows)"),
        ("What is the average Inhabitants in BE?", "average of Inhabitants where Canton is BE = 88850 (2 rows)"),
        ("What is the median of the inhabitants?", "median of Inhabitants = 43700 (3 rows)"),
        ("Which town has the fewest inhabitants?", "lowest Inhabitants = 8400 (Town Stans, Canton NW)"),
        ("How many towns are in BE?", "number of rows where Canton is BE = 2 (of 3 rows)"),
        ("How many towns have more than 10,000 inhabitants?", "number of rows where Inhabitants is above 10000 = 2 (of 3 rows)"),
        ("How many cantons are there?", "number of different Canton = 2 (in 3 rows)"),
        ("How many inhabitants has Thun?", "Inhabitants where Town is Thun = 43700 (1 row)"),
        ("What is the total of inhabitants without Bern?", "total of Inhabitants where Town is not Bern = 52100 (2 rows)"),
        ("What is the colour of the total?", ""),
        ("What is the total of inhabitants of the rainy towns?", ""),
        ("What is the second highest number of inhabitants?", ""),
        ("What is the total of towns?", ""),
        ("Who is it?", ""),
    ],
)  # fmt: skip
def test_a_column_is_aggregated_as_the_question_says(question: str, line: str) -> None:
    assert table.answer(question, ROWS) == line


YEARS = [
    {"Year": year, "Apples (kg)": apples, "Pears (kg)": pears}
    for year, apples, pears in (("2016", "4200", "1300"), ("2017", "3900", "1250"), ("2018", "5100", "1600"))
]
MONTHS = [
    {"Month": month, "Cars": cars, "Bicycles": bicycles}
    for month, cars, bicycles in (("March", "402", "110"), ("April", "480", "190"), ("May", "560", "320"))
] + [{"Month": "Total", "Cars": "1442", "Bicycles": "620"}]


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("What is the total of cars from March to April?", "total of Cars where Month is from March to April = 882 (2 rows)"),
        ("What is the total of cars between April and May?", "total of Cars where Month is from April to May = 1040 (2 rows)"),
        ("What is the mean of cars since April?", "average of Cars where Month is since April = 520 (2 rows)"),
        ("What is the mean of cars except in March and April?", "average of Cars where Month is not March and not April = 560 (1 rows)"),
        ("What is the total of cars without May?", "total of Cars where Month is not May = 882 (2 rows)"),
        ("How many bicycles came in April?", "Bicycles where Month is April = 190 (1 row)"),
        ("In how many months did more than 450 cars come?", "number of rows where Cars is above 450 = 2 (of 3 rows)"),
        ("How many months had from 450 to 500 cars?", "number of rows where Cars is from 450 to 500 = 1 (of 3 rows)"),
        ("Which month had the fewest bicycles?", "lowest Bicycles = 110 (Month March, Cars 402)"),
        ("What is the average of cars per month?", "average of Cars = 480.6666667 (3 rows; rounded 480.67)"),
        ("What is the total of cars per month?", ""),
        ("What is the total of cars from May to March?", ""),
        ("What is the total of cars without lorries?", ""),
        ("What is the total of cars between five and May?", ""),
        ("What is the total of cars before April or after April?", ""),
        ("What is the total of cars and bicycles?", ""),
        ("What is the total of cars in the first week?", ""),
        ("What is the sum and the average of cars?", ""),
    ],
)  # fmt: skip
def test_ranges_exclusions_and_cells_are_computed_or_nothing_is(question: str, line: str) -> None:
    assert table.answer(question, MONTHS) == line


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("What is the total of apples between 2016 and 2017?", "total of Apples (kg) where Year is from 2016 to 2017 = 8100 (2 rows)"),
        ("What is the total of apples from 2017-2018?", "total of Apples (kg) where Year is from 2017 to 2018 = 9000 (2 rows)"),
        ("What is the total of pears after 2016 and before 2018?", "total of Pears (kg) where Year is after 2016 and before 2018 = 1250 (1 rows)"),
        ("In how many years were there more than 4000 kilograms of apples?", "number of rows where Apples (kg) is above 4000 = 2 (of 3 rows)"),
        ("What is the total of apples in 2019?", ""),
    ],
)  # fmt: skip
def test_years_are_found_in_the_column_of_years(question: str, line: str) -> None:
    assert table.answer(question, YEARS) == line


def test_a_sheet_is_read_with_its_row_numbers_and_formulas() -> None:
    lines = [
        "columns: A = Pump, B = Power",
        "row 2: Pump: North | Power: 12.5",
        "row 3: Pump: Mill | Power: 18 (=B2+5.5)",
    ]
    assert table.from_lines(lines) == [{"Pump": "North", "Power": "12.5"}, {"Pump": "Mill", "Power": "18"}]


def test_a_program_begins_with_what_it_computes() -> None:
    assert computing.program_for("What is 3 times 4?", []).startswith("# 3 * 4\n")
    assert computing.program_for("What is the total of cars in ferry.csv?", []).startswith("# total, ferry.csv\n")


def test_no_column_is_guessed_among_several() -> None:
    rows = [{"Name": "a", "Width": "1", "Height": "2"}, {"Name": "b", "Width": "3", "Height": "4"}]
    assert table.answer("What is the total weight?", rows) == ""


def test_rows_are_read_from_a_file_wherever_below_the_roots_it_lies(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "towns.tsv").write_text("Town\tArea\nBern\t52\nThun\t22\n", encoding="utf-8")
    program = computing.program_for(
        "Compute from the table: What is the total Area in in/towns.tsv?", [], [], [str(tmp_path)]
    )
    assert printed(program) == "total of Area = 74 (2 rows)"


def test_rows_are_read_from_notes_and_from_markdown() -> None:
    notes = ["The table Towns:", "Town: Bern | Area: 52", "Town: Thun | Area: 22 (source: s1)"]
    assert printed(computing.program_for("What is the total Area?", [], notes)) == "total of Area = 74 (2 rows)"
    lines = ["| Town | Area |", "|---|---|", "| Bern | 52 |", "| Thun | 22 |"]
    assert table.from_lines(lines) == [{"Town": "Bern", "Area": "52"}, {"Town": "Thun", "Area": "22"}]


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1,234.5", 1234.5),
        ("$5", 5),
        ("-3", -3),
        ("12 %", 12),
        ("7 km", 7),
        ("n/a", None),
        ("", None),
        ("a 1 b 2", None),
    ],
)
def test_a_cell_is_read_as_a_number(cell: str, value: float | None) -> None:
    assert number(cell) == value
