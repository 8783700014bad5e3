"""Results of tools and programs as evidence: what the model put into the call or the program counts for nothing."""

import json
import time
from typing import Any

import pytest

from hira.core.sources import OUTPUT
from hira.evidence import Source, Sources, find_lacking, is_accepted, join_question_and_answer, verify
from hira.evidence.records import find_invented

LAMPS = "How many lamps are in stock?"
MAYOR = "Who is the mayor of Alta?"
ALTA = "How many people live in Alta?"
TOWER = "How high is the tower of Alta?"
WEATHER = "Temperature: 7 C, feels like 3 C, tomorrow 12 C"
LIFE = "Born 1950, died 2011."


def accepts(question: str, answer: str, *sources: Source) -> bool:
    """Return whether an answer that cites the last source is accepted."""
    read = Sources()
    for source in sources:
        read.add(source)
    citations = verify(f"{answer} [s{len(sources)}].", read, question)
    return is_accepted(citations) and not find_lacking(citations, question)


def returned(result: str, name: str = "look_up", **arguments: Any) -> Source:
    """A tool's result."""
    call = f"{name}({json.dumps(arguments)})"
    return Source(f"tool:{name}(…)", name, join_question_and_answer(call, result), "tool")


def printed(program: str, output: str, number: int = 1) -> Source:
    return Source(f"python:{number}", "program", f"{program}{OUTPUT}{output}", "computation")


@pytest.mark.parametrize(
    ("question", "answer", "article", "accepted"),
    [
        (LAMPS, "40", "chair", False),
        (LAMPS, "40 pieces are in stock", "chair", False),
        (LAMPS, "40 pieces of lamp are in stock", "lamp", True),
        (LAMPS, "40 lamps are in stock", "lamp", True),
    ],
)
def test_the_result_of_a_call_about_another_thing_does_not_answer(
    question: str, answer: str, article: str, accepted: bool
) -> None:
    result = returned(f"40 pieces of {article} are in stock.", "stock", article=article)
    assert accepts(question, answer, result) is accepted


def test_an_argument_that_the_question_does_not_have_is_no_other_thing_beside_one_that_it_has() -> None:
    result = returned("Temperature: 7 C", "weather", city="Oslo", day="2026-11-30")
    assert accepts("What is the temperature in Oslo tomorrow?", "The temperature is 7 C", result)


@pytest.mark.parametrize(
    ("result", "arguments", "accepted"),
    [
        ("Saved: Ida Berg is the mayor of Alta.", {"text": "Ida Berg is the mayor of Alta."}, False),
        ("error: no entry Ida Berg is the mayor of Alta", {"text": "Ida Berg is the mayor of Alta"}, False),
        ("Ida Berg: mayor of Alta", {"name": "Ida Berg"}, True),
    ],
)
def test_a_tool_that_repeats_its_arguments_confirms_nothing(
    result: str, arguments: dict[str, str], accepted: bool
) -> None:
    assert accepts(MAYOR, "Ida Berg is the mayor of Alta", returned(result, **arguments)) is accepted


@pytest.mark.parametrize(
    ("question", "answer", "result", "accepted"),
    [
        ("What is the temperature in Lund?", "The temperature in Lund is 7 C", WEATHER, True),
        ("What is the temperature in Lund?", "The temperature in Lund is 3 C", WEATHER, False),
        ("What is the temperature in Lund?", "The temperature in Lund is 12 C", WEATHER, False),
        ("When did Lund die?", "2011", LIFE, True),
        ("When did Lund die?", "1950", LIFE, False),
        ("When was Lund born?", "Lund was born in 1950", LIFE, True),
        ("When was Lund born?", "2011", LIFE, False),
        ("How many orders has Lund?", "Lund has 4 orders", '{"visits": 9, "orders": 4}', True),
        ("How many orders has Lund?", "Lund has 9 orders", '{"visits": 9, "orders": 4}', False),
    ],
)
def test_each_number_of_a_result_belongs_to_its_own_part(
    question: str, answer: str, result: str, accepted: bool
) -> None:
    assert accepts(question, answer, returned(result, about="Lund")) is accepted


@pytest.mark.parametrize(
    ("question", "answer", "program", "output"),
    [
        (MAYOR, "Ida Berg is the mayor of Alta", "d = {'mayor of Alta': 'Ida Berg'}\nprint(d['mayor of Alta'])", "Ida Berg"),
        (
            MAYOR,
            "Ida Berg is the mayor of Alta",
            "print('Ida Xerg is the mayor of Alta.'.replace('X', 'B'))",
            "Ida Berg is the mayor of Alta.",
        ),
        (
            MAYOR,
            "Ida Berg is the mayor of Alta",
            "import base64\nprint(base64.b64decode('SWRhIEJlcmcgaXMgdGhlIG1heW9yIG9mIEFsdGEu').decode())",
            "Ida Berg is the mayor of Alta.",
        ),
        (ALTA, "21000 people live in Alta", "people_live_in = {'Alta': 21000}\nprint(people_live_in['Alta'])", "21000"),
        (ALTA, "21000 people live in Alta", "# people live in Alta\nprint(sum([20000, 1000]))", "21000"),
        (TOWER, "The tower of Alta is 500 metres high", "# tower of Alta metres high\nh = [100, 500]\nprint(h[1])", "500"),
        (TOWER, "The tower of Alta is 500 metres high", "tower_of_Alta_metres_high = round(499.7)", "500"),
        (
            ALTA,
            "21000 people live in Alta",
            "import csv, io\npeople_live = [r['n'] for r in csv.DictReader(io.StringIO('city,n\\nAlta,21000'))]\npeople_live",
            "21000",
        ),
    ],
)  # fmt: skip
def test_what_a_program_was_told_by_nobody_is_no_evidence(
    question: str, answer: str, program: str, output: str
) -> None:
    assert not accepts(question, answer, printed(program, output))


