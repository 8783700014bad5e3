"""Structured output: an answer as a value of a type of the caller's own."""

import json
import pickle
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter, field_validator

from hira import Answer, Hira
from hira.core.errors import BadReply, UsageError
from hira.journal import Journal
from hira.runtime.replay import replay
from hira.runtime.settings import Settings
from hira.runtime.trace import read
from hira.testing import ScriptedPolicy

ANSWER = r"\boxed{The Nordmole was built by Asta Brink in 1931 and cost 1,250.5 crowns [s1].}"
VALUE = {"builder": "Asta Brink", "year": 1931, "cost": 1250.5}


class Mole(BaseModel):
    builder: str = Field(description="who built it")
    year: int
    cost: float | None = None


@dataclass
class Built:
    builder: str
    year: int


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "mole.md").write_text(
        "# Nordmole\n\nThe Nordmole was built by Asta Brink in 1931 and cost 1,250.5 crowns.\n"
    )
    return folder


def asking(docs: Path, *replies: str, **more: Any) -> tuple[Hira, ScriptedPolicy]:
    policy = ScriptedPolicy([ANSWER, *replies])
    settings = Settings(docs=(str(docs),), workflow="rag", verify="lexical", journal=None, **more)
    return Hira(settings=settings, policies={"*": policy}), policy


async def test_an_answer_is_given_as_a_pydantic_model_with_the_sources_of_its_fields(docs: Path) -> None:
    hira, policy = asking(docs, json.dumps(VALUE))
    async with hira:
        answer: Answer[Mole] = await hira.ask("Who built the Nordmole?", output_type=Mole)
    assert answer.output == Mole(builder="Asta Brink", year=1931, cost=1250.5)
    assert answer.output_sources == {"builder": ("s1",), "year": ("s1",), "cost": ("s1",)}
    assert answer.output_places == dict.fromkeys(("builder", "year", "cost"), ("mole.md, line 3",))
    assert answer.rollout.question == "Who built the Nordmole?"
    first, last = policy.requests[0], policy.requests[-1]
    assert "builder: who built it" in first.messages[-1].text  # so that the field is looked for
    assert last.schema
    assert last.schema["required"] == ["builder", "year"]


async def test_a_value_that_does_not_fit_is_asked_for_once_more(docs: Path) -> None:
    hira, policy = asking(docs, '{"builder": "Asta Brink"}', json.dumps(VALUE))
    async with hira:
        answer = await hira.ask("Who built the Nordmole?", output_type=Mole)
    assert answer.output.year == 1931
    assert "year: field required" in policy.requests[-1].messages[-1].text


async def test_a_value_that_no_supported_claim_has_is_named(docs: Path, caplog: pytest.LogCaptureFixture) -> None:
    hira, _ = asking(docs, json.dumps({"builder": "Asta Brink", "year": 2031}))
    async with hira:
        answer = await hira.ask("Who built the Nordmole?", output_type=Mole)
    assert answer.output_sources["year"] == ()
    assert "no supported claim contains the value of year in the output: check it" in caplog.text


async def test_a_bare_value_that_no_supported_claim_has_is_the_output(docs: Path) -> None:
    hira, _ = asking(docs, '{"value": 2031}')
    async with hira:
        answer = await hira.ask("When was the Nordmole built?", output_type=int)
    assert answer.output_sources == {"value": ()}
    assert "no supported claim contains the value of the output: check it" in answer.notices


