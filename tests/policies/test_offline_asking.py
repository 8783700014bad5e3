"""How people ask about their tables: what is understood, and what is not answered."""

from pathlib import Path

import pytest

from hira import Hira
from hira.policies.offline import opening, reading, table
from hira.policies.offline.passages import Passage, noted
from hira.policies.offline.table.rows import distinct, from_file

BOATS = table.from_lines(
    """\
boat: Gull | from: Aven | to: Bray | minutes: 40 | fare_crowns: 9 | new_seats: 12 | opening_hours: 8
boat: Tern | from: Bray | to: Aven | minutes: 45 | fare_crowns: 9 | new_seats: 3 | opening_hours: 9
boat: Swift | from: Aven | to: Corr | minutes: 70 | fare_crowns: 14 | new_seats: 7 | opening_hours: 5""".splitlines()
)
MILK = table.from_lines(
    """\
| Farm | 2021 | 2022 |
|---|---|---|
| Upper Farm | 410 | 395 |
| Lake Farm | 220 | 260 |""".splitlines()
)
YIELDS = table.from_lines(
    """\
field: North | year: 2021 | barley_kg: 900 | oats_kg: 310
field: North | year: 2022 | barley_kg: 950 | oats_kg: 280
field: South | year: 2021 | barley_kg: 400 | oats_kg: 120
field: South | year: 2022 | barley_kg: 380 | oats_kg: 150""".splitlines()
)


@pytest.mark.parametrize(
    ("question", "figure"),
    [
        ("How many kilograms of barley did all fields yield together, by the table of the yields?", "= 2630 (4 rows)"),
        ("According to the farm yields table, how many kg of oats did South yield in 2022?", "= 150 (1 row)"),
        ("What was the average barley on the North field between 2021 and 2022?", "= 925 (2 rows)"),
        ("How much barley did North and South yield combined in 2021?", "= 1300 (2 rows)"),
        ("By how many kilograms of barley did North grow from 2021 to 2022?", "difference = 50"),
        ("What was the drop in oats at North from 2021 to 2022?", "difference = 30"),
        ("How many more kg of barley than oats did South yield in 2022?", "difference = 230"),
        ("How many fields are there in all?", "different field = 2"),
        ("In 2022, which field had the most oats?", "field North"),
        ("By how many kilograms of barley did South grow from 2021 to 2022?", ""),
        ("By how many percent did the barley of North grow from 2021 to 2022?", ""),
        ("How many kg of barley did all fields yield together in 2020?", ""),
        ("How many kg of barley did North yield last year?", ""),
        ("How many kg of barley does North yield a year?", ""),
        ("How many kg of spoiled barley did North yield in 2021?", ""),
        ("How many kg of barley did North sell to the mill in 2021?", ""),
        ("Which field had the most barley?", ""),
        ("Which farm had the most barley in 2021?", ""),
        ("What is the total of barley and oats?", ""),
    ],
)
def test_a_table_is_asked_as_people_do(question: str, figure: str) -> None:
    told = table.answer(question, YIELDS, "farm_yields")
    assert figure in told if figure else told == ""


@pytest.mark.parametrize(
    ("question", "figure"),
    [
        ("How many boats start in Aven?", "from is Aven = 2 "),
        ("How many boats leave Aven?", "from is Aven = 2 "),
        ("How many boats end in Aven?", "to is Aven = 1 "),
        ("How many boats go to Bray?", "to is Bray = 1 "),
        ("How many boats go from Aven to Bray?", "from is Aven and to is Bray = 1 "),
        ("How many boats start in Corr?", ""),
        ("How many boats arrive late in Aven?", ""),
        ("What is the sum of minutes of all boats from Aven?", "= 110 (2 rows)"),
        ("How many minutes do the boats from Aven take?", ""),
        ("What is the highest fare in crowns?", "= 14 (boat Swift"),
        ("Which boat takes the longest?", "boat Swift"),
        ("Which boat is the longest?", ""),
        ("How many minutes does the fastest boat take?", ""),
        ("How many minutes does the cheapest boat take?", ""),
        ("How many new seats does the Gull have?", "= 12 (1 row)"),
        ("How many seats does the Gull have?", ""),
        ("How many openings does the Gull have?", ""),
        ("How many boats are called Gull?", ""),
    ],
)
def test_ways_have_ends_and_superlatives_a_measure(question: str, figure: str) -> None:
    told = table.answer(question, BOATS, "boats")
    assert figure in told if figure else told == ""


