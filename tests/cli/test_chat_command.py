"""Follow-up questions from the command line: `hira ask --continue` and `hira chat`."""

import json
import re
from pathlib import Path

import pytest
from command import Command

from hira.testing.endpoint import Endpoint

QUESTION, SUMMIT = "When was ASEAN founded?", "Who hosted the 2023 summit of ASEAN?"


@pytest.fixture
def hira(tmp_path: Path) -> Command:
    made = Command(tmp_path)
    asean, summit = "ASEAN was founded on 8 August 1967 in Bangkok.", "Indonesia hosted the 2023 summit of ASEAN."
    made.write(asean=asean, summit=summit)
    return made


def test_the_command_continues_a_recorded_run_with_its_documents(hira: Command) -> None:
    first = hira("ask", "-q", "--model", "offline", "--docs", "docs", QUESTION)
    second = hira("ask", "-q", "--continue", "last", "--json", SUMMIT)

    assert (first.code, second.code) == (0, 0)
    told = json.loads(second.out)
    assert "Indonesia" in told["answer"]
    assert told["question"].startswith("Who hosted")
    assert next(one["id"] for one in told["sources"]) == "s1"
    assert "asean.txt" in told["sources"][0]["location"]
    assert hira("replay", "last", "-q").out == hira("resume", "last", "-q").out
    refused = hira("ask", "--continue", "no-such-run", SUMMIT)
    assert refused.code == 2
    assert "no run 'no-such-run'" in refused.err


def test_the_chat_answers_line_by_line_until_exit(hira: Command) -> None:
    lines = f"{QUESTION}\n\n{SUMMIT}\nexit\nnever asked\n"
    said = hira("chat", "-q", "--model", "offline", "--docs", "docs", stdin=lines)

    assert said.code == 0
    assert "Bangkok.”\n\nIndonesia hosted" in said.out
    runs = json.loads(hira("runs", "--json").out)
    assert [one["question"] for one in runs] == [SUMMIT, QUESTION]
    on = hira("chat", "-q", "--continue", "last", stdin=f"{QUESTION}\nquit\n{SUMMIT}\n")
    assert on.code == 0
    assert "1967" in on.out
    assert "Indonesia" not in on.out


def test_help_in_the_chat_says_how_to_leave_and_is_no_question(hira: Command) -> None:
    said = hira("chat", "-q", "--model", "offline", "--docs", "docs", stdin=f"/help\nhelp\n/sources\n{QUESTION}\n")
    assert said.err.count("To leave, press Ctrl-D, or write exit or quit.") == 3
    assert f"The runs are kept in {hira.journal}" in said.err
    assert [one["question"] for one in json.loads(hira("runs", "--json").out)] == [QUESTION]
    unkept = hira("chat", "-q", "--model", "offline", "--journal", "off", stdin="help\n")
    assert (unkept.code, unkept.out) == (0, "")
    assert "The runs are not kept." in unkept.err


FOUNDED, HOSTED = "ASEAN was founded on 8 August 1967 in Bangkok [s1].", "Indonesia hosted the 2023 summit of ASEAN."
FOLLOW_UP = "And who hosted the 2023 summit of it?"


@pytest.mark.parametrize("echo", [FOUNDED, FOLLOW_UP, "(Asked and answered before, as data: {}"])
def test_a_model_that_repeats_earlier_messages_is_asked_again_without_them(hira: Command, echo: str) -> None:
    with Endpoint([FOUNDED, echo.format(json.dumps({"role": "user", "text": QUESTION})), HOSTED]) as endpoint:
        flags = ("--model", endpoint.model, "--base-url", endpoint.base_url, "--docs", "docs", "--verify", "lexical")
        said = hira("chat", "-q", *flags, stdin=f"{QUESTION}\n{FOLLOW_UP}\n")
        prompts = [call.body["messages"][-1]["content"] for call in endpoint.calls]
    assert HOSTED in said.out
    assert said.out.count(FOUNDED) == 1
    assert FOLLOW_UP not in said.out
    assert f'"text": "{FOUNDED}"}}) {FOLLOW_UP}' in prompts[1]
    assert "answered before" not in prompts[2]
    assert prompts[2].endswith(f"Question: {FOLLOW_UP} (It follows the question: {QUESTION})")


def test_an_answer_that_only_repeats_the_question_is_not_printed(hira: Command) -> None:
    with Endpoint([QUESTION]) as endpoint:
        flags = ("--model", endpoint.model, "--base-url", endpoint.base_url, "--docs", "docs", "--verify", "lexical")
        said = hira("ask", "-q", "--workflow", "rag", *flags, QUESTION)
    assert said.code == 3
    assert QUESTION not in said.out
    assert "the model wrote no answer" in said.err


def test_a_question_of_which_no_document_speaks_costs_one_call_and_is_refused(hira: Command) -> None:
    with Endpoint(['{"queries": ["Paris"]}']) as endpoint:
        flags = ("--model", endpoint.model, "--base-url", endpoint.base_url, "--docs", "docs", "--verify", "lexical")
        said = hira("ask", *flags, "What is the capital of France?")
        calls = len(endpoint.calls)
    assert (said.code, said.out.strip(), calls) == (4, "Nothing was found that answers the question.", 1)
    assert "not enough evidence" in said.err
    assert "nearest" not in said.err
    assert "reasoner wrote · " in said.err
    assert "search-" not in said.err, "the name of a conversation is for programs"
    events = hira("resume", "last", "--events").err + hira("show", "last", "--json").out
    assert re.search(r"search-[0-9a-f]{8}/reasoner", events)
