"""`hira ask` at a real terminal: with --approve what the person types decides, and the reply of a slow model appears
while the model writes it."""

import asyncio
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from command import Command

from hira.journal import Journal
from hira.testing import Endpoint, calling
from hira.testing.faults import Fault, delta
from hira.testing.server import Exchange

pytestmark = pytest.mark.heavy(seconds=1)

QUESTION = "Where did the builder of the tower of Alta study?"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "towers.txt").write_text(
        "The builder of the tower of Alta was Edda Brand.\n\nEdda Brand studied in Lund.\n", encoding="utf-8"
    )
    return folder


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH")}
    return {**kept, "HOME": str(home), "HIRA_MODEL": "offline", "TERM": "xterm"}


class Terminal:
    """A real terminal with `hira` in it; its standard output goes to a file, as in `hira ask … > answer.txt`."""

    def __init__(self, home: Path, *argv: str, environ: Mapping[str, str] = MappingProxyType({})) -> None:
        self.master, slave = pty.openpty()
        self.out = home / "answer.txt"
        with self.out.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "hira", *argv],
                stdin=slave, stdout=out, stderr=slave, env={**environment(home), **environ}, cwd=home, start_new_session=True,
            )  # fmt: skip
        os.close(slave)
        self.seen = ""

    def until(self, text: str) -> None:
        """Read the terminal until the text appears in new output."""
        deadline, shown = time.monotonic() + 30, ""
        while text not in shown:
            assert time.monotonic() < deadline, f"{text!r} is not in {shown!r}"
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    shown += os.read(self.master, 65536).decode("utf-8", "replace")
                except OSError:
                    raise AssertionError(f"{text!r} never came: {shown!r}") from None
        self.seen += shown

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def end(self) -> int:
        while True:
            try:
                read = os.read(self.master, 65536)
            except OSError:
                break
            if not read:
                break
            self.seen += read.decode("utf-8", "replace")
        code = self.process.wait(30)
        os.close(self.master)
        return code


def test_what_is_typed_decides(docs: Path, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "ask", QUESTION, "--docs", str(docs), "--approve")
    terminal.until("that follow: ")
    terminal.type("e\n")
    terminal.until("new text")
    terminal.type("Who was the builder of the tower of Alta?\n")
    terminal.until("that follow: ")
    terminal.type("a\n")
    code = terminal.end()
    assert code == 0, terminal.seen
    assert "Lund" in terminal.out.read_text(encoding="utf-8")
    assert "subtask 2" in re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", terminal.seen)


def test_a_terminal_that_is_closed_ends_the_run_and_it_goes_on_later(docs: Path, tmp_path: Path) -> None:
    arguments = ["--journal", str(tmp_path / "j.sqlite")]
    terminal = Terminal(tmp_path, "ask", QUESTION, "--docs", str(docs), "--approve", *arguments)
    terminal.until("that follow: ")
    terminal.type("\x04")
    assert terminal.end() == 130, terminal.seen
    assert "no one is left to approve" in terminal.seen
    again = Terminal(tmp_path, "resume", "last", *arguments)
    again.until("that follow: ")
    again.type("a\n")
    assert again.end() == 0, again.seen
    assert "Lund" in again.out.read_text(encoding="utf-8")
    journal = Journal(tmp_path / "j.sqlite")
    assert [entry.status for entry in journal.runs()] == ["answered"]
    journal.close()


def test_runs_of_an_age_are_deleted_when_the_person_says_yes(docs: Path, tmp_path: Path) -> None:
    arguments = ["--journal", str(tmp_path / "j.sqlite")]
    assert Command(tmp_path, environment(tmp_path))("ask", QUESTION, "--docs", str(docs), *arguments).code == 0
    for typed, says, left in (("\n", "no run is deleted", 1), ("y\n", "1 run deleted", 0)):
        terminal = Terminal(tmp_path, "runs", "delete", "--older", "0.00000001", *arguments)
        terminal.until("delete them? [y]es, [N]o: ")
        terminal.type(typed)
        assert terminal.end() == 0, terminal.seen
        assert "1 run and all their data would be deleted" in terminal.seen
        assert says in terminal.seen
        journal = Journal(tmp_path / "j.sqlite")
        assert len(list(journal.runs())) == left
        journal.close()


