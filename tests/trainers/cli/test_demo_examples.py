"""The demos of examples/training, in miniature: one runner, recipes of scripts."""

import io
import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from later import needs

from hira.cli import main as hira_main
from hira.cli.output import CODES
from hira.cli.shell import Shell
from hira.cli.training.demo import run
from hira.trainers import records

pytestmark = [needs("torch", "trl"), pytest.mark.filterwarnings("default"), pytest.mark.heavy]
EXAMPLES = Path(__file__).parents[3] / "examples" / "training"


def run_in_miniature(script: str, recipe: str, folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]], str]:
    """The updates, the exams and all that was printed."""
    err = io.StringIO()
    shell = Shell(io.StringIO(), io.StringIO(), err, {}, folder, folder)
    names = runpy.run_path(str(EXAMPLES / script))
    assert run(names[recipe], ["--small", "--output", "run"], shell) == 0, err.getvalue()
    updates = [one for one in records.read(folder / "run" / records.METRICS) if "loss" in one]
    return updates, records.read(folder / "run" / records.EXAMS), err.getvalue()


def ask_trained(folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    out = io.StringIO()
    shell = Shell(io.StringIO(), out, io.StringIO(), {}, folder, folder)
    code = hira_main([*arguments, "--profile", "run", "--json", "--quiet"], shell)
    return code, json.loads(out.getvalue())


def test_solver_verifier_and_corrector_are_trained_and_examined_each(tmp_path: Path) -> None:
    updates, exams, printed = run_in_miniature("weekdays.py", "WEEKDAYS", tmp_path)
    assert [one["step"] for one in updates] == [1, 2]
    assert {"solver/reward", "verifier1/reward", "verifier1/wrong", "dead_groups"} <= updates[0].keys()
    assert [one["step"] for one in exams] == [0, 2]
    wanted = {"sampled/found", "sampled/accepted", "sampled/natural", "sampled/repaired", "greedy/solver"}
    assert wanted <= exams[0].keys()
    assert "Verifier, wrong and right solutions alike" in printed
    question = "It is Friday. Go 2 days back, then 5 days on, then 4 days back. Which day is it then?"
    code, answer = ask_trained(tmp_path, "ask", question)
    assert code == CODES[answer["status"]]
    assert (answer["workflow"], answer["usage"]["completion_tokens"] > 0) == ("marsrl", True)


def test_a_generator_of_rubrics_is_rewarded_by_pairs_and_by_a_judge(tmp_path: Path) -> None:
    updates, exams, printed = run_in_miniature("machines.py", "MACHINES_DEMO", tmp_path)
    assert {"reward/liked", "reward/valid", "reward/accuracy"} <= updates[-1].keys()
    assert {"sampled/valid", "sampled/ordered", "sampled/liked", "greedy/d"} <= exams[-1].keys()
    assert "in the right order" in printed
