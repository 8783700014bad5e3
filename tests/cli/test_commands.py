"""The command line: which output goes to which stream, and the exit codes. Most commands run in this process, some in a
real one."""

import io
import json
import os
import re
import struct
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import Command, at

from hira.cli import main
from hira.cli.running import announce_model
from hira.cli.shell import encodable
from hira.runtime.factory import open_session
from hira.runtime.settings import Settings
from hira.testing import calling
from hira.testing.endpoint import Endpoint
from hira.workflows import WORKFLOWS

QUESTION = "When was ASEAN founded?"
DISTILLED = '{"reasoning": "", "conclusion": "ASEAN was founded on 8 August 1967 [s1]."}'
ANSWER = "ASEAN was founded on 8 August 1967 [s1]."
SCRIPT: list[Any] = [
    calling("subtask", task=QUESTION),
    '{"reason": "a page states it", "expert": "simple_search"}',
    '{"queries": ["ASEAN founded"]}',
    ANSWER,
    DISTILLED,
    ANSWER,
]


@pytest.fixture
def place(tmp_path: Path) -> Command:
    hira = Command(tmp_path / "work")
    hira.write(asean="ASEAN was founded on 8 August 1967 in Bangkok.")
    return hira


@pytest.fixture
def asked(place: Command) -> tuple[str, ...]:
    return ("ask", QUESTION, "--docs", str(place.folder / "docs"), "--model", "offline")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(SCRIPT) as served:
        yield served


def test_stdout_is_the_answer_and_its_sources_and_nothing_else(place: Command, asked: tuple[str, ...]) -> None:
    said = place(*asked)
    assert said.code == 0
    answer, empty, source, quote = said.out.splitlines()
    assert "8 August 1967" in answer
    assert (empty, source) == ("", "[s1] asean — asean.txt (supported)")
    assert quote.startswith("     “")
    assert "8 August 1967" in quote
    assert "reasoner calls search: " in said.err
    assert "subtask 1: " in place(*asked, "--workflow", "hira").err


async def test_offline_is_announced_in_one_line_where_nobody_chose_it(place: Command) -> None:
    docs = (place.folder / "docs",)
    for settings, said in (
        (Settings(docs=docs), "`offline` quotes your documents; --model NAME connects one"),
        (Settings(), "only computes without documents (--docs PATH)"),
        (Settings(docs=docs, model="offline"), ""),
    ):
        session = await open_session(settings, workflow=WORKFLOWS["hira"](), ports=())
        announced = announce_model(session)
        await session.aclose()
        assert said in announced
        assert bool(said) == bool(announced)


def test_the_only_model_of_an_endpoint_need_not_be_named(place: Command, endpoint: Endpoint) -> None:
    said = place("ask", QUESTION, "--docs", "docs", "--base-url", endpoint.base_url, "--workflow", "hira")
    assert said.code == 0
    assert f"using scripted at {endpoint.base_url}" in said.err


def test_the_answer_is_written_into_a_file_by_its_suffix_too(place: Command, asked: tuple[str, ...]) -> None:
    for name in ("a.json", "a.md", "a.txt"):
        said = place(*asked, "--output", name)
        written = (place.folder / name).read_text(encoding="utf-8")
        assert "8 August 1967" in said.out
        assert "8 August 1967" in written
        if name == "a.txt":
            assert written == said.out
    assert json.loads((place.folder / "a.json").read_text(encoding="utf-8"))["status"] == "answered"
    page = (place.folder / "a.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {QUESTION}\n")
    assert "## Sources" in page
    assert {path.name for path in place.folder.iterdir()} == {"docs", "home", "a.json", "a.md", "a.txt"}


