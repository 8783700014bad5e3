"""A question that continues a conversation stands alone before `offline` plans for it."""

from pathlib import Path

import pytest

from hira import Hira
from hira.policies.offline.following import standing

Turns = tuple[tuple[str, str], ...]
CAPTAIN: Turns = (
    ("user", "Who commands the Meridian?"),
    ("assistant", "Ingrid Solheim has commanded the Meridian since March 2018. [s1]"),
)
TRAMS: Turns = (("user", "How many trams ran in Zurich in 2019?"), ("assistant", "312 trams ran. [s1]"))


def told(question: str, turns: Turns) -> str:
    """As `hira serve` tells it."""
    return f"{question}\n\nSaid before:\n" + "\n".join(f"{role}: {text}" for role, text in turns)


@pytest.mark.parametrize(
    ("turns", "question", "alone"),
    [
        (CAPTAIN, "Where was she born?", "Where was Ingrid Solheim born?"),
        (CAPTAIN, "How long is it?", "How long is the Meridian?"),
        (CAPTAIN, "Where is its home port?", "Where is the Meridian's home port?"),
        (CAPTAIN, "What is her birthplace?", "What is Ingrid Solheim's birthplace?"),
        (CAPTAIN, "And the Petrel?", "Who commands the Petrel?"),
        (CAPTAIN, "What about the Petrel?", "Who commands the Petrel?"),
        (CAPTAIN, "And in 2020?", "Who commands the Meridian in 2020?"),
        (CAPTAIN, "How long is the Seiche?", "How long is the Seiche?"),
        (CAPTAIN, "Wann öffnet die Kantine?", "Wann öffnet die Kantine?"),
        (TRAMS, "And in Bern?", "How many trams ran in Bern in 2019?"),
        (TRAMS, "And 2020?", "How many trams ran in Zurich in 2020?"),
        ((("user", "When was the mill built?"), ("assistant", "In 1742.")), "Why?", "Why was the mill built?"),
        ((("user", "Which vessel is the longest?"), ("assistant", "The longest is the Seiche.")), "How long is it?",
         "How long is Seiche?"),
        ((*CAPTAIN, ("user", "And the Petrel?"), ("assistant", "Captain of the Petrel is Maëlle Kervadec. [s2]")),
         "Where was she born?", "Where was Maëlle Kervadec born?"),
        ((("system", "Be brief."),), "Where was she born?", "Where was she born?"),
    ],
)  # fmt: skip
def test_what_a_question_leaves_out_or_points_back_to_is_put_into_it(turns: Turns, question: str, alone: str) -> None:
    assert standing(told(question, turns)) == alone


def test_a_question_that_continues_nothing_is_left_as_it_is() -> None:
    for text in ("Where was she born?", "Read this:\n\nuser: hello\n\nWhat does it say?", ""):
        assert standing(text) == text


@pytest.mark.parametrize("workflow", ["hira", "mars", "matpo", "rag", "react", "search-o1"])
async def test_a_follow_up_is_answered_and_what_was_said_is_not_quoted(workflow: str, tmp_path: Path) -> None:
    told_of = "Ingrid Solheim has commanded the Meridian since March 2018.\n\nIngrid Solheim was born in Ålesund.\n"
    (tmp_path / "ships.txt").write_text(told_of, encoding="utf-8")
    async with Hira("offline", docs=tmp_path / "ships.txt", workflow=workflow) as hira:
        answer = await hira.ask(told("Where was she born?", CAPTAIN))
        unknown = await hira.ask(told("What is her shoe size?", CAPTAIN))
    assert answer.status == "answered"
    assert "Ålesund" in answer.text
    assert unknown.status == "insufficient_evidence"
    assert "Said before" not in unknown.text


@pytest.mark.parametrize("workflow", ["hira", "mars", "mams", "rag", "search-o1"])
async def test_a_document_that_tells_a_conversation_is_read_whole(workflow: str, tmp_path: Path) -> None:
    log = "Log of the harbour.\n\nOn Monday:\nuser: hello\nassistant: hi\n\nThe lighthouse of Hirta was built by Anna Berg.\n"
    (tmp_path / "log.txt").write_text(log, encoding="utf-8")
    async with Hira("offline", docs=tmp_path / "log.txt", workflow=workflow) as hira:
        answer = await hira.ask("Who built the lighthouse of Hirta?")
    assert answer.status == "answered"
    assert "Anna Berg" in answer.text
