from hira.policies.offline import reading
from hira.policies.offline.reading import Passage

LAKES = Passage(
    "s1",
    "Lakes",
    "lakes.md",
    "Lake Aum was sounded in 1907 by a survey under Emil Saxer. It covers 218 square kilometres.\n\n"
    "Lake Bex, in the hills, covers 36 square kilometres. Dr. Roth, who was born in Elm, measured it in 1911.",
)


def answer(question: str, *read: Passage) -> str:
    found = reading.find(question, read)
    return found.text if found else ""


def test_passages_are_read_back_from_a_result_each_once() -> None:
    text = "[s1] A (b) title (a.md)\nOne.\nTwo.\n\n[s2] Other (https://example.org/x)\nThree.\n\n[s2] Other (https://example.org/x)\nThree."
    assert reading.passages(text) == [
        Passage("s1", "A (b) title", "a.md", "One.\nTwo."),
        Passage("s2", "Other", "https://example.org/x", "Three."),
    ]
    assert reading.passages("Nothing was found.") == []


def test_notes_with_a_source_are_passages_of_it() -> None:
    notes = ["Lake Aum was sounded in 1907 (source: s3)", "A guess (source: inferred)"]
    assert reading.noted(notes) == [Passage("s3", "", "", "Lake Aum was sounded in 1907")]


def test_text_is_split_into_sentences_with_rows_items_and_headings_apart() -> None:
    text = (
        "# Heading\nDr. A. Roth et al. came in 1911. She left.\n- an item\nTown: Bex | Area: 5\n"
        "a line that was broken because it is rather long and full,\nand its rest.\n他来了。他走了。"
    )
    assert reading.split(text) == [
        "# Heading",
        "Dr. A. Roth et al. came in 1911.",
        "She left.",
        "- an item",
        "Town: Bex | Area: 5",
        "a line that was broken because it is rather long and full,",
        "and its rest.",
        "他来了。",
        "他走了。",
    ]


def test_a_line_that_was_broken_in_a_sentence_is_joined() -> None:
    text = "The quick survey of the northern lakes was made in the year 1907 and\nended in 1911. It was long."
    assert reading.split(text)[0] == text.replace("\n", " ").split(". ")[0] + "."


def test_the_sentence_about_the_thing_asked_wins_over_one_with_the_same_words_about_another() -> None:
    assert answer("How large is Lake Bex?", LAKES) == "Lake Bex, in the hills, covers 36 square kilometres. [s1]"
    assert answer("How large is Lake Aum?", LAKES).endswith("It covers 218 square kilometres. [s1]")


def test_a_sentence_that_points_back_is_cited_with_the_one_before_it() -> None:
    assert answer("How large is Lake Aum?", LAKES).startswith("Lake Aum was sounded in 1907 by a survey")


def test_the_kind_of_answer_decides_between_sentences() -> None:
    assert "1907" in answer("When was Lake Aum sounded?", LAKES)
    assert "Emil Saxer" in answer("Who sounded Lake Aum?", LAKES)


def test_nothing_is_answered_about_a_name_that_was_not_read() -> None:
    assert answer("When was Lake Cor sounded?", LAKES) == ""
    assert answer("When was Lake Aum sounded in 1950?", LAKES) == ""


def test_nothing_is_answered_when_what_is_asked_about_a_name_was_not_read() -> None:
    assert answer("What is the salary of Emil Saxer?", LAKES) == ""
    assert answer("How many boats cross Lake Aum?", LAKES) == ""
    assert answer("When did Emil Saxer die?", LAKES) == ""


def test_a_number_in_a_name_is_part_of_the_name() -> None:
    probes = Passage("s1", "Probes", "p.md", "Orbiter-4b weighs 722 kilograms.")
    assert answer("How heavy is Orbiter-4b?", probes)
    assert answer("How heavy is Orbiter-4?", probes) == ""


def test_nothing_is_found_in_nothing() -> None:
    assert answer("When was Lake Aum sounded?") == ""
    assert answer("", LAKES) == ""
