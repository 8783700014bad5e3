"""A killed run resumes where it was: the same answer, and no completed call is paid for again."""

import os
from contextlib import nullcontext
from pathlib import Path
from random import Random

import pytest
from killed import Forks, killed_and_resumed

CALLS = {1: 10, 3: 8}
"""Model calls of the whole run by subtasks in one turn: two for each of three subtasks, the planner's four or two."""


@pytest.mark.heavy(seconds=30)
@pytest.mark.parametrize("parallel", CALLS)
def test_a_run_killed_at_any_of_eight_random_points_resumes(tmp_path: Path, parallel: int) -> None:
    random = Random(20261120 + parallel)
    with Forks() if hasattr(os, "fork") else nullcontext() as forks:
        for at in range(8):
            killed_and_resumed(tmp_path / str(at), parallel, random, CALLS[parallel], forks)