@pytest.mark.parametrize(
    ("argv", "what", "fix"),
    [
        (["ask", "x", "--modle", "m"], "unrecognized arguments: --modle m", "did you mean '--model'?"),
        (["what is this?"], "invalid choice", 'hira ask "question"'),
        (["batch", "q.jsonl"], "invalid choice: 'batch'", "did you mean 'hira ask --batch'?"),
        (["export"], "invalid choice: 'export'", "did you mean 'hira runs export'?"),
        (["ask", "x", "--workflow", "hria"], "unknown workflow 'hria'", "did you mean 'hira'?"),
        (["ask", "x", "--role", "planner"], "--role 'planner' does not name a model", "planner=MODEL"),
        (["ask", "x", "--docs", "nowhere"], "no such file or folder", "exist"),
        (["ask", "x", "--docs", "https://example.org/a"], "files and folders, not addresses", "--search"),
        (["ask", "x", "--output", "a.png"], "unknown kind of file '.png'", ".docx, .pdf, .bib, .ris, .txt"),
        (["ask", "x", "--max-tokens", "many"], "invalid int value: 'many'", "write a whole number after --max-tokens"),
        (["ask", "x", "--max-time", "long"], "'long' is not a duration", "write 90, 90s, 5m or 1h"),
        (["ask", "x", "--set", "mars.max_turns=5"], "the workflow is 'auto'", "add --workflow mars"),
        (
            ["ask", "x", "--set", "hira.faithful=maybe"],
            "option 'faithful' of workflow 'hira' must be true or false, got 'maybe'",
            "correct it, or leave it out",
        ),
        (["ask", "x", "--top-p", "0.9"], "unrecognized arguments: --top-p", "write top_p = … in hira.toml"),
        (["ask", "x", "--roles", "a=m"], "unrecognized arguments: --roles", "did you mean '--role'?"),
        (["ask", "x", "--host", "::1"], "unrecognized arguments: --host", "--host is for hira serve"),
        (["ask", "x", "--base-url", "localhost:9/v1"], "does not begin with http", "write http://localhost:9/v1"),
        (["ask", "x", "--base-url", "htp:/x"], "does not begin with http", "write http://HOST:PORT/v1"),
        (["ask", "x", "--concurrency", "3"], "--concurrency works only with --batch", "--batch"),
        (["ask", "x", "--model", "hf:./nowhere"], "there is no folder './nowhere'", "config.json"),
        ([], "required: COMMAND", 'hira ask "question"'),
        (["eval", "broken.jsonl"], "not valid JSON", "correct the line"),
        (["runs", "delete", "--oldr=3"], "unrecognized arguments: --oldr=3", "did you mean '--older'?"),
        (["serve", "--api-key", ""], "--api-key is empty", "long random text"),
        (["serve", "--host", "0.0.0.0"], "no key protects it", "--api-key"),
        (["ask", "When", "was", "it?"], "unrecognized arguments", "put the question in quotes, and repeat the flag"),
        (["ask", "x", "--docs", "a", "b"], "unrecognized arguments", "put the question in quotes, and repeat the flag"),
        (["ask", "x", "--docs", ""], "a path of the documents is empty", ""),
        (["ask", "x", "--file", ""], "the path after --file is empty", ""),
        (["ask", "x", "--docs", "bad/empty.txt"], "empty.txt is empty", "name files or folders that hold text"),
        (["ask", "x", "--docs", "bad/blank.txt"], "blank.txt holds no text", "name files or folders that hold text"),
        (["ask", "x", "--docs", "bad/photo.bin"], "photo.bin is binary", "name files or folders that hold text"),
        (["ask", "x", "--docs", "bad/pipe"], "pipe' is neither a file nor a folder", ""),
        (["ask", "x", "--docs", "/dev/zero"], "'/dev/zero' is neither a file nor a folder", ""),
        (["compare", "x"], "--workflow", "name at least one"),
        (["compare", "", "--workflow", "hira,rag"], "the question is empty", "hira compare -"),
        (["compare", "x", "--workflow", "hira,rag", "--file", "none.txt"], "does not exist", ""),
        (["compare", "x", "--docs", "docs", "--workflow", "hira,rag", "--set", "hira.n=1"], "no option 'n'", ""),
        (["report", " "], "the topic is empty", 'hira report "topic"'),
        (["report", "x", "--quiet"], "a report needs something to read", ""),
        (["report", "x", "--docs", "docs", "-o", "report.png"], "unknown kind of file '.png'", ""),
        (["report", "x", "--docs", "docs", "-o", "no/report.md"], "there is no folder", ""),
        (["report", "x", "--docs", "docs", "--workflow", "hira"], "invalid choice", ""),
        (["report", "x", "--docs", "docs", "--role", "planner=x"], "unknown role 'planner'", ""),
        (["report", "x", "--docs", "docs", "--set", "mams.chunk=1"], "these limits leave nothing to do", ""),
        (["rubric", " "], "the query is empty", ""),
        (["rubric", "x", "--report", "none.md"], "--report none.md: there is no such file", ""),
        (["rubric", "x", "--rubric", "bad/rubric.json"], "does not hold a valid rubric: there are 0 items", ""),
        (["show", "last"], "no runs are recorded yet", "hira ask records them"),
        (["runs", "--limit", "0"], "--limit must be at least 1, got 0", ""),
        (["runs", "delete", "--older", "-1"], "'-1' is not an age in days", "a number above 0, such as --older 30"),
        (["runs", "delete", "--older", "0"], "'0' is not an age in days", "a number above 0, such as --older 30"),
        (["runs", "delete", "--older", "nan"], "'nan' is not an age in days", ""),
        (["ask", "x", "--max-cost", "inf"], "'inf' is not a number of 0 or more", ""),
        (["ask", "why " * 100_001], "the question has 400,003 characters, and it may have 400,000", "--file"),
    ],
)
def test_a_mistake_ends_with_2_and_at_most_three_lines(place: Command, argv: list[str], what: str, fix: str) -> None:
    (place.folder / "broken.jsonl").write_text('{"question":\n', encoding="utf-8")
    bad = place.folder / "bad"
    bad.mkdir()
    for name, content in {"empty.txt": "", "blank.txt": " \n\n", "rubric.json": '{"items": []}'}.items():
        (bad / name).write_text(content, encoding="utf-8")
    (bad / "photo.bin").write_bytes(bytes(range(256)))
    os.mkfifo(bad / "pipe")
    said = place(*argv, HIRA_MODEL="offline")
    assert (said.code, said.out) == (2, "")
    assert what in said.err
    assert fix in said.err
    assert len(said.err.splitlines()) <= 3
    assert said.err.startswith("hira: ")


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        (
            'modle = "x"\ncolour = 3\n[roles.planner]\ntemprature = 0.1\n[timeout]\nreplys = 3\n',
            "unknown keys in hira.toml: 'modle', 'colour', 'replys' in [timeout], 'temprature' in [roles.planner]",
            "write 'model' for 'modle', 'reply' for 'replys', 'temperature' for 'temprature'; remove 'colour'",
        ),
        ('max_calls = "many"\n', "max_calls must be a whole number, got 'many'", "correct it, or leave it out"),
        (
            "temperature = 7\n[roles.planner]\ntop_p = [1]\n",
            "roles.planner.top_p must be a number, got a list; temperature must be at most 2, got 7",
            "correct them, or leave them out",
        ),
        ("docs = 5\n", "docs must be text or a list, got 5", "correct it, or leave it out"),
        (
            "[workflows.mars]\nmax_turns = [1]\n",
            "workflows.mars.max_turns must be true or false, a number or text, got a list",
            "correct it, or leave it out",
        ),
        ('verify = "lexcal"\n', "verify must be 'lexical', 'model' or 'off', got 'lexcal'", "did you mean 'lexical'?"),
        ("[prices.m]\ninput = 1\n", "prices.m.output is missing", "add it"),
    ],
)
def test_all_mistakes_of_hira_toml_are_named_in_plain_words(place: Command, text: str, what: str, fix: str) -> None:
    (place.folder / "hira.toml").write_text(text, encoding="utf-8")
    said = place("ask", "x", HIRA_MODEL="offline")
    path = place.folder / "hira.toml"
    where = f"in {path}" if what.startswith("unknown") else f"set by {path}"
    assert (said.code, said.err) == (2, f"hira: {what}\n  {where}\n  {fix}\n")


