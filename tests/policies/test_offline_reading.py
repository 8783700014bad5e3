import pytest

from hira.policies.offline import plain as markdown
from hira.policies.offline import reading
from hira.policies.offline.passages import Passage, noted, passages_of
from hira.policies.offline.sentences import split

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
    assert passages_of(text) == [
        Passage("s1", "A (b) title", "a.md", "One.\nTwo."),
        Passage("s2", "Other", "https://example.org/x", "Three."),
    ]
    assert passages_of("Nothing was found.") == []


def test_notes_with_a_source_are_passages_of_it() -> None:
    notes = ["Lake Aum was sounded in 1907 (source: s3)", "A guess (source: inferred)"]
    assert noted(notes) == [Passage("s3", "", "", "Lake Aum was sounded in 1907")]


def test_text_is_split_into_sentences_with_rows_items_and_headings_apart() -> None:
    text = (
        "# Heading\nDr. A. Roth et al. came in 1911. She left.\n- an item\nTown: Bex | Area: 5\n"
        "a line that was broken because it is rather long and full,\nand its rest.\n他来了。他走了。"
    )
    assert split(text) == [
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
    assert split(text)[0] == text.replace("\n", " ").split(". ")[0] + "."


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


MUSEUM = Passage(
    "s1",
    "Museum",
    "museum.md",
    "Opening hours of the museum: Tuesday to Sunday from 10 am to 5 pm. Admission is 6 euros.\n\n"
    "Tram 7 runs to the museum every 15 minutes. The ride on tram 7 takes 22 minutes.\n\n"
    "The pond in the garden is 14 metres across and 2 metres deep. Ada Roth was born in 1888. Ada Roth died in 1961.\n\n"
    "Rosa Keller taught in Elm before she became director. Tom Hale is the director of the museum.",
)


@pytest.mark.parametrize(
    ("question", "held"),
    [
        ("How long does the ride on tram 7 take?", "22 minutes"),
        ("What is the ride time of tram 7?", "22 minutes"),
        ("How often does tram 7 run to the museum?", "every 15 minutes"),
        ("When is the museum open?", "Tuesday to Sunday"),
        ("How large is the pond in the garden?", "14 metres across"),
        ("What does admission to the museum cost?", "6 euros"),
        ("Who is the director of the museum?", "Tom Hale is the director"),
        ("How old was Ada Roth when she died?", ""),
        ("What does the ride on tram 7 cost?", ""),
        ("What does admission cost?", "6 euros"),
    ],
)
def test_the_value_fits_what_is_asked_or_nothing_is_answered(question: str, held: str) -> None:
    found = answer(question, MUSEUM)
    assert held in found
    assert bool(found) == bool(held)


def test_accents_are_folded_on_both_sides() -> None:
    cafe = Passage("s1", "Cafés", "c.md", "Café Zorro was founded in 1911 by José Muñoz. Bar Nîmes opened in 1950.")
    assert "1911" in answer("When was the cafe Zorro founded?", cafe)
    assert "1911" in answer("When was Café Zorro founded?", cafe)
    assert "José Muñoz" in answer("What did Jose Munoz found in 1911?", cafe)


def test_a_number_in_chinese_stands_before_its_measure_word() -> None:
    library = Passage("s1", "", "l.txt", "图书馆建于1987年。图书馆在2006年扩建。图书馆藏有三万两千册书。")
    assert answer("图书馆有多少册书？", library) == "图书馆藏有三万两千册书。 [s1]"
    assert answer("图书馆有多少个座位？", library) == ""


def test_a_question_and_a_line_of_code_are_no_answers() -> None:
    page = Passage(
        "s1",
        "Asking",
        "a.md",
        'Try it:\n\n```bash\nhira ask "Who won the cup of 1934?"\n```\n\nWho won the cup of 1934? Try it.\n'
        'hira ask "Who won the cup of 1934?" --docs Folder',
    )
    assert answer("Who won the cup of 1934?", page) == ""
    asked = Passage("s1", "", "a.md", "Who won the cup of 1934?\nThe cup of 1934 was won by Anna Bell.")
    assert "Anna Bell" in answer("Who won the cup of 1934?", asked)


def test_a_definition_is_preferred_and_needed_where_one_is_asked_for() -> None:
    page = Passage("s1", "", "w.md", "Every weir has a keeper. A weir is a low wall across a river. The sluice is old.")
    assert answer("What is a weir?", page) == "A weir is a low wall across a river. [s1]"
    assert answer("What is a keeper?", page) == ""
    assert answer("What is a sluice?", page) == ""


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ("2. **Sign.** To borrow a boat, sign [the form](forms.md).", "Sign. To borrow a boat, sign the form."),
        ("- `hira` reads _all_ of ![a map](m.png) it.", "hira reads all of a map it."),
        ("## Steps to the [mill][1]", "Steps to the mill"),
        ("snake_case_name stays, and 2 * 3 * 4 too.", "snake_case_name stays, and 2 * 3 * 4 too."),
        ('He said "a **very** old mill" and left.', "He said a very old mill and left."),
    ],
)
def test_markdown_is_shown_as_plain_words(raw: str, plain: str) -> None:
    assert markdown.sentence(raw) == plain


