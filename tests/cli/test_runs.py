"""The commands about recorded runs: listed, shown, replayed without network, verified, exported, deleted, reused."""

import asyncio
import json
import re
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from command import Command, Said, at
from killed import ANSWER, QUESTION, Place, killed_and_resumed, plain, replies

from hira import Hira, Settings, tool
from hira.cli import main
from hira.core.errors import UsageError
from hira.core.policy import Request
from hira.testing.endpoint import Endpoint

pytestmark = pytest.mark.heavy(seconds=1)


@pytest.fixture
def hira(tmp_path: Path) -> Command:
    return Place(tmp_path)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(replies(3)) as served:  # type: ignore[arg-type]
        yield served


def docs_at(endpoint: Endpoint) -> tuple[str, ...]:
    return ("--docs", "docs", *at(endpoint), "--parallel", "3")


def test_a_run_is_listed_shown_exported_and_deleted(hira: Command, endpoint: Endpoint) -> None:
    hira("ask", QUESTION, *docs_at(endpoint), "--quiet")
    (listed,) = json.loads(hira("runs", "--json").out)
    assert (listed["question"], listed["status"]) == (QUESTION, "answered")
    assert listed["usage"]["calls"] == len(endpoint.calls)
    (line,) = hira("runs").out.splitlines()
    assert line.startswith(listed["run_id"])
    assert QUESTION in line

    out = hira("show", "last").out
    answer = "The river Oka is 1500 kilometres long"
    for told in ("2. How long is the river Oka?", "simple_search", "tokens", answer, "supported", "[s1] "):
        assert told in out
    shown = json.loads(hira("show", "last", "--json").out)
    assert [one["expert"] for one in shown["subtasks"]] == ["simple_search"] * 3
    assert {one["verdict"] for one in shown["citations"]} == {"supported"}
    assert len(shown["turns"]) == len(endpoint.calls)
    assert {tool["tool"] for tool in shown["tools"]} == {"search"}

    assert hira("runs", "export", "-o", "data.jsonl").code == 0
    lines = [json.loads(line) for line in (hira.folder / "data.jsonl").read_text(encoding="utf-8").splitlines()]
    planner = next(line for line in lines if line["role"] == "planner")
    assert (planner["status"], planner["question"]) == ("answered", QUESTION)
    assert sum(len(line["turns"]) for line in lines) == len(endpoint.calls)
    assert planner["messages"] in [call.body["messages"] for call in endpoint.calls]
    assert planner["turns"][-1]["completion"]["text"].startswith(r"\boxed{The river Kama is 1805")

    assert hira("runs", "delete").code == 2
    assert "0 runs deleted" in hira("runs", "delete", "--older", "1").err
    assert "1 run deleted" in hira("runs", "delete", "last").err
    assert json.loads(hira("runs", "--json").out) == []
    assert b"Kama" not in hira.journal.read_bytes()


@pytest.mark.parametrize("presses", [1, 2])
def test_a_run_that_ctrl_c_ended_in_the_middle_of_a_reply_goes_on_where_it_was(tmp_path: Path, presses: int) -> None:
    place = Place(tmp_path / "place")
    silent = {7} if presses == 1 else {7, 8}  # the closing answer waits for the second press
    with Endpoint(replies(1), faults=lambda number: "s-stall" if number in silent else "") as endpoint:  # type: ignore[arg-type]
        with place.start("ask", QUESTION, "--docs", "docs", *at(endpoint), "--events", "--json") as process:
            assert process.stderr
            for line in process.stderr:
                if 'three "' in line:  # the last that comes before the silence
                    process.send_signal(signal.SIGINT)
                if "Ctrl-C again quits" in line:
                    break
            if presses == 2:
                process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        silent.clear()
        if presses == 1:
            told = json.loads(out)
            assert (told["status"], "kilometres long" in told["answer"]) == ("interrupted", True)
        assert process.returncode == 130
        assert "hira resume" in err
        assert "Traceback" not in err
        sent = len(endpoint.calls)
        assert sent <= 8, "once more at most, for the answer"
        assert place.completed() == (6 if presses == 2 else sent - 1)
        said = place.run("resume", "last", "--quiet")
        assert (said.code, plain(said.out)) == (0, ANSWER), said.err
        assert len(endpoint.calls) - sent == 10 - 6


