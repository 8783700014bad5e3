"""Data, settings and earlier results that somebody else wrote, or that are damaged: each is refused in one line that
names the place."""

import json
from pathlib import Path

import pytest
from command import Command

from hira.core.errors import UsageError
from hira.evaluation.files import items_of
from hira.evaluation.record import read
from hira.trainers.assembly import read_configuration
from hira.trainers.plan import DecoderShape

DEEP = 100_000
LINES: dict[str, bytes] = {
    "100,000 levels": b"[" * DEEP + b"]" * DEEP,
    "100,000 levels in a field": b'{"question": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "a list": b"[5]",
    "a text": b'"x"',
    "a number": b"5",
    "a number of 5,000 digits": b'{"question": "x", "id": ' + b"9" * 5_000 + b"}",
    "nothing": b"null",
    "no JSON": b"{",
    "no UTF-8": b'{"question": "\xff\xfe"}',
    "fields of other types": b'{"question": {"a": [1]}, "id": [1], "answers": {"value": [[1]]}, "files": {"a": 1}}',
    "messages of other types": b'{"messages": [5], "turns": {"a": 5}, "role": [], "status": {}}',
    "turns of other types": b'{"turns": [{"kept": -1, "added": 5, "completion": null}]}',
}


@pytest.mark.parametrize("kind", LINES)
def test_a_file_of_questions_of_any_content_ends_no_command_with_a_fault(kind: str, tmp_path: Path) -> None:
    hira = Command(tmp_path, {"HIRA_MODEL": "offline"})
    for name in ("q.jsonl", "q.json", "q.csv"):
        (tmp_path / name).write_bytes(LINES[kind])
        for command in (("ask", "--batch", name, "-o", "out.jsonl"), ("eval", name, "--limit", "1", "--output", "e")):
            said = hira(*command, "--workflow", "direct")
            assert (said.code != 1, "Traceback" in said.err, "a fault in hira" in said.err) == (True, False, False)
    (tmp_path / "whole.txt").write_text("What is 2 + 3?\n", encoding="utf-8")
    (tmp_path / "out.jsonl.runs").write_bytes(LINES[kind])
    said = hira("ask", "--batch", "whole.txt", "-o", "out.jsonl", "--workflow", "direct")
    assert "a fault in hira" not in said.err


@pytest.mark.parametrize("kind", LINES)
def test_results_and_plans_of_any_content_are_refused_in_one_line(kind: str, tmp_path: Path) -> None:
    for name in ("records.jsonl", "config.json", "run.json", "plan.json", "begun.json", "configuration.json"):
        (tmp_path / name).write_bytes(LINES[kind] + b"\n" + LINES[kind] + b"\n")
    with pytest.raises(UsageError, match="line 1 cannot be read") as raised:
        read(tmp_path / "records.jsonl")
    assert "\n" not in raised.value.what
    with pytest.raises(UsageError):
        DecoderShape.read(tmp_path)
    hira = Command(tmp_path, {"HIRA_MODEL": "offline"})
    said = hira("eval", "diff", str(tmp_path), str(tmp_path))
    assert "a fault in hira" not in said.err


def test_the_configuration_of_a_run_may_have_any_content(tmp_path: Path) -> None:
    from hira.trainers.assembly import BEGUN

    for line in LINES.values():
        (tmp_path / BEGUN).write_bytes(line)
        with pytest.raises(UsageError):
            read_configuration(tmp_path)


def test_an_entry_of_an_array_that_is_no_question_is_named(tmp_path: Path) -> None:
    (tmp_path / "q.json").write_text(json.dumps([{"question": "Who?"}, 5]), encoding="utf-8")
    with pytest.raises(UsageError, match="not a JSON object") as raised:
        items_of(tmp_path / "q.json")
    assert raised.value.where.startswith("entry 2 of ")
