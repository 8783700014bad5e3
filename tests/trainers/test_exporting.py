"""The environment for another engine: what is written, and that verifiers runs it where it is installed."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from hira.core.errors import UsageError
from hira.evaluation.mini import DOCS
from hira.testing import Endpoint
from hira.trainers.assembly import TrainingPlan, make_plan
from hira.trainers.configuration import load_configuration
from hira.trainers.export import CODE, write_package


def plan(folder: Path, *overrides: str) -> TrainingPlan:
    given = ["model.name=m", "data.train=mini", "data.limit=3", "recipe=grpo", *overrides]
    return make_plan(load_configuration(None, given), folder, {}, folder)


def test_the_package_holds_questions_flags_and_the_code(tmp_path: Path) -> None:
    docs = f'settings.docs=["{DOCS}"]'
    found = write_package(
        plan(tmp_path, docs, "settings.workflow=matpo", "workflow.max_subtasks=3"), tmp_path / "out", "my_env"
    )
    names = [str(path.relative_to(tmp_path / "out")) for path in found]
    assert names == ["README.md", "my_env/__init__.py", "my_env/flags.json", "my_env/questions.jsonl", "pyproject.toml"]
    rows = [json.loads(line) for line in (tmp_path / "out/my_env/questions.jsonl").read_text().splitlines()]
    assert len(rows) == 3
    assert all(row["question"] and row["answers"] for row in rows)
    flags = json.loads((tmp_path / "out/my_env/flags.json").read_text())
    assert flags == ["--workflow", "matpo", "--docs", str(DOCS), "--set", "matpo.max_subtasks=3"]
    from hira.cli.parser import parser

    parser("0").parse_args(["ask", "--model", "m", "--base-url", "u", "--json", "--quiet", *flags, "--", "Who?"])
    compile((tmp_path / "out/my_env/__init__.py").read_text(), "environment", "exec")
    for name in ("README.md", "pyproject.toml"):
        assert "{{" not in (tmp_path / "out" / name).read_text()
        assert "my_env" in (tmp_path / "out" / name).read_text()


def test_what_the_environment_cannot_do_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no name of a module"):
        write_package(plan(tmp_path), tmp_path / "out", "My-Env")
    with pytest.raises(UsageError, match="only rewards by words"):
        write_package(plan(tmp_path, "reward.judge=j"), tmp_path / "out", "my_env")
    with pytest.raises(UsageError, match="no question"):
        write_package(plan(tmp_path, "data.train="), tmp_path / "out", "my_env")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("x")
    with pytest.raises(UsageError, match="holds something"):
        write_package(plan(tmp_path), tmp_path / "full", "my_env")


@pytest.mark.heavy
@pytest.mark.skipif(find_spec("verifiers") is None, reason="verifiers is not installed")
def test_verifiers_runs_hira_as_an_environment_and_pays_for_right_answers(tmp_path: Path) -> None:
    write_package(plan(tmp_path, "settings.workflow=direct"), tmp_path / "out", "my_env")
    lines = [
        {"id": "a", "question": "What is blue?", "answers": ["sky"]},
        {"id": "b", "question": "?", "answers": ["no"]},
    ]
    (tmp_path / "out/my_env/questions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with Endpoint({"*": lambda _: "\\boxed{the sky}"}) as endpoint:
        path = os.pathsep.join([str(tmp_path / "out"), str(CODE.parents[3])])
        done = subprocess.run(
            [
                *(sys.executable, "-m", "verifiers.v1.cli.eval.main", "my-env", "-m", endpoint.model, "-n", "2"),
                *("--client.base-url", endpoint.base_url, "--client.api-key-var", "KEY", "--push", "false"),
                *("--env.agent.harness.id", "my-env", "--env.agent.harness.command", f"{sys.executable} -m hira"),
                *("--env.agent.runtime.type", "subprocess"),
            ],
            env={**os.environ, "PYTHONPATH": path, "KEY": "k"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert "right 0.50" in done.stdout
    assert len(endpoint.calls) == 2