FORBIDDEN = """
import sys
from hira.cli import main
def heard(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.bind"):
        raise RuntimeError(f"the network was used: {event} {args}")
sys.addaudithook(heard)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("form", [["--events"], ["--json", "--quiet"]])
def test_a_replay_is_byte_identical_with_the_network_forbidden(
    hira: Command, endpoint: Endpoint, form: list[str]
) -> None:
    first = hira("ask", QUESTION, *docs_at(endpoint), *form)
    shutil.rmtree(hira.folder / "docs")  # it does not need the documents either
    again = hira.run("replay", "last", *form, program=("-c", FORBIDDEN))
    recorded = "".join(line for line in first.err.splitlines(keepends=True) if '"TurnText"' not in line)
    assert again == Said(0, first.out, recorded)


def test_a_replay_says_where_the_record_ends_when_prompts_have_changed(hira: Command, endpoint: Endpoint) -> None:
    hira("ask", QUESTION, *docs_at(endpoint), "--quiet")
    with sqlite3.connect(hira.journal) as other:
        other.execute("update calls set digest = 'other' where conversation = '2/assign/coordinator'")
    other.close()
    said = hira("replay", "last", "--quiet")
    assert (said.code, plain(said.out)) == (2, ANSWER)
    assert "the record ends before call 1 of '2/assign/coordinator'" in said.err
    assert "code or prompts have changed" in said.err
    assert len(said.err.splitlines()) <= 3


def test_a_run_that_its_budget_ended_says_how_to_resume_and_goes_on_with_a_larger_one(
    hira: Command, endpoint: Endpoint
) -> None:
    said = hira("ask", QUESTION, *docs_at(endpoint), "--max-tokens", "2500", "--quiet")
    run = json.loads(hira("runs", "--json").out)[0]["run_id"]
    assert said.code == 5
    assert f"to resume: hira resume {run} --max-tokens N" in said.err
    again = hira("replay", run, "--quiet")
    assert (again.code, again.out, again.err) == (said.code, said.out, said.err)
    before = len(endpoint.calls)
    more = hira("resume", run[:15], "--max-tokens", "100000", "--quiet")
    assert (more.code, plain(more.out)) == (0, ANSWER)
    assert len(endpoint.calls) > before


def test_a_budget_too_small_for_any_call_is_a_wrong_flag(hira: Command, endpoint: Endpoint) -> None:
    said = hira("ask", QUESTION, *docs_at(endpoint), "--max-tokens", "10", "--quiet")
    assert (said.code, said.out, endpoint.calls) == (2, "", [])
    assert "the budget of 10 tokens is too small: a call and the answer need about" in said.err
    assert json.loads(hira("runs", "--json").out)[0]["status"] == "failed"


def test_a_call_that_a_resumed_run_does_not_use_counts_in_its_cost(hira: Command) -> None:
    delays = iter((0, 0, 60))
    with Endpoint(["Few rivers reach the length of the Oka.", "none"], delay=lambda _: next(delays)) as endpoint:
        asked = ("ask", "How long is the river Oka?", "--docs", "docs", *at(endpoint), "--workflow", "rag")
        with hira.start(*asked, "--verify", "model", "--quiet") as process:
            while len(endpoint.calls) < 3:
                assert process.poll() is None
            process.kill()
        resumed = hira("resume", "last", "--verify", "lexical")
    assert resumed.code == 4
    assert "· 2 calls ·" in resumed.err, "the terminal shows the usage of the record"
    (listed,) = json.loads(hira("runs", "--json").out)
    assert listed["usage"]["calls"] == 2
    assert json.loads(hira("show", "last", "--json").out)["usage"] == listed["usage"]


def test_an_endpoint_that_was_down_is_tried_again_by_resume_with_the_key_of_today(hira: Command) -> None:
    with Endpoint(replies(3), faults=["401"]) as endpoint:  # type: ignore[arg-type]
        failed = hira("ask", QUESTION, *docs_at(endpoint), "--quiet", OPENAI_API_KEY="sk-old-and-wrong")
        assert failed.code == 3
        assert len(failed.err.splitlines()) <= 3
        again = hira("resume", "last", "--quiet", OPENAI_API_KEY="sk-new-and-right")
        assert (again.code, plain(again.out)) == (0, ANSWER)
        assert endpoint.calls[-1].headers["authorization"] == "Bearer sk-new-and-right"
    assert b"sk-old" not in hira.journal.read_bytes()
    assert b"sk-new" not in hira.journal.read_bytes()


def test_resume_sends_no_key_to_a_place_that_a_projects_file_named(hira: Command) -> None:
    with Endpoint(replies(3), faults=["401"]) as endpoint:  # type: ignore[arg-type]
        file = hira.folder / "hira.toml"
        file.write_text(f'base_url = "{endpoint.base_url}"', encoding="utf-8")
        told = ("--docs", "docs", "--model", endpoint.model, "--parallel", "3", "--quiet")
        assert hira("ask", QUESTION, *told, OPENAI_API_KEY="sk-of-openai", HIRA_TRUST=endpoint.base_url).code == 3
        file.unlink()
        keys = {"OPENAI_API_KEY": "sk-of-openai", "HIRA_API_KEY": "sk-of-openai-2"}
        assert hira("resume", "last", "--quiet", **keys).code == 0
        assert "sk-of-openai" not in str([request.headers for request in endpoint.requests])


def test_verify_checks_citations_against_the_stored_sources(hira: Command, endpoint: Endpoint) -> None:
    hira("ask", QUESTION, *docs_at(endpoint), "--quiet")
    said = hira("verify", "last")
    assert (said.code, said.out.count("supported ")) == (0, 3)
    with sqlite3.connect(hira.journal) as other:
        other.execute("update runs set answer = replace(answer, '1500', '1600')")
    other.close()
    changed = hira("verify", "last", "--json")
    verdicts = [one["verdict"] for one in json.loads(changed.out)["citations"]]
    assert (changed.code, verdicts[::2]) == (4, ["supported", "supported"])
    assert verdicts[1] in {"contradicted", "unsupported"}


def test_no_model_is_asked_about_copies(hira: Command, endpoint: Endpoint) -> None:
    hira("ask", QUESTION, *docs_at(endpoint), "--quiet")
    with Endpoint(lambda _: "I cannot say.") as other:
        said = hira("verify", "last", "--json", "--model", other.model, "--base-url", other.base_url)
        assert not other.calls
    assert said.code == 0
    assert {citation["verdict"] for citation in json.loads(said.out)["citations"]} == {"supported"}


def test_with_cache_sources_keep_their_ids_though_parallel_subtasks_read_in_another_order(hira: Command) -> None:
    def slow(request: Request) -> float:
        """The first subtask of three reads last."""
        shape = (request.schema or {}).get("properties", {})
        return 0.4 if "expert" in shape and "Kama" in request.messages[-1].text else 0.0

    with Endpoint(replies(3), delay=slow) as endpoint:  # type: ignore[arg-type]
        first = hira("ask", QUESTION, *docs_at(endpoint), "--quiet")
        before = len(endpoint.calls)
        again = hira("ask", QUESTION, *docs_at(endpoint), "--quiet", "--cache")
        assert len(endpoint.calls) == before
    assert "[s1]" not in first.out.partition(".")[0], "the first subtask was to read last"
    assert again.out == first.out


def test_runs_of_an_age_are_deleted_without_a_terminal_only_with_yes(hira: Command, endpoint: Endpoint) -> None:
    for _ in range(2):
        hira("ask", QUESTION, *docs_at(endpoint), "--quiet")
    asked = hira("runs", "delete", "--older", "0.00000001")
    assert (asked.code, len(json.loads(hira("runs", "--json").out))) == (2, 2)
    assert asked.err == (
        "hira: 2 runs and all their data would be deleted, and this is not a terminal\n"
        "  --yes deletes them without asking\n"
    )
    assert "2 runs deleted" in hira("runs", "delete", "--older", "0.00000001", "--yes").err
    assert json.loads(hira("runs", "--json").out) == []


def test_a_mistake_ends_with_2(hira: Command, endpoint: Endpoint) -> None:
    hira("ask", QUESTION, *docs_at(endpoint), "--quiet")
    for argv, what in (
        (["show", "nothing-like-it"], "no run 'nothing-like-it'"),
        (["trace", "last"], "no output is named"),
        (["trace", "last", "-o", "t.pdf"], "unknown kind of file"),
        (["runs", "export", "-o", "none/t.jsonl"], "could not be written"),
    ):
        said = hira(*argv)
        assert (said.code, said.out) == (2, "")
        assert what in said.err
        assert len(said.err.splitlines()) <= 3


async def test_a_run_with_a_tool_of_its_own_is_resumed_by_its_program_and_nobody_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    @tool
    async def ring(bell: str) -> str:
        "Ring a bell."
        return f"{bell} rang"

    with Endpoint(["The bell rang."], faults=["401"]) as endpoint:
        settings = Settings(model=endpoint.model, base_url=endpoint.base_url, journal=tmp_path / "j.sqlite")
        async with Hira(settings=settings, tools=[ring]) as hira:
            first = hira.stream("Did it ring?")
            await first.work()
        async with Hira(settings=settings) as other:
            with pytest.raises(UsageError, match="tool 'ring', which this Hira does not have"):
                await other.resume(first.id)
        code = await asyncio.to_thread(main, ["resume", first.id, "--journal", str(tmp_path / "j.sqlite")])
        assert code == 2
        assert "was started by a program, with its own tool 'ring'" in capsys.readouterr().err
        async with Hira(settings=settings, tools=[ring]) as hira:
            again = await hira.resume(first.id)
            await again.work()
    assert again.answer.text == "The bell rang."


@pytest.mark.parametrize(("workflow", "shown"), [("direct", " · workflow direct"), ("rag", "reasoner wrote")])
def test_what_the_terminal_shows_is_recorded_when_the_run_is_killed(tmp_path: Path, workflow: str, shown: str) -> None:
    place = Place(tmp_path)
    with Endpoint(lambda _: "The river Kama is 1805 kilometres long. [s1]") as endpoint:
        place.run("ask", "How long is the river Oka?", "--docs", "docs", *at(endpoint))
        question = "How long is the river Kama?"
        docs = ("--docs", "docs") if workflow == "rag" else ()
        with place.start("ask", question, *docs, *at(endpoint), "--workflow", workflow) as process:
            assert process.stderr
            seen = ""
            for seen in process.stderr:
                if shown in seen:
                    break
            process.kill()
            process.communicate()
        while endpoint.connections:
            time.sleep(0.001)
        made = len(endpoint.calls)
        said = place.run("resume", "last")
        assert "The river Kama is 1805" in said.out
        resumed = re.search(r"^hira: resuming run (\S+): How long is the river Kama\?$", said.err, re.MULTILINE)
        assert resumed, said.err
        if workflow == "rag":
            assert len(endpoint.calls) == made
        else:
            assert f"run {resumed[1]} · workflow" in seen


CALLS = {1: 10, 3: 8}
"""Model calls of the whole run, by the number of subtasks in one turn: two for each of three subtasks, and four or two
for the planner."""


@pytest.mark.heavy(seconds=15)
@pytest.mark.parametrize("parallel", CALLS)
def test_a_run_killed_at_a_random_point_resumes(tmp_path: Path, parallel: int) -> None:
    random = Random(20261120 + parallel)
    for number in range(3):
        killed_and_resumed(tmp_path / str(number), parallel, random, CALLS[parallel])
