"""What a program may get wrong when it makes a `Hira` or asks it; each mistake is told with the argument's name."""

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hira import Hira, Settings, tool
from hira.agents.expert import Account, Task
from hira.agents.run_context import RunContext
from hira.core.errors import UsageError
from hira.runtime.objects import TAKEN
from hira.testing.script import make_context
from hira.tools import Toolbox

OFFLINE = Settings(model="offline")


@tool
def tide(harbour: str) -> str:
    """When the tide is high."""
    return f"{harbour}: noon"


@tool
def search(query: str) -> str:
    """One's own search."""
    return query


@tool
def silent(harbour: str) -> str:
    return harbour


class Harbour:
    name: Any = "harbour"
    description: Any = "knows the harbours"
    ability: Any = "timetables"
    cost: Any = 1
    needs: Any = frozenset[str]()

    def __init__(self, **changed: Any) -> None:
        vars(self).update(changed)

    async def work(self, task: Task, context: RunContext) -> Account:
        return Account(task.text, context.rollout.run)


class Echo:
    def __init__(self, name: Any = "echo") -> None:
        self.name = name

    async def run(self, question: str, context: RunContext) -> str:
        return f"{question} {context.rollout.run}"


class Narrow:
    """A policy and a workflow whose methods lack an argument."""

    name = model = "narrow"

    async def complete(self, request: Any) -> Any:
        return request

    async def run(self, question: str) -> str:
        return question


class Blocking:
    name = "blocking"

    def run(self, question: str, context: RunContext) -> str:
        return f"{question} {context.rollout.run}"


@pytest.mark.parametrize(
    ("given", "what", "fix"),
    [
        ({"tools": [print]}, "`tools` must contain only tools", "@tool"),
        ({"tools": tide}, "`tools` must be a list", "tools=[…]"),
        ({"tools": [tide, tide]}, "tools contain the name 'tide' twice", "rename"),
        ({"tools": [silent]}, "tool 'silent' has no description", "docstring"),
        ({"tools": [replace(tide, name="a b")]}, "the tool name 'a b' is not one that endpoints accept", "letters"),
        ({"tools": [replace(tide, name="größe")]}, "the tool name 'größe' is not one that endpoints accept", "a to z"),
        ({"experts": [Harbour(name="a b")]}, "the expert name 'a b' is not one that endpoints accept", "a to z"),
        ({"tools": [replace(tide, seconds="x")]}, "`seconds` of the tool 'tide' must be a number", "@tool(seconds="),
        ({"tools": [replace(tide, shown=-1)]}, "`shown` of the tool 'tide' must be a number of at least 0", "@tool("),
        ({"tools": [search]}, "has the name of a built-in tool", "@tool(name="),
        ({"experts": [object()]}, "the expert 'object' has no name", "docs/experts.md"),
        ({"experts": [Harbour]}, "experts: Harbour is a class", "Harbour()"),
        ({"experts": [Harbour(ability=None)]}, "the expert 'harbour' has no ability", "docs/experts.md"),
        ({"experts": [Harbour(work=len)]}, "the expert 'harbour' has no async method work", "docs/experts.md"),
        ({"experts": [Harbour(needs="search")]}, "`needs` of the expert 'harbour' must be a collection", "frozenset"),
        ({"experts": [Harbour(name="code")]}, "contain the name 'code' twice", "rename"),
        ({"workflow": Echo(name=None)}, "workflow has no name", "docs/workflows.md"),
        ({"workflow": Echo}, "workflow: Echo is a class", "Echo()"),
        ({"workflow": Blocking()}, "workflow 'blocking' has no async method run", "docs/workflows.md"),
        ({"docs": 3}, "`docs` must be a path, got 3", "docs="),
        ({"docs": 0}, "`docs` must be a path, got 0", "docs="),
        ({"docs": False}, "`docs` must be a path, got False", "docs="),
        ({"docs": {}}, "`docs` must be a path, got {}", "docs="),
        ({"docs": ["a", 3]}, "`docs` must contain only paths, got 3", "pathlib.Path"),
        ({"otel": "nonsense"}, "`otel` must be the address of a collector, got 'nonsense'", "otel="),
        ({"model": 3}, "`model` must be a string, got 3", "model="),
        ({"roles": {"planner": 3}}, "`roles` must map roles to models", "roles="),
        ({"policies": {"*": object()}}, "policies['*'] is not a policy", "docs/policies.md"),
        (
            {"policies": {"*": Narrow()}},
            "policies['*']: complete(request: Any) -> Any must take two",
            "(request, watch)",
        ),
        ({"workflow": Narrow()}, "workflow 'narrow': run(question: str) -> str must take two", "(question, context)"),
        ({"experts": [Harbour(work=Narrow().run)]}, "the expert 'harbour': work(question", "(task, context)"),
        ({"experts": [Harbour(work=partial(Narrow().run))]}, "the expert 'harbour': work(question", "(task, context)"),
        ({"settings": {"model": "m"}}, "`settings` must be a Settings", "Settings(…)"),
    ],
)
def test_an_argument_that_is_not_what_it_should_be_is_told_by_its_name(
    given: dict[str, Any], what: str, fix: str
) -> None:
    with pytest.raises(UsageError) as caught:
        Hira(**{"settings": OFFLINE, **given})
    assert what in caught.value.what
    assert fix in caught.value.fix


