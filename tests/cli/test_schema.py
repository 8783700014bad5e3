"""`hira ask --schema FILE`: the answer as JSON that fits a schema."""

import json
from pathlib import Path

import pytest
from command import Command

from hira.testing import Endpoint

ANSWER = r"\boxed{The tower of Alta is 31 metres high [s1].}"
SCHEMA = {"type": "object", "properties": {"height": {"type": "integer"}}, "required": ["height"]}


@pytest.fixture
def hira(tmp_path: Path) -> Command:
    (tmp_path / "alta.txt").write_text("The tower of Alta is 31 metres high.\n", encoding="utf-8")
    (tmp_path / "tower.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    return Command(tmp_path, {})


def ask(hira: Command, replies: list[str], *flags: str) -> tuple[int, str, str]:
    with Endpoint(replies) as endpoint:
        said = hira(
            "ask", "How high is the tower?", "--docs", "alta.txt", "--workflow", "rag", "--verify", "lexical",
            "-m", "m", "--base-url", endpoint.base_url, *flags,
        )  # fmt: skip
    return said.code, said.out, said.err


def test_stdout_is_the_json(hira: Command) -> None:
    code, out, _ = ask(hira, [ANSWER, '{"height": 31}'], "--schema", "tower.json")
    assert (code, json.loads(out)) == (0, {"height": 31})


def test_without_a_value_the_text_goes_to_stderr_and_the_code_is_4(hira: Command) -> None:
    code, out, err = ask(hira, [ANSWER, "31", "31 metres"], "--schema", "tower.json")
    assert (code, out) == (4, "")
    assert "The tower of Alta is 31 metres high [s1]." in err
    assert "use a stronger model" in err


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ("missing.json", "--schema missing.json cannot be read: "),
        ("alta.txt", "--schema alta.txt: Expecting value"),
        ("typo.json", "'objec' is not one of ['array', 'boolean', "),
    ],
)
def test_a_file_without_a_schema_is_refused_before_any_call(hira: Command, schema: str, says: str) -> None:
    (hira.folder / "typo.json").write_text('{"type": "objec"}', encoding="utf-8")
    code, out, err = ask(hira, [], "--schema", schema)
    assert (code, out, err.count(schema)) == (2, "", 1)
    assert says in err


def test_without_a_model_the_one_hint_is_to_connect_one(hira: Command) -> None:
    said = hira("ask", "How high is the tower?", "--docs", "alta.txt", "-m", "offline", "--schema", "tower.json")
    assert said.code == 4
    assert said.err.endswith("name a model\n  --model NAME connects one (hira doctor)\n")