@pytest.mark.parametrize(
    ("begins", "shape", "value", "sources"),
    [
        ("", bool, "false", ()),
        ("", Literal["yes", "no"], '"no"', ()),
        ("", Literal["A", "B"], '"A"', ()),
        ("", Literal["The", "A"], '"The"', ("s1",)),
        ("Yes, ", bool, "false", ()),
        ("Yes, ", bool, "true", ("s1",)),
        ("Yes. ", Literal["Yes", "No"], '"Yes"', ("s1",)),
    ],
)
async def test_a_yes_or_no_is_in_a_claim_that_begins_with_it_and_is_named_otherwise(
    docs: Path, begins: str, shape: Any, value: str, sources: tuple[str, ...]
) -> None:
    script = ScriptedPolicy([f"{begins}The Nordmole was built in 1931 [s1].", f'{{"value": {value}}}'])
    settings = Settings(docs=(str(docs),), workflow="rag", verify="lexical", journal=None)
    async with Hira(settings=settings, policies={"*": script}) as hira:
        answer = await hira.ask("Was the Nordmole built in 1931?", output_type=shape)
    assert answer.status == "answered"
    assert answer.output_sources == {"value": sources}
    assert bool(answer.notices) is not bool(sources)


async def test_the_fields_of_an_unverified_answer_are_named(docs: Path) -> None:
    script = ScriptedPolicy(["The Nordmole was built by Edda Lund [s1].", '{"builder": "Edda Lund", "year": 2031}'])
    settings = Settings(docs=(str(docs),), workflow="rag", verify="lexical", journal=None)
    async with Hira(settings=settings, policies={"*": script}) as hira:
        answer = await hira.ask("Who built the Nordmole?", output_type=Built)
    assert answer.status == "unverified"
    assert "no supported claim contains the value of builder, year in the output: check it" in answer.notices


async def test_a_value_that_only_the_passage_of_a_claim_has_gets_no_source(docs: Path) -> None:
    (docs / "mole.md").write_text("The Nordmole was built by Asta Brink and has 38 lamps.\n")
    policy = ScriptedPolicy(
        [r"\boxed{The Nordmole was built by Asta Brink [s1].}", '{"builder": "Asta Brink", "year": 38}']
    )
    settings = Settings(docs=(str(docs),), workflow="rag", verify="lexical", journal=None)
    async with Hira(settings=settings, policies={"*": policy}) as hira:
        answer = await hira.ask("Who built the Nordmole?", output_type=Built)
    assert answer.output_sources == {"builder": ("s1",), "year": ()}


async def test_without_a_value_the_answer_is_kept_and_reading_the_output_says_why(docs: Path) -> None:
    hira, _ = asking(docs, "no JSON", "still none")
    async with hira:
        answer = await hira.ask("Who built the Nordmole?", output_type=Mole)
    assert answer.status == "answered"
    assert "Asta Brink" in answer.text
    with pytest.raises(BadReply, match="holds no JSON object"):
        _ = answer.output


class Unit(BaseModel):
    """Its validator raises an error that pydantic does not turn into its own."""

    unit: str

    @field_validator("unit")
    @classmethod
    def check(cls, unit: str) -> str:
        return {"m": "metre"}[unit]


async def test_a_validator_may_raise_any_error(docs: Path) -> None:
    hira, policy = asking(docs, '{"unit": "crowns"}', '{"unit": "m"}')
    async with hira:
        answer = await hira.ask("Who built the Nordmole?", output_type=Unit)
        assert answer.output.unit == "metre"
        assert "KeyError: 'crowns'" in policy.requests[-1].messages[-1].text
    hira, _ = asking(docs, '{"unit": "x"}', '{"unit": "y"}')
    async with hira:
        answer = await hira.ask("Who built the Nordmole?", output_type=Unit)
    assert "Asta Brink" in answer.text
    with pytest.raises(BadReply, match="KeyError: 'y'"):
        _ = answer.output


