"""`hira compare`: several workflows side by side, as a table or as JSON; 0 if any of them answered."""

import json
import re
import shutil
from pathlib import Path

import pytest
from command import Command, Said, at

from hira.cli import NO_EVIDENCE, OK
from hira.testing.endpoint import Endpoint

LIBRARY = Path(__file__).parent.parent / "data" / "library"
QUESTION = "Who was the last keeper of Skerry Point?"
PAIR = ("--workflow", "hira,react-report")


def hira(place: Path, *argv: str) -> Said:
    return Command(place, {"HIRA_MODEL": "offline"})("compare", *argv)


def test_the_table_has_a_row_for_each_workflow_in_the_order_named(tmp_path: Path) -> None:
    said = hira(tmp_path, QUESTION, "--docs", str(LIBRARY), *PAIR)
    assert said.code == OK
    head, _, *rows = said.out.splitlines()
    assert head.split() == ["workflow", "status", "verified", "calls", "tokens", "seconds", "answer"]
    first = [row.split()[0] for row in rows if row.strip() and not row.startswith("  ")]
    assert first == ["hira", "react-report"]
    assert len(re.findall(r"\b(\d) of \1\b", said.out)) == 2
    assert "Agnes Halloran" in said.out
    assert max(map(len, said.out.splitlines())) <= 100


def test_documents_that_cannot_be_read_are_told_once(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(LIBRARY, docs)
    (docs / "broken.pdf").write_bytes(b"no pdf at all")
    said = hira(tmp_path, QUESTION, "--docs", "docs", *PAIR, "--quiet")
    assert said.code == OK
    assert said.err.count("broken.pdf") == 1


def test_json_is_one_object_with_what_ask_gives_for_each(tmp_path: Path) -> None:
    said = hira(tmp_path, QUESTION, "--docs", str(LIBRARY), *PAIR, "--json")
    told = json.loads(said.out)
    assert told["question"] == QUESTION
    assert [one["workflow"] for one in told["workflows"]] == ["hira", "react-report"]
    for one in told["workflows"]:
        assert one["status"] == "answered"
        assert one["citations"][0]["verdict"] == "supported"
        assert one["usage"]["calls"] > 0
        assert one["seconds"] >= 0
        assert one["run_id"]


def test_without_an_answer_the_exit_code_is_the_best_of_what_happened(tmp_path: Path) -> None:
    said = hira(tmp_path, "Who painted the Sistine Chapel?", "--docs", str(LIBRARY), *PAIR, "--quiet")
    assert said.code == NO_EVIDENCE
    assert "insufficient evidence" in said.out


@pytest.mark.parametrize("quiet", [False, True])
def test_an_endpoint_that_is_waited_for_is_named_once_for_all_workflows(tmp_path: Path, quiet: bool) -> None:
    with Endpoint(lambda _: "Agnes Halloran.", faults=lambda number: "503" if number <= 2 else "") as endpoint:
        flags = ("--docs", str(LIBRARY), "--workflow", "rag,direct", *at(endpoint), *(["--quiet"] if quiet else []))
        said = hira(tmp_path, QUESTION, *flags)
    assert "Agnes Halloran" in said.out
    assert said.err.count("trying again in 1 s (2 of 5)") == said.err.count("trying again") == (0 if quiet else 1)
