"""A batch that is killed at random moments loses nothing that it had recorded; see benchmarks/kill.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

KILL = Path(__file__).parents[2] / "benchmarks" / "kill.py"


@pytest.mark.heavy(seconds=20)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="each batch is a fork")
def test_a_batch_killed_at_random_moments_resumes_and_pays_for_no_call_twice() -> None:
    done = subprocess.run(
        [sys.executable, str(KILL), "--rounds", "12"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
