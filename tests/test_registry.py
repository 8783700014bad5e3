"""The settings choose a workflow and its options; what does not fit is said."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from hira.cli.ask import ask
from hira.cli.options import build_parser, read_options
from hira.core.errors import UsageError
from hira.runtime.registry import check_roles, make_workflow
from hira.runtime.settings import Settings, load
from hira.runtime.toolset import open_index
from hira.workflows import WORKFLOWS, HiRA
from hira.workflows.bound import Sizes


def from_command_line(tmp_path: Path, *words: str) -> Settings:
    args = build_parser("0").parse_args(["ask", "q", *words])
    return load(read_options(ask, args).settings, {}, tmp_path, tmp_path)


def test_an_option_of_the_command_line_has_the_type_of_its_field(tmp_path: Path) -> None:
    workflow: Any = make_workflow(from_command_line(tmp_path, "--set", "hira.describe_experts=false"))
    assert workflow.describe_experts is False


def test_a_workflow_keeps_its_own_limits_where_none_is_set(tmp_path: Path) -> None:
    for name, make in WORKFLOWS.items():
        plain: Any = make_workflow(from_command_line(tmp_path, "--workflow", name))
        assert plain == make()


def test_options_of_files_and_of_the_command_line_are_merged(tmp_path: Path) -> None:
    (tmp_path / "hira.toml").write_text("[workflows.hira]\ndescribe_experts = false\nparallel = 2\n")
    workflow: Any = make_workflow(from_command_line(tmp_path, "--set", "hira.parallel=3"))
    assert (workflow.describe_experts, workflow.parallel) == (False, 3)


def test_auto_has_the_options_of_hira_and_its_own_come_first(tmp_path: Path) -> None:
    (tmp_path / "hira.toml").write_text(
        "[workflows.auto]\nparallel = 3\n[workflows.hira]\nfaithful = true\nparallel = 2\n"
    )
    workflow: Any = make_workflow(from_command_line(tmp_path))
    assert (workflow.name, workflow.faithful, workflow.parallel) == ("auto", True, 3)
    assert make_workflow(from_command_line(tmp_path, "--workflow", "hira")).parallel == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--set", "hira.turms=3"], "has no option 'turms'"),
        (["--set", "hira.parallel=many"], "option 'parallel' of workflow 'hira' must be a whole number, got 'many'\n"),
        (["--set", "parallel=3"], "does not name an option"),
        (["--set", "hira.max_subtasks=-1"], "option 'max_subtasks' of workflow 'hira' must be at least 1, got -1"),
        (["--workflow", "mars", "--set", "mars.queries=0"], "must be at least 1, got 0"),
        (["--workflow", "marsrl", "--set", "marsrl.rounds=0"], "must be at least 1, got 0"),
        (["--workflow", "rag", "--set", "rag.pages=-1"], "must be at least 0, got -1"),
        (["--workflow", "hirra"], r"unknown workflow 'hirra'(.|\n)*did you mean 'hira'"),
    ],
)
def test_an_option_that_is_wrong_is_named(tmp_path: Path, words: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make_workflow(from_command_line(tmp_path, *words))


def test_a_workflow_may_read_no_page_behind_its_hits(tmp_path: Path) -> None:
    workflow: Any = make_workflow(from_command_line(tmp_path, "--workflow", "rag", "--set", "rag.pages=0"))
    assert workflow.pages == 0


def test_a_role_of_another_workflow_may_stand_in_a_file_but_not_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "hira.toml").write_text('[roles.coordinator]\nmodel = "m"\n')
    check_roles(from_command_line(tmp_path), HiRA(), {})
    with pytest.raises(UsageError, match=r"unknown role 'coordinater'(.|\n)*did you mean 'coordinator'"):
        check_roles(from_command_line(tmp_path, "--role", "coordinater=m"), HiRA(), {})


@pytest.mark.parametrize(
    ("text", "words", "names_file"),
    [
        ("[workflows.rag]\nfoo = 1", [], True),
        ("[workflows.rag]\npages = -1", [], True),
        ("[workflows.rga]\npages = 1", [], True),
        ("[workflows.rag]\npages = 1", ["--workflow", "rag", "--set", "rag.pages=-1"], False),
        ("[workflows.rag]\npages = 1", ["--workflow", "rag", "--set", "rag.foo=1"], False),
        ("[roles.planer]\ntop_p = 0.3", [], True),
        ("[roles.planer]\ntop_p = 0.3", ["--role", "planer=m"], False),
        ("[roles.planner]\ntop_p = 0.3", ["--role", "planer=m"], False),
    ],
)
def test_a_wrong_name_in_a_file_is_located_there_and_one_of_a_flag_is_not(
    tmp_path: Path, text: str, words: list[str], *, names_file: bool
) -> None:
    (tmp_path / "hira.toml").write_text(text)
    settings = from_command_line(tmp_path, *words)
    with pytest.raises(UsageError) as raised:
        check_roles(settings, make_workflow(settings), {})
    table = text.partition("]")[0].removeprefix("[")
    assert (f"{tmp_path / 'hira.toml'}, table [{table}]" in raised.value.where) is names_file


def test_entries_that_a_program_replaces_are_not_located_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "hira.toml").write_text("[workflows.rag]\npages = 1\nfoo = 1\n[roles.planer]\ntop_p = 0.3\n")
    settings = from_command_line(tmp_path)
    changed = settings.with_values(
        {"workflows": {"rag": {"pages": 2, "foo": 1}}, "roles": {"planer": {"model": "m"}}}, "a program"
    )
    names = ("workflows.rag.pages", "workflows.rag.foo", "roles.planer")
    file = str(tmp_path / "hira.toml")
    assert [settings.origin(name) for name in names] == [file, file, file]
    assert [changed.origin(name) for name in names] == ["a program", file, "a program"]


@pytest.mark.parametrize(
    ("words", "environ", "where"),
    [
        ([], {}, "in FOLDER/hira.toml"),
        ([], {"HIRA_DOCS": "nowhere"}, "set by HIRA_DOCS"),
        (["--docs", "nowhere"], {"HIRA_DOCS": "nowhere"}, ""),
    ],
)
async def test_missing_documents_are_located_where_they_are_named(
    tmp_path: Path, words: list[str], environ: dict[str, str], where: str
) -> None:
    (tmp_path / "hira.toml").write_text('docs = ["nowhere"]')
    args = build_parser("0").parse_args(["ask", "q", *words])
    async with AsyncExitStack() as stack:
        with pytest.raises(UsageError, match="no such file or folder") as raised:
            await open_index(load(read_options(ask, args).settings, environ, tmp_path, tmp_path), stack)
    assert raised.value.where == where.replace("FOLDER", str(tmp_path))


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_workflow_says_its_roles_and_the_most_that_it_can_take(name: str) -> None:
    workflow = WORKFLOWS[name]()
    assert workflow.name == name
    bounds = workflow.bound(Sizes())
    assert bounds
    assert set(bounds) <= workflow.roles
    assert all(usage.calls > 0 and usage.tokens > 0 for usage in bounds.values())
