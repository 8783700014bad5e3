"""`hira ask --batch`: one line an answer, in order, resumable."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command import Command

from hira.core.policy import Request
from hira.testing.endpoint import Endpoint

pytestmark = pytest.mark.heavy(seconds=1)

TOWERS = {"Alta": 31, "Brava": 42, "Carma": 53, "Delta": 64, "Essa": 75}
QUESTIONS = [f"How high is the tower of {name}?" for name in TOWERS]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name, metres in TOWERS.items():
        (docs / f"{name}.txt").write_text(f"The tower of {name} is {metres} metres high.\n", encoding="utf-8")
    (tmp_path / "q.jsonl").write_text("\n".join(QUESTIONS) + "\n", encoding="utf-8")
    return tmp_path


class Said:
    def __init__(self, code: int, out: str, err: str, file: Path) -> None:
        self.code, self.out, self.err = code, out, err
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        self.lines = [json.loads(line) for line in text.splitlines()]


def ask(folder: Path, *argv: str, stdin: str = "") -> Said:
    argv = ("ask", *(argv if "--batch" in argv else ("--batch", "q.jsonl", *argv)))
    said = Command(folder, {"HIRA_MODEL": "offline"})(*argv, "--output", "a.jsonl", "--docs", "docs", stdin=stdin)
    return Said(said.code, said.out, said.err, folder / "a.jsonl")


def test_each_question_is_a_line_in_the_order_of_the_questions(folder: Path) -> None:
    said = ask(folder, "--concurrency", "3")
    assert (said.code, said.out) == (0, "")
    assert [line["question"] for line in said.lines] == QUESTIONS
    assert [line["id"] for line in said.lines] == list("12345")
    assert all(str(metres) in line["answer"] for line, metres in zip(said.lines, TOWERS.values(), strict=True))
    assert "5 of 5" in said.err
    assert "hira: of 5 questions 5 answered" in said.err
    assert {path.name for path in folder.iterdir()} == {"docs", "q.jsonl", "a.jsonl", "home"}


def test_questions_may_be_json_with_ids_and_files_and_other_keys(folder: Path) -> None:
    (folder / "more.txt").write_text("The bridge of Alta is 7 metres long.\n", encoding="utf-8")
    lines = [
        {"question": QUESTIONS[0], "id": "x", "files": ["more.txt"], "gold": "31"},
        {"question": QUESTIONS[1], "id": 7},
    ]
    said = ask(folder, "--batch", "-", stdin="\n".join(map(json.dumps, lines)) + f"\n\n{QUESTIONS[2]}\r\n")
    assert said.code == 0
    assert [(line["id"], line["question"]) for line in said.lines] == [
        ("x", QUESTIONS[0]), ("7", QUESTIONS[1]), ("4", QUESTIONS[2]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('{"question": "a?"', "not valid JSON"),
        ('{"id": "x"}', "there is no question"),
        ('{"question": "a?", "file": ["b"]}', "unknown key 'file'"),
        ('{"question": "a?", "files": "b"}', "`files` must be a list of paths"),
        ('{"question": "a?", "files": ["none.txt"]}', "none.txt' does not exist"),
        ('{"question": "a?", "id": "1"}', "the id '1' is already used in line 1"),
        ('{"question": "a?", "id": [1]}', "`id` must be a string or a number"),
    ],
)
def test_a_bad_line_is_told_with_its_number_before_any_work(folder: Path, line: str, what: str) -> None:
    (folder / "q.jsonl").write_text(f"{QUESTIONS[0]}\n{line}\n", encoding="utf-8")
    said = ask(folder)
    assert said.code == 2
    assert what in said.err
    assert "in line 2 of q.jsonl" in said.err
    assert len(said.err.splitlines()) == 3
    assert not (folder / "a.jsonl").exists()


@pytest.mark.parametrize(
    ("argv", "what"),
    [
        (("--batch", "none.jsonl"), "the questions cannot be read"),
        (("--concurrency", "0"), "`concurrency` must be at least 1, got 0"),
        (("--json",), "--json does not work with --batch"),
        (("--docs", "nowhere"), "no such file or folder"),
    ],
)
def test_a_mistake_leaves_no_file(folder: Path, argv: tuple[str, ...], what: str) -> None:
    said = ask(folder, *argv)
    assert said.code == 2
    assert what in said.err
    assert not [path.name for path in folder.iterdir() if path.name.startswith("a.jsonl")]


def test_what_is_answered_is_not_asked_again(folder: Path) -> None:
    first = ask(folder)
    text = (folder / "a.jsonl").read_text(encoding="utf-8")
    (folder / "a.jsonl").write_text(
        "".join(text.splitlines(keepends=True)[1:4]) + '{"id": "1", "quest', encoding="utf-8"
    )
    again = ask(folder)
    assert again.code == 0
    assert "2 of 2" in again.err
    assert [line["answer"] for line in again.lines] == [line["answer"] for line in first.lines]
    runs = [line["run_id"] for line in again.lines]
    assert runs[1:4] == [line["run_id"] for line in first.lines][1:4]
    done = ask(folder)
    assert (done.code, done.lines) == (0, again.lines)
    assert "all 5 questions are answered" in done.err


def test_a_file_with_answers_to_other_questions_is_left_alone(folder: Path) -> None:
    for text in ('{"id": "1", "question": "another?", "status": "answered"}\n', "notes\n"):
        (folder / "a.jsonl").write_text(text, encoding="utf-8")
        said = ask_raw(folder)
        assert said[0] == 2
        assert "the file contains a line that does not answer these questions" in said[1]
        assert (folder / "a.jsonl").read_text(encoding="utf-8") == text


def ask_raw(folder: Path) -> tuple[int, str]:
    said = Command(folder, {"HIRA_MODEL": "offline"})(
        "ask", "--batch", "q.jsonl", "--output", "a.jsonl", "--docs", "docs"
    )
    return said.code, said.err


def test_events_name_the_question_they_belong_to(folder: Path) -> None:
    said = ask(folder, "--events", "--concurrency", "2")
    events = [json.loads(line) for line in said.err.splitlines() if line.startswith("{")]
    ended = {event["id"]: event["run"] for event in events if event["event"] == "RunEnded"}
    assert ended == {line["id"]: line["run_id"] for line in said.lines}


def test_a_failed_question_is_a_line_with_its_error_and_is_asked_again(folder: Path) -> None:
    def at(endpoint: Endpoint) -> Said:
        return ask(folder, "--model", endpoint.model, "--base-url", endpoint.base_url, "--concurrency", "1", "--quiet")

    with Endpoint(reply, faults=["400-bad"]) as endpoint:
        said = at(endpoint)
    assert said.code == 3
    assert [line["status"] for line in said.lines].count("failed") == 1
    assert said.lines[0]["error"]
    assert "1 failed" in said.err
    assert "run the same command to ask what is missing in a.jsonl" in said.err
    with Endpoint(reply) as endpoint:
        again = at(endpoint)
        assert again.code == 4
        assert {QUESTIONS[0] in str(call.body) for call in endpoint.calls} == {True}
    assert again.lines[0]["run_id"] == said.lines[0]["run_id"]
    assert again.lines[1:] == said.lines[1:]


def start(folder: Path, endpoint: Endpoint) -> "subprocess.Popen[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HIRA_", "OPENAI_", "XDG_"))}
    argv = ["ask", "--batch", "q.jsonl", "--output", "a.jsonl", "--docs", "docs", "--concurrency", "2", "--quiet"]
    return subprocess.Popen(
        [sys.executable, "-m", "hira", *argv, "--model", endpoint.model, "--base-url", endpoint.base_url],
        cwd=folder, env={**kept, "HOME": str(folder / "home")}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip


def stuck(number: int) -> str:
    """Answer the first two calls and never any other."""
    return "" if number <= 2 else "silent"


def until(true: Callable[[], bool]) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to that")


def reply(_: Request) -> str:
    return "Nobody knows."


@pytest.mark.heavy
def test_a_killed_batch_goes_on_where_it_was(folder: Path) -> None:
    with Endpoint(reply, faults=stuck) as endpoint, start(folder, endpoint) as process:
        until(lambda: endpoint.in_flight == 2 and len(endpoint.calls) == 4)
        process.kill()
        process.communicate(timeout=60)
    assert len((folder / "a.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    begun = [json.loads(line) for line in (folder / "a.jsonl.runs").read_text(encoding="utf-8").splitlines()]
    assert [one["id"] for one in begun] == list("1234")
    with Endpoint(reply) as endpoint, start(folder, endpoint) as process:
        _, err = process.communicate(timeout=60)
        assert len(endpoint.calls) == 3, err
    said = Said(process.returncode, "", err, folder / "a.jsonl")
    assert (said.code, [line["id"] for line in said.lines]) == (4, list("12345"))
    assert [line["run_id"] for line in said.lines[:4]] == [one["run"] for one in begun]
    assert not (folder / "a.jsonl.runs").exists()


@pytest.mark.heavy
def test_ctrl_c_answers_what_is_in_flight_and_twice_quits_and_both_can_go_on(folder: Path) -> None:
    with Endpoint(reply, faults=lambda number: "" if number <= 2 or number > 4 else "silent") as endpoint:
        with start(folder, endpoint) as process:
            until(lambda: endpoint.in_flight == 2 and len(endpoint.calls) == 4)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        said = Said(process.returncode, "", err, folder / "a.jsonl")
        assert said.code == 130
        assert [line["status"] for line in said.lines[2:]] == ["interrupted"] * 2
        assert "2 interrupted, 1 not asked" in err
        assert "Traceback" not in err
    with Endpoint(reply, faults=lambda _: "silent") as endpoint:
        with start(folder, endpoint) as process:
            assert process.stderr
            until(lambda: endpoint.in_flight == 2)
            process.send_signal(signal.SIGINT)
            next(line for line in process.stderr if "Ctrl-C again quits" in line)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "run the same command to ask what is missing" in err
        until(lambda: endpoint.connections == 0)
    with Endpoint(reply) as endpoint, start(folder, endpoint) as process:
        process.communicate(timeout=60)
    done = Said(process.returncode, "", "", folder / "a.jsonl")
    assert (done.code, [line["id"] for line in done.lines]) == (4, list("12345"))
    assert [line["run_id"] for line in done.lines[:4]] == [line["run_id"] for line in said.lines]


@pytest.mark.heavy
def test_two_batches_do_not_write_one_file(folder: Path) -> None:
    with Endpoint(reply, faults=lambda _: "silent") as endpoint, start(folder, endpoint) as process:
        until(lambda: endpoint.in_flight == 2)
        code, err = ask_raw(folder)
        process.kill()
        process.communicate(timeout=60)
    assert code == 2
    assert "another batch is writing" in err
