"""Every example runs as its docstring says, with no key and no network, and prints what is worth reading."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy(seconds=1)

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
LONGEST = 80
SAYS = {
    "ask.py": ["at most five memory entries", "status: answered", ".md, supported: “"],
    "baselines.py": ["rag             answered, 1 verified, 1 calls", "hira            answered, 1 verified, 4 calls"],
    "database.py": ["customer='Ada' amount=45.5", "Run it? [y/n] The lamp and the bulb of Ada are paid now [s2]."],
    "mams.py": ["# Citations and how they are checked", "1. ", " notes, "],
    "matpo.py": [
        "as in the paper: answered, The planner may hand out ten subtasks. [s1] The coordinator recalls at most five",
        "1/worker: 3 turns, read pages, knew the question",
        "2/worker: 3 turns, read pages, knew its subtask alone",
    ],
    "mars.py": ["at most five memory entries. [s", "1/1/system1: ", "1/2/system1: ", "answered"],
    "marsrl.py": ["Verdict: incorrect", "3/corrector1/corrector", "may hand out ten subtasks. [s1]\nanswered"],
    "own_dialect.py": ['@high_water {"harbour": "Husum"}', "answer: At 13:40."],
    "own_expert.py": ["takes 90 minutes", "answered [('harbour',"],
    "own_policy.py": ["Naypyidaw · library · 1 call"],
    "own_tool.py": ["High water in Husum is at 13:40 [s1].", "('s1', 'supported',"],
    "own_workflow.py": ["ten calls in a subtask", "answered, 1 call,"],
    "two_models.py": ["at most five memory entries [s1].", "answered {'large': 2, 'small': 2}"],
    "watch_events.py": ["subtask 1: How many subtasks", "given to simple_search", "read [s1]", "answered after", "ten"],
}


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment without keys and settings, in which the examples share one index of the documentation."""
    home = str(tmp_path_factory.mktemp("home"))
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    return {**kept, "HOME": home, "XDG_CACHE_HOME": home, "XDG_CONFIG_HOME": home, "PYTHONUTF8": "1"}


def test_every_example_is_listed_here() -> None:
    assert set(SAYS) == {path.name for path in EXAMPLES.glob("*.py")}


@pytest.mark.parametrize("name", SAYS)
def test_it_runs_and_says_what_it_is_for(name: str, environ: dict[str, str]) -> None:
    command = [sys.executable, "-W", "error", f"examples/{name}"]
    done = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, encoding="utf-8", timeout=60, check=False, input="y\n"
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for text in SAYS[name]:
        assert text in done.stdout


def test_the_database_without_anybody_to_answer_ends_with_a_sentence(environ: dict[str, str]) -> None:
    command = [sys.executable, "examples/database.py"]
    done = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, encoding="utf-8", timeout=60, check=False, input=""
    )
    assert done.returncode == 1
    assert done.stderr.startswith("\nNothing was changed: nobody answered.")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", SAYS)
def test_it_is_short_and_says_how_to_run_it(name: str) -> None:
    lines = (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LONGEST
    assert lines[0].startswith('"""')
    assert lines[2].startswith(f"python examples/{name}")
