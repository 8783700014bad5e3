"""A journal where nothing can be written: the run goes on, one line says so, and what was recorded stays readable."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hira.journal import Journal

ASKS = """
import asyncio, resource, sys
from pathlib import Path
from hira import Hira, tool
from hira.core.events import Notice
from hira.testing import ScriptedPolicy, calling

@tool
async def lookup(query: str) -> str:
    "Look something up."
    return "The tower is 31 m high. " + query * 2000

async def main():
    replies = [calling("lookup", query=str(at) * 20) for at in range(8)] + ["The tower is 31 m high."]
    policies = {"*": ScriptedPolicy(replies)}
    async with Hira(policies=policies, tools=[lookup], workflow="react", journal=sys.argv[1], verify="off") as hira:
        if most := int(sys.argv[2]):
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        run = hira.stream("How high is the tower?")
        await run.work(lambda event: print(event.text) if isinstance(event, Notice) else None)
        print(run.answer.text)
asyncio.run(main())
"""


def ask(journal: Path, most: int = 0) -> list[str]:
    """What a run prints that records in this file, which may have at most so many bytes; no limit if 0."""
    command = [sys.executable, "-c", ASKS, str(journal), str(most)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if "the journal cannot be" not in line] == []
    return done.stdout.splitlines()


@pytest.mark.skipif(sys.platform == "win32", reason="files have no limit of their size there")
def test_a_run_goes_on_when_the_disk_is_full_and_what_was_recorded_stays(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    *told, answer = ask(path, most=200_000)
    assert answer == "The tower is 31 m high."
    (line,) = [one for one in told if "journal" in one]
    assert "can no longer be written" in line
    assert line.endswith("this run cannot be resumed")
    journal = Journal(path)
    (run,) = journal.runs()
    assert [call.kind for call in journal.calls(run.id)][:2] == ["policy", "tool"]
    journal.close()
    assert [one for one in ask(path) if "journal" in one] == []


@pytest.mark.skipif(sys.platform == "win32", reason="a folder is made read-only otherwise there")
def test_a_run_goes_on_where_its_journal_is_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o500)
    if os.access(folder, os.W_OK):  # root writes everywhere but there
        folder = Path("/proc/self")
    *told, answer = ask(folder / "journal.sqlite")
    assert answer == "The tower is 31 m high."
    (line,) = [one for one in told if "journal" in one]
    assert "this run is not recorded and cannot be resumed" in line
