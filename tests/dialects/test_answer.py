import pytest
from pydantic import BaseModel

from hira.core.errors import DialectError
from hira.core.policy import Completion
from hira.policies.dialects.answer import find_final_answer, read_record, strip_thought


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
    ],
)
def test_a_record_that_does_not_fit_is_told_with_the_reason(completion: Completion, says: str) -> None:
    with pytest.raises(DialectError, match=says):
        read_record(completion, Shape)
