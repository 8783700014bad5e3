"""The first minutes and the bad ones: `hira init`, `hira completion`."""

import io
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

import hira
from hira.cli import completion, main
from hira.cli.init import Found, format_settings, questions_for
from hira.cli.parser import parser
from hira.cli.shell import Shell
from hira.policies.probe import Probe
from hira.runtime.settings import TRUST, Settings, load
from hira.workflows import WORKFLOWS

KEY, SERPER, PASSWORD = "sk-very-secret-key-0001", "serper-secret-0002", "hunter2-long-password"


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


class Place:
    """A folder and a home of its own, and an environment that is given."""

    def __init__(self, path: Path) -> None:
        self.folder, self.home = path / "project", path / "home"
        self.folder.mkdir()
        self.home.mkdir()

    def hira(self, *argv: str, **environ: str) -> Said:
        out, err = io.StringIO(), io.StringIO()
        code = main(argv, Shell(io.StringIO(), out, err, environ, self.folder, self.home))
        return Said(code, out.getvalue(), err.getvalue())

    @property
    def toml(self) -> str:
        return (self.folder / "hira.toml").read_text(encoding="utf-8")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def docs(place: Place) -> Path:
    (place.folder / "docs").mkdir()
    (place.folder / "docs" / "apple_harvest.txt").write_text(
        "The apple harvest was 31 tons in 2020.\n", encoding="utf-8"
    )
    return place.folder / "docs"


def test_init_writes_what_it_finds_and_tries_it(place: Place, docs: Path) -> None:
    said = place.hira("init", HIRA_MODEL="offline")
    assert said.code == 0, said.err
    assert tomllib.loads(place.toml)["docs"] == ["docs"]
    assert "apple harvest was 31 tons" in said.out
    assert "testing it" in said.err
    assert load({}, {}, place.folder, place.home).docs == (docs,)


def test_init_never_overwrites_unless_it_is_told_to(place: Place, docs: Path) -> None:
    (place.folder / "hira.toml").write_text("max_time = 7\n", encoding="utf-8")
    said = place.hira("init", HIRA_MODEL="offline")
    assert (said.code, place.toml) == (2, "max_time = 7\n")
    assert "--force" in said.err
    assert place.hira("init", "--force", "--no-try", HIRA_MODEL="offline").code == 0
    assert "docs" in tomllib.loads(place.toml)


