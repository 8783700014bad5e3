import pytest

from hira.policies.offline import questions
from hira.policies.offline.kinds import fits, kind
from hira.policies.offline.wording import category, exact, names


@pytest.mark.parametrize(
    ("question", "inner", "outer"),
    [
        (
            "Who is the mayor of the city where Ada Roth was born?",
            "What is the city where Ada Roth was born?",
            "Who is the mayor of {}?",
        ),
        (
            "In which country lies the university at which Ada Roth studied?",
            "What is the university at which Ada Roth studied?",
            "In which country lies {}?",
        ),
        (
            "When did the person who founded Helio Works die?",
            "Who is the person who founded Helio Works?",
            "When did {} die?",
        ),
        (
            "Which country does the company that makes the Zephyr come from?",
            "What is the company that makes the Zephyr?",
            "Which country does {} come from?",
        ),
        (
            "What is the population of the capital of Sorn?",
            "What is the capital of Sorn?",
            "What is the population of {}?",
        ),
        ("Where was Ada Roth's husband born?", "Who is Ada Roth's husband?", "Where was {} born?"),
        (
            "Where was the designer of the Aare bridge born?",
            "Who is the designer of the Aare bridge?",
            "Where was {} born?",
        ),
        (
            "At which school did the discoverer of the blue poppy teach?",
            "Who is the discoverer of the blue poppy?",
            "At which school did {} teach?",
        ),
        (
            "On which river does the town lie where Ada Roth taught?",
            "What is the town where Ada Roth taught?",
            "On which river does {} lie?",
        ),
        (
            "Where was the founder of the school at which Ada Roth studied born?",
            "What is the school at which Ada Roth studied?",
            "Where was the founder of {} born?",
        ),
        (
            "How many pupils does the school have at which the builder of Helio Tower studied?",
            "What is the school at which the builder of Helio Tower studied?",
            "How many pupils does {} have?",
        ),
    ],
)
def test_a_question_within_a_question_is_found(question: str, inner: str, outer: str) -> None:
    hop = questions.hop(question)
    assert hop
    assert (hop.inner, hop.outer, hop.sure) == (inner, outer, True)


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of Sorn?",
        "Who is the author of The Silent Hill?",
        "What is the name of the city that held the games of 1972?",
        "When was Lake Sempach surveyed?",
        "What happens when a file is too long?",
    ],
)
def test_a_direct_question_is_asked_as_it_is(question: str) -> None:
    hop = questions.hop(question)
    assert hop is None or not hop.sure


@pytest.mark.parametrize(
    ("question", "lookups", "sign", "asks"),
    [
        ("Which is older, Aum or Bex?", ("How old is Aum?", "How old is Bex?"), -1, "which"),
        ("Which lake is smaller: Aum or Bex?", ("How large is Aum?", "How large is Bex?"), -1, "which"),
        ("How much taller is Aum than Bex?", ("How tall is Aum?", "How tall is Bex?"), 1, "difference"),
        ("Is Aum heavier than Bex?", ("How heavy is Aum?", "How heavy is Bex?"), 1, "whether"),
        ("Who was born first, Aum or Bex?", ("When was Aum born?", "When was Bex born?"), -1, "which"),
        (
            "Which has more members, Aum or Bex?",
            ("How many members does Aum have?", "How many members does Bex have?"),
            1,
            "which",
        ),
        (
            "Which town has the larger population, Aum or Bex?",
            ("What is the population of Aum?", "What is the population of Bex?"),
            1,
            "which",
        ),
        ("Which of Aum and Bex is deeper?", ("How deep is Aum?", "How deep is Bex?"), 1, "which"),
    ],
)
def test_a_comparison_is_two_look_ups(question: str, lookups: tuple[str, str], sign: int, asks: str) -> None:
    found = questions.comparison(question)
    assert found
    assert (found.lookups, found.sign, found.asks) == (lookups, sign, asks)


