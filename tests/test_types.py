"""Type checkers accept a user's program and know its types."""

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from later import needs

from hira.core.events import KINDS, AnyEvent, Error

ROOT = Path(__file__).parent.parent
PROGRAM = "tests/data/user_program.py"


@needs("mypy")
@pytest.mark.heavy(seconds=90)
def test_mypy_in_strict_mode_accepts_a_program_with_typed_answers_tools_and_hooks() -> None:
    command = [sys.executable, "-m", "mypy", "--strict", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_union_of_events_leaves_none_out() -> None:
    assert {*get_args(AnyEvent)} == {*KINDS.values()} - {Error}