def test_a_batch_that_ctrl_c_ends_shows_no_remaining_time(docs: Path, tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text(f"{QUESTION}\n" * 6, encoding="utf-8")
    with Endpoint(lambda _: "Lund.", faults=lambda number: "" if number <= 2 else "silent") as endpoint:
        names = ("--model", endpoint.model, "--base-url", endpoint.base_url, "--workflow", "direct")
        flags = ("--batch", "q.txt", "-o", "a.jsonl", "--concurrency", "2")
        terminal = Terminal(tmp_path, "ask", *names, *flags)
        terminal.until(" left")
        terminal.process.send_signal(signal.SIGINT)
        terminal.until("Ctrl-C again quits")
        seen, terminal.seen = terminal.seen, ""
        assert terminal.end() == 130
    assert "2 of 6" in seen
    assert "of 6" in terminal.seen
    assert " left" not in terminal.seen


ORDERS = """
from hira import tool

@tool(needs_approval=True)
def order(thing: str) -> str:
    "Order something."
    return f"{thing} is ordered"
"""


def test_a_call_of_a_tool_is_asked_about_without_the_flag(tmp_path: Path) -> None:
    (tmp_path / "orders.py").write_text(ORDERS, encoding="utf-8")
    calls = [calling("order", thing=name) for name in ("rope", "boat", "yacht")]
    with Endpoint([*calls, r"\boxed{Done.}"]) as endpoint:
        more = ["--model", endpoint.model, "--base-url", endpoint.base_url, "--workflow", "react"]
        terminal = Terminal(tmp_path, "ask", "Order a rope.", *more, environ={"HIRA_TOOLS": "orders:order"})
        terminal.until('reasoner calls order: {"thing": "rope"}')
        terminal.type("\n")  # it may have been pressed before the question was shown
        terminal.until("that follow: ")
        terminal.type("y\n")
        terminal.until('{"thing": "boat"}')
        terminal.type("e\n")
        terminal.until("JSON object")
        terminal.type("\n")  # leads back to the question
        terminal.until("that follow: ")
        terminal.type("maybe\n")
        terminal.until("answer y, e, n or a")
        terminal.type("e\nship\n")
        terminal.until("that is not a JSON object")
        terminal.type('{"thing": "ship"}\n')
        terminal.until('{"thing": "yacht"}')
        terminal.type("n\ntoo expensive\n")
        terminal.end()
        read = str([one.body for one in endpoint.requests])
    assert [word in read for word in ("rope is ordered", "ship is ordered", "boat is ordered", "too expensive")] == [
        True, True, False, True,
    ]  # fmt: skip
    refused = Command(tmp_path, {"HIRA_MODEL": "offline"}).run(
        "ask", "Order a rope.", "--workflow", "react", environ={"HIRA_TOOLS": "orders:order"}
    )
    assert "a person has to approve calls of 'order', and no one can be asked" in refused.err
    assert "in a terminal: hira ask or chat" in refused.err


def test_without_a_person_it_is_refused(tmp_path: Path) -> None:
    hira = Command(tmp_path, {"HIRA_MODEL": "offline"})
    for more, says in (([], "this is not a terminal"), (["--events"], "a program reads --events")):
        said = hira("ask", QUESTION, "--approve", *more)
        assert (said.code, said.out) == (2, "")
        assert says in said.err


def chunk(text: str, finish: str | None = None) -> bytes:
    return b"data: " + json.dumps(delta(text, finish)).encode() + b"\n\n"


@pytest.mark.heavy(seconds=8)
def test_the_first_token_is_shown_within_a_second_and_the_answer_alone_is_printed(docs: Path, tmp_path: Path) -> None:
    sent: list[float] = []

    async def slowly(exchange: Exchange) -> None:
        await asyncio.sleep(2)
        await exchange.begin()
        sent.append(time.monotonic())
        for word in ("Edda ", "Brand ", "built ", "it ", "[s1]."):
            await exchange.chunk(chunk(word))
            await asyncio.sleep(0.5)
        await exchange.chunk(chunk("", "stop") + b"data: [DONE]\n\n")
        await exchange.end()

    with Endpoint(faults=lambda _: Fault(slowly)) as endpoint:
        where = ("--base-url", endpoint.base_url, "--model", endpoint.model, "--workflow", "rag", "--journal", "off")
        terminal = Terminal(tmp_path, "ask", "Who built the tower of Alta?", "--docs", str(docs), *where)
        terminal.until("reads")
        terminal.until("Edda")
        assert time.monotonic() - sent[0] < 1
        terminal.until("tokens/s")
        terminal.end()
    assert (
        terminal.out.read_text(encoding="utf-8").splitlines()[0]
        == "Edda Brand built it [s1] (unsupported; the source has these words, but puts them differently)."
    )
    assert "read [s1] towers" in terminal.seen
