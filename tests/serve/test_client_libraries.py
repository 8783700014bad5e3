"""Clients of the OpenAI API as they are, each in a process of its own: whichever of them are installed."""

import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from clients import CLIENTS
from serving import Slow, served

from hira.runtime.settings import KeySettings, Settings
from hira.workflows import WORKFLOWS

pytestmark = pytest.mark.heavy(seconds=1)

KEY = "a-key-of-the-clients"
ANSWER = "The tower of Alta is 31 metres high. [s1]"


@dataclass(frozen=True)
class Driven:
    """What a client told of the server, and how the runs ended that it left."""

    client: str
    told: dict[str, Any]
    left: list[str]


@pytest.fixture(scope="module", params=list(CLIENTS))
def driven(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driven]:
    client = str(request.param)
    package = client.partition(",")[0]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    folder = tmp_path_factory.mktemp("client")
    (folder / "alta.txt").write_text("The tower of Alta is 31 metres high.\n", encoding="utf-8")
    keys = {"someone": KeySettings.model_validate({"key": KEY})}
    settings = Settings(model="offline", docs=(folder / "alta.txt",), journal=folder / "j.sqlite", keys=keys)
    slow_settings = settings.with_values({"journal": folder / "slow.sqlite"}, "test")
    with served(settings) as server, served(slow_settings, policies={"*": Slow(120)}) as slow:
        done = subprocess.run(
            [sys.executable, str(Path(__file__).with_name("clients.py")), client, f"{server.url}/v1", KEY, f"{slow.url}/v1"],
            capture_output=True, text=True, check=False, timeout=240,
        )  # fmt: skip
        assert not done.returncode, done.stderr
        yield Driven(client, json.loads(done.stdout.strip().splitlines()[-1]), ended(slow.url))


def ended(url: str) -> list[str]:
    """How the runs of the server ended, waited for, each of which takes minutes unless it is left."""
    deadline = time.monotonic() + 30
    while True:
        runs = httpx.get(f"{url}/api/runs", headers={"authorization": f"Bearer {KEY}"}).json()["runs"]
        states = [str(run["status"]) for run in runs]
        if "running" not in states or time.monotonic() > deadline:
            return states
        time.sleep(0.05)


def test_it_lists_the_workflows_as_models(driven: Driven) -> None:
    if driven.client == "llm":
        assert driven.told["models"] == ["hira"]  # its own file names them
    else:
        assert {name.rpartition("/")[2] for name in driven.told["models"]} == set(WORKFLOWS)


@pytest.mark.parametrize("how", ["plain", "streamed"])
def test_it_is_given_the_answer_and_what_all_roles_took(driven: Driven, how: str) -> None:
    told = driven.told[how]
    assert told["content"] == ANSWER, told
    assert told["tokens"] > 100
    assert told.get("finish", "stop") == "stop"


@pytest.mark.parametrize("how", ["plain", "streamed"])
def test_it_is_given_the_course_of_the_run_and_what_is_cited(driven: Driven, how: str) -> None:
    if driven.client == "llm":
        pytest.skip("llm prints the answer alone")
    assert "Subtask 1" in driven.told[how]["reasoning"]
    assert driven.told[how]["cited"] == ["alta"]


def test_parameters_that_are_not_read_do_no_harm(driven: Driven) -> None:
    assert driven.told["unread"]["content"] == ANSWER


@pytest.mark.parametrize(
    ("what", "status", "says"),
    [
        ("wrong_key", 401, "the key is wrong"),
        ("unknown_model", 404, "'nobody' does not exist"),
        ("tools", 400, "its own tools"),
        ("form", 400, "not supported"),
    ],
)
def test_a_refusal_reaches_it_with_its_reason(driven: Driven, what: str, status: int, says: str) -> None:
    if what not in driven.told["refused"]:
        pytest.skip(f"{driven.client} does not get that far")
    name, code, text = driven.told["refused"][what]
    assert name != "none"
    assert code in (None, status)
    assert says in text


def test_a_run_that_it_leaves_in_the_middle_is_ended(driven: Driven) -> None:
    assert driven.left
    assert set(driven.left) == {"interrupted"}
    if "late" in driven.told:
        assert "time" in driven.told["late"][0].lower()
