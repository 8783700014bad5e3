"""Follow-up questions from the command line: `hira ask --continue` and `hira chat`."""

import json
from pathlib import Path

import pytest
from command import Command

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
    assert said.out.index("1967") < said.out.index("Indonesia")
    runs = json.loads(hira("runs", "--json").out)
    assert [one["question"] for one in runs] == [SUMMIT, QUESTION]
    on = hira("chat", "-q", "--continue", "last", stdin=f"{QUESTION}\nquit\n{SUMMIT}\n")
    assert on.code == 0
    assert "1967" in on.out
    assert "Indonesia" not in on.out
