"""A run that was killed goes on where it was: the same answer, and nothing that was paid for is paid for again."""

import os
from contextlib import nullcontext
from pathlib import Path
from random import Random

import pytest
from killed import Forks, killed_and_resumed

IN_ORDER = 16
"""Model calls of the whole run: four of the planner, four for each subtask."""
AT_ONCE = 14
"""With all three subtasks in one turn the planner needs two."""


@pytest.mark.heavy
@pytest.mark.parametrize("seed", [1, 2])
def test_a_killed_run_resumes_to_the_same_answer_and_repeats_no_completed_call(tmp_path: Path, seed: int) -> None:
    killed_and_resumed(tmp_path / "place", 1, Random(seed), IN_ORDER)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", [1])
def test_parallel_subtasks_of_a_killed_run_resume_in_their_own_order(tmp_path: Path, seed: int) -> None:
    killed_and_resumed(tmp_path / "place", 3, Random(seed), AT_ONCE)


@pytest.mark.heavy(seconds=60)
@pytest.mark.parametrize("parallel", [1, 3])
def test_a_run_killed_at_any_of_25_random_points_resumes(tmp_path: Path, parallel: int) -> None:
    random = Random(20261120 + parallel)
    with Forks() if hasattr(os, "fork") else nullcontext() as forks:
        for at in range(25):
            killed_and_resumed(tmp_path / str(at), parallel, random, AT_ONCE if parallel == 3 else IN_ORDER, forks)
