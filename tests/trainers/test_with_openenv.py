"""A session of OpenEnv with hira's documents and the verdicts on citations, run by OpenEnv's own harness.

OpenEnv is not among hira's requirements; it has the environment of test_with_verifiers.py:

    .verifiers/bin/pip install "openenv-core>=0.3,<0.4"
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from test_with_verifiers import ENVIRONMENT, ROOT

PYTHON = ENVIRONMENT / "bin" / "python"
THERE = any(ENVIRONMENT.glob("lib/*/site-packages/openenv"))
pytestmark = [pytest.mark.heavy(20), pytest.mark.skipif(not THERE, reason=f"{ENVIRONMENT} has no openenv-core")]


@pytest.mark.parametrize(
    ("answer", "reward"),
    [("The river Vell flows through Arnby. [s1]", 1.0), ("The river Lorn flows through Arnby. [s1]", 0.0)],
    ids=["true", "false"],
)
def test_openenvs_harness_searches_and_is_paid_for_true_citations(answer: str, reward: float, tmp_path: Path) -> None:
    (tmp_path / "arnby.md").write_text("# Arnby\n\nThe river Vell flows through Arnby.\n")
    path = os.pathsep.join(map(str, (ROOT, ROOT / "examples" / "openenv")))
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": path}
    script = Path(__file__).with_name("openenv_agent.py")
    done = subprocess.run([PYTHON, script, tmp_path, answer], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["reward"] == reward
    assert found["tools"] == ["search", "browse"]
    assert "The river Vell flows through Arnby." in found["shown"]
    assert found["tokens"] == [2, 2, 3], "the trainer that samples keeps the tokens"