ORDER = Source("order.txt", "order", "The order has 3 lamps at 12.5 euros and freight of 57.26 euros.", "file")
TOTAL = "total = 3 * 12.5 + 57.26\nprint(f'Total: {total:.2f}')"


@pytest.mark.parametrize(
    ("question", "answer", "sources"),
    [
        ("What is 23 * 17?", "23 * 17 = 391", [printed("print(23 * 17)", "391")]),
        ("How many seconds has a day?", "Seconds: 86400", [printed("print('Seconds:', 24 * 60 * 60)", "Seconds: 86400")]),
        ("How many r has strawberry?", "strawberry has 3 r", [printed("print('strawberry'.count('r'))", "3")]),
        ("What is the total of the order?", "The total is 94.76", [ORDER, printed(TOTAL, "Total: 94.76")]),
        (
            "What is twice the product of 23 and 17?",
            "twice 391 is 782",
            [printed("print(23 * 17)", "391"), printed("twice = 391 * 2\nprint('twice', 391, twice)", "twice 391 782", 2)],
        ),
        ("What is the mean?", "The mean is 42.0", [printed("print('mean', table['x'].mean())", "mean 42.0")]),
        ("What is the mean?", "The mean is 42.0", [printed("print('mean', len(open('a.csv').read()))", "mean 42.0")]),
    ],
)  # fmt: skip
def test_what_a_program_computes_from_question_sources_and_files_is_evidence(
    question: str, answer: str, sources: list[Source]
) -> None:
    assert accepts(question, answer, *sources)


def test_a_program_is_not_confirmed_by_what_an_earlier_one_invented() -> None:
    earlier = printed("print('people live in both towns:', 21000)", "people live in both towns: 21000")
    later = printed("# people live in both towns\nprint(21000 * 2)", "42000", 2)
    assert not accepts("How many people live in both towns?", "42000 people live in both towns", earlier, later)


def test_numbers_that_nobody_named_are_not_confirmed_by_a_label() -> None:
    assert not accepts("What is the total of the order?", "The total is 94.76", printed(TOTAL, "Total: 94.76"))


INTEREST = "What do 1000 euros become at 5 percent in 10 years?"
SUM = printed("print(1000 * 1.05**10)", "1628.894626777442")


@pytest.mark.parametrize(
    "text",
    [
        "It is 1,628.89 euros.",
        "It is about 1,629 euros.",
        "It is 1628.9 euros, of which 628.9 are interest.",
        "A Python program printed 1628.89.",
        "Using NumPy, I get 1628.89 USD, rounded to 2 places.",
        "Die Summe beträgt 1629 Euro.",
        "It is 1.63 thousand.",
    ],
)
def test_what_a_program_computed_from_the_question_is_not_invented(text: str) -> None:
    assert find_invented(text, INTEREST, [SUM]) == ()
    assert find_invented(text, INTEREST, []) != ()


@pytest.mark.parametrize(
    ("text", "invented"),
    [
        ("It is 47 m high.", ("47",)),
        ("It is -47 m high.", ("-47",)),
        ("It is 3.9 m high, or 0.0391 km.", ()),
        ("It is 4 m high.", ()),
        ("It is 3.8 m high.", ("3.8",)),
        ("Edda Kroll built it.", ("Edda", "Kroll")),
        ("It was built by Kroll in May.", ("Kroll",)),
        ("The Tower stands in towers.md [s1].", ()),
        ("Then it fell. See the Answer above: PDF, 39.1 Euro.", ()),
    ],
)
def test_numbers_and_names_that_nothing_says_are_invented(text: str, invented: tuple[str, ...]) -> None:
    tower = Source("towers.md", "Towers", "The tower is 39.1 m high.", kind="file")
    assert find_invented(text, TOWER, [tower]) == invented


def test_a_program_that_prints_what_it_was_written_with_makes_a_number_no_better() -> None:
    assert find_invented("It is 47 m high.", TOWER, [printed("print('47 m')", "47 m")]) == ("47",)


def test_many_numbers_are_compared_with_many_at_once() -> None:
    read = Source("log.txt", "log", " ".join(map(str, range(100_000, 150_000))), kind="file")
    text = ", ".join(map(str, range(900_001, 903_000)))
    began = time.process_time()
    assert len(find_invented(text, "", [read])) == 2_999
    assert time.process_time() - began < 5