def test_a_refused_key_ends_with_3_and_tells_where_the_key_came_from(place: Command) -> None:
    with Endpoint(faults=["401"]) as endpoint:
        said = place("ask", QUESTION, "--docs", "docs", *at(endpoint), "--quiet", OPENAI_API_KEY="sk-wrong")
    assert (said.code, said.out) == (3, "")
    assert len(said.err.splitlines()) <= 3
    assert endpoint.base_url in said.err
    assert "key from OPENAI_API_KEY" in said.err
    assert "sk-wrong" not in said.err
    assert "Traceback" not in said.err


INTERRUPTED_WHILE_LOADING = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "hira.cli.options":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from hira.__main__ import start
sys.exit(start())
"""


def test_ctrl_c_while_hira_loads_ends_it_without_a_traceback(place: Command) -> None:
    said = place.run("--version", program=("-c", INTERRUPTED_WHILE_LOADING))
    assert (said.code, said.out, said.err) == (130, "", "")


def test_a_missing_key_is_named_and_its_error_fits_the_table_of_compare(place: Command) -> None:
    with Endpoint(faults=["401"] * 2) as endpoint:
        said = place("ask", QUESTION, *at(endpoint), "--quiet")
        table = place("compare", QUESTION, *at(endpoint), "--workflow", "direct")
    assert said.code == table.code == 3
    assert "set OPENAI_API_KEY" in said.err
    shown = " ".join(table.out.split())
    assert "; at http://" in shown
    assert "; this endpoint needs a key" in shown


def test_an_answer_that_nobody_checked_is_named(place: Command) -> None:
    said = place("ask", QUESTION, "--docs", "docs", "--model", "offline", "--verify", "off")
    assert said.code == 0
    assert "hira: the answer was not checked (--verify off)\n" in said.err
    assert "not checked" not in place("ask", QUESTION, "--docs", "docs", "--model", "offline").err


def test_an_attached_file_below_the_folder_is_cited_by_its_relative_path(place: Command) -> None:
    said = place("ask", QUESTION, "--file", "docs/asean.txt", "--model", "offline", "--quiet")
    assert "[s1] asean — docs/asean.txt" in said.out


def test_a_model_without_a_key_ends_with_3(place: Command) -> None:
    said = place("ask", QUESTION, "--docs", "docs", "--model", "no-such-model")
    assert said.code == 3
    assert "there is no key for model 'no-such-model'" in said.err
    assert "OPENAI_API_KEY" in said.err


def test_doctor_tells_what_is_set_and_from_where_and_what_is_off(place: Command) -> None:
    (place.folder / "hira.toml").write_text('model = "offline"\ndocs = ["docs"]\n', encoding="utf-8")
    said = place("doctor", SERPER_API_KEY="sp-secret", HIRA_PARALLEL="2")
    assert said.code == 0
    assert f"model           offline  ({place.folder / 'hira.toml'})" in said.out
    assert "1 file" in said.out
    assert "parallel        2  (HIRA_PARALLEL)" in said.out
    assert "key serper      set  (SERPER_API_KEY)" in said.out
    assert "secret" not in said.out
    assert "Off, and how to turn it on" in said.out
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name for name in project["optional-dependencies"] if re.search(rf"\b{name}\b", said.out)}
    assert set(project["optional-dependencies"]) - extras <= {"files", "test", "peers", "docs", "lint", "bench"}


def test_doctor_tells_what_the_endpoint_is_and_tries_what_it_can_do_when_told_to(place: Command) -> None:
    count = "one two three four five six seven eight nine"
    with Endpoint(lambda request: "i j k" if request.continues else count) as endpoint:
        said = place("doctor", *at(endpoint), OPENAI_API_KEY="sk-given")
        assert said.code == 0
        assert "reachable       yes, hira.testing, 1 model" in said.out
        assert "key             set  (OPENAI_API_KEY)" in said.out
        assert "sk-given" not in said.out
        assert not endpoint.calls
        said = place("doctor", *at(endpoint), "--probe")
    assert said.code == 0
    for line in ("streaming       yes", "native tools    no", "stop string     stripped"):
        assert line in said.out
    assert "calls of this model are text (dialect json)" in said.out
    learned = list(place.folder.parent.rglob("endpoints.json"))
    assert ['"json"' in path.read_text(encoding="utf-8") for path in learned] == [True]
    hint = next(line for line in said.out.splitlines() if "one chain" in line)
    lines = re.findall(r'\w+ = "\w+"', hint)
    assert lines == ['continuation = "continue_final_message"', 'dialect = "tags"']
    (place.folder / "hira.toml").write_text("\n".join([*lines, 'model = "offline"']), encoding="utf-8")
    assert place("doctor").code == 0, "the settings accept the hint as it stands"


def test_a_dry_run_prints_the_maximum_and_calls_nothing(place: Command, endpoint: Endpoint) -> None:
    (place.folder / "hira.toml").write_text('[prices."scripted"]\ninput = 1.0\noutput = 4.0\n', encoding="utf-8")
    argv = ("ask", QUESTION, "--docs", "docs", *at(endpoint), "--dry-run")
    said = place(*argv, "--max-subtasks", "2")
    assert said.code == 0
    assert all(role in said.out for role in ("planner", "coordinator", "deep_search", "verifier", "a run"))
    assert "No budget is set" in said.out
    assert "unknown" not in said.out
    bounded = json.loads(place(*argv, "--max-tokens", "5000", "--max-calls", "7", "--json").out)
    assert bounded == {"calls": 7, "tokens": 5000, "cost": 0.02}
    (place.folder / "hira.toml").unlink()
    assert 'set [prices."MODEL"] in hira.toml' in place(*argv).out
    assert not endpoint.requests
    assert said.out.startswith("Most questions take 1 to 7 calls and 1,300 to 7,800 tokens (medians of 'auto' ")


def test_the_models_that_hira_itself_runs_cost_nothing(place: Command) -> None:
    key, value = (struct.pack("<Q", len(text)) + text for text in (b"tokenizer.chat_template", b"{{ messages }}"))
    header = struct.pack("<4sIQQ", b"GGUF", 3, 0, 1) + key + struct.pack("<I", 8) + value  # a text, and no tensors
    (place.folder / "model.gguf").write_bytes(header)
    for model in (f"gguf:{place.folder}/model.gguf", "hf:some/model"):
        said = place("ask", QUESTION, "--docs", "docs", "--model", model, "--dry-run", "--json")
        assert not said.err
        assert (said.code, json.loads(said.out)["cost"]) == (0, 0.0)


def test_no_password_of_a_url_is_shown(place: Command) -> None:
    url = "http://me:hidden-one@127.0.0.1:9/v1"
    said = place("doctor", "--model", f"m, n@{url}", "--base-url", url, SEARXNG_BASE_URL=url)
    failed = place("ask", "--base-url", url, "Who?")
    assert "http://127.0.0.1:9/v1" in said.out
    for one in (said, failed):
        assert "hidden-one" not in one.out + one.err


@pytest.mark.parametrize("repeated", [1, 1_000])
def test_a_document_in_an_older_encoding_is_found_and_named_once(place: Command, repeated: int) -> None:
    text = "Билет в музей стоит пять рублей. Мельница на реке построена мастером.\n\n"
    (place.folder / "docs" / "mill.txt").write_bytes((text * repeated).encode("cp1251"))
    asking = ("ask", "Сколько стоит билет в музей?", "--docs", "docs", "--model", "offline", "--quiet")
    first = place(*asking)
    assert "mill.txt is not UTF-8; read as Windows-1251: save it as UTF-8 if its text looks wrong" in first.err
    assert "not UTF-8" not in place(*asking).err
    hits = place("ask", "Билет стоит пять рублей?", *asking[2:], "--json").out
    assert "Билет в музей стоит пять рублей" in hits


def test_an_attached_file_in_an_older_encoding_is_named_once(place: Command) -> None:
    (place.folder / "mill.txt").write_bytes("Билет в музей стоит пять рублей. Мельница закрыта.\n".encode("cp1251"))
    said = place("ask", "Билет стоит пять рублей?", "--file", "mill.txt", "--model", "offline", "--quiet")
    remark = "mill.txt is not UTF-8; read as Windows-1251: save it as UTF-8 if its text looks wrong"
    assert said.err.count(remark) == 1


def test_a_file_that_was_not_recognised_is_read_again_once_the_package_is_there(
    place: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.folder / "docs" / "mill.txt").write_bytes(
        "Билет в музей стоит пять рублей, мельница закрыта.".encode("cp1251")
    )
    asking = ("ask", "Билет стоит пять рублей?", "--docs", "docs", "--model", "offline", "--quiet")
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "charset_normalizer", None)
        assert "to have its encoding recognised: pip install 'hira[files]'" in place(*asking).err
    assert "mill.txt is not UTF-8; read as Windows-1251" in place(*asking).err


def test_an_answer_that_a_limit_ended_claims_no_search_that_did_not_happen(
    place: Command, asked: tuple[str, ...]
) -> None:
    for calls in ("1", "2"):
        said = place(*asked, "--workflow", "hira", "--max-calls", calls, "--quiet")
        assert said.code == 5
        assert said.out.startswith("I could not answer this question, because the run ended before any search")
    assert "do not hold" in place("ask", "Who painted ASEAN?", *asked[2:], "--quiet").out


def test_a_pipe_is_no_file_to_attach_and_a_duration_has_a_unit(place: Command, asked: tuple[str, ...]) -> None:
    os.mkfifo(place.folder / "pipe")
    assert "pipe' is not a regular file" in place(*asked, "--file", "pipe").err
    said = place(*asked, HIRA_MAX_TIME="abc")
    assert said.err.splitlines()[0] == "hira: max_time: 'abc' is not a duration; write 90, 90s, 5m or 1h"


def test_a_stream_that_cannot_write_a_character_gets_plain_ones() -> None:
    ascii_stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    assert encodable("a → b — c… 東", ascii_stream) == "a -> b - c... ?"
    assert encodable("a → b", io.StringIO()) == "a → b"
    assert encodable("Grünau → 東", io.TextIOWrapper(io.BytesIO(), encoding="latin-1")) == "Grünau -> ?"
    assert encodable("Grün…", io.TextIOWrapper(io.BytesIO(), encoding="cp1252")) == "Grün…"


def test_a_stream_of_unknown_encoding_gets_ascii() -> None:
    class Terminal(io.StringIO):
        encoding = "unknown"

    assert encodable("a — b → 東", Terminal()) == "a - b -> ?"


@pytest.mark.heavy(seconds=3)
def test_a_question_that_repeats_itself_for_300_000_characters_is_answered_once(place: Command) -> None:
    asking = ("ask", "-", "--docs", "docs", "--model", "offline", "--journal", "off", "--quiet")
    said = place(*asking, stdin=f"{QUESTION} " * 12_500)
    assert said.code == 0, said.err
    assert said.out.count("8 August 1967") == 2, "the answer and the quotation of its source"


@pytest.mark.heavy(seconds=2)
def test_the_real_command_writes_utf8_whatever_the_locale_says(place: Command, asked: tuple[str, ...]) -> None:
    said = place.run(*asked, environ={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    assert said.code == 0
    assert "[s1] asean — asean.txt (supported)" in said.out


@pytest.mark.heavy(seconds=2)
def test_an_answer_that_cannot_be_printed_is_an_error_and_still_written_to_its_file(
    place: Command, asked: tuple[str, ...]
) -> None:
    said = place.run(*asked, "--quiet", "-o", "answer.md", stdout=None, preexec_fn=lambda: os.close(1))
    assert said.code == 1
    assert said.err == "hira: standard output cannot be written: it is closed; redirect it, such as > answer.txt\n"
    assert (place.folder / "answer.md").stat().st_size


def test_a_reader_that_goes_away_is_no_error(place: Command, asked: tuple[str, ...]) -> None:
    with place.start(*asked) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        err = process.stderr.read()
        process.wait(60)
    assert process.returncode == 0
    assert "BrokenPipe" not in err


NO_OTHER_SOCKET = """
import sys
from hira.cli import main
opened = []
def heard(event, args):
    if event == "socket.connect":
        opened.append(args[1])
    elif event in ("socket.getaddrinfo", "socket.sendto"):
        opened.append(args)