def test_a_row_is_shown_as_words() -> None:
    assert markdown.row("Town: Bex | Area: 5") == "Town: Bex, Area: 5."
    assert markdown.row("| rollout | A rollout is one question's way. | 3 |") == "A rollout is one question's way."


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("$ hira ask 'why'", True),
        ("from hira import Hira", True),
        ("answer = hira.ask(question)", True),
        ("print(answer.text)", True),
        ("It prints the answer and ends with exit code 4.", False),
        ("Return the boat before dusk.", False),
    ],
)
def test_a_line_of_code_is_told_from_a_sentence(line: str, code: bool) -> None:
    assert markdown.is_code(line) is code


SHIPS = Passage(
    "s1",
    "Ships",
    "ships.md",
    "The brig Hesperia was built in 1871. Her first captain was Anders Holm, who was followed by Jens Krag in 1880.\n\n"
    "The schooner Maren was launched in 1868. Captain Peder Lund led her until 1884; after him Erik Sand took over.\n\n"
    "The bark Vala was led by Eva Roth, who took over the command from Ole Dahl.\n\n"
    "The Tern was led by Tom Berg; Jon Pell took over from him in 1871.",
)


@pytest.mark.parametrize(
    ("question", "holds"),
    [
        ("Who was captain of the Hesperia before Jens Krag?", "Anders Holm"),
        ("Who was captain of the Hesperia before Anders Holm?", ""),
        ("Who followed Anders Holm as captain of the Hesperia?", "Jens Krag"),
        ("Who succeeded Jens Krag as captain of the Hesperia?", ""),
        ("Who led the Maren after Peder Lund?", "Erik Sand"),
        ("Who led the Maren before Peder Lund?", ""),
        ("Who was Erik Sand's predecessor?", "Peder Lund"),
        ("Who led the Vala before Eva Roth?", "Ole Dahl"),
        ("Who led the Vala after Eva Roth?", ""),
        ("Who led the Tern before Jon Pell?", "Tom Berg"),
        ("Who led the Tern after Jon Pell?", ""),
    ],
)
def test_who_came_before_another_is_answered_only_where_the_order_is_told(question: str, holds: str) -> None:
    told = answer(question, SHIPS)
    assert holds in told
    assert bool(told) == bool(holds)


def test_a_year_counts_nothing() -> None:
    assert not answer("How many brigs were built?", SHIPS)


QUESTIONS = Passage(
    "s1",
    "Lamp",
    "lamp.md",
    "**How long does the battery last?**\nAbout nine hours.\n\n**Is the lamp waterproof?**\nNo. It is for dry rooms.\n\n"
    "**What is the warranty?**\n\nThree years from the date of purchase.\n\n"
    "**When must the shop be locked?**\nAt dusk.\n\nRules:\n- fires are forbidden from May to June",
)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("How long does the battery of the lamp last?", "About nine hours. [s1]"),
        ("Is the lamp waterproof?", "No. It is for dry rooms. [s1]"),
        ("How long is the warranty of the lamp?", "Three years from the date of purchase. [s1]"),
        ("How long does the bulb of the lamp last?", ""),
        ("When must the shop be locked?", "At dusk. [s1]"),
    ],
)
def test_what_stands_below_a_question_answers_it(question: str, told: str) -> None:
    assert answer(question, QUESTIONS) == told


def test_the_items_of_a_list_lend_each_other_no_words() -> None:
    items = "Tasks of the team:\n- Ruth: the report\n- Tomas: spare parts by Friday\n- Ines: the seeds, and labels"
    assert answer("Who labels the spare parts?", Passage("s1", "Tasks", "tasks.md", items)) == ""


TOWN = Passage(
    "s1",
    "Town",
    "town.md",
    "Present: Ruth Adey, Per Lind\n\nThe brig Hesper was built by Olaf Brandt. She carried timber.\n\n"
    "The bark Vala was also built by Olaf Brandt. The brig Anna was lost in 1880. The Vala was never lost.\n\n"
    "The yard is open from May to June.\n\n- Ruth: send the report to the board\n- Per: order new spare parts",
)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (
            "Which ships were built by Olaf Brandt?",
            "The brig Hesper was built by Olaf Brandt. [s1] The bark Vala was also built by Olaf Brandt. [s1] There may be more.",
        ),
        ("What did the brig Hesper carry?", "The brig Hesper was built by Olaf Brandt. [s1] She carried timber. [s1]"),
        ("What did Olaf Brandt carry?", ""),
        ("Which ships were never lost?", "The Vala was never lost. [s1] There may be more."),
        ("What does Ruth have to do?", "Ruth: send the report to the board [s1]"),
        ("How many ships did Olaf Brandt build?", ""),
    ],
)
def test_all_that_is_asked_for_is_told_and_nothing_of_others(question: str, told: str) -> None:
    assert answer(question, TOWN) == told


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("In which version was dark mode added to Tabula?", "3.2.0 (2026-02-18): New: dark mode [s1]"),
        ("When was dark mode added to Tabula?", "3.2.0 (2026-02-18): New: dark mode [s1]"),
        ("When was light mode added to Tabula?", ""),
        ("For how long was the beta of Tabula open?", "The beta of Tabula was open from 2023 to 2025. [s1]"),
    ],
)
def test_a_date_or_a_version_above_a_list_is_told_with_its_item(question: str, told: str) -> None:
    notes = (
        "The beta of Tabula was open from 2023 to 2025.\n\n## 3.2.0 (2026-02-18)\n- New: export to Parquet\n"
        "- New: dark mode\n\n## 3.1.0 (2025-10-07)\n- New: charts"
    )
    assert answer(question, Passage("s1", "Release notes of Tabula", "changes.md", notes)) == told