@pytest.mark.parametrize(
    ("question", "figure"),
    [
        ("How much milk did all farms give together in 2022?", "= 655 (2 rows)"),
        ("How much milk did the Lake Farm give on average from 2021 to 2022?", "= 240 (2 rows)"),
        ("By how much did the milk of Upper Farm fall from 2021 to 2022?", "difference = 15"),
        ("Which farm gave the most milk in 2021?", "Farm Upper Farm"),
        ("How many farms are listed in the table of milk?", "= 2 "),
        ("How much milk did Upper Farm give in 2023?", ""),
        ("How much cheese did Upper Farm give in 2022?", ""),
        ("How much milk did Upper Farm give in May 2022?", ""),
    ],
)
def test_columns_may_go_through_the_years(question: str, figure: str) -> None:
    told = table.answer(question, MILK, "Milk of the farms")
    assert figure in told if figure else told == ""


def test_a_long_table_in_pieces_is_one_table() -> None:
    lines = [f"pole: P{at} | height_m: {at + 10}" for at in range(6)]
    shown = "\n".join(lines[:3]) + "\n\n" + "\n".join(lines[3:])
    (block,) = opening.blocks(Passage("s1", "poles", "poles.csv", shown))
    assert len(table.from_lines(block.rows)) == 6
    marked = "| a | b |\n|---|---|\n| x | 1 |\n\n| y | 2 |\n\n| c | d |\n|---|---|\n| z | 3 |"
    assert [len(table.from_lines(one.rows)) for one in opening.blocks(Passage("s1", "t", "t.md", marked))] == [2, 1]


@pytest.mark.slow(seconds=2)
def test_a_table_that_is_too_long_to_be_shown_is_computed_from_its_file(tmp_path: Path) -> None:
    rows = [f"S{at},{('Upper', 'Lower')[at % 2]},{at}" for at in range(400)]
    (tmp_path / "sensors.csv").write_text("\n".join(["sensor,valley,rain_mm", *rows]), encoding="utf-8")
    with Hira("offline", docs=tmp_path) as hira:
        assert "= 200 " in hira.ask_sync("How many sensors are in the Upper valley?").text
        assert "= 79800 " in hira.ask_sync("What is the total rain of all sensors?").text
        assert hira.ask_sync("How many sensors are broken in the Upper valley?").status == "insufficient_evidence"


def test_columns_of_one_name_are_told_apart_and_neither_is_guessed(tmp_path: Path) -> None:
    assert distinct(["a", "b", "b", ""]) == ["a", "b (1)", "b (2)", ""]
    (tmp_path / "t.csv").write_text("town,area,area\nBern,52,20\nThun,22,9\n", encoding="utf-8")
    assert table.answer("What is the total area?", from_file(tmp_path / "t.csv")) == ""


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What is the fare of the Swift?", True),
        ("From where does the Swift go?", False),
        ("What is the fare of the Swift for children?", False),
        ("What is the fare from Aven?", False),
        ("Who is the captain of the Swift?", False),
    ],
)
def test_a_row_answers_only_a_question_that_is_understood_over_its_table(question: str, *, found: bool) -> None:
    shown = "\n".join(" | ".join(f"{name}: {cell}" for name, cell in row.items()) for row in BOATS)
    told = reading.find(question, [Passage("s1", "boats", "boats.csv", shown)])
    assert bool(told) == found
    recalled = reading.find(question, noted([shown.splitlines()[2].replace(" | ", ", ") + " (source: s1)"]))
    assert bool(recalled) <= (found or question == "What is the fare from Aven?")


def test_what_time_says_the_kind_of_the_answer() -> None:
    log = "The mate is Ole Carr.\nThe crew met at 05:30 and sailed at 06:15.\nThe cook is Ida Moor."
    told = reading.find("At what time did the crew sail?", [Passage("s1", "log", "log.txt", log)])
    assert told
    assert "06:15" in told.text
    assert reading.find("At what time did the cook go home?", [Passage("s1", "log", "log.txt", log)]) is None
