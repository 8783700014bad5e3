"""Your own workflow, tools and experts, named as `module:Object` on the command line and in hira.toml."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from command import Command

from hira.testing import Endpoint

CODE = '''
from hira import tool

@tool
def depth(lake: str) -> str:
    """The depth of a lake in metres."""
    return f"{lake} is 251 metres deep."

class Echo:
    name = "echo"

    async def run(self, question, context):
        names = [tool.name for tool in context.tools.extra_for("deep_search")]
        return " ".join([question, *names])

class Diver:
    name, ability, cost, needs = "diver", "diving", 1, frozenset()
    description = "Dives for an answer."

    async def work(self, task, context):
        raise NotImplementedError

number = 5
'''


@pytest.fixture
def hira(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_code_of_a_test.py").write_text(CODE, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    yield Command(tmp_path, {"HIRA_MODEL": "offline"})
    sys.modules.pop("own_code_of_a_test", None)


def write(hira: Command, text: str) -> None:
    (hira.folder / "hira.toml").write_text(text.replace("own:", "own_code_of_a_test:"), encoding="utf-8")


def test_the_command_runs_a_workflow_of_a_module(hira: Command) -> None:
    said = hira("ask", "-q", "--verify", "off", "--workflow", "own_code_of_a_test:Echo", "Hello?")

    assert said.out == "Hello?\n"
    assert hira("replay", "last", "-q").out == hira("resume", "last", "-q").out == said.out


def test_code_that_a_projects_file_names_runs_once_it_is_allowed(hira: Command) -> None:
    write(hira, 'workflow = "own:Echo"\ntools = ["own:depth"]\nexperts = ["own:Diver"]\n')
    refused = hira("ask", "-q", "Hello?")
    trust = ",".join(f"own_code_of_a_test:{name}" for name in ("Echo", "depth", "Diver"))
    allowed = hira("ask", "-q", "--verify", "off", "Hello?", HIRA_TRUST=trust)

    assert (refused.code, "own_code_of_a_test:depth" in refused.err) == (2, True)
    assert allowed.out == "Hello? depth\n"


@pytest.mark.parametrize(
    ("variable", "named", "said"),
    [
        ("HIRA_TOOLS", "number", "`tools` must contain only tools, got 5"),
        ("HIRA_EXPERTS", "number", "has no name"),
        ("HIRA_WORKFLOW", "number", "workflow has no name: 5"),
        ("HIRA_WORKFLOW", "absent", "'own_code_of_a_test:absent' cannot be loaded"),
    ],
)
def test_what_is_no_such_object_is_a_mistake(hira: Command, variable: str, named: str, said: str) -> None:
    refused = hira("ask", "Hello?", **{variable: f"own_code_of_a_test:{named}"})

    assert refused.code == 2
    assert said in refused.err


@pytest.mark.parametrize("command", [("replay", "last"), ("resume", "last"), ("ask", "--continue", "last", "Hi?")])
def test_a_journal_that_came_with_a_folder_runs_no_code_until_it_is_allowed(
    hira: Command, command: tuple[str, ...]
) -> None:
    named = "own_code_of_a_test:Echo"
    hira("ask", "-q", "--verify", "off", "--workflow", named, "--journal", "j.sqlite", "Hello?")
    entry = sqlite3.connect(hira.folder / "j.sqlite")
    with entry:
        entry.execute("UPDATE runs SET status = 'interrupted'")
    entry.close()
    sys.modules.pop("own_code_of_a_test")
    write(hira, 'journal = "j.sqlite"\n')

    refused = hira(*command, "-q")

    assert refused.code == 2
    assert "own_code_of_a_test" not in sys.modules
    assert f"HIRA_TRUST={named}" in refused.err
    assert "own_code_of_a_test" not in hira(*command, "-q", HIRA_TRUST=named).err
    assert "own_code_of_a_test" in sys.modules


def test_a_journal_that_came_with_a_folder_names_no_endpoint_and_gets_no_key(hira: Command) -> None:
    with Endpoint(["Hello."] * 4) as endpoint:
        asked = (
            "ask",
            "-q",
            "--verify",
            "off",
            "--workflow",
            "direct",
            "--model",
            "m",
            "--base-url",
            endpoint.base_url,
        )
        hira(*asked, "--journal", "j.sqlite", "Hello?")
        write(hira, 'journal = "j.sqlite"\n')
        before = len(endpoint.requests)
        refused = hira("ask", "-q", "--continue", "last", "Hi?", HIRA_MODEL="", HIRA_API_KEY="of-the-user")
        unasked = len(endpoint.requests)
        trust = {"HIRA_TRUST": endpoint.base_url, "HIRA_API_KEY": "of-the-user", "HIRA_MODEL": ""}
        hira("ask", "-q", "--continue", "last", "Hi?", **trust)
        sent = endpoint.requests[unasked:]

    assert (refused.code, unasked) == (2, before)
    assert sent
    assert "of-the-user" not in str(sent)


def test_a_workflow_of_ones_own_takes_no_options_of_the_command_line(hira: Command) -> None:
    refused = hira("ask", "--workflow", "own_code_of_a_test:Echo", "--set", "echo.depth=3", "Hi?")

    assert refused.code == 2
    assert "a workflow of your own takes no --set" in refused.err


def test_replies_recorded_in_a_folder_answer_only_with_consent(tmp_path: Path) -> None:
    hira, ask = Command(tmp_path, {"HIRA_MODEL": "offline"}), ("ask", "-q", "What is 2 + 3?")
    (tmp_path / "hira.toml").write_text('journal = "runs.sqlite"\n', encoding="utf-8")
    assert hira(*ask).code == 0
    for refused in (hira(*ask, "--cache"), hira(*ask, HIRA_CACHE_RESPONSES="1")):
        assert (refused.code, "answers with replies recorded in its journal" in refused.err) == (2, True)
    assert hira(*ask, "--cache", HIRA_TRUST="replies-of-runs.sqlite").code == 0
    assert hira(*ask, "--cache", "--journal", str(tmp_path / "runs.sqlite")).code == 0


def test_files_that_a_journal_of_the_folder_names_elsewhere_are_read_only_with_consent(tmp_path: Path) -> None:
    clone, secret = tmp_path / "clone", tmp_path / "secret.txt"
    clone.mkdir()
    secret.write_text("The password of the tower of Alta is swordfish.\n", encoding="utf-8")
    hira = Command(clone, {"HIRA_MODEL": "offline"})
    question = "What is the password of the tower of Alta?"
    hira("ask", "-q", question, "--file", str(secret), "--journal", str(clone / "runs.sqlite"))
    with closing(sqlite3.connect(clone / "runs.sqlite")) as db, db:
        db.execute("update runs set status = 'interrupted', answer = ''")
        db.execute("delete from calls")
    (clone / "hira.toml").write_text('journal = "runs.sqlite"\n', encoding="utf-8")
    refused = hira("resume", "last", "-q")
    assert (refused.code, refused.out, f"reads {secret}" in refused.err) == (2, "", True)
    assert "swordfish" in hira("resume", "last", "-q", HIRA_TRUST=str(secret)).out
