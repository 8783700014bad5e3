"""The check without a model: what words bear out, and what it does with hostile and with foreign text."""

import runpy
from pathlib import Path

import pytest

from hira.evidence import Judgement
from hira.evidence.lexical import score_claim
from hira.evidence.passages import Passages, read_number

HARBOUR = (
    "The ferry of Norvik was launched in 1931. The crane of Norvik weighs 84 tonnes. "
    "Marta Quill painted the ferry of Norvik. The crane of Norvik was sold to Dunmore in 1974."
)


def score(claim: str, text: str, question: str = "", context: str = "") -> Judgement:
    return score_claim(claim, Passages(text), question=question, context=context)


@pytest.mark.parametrize(
    "claim", ["The ferry of Norvik was put to sea in 1931.", "The painter of the ferry of Norvik was Marta Quill."]
)
def test_a_claim_that_one_sentence_bears_out_is_supported(claim: str) -> None:
    assert score(claim, HARBOUR).verdict == "supported"


@pytest.mark.parametrize(
    "claim", ["The crane of Norvik was launched in 1931.", "Marta Quill painted the crane of Norvik."]
)
def test_a_fact_of_the_neighbouring_sentence_is_not_supported(claim: str) -> None:
    assert score(claim, HARBOUR).verdict in ("unsupported", "contradicted")


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("The Sorva is 348 kilometers long.", "The Sorva flows 348 kilometres to the sea."),
        ("The poem was printed in 1902.", "The poem appeared in 1902 in a small journal."),
        ("The plant employs 3.1 million people.", "The plant employs 3,100,000 people."),
        ("Berta has seven sisters.", "Berta has 7 sisters and a brother."),
        ("She was born in Tarn.", "Ilse Brandt studied law. She was born in Tarn."),
        ("Ilse Brandt was born in Tarn.", "Ilse Brandt studied law. She was born in Tarn."),
    ],
)
def test_other_wording_of_the_same_fact_is_supported(claim: str, text: str) -> None:
    assert score(claim, text).verdict == "supported"


@pytest.mark.parametrize(
    "claim",
    [
        "The ferry of Norvik was launched in 1939.",
        "The ferry of Norvik was not launched in 1931.",
        "The crane of Norvik was sold to Aldham in 1974.",
    ],
)
def test_the_same_sentence_with_another_number_name_or_a_not_is_contradicted(claim: str) -> None:
    assert score(claim, HARBOUR).verdict == "contradicted"


def test_what_the_text_does_not_mention_is_unsupported_not_contradicted() -> None:
    assert score("The mayor of Norvik collects stamps.", HARBOUR).verdict == "unsupported"
    assert score("Penguins live in the Antarctic.", HARBOUR).verdict == "unsupported"


def test_a_bare_answer_is_read_together_with_the_question() -> None:
    text = "Nuuk is the capital of Greenland."
    question = "What is the capital of Greenland?"
    assert score("Nuuk", text, question).verdict == "supported"
    assert score("Sisimiut", text, question).verdict == "unsupported"
    assert score("Greenland", "Greenland is an island.", "What is the capital of Greenland?").verdict != "contradicted"


def test_a_bare_yes_cannot_be_checked() -> None:
    assert score("Yes.", HARBOUR, "Was the ferry launched?").verdict == "unchecked"
    assert score("The ferry was launched in 1931.", "").verdict == "unchecked"


def test_the_result_of_a_tool_counts_together_with_its_call() -> None:
    call = "SELECT SUM(hours) FROM shifts WHERE nurse = 'Petra'"
    assert score("Petra's shifts sum to 37.5 hours.", "37.5", context=call).verdict == "supported"
    assert score("Petra's shifts sum to 41.5 hours.", "37.5", context=call).verdict == "unsupported"


@pytest.mark.parametrize(
    ("right", "wrong", "text"),
    [
        ("努克是格陵兰的首都", "努克不是格陵兰的首都", "努克是格陵兰的首都和最大城市。它建于1728年。"),
        ("تأسست نوك عام 1728", "تأسست نوك عام 1782", "تأسست مدينة نوك عام 1728 وهي عاصمة غرينلاند."),
        (
            "Der Turm wurde 1688 gebaut.",
            "Der Turm wurde 1699 gebaut.",
            "Der alte Turm von Ahlen wurde im Jahr 1688 gebaut.",
        ),
    ],
)
def test_other_languages_are_scored_by_the_same_features(right: str, wrong: str, text: str) -> None:
    assert score(right, text).verdict == "supported"
    assert score(wrong, text).verdict != "supported"


@pytest.mark.parametrize("claim", ["努克是格陵兰的首都", "Нуук — столица Гренландии"])
def test_a_claim_in_another_script_than_the_text_is_unchecked(claim: str) -> None:
    assert score(claim, "Nuuk is the capital of Greenland.").verdict == "unchecked"


def test_a_number_of_any_length_is_compared_as_text() -> None:
    long = "7" * 400
    assert score(f"The key is {long}.", f"The key is {long}.").verdict == "supported"
    assert score(f"The key is {long}.", f"The key is {long}8.").verdict == "contradicted"
    assert read_number("9" * 10_000) == "9" * 10_000 + "e10000"
    assert read_number("3,100,000") == read_number("3.100.000") == "31e7"
    assert read_number("15.0") == read_number("015") == "15e2"
    assert read_number("1,5") == read_number("1.50") == "15e1"


def test_a_heading_is_the_subject_of_the_lines_under_it() -> None:
    page = "# Ferry Alma\n\nLaunched in 1931 at Dunmore.\n\n# Ferry Berit\n\nLaunched in 1950 at Aldham."
    assert score("The ferry Alma was launched in 1931.", page).verdict == "supported"
    assert score("The ferry Alma was launched in 1950.", page).verdict != "supported"


def test_generated_claims_are_told_apart_as_often_as_the_docs_say() -> None:
    """Rows of another seed than those that were fitted and those that the benchmark measures."""
    generate = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "claims.py"))["generate_claims"]
    accepted: dict[str, list[bool]] = {}
    for domain in ("rivers", "medicine", "works"):
        for row in generate(domain, pages=12, seed=77):
            verdict = score(row.claim, row.evidence).verdict
            accepted.setdefault(row.form, []).append(verdict == "supported")
            assert not (row.supported and verdict == "contradicted"), row
    share = {form: sum(found) / len(found) for form, found in accepted.items()}
    assert share["paraphrase"] > 0.9
    assert share["copy"] == 1.0
    assert share["swap"] < 0.05
    assert share["value"] == 0.0
    assert share["name"] < 0.02