@pytest.mark.parametrize("question", ["Who wrote Aum?", "Is it cold or warm there?", "What is larger than life?"])
def test_what_compares_nothing_is_no_comparison(question: str) -> None:
    assert questions.comparison(question) is None


@pytest.mark.parametrize(
    ("conclusion", "question", "noun", "name"),
    [
        ("Ada Roth, a painter from Sorn, was born in Bex in 1844.", "What is the town where Ada Roth was born?", "town", "Bex"),
        ("The Silent Hill was written by Ada Roth in 1932.", "Who is the author of The Silent Hill?", "author", "Ada Roth"),
        ("Ada Roth studied at the University of Bex under Max Aum.", "What is the university where Ada Roth studied?", "university", "University of Bex"),
        ("It was built by Ada Roth's group at the Bex laboratory.", "What is the laboratory that built it?", "laboratory", "Bex laboratory"),
        ("The bridge was opened in 1871.", "What is the year when the bridge was opened?", "year", "1871"),
        ("It is not known.", "Who is the author of it?", "author", ""),
    ],
)  # fmt: skip
def test_the_name_that_bridges_is_read_from_the_conclusion(
    conclusion: str, question: str, noun: str, name: str
) -> None:
    assert questions.entity(conclusion, question, noun) == name


@pytest.mark.parametrize(
    ("conclusion", "question", "value"),
    [
        ("It was completed in 1788 and is 96 metres long.", "How long is the Elk bridge?", 96),
        ("The Elk is 1.5 km long.", "How long is the Elk?", 1500),
        ("The Elk bridge was built in 1788.", "How old is the Elk bridge?", 1788),
        ("Bex has 48,200 inhabitants.", "How many inhabitants does Bex have?", 48200),
        ("Bex is a town.", "How many inhabitants does Bex have?", None),
    ],
)
def test_the_figure_that_is_asked_for_is_read_with_its_unit(
    conclusion: str, question: str, value: float | None
) -> None:
    assert questions.figure(conclusion, question) == value


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("When was it built?", "date"),
        ("How many are there?", "number"),
        ("Who built it?", "person"),
        ("Where is it?", "place"),
        ("Why is it closed?", "cause"),
        ("What happens when it rains?", ""),
        ("它是什么时候建成的？", "date"),
        ("谁建的？", "person"),
    ],
)
def test_a_question_tells_what_kind_of_answer_it_wants(question: str, asked: str) -> None:
    assert kind(question) == asked


def test_a_number_counts_only_near_the_thing_that_is_counted() -> None:
    question = "How many members does it have?"
    assert fits("number", "It has 40 members.", question)
    assert not fits("number", "In 1999 it was agreed that in future years all of the members would vote.", question)
    assert not fits("number", "Its members are listed [12, 14].", question)


def test_names_are_told_from_other_words() -> None:
    assert names("Who is the mayor of Bex?") == {"bex"}
    assert names("HiRA uses which model?") == {"hira"}
    assert exact("How large is GPT-4?") == ["gpt-4"]
    assert category("Which river flows through Bex?") == {"river"}
    assert category("What is the length of the Elk?") == set()


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("How old was Ada Roth; what did the dome cost?", ["How old was Ada Roth?", "What did the dome cost?"]),
        ("When was the mill built and who designed it?", ["When was the mill built?", "Who designed the mill?"]),
        ("When did the mill burn, and why?", ["When did the mill burn?", "Why did the mill burn?"]),
        ("When and where was Ada Roth born?", ["When was Ada Roth born?", "Where was Ada Roth born?"]),
        ("Which is older, the mill or the bridge?", ["Which is older, the mill or the bridge?"]),
        ("Who founded Roth and Sons?", ["Who founded Roth and Sons?"]),
    ],
)
def test_questions_asked_at_once_are_taken_apart(question: str, parts: list[str]) -> None:
    assert questions.parts(question) == parts
