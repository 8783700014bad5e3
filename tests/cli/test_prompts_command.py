"""`hira prompts`: the roles, and what each is sent, to the letter."""

import io
from pathlib import Path

import pytest

from hira.cli import OK, USAGE, main
from hira.cli.shell import Shell
from hira.workflows import WORKFLOWS

ROLES = sorted({(workflow, role) for workflow, make in WORKFLOWS.items() for role in make().roles})


def run(folder: Path, *arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(["prompts", *arguments], Shell(io.StringIO(), out, err, {}, folder, folder))
    return code, out.getvalue(), err.getvalue()


def test_the_roles_of_each_workflow_are_listed(tmp_path: Path) -> None:
    code, out, _ = run(tmp_path)
    assert code == OK
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert "planner, worker" in lines["matpo"]
    assert "system1, system2" in lines["mars"]


def test_a_role_is_shown_as_it_is_sent_filled_and_with_its_tools(tmp_path: Path) -> None:
    code, out, _ = run(tmp_path, "planner")
    assert code == OK
    assert out.startswith("[user: planner]\nAnswer the question by delegating subtasks to experts.")
    assert "Delegate one subtask and wait for its report, at most 10 in all" in out
    assert '"name": "subtask"' in out
    assert "{{" not in out
    assert [*tmp_path.iterdir()] == [], "nothing is left in the folder"


def test_another_workflow_may_have_a_role_of_that_name(tmp_path: Path) -> None:
    _, out, _ = run(tmp_path, "planner", "--workflow", "matpo")
    assert out.startswith("[system: matpo_planner]")
    assert "[user: matpo_question]" in out


def test_a_role_with_several_prompts_shows_each_once(tmp_path: Path) -> None:
    _, out, _ = run(tmp_path, "coordinator")
    assert [out.count(f"[user: {name}]") for name in ("assign", "distil")] == [1, 1]


@pytest.mark.heavy
@pytest.mark.parametrize(("workflow", "role"), ROLES)
def test_every_role_has_a_prompt_to_show(tmp_path: Path, workflow: str, role: str) -> None:
    code, out, err = run(tmp_path, role, "--workflow", workflow)
    assert (code, err) == (OK, "")
    assert len(out.split()) > 20


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        (("plannr",), "did you mean 'planner'?"),
        (("worker", "--workflow", "mars"), "--workflow matpo"),
        (("worker", "--workflow", "nonsense"), "the workflow 'nonsense' has no role 'worker'"),
    ],
)
def test_what_is_mistyped_gets_the_names_that_there_are(tmp_path: Path, arguments: tuple[str, ...], fix: str) -> None:
    code, _, err = run(tmp_path, *arguments)
    assert code == USAGE
    assert fix in err
