"""`offline` against a golden file: questions that its sentences answer, and as many that it has to refuse."""

import json
from itertools import groupby
from pathlib import Path

import pytest

from hira import Hira, Settings
from hira.core.messages import user
from hira.core.policy import Request
from hira.policies.offline import ROLES, Act, OfflinePolicy, OfflineRequest, find_expression, read_request, write_act
from hira.tools import Tool, tool

ROOT = Path(__file__).parents[2]
GOLDEN = [json.loads(line) for line in Path(__file__).with_name("offline.jsonl").read_text("utf-8").splitlines()]
GROUPS = {
    (docs, "refused" if refused else "answered"): list(rows)
    for (docs, refused), rows in groupby(GOLDEN, key=lambda row: (str(row["docs"]), row["answer"] is None))
}


def test_half_of_the_golden_file_has_to_be_refused() -> None:
    refused = [row for row in GOLDEN if row["answer"] is None]
    assert len(GOLDEN) <= 150
    assert 2 * len(refused) >= len(GOLDEN)


@pytest.mark.parametrize(("docs", "as_it_should"), GROUPS)
async def test_what_the_documents_say_is_answered_and_all_else_refused(docs: str, as_it_should: str) -> None:
    wrong = []
    settings = Settings(model="offline", docs=(ROOT / docs,), journal=None, cache=None)
    async with Hira(settings=settings, workflow="react") as hira:
        for row in GROUPS[docs, as_it_should]:
            told = await hira.ask(row["question"])
            if row["answer"] is None:
                right = told.status == "insufficient_evidence" and not told.citations
            else:
                right = told.status == "answered" and row["answer"] in told.text
            wrong += [] if right else [(row["question"], told.status, told.text)]
    assert wrong == []


@pytest.mark.parametrize(
    ("question", "expression"),
    [
        ("What is 17 times 23?", "17 * 23"),
        ("What is 12 % of 1,850?", "12 / 100 * 1850"),
        ("What is (3 + 4) squared?", "(3 + 4) ** 2"),
        ("How old is 17?", ""),
        ("What is 17 times the price of a loaf?", ""),
    ],
)
def test_a_question_that_is_nothing_but_arithmetic_is_computed(question: str, expression: str) -> None:
    assert find_expression(question) == expression


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is 12345678901234567890 + 1?", "12345678901234567890 + 1 = 12345678901234567891."),
        ("What is 2^100?", "2**100 = 1267650600228229401496703205376."),
        ("What is 10 / 4?", "10 / 4 = 2.5."),
        ("What is 0.1 + 0.2?", "0.1 + 0.2 = 0.3."),
    ],
)
async def test_whole_numbers_are_computed_exactly(question: str, answer: str) -> None:
    async with Hira(settings=Settings(model="offline", journal=None)) as hira:
        answered = await hira.ask(question)
    assert answered.text.startswith(answer)
    assert answered.status == "answered"


@tool
def lookup(word: str) -> str:
    """Look a word up."""
    return word


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When does the museum open?", "The museum opens at 9 o'clock."),
        ("At what time does the museum open?", "The museum opens at 9 o'clock."),
        ("When is the tower closed?", "The tower is closed on Mondays."),
        ("Who is the porter?", "Porter: Lena Falk"),
        ("Who is the gardener?", None),
    ],
)
async def test_hours_days_and_labels_answer(tmp_path: Path, question: str, answer: str | None) -> None:
    text = "# Museum\n\nThe museum opens at 9 o'clock. The tower is closed on Mondays.\n\n- Porter: Lena Falk\n"
    (tmp_path / "museum.md").write_text(text, encoding="utf-8")
    settings = Settings(model="offline", docs=(tmp_path,), journal=None, cache=None)
    async with Hira(settings=settings, workflow="react") as hira:
        told = await hira.ask(question)
    assert (told.status == "answered") is (answer is not None)
    assert answer is None or answer in told.text


@pytest.mark.parametrize("workflow", ["auto", "rag", "react", "hira"])
async def test_the_list_of_the_documents_answers_which_ones_there_are(tmp_path: Path, workflow: str) -> None:
    (tmp_path / "tower.md").write_text("# The tower\n\nIt was built in 1889.\n", encoding="utf-8")
    async with Hira("offline", docs=tmp_path, workflow=workflow) as hira:
        answer = await hira.ask("Which documents do I have?")
    assert (answer.status, "- tower.md: The tower" in answer.text) == ("answered", True)


async def test_a_document_with_the_title_of_that_list_is_a_document(tmp_path: Path) -> None:
    (tmp_path / "annex.md").write_text("# List of the documents\n\nThe bridge of Vesk was built in 1911.\n", "utf-8")
    async with Hira("offline", docs=tmp_path, workflow="rag") as hira:
        assert (await hira.ask("Who painted the bridge of Vesk?")).status == "insufficient_evidence"


async def test_what_a_document_says_before_an_output_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Churn\n\nThe churn rate in 2025 was 4.2 percent.\n\nOutput:\nDone.\n")
    async with Hira("offline", docs=tmp_path, workflow="rag") as hira:
        assert (await hira.ask("What was the churn rate in 2025?")).text.startswith("The churn rate in 2025 was 4.2")


def test_a_tool_that_the_request_does_not_offer_is_named_and_not_called() -> None:
    assert isinstance(lookup, Tool)
    asked = read_request(Request((), tools=(lookup.spec,)))
    text, calls = write_act(Act("", (("lookup", {"word": "tide"}), ("fly", {"to": "Fenra"}))), asked)
    assert [call.name for call in calls] == ["lookup"]
    assert "no tool named fly" in text


@pytest.mark.parametrize("asks", [True, False])
async def test_an_answer_is_in_a_box_only_if_the_prompt_asks_for_one(*, asks: bool) -> None:
    prompt = "How high is the tower of Alta?" + " Write the answer in \\boxed{}." * asks
    reply = await OfflinePolicy().complete(Request((user(prompt),)))
    assert ("\\boxed{" in reply.text, "do not hold the answer" in reply.text) == (asks, True)


def test_every_prompt_that_offline_plays_is_a_prompt_of_hira() -> None:
    names = {path.stem for path in (ROOT / "hira").rglob("*.md")}
    assert names.issuperset(ROLES)


def test_a_question_ends_before_what_was_said_earlier() -> None:
    told = "Who built the mill?\n\nThis continues a conversation. What was said before:\nuser: Hello?"
    assert OfflineRequest("planner", {"question": told}).question == "Who built the mill?"