def test_init_leaves_a_link_alone_whatever_it_is_told(place: Place, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("kept\n", encoding="utf-8")
    (place.folder / "hira.toml").symlink_to(other)
    assert place.hira("init", "--force", "--no-try", HIRA_MODEL="offline").code == 2
    assert other.read_text(encoding="utf-8") == "kept\n"


def test_init_writes_no_key_and_names_where_it_comes_from(place: Place) -> None:
    said = place.hira("init", "--no-try", OPENAI_API_KEY=KEY, SERPER_API_KEY=SERPER)
    assert said.code == 0, said.err
    assert KEY not in place.toml + said.out + said.err
    assert SERPER not in place.toml + said.out + said.err
    assert "OPENAI_API_KEY" in place.toml
    assert tomllib.loads(place.toml) == {"search": "serper"}


def test_init_refuses_documents_that_are_not_there_before_it_writes(place: Place) -> None:
    assert place.hira("init", "--docs", "nowhere", HIRA_MODEL="offline").code == 2
    assert not (place.folder / "hira.toml").exists()


def test_init_refuses_documents_that_its_file_may_not_name_before_it_writes(place: Place, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.txt").write_text("A heron is a bird of the shore.\n", encoding="utf-8")
    said = place.hira("init", "--docs", "../elsewhere", HIRA_MODEL="offline")
    assert said.code == 2
    assert "may not name documents elsewhere" in said.err
    assert not (place.folder / "hira.toml").exists()


@pytest.mark.parametrize(
    ("first", "second", "question"),
    [
        ("The questions are those that were asked.", "A heron is a bird of the shore.", "What is a heron?"),
        ("The body is told by everyone in time.", "Ostra is the largest island of all.", "What is Ostra?"),
        ("From outside it is the value of a field.", "The graph is a file of facts.", "What is the graph?"),
        ("```\nEdda is the oldest of the three.\n```", "The harvest was 31 tons in 2020.", "What was the harvest?"),
        ("Nothing here says what anything might be.", "- Ines Okafor leads the project.", "Who leads the project?"),
        ("Nothing here says what anything might be.", "", ""),
    ],
)
def test_init_asks_what_a_document_says_of_its_subject(place: Place, first: str, second: str, question: str) -> None:
    docs = place.folder / "docs"
    docs.mkdir()
    (docs / "a.md").write_text(f"{first}\n", encoding="utf-8")
    (docs / "b.md").write_text(f"{second}\n", encoding="utf-8")
    assert questions_for(Settings(docs=(docs,)), documents=True)[:1] == ([question] if question else [])


def test_init_reads_any_document_for_a_question_and_asks_offline_until_one_is_answered(place: Place) -> None:
    docs = place.folder / "documents"
    docs.mkdir()
    (docs / "a.txt").write_text("Priya Nair visits the plant.\n", encoding="utf-8")
    page = "<p>The Halden S is a centrifugal pump.</p>"
    (docs / "b.html").write_text(f"<html><body><h1>Pumps</h1>{page}</body></html>", encoding="utf-8")
    (docs / "c.docx").write_bytes(b"no document")
    said = place.hira("init", HIRA_MODEL="offline")
    assert (said.code, "testing it: hira ask 'What is the Halden S?'" in said.err) == (0, True)
    assert "hira: answered, by offline" in said.err
    assert "centrifugal pump" in said.out


def test_init_says_so_where_no_document_makes_a_question(place: Place) -> None:
    docs = place.folder / "documents"
    docs.mkdir()
    (docs / "a.csv").write_text("pump,flow\nA2,120\n", encoding="utf-8")
    said = place.hira("init", HIRA_MODEL="offline")
    assert (said.code, said.out) == (0, "")
    assert "not tested: no sentence of the documents gives a simple question" in said.err


def test_a_local_server_is_written_with_its_first_model_that_speaks() -> None:
    server = Probe("http://127.0.0.1:8080/v1", ok=True, models=("embed-small", 'qwen "x"'), server="llama.cpp")
    made = tomllib.loads(format_settings(Found((server,), (), "", (), ())))
    assert made == {"model": 'qwen "x"', "base_url": "http://127.0.0.1:8080/v1"}


@pytest.mark.parametrize(
    "found",
    [
        Found((), (), "", (), ()),
        Found((), ("OPENAI_API_KEY",), "", ("serper", "brave"), ("papers", 'a "b"')),
        Found((), (), "m\nmodel = 1", (), ()),
    ],
)
def test_what_is_written_can_be_read_and_each_comment_would_be_a_setting(found: Found, place: Place) -> None:
    text = format_settings(found)
    (place.folder / "hira.toml").write_text(text, encoding="utf-8")
    trusted = {TRUST: "http://127.0.0.1:8000/v1,https://…/v1"}
    load({}, trusted, place.folder, place.home)
    settings = [line.removeprefix("# ") for line in text.splitlines() if re.match(r"# \w+ = ", line)]
    for line in settings:
        (place.folder / "hira.toml").write_text(line, encoding="utf-8")
        assert load({}, trusted, place.folder, place.home).model_fields_set


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_knows_every_command_and_flag_and_the_workflows(shell: str, place: Place) -> None:
    said = place.hira("completion", shell)
    assert said.code == 0
    flags = {flag for flag in parser(hira.__version__).flags() if flag.startswith("--")}
    assert not [flag for flag in flags if flag.removeprefix("--" if shell == "fish" else "") not in said.out]
    assert all(name in said.out for name in WORKFLOWS)


def test_every_workflow_is_completed() -> None:
    assert tuple(WORKFLOWS) == completion.WORKFLOWS


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash here")
def test_bash_takes_the_script(place: Place) -> None:
    script = place.hira("completion", "bash").out
    done = subprocess.run([str(shutil.which("bash")), "--norc", "-euc", script], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_no_command_of_these_loads_more_than_it_needs() -> None:
    code = "import sys; from hira.cli import main; main(['completion', 'bash']); print([n for n in ('pydantic', 'httpx') if n in sys.modules], file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stderr.strip() == "[]"
