"""`hira ask --batch`: one line an answer, in order, resumable."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Command, Process, Said, at

from hira.cli.batch_files import Answers, questions_of
from hira.core.errors import UsageError
from hira.core.policy import Request
from hira.testing.endpoint import Endpoint

pytestmark = pytest.mark.heavy(seconds=1)

TOWERS = {"Alta": 31, "Brava": 42, "Carma": 53, "Delta": 64, "Essa": 75}
QUESTIONS = [f"How high is the tower of {name}?" for name in TOWERS]


class Place(Command):
    def batch(self, *argv: str, stdin: str = "") -> Said:
        argv = argv if "--batch" in argv else ("--batch", "q.jsonl", *argv)
        return self("ask", *argv, "--output", "a.jsonl", "--docs", "docs", stdin=stdin)

    def begin(self, endpoint: Endpoint) -> Process:
        where = ("--batch", "q.jsonl", "--output", "a.jsonl", "--docs", "docs", *at(endpoint))
        return self.start("ask", *where, "--concurrency", "2", "--quiet")

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in (self.folder / "a.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    hira = Place(tmp_path, {"HIRA_MODEL": "offline", "HIRA_WORKFLOW": "hira"})
    hira.write(**{name: f"The tower of {name} is {metres} metres high." for name, metres in TOWERS.items()})
    (tmp_path / "q.jsonl").write_text("\n".join(QUESTIONS) + "\n", encoding="utf-8")
    return hira


def test_each_question_is_a_line_in_the_order_of_the_questions(place: Place) -> None:
    said = place.batch("--concurrency", "3")
    assert (said.code, said.out) == (0, "")
    assert [(line["id"], line["question"]) for line in place.lines] == list(zip("12345", QUESTIONS, strict=True))
    assert all(str(metres) in line["answer"] for line, metres in zip(place.lines, TOWERS.values(), strict=True))
    assert "5 of 5" in said.err
    assert "hira: 5 questions: 5 answered" in said.err
    assert {path.name for path in place.folder.iterdir()} == {"docs", "q.jsonl", "a.jsonl", "home"}


def test_questions_may_be_json_with_ids_and_files_and_other_keys(place: Place) -> None:
    place.write(more="The bridge of Alta is 7 metres long.")
    lines = [
        {"question": QUESTIONS[0], "id": "x", "files": ["docs/more.txt"], "gold": "31"},
        {"question": QUESTIONS[1], "id": 7},
    ]
    said = place.batch("--batch", "-", stdin="\n".join(map(json.dumps, lines)) + f"\n\n{QUESTIONS[2]}\r\n")
    assert said.code == 0
    assert [(line["id"], line["question"]) for line in place.lines] == list(zip("x74", QUESTIONS[:3], strict=True))


def test_a_question_with_its_own_docs_searches_no_others_also_when_it_is_resumed(place: Place) -> None:
    for tenant, steps in (("arn", 90), ("orva", 120)):
        (place.folder / tenant).mkdir()
        (place.folder / tenant / "tower.md").write_text(f"The tower of {tenant.title()} has {steps} steps.\n")
    question = "How many steps has the tower?"
    lines = [
        {"question": question, "docs": "arn"},
        {"question": question, "docs": ["orva"]},
        {"question": question, "docs": []},
        {"question": QUESTIONS[0]},
    ]
    (place.folder / "q.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    place.batch("--max-tokens", "1")
    assert {line["status"] for line in place.lines[:2]} == {"failed"}
    place.batch()
    answers = [line["answer"] for line in place.lines]
    assert "90" in answers[0]
    assert "120" in answers[1]
    assert "31" in answers[3]
    read = [{source["location"] for source in line["sources"]} for line in place.lines]
    assert [any("tower.md" in location for location in locations) for locations in read] == [True, True, False, False]
    assert [any("Alta" in location for location in locations) for locations in read] == [False, False, False, True]


def test_a_bad_line_is_told_with_its_number_before_any_work(place: Place) -> None:
    for line, what in (
        ('{"question": "a?"', "not valid JSON"),
        ('{"id": "x"}', "there is no question"),
        ('{"question": "a?", "file": ["b"]}', "unknown key 'file'"),
        ('{"question": "a?", "files": "b"}', "`files` must be a list of paths"),
        ('{"question": "a?", "files": ["none.txt"]}', "none.txt' does not exist"),
        ('{"question": "a?", "docs": 5}', "`docs` must be a path, got 5"),
        ('{"question": "a?", "docs": ["docs", "nowhere"]}', "no such file or folder"),
        ('{"question": "a?", "id": "1"}', "the id '1' is already used in line 1"),
        ('{"question": "a?", "id": [1]}', "`id` must be a string or a number"),
    ):
        (place.folder / "q.jsonl").write_text(f"{QUESTIONS[0]}\n{line}\n", encoding="utf-8")
        said = place.batch()
        assert said.code == 2
        assert what in said.err
        assert "in line 2 of q.jsonl" in said.err
        assert len(said.err.splitlines()) == 3
        assert not (place.folder / "a.jsonl").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.csv", "question,answer\nHow high is it?,47 metres\n"),
        ("q.json", '[\n  {"question": "How high is it?"}\n]\n'),
    ],
)
def test_a_table_or_a_json_list_is_no_batch(place: Place, name: str, text: str) -> None:
    (place.folder / name).write_text(text, encoding="utf-8")
    said = place.batch("--batch", name)
    assert said.code == 2
    assert "a batch file is neither a table nor a JSON list" in said.err
    assert not (place.folder / "a.jsonl").exists()


def test_a_mistake_leaves_no_file(place: Place) -> None:
    for argv, what in (
        (("--batch", "none.jsonl"), "--batch none.jsonl: there is no such file"),
        (("--concurrency", "0"), "`concurrency` must be a whole number of at least 1, got 0"),
        (("--json",), "--json does not work with --batch"),
        (("--approve",), "--approve and --batch cannot be combined"),
        (("--docs", "nowhere"), "no such file or folder"),
    ):
        said = place.batch(*argv)
        assert said.code == 2
        assert what in said.err
        assert not [path.name for path in place.folder.iterdir() if path.name.startswith("a.jsonl")]


def test_answers_do_not_go_to_standard_output(place: Place) -> None:
    said = place("ask", "--batch", "q.jsonl", "--output", "-", "--docs", "docs")
    assert (said.code, "a batch needs a file for its answers" in said.err) == (2, True)
    assert not (place.folder / "-").exists()


def test_answers_go_only_into_a_regular_file(place: Place) -> None:
    os.mkfifo(place.folder / "a.jsonl")
    said = place.batch()
    assert said.code == 2
    assert f"{place.folder / 'a.jsonl'} is not a regular file" in said.err
    assert not (place.folder / "a.jsonl.runs").exists()


def test_what_is_answered_is_not_asked_again(place: Place) -> None:
    place.batch()
    first, file = place.lines, place.folder / "a.jsonl"
    kept = file.read_text(encoding="utf-8").splitlines(keepends=True)[1:4]
    file.write_text("".join(kept) + '{"id": "1", "quest', encoding="utf-8")
    again = place.batch()
    assert again.code == 0
    assert "2 of 2" in again.err
    lines = place.lines
    assert [line["answer"] for line in lines] == [line["answer"] for line in first]
    assert lines[1:4] == first[1:4]
    done = place.batch()
    assert (done.code, place.lines) == (0, lines)
    assert "already holds a result for each of the 5 questions" in done.err
    file.write_text("\n".join(file.read_text(encoding="utf-8").splitlines()[:4]), encoding="utf-8")  # no end of line
    place.batch()
    assert [line["answer"] for line in place.lines] == [line["answer"] for line in first]


def test_a_file_with_answers_to_other_questions_is_left_alone(place: Place) -> None:
    for text in ('{"id": "1", "question": "another?", "status": "answered"}\n', "notes\n"):
        (place.folder / "a.jsonl").write_text(text, encoding="utf-8")
        said = place.batch()
        assert said.code == 2
        assert "the file contains a line that does not answer these questions" in said.err
        assert (place.folder / "a.jsonl").read_text(encoding="utf-8") == text
        assert not (place.folder / "a.jsonl.runs").exists()
    (place.folder / "a.jsonl").unlink()
    (place.folder / "a.jsonl").mkdir()
    assert "the answers cannot be written" in place.batch().err
    assert not (place.folder / "a.jsonl.runs").exists()


def test_a_second_batch_leaves_the_files_of_the_first(place: Place) -> None:
    path = place.folder / "a.jsonl"
    questions = questions_of("How high is Alta?", "q", place.folder)
    with Answers(path, questions):
        with pytest.raises(UsageError, match="another batch is writing"), Answers(path, questions):
            pass
        assert path.exists()
        assert path.with_name("a.jsonl.runs").exists()


def test_events_name_the_question_they_belong_to(place: Place) -> None:
    said = place.batch("--events", "--concurrency", "2")
    events = [json.loads(line) for line in said.err.splitlines() if line.startswith("{")]
    ended = {event["id"]: event["run"] for event in events if event["event"] == "RunEnded"}
    assert ended == {line["id"]: line["run_id"] for line in place.lines}


def test_a_failed_question_is_a_line_with_its_error_and_is_asked_again(place: Place) -> None:
    with Endpoint(reply, faults=["400-bad"]) as endpoint:
        said = place.batch(*at(endpoint), "--concurrency", "1", "--quiet")
    first = place.lines
    assert said.code == 3
    assert [line["status"] for line in first].count("failed") == 1
    assert first[0]["error"]
    assert "1 failed" in said.err
    assert "run the same command to ask what is missing in a.jsonl" in said.err
    with Endpoint(reply) as endpoint:
        assert place.batch(*at(endpoint), "--concurrency", "1", "--quiet").code == 4
        assert {QUESTIONS[0] in str(call.body) for call in endpoint.calls} == {True}
    assert place.lines[0]["run_id"] == first[0]["run_id"]
    assert place.lines[1:] == first[1:]


def until(true: Callable[[], bool]) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come to that")


def reply(_: Request) -> str:
    return "Nobody knows."


@pytest.mark.heavy
def test_a_killed_batch_goes_on_where_it_was_and_two_do_not_write_one_file(place: Place) -> None:
    with (
        Endpoint(reply, faults=lambda number: "" if number <= 2 else "silent") as endpoint,
        place.begin(endpoint) as process,
    ):
        until(lambda: endpoint.in_flight == 2 and len(endpoint.calls) == 4)
        refused = place.batch()
        assert (refused.code, "another batch is writing" in refused.err) == (2, True)
        process.kill()
        process.communicate(timeout=60)
    assert len(place.lines) == 2
    begun = [json.loads(line) for line in (place.folder / "a.jsonl.runs").read_text(encoding="utf-8").splitlines()]
    assert [one["id"] for one in begun] == list("1234")
    with Endpoint(reply) as endpoint, place.begin(endpoint) as process:
        _, err = process.communicate(timeout=60)
        assert len(endpoint.calls) == 3, err
    assert (process.returncode, [line["id"] for line in place.lines]) == (4, list("12345"))
    assert [line["run_id"] for line in place.lines[:4]] == [one["run"] for one in begun]
    assert not (place.folder / "a.jsonl.runs").exists()


@pytest.mark.heavy
def test_ctrl_c_answers_what_is_in_flight_and_twice_quits_and_both_can_go_on(place: Place) -> None:
    with Endpoint(reply, faults=lambda number: "" if number <= 2 or number > 4 else "silent") as endpoint:
        with place.begin(endpoint) as process:
            until(lambda: endpoint.in_flight == 2 and len(endpoint.calls) == 4)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        first = place.lines
        assert process.returncode == 130
        assert [line["status"] for line in first[2:]] == ["interrupted"] * 2
        assert "2 interrupted, 1 not asked" in err
        assert "Traceback" not in err
    with Endpoint(reply, faults=lambda _: "silent") as endpoint:
        with place.begin(endpoint) as process:
            assert process.stderr
            until(lambda: endpoint.in_flight == 2)
            process.send_signal(signal.SIGINT)
            next(line for line in process.stderr if "Ctrl-C again quits" in line)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "run the same command to ask what is missing" in err
        until(lambda: endpoint.connections == 0)
    with Endpoint(reply) as endpoint, place.begin(endpoint) as process:
        process.communicate(timeout=60)
    assert (process.returncode, [line["id"] for line in place.lines]) == (4, list("12345"))
    assert [line["run_id"] for line in place.lines[:4]] == [line["run_id"] for line in first]


def test_a_batch_that_ends_before_an_answer_names_no_file_and_shows_its_calls(place: Place) -> None:
    where = ("--batch", "q.jsonl", "--output", "a.jsonl", "--docs", "docs", "--workflow", "react")
    with (
        Endpoint(["search(query='tower')"] * 9, faults=lambda number: "" if number <= 2 else "silent") as endpoint,
        place.start("ask", *where, *at(endpoint), "--concurrency", "2") as process,
    ):
        assert process.stderr
        shown = next(line for line in process.stderr if "0 of 5" in line)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert "0 of 5 · 2 in progress, 2 model calls done" in shown
    assert process.returncode == 130
    assert "no question is answered; run the same command to ask them" in err
    assert not (place.folder / "a.jsonl").exists()


@pytest.mark.parametrize("quiet", [False, True])
def test_an_endpoint_that_is_waited_for_is_named_once_and_not_for_each_question(place: Place, quiet: bool) -> None:
    with Endpoint(reply, faults=lambda number: "503" if number <= 3 else "") as endpoint:
        said = place.batch(*at(endpoint), "--concurrency", "3", *(["--quiet"] if quiet else []))
    assert len(place.lines) == 5
    assert len(endpoint.calls) == 8
    assert said.err.count("trying again in 1 s (2 of 5)") == said.err.count("trying again") == (0 if quiet else 1)
