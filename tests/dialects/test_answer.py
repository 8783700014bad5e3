"""What a model wrote besides calls: final answers, sections, records, and verdicts, which are one word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from hira.core.errors import DialectError
from hira.core.policy import Completion
from hira.policies.dialects.answer import find_final_answer, only_thought, strip_thought, verbatim
from hira.policies.dialects.record import read_record
from hira.policies.dialects.report import document, find_under_heading, read_verdict


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"So \boxed{Indonesia, Myanmar}", "Indonesia, Myanmar"),
        (r"First \boxed{1}, no: \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\text{Paris}}", "Paris"),
        (r"cut \boxed{Par", "Par"),
        ("<answer> 42 </answer>", "42"),
        (r"So it is \boxed{Paris} as [s1] and [s2] say.", "Paris [s1, s2]"),
        ("The page [s3] says so.\n\\boxed{Paris}", "Paris [s3]"),
        (r"\boxed{\text{Paris} and \text{Rome}}", r"\text{Paris} and \text{Rome}"),
    ],
)
def test_the_final_answer_of_a_turn(text: str, answer: str) -> None:
    assert find_final_answer(text) == answer


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        (Completion("<think>no\n</think>\nyes"), "yes"),
        (Completion("no\n</think>yes"), "yes"),
        (Completion("<think>only thought"), "<think>only thought"),
        (Completion("", reasoning="only thought"), ""),
    ],
)
def test_finished_thought_is_left_out(completion: Completion, text: str) -> None:
    assert strip_thought(completion) == text


class Shape(BaseModel):
    n: int


class Order(BaseModel):
    number: str = Field(pattern=r"^O-\d{4}$")


@pytest.mark.parametrize(
    "text",
    [
        'Sure!\n```json\n{"n": 1}\n```\nAnything else?',
        'I thought {about} it {"x": 2} and then {"n": 1}',
        '<think>{"n": 9}</think>{"n": "1"}',
    ],
)
def test_a_record_is_found_wherever_it_stands(text: str) -> None:
    assert read_record(Completion(text), Shape).n == 1


@pytest.mark.parametrize(
    ("completion", "says"),
    [
        (Completion("no idea"), "no JSON object"),
        (Completion('{"n": "many"}'), "n: input should be a valid integer"),
        (Completion('{"n": 1', finish="length"), "cut off"),
        (Completion('{"n": ' * 100_000), "no JSON object"),
        (Completion(f'```json\n{{"n": {"9" * 5_000}}}\n```'), "no JSON object"),
    ],
)
def test_a_record_that_does_not_fit_is_told_with_the_reason(completion: Completion, says: str) -> None:
    with pytest.raises(DialectError, match=says):
        read_record(completion, Shape)


def test_a_pattern_that_a_record_does_not_fit_keeps_its_capitals() -> None:
    with pytest.raises(DialectError, match=r"number: string should match pattern '\^O-\\d\{4\}\$'"):
        read_record(Completion('{"number": "1234"}'), Order)


@pytest.mark.parametrize(
    "text",
    [
        "# Final\n## Conclusion\n31 m [s1].\n\n## Observations\nNone.",
        "## Conclusion: 31 m [s1].\n### Observations\nNone.",
        "## **Conclusion**\n\n31 m [s1].\n**Observations:**\nNone.",
        "**Conclusion:** 31 m [s1].\n**Observations**\nNone.",
        "**Conclusion**: 31 m [s1].",
        "Conclusion:\n31 m [s1].\n## Observations\nNone.",
        "Some words first.\n## 1. Conclusion\n31 m [s1].\n# Conclusion\nAnother.",
    ],
)
def test_what_stands_under_a_heading_is_found_however_it_is_marked(text: str) -> None:
    assert find_under_heading(text, "Conclusion") == "31 m [s1]."


def test_what_is_bold_within_a_section_does_not_end_it() -> None:
    text = "## Conclusion\nIt is **31 m** high.\n**Note** that.\n- **Source**: a list\n## Observations\nNone."
    assert find_under_heading(text, "Conclusion").splitlines()[-1] == "- **Source**: a list"


@pytest.mark.parametrize(
    "text", ["In conclusion: it is 31 m.", "## Conclusions\nNone.", "Conclusion drawn", "## Conclusion\n\n## Next"]
)
def test_without_the_heading_there_is_nothing_under_it(text: str) -> None:
    assert find_under_heading(text, "Conclusion") == ""


@pytest.mark.parametrize(
    "text",
    [
        "At first I wrote:\nVerdict: incorrect\nLooking again, that was a slip.\nVerdict: correct",
        "verdict: CORRECT.",
        "**Verdict:** correct",
        "# Verdict: `correct`",
        "Verdict: \\boxed{\\text{correct}}",
        "Verdict：correct",
        "<think>Verdict: incorrect?</think>Verdict: correct",
    ],
)
def test_the_word_accepts_however_it_is_dressed(text: str) -> None:
    assert read_verdict(Completion(text)) is True


@pytest.mark.parametrize(
    "text",
    [
        "Verdict: Incorrect.",
        "**Verdict: incorrect**",
        "Verdict: correct\nOn second thought, step 3 is wrong.\nVerdict: incorrect",
        "The correct sum is 4, the solution has 5.\nVerdict: incorrect",
    ],
)
def test_incorrect_is_not_correct(text: str) -> None:
    """The published code of MarsRL looks for "correct" in the text, and finds it in "incorrect"."""
    assert read_verdict(Completion(text)) is False


@pytest.mark.parametrize(
    "text",
    [
        "The solution is correct.",
        "Verdict: not correct",
        "Verdict: correct, but step 2 is not shown",
        "My verdict: correct",
    ],
)
def test_anything_else_is_no_verdict(text: str) -> None:
    assert read_verdict(Completion(text)) is None


def test_a_reply_that_was_cut_off_has_no_verdict() -> None:
    assert read_verdict(Completion("Verdict: correct", finish="length")) is None


@given(st.text(alphabet="corectin NT:.*\n", max_size=30))
def test_only_the_word_itself_accepts(word: str) -> None:
    letters = "".join(character for character in word.lower() if character.isalpha())
    if read_verdict(Completion(f"Verdict: {word}")) is True:
        assert letters == "correct"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("It is 7.\n", "It is 7.\n"),
        (" It is 7.", " It is 7."),
        ("<think>hm</think> It is 7.\n", "It is 7."),
        (" \n ", ""),
    ],
)
def test_a_turn_without_thought_is_kept_with_its_white_space_and_one_with_thought_without_both(
    text: str, kept: str
) -> None:
    assert verbatim(Completion(text)) == kept


@pytest.mark.parametrize(
    ("completion", "only"),
    [
        (Completion("It is 7."), False),
        (Completion(""), False),
        (Completion("", reasoning="hm"), True),
        (Completion("<think>hm</think>"), True),
        (Completion("<think>hm, it is 7."), True),
        (Completion(r"<think>hm, it is \boxed{7}"), False),
        (Completion("<think>hm</think>It is 7."), False),
        (Completion("It is 7.", reasoning="hm"), False),
    ],
)
def test_a_model_that_only_thought_said_nothing(completion: Completion, only: bool) -> None:
    assert only_thought(completion) is only


def test_a_document_loses_a_fence_around_all_of_it_and_no_other() -> None:
    assert document("```markdown\n# Funds\n\nThey differ.\n```\n") == "# Funds\n\nThey differ."
    assert document(" # Funds\n\n```\ncode\n```\nEnd. ") == "# Funds\n\n```\ncode\n```\nEnd."