sys.addaudithook(heard)
code = main(sys.argv[1:])
print(code, {str(one) for one in opened}, file=sys.stderr)
"""


@pytest.mark.heavy
def test_with_documents_no_socket_is_opened_but_the_models(place: Command, endpoint: Endpoint) -> None:
    environ = {"SERPER_API_KEY": "set", "SEARXNG_BASE_URL": "http://127.0.0.1:9/"}
    argv = ("ask", QUESTION, "--docs", "docs", *at(endpoint), "--workflow", "hira", "--quiet")
    told = place.run(*argv, program=("-c", NO_OTHER_SOCKET), environ=environ)
    port = int(endpoint.base_url.split(":")[2].split("/")[0])
    assert told.err.splitlines()[-1] == f"0 {{\"('127.0.0.1', {port})\"}}"


def test_help_and_version_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("hira 0.")
    assert main(["ask", "--help"]) == 0
    text = capsys.readouterr().out
    for flag in ("--workflow", "--role", "--docs", "--file", "--search", "--without", "--max-cost", "--events"):
        assert flag in text
    assert main(["eval", "--help"]) == 0
    text = capsys.readouterr().out
    for flag in ("--workflow", "--model", "--docs", "--sample", "--metric", "--judge", "--output", "--dry-run"):
        assert f"{flag} " in text or f"{flag}\n" in text
    assert "hira eval run --help lists all" in text
