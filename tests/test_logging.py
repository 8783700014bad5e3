"""The lines that runs log."""

import logging
from pathlib import Path

import pytest

from hira import Hira
from hira.testing import Endpoint


async def test_a_run_logs_its_start_its_retries_and_its_end_with_its_id_and_no_content(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="hira.runs")
    with Endpoint(["The tower is 31 metres high."], faults=["503"], model="small-1") as endpoint:
        async with Hira("small-1", base_url=endpoint.base_url, workflow="direct", verify="off") as hira:
            answer = await hira.ask("How high is the tower?")
    lines = [record.getMessage() for record in caplog.records if record.name == "hira.runs"]
    run = f"run {answer.rollout.run}"
    assert lines[0] == f"{run} started: workflow direct, model small-1"
    assert lines[-1].startswith(f"{run} ended: answered, 1 calls, ")
    assert [line for line in lines if line.startswith(f"{run}: ") and "trying again" in line]
    assert "tower" not in "".join(lines)


async def test_runs_log_nothing_unless_the_program_wants_it(caplog: pytest.LogCaptureFixture) -> None:
    async with Hira("offline") as hira:
        await hira.ask("What is 2 + 2?")
    assert not [record for record in caplog.records if record.name == "hira.runs"]


async def test_a_notice_that_matters_is_a_warning_which_python_prints_unasked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Hira("offline", journal=tmp_path) as hira:  # a folder holds no journal
        await hira.ask("What is 2 + 2?")
    (line,) = [record for record in caplog.records if record.name == "hira.runs"]
    assert line.levelno == logging.WARNING
    assert "the journal cannot be opened" in line.getMessage()
