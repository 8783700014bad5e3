"""`hira init` and `hira completion`."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from command import Command

import hira
from hira.cli import completion
from hira.cli.init import SetupFindings, format_settings
from hira.cli.options import build_parser
from hira.policies.probe import Probe
from hira.runtime.settings import TRUST, load
from hira.testing import Endpoint
from hira.workflows import WORKFLOWS

KEY, SERPER = "sk-very-secret-key-0001", "serper-secret-0002"


@pytest.fixture
def place(tmp_path: Path) -> Command:
    (tmp_path / "project" / "docs").mkdir(parents=True)
    (tmp_path / "project" / "docs" / "apples.txt").write_text("The harvest was 31 tons in 2020.\n", encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.txt").write_text("A heron is a bird of the shore.\n", encoding="utf-8")
    return Command(tmp_path / "project", {"HIRA_MODEL": "offline"})


def test_init_writes_what_it_finds_no_key_and_over_no_file(place: Command) -> None:
    file = place.folder / "hira.toml"
    said = place("init", HIRA_MODEL="", OPENAI_API_KEY=KEY, SERPER_API_KEY=SERPER)
    text = file.read_text(encoding="utf-8")
    assert (said.code, tomllib.loads(text)) == (0, {"docs": ["docs"], "search": "serper"})
    assert "OPENAI_API_KEY" in text
    assert not [key for key in (KEY, SERPER) if key in text + said.out + said.err]
    file.write_text("max_time = 7\n", encoding="utf-8")
    said = place("init")
    assert (said.code, file.read_text(encoding="utf-8")) == (2, "max_time = 7\n")
    assert "--force" in said.err
    assert place("init", "--force").code == 0
    assert "docs" in tomllib.loads(file.read_text(encoding="utf-8"))
    other = place.folder / "other.toml"
    other.write_text("kept\n", encoding="utf-8")
    file.unlink()
    file.symlink_to(other)
    assert place("init", "--force").code == 2
    assert other.read_text(encoding="utf-8") == "kept\n"


def test_init_asks_a_connected_model_a_test_question_and_examines_it_as_a_verifier(place: Command) -> None:
    with Endpoint(lambda _: "They are about apples.") as endpoint:
        connected = {"HIRA_MODEL": endpoint.model, "HIRA_BASE_URL": endpoint.base_url, "HIRA_API_KEY": "k"}
        said = place("init", **connected)
        assert said.code == 0, said.err
        assert "They are about apples." in said.out
        assert "the verifier's exam: 0 of 12 true claims recognised" in said.err
        asked = len(endpoint.requests)
        assert place("init", "--force", "--no-try", **connected).code == 0
        assert len(endpoint.requests) == asked
    assert place("init", "--force", **connected).code == 3


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "HIRA_BASE_URL"])
def test_init_writes_the_only_model_of_the_endpoint_that_a_variable_names(place: Command, variable: str) -> None:
    with Endpoint(lambda _: "They are about apples.", model="small-1") as endpoint:
        said = place("init", HIRA_MODEL="", **{variable: endpoint.base_url})
    text = (place.folder / "hira.toml").read_text(encoding="utf-8")
    assert (said.code, tomllib.loads(text)) == (0, {"model": "small-1", "docs": ["docs"]})
    assert f"# The only model of the endpoint that {variable} names." in text
    assert "They are about apples." in said.out


def test_init_names_the_models_of_an_endpoint_that_has_several() -> None:
    server = Probe("http://models.example/v1", ok=True, models=("large-1", "small-1"))
    text = format_settings(SetupFindings((server,), (), "", (), (), "HIRA_BASE_URL"))
    assert "# The endpoint is set by HIRA_BASE_URL, which has large-1, small-1. Name its model:" in text
    assert "model" not in tomllib.loads(text)


def test_init_refuses_documents_that_its_file_may_not_name_before_it_writes(place: Command) -> None:
    for docs in ("nowhere", "../elsewhere"):
        said = place("init", "--docs", docs)
        assert said.code == 2
        assert not (place.folder / "hira.toml").exists()
    assert "may name only documents in that folder" in said.err
    assert str(place.folder / "home" / ".config" / "hira" / "hira.toml") in said.err


def test_a_local_server_is_written_with_its_first_model_that_speaks() -> None:
    server = Probe("http://127.0.0.1:8080/v1", ok=True, models=("embed-small", 'qwen "x"'), server="llama.cpp")
    made = tomllib.loads(format_settings(SetupFindings((server,), (), "", (), ())))
    assert made == {"model": 'qwen "x"', "base_url": "http://127.0.0.1:8080/v1"}


def test_what_is_written_can_be_read_and_each_comment_would_be_a_setting(place: Command) -> None:
    for found in (
        SetupFindings((), (), "", (), ()),
        SetupFindings((), ("OPENAI_API_KEY",), "", ("serper", "brave"), ("papers", 'a "b"')),
        SetupFindings((), (), "m\nmodel = 1", (), ()),
    ):
        text, file = format_settings(found), place.folder / "hira.toml"
        settings = [line.removeprefix("# ") for line in text.splitlines() if re.match(r"# \w+ = ", line)]
        trusted = {TRUST: "http://127.0.0.1:8000/v1,https://…/v1"}
        for written in (text, *settings):
            file.write_text(written, encoding="utf-8")
            read = load({}, trusted, place.folder, place.folder / "home")
            assert written is text or read.model_fields_set


def test_each_script_knows_every_command_and_flag_and_the_workflows(place: Command) -> None:
    flags = {flag for flag in build_parser(hira.__version__).flags() if flag.startswith("--")}
    assert tuple(WORKFLOWS) == completion.WORKFLOWS
    for shell in ("bash", "zsh", "fish"):
        said = place("completion", shell)
        assert said.code == 0
        assert not [flag for flag in flags if flag.removeprefix("--" if shell == "fish" else "") not in said.out]
        assert all(name in said.out for name in WORKFLOWS)
        if shell == "bash" and (bash := shutil.which("bash")):
            done = subprocess.run([bash, "--norc", "-euc", said.out], capture_output=True, check=False)
            assert (done.returncode, done.stderr) == (0, b"")