def test_what_is_given_as_it_should_be_is_taken() -> None:
    Hira(tools=[tide], experts=[Harbour()], workflow=Echo(), docs=("a", "b"), settings=OFFLINE).close()


@pytest.mark.parametrize("question", ["", "  \n", None, 3])
def test_a_question_that_says_nothing_is_not_asked(question: Any) -> None:
    with Hira(settings=OFFLINE) as hira:
        with pytest.raises(UsageError, match=r"the question (is|must)"):
            hira.ask_sync(question)
        with pytest.raises(UsageError, match=r"the question (is|must)"):
            hira.stream(question)


def test_no_files_may_be_written_as_none(tmp_path: Path) -> None:
    (tmp_path / "pier.md").write_text("The pier of Varn was built in 1902.\n", encoding="utf-8")
    with Hira("offline", docs=tmp_path, journal=False) as hira:
        answer = hira.ask_sync("When was the pier of Varn built?", files=None)
        assert hira.chat().ask_sync("When was the pier of Varn built?", files=None).text == answer.text
    assert "1902" in answer.text


@pytest.mark.parametrize("files", [3, 0, False, {}, b""])
def test_a_file_that_is_no_path_is_told(files: Any) -> None:
    wrong = re.escape(f"`files` must be a path, got {files!r}")
    with Hira(settings=OFFLINE) as hira:
        with pytest.raises(UsageError, match=wrong):
            hira.ask_sync("What is in it?", files=files)
        with pytest.raises(UsageError, match=wrong):
            hira.chat().ask_sync("What is in it?", files=files)


def test_a_wrong_value_names_the_argument_and_no_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HIRA_MODEL", raising=False)
    with pytest.raises(UsageError, match="unknown workflow 'hira2'"), Hira("offline", workflow="hira2") as hira:
        hira.ask_sync("Anything?")
    with pytest.raises(UsageError) as caught, Hira("offline", search="nowhere") as hira:
        hira.ask_sync("Anything?")
    assert caught.value.where == "named by Hira(search=…)"


def test_an_answer_prints_short() -> None:
    with Hira(settings=OFFLINE) as hira:
        told = repr(hira.ask_sync("What is 6 * 7?"))
    assert told.startswith("Answer(text=")
    assert "rollout" not in told
    assert len(told) < 1000


def test_the_names_of_the_tools_that_experts_are_given_are_taken() -> None:
    tools = make_context([]).tools
    assert isinstance(tools, Toolbox)
    assert set(Toolbox.__dataclass_fields__) - {"extra", "scoped", "media", "visible", "unread"} <= TAKEN
