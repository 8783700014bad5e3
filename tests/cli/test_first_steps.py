"""The first run of `hira`: unreadable files, odd names, empty variables."""

import json
import os
from pathlib import Path

import pytest
from command import Command

QUESTION = "When was ASEAN founded?"
BAD_NAME = os.fsdecode(b"caf\xe9.txt")


@pytest.fixture
def hira(tmp_path: Path) -> Command:
    made = Command(tmp_path, {"HIRA_MODEL": "offline"})
    made.write(asean="ASEAN was founded on 8 August 1967 in Bangkok.")
    return made


@pytest.fixture
def docs(hira: Command) -> Path:
    return hira.folder / "docs"


def named_badly(folder: Path) -> Path:
    """Create a file whose name is not UTF-8. Skip the test where the file system refuses such names."""
    path = folder / BAD_NAME
    try:
        path.write_text("ASEAN has ten members.\n", encoding="utf-8")
    except (OSError, UnicodeEncodeError):
        pytest.skip("this file system takes only UTF-8 names")
    return path


def test_a_file_name_that_is_not_utf_8_is_told_and_the_others_are_read(hira: Command, docs: Path) -> None:
    path = named_badly(docs)
    said = hira("ask", QUESTION, "--docs", "docs", "--quiet")
    assert said.code == 0
    assert "1967" in said.out
    assert "caf\ufffd.txt is left out: its name is not UTF-8; rename it" in said.err
    for flag in ("--docs", "--file"):
        said = hira("ask", QUESTION, flag, str(path))
        assert said.code == 2
        assert "is not UTF-8" in said.err.splitlines()[0]


def test_quiet_shows_a_variable_that_hira_does_not_use(tmp_path: Path) -> None:
    hira = Command(tmp_path, {"HIRA_MODEL": "offline", "HIRA_MAX_TOKEN": "100"})
    hira.write(asean="ASEAN was founded on 8 August 1967 in Bangkok.")
    said = hira("ask", "-q", QUESTION, "--docs", "docs")
    assert said.code == 0
    assert "HIRA_MAX_TOKEN is not used; did you mean HIRA_MAX_TOKENS?" in said.err


def test_every_line_beside_events_is_an_event(hira: Command, docs: Path) -> None:
    (docs / "empty.txt").touch()
    for argv, last in (
        (["--docs", "docs"], "RunEnded"),
        (["--docs", "docs", "--max-tokens", "10"], "Error"),
        (["--docs", "nowhere"], "Error"),
        (["--zzzzzzzz"], "Error"),
    ):
        events = [json.loads(line) for line in hira("ask", QUESTION, *argv, "--events", "--debug").err.splitlines()]
        kinds = [event["event"] for event in events if event["event"] != "Notice"]
        assert kinds[-1] == last
    assert events[0] == {
        "event": "Error",
        "at": 0.0,
        "what": "unrecognized arguments: --zzzzzzzz",
        "where": "",
        "fix": "hira ask --help lists the flags",
    }


def test_json_says_what_ended_a_run_and_a_file_is_only_written_for_an_answer(
    hira: Command, docs: Path, tmp_path: Path
) -> None:
    nowhere = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--max-time", "1")
    said = hira("ask", QUESTION, *nowhere, "--json", "--output", "answer.MD")
    assert said.code != 0
    told = json.loads(said.out)
    assert told["answer"] == ""
    assert told["error"]
    assert not (tmp_path / "answer.MD").exists()
    said = hira("ask", QUESTION, "--docs", str(docs), "--json", "--output", "answer.MD")
    assert json.loads(said.out)["error"] == ""
    assert (tmp_path / "answer.MD").read_text(encoding="utf-8").startswith(f"# {QUESTION}")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
def test_an_answer_that_cannot_be_written_is_told_in_one_line(hira: Command, docs: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ended = hira.run("ask", QUESTION, "--docs", "docs", "--quiet", stdout=full)
    assert ended.code == 1
    assert ended.err.splitlines() == ["hira: standard output cannot be written: No space left on device"]


def test_a_refusal_names_an_attached_file_that_could_not_be_read(hira: Command, tmp_path: Path) -> None:
    (tmp_path / "damaged.pdf").write_bytes(b"%PDF-1.4\n" + bytes(range(256)))
    said = hira("ask", QUESTION, "--file", "damaged.pdf", "--quiet")
    assert said.code == 4
    what, where, fix = said.err.splitlines()
    assert what == "hira: not enough evidence: nothing was read that could support it"
    assert where.startswith("  not read: damaged.pdf is damaged and cannot be read (")
    assert fix.startswith("  repair what could not be read, or name documents (--docs)")


def test_every_refusal_names_documents_that_could_not_be_read_and_no_empty_ones(hira: Command, docs: Path) -> None:
    (docs / "broken.xlsx").write_bytes(b"PK\x03\x04 and no more")
    (docs / "empty.txt").touch()
    for _ in range(2):  # the second time the index knows the file
        said = hira("ask", "Who painted the tower of Ulm?", "--docs", "docs", "--quiet")
        assert said.code == 4
        *_, where, _ = said.err.splitlines()
        assert where.startswith("  not read: broken.xlsx is damaged")
        assert "more" not in where
    (docs / "other.xlsx").write_bytes(b"PK\x03\x04 and no more")
    said = hira("ask", "Who painted the tower of Ulm?", "--docs", "docs", "--quiet")
    assert "(and 1 more: hira doctor --docs PATH lists them)" in said.err
    assert "broken.xlsx" not in hira("ask", QUESTION, "--docs", "docs", "--quiet").err


def test_a_run_that_could_not_begin_is_listed_as_failed_with_its_question_and_error(hira: Command, docs: Path) -> None:
    (docs / "empty.txt").touch()
    hira("ask", QUESTION, "--docs", "docs/empty.txt")
    (run,) = json.loads(hira("runs", "--json").out)
    assert (run["question"], run["status"]) == (QUESTION, "failed")
    assert "empty.txt is empty" in hira("show", "last").out