@pytest.mark.parametrize(
    ("shape", "reply", "output"),
    [
        (Built, '{"builder": "Asta Brink", "year": 1931}', Built("Asta Brink", 1931)),
        (list[str], '{"value": ["Asta Brink"]}', ["Asta Brink"]),
        (int, '{"value": 1931}', 1931),
        ({"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]}, '{"year": 1931}', {"year": 1931}),
        ({"type": "array", "items": {"type": "integer"}}, '{"value": [1931]}', [1931]),
        (TypeAdapter(list[Mole]).json_schema(), json.dumps({"value": [VALUE]}), [VALUE]),
        ({"properties": {"builder": True}}, json.dumps(VALUE), VALUE),
    ],
    ids=["dataclass", "list", "number", "schema", "schema of a list", "schema with definitions", "schema of anything"],
)  # fmt: skip
async def test_any_type_or_schema_will_do(docs: Path, shape: Any, reply: str, output: Any) -> None:
    hira, _ = asking(docs, reply)
    async with hira:
        answer = await hira.ask("When was the Nordmole built?", output_type=shape)
    assert answer.output == output
    assert json.dumps(answer.json()["output"]) in (reply, json.dumps(json.loads(reply).get("value")))


async def test_a_json_schema_is_enforced_by_hira_too(docs: Path) -> None:
    hira, policy = asking(docs, '{"year": "1931"}', '{"year": 1931}')
    schema = {"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]}
    async with hira:
        answer = await hira.ask("When was the Nordmole built?", output_type=schema)
    assert answer.output == {"year": 1931}
    assert "'1931' is not of type 'integer'" in policy.requests[-1].messages[-1].text


@pytest.mark.parametrize("shape", [{"type": "objekt"}, lambda: None, 42])
def test_what_is_no_type_is_refused_before_anything_is_asked(docs: Path, shape: Any) -> None:
    hira, policy = asking(docs)
    with pytest.raises(UsageError):
        hira.ask_sync("When was the Nordmole built?", output_type=shape)
    assert not policy.requests
    hira.close()


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}},
        {"$schema": 5},
        {"properties": {"a": {"description": "x" * 70_000}}},
    ],
    ids=["refers elsewhere", "of no draft", "too long"],
)
async def test_a_schema_that_nobody_should_follow_is_refused(docs: Path, schema: Any) -> None:
    hira, policy = asking(docs)
    async with hira:
        with pytest.raises(UsageError):
            await hira.ask("When was the Nordmole built?", output_type=schema)
    assert not policy.requests


async def test_patterns_are_shown_and_not_run(docs: Path) -> None:
    hira, policy = asking(docs, json.dumps({"name": "a" * 40 + "!"}))
    schema = {"type": "object", "properties": {"name": {"type": "string", "pattern": "^(a+)+$"}}}
    async with hira:
        answer = await hira.ask("Who built the Nordmole?", output_type=schema)
    assert answer.output["name"].endswith("!")
    assert "(a+)+" in policy.requests[-1].messages[-1].text


DOUBLED = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(18)} | {"d18": True}


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ({"type": "object", "allOf": [{"$ref": "#"}]}, "cannot be followed"),
        ({"type": "object", "allOf": [{"$ref": "#/$defs/d0"}], "$defs": DOUBLED}, "more than 100,000 steps"),
    ],
    ids=["without end", "references that multiply"],
)
async def test_a_schema_that_cannot_be_followed_costs_no_answer(docs: Path, schema: Any, fault: str) -> None:
    hira, _ = asking(docs, "{}", "{}")
    async with hira:
        answer = await hira.ask("Who built the Nordmole?", output_type=schema)
    assert answer.status == "answered"
    with pytest.raises(BadReply, match=fault):
        _ = answer.output


async def test_an_answer_with_a_list_is_pickled_and_read_back_from_the_journal(docs: Path, tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    settings = Settings(docs=(str(docs),), workflow="rag", verify="lexical", journal=path, instructions="Be brief.")
    script = ScriptedPolicy([ANSWER, '{"value": ["Asta Brink"]}'])
    async with Hira(settings=settings, policies={"*": script}) as hira:
        answer = await hira.ask("Who built the Nordmole?", output_type=list[str])
    assert pickle.loads(pickle.dumps(answer)).output == ["Asta Brink"]  # noqa: S301 - made a line above
    with closing(Journal(path)) as journal:
        again = await replay(journal, answer.rollout.run)
        shown = read(journal, answer.rollout.run).answer
    assert again.same
    assert again.answer.output == shown.output == ["Asta Brink"]
    assert again.answer.output_sources == shown.output_sources == answer.output_sources
