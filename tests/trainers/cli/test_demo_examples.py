"""The demos of examples/training, in miniature: one runner, recipes of scripts."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from later import needs
from terminal import Terminal

from hira.cli.output import CODES
from hira.trainers import records

pytestmark = [needs("torch", "trl"), pytest.mark.filterwarnings("default"), pytest.mark.heavy]
EXAMPLES = Path(__file__).parents[3] / "examples" / "training"


def run_in_miniature(script: str, recipe: str, terminal: Terminal) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The updates and the exams."""
    names = runpy.run_path(str(EXAMPLES / script))
    assert terminal.demo(names[recipe], "--small", "--output", "run") == 0, terminal.err
    folder = terminal.folder / "run"
    updates = [one for one in records.read(folder / records.METRICS) if "loss" in one]
    return updates, records.read(folder / records.EXAMS)


def test_solver_verifier_and_corrector_are_trained_and_examined_each(terminal: Terminal) -> None:
    updates, exams = run_in_miniature("weekdays.py", "WEEKDAYS", terminal)
    assert [one["step"] for one in updates] == [1, 2]
    assert {"solver/reward", "verifier1/reward", "verifier1/wrong", "dead_groups"} <= updates[0].keys()
    assert [one["step"] for one in exams] == [0, 2]
    wanted = {"sampled/found", "sampled/accepted", "sampled/natural", "sampled/repaired", "greedy/solver"}
    assert wanted <= exams[0].keys()
    assert "Verifier, wrong and right solutions alike" in terminal.err
    question = "It is Friday. Go 2 days back, then 5 days on, then 4 days back. Which day is it then?"
    code = terminal.hira("ask", question, "--profile", "run", "--json", "--quiet")
    answer = json.loads(terminal.out)
    assert code == CODES[answer["status"]]
    assert (answer["workflow"], answer["usage"]["completion_tokens"] > 0) == ("marsrl", True)


def test_a_generator_of_rubrics_is_rewarded_by_pairs_and_by_a_judge(terminal: Terminal) -> None:
    updates, exams = run_in_miniature("machines.py", "MACHINES_DEMO", terminal)
    assert {"reward/liked", "reward/valid", "reward/accuracy"} <= updates[-1].keys()
    assert {"sampled/valid", "sampled/ordered", "sampled/liked", "greedy/d"} <= exams[-1].keys()
    assert "in the right order" in terminal.err
